//! Stdout of print, JSON, RPC and ACP mode: opening it fails if it is closed.
//!
//! The standard library opens `/dev/null` in place of a stdout that is closed, before `main`: an answer would
//! be lost silently. So the program checks before ([`look`]), and opening stdout then fails like writing
//! fails in other programs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Records whether stdout is closed. Works only before the standard library starts: a program calls it from
/// an initializer.
pub extern "C" fn look() {
    // SAFETY: the call asks about a descriptor, which need not be open, and changes nothing.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Stdout, unless it was closed at the start.
pub fn open() -> io::Result<io::Stdout> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("it is closed")),
        false => Ok(io::stdout()),
    }
}

/// Writes `text` whole.
pub fn write(text: &str) -> io::Result<()> {
    let mut stdout = open()?.lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}
