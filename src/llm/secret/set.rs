//! Finds all values of a set in one pass over a text.

use super::each_text;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// Values, and the replacement for each.
pub struct Set {
    pub(super) automaton: AhoCorasick,
    pub(super) values: Vec<Vec<u8>>,
    shown: Vec<String>,
    /// True for each byte that begins a value.
    pub(super) first: [bool; 256],
    /// Length of the longest value, in bytes.
    pub(super) longest: usize,
}

impl Set {
    /// `None` if there are no values. Of equal values the first one is used.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let mut seen = HashSet::new();
        let pairs = pairs.into_iter().filter(|(value, _)| !value.is_empty() && seen.insert(value.clone()));
        let (values, shown): (Vec<_>, Vec<_>) =
            pairs.map(|(value, shown)| (value.into_bytes(), shown)).unzip();
        // Small and fast to build: a search for rare bytes skips nearly all text.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&values)
            .ok()?;
        let mut first = [false; 256];
        for value in &values {
            first[usize::from(value[0])] = true;
        }
        let longest = values.iter().map(Vec::len).max()?;
        Some(Self { automaton, values, shown, first, longest })
    }

    /// The replacement for the value with this index.
    pub(super) fn shown(&self, index: usize) -> &str {
        &self.shown[index]
    }

    /// True if `bytes` contain one of the values.
    pub fn is_in(&self, bytes: impl AsRef<[u8]>) -> bool {
        self.automaton.is_match(bytes.as_ref())
    }

    /// Replaces the values in `text`. Of overlapping values the first is replaced; of values with one start,
    /// the longest.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.hide_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(hidden) => Cow::Owned(into_text(hidden)),
        }
    }

    /// Replaces the values in bytes that need not be UTF-8.
    pub fn hide_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut hidden = Vec::new();
        let mut done = 0;
        for found in self.automaton.find_iter(bytes) {
            hidden.extend_from_slice(&bytes[done..found.start()]);
            hidden.extend_from_slice(self.shown(found.pattern().as_usize()).as_bytes());
            done = found.end();
        }
        if done == 0 {
            return Cow::Borrowed(bytes);
        }
        hidden.extend_from_slice(&bytes[done..]);
        Cow::Owned(hidden)
    }

    /// Replaces the values in every string of `value`, except those that [`each_text`] skips.
    pub fn hide_value(&self, value: &mut Value) {
        each_text(value, &mut |text| match self.hide(text) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        });
    }
}

/// Converts the result of a replacement back to text.
pub(super) fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
