//! Enforces the sandbox on Linux: Landlock for files ([`landlock`]), a system call filter for what Landlock
//! does not cover ([`seccomp`], [`supervisor`]), and no capabilities but those on files ([`capability`]).

use super::{DEVICES, Policy, Sandbox, capability, landlock, seccomp, supervisor};
use crate::base::thread::Thread;
use crate::tools::process::descriptor;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub fn gaps() -> Result<Vec<&'static str>, &'static str> {
    let abi = landlock::abi()
        .ok_or("this kernel has no Landlock (Linux 5.13 and later have it, if it is switched on)")?;
    let mut gaps = Vec::new();
    if abi < 2 {
        gaps.push("files cannot be moved between folders (Linux 5.19 is needed)");
    }
    if abi < 3 {
        gaps.push("files outside can be cut to another length (Linux 6.2 is needed)");
    }
    if abi < 5 {
        gaps.push("terminals and devices of yours can be set to other modes (Linux 6.10 is needed)");
    }
    if abi < 6 {
        gaps.push("other processes of yours can be sent signals (Linux 6.12 is needed)");
    }
    Ok(gaps)
}

/// A folder or file opened with `O_PATH`.
pub type Root = File;

/// Opens `path`, and returns its name without links.
pub fn open(path: &Path) -> io::Result<(PathBuf, Root)> {
    let root = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    Ok((name_of(&root)?, root))
}

/// The current path of an open file.
pub fn name_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The confinement of every command. Created once, so that later changes of names have no effect.
#[derive(Debug)]
pub struct Rules {
    /// The working folder, and its name in the policy.
    cwd: Root,
    cwd_name: PathBuf,
    /// Folders below which modes, owners and times may be changed; empty if nothing is writable.
    roots: Arc<Vec<Root>>,
    ruleset: landlock::Ruleset,
    filter: seccomp::Filter,
}

impl Rules {
    pub fn new(roots: Vec<Root>, policy: &Policy) -> io::Result<Self> {
        let (_, cwd) = open(&policy.cwd)?;
        let ruleset = landlock::Ruleset::new(policy.network)?;
        for root in &roots {
            ruleset.allow_writing(root)?;
        }
        for device in DEVICES {
            if let Ok((_, device)) = open(Path::new(device)) {
                ruleset.allow_device(&device)?;
            }
        }
        if policy.terminal {
            let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
            if input.is_terminal() {
                ruleset.allow_device(&input)?;
            }
            if output.is_terminal() {
                ruleset.allow_device(&output)?;
            }
            if errors.is_terminal() {
                ruleset.allow_device(&errors)?;
            }
        }
        allow_reading(&ruleset)?;
        let filter = seccomp::Filter::new(policy.network);
        Ok(Self { cwd, cwd_name: policy.cwd.clone(), roots: Arc::new(roots), ruleset, filter })
    }
}

/// Allows reading everything, except in `/dev`: keys typed in other terminals, disks.
fn allow_reading(ruleset: &landlock::Ruleset) -> io::Result<()> {
    let mut places = vec![PathBuf::from("/dev/shm")];
    for entry in fs::read_dir("/")? {
        places.push(entry?.path());
    }
    for place in places.iter().filter(|place| **place != Path::new("/dev")) {
        // A rule on a link is not one on what it leads to. What cannot be opened cannot be read either.
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        if let Ok(place) = OpenOptions::new().read(true).custom_flags(flags).open(place) {
            ruleset.allow_reading(&place)?;
        }
    }
    Ok(())
}

/// The confinement of a command, kept until the command is started.
#[derive(Debug, Default)]
pub struct Confinement {
    /// The child's end of the channel for sending its listener.
    _channel: Option<OwnedFd>,
}

pub fn command(sandbox: &Sandbox, program: &Path, cwd: &Path) -> io::Result<(Command, Confinement)> {
    let rules = sandbox.rules.clone();
    let channel = match rules.roots.is_empty() {
        true => None,
        false => Some(supervisor::start(rules.roots.clone())?),
    };
    let sender = channel.as_ref().map(AsRawFd::as_raw_fd);
    let mut command = Command::new(program);
    let is_home = cwd == rules.cwd_name;
    if !is_home {
        command.current_dir(cwd);
    }
    // SAFETY: between fork and exec only system calls are made, on memory that was made before.
    unsafe {
        command.pre_exec(move || {
            if is_home {
                check(libc::fchdir(rules.cwd.as_raw_fd()).into())?;
            }
            descriptor::keep_from_programs()?;
            rules.ruleset.restrict_this_thread()?;
            capability::drop_all_but_files()?;
            match sender {
                None => rules.filter.install(),
                Some(sender) => rules.filter.install_supervised(sender),
            }
        });
    }
    Ok((command, Confinement { _channel: channel }))
}

pub fn run<T: Send>(sandbox: &Sandbox, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let ruleset = &sandbox.rules.ruleset;
    std::thread::scope(|scope| {
        let confined = move || {
            ruleset.restrict_this_thread()?;
            work()
        };
        match Thread::named("pi-confined").start_in(scope, confined)?.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Converts the return value of a system call to a result.
pub fn check(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
