//! No core file of pi, which holds keys; commands may write theirs.

use std::io;
use std::sync::OnceLock;

/// The limit that pi was started with.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// From now on a crash of this process leaves no core file. [`allow`] is for its children.
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

/// Gives this process the limit from before. Safe between fork and exec.
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
