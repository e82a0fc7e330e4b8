//! Finds the text of an edit in a file.
//!
//! The exact bytes are searched first, except line endings in a file that mixes them: a model does not see
//! endings and cannot have meant particular ones. If nothing matches, the search is repeated while ignoring
//! differences in line endings, then in trailing blanks, then between look-alike characters
//! ([`crate::tools::fold`]). The first step with a match decides. Both texts are folded for a step, but the
//! answer is always a range of the file's own bytes, and it never begins or ends inside a character, a letter
//! with accents or a CRLF.

use crate::agent::CancelToken;
use crate::tools::fold;
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

/// Differences that a search ignores, in addition to those of the previous steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Exact,
    Endings,
    TrailingBlanks,
    Signs,
}

impl Step {
    pub const ALL: [Self; 4] = [Self::Exact, Self::Endings, Self::TrailingBlanks, Self::Signs];
}

/// Finds `wanted` in `body`: for each text all matches in the order of the file, which may be none. Matches
/// of one text do not overlap, except that a single match and one that overlaps it are both returned: the
/// text is then not unique.
///
/// A body that is not UTF-8 is searched by bytes, ignoring line endings at most. Cancelling ends the search
/// after the current step.
pub fn find_all(body: &[u8], wanted: &[&str], cancel: &CancelToken) -> Vec<Vec<Range<usize>>> {
    let is_text = std::str::from_utf8(body).is_ok();
    let is_mixed = has_mixed_endings(body);
    let mut found = vec![Vec::new(); wanted.len()];
    for step in Step::ALL {
        let useless = step > Step::Endings && !is_text;
        if found.iter().all(|places| !places.is_empty()) || useless || cancel.is_cancelled() {
            break;
        }
        let folded = Folded::new(body, step);
        let missing = wanted.iter().zip(&mut found).filter(|(_, places)| places.is_empty());
        for (text, places) in missing {
            if step > Step::Exact || !is_mixed || !text.contains(['\r', '\n']) {
                *places = folded.find(text);
            }
        }
    }
    found
}

/// True if the body mixes line endings.
fn has_mixed_endings(body: &[u8]) -> bool {
    let mut seen = None;
    let mut rest = body;
    while let Some((_, end)) = memchr::memchr2(b'\r', b'\n', rest).and_then(|at| rest.split_at_checked(at)) {
        let ending = match end {
            [b'\r', b'\n', ..] => "\r\n",
            [b'\r', ..] => "\r",
            _ => "\n",
        };
        if seen.replace(ending).is_some_and(|before| before != ending) {
            return true;
        }
        rest = end.get(ending.len()..).unwrap_or_default();
    }
    false
}

/// A file as folded for one step.
struct Folded<'a> {
    body: &'a [u8],
    step: Step,
    text: Cow<'a, [u8]>,
}

impl<'a> Folded<'a> {
    fn new(body: &'a [u8], step: Step) -> Self {
        let text = match step {
            Step::Exact => Cow::Borrowed(body),
            _ => {
                let mut text = Vec::with_capacity(body.len());
                Units::new(body, step).for_each(|unit| text.extend_from_slice(unit.folded()));
                Cow::Owned(text)
            }
        };
        Self { body, step, text }
    }

    fn find(&self, wanted: &str) -> Vec<Range<usize>> {
        let needle = Needle::new(wanted, self.step);
        if needle.text.is_empty() {
            return Vec::new();
        }
        let finder = memmem::Finder::new(&needle.text);
        let mut places = self.places(finder.find_iter(&self.text).collect(), &needle);
        if let [(at, _)] = places.as_slice() {
            // Another that overlaps the only one makes it ambiguous.
            let end = (at + 2 * needle.text.len() - 1).min(self.text.len());
            let near = self.text.get(at + 1..end).unwrap_or_default();
            let other = finder.find(near).map(|next| at + 1 + next);
            places.append(&mut self.places(other.into_iter().collect(), &needle));
        }
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// Ranges of the body for matches in the folded text, without those that begin or end inside a unit. Each
    /// is paired with its position in the folded text.
    fn places(&self, at: Vec<usize>, needle: &Needle) -> Vec<(usize, Range<usize>)> {
        let length = needle.text.len();
        if self.step == Step::Exact {
            let ranges = at.into_iter().map(|at| (at, at..at + length));
            return ranges
                .filter(|(_, range)| !self.inside_crlf(range.start) && self.end(range.end, needle).is_some())
                .collect();
        }
        let mut places = Vec::new();
        let mut wanted = at.into_iter().peekable();
        let mut start = None;
        let mut position = 0;
        for unit in Units::new(self.body, self.step) {
            let Some(&from) = wanted.peek() else { break };
            if unit.folded().is_empty() {
                continue;
            }
            if position == from {
                start = Some(unit.at.start);
            }
            position += unit.folded().len();
            if position < from + length {
                continue;
            }
            let exactly = position == from + length;
            if let Some(start) = start.take()
                && exactly
                && let Some(end) = self.end(unit.at.end, needle)
            {
                places.push((from, start..end));
            }
            wanted.next();
            // Those that begin inside this unit are no places.
            while wanted.next_if(|&next| next < position).is_some() {}
        }
        places
    }

    /// The actual end of a match that ends at `end`; `None` if a match must not end there.
    fn end(&self, end: usize, needle: &Needle) -> Option<usize> {
        let rest = self.body.get(end..)?;
        if needle.ends_in_blanks {
            // They were looked past, so the match ends where a line does, its own blanks included.
            return match Units::new(rest, self.step).next() {
                None => Some(end),
                Some(unit) if unit.folded() == b"\n" => Some(end),
                Some(unit) if unit.folded().is_empty() => Some(end + unit.at.end),
                Some(_) => None,
            };
        }
        let cuts_a_letter = first_char(rest).is_some_and(fold::is_mark);
        (!cuts_a_letter && !self.inside_crlf(end)).then_some(end)
    }

    fn inside_crlf(&self, at: usize) -> bool {
        let (before, after) = self.body.split_at_checked(at).unwrap_or_default();
        before.ends_with(b"\r") && after.starts_with(b"\n")
    }
}

/// The text of an edit as folded for one step.
struct Needle {
    text: Vec<u8>,
    /// True if the step ignores blanks at the end of the text.
    ends_in_blanks: bool,
}

impl Needle {
    fn new(wanted: &str, step: Step) -> Self {
        let mut needle = Self { text: Vec::with_capacity(wanted.len()), ends_in_blanks: false };
        for unit in Units::new(wanted.as_bytes(), step) {
            needle.text.extend_from_slice(unit.folded());
            needle.ends_in_blanks = unit.folded().is_empty();
        }
        needle
    }
}

/// Bytes that are compared as a unit, and their folded form.
struct Unit {
    at: Range<usize>,
    /// Folded bytes: at most three characters (a letter and two marks, or three dots).
    folded: [u8; 12],
    length: u8,
}

impl Unit {
    fn new(at: Range<usize>, folded: &[u8]) -> Self {
        let mut unit = Self { at, folded: [0; 12], length: 0 };
        unit.push(folded);
        unit
    }

    fn push(&mut self, bytes: &[u8]) {
        for (slot, byte) in self.folded.iter_mut().skip(self.length.into()).zip(bytes) {
            *slot = *byte;
            self.length += 1;
        }
    }

    fn folded(&self) -> &[u8] {
        self.folded.get(..self.length.into()).unwrap_or_default()
    }
}

/// The units of a text, in order. Trailing blanks of a line are one unit with an empty folded form.
struct Units<'a> {
    text: &'a [u8],
    at: usize,
    step: Step,
    /// Offset up to which blanks are known not to be trailing.
    inner_blanks: usize,
}

impl<'a> Units<'a> {
    fn new(text: &'a [u8], step: Step) -> Self {
        Self { text, at: 0, step, inner_blanks: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Length of the blank at the start of `text`.
    fn blank(&self, text: &[u8]) -> Option<usize> {
        match text.first()? {
            b' ' | b'\t' => Some(1),
            byte if byte.is_ascii() || self.step < Step::Signs => None,
            _ => first_char(text).filter(|char| fold::is_space(*char)).map(char::len_utf8),
        }
    }

    /// Length of the blanks at the position, if a line ends after them.
    fn blanks_at_line_end(&mut self) -> Option<usize> {
        if self.step < Step::TrailingBlanks || self.at < self.inner_blanks {
            return None;
        }
        let rest = self.rest();
        let mut length = 0;
        while let Some(blank) = self.blank(rest.get(length..).unwrap_or_default()) {
            length += blank;
        }
        match rest.get(length) {
            _ if length == 0 => None,
            None | Some(b'\n' | b'\r') => Some(length),
            Some(_) => {
                self.inner_blanks = self.at + length;
                None
            }
        }
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let rest = self.rest();
        let first = *rest.first()?;
        let start = self.at;
        if let Some(length) = self.blanks_at_line_end() {
            self.at += length;
            return Some(Unit::new(start..self.at, b""));
        }
        if rest.starts_with(b"\r\n") {
            self.at += 2;
            let folded: &[u8] = if self.step == Step::Exact { b"\r\n" } else { b"\n" };
            return Some(Unit::new(start..self.at, folded));
        }
        if first.is_ascii() || self.step < Step::Signs {
            self.at += 1;
            let folded = if first == b'\r' && self.step > Step::Exact { b'\n' } else { first };
            return Some(Unit::new(start..self.at, &[folded]));
        }
        let Some(char) = first_char(rest) else {
            self.at += 1;
            return Some(Unit::new(start..self.at, &[first]));
        };
        self.at += char.len_utf8();
        let mut unit = Unit::new(start..self.at, b"");
        fold::fold(char, &mut |part| unit.push(part.encode_utf8(&mut [0; 4]).as_bytes()));
        Some(unit)
    }
}

fn first_char(text: &[u8]) -> Option<char> {
    let head = text.get(..4).unwrap_or(text);
    head.utf8_chunks().next()?.valid().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks the matches of `wanted`, given as the matched texts.
    #[track_caller]
    fn check(body: &str, wanted: &str, expected: &[&str]) {
        let places = find_all(body.as_bytes(), &[wanted], &CancelToken::new()).remove(0);
        let found: Vec<&str> = places.iter().map(|place| &body[place.clone()]).collect();
        assert_eq!(found, expected, "{wanted:?} in {body:?}");
    }

    #[test]
    fn exact_text_comes_first() {
        check("one two", "two", &["two"]);
        check("a 'b' ‘b’", "'b'", &["'b'"]);
        check("a 'b' ‘b’", "‘b’", &["‘b’"]);
        check("x  \nx\n", "x\n", &["x\n"]);
        check("x x", "x", &["x", "x"]);
        check("nothing", "here", &[]);
        check("", "x", &[]);
        check("x", "", &[]);
    }

    #[test]
    fn text_that_overlaps_itself_is_not_unique() {
        check("aaa", "aa", &["aa", "aa"]);
        check("a\n\n\nb", "\n\n", &["\n\n", "\n\n"]);
        check("abab", "abab", &["abab"]);
    }

    #[test]
    fn line_endings_are_looked_past() {
        check("a\r\nb\r\nc", "a\nb", &["a\r\nb"]);
        check("a\nb", "a\r\nb", &["a\nb"]);
        check("a\rb", "a\nb", &["a\rb"]);
        // A CRLF is never cut in two.
        check("a\r\nb", "\nb", &["\r\nb"]);
        check("a\r\nb", "a\r", &["a\r\n"]);
        check("a\r\nb", "\r\nb", &["\r\nb"]);
        check("a\r\n\r\nb", "\n", &["\r\n", "\r\n"]);
        // One who does not see the endings does not see that only one of these is exact.
        check("a\nb a\r\nb", "a\r\nb", &["a\nb", "a\r\nb"]);
        check("a\nb a\r\nb", "a\nb", &["a\nb", "a\r\nb"]);
        check("a\nb a\rb", "a\nb", &["a\nb", "a\rb"]);
        check("a\nb\r\n", "a\nb\n", &["a\nb\r\n"]);
        // A lower step is not asked when a higher one has an answer.
        check("a\nb a \nb", "a\nb", &["a\nb"]);
    }

    #[test]
    fn blanks_at_line_ends_are_looked_past() {
        check("a  \n\tb \nc", "a\n\tb\nc", &["a  \n\tb \nc"]);
        check("a\nb", "a \t\nb", &["a\nb"]);
        check("a \r\nb", "a\nb", &["a \r\nb"]);
        // The blanks of the last line belong to the match only if it has some.
        check("xa\nb  \n", "a \nb", &["a\nb"]);
        check("xa\nb\t\n", "a\nb  ", &["a\nb\t"]);
        check("xa\nb", "a\nb  ", &["a\nb"]);
        check("a\nbc", "a\nb  ", &[]);
        check("bread", "b  ", &[]);
        check("a    ", "   \n", &[]);
        check("ab", "   ", &[]);
        check("a  b", "a b", &[]);
    }

    #[test]
    fn signs_that_look_alike_are_taken_for_each_other() {
        check("say “hi” — now", "say \"hi\" - now", &["say “hi” — now"]);
        check("a\u{a0}b", "a b", &["a\u{a0}b"]);
        check("a b\u{3000}\nc", "a\u{a0}b\nc", &["a b\u{3000}\nc"]);
        check("ｆ（ｘ）", "f(x)", &["ｆ（ｘ）"]);
        check("eﬃcient…", "efficient...", &["eﬃcient…"]);
        check("cafe\u{301} x", "café", &["cafe\u{301}"]);
        check("café x", "cafe\u{301}", &["café"]);
        check("‘a’ ’a‘", "'a'", &["‘a’", "’a‘"]);
    }

    #[test]
    fn a_match_ends_between_letters() {
        check("ﬁ", "f", &[]);
        check("ﬁ", "i", &[]);
        check("ﬁ…i", "i", &["i"]);
        check("café", "cafe", &[]);
        check("cafe\u{301}", "cafe", &[]);
        check("ﬁﬁ", "fifi", &["ﬁﬁ"]);
        check("xﬁ ﬁx", "i f", &[]);
    }

    #[test]
    fn bytes_that_are_no_text_are_found_exactly() {
        let find = |body: &'static [u8], wanted| -> Vec<&[u8]> {
            let places = find_all(body, &[wanted], &CancelToken::new()).remove(0);
            places.into_iter().map(|place| &body[place]).collect()
        };
        assert_eq!(find(b"\xff ab \xff", "ab"), [b"ab"]);
        assert_eq!(find(b"\xffa\r\nb", "a\nb"), [b"a\r\nb"]);
        assert!(find("\u{a0}a".as_bytes().get(1..).unwrap(), " a").is_empty());
        assert!(find(b"\xffa \nb", "a\nb").is_empty());
    }

    proptest! {
        #[test]
        fn a_piece_of_a_text_is_found_in_it(
            body in "[ab é“ﬁ\r\n\t\u{301}\u{a0}]{0,30}",
            from: prop::sample::Index,
            to: prop::sample::Index,
        ) {
            let edges: Vec<usize> = body.char_indices().map(|(at, _)| at).chain([body.len()]).collect();
            let (from, to) = (*from.get(&edges), *to.get(&edges));
            let piece = &body[from.min(to)..from.max(to)];
            for place in find_all(body.as_bytes(), &[piece], &CancelToken::new()).remove(0) {
                prop_assert!(body.get(place.clone()).is_some());
                let cut = body[place.end..].chars().next().is_some_and(fold::is_mark);
                prop_assert!(!cut);
            }
        }

        #[test]
        fn any_bytes_can_be_searched(body: Vec<u8>, wanted: String) {
            for place in find_all(&body, &[&wanted], &CancelToken::new()).remove(0) {
                prop_assert!(place.end <= body.len() && !place.is_empty());
            }
        }
    }
}
