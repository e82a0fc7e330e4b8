//! Decodes the bytes of a terminal into keys, pastes and replies.
//!
//! Input may be split at any byte. Unknown sequences are dropped completely: no part of one is ever typed. A
//! lone Escape cannot be told from the beginning of a sequence until some time has passed: the caller checks
//! [`Decoder::is_waiting`], and calls [`Decoder::time_out`] if no bytes follow.
//!
//! ```text
//!            ESC            [              final byte
//!  Ground ────────> Escape ───> Control ──────────────> Ground
//!    │                │ O           │ 200~
//!    │ UTF-8          ├──> Shift    └──────> Paste ──(ESC [ 201 ~)──> Ground
//!    └─> a key        └ ] P _ ^ X ──> String ──(BEL, ESC \)──> Ground
//! ```

mod sequence;

use super::key::{Action, Code, Input, Key, Modifiers, Reply};
use memchr::memmem;
use sequence::{
    Parameters, ascii_key, color_reply, is_tilde_key, letter_key, mouse, rxvt_letter_key, tilde_key,
    unicode_code,
};

/// Maximum bytes of a paste; the rest is dropped.
const PASTE_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of a sequence; the rest is ignored.
const SEQUENCE_BYTES_MAX: usize = 4096;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// The sequence so far, without its introducer; or the paste; or the first bytes of a character.
    held: Vec<u8>,
    /// True if an Escape preceded the sequence: the key has Alt.
    alt: bool,
    /// The character typed by the last CSI-u sequence: some terminals also send it as a plain character.
    doubled: Option<char>,
    /// Number of unanswered cursor position queries. A reply looks like a function key.
    positions: usize,
    /// True if the terminal supports the Kitty protocol, by its last reply.
    speaks_kitty: bool,
    /// True if the terminal replied about the Kitty protocol, but not yet to the attributes query that
    /// follows.
    has_told: bool,
    /// True if `0x08` is Ctrl with Backspace instead of Backspace.
    sends_ctrl_backspace: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Character {
        missing: u8,
    },
    Escape,
    Control,
    /// After `ESC [ M`: three bytes of an old mouse report, which are dropped.
    OldMouse {
        missing: u8,
    },
    /// After `ESC [ [`: a function key of the Linux console.
    Console,
    Shift,
    String {
        kind: u8,
        /// True after an Escape, which may begin the end of the string.
        ending: bool,
    },
    Paste,
}

impl Decoder {
    /// `sends_ctrl_backspace`: the terminal sends `0x08` for Ctrl with Backspace, not for Backspace.
    pub fn new(sends_ctrl_backspace: bool) -> Self {
        Self { sends_ctrl_backspace, ..Self::default() }
    }

    /// Decodes bytes; the inputs are appended to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.state == State::Paste {
                rest = self.paste(rest, out);
                continue;
            }
            rest = after;
            self.step(byte, out);
        }
    }

    /// Records that the terminal was asked for the cursor position.
    pub fn await_position(&mut self) {
        self.positions += 1;
    }

    /// True if further bytes could change the meaning of the last ones, so that a timeout decides.
    pub fn is_waiting(&self) -> bool {
        match self.state {
            State::Escape | State::Control | State::Shift | State::Console => true,
            State::Ground => self.alt,
            _ => false,
        }
    }

    /// Ends a wait without further bytes: an Escape was the key, and a begun sequence was keys with Alt.
    pub fn time_out(&mut self, out: &mut Vec<Input>) {
        let alt = std::mem::take(&mut self.alt);
        let begun = match std::mem::take(&mut self.state) {
            State::Escape if alt => {
                Some(Key { is_ambiguous: true, ..Key::new(Code::Escape, Modifiers::ALT) })
            }
            State::Escape => Some(Key::plain(Code::Escape)),
            State::Control if self.held.is_empty() => Some(Key::new(Code::Char('['), Modifiers::ALT)),
            State::Shift => Some(Key::new(Code::Char('o'), Modifiers::ALT | Modifiers::SHIFT)),
            _ => None,
        };
        self.held.clear();
        out.extend(begun.map(Input::Key));
    }

    fn step(&mut self, byte: u8, out: &mut Vec<Input>) {
        let (alt, before) = (self.alt, out.len());
        match self.state {
            State::Ground => self.ground(byte, out),
            State::Character { missing } => self.character(byte, missing, out),
            State::Escape => self.escape(byte, out),
            State::Control => self.control(byte, out),
            State::OldMouse { missing } => match missing {
                0 | 1 => self.finish(),
                _ => self.state = State::OldMouse { missing: missing - 1 },
            },
            // `ESC [ [ 5 ~` is another way to write `ESC [ 5 ~`.
            State::Console if byte.is_ascii_digit() => {
                self.held.push(byte);
                self.state = State::Control;
            }
            State::Console => {
                if let b'A'..=b'E' = byte {
                    self.key(Code::Function(byte - b'A' + 1), Modifiers::NONE, out);
                }
                self.finish();
            }
            State::Shift => {
                if let Some(code) = letter_key(byte) {
                    self.key(code, Modifiers::NONE, out);
                } else if let Some(code) = rxvt_letter_key(byte) {
                    self.key(code, Modifiers::CTRL, out);
                } else if let b'M' = byte {
                    self.key(Code::Enter, Modifiers::NONE, out);
                } else if let b'j'..=b'y' = byte {
                    // The number pad: `*+,-./0123456789`.
                    self.key(Code::Char(char::from(byte - 0x40)), Modifiers::NONE, out);
                }
                self.finish();
            }
            State::String { kind, ending } => self.string(byte, kind, ending, out),
            State::Paste => {}
        }
        // An answer carries no Alt, nor does a key that is let go: the Escape before it was a key of its own.
        let answered = out.get(before).is_some_and(|input| match input {
            Input::Key(key) => key.action == Action::Release,
            _ => true,
        });
        if alt && (answered || self.state == State::Paste) {
            out.insert(before, Input::Key(Key::plain(Code::Escape)));
            self.alt = false;
        }
    }

    fn finish(&mut self) {
        self.state = State::Ground;
        self.held.clear();
        self.alt = false;
    }

    /// Emits the key of a sequence; with Alt if an Escape preceded it.
    fn key(&mut self, code: Code, modifiers: Modifiers, out: &mut Vec<Input>) {
        let alt = if self.alt { Modifiers::ALT } else { Modifiers::NONE };
        out.push(Input::Key(Key::new(code, modifiers | alt)));
    }

    /// Emits a key that is one byte; with Alt if an Escape preceded it.
    fn ascii_key(&mut self, byte: u8, out: &mut Vec<Input>) {
        let (code, modifiers) = match byte {
            0x08 if self.sends_ctrl_backspace => (Code::Backspace, Modifiers::CTRL),
            // The Kitty protocol has sequences for Alt with Enter and for Ctrl with `j`: users map Shift with
            // Enter to these bytes.
            b'\r' if self.alt && self.speaks_kitty => {
                self.alt = false;
                (Code::Enter, Modifiers::SHIFT)
            }
            b'\n' if !self.alt && self.speaks_kitty => (Code::Enter, Modifiers::SHIFT),
            _ => ascii_key(byte),
        };
        let alt = if self.alt { Modifiers::ALT } else { Modifiers::NONE };
        let is_ambiguous = matches!(byte, 0x08 | 0x1f);
        out.push(Input::Key(Key { is_ambiguous, ..Key::new(code, modifiers | alt) }));
    }

    fn ground(&mut self, byte: u8, out: &mut Vec<Input>) {
        match byte {
            ESC => self.state = State::Escape,
            0x80.. => {
                let missing = match byte {
                    0xc2..=0xdf => 1,
                    0xe0..=0xef => 2,
                    0xf0..=0xf4 => 3,
                    // No character begins so.
                    _ => return self.finish(),
                };
                self.held.push(byte);
                self.state = State::Character { missing };
            }
            _ => {
                let doubled = self.doubled.take();
                if doubled.is_none_or(|letter| letter != char::from(byte)) {
                    self.ascii_key(byte, out);
                }
                self.finish();
            }
        }
    }

    fn character(&mut self, byte: u8, missing: u8, out: &mut Vec<Input>) {
        if byte & 0xc0 != 0x80 {
            // The character was cut; this byte begins something else.
            self.finish();
            return self.ground(byte, out);
        }
        self.held.push(byte);
        if missing > 1 {
            self.state = State::Character { missing: missing - 1 };
            return;
        }
        let letter = str::from_utf8(&self.held).ok().and_then(|text| text.chars().next());
        let doubled = self.doubled.take();
        if let Some(letter) = letter.filter(|&letter| Some(letter) != doubled)
            && !letter.is_control()
        {
            self.key(Code::Char(letter), Modifiers::NONE, out);
        }
        self.finish();
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<Input>) {
        match byte {
            // Two Escapes: the first was a key of its own, or makes what follows an Alt.
            ESC if self.alt => {
                out.push(Input::Key(Key::plain(Code::Escape)));
            }
            ESC => self.alt = true,
            b'[' => self.state = State::Control,
            b'O' => self.state = State::Shift,
            b']' | b'P' | b'_' | b'^' | b'X' => {
                self.state = State::String { kind: byte, ending: false };
            }
            _ => {
                if self.alt {
                    out.push(Input::Key(Key::plain(Code::Escape)));
                }
                self.alt = true;
                self.state = State::Ground;
                self.doubled = None;
                self.ground(byte, out);
            }
        }
    }

    fn control(&mut self, byte: u8, out: &mut Vec<Input>) {
        match byte {
            b'[' if self.held.is_empty() => self.state = State::Console,
            b'M' if self.held.is_empty() => self.state = State::OldMouse { missing: 3 },
            // rxvt ends a sequence with what elsewhere is in the middle of one.
            b'$' if is_tilde_key(&self.held) => self.end_control(byte, out),
            0x20..=0x3f if self.held.len() < SEQUENCE_BYTES_MAX => self.held.push(byte),
            0x40..=0x7e => self.end_control(byte, out),
            ESC => {
                self.finish();
                self.state = State::Escape;
            }
            // Other control characters inside of a sequence are noise of the line.
            _ => {}
        }
    }

    fn end_control(&mut self, last: u8, out: &mut Vec<Input>) {
        let held = std::mem::take(&mut self.held);
        self.sequence(&held, last, out);
        if self.state == State::Control {
            self.finish();
        }
    }

    /// Handles a complete control sequence: its parameters, and its final byte.
    fn sequence(&mut self, held: &[u8], last: u8, out: &mut Vec<Input>) {
        let (marker, parameters) = match held.split_first() {
            Some((&marker @ b'<'..=b'?', rest)) => (Some(marker), rest),
            _ => (None, held),
        };
        let parameters = Parameters::parse(parameters);
        let modifiers = Modifiers::of_sequence(parameters.get(1).unwrap_or(1));
        let action = match parameters.sub(1, 1) {
            Some(2) => Action::Repeat,
            Some(3) => Action::Release,
            _ => Action::Press,
        };
        match (marker, last) {
            (None, b'u') => self.unicode_key(&parameters, modifiers, action, out),
            (None, b'~') => match parameters.get(0) {
                Some(200) => {
                    self.held.clear();
                    self.alt = false;
                    self.state = State::Paste;
                }
                // xterm's modifyOtherKeys.
                Some(27) => {
                    if let Some(code) = parameters.get(2).and_then(unicode_code) {
                        self.send(code, modifiers, action, out);
                    }
                }
                number => {
                    if let Some(code) = number.and_then(tilde_key) {
                        self.send(code, modifiers, action, out);
                    }
                }
            },
            (None, b'$' | b'^' | b'@') => {
                let modifiers = match last {
                    b'$' => Modifiers::SHIFT,
                    b'^' => Modifiers::CTRL,
                    _ => Modifiers::CTRL | Modifiers::SHIFT,
                };
                if let Some(code) = parameters.get(0).and_then(tilde_key) {
                    self.send(code, modifiers, action, out);
                }
            }
            (None, b'Z') => self.send(Code::Tab, Modifiers::SHIFT, action, out),
            (None, b'I') => out.push(Input::Focus(true)),
            (None, b'O') => out.push(Input::Focus(false)),
            (None, b't') if parameters.get(0) == Some(6) => {
                if let (Some(height), Some(width)) = (parameters.get(1), parameters.get(2)) {
                    out.push(Input::Reply(Reply::Cell { width, height }));
                }
            }
            // A report of the cursor's place, but for F3.
            (None, b'R') if self.positions > 0 => {
                self.positions -= 1;
                let from_one = |index| {
                    let number = parameters.get(index).unwrap_or(1);
                    usize::try_from(number).unwrap_or(1).saturating_sub(1)
                };
                out.push(Input::Reply(Reply::Position { row: from_one(0), column: from_one(1) }));
            }
            (None, b'R') if parameters.get(0).is_some_and(|row| row != 1) => {}
            (None, _) => {
                if let Some(code) = letter_key(last) {
                    self.send(code, modifiers, action, out);
                } else if let Some(code) = rxvt_letter_key(last) {
                    self.send(code, modifiers | Modifiers::SHIFT, action, out);
                }
            }
            (Some(b'<'), b'M' | b'm') => out.extend(mouse(&parameters, last).map(Input::Mouse)),
            (Some(b'?'), b'u') => {
                let flags = parameters.get(0).unwrap_or(0);
                (self.speaks_kitty, self.has_told) = (flags != 0, true);
                out.push(Input::Reply(Reply::Keyboard(flags)));
            }
            (Some(b'?'), b'c') => {
                // A terminal that does not know the protocol leaves the question for it out.
                self.speaks_kitty &= std::mem::take(&mut self.has_told);
                out.push(Input::Reply(Reply::Attributes));
            }
            (Some(b'?'), b'n') if parameters.get(0) == Some(997) => {
                let scheme = match parameters.get(1) {
                    Some(1) => Some(Reply::Scheme { dark: true }),
                    Some(2) => Some(Reply::Scheme { dark: false }),
                    _ => None,
                };
                out.extend(scheme.map(Input::Reply));
            }
            _ => {}
        }
    }

    fn send(&self, code: Code, modifiers: Modifiers, action: Action, out: &mut Vec<Input>) {
        let alt = if self.alt && action != Action::Release { Modifiers::ALT } else { Modifiers::NONE };
        out.push(Input::Key(Key { action, ..Key::new(code, modifiers | alt) }));
    }

    /// A key in the form of the Kitty protocol and of xterm's `formatOtherKeys`.
    fn unicode_key(
        &mut self,
        parameters: &Parameters,
        modifiers: Modifiers,
        action: Action,
        out: &mut Vec<Input>,
    ) {
        let Some(code) = parameters.get(0).and_then(unicode_code) else {
            return;
        };
        // The text that the key makes is named where the layout decides it; a shifted key too.
        let text = parameters.get(2).or_else(|| parameters.sub(0, 1)).and_then(char::from_u32);
        let types = modifiers.without(Modifiers::SHIFT) == Modifiers::NONE;
        let (code, modifiers) = match (code, text) {
            (Code::Char(_), Some(letter)) if types && !letter.is_control() => {
                (Code::Char(letter), Modifiers::NONE)
            }
            // A letter that no binding names commands as the key in its place on a Latin keyboard. Latin letters,
            // digits and signs are themselves, wherever a layout has them.
            (Code::Char(letter), _) if !types && !letter.is_ascii() => {
                (parameters.sub(0, 2).and_then(unicode_code).unwrap_or(code), modifiers)
            }
            _ => (code, modifiers),
        };
        let key = Key { action, ..Key::new(code, modifiers) };
        if action != Action::Release {
            self.doubled = key.typed();
        }
        self.send(code, modifiers, action, out);
    }

    fn string(&mut self, byte: u8, kind: u8, ending: bool, out: &mut Vec<Input>) {
        match byte {
            BEL if kind == b']' => {}
            b'\\' if ending => {}
            ESC => {
                self.state = State::String { kind, ending: true };
                return;
            }
            _ if ending => {
                // It was not ended but broken off by another sequence.
                self.finish();
                self.state = State::Escape;
                return self.escape(byte, out);
            }
            _ => {
                if self.held.len() < SEQUENCE_BYTES_MAX {
                    self.held.push(byte);
                }
                return;
            }
        }
        let text = String::from_utf8_lossy(&self.held).into_owned();
        match kind {
            b']' if text.starts_with("7501;?") => out.push(Input::Reply(Reply::ProgramStatus)),
            b']' => out.extend(color_reply(&text).map(Input::Reply)),
            b'_' => {
                if let Some(answer) = text.strip_prefix('G') {
                    out.push(Input::Reply(Reply::Graphics(answer.to_owned())));
                }
            }
            _ => {}
        }
        self.finish();
    }

    /// Consumes the bytes of a paste; returns the rest.
    fn paste<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<Input>) -> &'b [u8] {
        // The end may have begun in what came before.
        let before = self.held.len();
        let from = before.saturating_sub(PASTE_END.len() - 1);
        self.held.extend_from_slice(bytes);
        let found = self.held.get(from..).and_then(|tail| memmem::find(tail, PASTE_END));
        let Some(found) = found else {
            // Room for the end stays free behind a paste that is too long.
            let most = PASTE_BYTES_MAX + PASTE_END.len();
            if self.held.len() > most {
                let tail = self.held.len() - (PASTE_END.len() - 1);
                let tail = self.held.split_off(tail);
                self.held.truncate(PASTE_BYTES_MAX);
                self.held.extend(tail);
            }
            return &[];
        };
        let end = from + found;
        let taken = (end + PASTE_END.len()).saturating_sub(before);
        self.held.truncate(end.min(PASTE_BYTES_MAX));
        let held = std::mem::take(&mut self.held);
        out.push(Input::Paste(pasted(&String::from_utf8_lossy(&held))));
        self.finish();
        bytes.get(taken..).unwrap_or_default()
    }
}

/// Converts line ends to `\n`, including those that tmux encodes as keys.
fn pasted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if !text.contains('\x1b') {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split("\x1b[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        // `106;5u` is Ctrl+J.
        match part.split_once(";5u").and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
            Some((number @ 0x61..=0x7au8, rest)) => {
                plain.push(char::from(number & 0x1f));
                plain.push_str(rest);
            }
            _ => {
                plain.push_str("\x1b[");
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests;
