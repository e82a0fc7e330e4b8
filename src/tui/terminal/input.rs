//! The thread that waits for terminal input and signals.

use super::Event;
use super::restore::Tty;
use crossbeam_channel::{Receiver, Sender, TryRecvError, select};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

const CHUNK_BYTES: usize = 64 << 10;

/// Runs until the terminal ends or the sender of `stop` is dropped.
pub(super) fn run(tty: &Tty, mut wake: &PipeReader, events: &Sender<Event>, stop: &Receiver<()>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let send = |event| {
        select! {
            send(events, event) -> sent => sent.is_ok(),
            recv(stop) -> _ => false,
        }
    };
    loop {
        let [has_input, is_awake] = wait([tty.input(), wake.as_fd()]);
        if is_awake {
            let _ = wake.read(&mut buffer);
            if stop.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
            let notes = &tty.notes;
            let end = i32::try_from(notes.end.swap(0, Ordering::SeqCst)).unwrap_or(0);
            let noted = [
                (notes.suspend.swap(false, Ordering::SeqCst), Event::Suspend),
                (notes.resumed.swap(false, Ordering::SeqCst), Event::Resumed),
                (notes.resized.swap(false, Ordering::SeqCst), Event::Resized),
                (end != 0, Event::Signal(end)),
            ];
            for (_, event) in noted.into_iter().filter(|(is_noted, _)| *is_noted) {
                if !send(event) {
                    return;
                }
            }
        }
        if !has_input {
            continue;
        }
        let event = match tty.read(&mut buffer) {
            Ok(count) if count > 0 => Event::Bytes(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                continue;
            }
            // No bytes at all, or an error as a terminal gives that was closed.
            _ => Event::End,
        };
        let is_end = event == Event::End;
        if !send(event) || is_end {
            return;
        }
    }
}

/// Blocks until one of the files is readable or closed.
fn wait(files: [BorrowedFd<'_>; 2]) -> [bool; 2] {
    let mut polled = files.map(|file| polled(file, libc::POLLIN));
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(0);
    // SAFETY: the array is valid for as many entries as are named, for the time of the call.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, -1) };
    // An interrupted call has set nothing.
    polled.map(|file| ready > 0 && file.revents != 0)
}

fn polled(file: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 }
}

/// True if a file is readable or writable, now or within a time.
pub(super) fn is_ready(file: BorrowedFd<'_>, events: i16, time: Duration) -> bool {
    let mut polled = polled(file, events);
    let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the one entry is valid for the time of the call.
    unsafe { libc::poll(&raw mut polled, 1, millis) > 0 }
}

pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action the call only writes the present one, to a place that is large enough;
    // all zeros are a valid value for it.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0
            && present.sa_sigaction == libc::SIG_IGN
    }
}

/// Stops the process group like the terminal does for Ctrl+Z; returns after it continues. The kernel does not
/// stop a group that nobody could continue.
pub(super) fn stop() {
    // SAFETY: both actions are valid values, the second one filled in by the first call; a group
    // of 0 is our own.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut usual: libc::sigaction = std::mem::zeroed();
        usual.sa_sigaction = libc::SIG_DFL;
        if libc::sigaction(libc::SIGTSTP, &raw const usual, &raw mut before) == 0 {
            libc::kill(0, libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, &raw const before, std::ptr::null_mut());
        }
    }
}
