//! Reads JSON lines of other programs, such as JavaScript ones.
//!
//! A JavaScript string may contain a lone surrogate, which `JSON.stringify` writes as an escape that names no
//! character. It is replaced by U+FFFD.

use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Parses one line of JSON. Content that JavaScript accepts is repaired: bytes that are not UTF-8, and
/// escapes of lone surrogates.
pub fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, serde_json::Error> {
    // Text is all that is parsed: bytes would be a second source of `T`, with code of its own.
    let text = match str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    };
    serde_json::from_str(&text).or_else(|error| match repair(&text) {
        Some(repaired) => serde_json::from_str(&repaired),
        None => Err(error),
    })
}

/// The line with U+FFFD for invalid escapes; `None` if there are none.
fn repair(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let unit = |text: &str| u32::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok();
        let low = || unit(escape.get(5..)?.strip_prefix('\\')?);
        let (taken, lone) = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(low(), Some(0xdc00..=0xdfff)) => (11, false),
            Some(0xd800..=0xdfff) => (5, true),
            _ => (escape.chars().next().map_or(0, char::len_utf8), false),
        };
        let (taken, after) = escape.split_at_checked(taken)?;
        out.push('\\');
        out.push_str(if lone { "ufffd" } else { taken });
        rest = after;
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_are_not_quite_strings_are_read() {
        let rows: &[(&[u8], &str)] = &[
            (br#""a\ud83d\ude00b""#, "a\u{1f600}b"),
            (br#""a\ud83db""#, "a\u{fffd}b"),
            (br#""a\ud83d\ud83d\ude00""#, "a\u{fffd}\u{1f600}"),
            (br#""\ude00\u0041\\ud83d""#, "\u{fffd}A\\ud83d"),
            (br#""\ud83d""#, "\u{fffd}"),
            (b"\"a\xff\xc3\"", "a\u{fffd}\u{fffd}"),
            ("\"\u{2028}\u{2029}\u{85}\"".as_bytes(), "\u{2028}\u{2029}\u{85}"),
        ];
        for (line, text) in rows {
            assert_eq!(read::<String>(line).unwrap(), *text);
        }
        for line in [&br#""\"#[..], br#""\ud8"#, br#""\ud83d\u""#, b"\"\xff", b"\\\xc3\xa4"] {
            assert!(read::<String>(line).is_err());
        }
    }
}
