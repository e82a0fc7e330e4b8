//! Prints the output of commands.

use crate::mode::{exit, stdout};
use crate::runtime::plain_text;
use std::io::{self, IsTerminal};

/// Exit code for an invalid command line.
pub(super) const BAD_USAGE: u8 = 2;

/// Prints text from outside. On a terminal, control sequences are removed.
pub(super) fn say_plain(text: &str) -> u8 {
    if io::stdout().is_terminal() { say(&plain_text(text.as_bytes())) } else { say(text) }
}

/// Prints `text` on stdout. Returns the exit code.
pub(super) fn say(text: &str) -> u8 {
    exit::code(stdout::write(text), Ok(()))
}
