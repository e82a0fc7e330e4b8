//! Calls on pipes that the standard library lacks.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Instant;

/// Waits until one of `fds` is readable or closed at its other end, or until `until`. A negative descriptor
/// is never ready.
pub fn poll<const N: usize>(fds: [RawFd; N], until: Option<Instant>) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    poll_all(&mut polled, until)?;
    Ok(polled.map(|fd| fd.revents != 0))
}

/// Waits for any number of descriptors; the result is in `revents` of each.
pub fn poll_all(fds: &mut [libc::pollfd], until: Option<Instant>) -> io::Result<()> {
    let timeout_ms = until.map_or(-1, |until| {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, so as not to wake just before the time.
        let ms = left.as_nanos().div_ceil(1_000_000);
        libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
    });
    let count = libc::nfds_t::try_from(fds.len()).map_err(io::Error::other)?;
    // SAFETY: `fds` is valid for `count` entries and lives through the call.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), count, timeout_ms) };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// A pipe for writing, into which a short line goes without blocking if it is nearly empty.
pub struct WaitlessPipe(File);

impl WaitlessPipe {
    /// A duplicate of `fd`, if it is a pipe.
    pub fn of(fd: impl AsFd) -> Option<Self> {
        let file = File::from(fd.as_fd().try_clone_to_owned().ok()?);
        file.metadata().is_ok_and(|meta| meta.file_type().is_fifo()).then_some(Self(file))
    }

    /// Writes `bytes`, unless that could block: for more bytes than the system promises, and for a pipe that is
    /// full or broken. False if nothing was written.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let mut polled = [libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLOUT, revents: 0 }];
        let waits = bytes.len() > libc::PIPE_BUF
            || poll_all(&mut polled, Some(Instant::now())).is_err()
            || polled[0].revents != libc::POLLOUT;
        // Up to `PIPE_BUF` bytes are written whole or not at all.
        !waits && self.0.write(bytes).is_ok()
    }
}

/// Repeats a call that was interrupted by a signal.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Number of bytes that can be read without blocking.
pub fn readable_bytes(pipe: &PipeReader) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the descriptor is open, and this request writes one `c_int`.
    let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut count) };
    match result {
        0 => usize::try_from(count).unwrap_or(0),
        _ => 0,
    }
}

/// Makes writes fail instead of blocking.
pub fn never_block(pipe: &PipeWriter) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Enlarges the pipe's buffer. A failure leaves the pipe unchanged.
#[cfg(target_os = "linux")]
pub fn widen(pipe: &PipeReader) {
    const BYTES: libc::c_int = 256 << 10;
    // SAFETY: the descriptor is open.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, BYTES) };
}

#[cfg(not(target_os = "linux"))]
pub fn widen(_: &PipeReader) {}
