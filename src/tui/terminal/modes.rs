//! Terminal modes that can be switched on, and how to switch them off.

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u32);

impl Modes {
    pub const NONE: Self = Self(0);
    /// Bracketed paste.
    pub const PASTE: Self = Self(1);
    /// Kitty's keyboard protocol, with a query whether the terminal supports it.
    pub const KEYBOARD: Self = Self(2);
    /// xterm's `modifyOtherKeys`.
    pub const OTHER_KEYS: Self = Self(4);
    /// Reports of window focus.
    pub const FOCUS: Self = Self(8);
    /// Reports of a change between dark and light.
    pub const SCHEME: Self = Self(16);
    pub const MOUSE: Self = Self(32);
    /// The alternate screen, without scrollback; leaving it restores the previous content.
    pub const ALTERNATE: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    /// Modes for a conversation; none on a terminal that would print the sequences.
    pub fn usual(is_dumb: bool) -> Self {
        match is_dumb {
            true => Self::NONE,
            false => Self::PASTE | Self::KEYBOARD | Self::FOCUS,
        }
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Escape sequences that switch the modes on.
    pub fn on(self) -> String {
        let wanted = TABLE.iter().filter(|(mode, ..)| self.has(*mode));
        wanted.map(|(_, on, _)| *on).collect()
    }

    /// Escape sequences that switch the modes off, in reverse order.
    pub fn off(self) -> String {
        let wanted = TABLE.iter().rev().filter(|(mode, ..)| self.has(*mode));
        wanted.map(|(.., off)| *off).collect()
    }
}

impl std::ops::BitOr for Modes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// In the order of switching on: Kitty keeps a stack of flags for each screen.
const TABLE: [(Modes, &str, &str); 7] = [
    (Modes::ALTERNATE, "\x1b[?1049h", "\x1b[?1049l"),
    (Modes::PASTE, "\x1b[?2004h", "\x1b[?2004l"),
    // The last is answered by every terminal: then an answer about the keyboard is not to be expected.
    (Modes::KEYBOARD, "\x1b[>7u\x1b[?u\x1b[c", "\x1b[<u"),
    (Modes::OTHER_KEYS, "\x1b[>4;2m", "\x1b[>4;0m"),
    (Modes::FOCUS, "\x1b[?1004h", "\x1b[?1004l"),
    (Modes::SCHEME, "\x1b[?2031h", "\x1b[?2031l"),
    (Modes::MOUSE, "\x1b[?1000h\x1b[?1002h\x1b[?1006h", "\x1b[?1006l\x1b[?1002l\x1b[?1000l"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_goes_off_in_reverse() {
        let usual = Modes::usual(false);
        assert_eq!(usual.on(), "\x1b[?2004h\x1b[>7u\x1b[?u\x1b[c\x1b[?1004h");
        assert_eq!(usual.off(), "\x1b[?1004l\x1b[<u\x1b[?2004l");
        assert_eq!(Modes::usual(true).on(), "");
    }

    #[test]
    fn every_private_mode_has_its_end() {
        for (_, on, off) in TABLE {
            for mode in on.split("\x1b[?").filter_map(|part| part.strip_suffix('h')) {
                assert!(off.contains(&format!("\x1b[?{mode}l")), "{on:?}");
            }
        }
    }
}
