//! Disables core files of pi, which hold keys; commands may write their own.

use std::io;
use std::sync::OnceLock;

/// The limit with which pi was started.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Disables core files of this process. [`allow`] is for its children.
pub fn forbid() {
    // SAFETY: all zeros are a valid value, which the first call fills in; it outlives both calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) == 0 && BEFORE.set(limit).is_ok() {
            limit.rlim_cur = 0;
            libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        }
    }
}

/// Restores the original limit in this process. Safe between fork and exec.
pub fn allow() -> io::Result<()> {
    let Some(limit) = BEFORE.get() else {
        return Ok(());
    };
    // SAFETY: the value outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_CORE, limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
