//! Drops root's capabilities beyond files: devices, mounts, clocks, modules, other processes.
//!
//! Landlock and the system call filter also apply to root, but do not cover all that capabilities allow. The
//! kept ones let root access files of any owner and become another user, as builds in containers do; Landlock
//! limits where they take effect.

use super::platform::check;
use std::io;

/// `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `SETGID`, `SETUID`, by their numbers in
/// `linux/capability.h`.
const KEPT: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7;

/// `_LINUX_CAPABILITY_VERSION_3`: two words for each set.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops capabilities of this thread and its children permanently. Makes system calls only. The thread must
/// have `no_new_privs`, so that no program regains them.
pub fn drop_all_but_files() -> io::Result<()> {
    for number in 0..64 {
        // SAFETY: asks for a number and changes a flag of this thread; the other arguments must be zero.
        unsafe {
            if libc::prctl(libc::PR_CAPBSET_READ, number, 0, 0, 0) < 0 {
                break;
            }
            if KEPT & (1 << number) == 0 {
                // A refusal leaves the limit on what a program may gain, which is nothing here.
                libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0);
            }
        }
    }
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: both structures have the form of this version, and live through the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    for (half, set) in sets.iter_mut().enumerate() {
        let kept = if half == 0 { KEPT as u32 } else { (KEPT >> 32) as u32 };
        set.effective &= kept;
        set.permitted &= kept;
        set.inheritable = 0;
    }
    // What is not inheritable is not ambient either.
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })
}
