//! System calls tried inside a sandbox, in a separate process.

use super::*;
use std::ffi::{CStr, CString};
use std::process::{Child, Command, Stdio};

/// Variable that makes the process run the calls; its value is the id of a process outside.
const VICTIM: &str = "PI_TEST_VICTIM";

/// A call, which gets the victim's process id, and its expected error; zero for success.
type Probe = (&'static str, fn(libc::c_int) -> libc::c_long, libc::c_int);

/// A system call that returns -1 with `errno` on failure.
fn call(number: libc::c_long, args: [usize; 5]) -> libc::c_long {
    let [a, b, c, d, e] = args;
    // SAFETY: each argument is a number or a pointer to what lives through the call; where a pointer is
    // wrong, the kernel answers so.
    unsafe { libc::syscall(number, a, b, c, d, e) }
}

const HERE: usize = libc::AT_FDCWD as usize;

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}

fn text(text: &CStr) -> usize {
    text.as_ptr().addr()
}

fn number(pid: libc::c_int) -> usize {
    usize::try_from(pid).expect("a process")
}

/// An ioctl on a file outside of the sandbox that is open read-only.
fn ioctl(name: &CStr, request: usize) -> libc::c_long {
    let fd = call(libc::SYS_openat, [HERE, text(name), 0, 0, 0]);
    let bytes = [0u64; 512];
    call(libc::SYS_ioctl, [usize::try_from(fd).expect("a file"), request, at(&bytes), 0, 0])
}

const FILE: &CStr = c"../out/file";
const FOLDER: &CStr = c"../out";

/// Calls with meaningless arguments: unless refused by the filter, they fail with another error.
macro_rules! refused {
    ($($name:ident => $errno:ident),* $(,)?) => {
        &[$((stringify!($name), |_| call(libc::$name, [0, 1, 1, 0, 0]), libc::$errno)),*]
    };
}

const CALLS: &[Probe] = refused! {
    SYS_mount => EPERM, SYS_umount2 => EPERM, SYS_pivot_root => EPERM, SYS_open_tree => EPERM,
    SYS_move_mount => EPERM, SYS_fsopen => EPERM, SYS_fsconfig => EPERM, SYS_fsmount => EPERM,
    SYS_fspick => EPERM, SYS_mount_setattr => EPERM, SYS_setns => EPERM, SYS_bpf => EPERM,
    SYS_perf_event_open => EPERM, SYS_fanotify_init => EPERM, SYS_init_module => EPERM,
    SYS_finit_module => EPERM, SYS_delete_module => EPERM, SYS_kexec_load => EPERM, SYS_reboot => EPERM,
    SYS_swapon => EPERM, SYS_swapoff => EPERM, SYS_quotactl => EPERM, SYS_quotactl_fd => EPERM,
    SYS_settimeofday => EPERM, SYS_clock_settime => EPERM, SYS_sethostname => EPERM,
    SYS_setdomainname => EPERM, SYS_syslog => EPERM, SYS_io_uring_setup => ENOSYS,
    SYS_open_by_handle_at => ENOSYS, SYS_add_key => ENOSYS, SYS_request_key => ENOSYS,
    SYS_keyctl => ENOSYS, SYS_shmget => EACCES, SYS_shmat => EACCES, SYS_shmctl => EACCES,
    SYS_semget => EACCES, SYS_semop => EACCES, SYS_semtimedop => EACCES, SYS_semctl => EACCES,
    SYS_msgget => EACCES, SYS_msgsnd => EACCES, SYS_msgrcv => EACCES, SYS_msgctl => EACCES,
    SYS_mq_open => EACCES, SYS_mq_unlink => EACCES, SYS_setxattr => EOPNOTSUPP,
    SYS_fsetxattr => EOPNOTSUPP, SYS_removexattr => EOPNOTSUPP,
};

const ARGUMENTS: &[Probe] = &[
    ("acct", |_| call(libc::SYS_acct, [1, 0, 0, 0, 0]), libc::EPERM),
    ("open_tree_attr", |_| call(467, [HERE, 1, 0, 0, 0]), libc::EPERM),
    ("setxattrat", |_| call(463, [HERE, 1, 0, 0, 0]), libc::ENOSYS),
    ("file_setattr", |_| call(469, [HERE, 1, 0, 0, 0]), libc::ENOSYS),
    ("a character device", |_| mknod(libc::S_IFCHR, 0x103), libc::EPERM),
    ("a block device", |_| mknod(libc::S_IFBLK, 0x700), libc::EPERM),
    ("limits of another", |pid| prlimit(pid, true), libc::EPERM),
    ("limits of another, asked for", |pid| prlimit(pid, false), 0),
    ("limits", |_| prlimit(0, true), 0),
    ("priority of another", |pid| call(libc::SYS_setpriority, [0, number(pid), 5, 0, 0]), libc::EPERM),
    ("priority of a group", |_| call(libc::SYS_setpriority, [1, 0, 5, 0, 0]), libc::EPERM),
    ("priority of a user", |_| call(libc::SYS_setpriority, [2, 0, 5, 0, 0]), libc::EPERM),
    ("priority", |_| call(libc::SYS_setpriority, [0, 0, 19, 0, 0]), 0),
    ("disk priority of another", |pid| ioprio(1, pid), libc::EPERM),
    ("disk priority of a group", |_| ioprio(2, 0), libc::EPERM),
    ("disk priority of a user", |_| ioprio(3, 0), libc::EPERM),
    ("disk priority", |_| ioprio(1, 0), 0),
    ("processors of another", affinity, libc::EPERM),
    ("processors", |_| affinity(0), 0),
    ("scheduler of another", |pid| call(libc::SYS_sched_setscheduler, scheduling(pid)), libc::EPERM),
    ("scheduler", |_| call(libc::SYS_sched_setscheduler, scheduling(0)), 0),
    ("parameters of another", |pid| call(libc::SYS_sched_setparam, scheduling(pid)), libc::EPERM),
    ("attributes of another", |pid| call(libc::SYS_sched_setattr, scheduling(pid)), libc::EPERM),
    // PTRACE_SEIZE.
    ("tracing another", |pid| call(libc::SYS_ptrace, [0x4206, number(pid), 0, 0, 0]), libc::EPERM),
    ("memory of another", |pid| open(&file_of(pid, "mem"), libc::O_RDWR), libc::EACCES),
    ("a descriptor of another", |pid| open(&file_of(pid, "fd/1"), libc::O_RDONLY), libc::EACCES),
    ("descriptors of another", |pid| pidfd(pid, libc::SYS_pidfd_getfd), libc::EPERM),
    ("signals by descriptor", |pid| pidfd(pid, libc::SYS_pidfd_send_signal), libc::EPERM),
    ("signals", |pid| call(libc::SYS_kill, [number(pid), 0, 0, 0, 0]), libc::EPERM),
    ("a stream pair", |_| pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), 0),
    ("a pair of packets", |_| pair(libc::SOCK_SEQPACKET), 0),
    ("a datagram pair", |_| pair(libc::SOCK_DGRAM | libc::SOCK_NONBLOCK), libc::EACCES),
    ("a raw pair", |_| pair(libc::SOCK_RAW), libc::EACCES),
    ("a stream socket", |_| socket(libc::AF_UNIX, libc::SOCK_STREAM), libc::EACCES),
    ("a datagram socket", |_| socket(libc::AF_UNIX, libc::SOCK_DGRAM), libc::EACCES),
    // FS_IOC_SETFLAGS, and with bits that the kernel does not look at.
    ("flags", |_| ioctl(FILE, 0x4008_6602), libc::EPERM),
    ("flags, high bits", |_| ioctl(FILE, 0xff_4008_6602), libc::EPERM),
    ("version", |_| ioctl(FILE, 0x4008_7602), libc::EPERM),
    ("version of ext4", |_| ioctl(FILE, 0x4008_6604), libc::EPERM),
    ("extended flags", |_| ioctl(FILE, 0x401c_5820), libc::EPERM),
    ("attributes of FAT", |_| ioctl(FILE, 0x4004_7211), libc::EPERM),
    ("verity", |_| ioctl(FILE, 0x4080_6685), libc::EPERM),
    ("encryption", |_| ioctl(FOLDER, 0x800c_6613), libc::EPERM),
    ("a subvolume", |_| ioctl(FOLDER, 0x5000_940e), libc::EPERM),
    ("a subvolume's end", |_| ioctl(FOLDER, 0x5000_943f), libc::EPERM),
    ("trimming", |_| ioctl(FOLDER, 0xc018_5879), libc::EPERM),
    ("asking for flags", |_| flags_can_be_asked_for(), 0),
    ("a mode of what has no name", |_| refused_or(mode_of(c""), libc::ENOENT), libc::ENOENT),
    ("a mode for another user", |_| mode_for_another_user(), libc::EPERM),
    // TIOCSTI, TIOCLINUX.
    ("faked input", |_| call(libc::SYS_ioctl, [0, 0x5412, 0, 0, 0]), libc::EPERM),
    ("a selection", |_| call(libc::SYS_ioctl, [0, 0x541c, 0, 0, 0]), libc::EPERM),
    ("a file without a name", |_| open(FOLDER, libc::O_TMPFILE | libc::O_WRONLY), libc::EACCES),
    ("a new file", |_| open(c"../out/new", libc::O_CREAT | libc::O_WRONLY), libc::EACCES),
    ("an exchange", |_| rename(2), libc::EACCES),
    ("a move", |_| rename(0), libc::EACCES),
    (
        "a second name",
        |_| call(libc::SYS_linkat, [HERE, text(FILE), HERE, text(c"../out/new"), 0]),
        libc::EACCES,
    ),
];

#[cfg(target_arch = "x86_64")]
const HERE_ONLY: &[Probe] = &[
    ("iopl", |_| call(libc::SYS_iopl, [0; 5]), libc::EPERM),
    ("ioperm", |_| call(libc::SYS_ioperm, [0; 5]), libc::EPERM),
    ("mknod", |_| call(libc::SYS_mknod, [text(c"device"), 0o20_600, 0x103, 0, 0]), libc::EPERM),
    ("the other numbers", |_| call(0x4000_0000 | libc::SYS_getpid, [0; 5]), libc::ENOSYS),
];
#[cfg(not(target_arch = "x86_64"))]
const HERE_ONLY: &[Probe] = &[];

fn mknod(kind: libc::mode_t, device: usize) -> libc::c_long {
    call(libc::SYS_mknodat, [HERE, text(c"device"), kind as usize | 0o600, device, 0])
}

fn prlimit(pid: libc::c_int, is_new: bool) -> libc::c_long {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives through the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let (new, old) = if is_new { (at(&limit), 0) } else { (0, at(&limit)) };
    call(libc::SYS_prlimit64, [number(pid), libc::RLIMIT_NOFILE as usize, new, old, 0])
}

/// Sets the best of the normal I/O priorities.
fn ioprio(kind: usize, pid: libc::c_int) -> libc::c_long {
    call(libc::SYS_ioprio_set, [kind, number(pid), 2 << 13, 0, 0])
}

fn affinity(pid: libc::c_int) -> libc::c_long {
    let mask = [0u64; 128];
    let bytes = size_of_val(&mask);
    let bytes = usize::try_from(call(libc::SYS_sched_getaffinity, [0, bytes, at(&mask), 0, 0])).unwrap_or(0);
    call(libc::SYS_sched_setaffinity, [number(pid), bytes, at(&mask), 0, 0])
}

/// Arguments for scheduling as a batch job.
fn scheduling(pid: libc::c_int) -> [usize; 5] {
    static PARAMETERS: [u32; 32] = [0; 32];
    [number(pid), libc::SCHED_BATCH as usize, at(&PARAMETERS), 0, 0]
}

fn file_of(pid: libc::c_int, name: &str) -> CString {
    CString::new(format!("/proc/{pid}/{name}")).expect("a name")
}

fn pidfd(pid: libc::c_int, then: libc::c_long) -> libc::c_long {
    let fd = usize::try_from(call(libc::SYS_pidfd_open, [number(pid), 0, 0, 0, 0])).expect("a process");
    call(then, [fd, 0, 0, 0, 0])
}

fn pair(kind: libc::c_int) -> libc::c_long {
    let ends = [0u32; 2];
    call(libc::SYS_socketpair, [libc::AF_UNIX as usize, kind as usize, 0, at(&ends), 0])
}

fn socket(family: libc::c_int, kind: libc::c_int) -> libc::c_long {
    call(libc::SYS_socket, [family as usize, kind as usize, 0, 0, 0])
}

fn open(name: &CStr, flags: libc::c_int) -> libc::c_long {
    call(libc::SYS_openat, [HERE, text(name), flags as usize, 0o600, 0])
}

fn rename(flags: usize) -> libc::c_long {
    call(libc::SYS_renameat2, [HERE, text(c"file"), HERE, text(FILE), flags])
}

fn mode_of(name: &CStr) -> libc::c_long {
    call(libc::SYS_fchmodat, [HERE, text(name), 0o700, 0, 0])
}

/// Expects `errno` also if modes are refused before the arguments are checked.
fn refused_or(result: libc::c_long, errno: libc::c_int) -> libc::c_long {
    if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EACCES) {
        // SAFETY: the number is this thread's own.
        unsafe { *libc::__errno_location() = errno };
    }
    result
}

/// Root can change the user for file access alone; other users cannot, and try to make a device.
fn mode_for_another_user() -> libc::c_long {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        return mknod(libc::S_IFCHR, 0x103);
    }
    call(libc::SYS_setfsuid, [65_534, 0, 0, 0, 0]);
    let result = refused_or(mode_of(c"file"), libc::EPERM);
    call(libc::SYS_setfsuid, [0; 5]);
    result
}

/// Some file systems have no flags, but none forbids the query.
fn flags_can_be_asked_for() -> libc::c_long {
    let result = ioctl(FILE, 0x8008_6601);
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOTTY) => 0,
        _ => result,
    }
}

/// Runs the calls, and prints each result with the error's number.
fn make(probes: &[Probe], victim: libc::c_int) {
    for (name, probe, _) in probes {
        let errno = match probe(victim) {
            0.. => 0,
            _ => io::Error::last_os_error().raw_os_error().unwrap_or(0),
        };
        println!("=\t{name}\t{errno}");
    }
}

#[test]
#[ignore = "makes calls in a sandbox that another test puts around it"]
fn calls() {
    let Some(victim) = std::env::var(VICTIM).ok().and_then(|victim| victim.parse().ok()) else {
        return;
    };
    make(ARGUMENTS, victim);
    make(HERE_ONLY, victim);
    make(CALLS, victim);
    // In a namespace of its own a process has all capabilities, as far as the namespace goes.
    let _ = call(libc::SYS_unshare, [(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize, 0, 0, 0, 0]);
    make(CALLS, victim);
}

/// A process outside; killed on drop.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("a process"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_call_reaches_what_is_outside() {
    let program = std::env::current_exe().unwrap();
    let expected = [ARGUMENTS, HERE_ONLY, CALLS, CALLS].concat();
    for (mode, network) in [(Mode::Workspace, false), (Mode::ReadOnly, true)] {
        let Some(world) = World::new(mode, network) else {
            return;
        };
        let mut victim = Victim::start();
        let (_, output) = world.sh(&format!(
            "{VICTIM}={} '{}' --ignored --exact tools::sandbox::tests::probe::calls --nocapture --test-threads=1",
            victim.0.id(),
            program.display()
        ));
        let lines = output.lines().filter_map(|line| line.split_once("=\t")?.1.split_once('\t'));
        let seen: Vec<(&str, &str)> = lines.collect();
        assert_eq!(seen.len(), expected.len(), "{output}");
        // Without scopes of Landlock there is a gap, of which the user is told.
        let has_scopes = world.backend.sandbox.gaps().is_empty();
        for ((name, errno), (expected_name, _, expected)) in seen.iter().zip(&expected) {
            if has_scopes || !name.starts_with("signals") {
                assert_eq!((*name, *errno), (*expected_name, &*expected.to_string()), "{mode:?}");
            }
        }
        assert_eq!(fs::read_dir(world.path("out")).unwrap().count(), 1);
        assert_eq!(victim.0.try_wait().unwrap(), None);
    }
}
