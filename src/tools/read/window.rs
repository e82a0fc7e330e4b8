//! Extracts the requested lines of a file in one pass and bounded memory.
//!
//! Bytes before and after the lines are only counted, so that the result can tell the number of lines.
//! Slightly more than a result can show is kept, even of one endless line.

use crate::llm::secret::Hider;
use crate::tools::text::{Decoder, Encoding};
use crate::tools::truncate::{MAX_BYTES, Totals};
use memchr::{memchr, memchr_iter};

/// Slightly more than can be shown, to distinguish too much from just enough.
const MAX_KEPT: usize = MAX_BYTES + 4;

pub struct Window {
    /// Decodes bytes as they arrive; `None` for UTF-8, which is checked at the end.
    decoder: Option<Decoder>,
    /// Lines before the first requested one.
    skip: u64,
    /// Number of requested lines.
    limit: Option<u64>,
    /// Newlines seen in the whole file.
    newlines: u64,
    /// Newlines in the requested lines, and their bytes.
    inner_newlines: u64,
    inner_bytes: u64,
    ends_in_newline: bool,
    /// Bytes of the first requested line.
    first_line: u64,
    kept: Vec<u8>,
    place: Place,
    /// Hides secrets before the text is cut.
    hider: Hider,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    After,
}

/// The lines that were found, and their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The start of the requested lines: all, or more than can be shown.
    pub text: String,
    /// Size of all requested lines.
    pub totals: Totals,
    pub first_line_bytes: u64,
    /// True if bytes are invalid in the encoding.
    pub damaged: bool,
    /// Number of requested lines that exist, including the empty one after a final newline.
    pub count: u64,
    /// Number of lines in the file, including the empty one after a final newline.
    pub file_lines: u64,
}

impl Window {
    pub fn new(encoding: Encoding, skip: u64, limit: Option<u64>, hider: Hider) -> Self {
        let mut window = Self {
            decoder: (encoding != Encoding::Utf8).then(|| Decoder::new(encoding)),
            skip,
            limit,
            newlines: 0,
            inner_newlines: 0,
            inner_bytes: 0,
            ends_in_newline: true,
            first_line: 0,
            kept: Vec::new(),
            place: Place::Before,
            hider,
        };
        window.enter();
        window
    }

    /// True if the rest of the file only has to be counted.
    pub fn is_filled(&self) -> bool {
        self.place == Place::After || self.kept.len() >= MAX_KEPT
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.decoder {
            None => self.hide(bytes),
            Some(decoder) => {
                let mut text = String::new();
                decoder.feed(bytes, &mut text);
                self.hide(text.as_bytes());
            }
        }
    }

    fn hide(&mut self, bytes: &[u8]) {
        if self.is_filled() {
            // What follows is only counted, and no line end is part of a secret.
            let rest = self.hider.end();
            self.scan(&rest);
            return self.scan(bytes);
        }
        let hidden = self.hider.push(bytes);
        self.scan(&hidden);
    }

    /// The lines; if the file ends before them, its number of lines.
    pub fn finish(mut self) -> Result<Lines, u64> {
        if let Some(mut decoder) = self.decoder.take() {
            let mut text = String::new();
            decoder.finish(&mut text);
            self.hide(text.as_bytes());
        }
        let rest = self.hider.end();
        self.scan(&rest);
        let file_lines = self.newlines + 1;
        if self.place == Place::Before {
            return Err(file_lines);
        }
        let whole = self.inner_bytes == self.kept.len() as u64;
        let (text, damaged) = decode(&self.kept, whole);
        // A replacement character can only be longer, so what was too long stays so.
        let bytes = (self.inner_bytes + text.len() as u64).saturating_sub(self.kept.len() as u64);
        Ok(Lines {
            totals: Totals { lines: self.inner_newlines + u64::from(!self.ends_in_newline), bytes },
            first_line_bytes: self.first_line,
            damaged,
            count: match self.limit {
                Some(limit) => limit.min(file_lines - self.skip),
                None => file_lines - self.skip,
            },
            file_lines,
            text,
        })
    }

    /// Enters the next phase if the current line is its first.
    fn enter(&mut self) {
        if self.place == Place::Before && self.newlines == self.skip {
            self.place = Place::Inside;
        }
        let end = self.limit.map(|limit| self.skip.saturating_add(limit));
        if self.place == Place::Inside && end.is_some_and(|end| self.newlines >= end) {
            self.place = Place::After;
        }
    }

    fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.place == Place::Before {
            let Some(at) = memchr(b'\n', bytes) else {
                return;
            };
            self.newlines += 1;
            self.enter();
            bytes = bytes.get(at + 1..).unwrap_or_default();
        }
        while !bytes.is_empty() && self.place == Place::Inside {
            let end = memchr(b'\n', bytes);
            let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.inner_newlines == 0 {
                self.first_line += line.len() as u64;
            }
            self.keep(line);
            let Some(end) = end else {
                return;
            };
            self.newlines += 1;
            self.enter();
            // The newline after the last line is not a part of it.
            if self.place == Place::Inside {
                self.inner_newlines += 1;
                self.keep(b"\n");
            }
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
        self.newlines += memchr_iter(b'\n', bytes).count() as u64;
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.inner_bytes += bytes.len() as u64;
        let room = MAX_KEPT - self.kept.len();
        let kept = bytes.get(..room).unwrap_or(bytes);
        self.kept.extend_from_slice(kept);
        if let Some(last) = bytes.last() {
            self.ends_in_newline = *last == b'\n';
        }
    }
}

/// The text of the kept bytes, and whether some were invalid. Unless `whole`, an incomplete last character is
/// dropped.
fn decode(kept: &[u8], whole: bool) -> (String, bool) {
    let mut text = String::new();
    let mut decoder = Decoder::new(Encoding::Utf8);
    decoder.feed(kept, &mut text);
    if whole {
        decoder.finish(&mut text);
    }
    let damaged = std::str::from_utf8(kept).is_err_and(|error| whole || error.error_len().is_some());
    (text, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(pieces: &[&[u8]], encoding: Encoding, skip: u64, limit: Option<u64>) -> Result<Lines, u64> {
        let mut window = Window::new(encoding, skip, limit, Hider::new(None));
        pieces.iter().for_each(|piece| window.feed(piece));
        window.finish()
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut window = Window::new(Encoding::Utf8, 1, None, Hider::new(None));
        window.feed(b"first\n");
        for _ in 0..1000 {
            window.feed(&[b'x'; 1000]);
        }
        assert!(window.is_filled());
        assert_eq!(window.kept.len(), MAX_KEPT);
        let lines = window.finish().unwrap();
        assert_eq!((lines.first_line_bytes, lines.totals.bytes), (1_000_000, 1_000_000));
        assert!(lines.text.len() > MAX_BYTES);
    }

    #[test]
    fn a_character_cut_by_the_limit_is_no_damage() {
        let text = "a".repeat(MAX_KEPT - 1) + "é and more";
        let lines = window(&[text.as_bytes()], Encoding::Utf8, 0, None).unwrap();
        assert!(!lines.damaged && lines.totals.bytes > MAX_BYTES as u64);
        assert!(lines.text.chars().all(|char| char == 'a'));
        let lines = window(&[b"a\xffb"], Encoding::Utf8, 0, None).unwrap();
        assert!(lines.damaged);
        assert_eq!(lines.text, "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_whole_text(
            text in "[aé\n]{0,40}",
            skip in 0..12_u64,
            limit in prop::option::of(0..12_u64),
            cut: prop::sample::Index,
        ) {
            let all: Vec<&str> = text.split('\n').collect();
            for encoding in [Encoding::Utf8, Encoding::Utf16Be, Encoding::Latin1] {
                let bytes = encoding.encode(&text).unwrap();
                let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
                let found = window(&[left, right], encoding, skip, limit);
                let Some(rest) = all.get(skip as usize..).filter(|rest| !rest.is_empty()) else {
                    prop_assert_eq!(found, Err(all.len() as u64));
                    continue;
                };
                let count = limit.map_or(rest.len(), |limit| rest.len().min(limit as usize));
                let expected = rest[..count].join("\n");
                let found = found.unwrap();
                prop_assert_eq!(&found.text, &expected);
                let totals = (found.totals.lines, found.totals.bytes);
                let lines = expected.lines().count().max(usize::from(!expected.is_empty()));
                prop_assert_eq!(totals, (lines as u64, expected.len() as u64));
                prop_assert_eq!((found.count, found.file_lines), (count as u64, all.len() as u64));
                prop_assert!(!found.damaged);
                let first = expected.split('\n').next().unwrap_or_default();
                prop_assert_eq!(found.first_line_bytes, first.len() as u64);
            }
        }
    }
}
