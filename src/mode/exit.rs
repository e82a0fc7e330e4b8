//! The end of a mode: exit codes, and child processes.

use super::report;
use crate::runtime::{self, CancelToken};
use std::{io, thread};

/// The run succeeded.
pub const DONE: u8 = 0;
/// The run failed; the reason is on stderr.
pub const FAILED: u8 = 1;
/// The reader of stdout has gone. No error is printed, as in other programs.
pub const PIPE_CLOSED: u8 = 141;

/// The exit code after flushing the output and closing the sessions. The first error is reported.
pub fn code(flushed: io::Result<()>, closed: Result<(), String>) -> u8 {
    let reason = match (flushed, closed) {
        (Ok(()), Ok(())) => return DONE,
        (Err(error), _) if error.kind() == io::ErrorKind::BrokenPipe => return PIPE_CLOSED,
        (Err(error), _) => format!("Cannot write to stdout: {error}"),
        (Ok(()), Err(reason)) => reason,
    };
    report::error(reason);
    FAILED
}

/// Guard of the session's thread that ends the program if the thread panics: nobody would answer any more.
pub struct EndsInPanic(pub CancelToken);

impl Drop for EndsInPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.cancel();
        }
    }
}

/// Guard that kills the tools' child processes on drop, also in a panic.
pub struct EndsChildren {
    /// True if processes that outlived their command keep running.
    pub keep: bool,
}

impl Drop for EndsChildren {
    fn drop(&mut self) {
        for survivor in runtime::end_children() {
            let (pid, command) = (survivor.pid, &survivor.name);
            let fate = if self.keep { "is left running" } else { "was ended" };
            report::note(format_args!("Background process {pid} ({command}) {fate}"));
        }
    }
}
