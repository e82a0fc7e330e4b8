//! Decodes server-sent events, by the WHATWG HTML standard.
//!
//! An event whose only data line is complete in the current bytes is passed on without a copy. `id` and
//! `retry` are ignored, since they only serve reconnecting.
//!
//! An extension of the standard: some servers, including Google's, send an error in mid-stream as plain JSON.
//! If no event has begun, a line that starts with a brace, and all lines up to the next blank line, are the
//! data of an event.

use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// Maximum size of an event, in bytes.
pub const EVENT_LIMIT: usize = 64 << 20;

pub struct SseDecoder {
    /// An incomplete line.
    line: Vec<u8>,
    event: String,
    /// The data lines so far, joined by newlines.
    data: Vec<u8>,
    has_data: bool,
    /// True while the lines are plain JSON.
    bare: bool,
    /// True if the last byte was a CR; a following LF belongs to it.
    after_cr: bool,
    /// True before the first line ends, which may begin with a byte order mark.
    first_line: bool,
    limit: usize,
    /// The id of the last event that has one.
    pub last_id: Option<String>,
    /// The pause that the server wants before a reconnection, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// An event is larger than [`EVENT_LIMIT`].
#[derive(Debug, PartialEq)]
pub struct TooLarge;

impl SseDecoder {
    pub fn new() -> Self {
        Self::with_limit(EVENT_LIMIT)
    }

    /// `limit`: the most bytes of an event.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: String::new(),
            data: Vec::new(),
            has_data: false,
            bare: false,
            after_cr: false,
            first_line: true,
            limit,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Decodes the next bytes, and calls `each` with the name (often empty) and data of every complete event.
    /// Invalid UTF-8 becomes U+FFFD.
    pub fn feed<E: From<TooLarge>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        // The event's only data line so far, while a copy is not needed.
        let mut only = None;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let line = &rest[..end];
            let mut next = end + 1;
            if rest[end] == b'\r' {
                match rest.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            rest = &rest[next..];
            if self.line.is_empty() {
                self.take_line(line, &mut only, &mut each)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let mut data = None;
                self.take_line(&whole, &mut data, &mut each)?;
                self.keep(data);
            }
        }
        self.keep(only);
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.len() > self.limit {
            return Err(TooLarge.into());
        }
        Ok(())
    }

    /// Ends the stream. An event that only lacks its final blank line counts as complete.
    pub fn end<E: From<TooLarge>>(&mut self, each: impl FnMut(&str, &str) -> Result<(), E>) -> Result<(), E> {
        self.after_cr = false;
        self.feed(b"\n\n", each)
    }

    fn take_line<'a, E>(
        &mut self,
        mut line: &'a [u8],
        only: &mut Option<&'a [u8]>,
        each: &mut impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.bare = false;
            return self.dispatch(only.take(), each);
        }
        self.bare |= line.starts_with(b"{") && only.is_none() && !self.has_data;
        if self.bare {
            self.keep(only.take());
            self.keep(Some(line));
            return Ok(());
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" if only.is_none() && !self.has_data => *only = Some(value),
            b"data" => {
                self.keep(only.take());
                self.keep(Some(value));
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.is_empty() && !value.contains(&0) => {
                self.last_id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => self.retry_ms = str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
            _ => {} // a comment, or a field that nobody knows
        }
        Ok(())
    }

    /// Copies a data line, so that it outlives the current bytes.
    fn keep(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
    }

    /// Emits the event at a blank line. Without a data line there is no event.
    fn dispatch<E>(
        &mut self,
        only: Option<&[u8]>,
        each: &mut impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let kept = std::mem::take(&mut self.data);
        let has_kept = std::mem::take(&mut self.has_data);
        let data = only.or(has_kept.then_some(&kept));
        let result = data.map(|data| each(&self.event, &lossy(data)));
        self.event.clear();
        result.unwrap_or(Ok(()))
    }
}

/// `bytes` as text. `from_utf8_lossy` alone reads byte by byte, which most data need not.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Events = Vec<(String, String)>;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Events {
        let mut decoder = SseDecoder::new();
        let mut events = Events::new();
        let mut each = |event: &str, data: &str| {
            events.push((event.to_owned(), data.to_owned()));
            Ok::<(), TooLarge>(())
        };
        for piece in pieces {
            decoder.feed(piece, &mut each).unwrap();
        }
        decoder.end(&mut each).unwrap();
        events
    }

    /// Checks the events of `input`: whole, cut in two at every byte, and byte by byte.
    #[track_caller]
    fn check(input: impl AsRef<[u8]>, expected: &[(&str, &str)]) {
        let input = input.as_ref();
        let expected: Events =
            expected.iter().map(|(event, data)| ((*event).to_owned(), (*data).to_owned())).collect();
        for at in 0..=input.len() {
            assert_eq!(decode([&input[..at], &input[at..]]), expected, "cut at {at}");
        }
        assert_eq!(decode(input.chunks(1)), expected, "byte by byte");
    }

    #[test]
    fn line_endings() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("data: a\r\n\ndata: b\n\r", &[("", "a"), ("", "b")]);
        // One event, wherever it is cut: half of `\r\n` must not pass for a blank line.
        check("data: 1\r\ndata: 2\r\n\r\n", &[("", "1\n2")]);
    }

    #[test]
    fn fields() {
        check("data:a\n\n", &[("", "a")]);
        check("data:  a \n\n", &[("", " a ")]);
        check("data: a: b\n\n", &[("", "a: b")]);
        check("event: x\ndata: a\n\n", &[("x", "a")]);
        check("data: a\nevent:x\nevent: y\n\n", &[("y", "a")]);
        check("event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("", "b")]);
        check("id: 1\nretry: 10\nfoo: bar\nDATA: no\ndata: a\n\n", &[("", "a")]);
        check("data: a\ndata\ndata:\ndata: b\n\n", &[("", "a\n\n\nb")]);
        check("data\n\n", &[("", "")]);
        check("data: a\0b\n\n", &[("", "a\0b")]);
    }

    #[test]
    fn an_event_without_data_is_dropped() {
        check("event: x\n\ndata: a\n\n", &[("", "a")]);
        check("\n\n\r\n\r\r", &[]);
        check("", &[]);
    }

    #[test]
    fn comments_are_dropped() {
        check(": ping\n\n:\n\ndata: a\n: between\ndata: b\n\n", &[("", "a\nb")]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("\u{feff}\ndata: a\n\n", &[("", "a")]);
        check("data: \u{feff}a\n\n\u{feff}data: b\n\n", &[("", "\u{feff}a")]);
    }

    #[test]
    fn the_last_blank_line_may_be_missing() {
        check("data: a\n\ndata: b", &[("", "a"), ("", "b")]);
        check("data: a\n\ndata: b\n", &[("", "a"), ("", "b")]);
        check("data: a\r", &[("", "a")]);
        check("event: x\ndata: a\ndata: b\r\n", &[("x", "a\nb")]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        check("event: é\ndata: ü😀\n\n", &[("é", "ü😀")]);
        check(b"data: a\xffb\xc3\n\n", &[("", "a\u{fffd}b\u{fffd}")]);
        check(b"event: \xff\ndata: a\ndata: \xf0\x9f\x98\n\n", &[("\u{fffd}", "a\n\u{fffd}")]);
    }

    #[test]
    fn plain_json_in_place_of_an_event_is_one() {
        check("data: a\n\n{\"error\":1}", &[("", "a"), ("", "{\"error\":1}")]);
        check(
            "data: a\r\n\r\n{\r\n  \"data\": {\r\n\r\ndata: b\n\n",
            &[("", "a"), ("", "{\n  \"data\": {"), ("", "b")],
        );
        check("data: a\n{\"b\":1}\n\n", &[("", "a")]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error() {
        let unwanted = |_: &str, _: &str| -> Result<(), TooLarge> { panic!("an event") };
        for line in ["x", "data: x\n"] {
            let mut decoder = SseDecoder::with_limit(1000);
            let mut fed = 0;
            while decoder.feed(line.as_bytes(), unwanted).is_ok() {
                fed += line.len();
                assert!(fed < 10_000, "{line:?}");
            }
        }
        let mut decoder = SseDecoder::with_limit(1000);
        for _ in 0..10_000 {
            let taken = decoder.feed(b"data: short\n\n", |_, _| Ok::<(), TooLarge>(()));
            assert_eq!(taken, Ok(()));
        }
    }

    #[test]
    fn an_error_of_the_reader_ends_the_feed() {
        #[derive(Debug, PartialEq)]
        struct Enough;
        impl From<TooLarge> for Enough {
            fn from(_: TooLarge) -> Self {
                Self
            }
        }
        let mut seen = 0;
        let result = SseDecoder::new().feed(b"data: 1\n\ndata: 2\n\n", |_, _| {
            seen += 1;
            Err(Enough)
        });
        assert_eq!((result, seen), (Err(Enough), 1));
    }
}
