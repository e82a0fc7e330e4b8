//! Splits a stream into lines.
//!
//! A line ends with LF; a CR before it is removed. U+2028 and U+2029 are ordinary data. A line over the limit
//! is reported as soon as it is, and skipped up to its LF without being buffered.

use std::io::{self, BufRead};

/// Maximum bytes of a line.
pub const LINE_MAX: usize = 64 << 20;

/// Bytes of buffer kept between lines.
const KEEP: usize = 1 << 20;

/// Bytes of a line over the limit that are kept: what is told of it stands there.
const START: usize = 1 << 10;

#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line that is not blank.
    Line(&'a [u8]),
    /// The start of a line over the limit.
    TooLong(&'a [u8]),
}

pub struct Frames<R> {
    source: R,
    line: Vec<u8>,
    max: usize,
    /// The rest of a line over the limit comes next.
    is_skipping: bool,
}

impl<R: BufRead> Frames<R> {
    pub fn new(source: R, max: usize) -> Self {
        Self { source, line: Vec::new(), max, is_skipping: false }
    }

    /// The next line; text after the last LF counts as a line. `None` at the end.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        loop {
            let is_end = self.read_line()?;
            if self.line.len() > self.max {
                self.is_skipping = true;
                self.line.truncate(START);
                self.line.shrink_to(START);
                return Ok(Some(Frame::TooLong(&self.line)));
            }
            if !self.line.trim_ascii().is_empty() {
                let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
                return Ok(Some(Frame::Line(line)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    /// Fills `line`, up to the piece that takes it over the limit. Returns whether the input has ended.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.line.shrink_to(KEEP);
        loop {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok(true);
            }
            let end = memchr::memchr(b'\n', bytes);
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if !self.is_skipping {
                self.line.extend_from_slice(part);
            }
            let is_over = self.line.len() > self.max;
            // The LF of a line over the limit ends what is skipped.
            let used = part.len() + usize::from(end.is_some() && !is_over);
            self.source.consume(used);
            if is_over {
                return Ok(false);
            }
            if end.is_some() && !std::mem::take(&mut self.is_skipping) {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Checks the lines of `input`, for any size of pieces.
    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        for size in [1, 2, 3, 7, 4096] {
            let mut frames = Frames::new(BufReader::with_capacity(size, input.as_bytes()), 10);
            let mut found = Vec::new();
            while let Some(frame) = frames.next_frame().unwrap() {
                found.push(match frame {
                    Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
                    Frame::TooLong(start) => {
                        assert!(input.as_bytes().windows(start.len()).any(|part| part == start));
                        "too long".to_owned()
                    }
                });
            }
            assert_eq!(found, expected, "in pieces of {size}");
            assert_eq!(frames.next_frame().unwrap(), None);
            assert!(frames.line.capacity() <= 8192);
        }
    }

    #[test]
    fn lines_end_with_lf_only() {
        check("", &[]);
        check("a\nb", &["a", "b"]);
        check("a\r\n b \r\n", &["a", " b "]);
        check("a\rb\n", &["a\rb"]);
        check("a\u{2028}b\u{2029}\n\u{85}\n", &["a\u{2028}b\u{2029}", "\u{85}"]);
        check("\n \n\t\r\n\r\n", &[]);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_to_its_end() {
        check("1234567890\nx", &["1234567890", "x"]);
        check("12345678901\nx", &["too long", "x"]);
        check("12345678901", &["too long"]);
        check("12345678901\n\n1\n12345678901\n", &["too long", "1", "too long"]);
        check(&"y".repeat(100_000), &["too long"]);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_before_it_ends() {
        let endless = io::Read::chain(&b"12345"[..], io::repeat(b'y'));
        let mut frames = Frames::new(BufReader::new(endless), 10);
        assert!(
            matches!(frames.next_frame(), Ok(Some(Frame::TooLong(start))) if start.starts_with(b"12345"))
        );
    }
}
