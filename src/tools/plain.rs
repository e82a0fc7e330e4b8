//! Converts terminal output of a program to plain text.
//!
//! The result is UTF-8 with `\n` and `\t` as the only control characters. Escape sequences and other control
//! characters are dropped, invalid UTF-8 becomes U+FFFD, a line restarted by a carriage return keeps only its
//! last state, and a backspace removes one character. Input may be split anywhere. A newline is always kept,
//! so that an unfinished sequence loses at most the rest of its line.
//!
//! Text without control characters passes at the speed of UTF-8 validation.

/// Receives the text.
pub trait Sink {
    /// Never empty; no control characters but `\n` and `\t`.
    fn text(&mut self, text: &str);
    /// Clears the current line.
    fn restart_line(&mut self);
    /// Removes the last character of the current line.
    fn back(&mut self);
}

#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
    /// An incomplete character at the end of the input so far.
    partial: Partial,
    /// True after a carriage return; text other than a newline then restarts the line.
    returned: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and intermediates: one final byte follows.
    Intermediate,
    /// After `ESC [`: parameters, then a final byte follow.
    Control,
    /// A string for the terminal (title, link, clipboard, picture), up to BEL or `ESC \`.
    String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    bytes: [u8; 4],
    len: usize,
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
/// First byte of U+0080 to U+00BF, which include the C1 control characters up to U+009F.
const C1_LEAD: u8 = 0xc2;

impl Decoder {
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while let Some(&first) = bytes.first() {
            let used = match self.state {
                State::Ground if self.partial.len > 0 => self.complete(bytes, sink),
                State::Ground => self.ground(bytes, sink),
                State::Escape => self.escape(first),
                State::Intermediate => self.intermediate(first),
                State::Control => self.control(first),
                State::String => self.string(bytes),
            };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    /// Ends the input: an incomplete character is invalid.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        if std::mem::take(&mut self.partial).len > 0 {
            self.emit(REPLACEMENT, sink);
        }
    }

    /// Consumes text up to the next control character, or one control character.
    fn ground(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let end = next_control(bytes);
        if end > 0 {
            self.text(&bytes[..end], end == bytes.len(), sink);
            return end;
        }
        match bytes[0] {
            ESC => self.state = State::Escape,
            b'\r' => self.returned = true,
            BACKSPACE if !self.returned => sink.back(),
            BACKSPACE => {}
            _ => {
                return bytes.iter().take_while(|&&byte| is_meaningless(byte)).count();
            }
        }
        1
    }

    fn text(&mut self, mut bytes: &[u8], at_end: bool, sink: &mut impl Sink) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => return self.emit(text, sink),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.emit(std::str::from_utf8(valid).unwrap_or_default(), sink);
            match error.error_len() {
                None if at_end => return self.partial.set(rest),
                length => {
                    self.emit(REPLACEMENT, sink);
                    bytes = &rest[length.unwrap_or(rest.len())..];
                }
            }
        }
    }

    /// Adds a byte to the incomplete character; consumes none if it does not belong to it.
    fn complete(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let mut longer = self.partial;
        longer.add(bytes[0]);
        match std::str::from_utf8(longer.get()) {
            Ok(text) => {
                self.partial = Partial::default();
                self.emit(text, sink);
                1
            }
            Err(error) if error.error_len().is_none() => {
                self.partial = longer;
                1
            }
            Err(_) => {
                self.partial = Partial::default();
                self.emit(REPLACEMENT, sink);
                0
            }
        }
    }

    fn emit(&mut self, text: &str, sink: &mut impl Sink) {
        if memchr::memchr(C1_LEAD, text.as_bytes()).is_none() {
            self.send(text, sink);
        } else {
            for part in text.split(|char| matches!(char, '\u{80}'..='\u{9f}')) {
                self.send(part, sink);
            }
        }
    }

    fn send(&mut self, text: &str, sink: &mut impl Sink) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.returned) && !text.starts_with('\n') {
            sink.restart_line();
        }
        sink.text(text);
    }

    fn escape(&mut self, byte: u8) -> usize {
        self.state = match byte {
            b'[' => State::Control,
            b']' | b'P' | b'X' | b'^' | b'_' => State::String,
            b' '..=b'/' => State::Intermediate,
            ESC => State::Escape,
            b'0'..=b'~' => State::Ground,
            _ => return self.give_up(byte),
        };
        1
    }

    fn intermediate(&mut self, byte: u8) -> usize {
        match byte {
            b' '..=b'/' => {}
            b'0'..=b'~' => self.state = State::Ground,
            _ => return self.give_up(byte),
        }
        1
    }

    fn control(&mut self, byte: u8) -> usize {
        match byte {
            b' '..=b'?' => {}
            b'@'..=b'~' => self.state = State::Ground,
            _ => return self.give_up(byte),
        }
        1
    }

    fn string(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| matches!(byte, &BEL | &ESC | &CANCEL | &SUBSTITUTE | b'\n'));
        let Some(end) = end else {
            return bytes.len();
        };
        // ESC begins `ESC \`, or another sequence that ends this one.
        self.state = match bytes[end] {
            ESC => State::Escape,
            _ => State::Ground,
        };
        end + usize::from(bytes[end] != b'\n')
    }

    /// Ends a sequence at an invalid byte, which is consumed only if it has no other meaning.
    fn give_up(&mut self, byte: u8) -> usize {
        self.state = State::Ground;
        usize::from(matches!(byte, CANCEL | SUBSTITUTE))
    }
}

const REPLACEMENT: &str = "\u{fffd}";

impl Partial {
    /// Sets the start of one character: at most three bytes.
    fn set(&mut self, bytes: &[u8]) {
        *self = Self::default();
        for &byte in bytes {
            self.add(byte);
        }
    }

    fn add(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
            self.len += 1;
        }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Position of the first control character other than `\n` and `\t`, or the length.
fn next_control(bytes: &[u8]) -> usize {
    let word = |bytes: &[u8; 8]| controls(u64::from_ne_bytes(*bytes));
    let (blocks, _) = bytes.as_chunks::<32>();
    let clean = blocks.iter().take_while(|block| {
        let (words, _) = block.as_chunks::<8>();
        words.iter().fold(0, |found, bytes| found | word(bytes)) == 0
    });
    let start = clean.count() * 32;
    let rest = &bytes[start..];
    start + rest.iter().position(|&byte| is_control(byte)).unwrap_or(rest.len())
}

/// The high bit of each of eight bytes for which [`is_control`] holds. No sum here carries into the next byte:
/// the high bits are cleared before.
fn controls(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 0x7f;
    let is_from_space = ((word & LOW) + ONES * 0x60) | word;
    let differs = |from: u8| {
        let other = word ^ (ONES * u64::from(from));
        ((other & LOW) + LOW) | other
    };
    let is_low = !is_from_space & differs(b'\n') & differs(b'\t');
    (is_low | !differs(0x7f)) & !LOW
}

fn is_control(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f)
}

/// True for a control character that is always dropped.
fn is_meaningless(byte: u8) -> bool {
    is_control(byte) & (byte != ESC) & (byte != b'\r') & (byte != BACKSPACE)
}

/// Converts `bytes` to plain text in one step.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut decoder = Decoder::default();
    decoder.push(bytes, &mut text);
    decoder.finish(&mut text);
    text
}

impl Sink for String {
    fn text(&mut self, text: &str) {
        self.push_str(text);
    }

    fn restart_line(&mut self) {
        self.truncate(self.rfind('\n').map_or(0, |at| at + 1));
    }

    fn back(&mut self) {
        if !self.ends_with('\n') {
            self.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks the text of `input`, whole and split in two at every byte.
    #[track_caller]
    fn check(input: impl AsRef<[u8]>, expected: &str) {
        let input = input.as_ref();
        for cut in 0..=input.len() {
            let (mut text, mut decoder) = (String::new(), Decoder::default());
            decoder.push(&input[..cut], &mut text);
            decoder.push(&input[cut..], &mut text);
            decoder.finish(&mut text);
            assert_eq!(text, expected, "cut at {cut}");
        }
    }

    #[test]
    fn text_passes() {
        check("", "");
        check("a\tb\n\nc", "a\tb\n\nc");
        check("grün 語 😀 ° \u{a0}é", "grün 語 😀 ° \u{a0}é");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        check(b"a\xffb", "a\u{fffd}b");
        check(b"\xe8\xaa", "\u{fffd}");
        check(b"\xe8\xaa\n", "\u{fffd}\n");
        check(b"\xe8\xaa\x1b[m\x9e", "\u{fffd}\u{fffd}");
        check(b"\xf0\x9f\x98\xf0\x9f\x98\x80", "\u{fffd}😀");
        check(b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\xc2", "\u{fffd}");
    }

    #[test]
    fn sequences_are_dropped() {
        check("\x1b[1;31mred\x1b[0m", "red");
        check("\x1b[?25l\x1b[2J\x1b(Bx\x1b7\x1b=y", "xy");
        check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab");
        check("\x1bP1;2q#0\x1b\\c\x1b_app\x1b\\d\x1b^pm\x1b\\e\x1bXsos\x1b\\f", "cdef");
        check("\x1b]52;c;aGk=\x1b[31mx", "x");
        check("\x1b\x1b[mx", "x");
        check("\x1b[3\x18mx", "mx");
        check("a\u{9b}31mb\u{85}c\u{80}", "a31mbc");
    }

    #[test]
    fn an_unfinished_sequence_costs_at_most_its_line() {
        check("\x1b]0;open\nnext", "\nnext");
        check("\x1b[12\nnext", "\nnext");
        check("\x1b\nnext", "\nnext");
        check("a\x1b[", "a");
        check("\x1b[1é", "é");
    }

    #[test]
    fn other_control_characters_are_dropped() {
        check("a\0b\x07c\x0bd\x0ce\x7ff\x0e\x0fg", "abcdefg");
    }

    #[test]
    fn a_line_that_is_started_again_keeps_its_last_state() {
        check("10%\r20%\r100%\ndone", "100%\ndone");
        check("one\r\ntwo\r\r\nthree\r", "one\ntwo\nthree");
        check("keep\nold\r\x1b[Knew", "keep\nnew");
        check("50%\r\u{80}", "50%");
    }

    #[test]
    fn a_backspace_takes_one_character_back() {
        check("|\x08/\x08é\x08-", "-");
        check("B\x08Bo\x08o", "Bo");
        check("a\n\x08\x08b", "a\nb");
        check("ab\r\x08c", "c");
    }

    #[test]
    fn a_control_character_is_found_at_any_place() {
        for at in 0..200 {
            let mut bytes = vec![b'x'; 200];
            bytes[at] = 0;
            assert_eq!(next_control(&bytes), at);
        }
        assert_eq!(next_control(&[b'\n'; 200]), 200);
    }

    proptest! {
        #[test]
        fn the_first_control_character_is_found(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut bytes = bytes;
            while !bytes.is_empty() {
                let first = bytes.iter().position(|&byte| is_control(byte)).unwrap_or(bytes.len());
                prop_assert_eq!(next_control(&bytes), first);
                bytes.drain(..bytes.len().min(first + 1));
            }
        }

        #[test]
        fn any_bytes_in_any_pieces_give_the_same_plain_text(
            pieces in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![
                        any::<u8>(),
                        prop::sample::select(b"\x1b\x1b[]P\\;?mA\r\n\x08\x07\xc2\x9b\xe2\x82\xac\xf0".as_slice()),
                    ],
                    0..12,
                ),
                0..8,
            )
        ) {
            let (mut whole, mut decoder) = (String::new(), Decoder::default());
            for piece in &pieces {
                decoder.push(piece, &mut whole);
            }
            decoder.finish(&mut whole);
            let bytes = pieces.concat();
            prop_assert_eq!(&whole, &text(&bytes));
            prop_assert!(whole.chars().all(|char| !char.is_control() || matches!(char, '\n' | '\t')));
            let newlines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(newlines(whole.as_bytes()), newlines(&bytes));
        }
    }
}
