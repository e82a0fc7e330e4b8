//! Sends a body that is made while it is sent.
//!
//! The HTTP client pulls a body, and its source pushes: a thread makes the parts, at most [`AHEAD`] of them before
//! they are sent.

use crate::base::thread::Thread;
use crate::llm::body::Long;
use crossbeam_channel::{Receiver, bounded};
use std::io::{self, Read};
use std::thread;
use ureq::SendBody;

const AHEAD: usize = 2;

/// Calls `run` with the body. The thread that makes the body ends with `run`.
pub(super) fn send<T>(
    long: &Long<'_>,
    run: impl FnOnce(SendBody<'_>) -> Result<T, ureq::Error>,
) -> Result<T, ureq::Error> {
    thread::scope(|scope| {
        let (sender, parts) = bounded(AHEAD);
        Thread::named("http-body")
            .start_in(scope, move || long.read(&mut |part| sender.send(part).is_ok()))?;
        let mut body = Parts { parts, part: Vec::new(), at: 0 };
        run(SendBody::from_reader(&mut body))
    })
}

struct Parts {
    parts: Receiver<Vec<u8>>,
    part: Vec<u8>,
    /// Number of bytes of the part that were read.
    at: usize,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.part.len() {
            self.part = self.parts.recv().unwrap_or_default(); // no sender: the end
            self.at = 0;
        }
        let rest = &self.part[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
