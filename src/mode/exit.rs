//! How a mode ends: exit codes, and what becomes of child processes.

use super::report;
use crate::runtime;
use std::io;

/// The run ended well.
pub const DONE: u8 = 0;
/// The run failed; the reason is on stderr.
pub const FAILED: u8 = 1;
/// The reader of stdout has gone. Nothing is said about it, as other programs do it.
pub const PIPE_CLOSED: u8 = 141;

/// The exit code of a mode that has written all it had to and closed its sessions. The first reason for a failure is
/// reported.
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

/// Guard that kills the tools' child processes on drop, also in a panic.
pub struct EndsChildren {
    /// Processes that outlived their command live on.
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
