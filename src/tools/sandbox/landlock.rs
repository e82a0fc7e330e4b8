//! Landlock: irrevocably limits where a thread and its children may write.
//!
//! The calls and structures are those of `linux/landlock.h`. Handled are writing, and reading so far as it
//! needs a file to be opened; running programs stays as it is. The kernel also keeps a confined process from
//! tracing and, in newer versions, from signalling one outside.

use super::platform::check;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const CREATE_RULESET_VERSION: libc::c_ulong = 1;
const RULE_PATH_BENEATH: libc::c_int = 1;

/// Rights below a folder, by the version of Landlock that introduced them.
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
/// Removing and creating anything: from `REMOVE_DIR` to `MAKE_SYM`.
const CHANGE_FOLDER: u64 = 0b1_1111_1111 << 4;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
/// Version 2: moving and linking between folders.
const REFER: u64 = 1 << 13;
/// Version 3.
const TRUNCATE: u64 = 1 << 14;
/// Version 5.
const IOCTL_DEV: u64 = 1 << 15;

/// Rights on a writable folder: everything except making devices or using existing ones.
const IN_FOLDER: u64 = READ_FILE | WRITE_FILE | CHANGE_FOLDER & !(MAKE_CHAR | MAKE_BLOCK) | REFER | TRUNCATE;
/// Rights on a writable file.
const ON_FILE: u64 = READ_FILE | WRITE_FILE | TRUNCATE;

/// Version 4: binding and connecting.
const TCP: u64 = 0b11;
/// Version 6: abstract Unix sockets and signals.
const SCOPES: u64 = 0b11;

#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: libc::c_int,
}

/// The kernel's version of Landlock; `None` if missing or disabled.
pub fn abi() -> Option<u32> {
    // SAFETY: with this flag the call takes no structure and gives a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttr>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(abi).ok().filter(|&abi| abi > 0)
}

/// Rules that can be applied to any number of threads.
#[derive(Debug)]
pub struct Ruleset {
    fd: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// Denies everything; TCP is allowed if `network`.
    pub fn new(network: bool) -> io::Result<Self> {
        let abi = abi().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))?;
        let since = |version, rights| if abi >= version { rights } else { 0 };
        let handled = READ_FILE
            | WRITE_FILE
            | CHANGE_FOLDER
            | since(2, REFER)
            | since(3, TRUNCATE)
            | since(5, IOCTL_DEV);
        let attr = RulesetAttr {
            handled_access_fs: handled,
            handled_access_net: if network { 0 } else { since(4, TCP) },
            scoped: since(6, SCOPES),
        };
        // What an older kernel does not know of the structure is zero, which it accepts.
        // SAFETY: the structure lives through the call, and its size is given.
        let fd = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size_of::<RulesetAttr>(), 0u32)
        };
        let fd = libc::c_int::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, handled })
    }

    /// Allows writing and reading at and below `root`, and creating anything except devices.
    pub fn allow_writing(&self, root: &File) -> io::Result<()> {
        self.allow(root, if root.metadata()?.is_dir() { IN_FOLDER } else { ON_FILE })
    }

    /// Allows all uses of a device.
    pub fn allow_device(&self, device: &impl AsRawFd) -> io::Result<()> {
        self.allow(device, ON_FILE | IOCTL_DEV)
    }

    /// Allows reading at and below `place`.
    pub fn allow_reading(&self, place: &File) -> io::Result<()> {
        self.allow(place, READ_FILE)
    }

    fn allow(&self, place: &impl AsRawFd, rights: u64) -> io::Result<()> {
        let attr = PathBeneathAttr { allowed_access: rights & self.handled, parent_fd: place.as_raw_fd() };
        // SAFETY: both descriptors are open, and the structure lives through the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.fd.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const attr,
                0u32,
            )
        };
        check(result)
    }

    /// Restricts this thread and its children permanently. Makes system calls only.
    pub fn restrict_this_thread(&self) -> io::Result<()> {
        // SAFETY: sets a flag of this thread; the other arguments must be zero.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        // SAFETY: the descriptor is open.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_raw_fd(), 0u32) })
    }
}
