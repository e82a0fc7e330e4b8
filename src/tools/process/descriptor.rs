//! Keeps inherited descriptors from child processes: one may lead outside of a sandbox.

use std::io;

/// The first descriptor after stdin, stdout and stderr.
const FIRST: libc::c_int = 3;

/// Makes all descriptors but stdin, stdout and stderr close on exec. Makes system calls only.
#[cfg(target_os = "linux")]
pub fn keep_from_programs() -> io::Result<()> {
    // SAFETY: changes a flag of descriptors; no memory is involved.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
pub fn keep_from_programs() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes inherited descriptors close in all programs that this process starts. Its own descriptors close
/// anyway.
pub fn keep_inherited() {
    if keep_from_programs().is_ok() {
        return;
    }
    let numbers = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for fd in numbers.filter(|&fd: &libc::c_int| fd >= FIRST) {
        // SAFETY: changes a flag; what is not open is an error and nothing else.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
