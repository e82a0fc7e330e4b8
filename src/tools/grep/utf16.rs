//! Reads UTF-16 text with a byte order mark as UTF-8.

use std::io::{self, Read};

pub(super) struct Utf16<R> {
    source: R,
    /// Bytes not decoded yet: half a unit, or half a surrogate pair.
    raw: Vec<u8>,
    text: Vec<u8>,
    /// Bytes of `text` that were returned.
    taken: usize,
    /// `None` before the byte order mark.
    big_endian: Option<bool>,
}

impl<R: Read> Utf16<R> {
    pub fn new(source: R) -> Self {
        Self { source, raw: Vec::new(), text: Vec::new(), taken: 0, big_endian: None }
    }

    /// Decodes another piece. False at the end.
    fn decode(&mut self) -> io::Result<bool> {
        let kept = self.raw.len();
        self.raw.resize(kept + 8192, 0);
        let read = self.source.read(&mut self.raw[kept..]);
        self.raw.truncate(kept + *read.as_ref().unwrap_or(&0));
        let eof = read? == 0;
        self.text.clear();
        self.taken = 0;
        if self.big_endian.is_none() && self.raw.len() >= 2 {
            self.big_endian = Some(self.raw[0] == 0xfe);
            self.raw.drain(..2);
        }
        let unit = match self.big_endian {
            Some(true) => u16::from_be_bytes,
            _ => u16::from_le_bytes,
        };
        let (pairs, _) = self.raw.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        if !eof && matches!(units.last(), Some(0xd800..0xdc00)) {
            units.pop();
        }
        self.raw.drain(..units.len() * 2);
        let mut bytes = [0; 4];
        for char in char::decode_utf16(units) {
            let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(char.encode_utf8(&mut bytes).as_bytes());
        }
        if eof && !self.raw.is_empty() {
            self.raw.clear();
            self.text.extend_from_slice("\u{fffd}".as_bytes());
        }
        Ok(!eof)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            if !self.decode()? && self.text.is_empty() {
                return Ok(0);
            }
        }
        let mut rest = &self.text[self.taken..];
        let read = rest.read(out)?;
        self.taken += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that returns one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = out.len().min(1);
            self.0.read(&mut out[..len])
        }
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let mut whole = String::new();
        Utf16::new(bytes).read_to_string(&mut whole).unwrap();
        assert_eq!(whole, expected);
        let mut slow = String::new();
        Utf16::new(Slow(bytes)).read_to_string(&mut slow).unwrap();
        assert_eq!(slow, expected);
    }

    #[test]
    fn both_byte_orders_are_read_in_pieces_of_any_size() {
        let text = "a\né😀\u{ffff}";
        let units: Vec<u16> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        check(&little, text);
        check(&big, text);
    }

    #[test]
    fn what_is_broken_is_replaced() {
        check(b"\xff\xfea\0b", "a\u{fffd}");
        check(b"\xff\xfe\x00\xd8a\0", "\u{fffd}a");
        check(b"\xff\xfe\x00\xd8", "\u{fffd}");
        check(b"\xff\xfe", "");
        check(b"", "");
    }
}
