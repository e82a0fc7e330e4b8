//! What a terminal without extended protocols sends for a key, for those who read keys themselves.

use super::key::{Code, Key, Modifiers};

/// The bytes of a key press.
pub fn encode(key: &Key) -> String {
    let has = |modifier| key.modifiers.has(modifier);
    let sum = 1
        + u8::from(has(Modifiers::SHIFT))
        + 2 * u8::from(has(Modifiers::ALT))
        + 4 * u8::from(has(Modifiers::CTRL));
    let letter = |end: char| match sum {
        1 => format!("\x1b[{end}"),
        _ => format!("\x1b[1;{sum}{end}"),
    };
    let number = |number: u8| match sum {
        1 => format!("\x1b[{number}~"),
        _ => format!("\x1b[{number};{sum}~"),
    };
    let alt = |text: String| if has(Modifiers::ALT) { format!("\x1b{text}") } else { text };
    match key.code {
        Code::Char(char) if has(Modifiers::CTRL) => {
            let control = match char.to_ascii_lowercase() {
                letter @ 'a'..='z' => char::from_u32(u32::from(letter) - 0x60),
                ' ' | '@' => Some('\0'),
                '[' => Some('\x1b'),
                '\\' => Some('\x1c'),
                ']' => Some('\x1d'),
                '^' => Some('\x1e'),
                '_' | '-' => Some('\x1f'),
                _ => None,
            };
            alt(control.unwrap_or(char).to_string())
        }
        Code::Char(char) if has(Modifiers::SHIFT) => alt(char.to_uppercase().collect()),
        Code::Char(char) => alt(char.to_string()),
        Code::Enter => alt("\r".to_owned()),
        Code::Tab if has(Modifiers::SHIFT) => "\x1b[Z".to_owned(),
        Code::Tab => alt("\t".to_owned()),
        Code::Backspace => alt("\x7f".to_owned()),
        Code::Escape => alt("\x1b".to_owned()),
        Code::Insert => number(2),
        Code::Delete => number(3),
        Code::PageUp => number(5),
        Code::PageDown => number(6),
        Code::Home => letter('H'),
        Code::End => letter('F'),
        Code::Up => letter('A'),
        Code::Down => letter('B'),
        Code::Right => letter('C'),
        Code::Left => letter('D'),
        Code::Clear => letter('E'),
        Code::Function(count @ 1..=4) if sum == 1 => format!("\x1bO{}", char::from(b'O' + count)),
        Code::Function(count @ 1..=4) => letter(char::from(b'O' + count)),
        Code::Function(5) => number(15),
        Code::Function(count @ 6..=10) => number(count + 11),
        Code::Function(count @ 11..=14) => number(count + 12),
        Code::Function(count) => number(count.saturating_add(13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_as_terminals_do() {
        let rows = [
            ("a", "a"),
            ("shift+a", "A"),
            ("ctrl+c", "\x03"),
            ("alt+x", "\x1bx"),
            ("enter", "\r"),
            ("escape", "\x1b"),
            ("up", "\x1b[A"),
            ("ctrl+left", "\x1b[1;5D"),
            ("shift+tab", "\x1b[Z"),
            ("delete", "\x1b[3~"),
            ("f1", "\x1bOP"),
            ("f5", "\x1b[15~"),
            ("f6", "\x1b[17~"),
            ("f12", "\x1b[24~"),
            ("space", " "),
        ];
        for (name, expected) in rows {
            assert_eq!(encode(&Key::parse(name).unwrap()), expected, "{name}");
        }
    }
}
