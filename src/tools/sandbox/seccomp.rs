//! A filter of system calls, for what Landlock leaves open.
//!
//! Refused are sockets (all of them without network; those of Unix always, since one may lead to a
//! service that writes for others), extended attributes, flags of inodes, input faked on a terminal, and
//! the ways around a filter: io_uring, other instruction sets. Changes of mode, owner and times are
//! decided by path, which a filter cannot see: they go to the [`super::supervisor`], or are refused
//! where nothing may be written.

use super::supervisor;
use std::io;
use std::mem::offset_of;
use std::os::fd::RawFd;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Calls that change what belongs to a file but its content: mode, owner, times.
#[cfg(target_arch = "x86_64")]
const SUPERVISED_HERE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const SUPERVISED_HERE: &[libc::c_long] = &[];

const SUPERVISED: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    supervisor::SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
];

/// Programs do without these where a file system does not have them.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Refused as if the kernel did not have them: io_uring, `setxattrat`, `removexattrat`, `file_setattr`,
/// whose numbers are the same everywhere, and opening by handle, which asks for no path.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_io_uring_setup, 463, 466, 469, libc::SYS_open_by_handle_at];

/// `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`, `TIOCSTI`, `TIOCLINUX`.
const IOCTLS: &[u32] = &[0x4008_6602, 0x401c_5820, 0x4008_7602, 0x5412, 0x541c];

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

#[derive(Debug)]
pub struct Filter {
    supervised: Vec<libc::sock_filter>,
    strict: Vec<libc::sock_filter>,
}

impl Filter {
    pub fn new(network: bool) -> Self {
        Self {
            supervised: program(network, libc::SECCOMP_RET_USER_NOTIF),
            strict: program(network, refusal(libc::EACCES)),
        }
    }

    /// For this thread and all that it starts. Makes system calls only, as the next one.
    pub fn install(&self) -> io::Result<()> {
        load(&self.strict, 0).map(drop)
    }

    /// The same; a supervisor at the other end of `channel` decides on modes, owners and times.
    pub fn install_supervised(&self, channel: RawFd) -> io::Result<()> {
        match load(&self.supervised, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER) {
            Ok(listener) => supervisor::send(channel, listener),
            // There is one already, of a sandbox around this one. It would decide by its own paths.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => self.install(),
            Err(error) => Err(error),
        }
    }
}

fn load(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        // The kernel only reads it.
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the program lives through the call, and its length is given.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    match RawFd::try_from(result) {
        Ok(fd) if fd >= 0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

fn refusal(errno: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

fn program(network: bool, supervised: u32) -> Vec<libc::sock_filter> {
    let mut code = vec![
        load_word(offset_of!(libc::seccomp_data, arch)),
        jump_unless(libc::BPF_JEQ, ARCH, 1),
        jump_always(1),
        answer(refusal(libc::EPERM)),
        load_word(offset_of!(libc::seccomp_data, nr)),
    ];
    // The calls of the x32 instruction set.
    if cfg!(target_arch = "x86_64") {
        code.push(jump_unless(libc::BPF_JGE, 0x4000_0000, 1));
        code.push(answer(refusal(libc::ENOSYS)));
    }
    let calls = SUPERVISED.iter().chain(SUPERVISED_HERE).map(|&nr| (nr, supervised));
    let attributes = ATTRIBUTES.iter().map(|&nr| (nr, refusal(libc::EOPNOTSUPP)));
    let unknown = UNKNOWN.iter().map(|&nr| (nr, refusal(libc::ENOSYS)));
    for (nr, action) in calls.chain(attributes).chain(unknown) {
        code.push(jump_unless(libc::BPF_JEQ, number(nr), 1));
        code.push(answer(action));
    }
    // From here on the number of the call is lost once an argument has been loaded.
    let no_ioctl = IOCTLS
        .iter()
        .flat_map(|&request| [jump_unless(libc::BPF_JEQ, request, 1), answer(refusal(libc::EPERM))]);
    let no_ioctl: Vec<_> = std::iter::once(load_argument(1)).chain(no_ioctl).collect();
    when(&mut code, libc::SYS_ioctl, no_ioctl);
    let no_socket = if network {
        vec![
            load_argument(0),
            jump_unless(libc::BPF_JEQ, libc::AF_UNIX.unsigned_abs(), 1),
            answer(refusal(libc::EACCES)),
        ]
    } else {
        vec![answer(refusal(libc::EACCES))]
    };
    when(&mut code, libc::SYS_socket, no_socket);
    code.push(answer(ALLOW));
    code
}

/// Does `then` for the call `nr`, and allows it at the end.
fn when(code: &mut Vec<libc::sock_filter>, nr: libc::c_long, then: Vec<libc::sock_filter>) {
    let skip = u8::try_from(then.len() + 1).unwrap_or(u8::MAX);
    code.push(jump_unless(libc::BPF_JEQ, number(nr), skip));
    code.extend(then);
    code.push(answer(ALLOW));
}

fn number(nr: libc::c_long) -> u32 {
    u32::try_from(nr).unwrap_or(u32::MAX)
}

fn load_argument(index: usize) -> libc::sock_filter {
    // The lower half, on machines with the lower half first.
    load_word(offset_of!(libc::seccomp_data, args) + 8 * index)
}

fn load_word(offset: usize) -> libc::sock_filter {
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// Goes on when the comparison holds, else leaves out `skip` instructions.
fn jump_unless(comparison: u32, value: u32, skip: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, value, 0, skip)
}

fn jump_always(skip: u32) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, skip, 0, 0)
}

fn answer(action: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = u16::try_from(code).unwrap_or(u16::MAX);
    libc::sock_filter { code, jt, jf, k }
}
