//! Reads and discards the output of surviving processes.
//!
//! A background server must not die of a closed pipe, or block on a full one. One thread serves all pipes; it
//! exists only while there are pipes, and sleeps until one is readable. It pauses after each read, so that
//! endless output is slowed to a few megabytes a second instead of keeping two processors busy.

use crate::base::poll;
use crate::base::thread::Thread;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(10);

static DRAIN: Mutex<Drain> = Mutex::new(Drain { new: Vec::new(), wake: None });

struct Drain {
    /// Pipes that the thread has not taken yet.
    new: Vec<PipeReader>,
    /// Wakes the thread, if it is running.
    wake: Option<PipeWriter>,
}

fn drain() -> MutexGuard<'static, Drain> {
    DRAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drains a pipe until all its writers have closed it.
pub fn adopt(pipe: PipeReader) {
    let mut drain = drain();
    drain.new.push(pipe);
    let told = match &mut drain.wake {
        Some(wake) => wake.write(b"!").map(drop),
        None => start().map(|wake| drain.wake = Some(wake)),
    };
    if told.is_err() {
        // Without a thread the pipes close: better than writers that stop for ever.
        drain.new.clear();
    }
}

fn start() -> io::Result<PipeWriter> {
    let (woken, wake) = io::pipe()?;
    Thread::named("pi-drain").stack(128 << 10).start(move || run(woken))?;
    Ok(wake)
}

fn run(mut woken: PipeReader) {
    let mut pipes: Vec<PipeReader> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        {
            let mut drain = drain();
            pipes.append(&mut drain.new);
            if pipes.is_empty() {
                drain.wake = None;
                return;
            }
        }
        let mut polled: Vec<libc::pollfd> = std::iter::once(&woken)
            .chain(&pipes)
            .map(|pipe| libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        if poll::poll_all(&mut polled, None).is_err() {
            pipes.clear();
            continue;
        }
        let mut ready = polled.iter().map(|polled| polled.revents != 0);
        if ready.next() == Some(true) {
            let _ = woken.read(&mut buffer);
        }
        pipes.retain_mut(|pipe| ready.next() != Some(true) || !is_over(pipe, &mut buffer));
        thread::sleep(PAUSE);
    }
}

/// Reads once from a ready pipe. True at its end.
fn is_over(pipe: &mut PipeReader, buffer: &mut [u8]) -> bool {
    match pipe.read(buffer) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != io::ErrorKind::Interrupted,
    }
}
