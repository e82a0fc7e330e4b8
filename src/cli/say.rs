//! Printing what a command was asked for.

use crate::mode::{exit, stdout};
use crate::runtime::plain_text;
use std::io::{self, IsTerminal};

/// The exit code for a command line that cannot be understood.
pub(super) const BAD_USAGE: u8 = 2;

/// Prints text that others wrote; a terminal gets no control sequences.
pub(super) fn say_plain(text: &str) -> u8 {
    if io::stdout().is_terminal() { say(&plain_text(text.as_bytes())) } else { say(text) }
}

/// Prints `text` on stdout. Gives the exit code.
pub(super) fn say(text: &str) -> u8 {
    exit::code(stdout::write(text), Ok(()))
}
