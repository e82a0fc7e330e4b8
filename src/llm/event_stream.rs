//! Decodes an AWS event stream (`application/vnd.amazon.eventstream`).
//!
//! ```text
//! | total length | headers' length | CRC of these 8 bytes | headers | payload | CRC of all before |
//! ```
//!
//! Numbers are big-endian, checksums are CRC-32. The first checksum is checked before the lengths are used. A
//! message that is complete in the current bytes is passed on without a copy.
//!
//! Each message yields a name and data, like a server-sent event: the type of an event or exception, and its
//! payload, which is JSON. An error without a type has the name `error` and an object with `code` and
//! `message`.

use crate::base::json::json;

/// Maximum size of a message, in bytes. The first byte of a stream is therefore zero, which no text begins
/// with.
pub const MESSAGE_LIMIT: usize = (1 << 24) - 1;

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

#[derive(Default)]
pub struct EventStreamDecoder {
    /// An incomplete message.
    begun: Vec<u8>,
}

/// Why a stream cannot be decoded further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A message has more than [`MESSAGE_LIMIT`] bytes.
    TooLarge,
    /// A checksum is wrong.
    Checksum,
    /// The lengths or headers of a message are invalid.
    Malformed,
    /// The stream ended inside a message.
    Cut,
}

impl EventStreamDecoder {
    /// Decodes the next bytes, and calls `each` with the name and data of every complete message.
    pub fn feed<E: From<Broken>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while !self.begun.is_empty() && !rest.is_empty() {
            let wanted = length(&self.begun)?.unwrap_or(PRELUDE);
            let missing = wanted.saturating_sub(self.begun.len()).min(rest.len());
            let (head, tail) = rest.split_at(missing);
            self.begun.extend_from_slice(head);
            rest = tail;
            if length(&self.begun)? == Some(self.begun.len()) {
                let message = std::mem::take(&mut self.begun);
                tell(&message, &mut each)?;
            }
        }
        while let Some(length) = length(rest)?
            && let Some((message, tail)) = rest.split_at_checked(length)
        {
            tell(message, &mut each)?;
            rest = tail;
        }
        self.begun.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the stream. An error if a message is incomplete.
    pub fn end(&self) -> Result<(), Broken> {
        match self.begun.is_empty() {
            true => Ok(()),
            false => Err(Broken::Cut),
        }
    }
}

/// The length of the message at the start of `bytes`; `None` if more bytes are needed.
fn length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some((prelude, _)) = bytes.split_at_checked(PRELUDE) else {
        return Ok(None);
    };
    let (lengths, checksum) = prelude.split_at(8);
    if Some(crc32fast::hash(lengths)) != number(checksum) {
        return Err(Broken::Checksum);
    }
    let total = number(lengths).map_or(0, |total| total as usize);
    let headers = number(&lengths[4..]).map_or(0, |headers| headers as usize);
    if total > MESSAGE_LIMIT {
        return Err(Broken::TooLarge);
    }
    if headers.saturating_add(PRELUDE + CHECKSUM) > total {
        return Err(Broken::Malformed);
    }
    Ok(Some(total))
}

/// The number at the beginning of `bytes`.
fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Calls `each` for a complete message. A message of unknown type is skipped.
fn tell<E: From<Broken>>(
    message: &[u8],
    each: &mut impl FnMut(&str, &str) -> Result<(), E>,
) -> Result<(), E> {
    let (content, checksum) = message.split_at(message.len().saturating_sub(CHECKSUM));
    if Some(crc32fast::hash(content)) != number(checksum) {
        return Err(Broken::Checksum.into());
    }
    let headers = content.get(4..).and_then(number);
    let body = content.get(PRELUDE..).unwrap_or_default();
    let parts = headers.and_then(|headers| body.split_at_checked(headers as usize));
    let (headers, payload) = parts.ok_or(Broken::Malformed)?;
    let headers = Headers::parse(headers)?;
    let payload = String::from_utf8_lossy(payload);
    match headers.message_type {
        Some("event") => each(headers.event_type.unwrap_or_default(), &payload),
        Some("exception") => each(headers.exception_type.unwrap_or("exception"), &payload),
        Some("error") => {
            let said = json!({"code": headers.error_code, "message": headers.error_message});
            each("error", &said.to_string())
        }
        _ => Ok(()),
    }
}

/// The headers that identify a message.
#[derive(Default)]
struct Headers<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> Headers<'a> {
    fn parse(mut bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut headers = Self::default();
        while !bytes.is_empty() {
            let (name, text, rest) = header(bytes).ok_or(Broken::Malformed)?;
            bytes = rest;
            match name {
                b":message-type" => headers.message_type = text,
                b":event-type" => headers.event_type = text,
                b":exception-type" => headers.exception_type = text,
                b":error-code" => headers.error_code = text,
                b":error-message" => headers.error_message = text,
                _ => {}
            }
        }
        Ok(headers)
    }
}

/// Splits off the first header: its name, its value if that is text, and the remaining bytes.
fn header(bytes: &[u8]) -> Option<(&[u8], Option<&str>, &[u8])> {
    const TEXT: u8 = 7;
    let (&length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(length.into())?;
    let (&kind, rest) = rest.split_first()?;
    let (length, rest) = match kind {
        0 | 1 => (0, rest), // true, false
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest), // a number, a time
        6 | TEXT => {
            let (length, rest) = rest.split_first_chunk()?;
            (u16::from_be_bytes(*length).into(), rest)
        }
        9 => (16, rest), // a UUID
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    let text = (kind == TEXT).then(|| std::str::from_utf8(value).ok());
    Some((name, text.flatten(), rest))
}

/// Encodes a message, for tests that imitate a server.
#[cfg(test)]
pub fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    frame(&head, payload.as_bytes())
}

/// Encodes an event, for tests that imitate a server.
#[cfg(test)]
pub fn event(kind: &str, payload: &str) -> Vec<u8> {
    message(&[(":event-type", kind), (":message-type", "event")], payload)
}

#[cfg(test)]
fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let mut bytes = u32::try_from(total).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Events = Vec<(String, String)>;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Events, Result<(), Broken>) {
        let mut decoder = EventStreamDecoder::default();
        let mut events = Events::new();
        let mut each = |name: &str, data: &str| {
            events.push((name.to_owned(), data.to_owned()));
            Ok::<(), Broken>(())
        };
        let mut result = Ok(());
        for piece in pieces {
            result = result.and_then(|()| decoder.feed(piece, &mut each));
        }
        (events, result.and_then(|()| decoder.end()))
    }

    /// Checks the decoded messages of `input`: whole, cut in two at every byte, and byte by byte.
    #[track_caller]
    fn check(input: &[u8], expected: &[(&str, &str)], end: Result<(), Broken>) {
        let expected = expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned()));
        let expected = (expected.collect::<Events>(), end);
        for at in 0..=input.len() {
            let (head, tail) = input.split_at(at);
            assert_eq!(decode([head, tail]), expected, "cut at {at}");
        }
        assert_eq!(decode(input.chunks(1)), expected, "byte by byte");
    }

    fn events() -> Vec<u8> {
        [event("a", "{\"x\":1}"), event("b", ""), event("c", "ü")].concat()
    }

    #[test]
    fn messages_of_each_kind() {
        check(&events(), &[("a", "{\"x\":1}"), ("b", ""), ("c", "ü")], Ok(()));
        let exception = [(":exception-type", "fooException"), (":message-type", "exception")];
        check(&message(&exception, "{}"), &[("fooException", "{}")], Ok(()));
        let error = [(":error-code", "E"), (":error-message", "m"), (":message-type", "error")];
        let said = r#"{"code":"E","message":"m"}"#;
        check(&message(&error, ""), &[("error", said)], Ok(()));
        check(&message(&[(":message-type", "news")], "{}"), &[], Ok(()));
        check(&message(&[], "{}"), &[], Ok(()));
        check(b"", &[], Ok(()));
    }

    #[test]
    fn headers_of_every_type_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, value) in [
            (0, &b""[..]),
            (1, b""),
            (2, b"1"),
            (3, b"12"),
            (4, b"1234"),
            (5, b"12345678"),
            (6, b"\0\x03abc"),
            (8, b"12345678"),
            (9, b"1234567890123456"),
        ] {
            headers.extend_from_slice(b"\x02:x");
            headers.push(kind);
            headers.extend_from_slice(value);
        }
        headers.extend_from_slice(b"\x0d:message-type\x07\0\x05event\x0b:event-type\x07\0\x01a");
        check(&frame(&headers, b"{}"), &[("a", "{}")], Ok(()));
        let unknown = frame(b"\x02:x\x0a", b"{}");
        check(&unknown, &[], Err(Broken::Malformed));
        let short = frame(b"\x02:x\x07\0\x05ab", b"{}");
        check(&short, &[], Err(Broken::Malformed));
    }

    #[test]
    fn a_stream_that_ends_inside_a_message_was_cut() {
        let whole = events();
        let first = event("a", "{\"x\":1}").len();
        for end in 1..first {
            assert_eq!(decode([&whole[..end]]), (Vec::new(), Err(Broken::Cut)), "{end}");
        }
        assert_eq!(decode([&whole[..first]]).1, Ok(()));
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let whole = event("a", "{\"x\":1}");
        for at in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            let (events, end) = decode([&damaged[..]]);
            assert_eq!((events, end), (Vec::new(), Err(Broken::Checksum)), "bit {at}");
        }
    }

    #[test]
    fn lengths_that_make_no_sense_are_refused_before_anything_is_kept() {
        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        check(&prelude(1 << 24, 0), &[], Err(Broken::TooLarge));
        check(&prelude(u32::MAX, u32::MAX), &[], Err(Broken::TooLarge));
        check(&prelude(15, 0), &[], Err(Broken::Malformed));
        check(&prelude(0, 0), &[], Err(Broken::Malformed));
        check(&prelude(20, 5), &[], Err(Broken::Malformed));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_they_are_cut(
            messages in prop::collection::vec(("[a-zA-Z]{1,20}", ".{0,200}"), 0..8),
            cuts in prop::collection::vec(1usize..64, 1..32),
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(|(n, d)| event(n, d)).collect();
            let mut rest = &bytes[..];
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, tail) = rest.split_at(rest.len().min(*cut));
                pieces.push(piece);
                rest = tail;
            }
            prop_assert_eq!(decode(pieces), (messages, Ok(())));
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), headers: Vec<u8>) {
            let _ = decode([&bytes[..]]);
            let _ = decode([&frame(&headers, &bytes)[..]]);
        }
    }
}
