//! Decides on changes of mode, owner and times, by the path of the file.
//!
//! The kernel suspends a confined process that makes such a call until this thread has decided. The thread
//! reads the arguments from the process, opens the file without resolving any name twice, determines its real
//! path, and changes the opened file itself: nothing that the process does meanwhile can redirect it. The
//! path is compared with the current paths of the writable folders, by their descriptors. The thread ends
//! with the last filtered process.

use super::platform::{Root, name_of};
use crate::base::thread::Thread;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of `fchmodat2`, which is the same on every architecture.
pub const SYS_FCHMODAT2: libc::c_long = 452;

const PATH_BYTES_MAX: usize = 4096;

/// Buffer for one descriptor in a message.
const CONTROL_BYTES: usize = 64;

/// Starts a supervisor that allows changes at and below `roots`. Returns the channel over which a child sends
/// its listener; if all copies of the channel are closed without one, the supervisor ends.
pub fn start(roots: Arc<Vec<Root>>) -> io::Result<OwnedFd> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made both, and nobody else has them.
    let [own, child] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Thread::named("pi-sandbox").stack(128 << 10).start(move || {
        if let Ok(Some(listener)) = receive(&own) {
            drop(own);
            serve(&listener, &roots);
        }
    })?;
    Ok(child)
}

/// Sends the listener. Makes system calls only.
pub fn send(channel: RawFd, listener: RawFd) -> io::Result<()> {
    let mut byte = [0u8];
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = IoSliceMut::new(&mut byte);
    let mut message = message(&mut part, &mut control);
    // SAFETY: `message` names `control`, which has room for one header and one descriptor.
    let result = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(listener);
        libc::sendmsg(channel, &raw const message, libc::MSG_NOSIGNAL)
    };
    match result {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives the listener; `None` if the channel is closed without one.
fn receive(channel: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0u8];
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = IoSliceMut::new(&mut byte);
    let mut message = message(&mut part, &mut control);
    loop {
        // SAFETY: `message` names buffers that live through the call, with their lengths.
        let count = unsafe { libc::recvmsg(channel.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match count {
            0 => return Ok(None),
            1.. => break,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    // SAFETY: the kernel has filled `control`; the header is looked at only if there is one, and a
    // descriptor in it is ours alone.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_SOCKET
            || (*header).cmsg_type != libc::SCM_RIGHTS
        {
            return Ok(None);
        }
        let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Ok(Some(OwnedFd::from_raw_fd(fd)))
    }
}

#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

fn message(part: &mut IoSliceMut<'_>, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zero is a message without address, parts and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An IoSliceMut is an iovec, by its documentation.
    message.msg_iov = std::ptr::from_mut(part).cast();
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    message
}

fn serve(listener: &OwnedFd, roots: &[Root]) {
    while is_ready(listener) {
        // SAFETY: all zero is a valid structure, and what the kernel asks for.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        if ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &mut asked).is_err() {
            // The process has been killed meanwhile.
            continue;
        }
        let error = match decide(listener, &asked, roots) {
            Ok(()) => 0,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EACCES),
        };
        let mut answer = libc::seccomp_notif_resp { id: asked.id, val: 0, error, flags: 0 };
        let _ = ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer);
    }
}

/// Waits for a call. False if no process is left that could make one.
fn is_ready(listener: &OwnedFd) -> bool {
    loop {
        let mut polled = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives through the call.
        let count = unsafe { libc::poll(&raw mut polled, 1, -1) };
        if count > 0 {
            return polled.revents & libc::POLLIN != 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

fn ioctl<T>(listener: &OwnedFd, request: libc::Ioctl, value: &mut T) -> io::Result<()> {
    // SAFETY: each request here takes a pointer to a `T`, which lives through the call.
    match unsafe { libc::ioctl(listener.as_raw_fd(), request, std::ptr::from_mut(value)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The file that a system call changes.
enum Target {
    /// An empty path means the folder itself, if `may_be_empty`.
    Path {
        folder: libc::c_int,
        address: u64,
        follow: bool,
        may_be_empty: bool,
    },
    Open(libc::c_int),
}

enum Change {
    Mode(libc::mode_t),
    Owner(libc::uid_t, libc::gid_t),
    /// Address of the times in the memory of the process, and their form; address 0 means now.
    Times(u64, TimeForm),
}

#[derive(Clone, Copy)]
enum TimeForm {
    Nanoseconds,
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    #[cfg(target_arch = "x86_64")]
    Seconds,
}

/// Makes the change, if it is allowed.
fn decide(listener: &OwnedFd, asked: &libc::seccomp_notif, roots: &[Root]) -> io::Result<()> {
    let denied = || io::Error::from_raw_os_error(libc::EACCES);
    let (target, change) = parse(&asked.data).ok_or_else(denied)?;
    let process = Process::open(asked.pid)?;
    let path = process.path(&target)?;
    let times = match change {
        Change::Times(address, form) => Some(process.times(address, form)?),
        _ => None,
    };
    let file = process.find(&target, &path)?;
    // All that was read and opened until here is of this process, and of no later one of its number.
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut { asked.id })?;
    if !is_below(&file, roots)? {
        return Err(denied());
    }
    let name = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let result = match change {
        // SAFETY: the name is a C string that lives through the call, as in the next ones.
        Change::Mode(mode) => unsafe { libc::chmod(name.as_ptr(), mode & 0o7777) },
        // SAFETY: an empty name stands for the descriptor, which is open.
        Change::Owner(uid, gid) => unsafe {
            libc::fchownat(file.as_raw_fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH)
        },
        Change::Times(..) => {
            let times = times.flatten();
            let times = times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr());
            // SAFETY: the times are none or two, and live through the call.
            unsafe { libc::utimensat(libc::AT_FDCWD, name.as_ptr(), times, 0) }
        }
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// True if a file is at or below one of the roots.
fn is_below(file: &File, roots: &[Root]) -> io::Result<bool> {
    let place = name_of(file)?;
    for root in roots {
        // A file without a name any more is still in its mount.
        let is_below = place.starts_with(name_of(root)?);
        if is_below && (mount_of(file)? == mount_of(root)? || is_named(file, &place)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if `name` leads to `file` without any link. The kernel's name of a file begins at its mount: in a
/// detached mount, or one mounted elsewhere, that is the name of another file.
fn is_named(file: &File, name: &Path) -> io::Result<bool> {
    let name = CString::new(name.as_os_str().as_bytes())?;
    // SAFETY: all zero is a valid structure: no flags.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC).cast_unsigned().into();
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the name is a C string and the structure has the size given; both live through the call.
    let found = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            name.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    let Some(found) = RawFd::try_from(found).ok().filter(|&found| found >= 0) else {
        return Ok(false);
    };
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    let found = unsafe { File::from_raw_fd(found) };
    let (one, other) = (file.metadata()?, found.metadata()?);
    let is_same = (one.dev(), one.ino()) == (other.dev(), other.ino());
    Ok(is_same && mount_of(file)? == mount_of(&found)?)
}

/// Id of the mount in which a file was opened, unique while the file is open.
fn mount_of(file: &File) -> io::Result<u64> {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let number = facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The arguments of a call; registers are truncated to the call's types.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn parse(data: &libc::seccomp_data) -> Option<(Target, Change)> {
    let arg = data.args;
    let at = |folder: u64, address, flags: u64| Target::Path {
        folder: folder as libc::c_int,
        address,
        follow: flags as libc::c_int & libc::AT_SYMLINK_NOFOLLOW == 0,
        may_be_empty: flags as libc::c_int & libc::AT_EMPTY_PATH != 0,
    };
    #[cfg(target_arch = "x86_64")]
    let (here, nofollow) = (libc::AT_FDCWD as u64, libc::AT_SYMLINK_NOFOLLOW as u64);
    let open = |fd: u64| Target::Open(fd as libc::c_int);
    let mode = |mode: u64| Change::Mode(mode as libc::mode_t);
    let owner = |uid: u64, gid: u64| Change::Owner(uid as libc::uid_t, gid as libc::gid_t);
    Some(match libc::c_long::from(data.nr) {
        libc::SYS_fchmod => (open(arg[0]), mode(arg[1])),
        libc::SYS_fchmodat => (at(arg[0], arg[1], 0), mode(arg[2])),
        SYS_FCHMODAT2 => (at(arg[0], arg[1], arg[3]), mode(arg[2])),
        libc::SYS_fchown => (open(arg[0]), owner(arg[1], arg[2])),
        libc::SYS_fchownat => (at(arg[0], arg[1], arg[4]), owner(arg[2], arg[3])),
        // Without a path it is about the descriptor.
        libc::SYS_utimensat if arg[1] == 0 => (open(arg[0]), Change::Times(arg[2], TimeForm::Nanoseconds)),
        libc::SYS_utimensat => {
            let change = Change::Times(arg[2], TimeForm::Nanoseconds);
            (at(arg[0], arg[1], arg[3]), change)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (at(here, arg[0], 0), mode(arg[1])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (at(here, arg[0], 0), owner(arg[1], arg[2])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (at(here, arg[0], nofollow), owner(arg[1], arg[2])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (at(here, arg[0], 0), Change::Times(arg[1], TimeForm::Seconds)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => {
            let change = Change::Times(arg[1], TimeForm::Microseconds);
            (at(here, arg[0], 0), change)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let change = Change::Times(arg[2], TimeForm::Microseconds);
            (at(arg[0], arg[1], 0), change)
        }
        _ => return None,
    })
}

/// The calling process.
struct Process {
    folder: PathBuf,
    memory: File,
}

impl Process {
    fn open(pid: u32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        // What pi may do, a process that has given up its user may not.
        // SAFETY: asks for a number.
        let own = unsafe { libc::geteuid() };
        if user_for_files(&folder)? != own {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let memory = File::open(folder.join("mem"))?;
        Ok(Self { folder, memory })
    }

    /// The path as the process passed it; empty for a descriptor.
    fn path(&self, target: &Target) -> io::Result<PathBuf> {
        let Target::Path { address, .. } = target else {
            return Ok(PathBuf::new());
        };
        let mut bytes = [0; PATH_BYTES_MAX];
        let count = self.read(&mut bytes, *address)?;
        let text = CStr::from_bytes_until_nul(bytes.get(..count).unwrap_or_default())
            .map_err(|_| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        Ok(OsStr::from_bytes(text.to_bytes()).into())
    }

    fn times(&self, address: u64, form: TimeForm) -> io::Result<Option<[libc::timespec; 2]>> {
        if address == 0 {
            return Ok(None);
        }
        let numbers = match form {
            TimeForm::Nanoseconds => self.numbers::<4>(address)?,
            #[cfg(target_arch = "x86_64")]
            TimeForm::Microseconds => {
                let [a, b, c, d] = self.numbers::<4>(address)?;
                [a, b.saturating_mul(1000), c, d.saturating_mul(1000)]
            }
            #[cfg(target_arch = "x86_64")]
            TimeForm::Seconds => {
                let [access, modification] = self.numbers::<2>(address)?;
                [access, 0, modification, 0]
            }
        };
        let [a, b, c, d] = numbers;
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        Ok(Some([time(a, b), time(c, d)]))
    }

    fn numbers<const N: usize>(&self, address: u64) -> io::Result<[i64; N]> {
        let mut bytes = [0; 32];
        let wanted = bytes.get_mut(..8 * N).unwrap_or_default();
        self.memory.read_exact_at(wanted, address)?;
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *number = i64::from_ne_bytes(*bytes);
        }
        Ok(numbers)
    }

    fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<usize> {
        let fault = |_| io::Error::from_raw_os_error(libc::EFAULT);
        self.memory.read_at(bytes, address).map_err(fault)
    }

    /// Opens the file with `O_PATH`.
    fn find(&self, target: &Target, path: &Path) -> io::Result<File> {
        let (folder, follow, may_be_empty) = match target {
            Target::Open(fd) => return open(&self.folder.join(format!("fd/{fd}")), true),
            Target::Path { folder, follow, may_be_empty, .. } => (*folder, *follow, *may_be_empty),
        };
        if fs::read_link(self.folder.join("root"))? != Path::new("/") {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        // What is the process itself to the process is not so to this one.
        for own in ["/proc/self", "/proc/thread-self"] {
            if let Ok(rest) = path.strip_prefix(own) {
                return open(&self.folder.join(rest), follow);
            }
        }
        let base = match folder {
            libc::AT_FDCWD => self.folder.join("cwd"),
            fd => self.folder.join(format!("fd/{fd}")),
        };
        match path.as_os_str().is_empty() {
            true if may_be_empty => open(&base, true),
            true => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            false => open(&base.join(path), follow),
        }
    }
}

/// The user that a process has on file systems: usually its effective one, but it can be set separately.
fn user_for_files(process: &Path) -> io::Result<libc::uid_t> {
    let facts = fs::read_to_string(process.join("status"))?;
    let users = facts.lines().find_map(|line| line.strip_prefix("Uid:"));
    let last = users.and_then(|users| users.split_whitespace().nth(3)?.parse().ok());
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn open(path: &Path, follow: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
    fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | nofollow).open(path)
}

#[cfg(test)]
mod tests;
