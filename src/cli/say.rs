//! Printing what a command was asked for.

use crate::mode::{print, report, stdout};
use crate::runtime::plain_text;
use std::io::{self, IsTerminal, Write};

/// The exit code for a command line that cannot be understood.
pub(super) const BAD_USAGE: u8 = 2;

/// Prints text that others wrote; a terminal gets no control sequences.
pub(super) fn say_plain(text: &str) -> u8 {
    if io::stdout().is_terminal() { say(&plain_text(text.as_bytes())) } else { say(text) }
}

/// Prints `text` on stdout. Gives the exit code.
pub(super) fn say(text: &str) -> u8 {
    let write = || {
        let mut stdout = stdout::open()?.lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
    };
    match write() {
        Ok(()) => print::DONE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => print::PIPE_CLOSED,
        Err(error) => {
            report::error(format_args!("Cannot write to stdout: {error}"));
            print::FAILED
        }
    }
}
