//! Calls on pipes that the standard library lacks.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
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
