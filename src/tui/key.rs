//! Keys and other input of a terminal, as values.

use std::fmt;

/// One input from the terminal.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Key(Key),
    /// Pasted text, with line ends as `\n`.
    Paste(String),
    Mouse(Mouse),
    /// True if the terminal's window has gained the focus, false if it has lost it.
    Focus(bool),
    Reply(Reply),
}

/// A reply of the terminal to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The terminal supports the Kitty keyboard protocol; the active flags.
    Keyboard(u32),
    /// Device attributes: every terminal replies to this query.
    Attributes,
    /// The colour of text.
    Foreground(u8, u8, u8),
    /// A colour of the palette: its number, and the colour.
    Palette(u8, u8, u8, u8),
    /// The background colour.
    Background(u8, u8, u8),
    /// The terminal shows the status of programs (OSC 7501).
    ProgramStatus,
    /// The colour scheme has changed to dark or light.
    Scheme { dark: bool },
    /// Position of the cursor, from 0.
    Position { row: usize, column: usize },
    /// The size of a cell in pixels.
    Cell { width: u32, height: u32 },
    /// Kitty graphics protocol: the text of a response.
    Graphics(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: Code,
    pub modifiers: Modifiers,
    pub action: Action,
    /// True for a control character that terminals send for two keys: see [`Key::twin`].
    pub is_ambiguous: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Lower case if shift is among the modifiers and has no other effect.
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Insert,
    Delete,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
    /// The middle key of the number pad without num lock.
    Clear,
    Function(u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    #[default]
    Press,
    Repeat,
    Release,
}

/// A set of modifier keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers(u8);

impl Modifiers {
    pub const NONE: Self = Self(0);
    pub const SHIFT: Self = Self(1);
    pub const ALT: Self = Self(2);
    pub const CTRL: Self = Self(4);
    pub const SUPER: Self = Self(8);
    /// Hyper or Meta of the Kitty protocol. No binding can name them: keys with them are ignored.
    pub const HYPER: Self = Self(16);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Decodes the modifier number of a sequence, which is the sum plus one; lock keys are ignored.
    pub fn of_sequence(number: u32) -> Self {
        let sum = number.saturating_sub(1);
        let named = Self(u8::try_from(sum & 0b1111).unwrap_or(0));
        if sum & 0b11_0000 == 0 { named } else { named | Self::HYPER }
    }
}

impl std::ops::BitOr for Modifiers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    pub kind: MouseKind,
    /// Column from 0, at the left; rows from 0, at the top.
    pub column: u16,
    pub row: u16,
    pub modifiers: Modifiers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// Button: left 0, middle 1, right 2.
    Press(u8),
    Release(u8),
    Drag(u8),
    Move,
    ScrollUp,
    ScrollDown,
}

impl Key {
    pub const fn new(code: Code, modifiers: Modifiers) -> Self {
        Self { code, modifiers, action: Action::Press, is_ambiguous: false }
    }

    pub const fn plain(code: Code) -> Self {
        Self::new(code, Modifiers::NONE)
    }

    /// The character that the key types, if any.
    pub fn typed(&self) -> Option<char> {
        match self.code {
            Code::Char(letter) if self.modifiers.without(Modifiers::SHIFT) == Modifiers::NONE => {
                match self.modifiers.has(Modifiers::SHIFT) {
                    true => letter.to_uppercase().next(),
                    false => Some(letter),
                }
            }
            _ => None,
        }
    }

    /// The other key that sends an ambiguous control character.
    pub fn twin(&self) -> Option<Self> {
        let code = match self.code {
            Code::Backspace => 'h',
            Code::Char('-') => '_',
            Code::Escape => '[',
            _ => return None,
        };
        self.is_ambiguous.then(|| Self::new(Code::Char(code), self.modifiers | Modifiers::CTRL))
    }

    /// Parses `ctrl+shift+p`, the form of `keybindings.json`. Order and case of the names do not matter.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let (modifiers, name) = match text.strip_suffix('+') {
            // The key `+` itself.
            Some("") => ("", "+"),
            Some(rest) => (rest.strip_suffix('+')?, "+"),
            None => text.rsplit_once('+').unwrap_or(("", &text)),
        };
        let mut set = Modifiers::NONE;
        for modifier in modifiers.split('+').filter(|name| !name.is_empty()) {
            set = set
                | match modifier {
                    "shift" => Modifiers::SHIFT,
                    "alt" | "option" | "meta" => Modifiers::ALT,
                    "ctrl" | "control" => Modifiers::CTRL,
                    "super" | "cmd" | "command" => Modifiers::SUPER,
                    _ => return None,
                };
        }
        Some(Self::new(code(name)?, set))
    }
}

/// Names of keys; the first name of a key is displayed.
const NAMES: [(&str, Code); 21] = [
    ("enter", Code::Enter),
    ("return", Code::Enter),
    ("tab", Code::Tab),
    ("backspace", Code::Backspace),
    ("escape", Code::Escape),
    ("esc", Code::Escape),
    ("insert", Code::Insert),
    ("delete", Code::Delete),
    ("del", Code::Delete),
    ("home", Code::Home),
    ("end", Code::End),
    ("pageup", Code::PageUp),
    ("pgup", Code::PageUp),
    ("pagedown", Code::PageDown),
    ("pgdn", Code::PageDown),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("space", Code::Char(' ')),
    ("clear", Code::Clear),
];

/// A regular expression of the usual spellings of keys. [`Key::parse`] takes any case.
pub fn pattern() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    format!(
        "^((ctrl|control|shift|alt|option|meta|super|cmd|command)\\+)*({}|pageUp|pageDown|f[1-9]|f1[0-9]|f2[0-4]|.)$",
        names.join("|")
    )
}

fn code(name: &str) -> Option<Code> {
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    if let Some(number) = name.strip_prefix('f').and_then(|number| number.parse().ok()) {
        return (1..=24).contains(&number).then_some(Code::Function(number));
    }
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if !letter.is_control() => Some(Code::Char(letter)),
        _ => None,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in [
            (Modifiers::CTRL, "ctrl+"),
            (Modifiers::ALT, "alt+"),
            (Modifiers::SHIFT, "shift+"),
            (Modifiers::SUPER, "super+"),
            (Modifiers::HYPER, "hyper+"),
        ] {
            if self.modifiers.has(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            Code::Function(number) => write!(f, "f{number}"),
            code => match NAMES.iter().find(|(_, known)| *known == code) {
                Some((name, _)) => f.write_str(name),
                None => match code {
                    Code::Char(letter) => write!(f, "{letter}"),
                    _ => Ok(()),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for (text, shown) in [
            ("ctrl+p", "ctrl+p"),
            ("Shift+Ctrl+P", "ctrl+shift+p"),
            ("alt+enter", "alt+enter"),
            ("escape", "escape"),
            ("ctrl+-", "ctrl+-"),
            ("ctrl+]", "ctrl+]"),
            ("+", "+"),
            ("ctrl++", "ctrl++"),
            ("super+k", "super+k"),
            ("pageUp", "pageup"),
            ("f12", "f12"),
            ("ctrl+space", "ctrl+space"),
            ("ü", "ü"),
        ] {
            let key = Key::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(key.to_string(), shown);
            assert_eq!(Key::parse(shown), Some(key));
        }
        for bad in ["", "ctrl+", "hyper+a", "ab", "f99", "ctrl"] {
            assert_eq!(Key::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_key_types_its_character_unless_it_commands() {
        assert_eq!(Key::plain(Code::Char('a')).typed(), Some('a'));
        assert_eq!(Key::new(Code::Char('a'), Modifiers::SHIFT).typed(), Some('A'));
        assert_eq!(Key::new(Code::Char('a'), Modifiers::CTRL).typed(), None);
        assert_eq!(Key::new(Code::Char('a'), Modifiers::ALT | Modifiers::SHIFT).typed(), None);
        assert_eq!(Key::new(Code::Char('a'), Modifiers::HYPER).typed(), None);
        assert_eq!(Key::plain(Code::Enter).typed(), None);
    }
}
