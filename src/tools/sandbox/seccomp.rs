//! A system call filter for what Landlock does not cover.
//!
//! Refused are sockets (all of them without network; those of Unix always, since one may lead to a
//! service that writes for others), shared memory and queues that have no path, changes to other processes,
//! extended attributes, what else changes a file that is open for reading only, input faked on a terminal,
//! what a system is managed with, and the ways around a filter: io_uring, other instruction sets. Changes
//! of mode, owner and times are decided by path, which a filter cannot see: they go to the
//! [`super::supervisor`], or are refused where nothing may be written.

use super::supervisor;
use std::io;
use std::mem::offset_of;
use std::os::fd::RawFd;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Calls that change metadata of a file: mode, owner, times.
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

/// Extended attributes, which programs can do without, since some file systems lack them.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Calls that fail as if unsupported: io_uring, `setxattrat`, `removexattrat`, `file_setattr`, whose numbers
/// are the same everywhere; opening by handle, which needs no path; keys, which belong to the user and can be
/// requested from programs outside.
const UNKNOWN: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    463,
    466,
    469,
    libc::SYS_open_by_handle_at,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Memory, semaphores and queues that other processes find by a number, or by a name outside of the file
/// system. Sharing by a file, or between parent and children, is not affected.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// System management. Some calls work without privileges in a namespace of the command's own: a mount made
/// there gives files other names.
const MANAGING: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const MANAGING_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const MANAGING_HERE: &[libc::c_long] = &[];

/// Number of `open_tree_attr`, which is the same on every architecture.
const OPEN_TREE_ATTR: libc::c_long = 467;
/// Number of `kexec_file_load`, which some versions of the C library lack.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = 320;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: libc::c_long = 294;

/// Calls on the process in the first argument; zero is the caller.
const SCHEDULING: &[libc::c_long] = &[
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];

/// `PRIO_PROCESS`.
const PRIORITY_PROCESS: u32 = 0;
/// `IOPRIO_WHO_PROCESS`.
const IOPRIO_PROCESS: u32 = 1;

/// `TIOCSTI`, `TIOCLINUX`, `FAT_IOCTL_SET_ATTRIBUTES`.
const IOCTLS: &[u32] = &[0x5412, 0x541c, 0x4004_7211];

/// Type letters of ioctls on files, folders and file systems: `f` and `v` of ext2 and its successors, `X` of
/// XFS, those of Btrfs, F2FS, Ceph and bcachefs. Many of them change files that are open for reading only.
const FILE_SYSTEMS: &[u32] = &[0x66, 0x76, 0x58, 0x94, 0xf5, 0x97, 0xbc];

/// Allowed ioctls, which only query, or write to a file that is open for writing: flags and version, extents,
/// `FICLONE`, `FICLONERANGE`, `FIDEDUPERANGE`, the label, and information about a Btrfs.
const ASKING: &[u32] = &[
    0x8008_6601,
    0x8008_6603,
    0x8008_7601,
    0x801c_581f,
    0xc020_660b,
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
    0x8100_9431,
    0x8400_941f,
];

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

    /// Installs the filter for this thread and its children. Makes system calls only.
    pub fn install(&self) -> io::Result<()> {
        load(&self.strict, 0).map(drop)
    }

    /// Installs the filter with a supervisor at the other end of `channel`, which decides on modes, owners
    /// and times. Makes system calls only.
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
    let tables = [
        (SUPERVISED, supervised),
        (SUPERVISED_HERE, supervised),
        (ATTRIBUTES, refusal(libc::EOPNOTSUPP)),
        (UNKNOWN, refusal(libc::ENOSYS)),
        (SHARED, refusal(libc::EACCES)),
        (MANAGING, refusal(libc::EPERM)),
        (MANAGING_HERE, refusal(libc::EPERM)),
    ];
    for (calls, action) in tables {
        for &nr in calls {
            code.extend(answer_if(number(nr), action));
        }
    }
    // From here on the number of the call is lost once an argument has been loaded.
    when(&mut code, libc::SYS_ioctl, ioctl());
    when(&mut code, libc::SYS_socket, socket(network));
    when(&mut code, libc::SYS_socketpair, socketpair());
    #[cfg(target_arch = "x86_64")]
    when(&mut code, libc::SYS_mknod, mknod(1));
    when(&mut code, libc::SYS_mknodat, mknod(2));
    for &nr in SCHEDULING {
        when(&mut code, nr, unless_zero(load_argument(0)).into());
    }
    when(&mut code, libc::SYS_setpriority, process_itself(PRIORITY_PROCESS));
    when(&mut code, libc::SYS_ioprio_set, process_itself(IOPRIO_PROCESS));
    when(&mut code, libc::SYS_prlimit64, prlimit());
    code.push(answer(ALLOW));
    code
}

fn ioctl() -> Vec<libc::sock_filter> {
    let mut code = vec![load_argument(1)];
    code.extend(IOCTLS.iter().flat_map(|&request| answer_if(request, refusal(libc::EPERM))));
    code.extend(ASKING.iter().flat_map(|&request| answer_if(request, ALLOW)));
    code.push(compute(libc::BPF_RSH, 8));
    code.push(compute(libc::BPF_AND, 0xff));
    code.extend(FILE_SYSTEMS.iter().flat_map(|&letter| answer_if(letter, refusal(libc::EPERM))));
    code
}

fn socket(network: bool) -> Vec<libc::sock_filter> {
    let refused = refusal(libc::EACCES);
    match network {
        true => [&[load_argument(0)][..], &answer_if(libc::AF_UNIX.unsigned_abs(), refused)].concat(),
        false => vec![answer(refused)],
    }
}

/// Refuses datagram pairs, which can send to any socket by path; other pairs are connected to each other.
fn socketpair() -> Vec<libc::sock_filter> {
    const KIND: u32 = 0xf;
    let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
    let mut code = vec![load_argument(1), compute(libc::BPF_AND, KIND)];
    code.extend(kinds.iter().flat_map(|kind| answer_if(kind.unsigned_abs(), ALLOW)));
    code.push(answer(refusal(libc::EACCES)));
    code
}

/// Refuses device nodes. `mode` is the index of the mode argument.
fn mknod(mode: usize) -> Vec<libc::sock_filter> {
    let mut code = vec![load_argument(mode), compute(libc::BPF_AND, libc::S_IFMT)];
    let devices = [libc::S_IFCHR, libc::S_IFBLK];
    code.extend(devices.iter().flat_map(|&kind| answer_if(kind, refusal(libc::EPERM))));
    code
}

/// Allows only the calling process itself, with `kind` as first argument: no group or user.
fn process_itself(kind: u32) -> Vec<libc::sock_filter> {
    let mut code = vec![load_argument(0), jump_if(kind, 1), answer(refusal(libc::EPERM))];
    code.extend(unless_zero(load_argument(1)));
    code
}

/// Allows querying, but not setting, limits of another process.
fn prlimit() -> Vec<libc::sock_filter> {
    let new_limit = [unless_zero(load_argument(2)), unless_zero(load_upper(2))].concat();
    let skip = u8::try_from(new_limit.len()).unwrap_or(u8::MAX);
    [vec![load_argument(0), jump_if(0, skip)], new_limit].concat()
}

/// Refuses if the value loaded by `load` is not zero.
fn unless_zero(load: libc::sock_filter) -> [libc::sock_filter; 3] {
    [load, jump_if(0, 1), answer(refusal(libc::EPERM))]
}

fn answer_if(value: u32, action: u32) -> [libc::sock_filter; 2] {
    [jump_unless(libc::BPF_JEQ, value, 1), answer(action)]
}

/// Appends `then` for the system call `nr`, followed by allowing it.
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

fn load_upper(index: usize) -> libc::sock_filter {
    load_word(offset_of!(libc::seccomp_data, args) + 8 * index + 4)
}

fn load_word(offset: usize) -> libc::sock_filter {
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// Continues if the comparison holds, otherwise skips `skip` instructions.
fn jump_unless(comparison: u32, value: u32, skip: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, value, 0, skip)
}

/// Skips `skip` instructions if the loaded value is `value`.
fn jump_if(value: u32, skip: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, skip, 0)
}

/// Modifies the loaded value.
fn compute(operation: u32, value: u32) -> libc::sock_filter {
    instruction(libc::BPF_ALU | operation | libc::BPF_K, value, 0, 0)
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
