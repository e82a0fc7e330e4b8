//! Finds all of a set of values in one pass over a text.

use super::each_text;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// Values, and what is shown in the place of each.
pub struct Set {
    pub(super) automaton: AhoCorasick,
    pub(super) values: Vec<Vec<u8>>,
    shown: Vec<String>,
    /// The first bytes of the values.
    pub(super) first: [bool; 256],
    /// Bytes.
    pub(super) longest: usize,
}

impl Set {
    /// `None` for no values. Of equal values the first counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let mut seen = HashSet::new();
        let pairs = pairs.into_iter().filter(|(value, _)| !value.is_empty() && seen.insert(value.clone()));
        let (values, shown): (Vec<_>, Vec<_>) =
            pairs.map(|(value, shown)| (value.into_bytes(), shown)).unzip();
        // Small and quick to make: nearly all text is passed over by the search for rare bytes before it.
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

    /// What is shown for the value with this index.
    pub(super) fn shown(&self, index: usize) -> &str {
        &self.shown[index]
    }

    /// True if `bytes` hold one of the values.
    pub fn is_in(&self, bytes: impl AsRef<[u8]>) -> bool {
        self.automaton.is_match(bytes.as_ref())
    }

    /// `text` without the values: of those that overlap the first, and of those that begin together the
    /// longest, is replaced.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.hide_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(hidden) => Cow::Owned(into_text(hidden)),
        }
    }

    /// [`hide`](Self::hide) for bytes that need not be text.
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

    /// Hides in every string of `value`; see [`each_text`] for what is left alone.
    pub fn hide_value(&self, value: &mut Value) {
        each_text(value, &mut |text| match self.hide(text) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        });
    }
}

/// Text in which values, which are text, were replaced by text.
pub(super) fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
