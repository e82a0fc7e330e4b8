//! Meaning of the numbers and letters in sequences.

use super::super::key::{Code, Modifiers, Mouse, MouseKind, Reply};

/// Numbers separated by semicolons, each with subparameters after colons.
pub(super) struct Parameters(Vec<Vec<Option<u32>>>);

impl Parameters {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let number = |bytes: &[u8]| str::from_utf8(bytes).ok()?.parse().ok();
        let group = |bytes: &[u8]| bytes.split(|&byte| byte == b':').map(number).collect();
        Self(bytes.split(|&byte| byte == b';').map(group).collect())
    }

    pub(super) fn get(&self, index: usize) -> Option<u32> {
        self.sub(index, 0)
    }

    pub(super) fn sub(&self, index: usize, sub: usize) -> Option<u32> {
        self.0.get(index)?.get(sub).copied().flatten()
    }
}

pub(super) fn ascii_key(byte: u8) -> (Code, Modifiers) {
    match byte {
        b'\r' => (Code::Enter, Modifiers::NONE),
        b'\t' => (Code::Tab, Modifiers::NONE),
        0x7f | 0x08 => (Code::Backspace, Modifiers::NONE),
        0 => (Code::Char(' '), Modifiers::CTRL),
        // Ctrl with a letter; a line feed is Ctrl+J.
        1..=0x1a => (Code::Char(char::from(byte + 0x60)), Modifiers::CTRL),
        0x1c => (Code::Char('\\'), Modifiers::CTRL),
        0x1d => (Code::Char(']'), Modifiers::CTRL),
        0x1e => (Code::Char('^'), Modifiers::CTRL),
        // What Ctrl with `-` or `/` sends.
        0x1f => (Code::Char('-'), Modifiers::CTRL),
        _ => (Code::Char(char::from(byte)), Modifiers::NONE),
    }
}

/// The key of a sequence with a final letter.
pub(super) fn letter_key(byte: u8) -> Option<Code> {
    Some(match byte {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'E' => Code::Clear,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'P'..=b'S' => Code::Function(byte - b'P' + 1),
        _ => return None,
    })
}

/// The arrow keys, and the key between them, with a modifier in rxvt.
pub(super) fn rxvt_letter_key(byte: u8) -> Option<Code> {
    matches!(byte, b'a'..=b'e').then(|| letter_key(byte.to_ascii_uppercase())).flatten()
}

/// True if the parameters are only the number of a key.
pub(super) fn is_tilde_key(parameters: &[u8]) -> bool {
    let number = str::from_utf8(parameters).ok().and_then(|text| text.parse().ok());
    number.and_then(tilde_key).is_some()
}

/// The key for a number before a tilde.
pub(super) fn tilde_key(number: u32) -> Option<Code> {
    Some(match number {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::Function(u8::try_from(number - 10).ok()?),
        17..=21 => Code::Function(u8::try_from(number - 11).ok()?),
        23..=24 => Code::Function(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

/// The key of a code point; the private use area has the number pad and keys without a code point.
pub(super) fn unicode_code(number: u32) -> Option<Code> {
    Some(match number {
        8 | 127 => Code::Backspace,
        9 => Code::Tab,
        13 | 57414 => Code::Enter,
        27 => Code::Escape,
        57399..=57408 => Code::Char(char::from(u8::try_from(number - 57399).ok()? + b'0')),
        57409 => Code::Char('.'),
        57410 => Code::Char('/'),
        57411 => Code::Char('*'),
        57412 => Code::Char('-'),
        57413 => Code::Char('+'),
        57415 => Code::Char('='),
        57416 => Code::Char(','),
        57417 => Code::Left,
        57418 => Code::Right,
        57419 => Code::Up,
        57420 => Code::Down,
        57421 => Code::PageUp,
        57422 => Code::PageDown,
        57423 => Code::Home,
        57424 => Code::End,
        57425 => Code::Insert,
        57426 => Code::Delete,
        57427 => Code::Clear,
        // Modifiers, locks, media keys.
        57344..=63743 => return None,
        _ => Code::Char(char::from_u32(number).filter(|letter| !letter.is_control())?),
    })
}

pub(super) fn mouse(parameters: &Parameters, last: u8) -> Option<Mouse> {
    let bits = parameters.get(0)?;
    let place = |index| u16::try_from(parameters.get(index)?.saturating_sub(1)).ok();
    let button = u8::try_from(bits & 3).ok()?;
    let kind = match bits & 0b110_0000 {
        0b100_0000 => match button {
            0 => MouseKind::ScrollUp,
            1 => MouseKind::ScrollDown,
            _ => return None,
        },
        0b010_0000 if button == 3 => MouseKind::Move,
        0b010_0000 => MouseKind::Drag(button),
        _ if last == b'm' => MouseKind::Release(button),
        _ => MouseKind::Press(button),
    };
    let held = |bit, modifier| {
        if bits & bit != 0 { modifier } else { Modifiers::NONE }
    };
    let modifiers = held(4, Modifiers::SHIFT) | held(8, Modifiers::ALT) | held(16, Modifiers::CTRL);
    Some(Mouse { kind, column: place(1)?, row: place(2)?, modifiers })
}

/// The colour that a terminal has told with OSC 10, 11 or 4.
pub(super) fn color_reply(text: &str) -> Option<Reply> {
    let (kind, rest) = text.split_once(';')?;
    match kind {
        "10" => color(rest).map(|[red, green, blue]| Reply::Foreground(red, green, blue)),
        "11" => color(rest).map(|[red, green, blue]| Reply::Background(red, green, blue)),
        "4" => {
            let (number, rest) = rest.split_once(';')?;
            let [red, green, blue] = color(rest)?;
            Some(Reply::Palette(number.parse().ok()?, red, green, blue))
        }
        _ => None,
    }
}

/// `rgb:ffff/ffff/ffff` or `#ffffff`, in one to four digits a channel.
fn color(text: &str) -> Option<[u8; 3]> {
    let digits = match text.strip_prefix('#') {
        Some(digits) if digits.len().is_multiple_of(3) => {
            let third = digits.len() / 3;
            [digits.get(..third)?, digits.get(third..2 * third)?, digits.get(2 * third..)?]
        }
        Some(_) => return None,
        None => {
            let channels = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
            let mut channels = channels.split('/');
            [channels.next()?, channels.next()?, channels.next()?]
        }
    };
    let channel = |digits: &str| {
        let most = 16u32.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_sub(1)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        (digits.len() <= 4 && most > 0).then(|| u8::try_from(value * 255 / most).unwrap_or(255))
    };
    let [red, green, blue] = digits.map(channel);
    Some([red?, green?, blue?])
}
