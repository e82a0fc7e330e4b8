//! Detects text and its encoding in the bytes of a file.
//!
//! Most files are UTF-8. UTF-16 is recognised by its byte order mark or by the zeros of its ASCII letters,
//! and other single-byte text is decoded as Windows-1252 (Latin-1 with quotes and dashes). Both decode
//! without loss: an edit of one line leaves all others unchanged.

use std::borrow::Cow;

/// Bytes at the start that are examined.
pub const SNIFF_BYTES: usize = 64 * 1024;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, possibly with invalid bytes.
    Utf8,
    Utf16Le,
    Utf16Be,
    /// Windows-1252, with a distinct letter for every byte.
    Latin1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Encoding, and length of the byte order mark.
    Text(Encoding, usize),
    Binary,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Latin1 => "Latin-1 (Windows-1252)",
        }
    }

    /// The bytes of `text`, or the first character that the encoding lacks.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Latin1 => text.chars().map(latin1_byte).collect(),
        }
    }

    /// The text of `bytes`; `None` if encoding it again would not restore the bytes.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        if self == Self::Utf8 {
            return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        }
        let mut text = String::with_capacity(bytes.len());
        let mut decoder = Decoder::new(self);
        decoder.feed(bytes, &mut text);
        decoder.finish(&mut text);
        (self.encode(&text).as_deref() == Ok(bytes)).then_some(Cow::Owned(text))
    }
}

/// Classifies a file by its first bytes: up to [`SNIFF_BYTES`], or all of them.
pub fn sniff(head: &[u8]) -> Content {
    match head {
        [0xff, 0xfe, 0, 0, ..] => return Content::Binary,
        [0xff, 0xfe, ..] => return Content::Text(Encoding::Utf16Le, 2),
        [0xfe, 0xff, ..] => return Content::Text(Encoding::Utf16Be, 2),
        _ if head.starts_with(UTF8_BOM) => return Content::Text(Encoding::Utf8, UTF8_BOM.len()),
        _ => {}
    }
    if memchr::memchr(0, head).is_some() {
        return match utf16_without_mark(head) {
            Some(encoding) => Content::Text(encoding, 0),
            None => Content::Binary,
        };
    }
    let (mut letters, mut broken) = (0, 0);
    for chunk in head.utf8_chunks() {
        letters += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    // The last character may be cut by the end of the head.
    if broken == 0 || (broken == 1 && head.len() >= SNIFF_BYTES) || letters >= broken {
        return Content::Text(Encoding::Utf8, 0);
    }
    let control = |byte: &&u8| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127);
    if head.iter().filter(control).count() * 20 > head.len() {
        return Content::Binary;
    }
    Content::Text(Encoding::Latin1, 0)
}

/// Detects UTF-16 without a mark: ASCII has a zero in every second byte, and none in the others.
fn utf16_without_mark(head: &[u8]) -> Option<Encoding> {
    let (pairs, []) = head.as_chunks::<2>() else {
        return None;
    };
    let zeros = |side: usize| pairs.iter().filter(|pair| pair[side] == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    if pairs.len() < 2 {
        return None;
    }
    let encoding = match (first, second) {
        (0, _) if second * 2 > pairs.len() => Encoding::Utf16Le,
        (_, 0) if first * 2 > pairs.len() => Encoding::Utf16Be,
        _ => return None,
    };
    let text = encoding.decode(pairs.as_flattened())?;
    let plain = |char: char| !char.is_control() || char.is_ascii_whitespace();
    text.chars().all(plain).then_some(encoding)
}

/// Decodes bytes that arrive in pieces. Invalid bytes become U+FFFD.
pub struct Decoder {
    encoding: Encoding,
    /// An incomplete character at the end of the bytes so far.
    pending: Vec<u8>,
}

impl Decoder {
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, pending: Vec::new() }
    }

    pub fn feed(&mut self, bytes: &[u8], out: &mut String) {
        if self.pending.is_empty() {
            let rest = self.decode(bytes, out);
            self.pending.extend_from_slice(rest);
        } else {
            self.pending.extend_from_slice(bytes);
            let pending = std::mem::take(&mut self.pending);
            let rest = self.decode(&pending, out);
            self.pending = rest.to_vec();
        }
    }

    /// Ends the input: an incomplete character is invalid.
    pub fn finish(&mut self, out: &mut String) {
        if !self.pending.is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
    }

    /// Decodes complete characters; returns the bytes of an incomplete one.
    fn decode<'a>(&self, bytes: &'a [u8], out: &mut String) -> &'a [u8] {
        match self.encoding {
            Encoding::Utf8 => decode_utf8(bytes, out),
            Encoding::Utf16Le => decode_utf16(bytes, u16::from_le_bytes, out),
            Encoding::Utf16Be => decode_utf16(bytes, u16::from_be_bytes, out),
            Encoding::Latin1 => {
                out.extend(bytes.iter().map(|&byte| latin1_char(byte)));
                &[]
            }
        }
    }
}

fn decode_utf8<'a>(mut bytes: &'a [u8], out: &mut String) -> &'a [u8] {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.push_str(text);
                return &[];
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                out.push_str(std::str::from_utf8(valid).unwrap_or_default());
                let Some(broken) = error.error_len() else {
                    return rest;
                };
                out.push(char::REPLACEMENT_CHARACTER);
                bytes = rest.get(broken..).unwrap_or_default();
            }
        }
    }
}

fn decode_utf16<'a>(bytes: &'a [u8], unit: fn([u8; 2]) -> u16, out: &mut String) -> &'a [u8] {
    let (pairs, _) = bytes.as_chunks::<2>();
    let high = |pair: &[u8; 2]| matches!(unit(*pair), 0xd800..=0xdbff);
    // The second half of a pair of surrogates may still come.
    let whole = pairs.len() - usize::from(pairs.last().is_some_and(high));
    let units = pairs.iter().take(whole).map(|pair| unit(*pair));
    out.extend(char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)));
    bytes.get(whole * 2..).unwrap_or_default()
}

/// The letters of bytes 0x80 to 0x9f; undefined bytes map to themselves.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn latin1_char(byte: u8) -> char {
    let special = usize::from(byte).checked_sub(0x80);
    let special = special.and_then(|at| WINDOWS_1252.get(at));
    special.copied().unwrap_or(char::from(byte))
}

fn latin1_byte(char: char) -> Result<u8, char> {
    let special = WINDOWS_1252.iter().position(|&known| known == char);
    let code = special.map_or(char as u32, |at| 0x80 + at as u32);
    match u8::try_from(code) {
        Ok(byte) if latin1_char(byte) == char => Ok(byte),
        _ => Err(char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_bytes_tell_what_a_file_is() {
        let text = |encoding, mark| Content::Text(encoding, mark);
        let utf16: Vec<u8> = "héllo, wörld\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16_be: Vec<u8> = "hello\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let cut_in_a_letter = [vec![b'a'; SNIFF_BYTES - 1], vec![0xc3]].concat();
        for (bytes, expected) in [
            (&b""[..], text(Encoding::Utf8, 0)),
            (b"plain \x1b[1mtext\n", text(Encoding::Utf8, 0)),
            ("é 漢 😀".as_bytes(), text(Encoding::Utf8, 0)),
            (b"\xef\xbb\xbfmarked", text(Encoding::Utf8, 3)),
            (&cut_in_a_letter, text(Encoding::Utf8, 0)),
            ("é é \u{e9}".as_bytes(), text(Encoding::Utf8, 0)),
            (b"damaged \xc3\xa9\xc3\xa9 here \xff", text(Encoding::Utf8, 0)),
            (b"caf\xe9 \x93quoted\x94\n", text(Encoding::Latin1, 0)),
            (b"\xff\xfeh\0i\0", text(Encoding::Utf16Le, 2)),
            (b"\xfe\xff\0h\0i", text(Encoding::Utf16Be, 2)),
            (&utf16, text(Encoding::Utf16Le, 0)),
            (&utf16_be, text(Encoding::Utf16Be, 0)),
            (b"\xff\xfe\0\0h\0\0\0", Content::Binary),
            (b"text with a \0 in it", Content::Binary),
            (b"\0\0\0\0", Content::Binary),
            (b"\x01\xf0\x02\xf1\x03\xf2", Content::Binary),
        ] {
            assert_eq!(sniff(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn every_byte_of_latin_1_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = Encoding::Latin1.decode(&all).unwrap();
        assert_eq!(Encoding::Latin1.encode(&text), Ok(all));
        assert_eq!(Encoding::Latin1.encode("naïve €"), Ok(b"na\xefve \x80".to_vec()));
        assert_eq!(Encoding::Latin1.encode("漢"), Err('漢'));
        assert_eq!(Encoding::Latin1.encode("\u{80}"), Err('\u{80}'));
    }

    #[test]
    fn text_that_would_not_come_back_is_not_decoded() {
        assert_eq!(Encoding::Utf8.decode(b"\xff"), None);
        assert_eq!(Encoding::Utf16Le.decode(b"a\0b"), None);
        assert_eq!(Encoding::Utf16Le.decode(b"\x00\xd8a\0"), None);
        assert_eq!(Encoding::Utf16Be.decode(b"\xd8\x3d\xde\x00").as_deref(), Some("😀"));
    }

    proptest! {
        #[test]
        fn pieces_decode_like_the_whole(bytes: Vec<u8>, cut: prop::sample::Index) {
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be, Encoding::Latin1] {
                let decode = |pieces: &[&[u8]]| {
                    let (mut decoder, mut text) = (Decoder::new(encoding), String::new());
                    pieces.iter().for_each(|piece| decoder.feed(piece, &mut text));
                    decoder.finish(&mut text);
                    text
                };
                let whole = decode(&[&bytes]);
                let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
                prop_assert_eq!(&decode(&[left, right]), &whole);
                if encoding == Encoding::Utf8 {
                    prop_assert_eq!(&whole, &String::from_utf8_lossy(&bytes));
                }
                if let Some(text) = encoding.decode(&bytes) {
                    prop_assert_eq!(encoding.encode(&text), Ok(bytes.clone()));
                }
            }
        }

        #[test]
        fn sniffing_takes_any_bytes(bytes: Vec<u8>) {
            sniff(&bytes);
        }
    }
}
