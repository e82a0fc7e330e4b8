//! Splits a stream into lines.
//!
//! A line ends with LF; a CR before it is removed. U+2028 and U+2029 are ordinary data. A line over the limit
//! is skipped up to its LF without being buffered.

use std::io::{self, BufRead};

/// Maximum bytes of a line.
pub const LINE_MAX: usize = 64 << 20;

/// Bytes of buffer kept between lines.
const KEEP: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line that is not blank.
    Line(&'a [u8]),
    TooLong,
}

pub struct Frames<R> {
    source: R,
    line: Vec<u8>,
    max: usize,
}

impl<R: BufRead> Frames<R> {
    pub fn new(source: R, max: usize) -> Self {
        Self { source, line: Vec::new(), max }
    }

    /// The next line; text after the last LF counts as a line. `None` at the end.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        loop {
            let (is_end, too_long) = self.read_line()?;
            if too_long {
                return Ok(Some(Frame::TooLong));
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

    /// Fills `line`. Returns whether the input has ended and whether the line was too long.
    fn read_line(&mut self) -> io::Result<(bool, bool)> {
        self.line.clear();
        self.line.shrink_to(KEEP);
        let mut too_long = false;
        loop {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok((true, too_long));
            }
            let end = memchr::memchr(b'\n', bytes);
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if too_long || self.line.len() + part.len() > self.max {
                too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.source.consume(used);
            if end.is_some() {
                return Ok((false, too_long));
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
                    Frame::TooLong => "too long".to_owned(),
                });
            }
            assert_eq!(found, expected, "in pieces of {size}");
            assert_eq!(frames.next_frame().unwrap(), None);
            assert!(frames.line.capacity() <= 64);
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
        check(&"y".repeat(100_000), &["too long"]);
    }
}
