//! Keeps what tools start, and what they write, inside a workspace.
//!
//! Off by default. `workspace` allows writing below the working folder, the folder for temporary files
//! and listed paths; `read-only` nowhere. Neither opens the network unless told. Reading is not limited.
//!
//! The kernel enforces it, in the child before it becomes the command, and for file tools on a thread of
//! their own: a path that changes between a check and its use gains nothing. On Linux that is Landlock
//! for writing ([`landlock`]) and a system call filter for what Landlock does not cover ([`seccomp`],
//! [`supervisor`]); on macOS the profile of `sandbox-exec` (`seatbelt`). What this kernel cannot enforce
//! is an error where it is all of it, and else a gap that the user is told of.

pub mod confined;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "macos")]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod supervisor;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    ReadOnly,
    Workspace,
}

/// What is allowed.
#[derive(Clone, Debug)]
pub struct Policy {
    pub mode: Mode,
    /// May be written in, with all below: the working folder and listed paths. Not looked at when
    /// nothing may be written.
    pub writable: Vec<PathBuf>,
    pub network: bool,
}

/// Devices that keep nothing and reach nobody.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// A policy that this machine can enforce.
#[derive(Debug)]
pub struct Sandbox {
    mode: Mode,
    network: bool,
    /// Resolved, and there when pi started.
    writable: Vec<PathBuf>,
    gaps: Vec<&'static str>,
}

impl Sandbox {
    /// An error says why nothing can be enforced here, or which path is not there.
    pub fn new(policy: Policy) -> Result<Self, String> {
        let mut writable = Vec::new();
        if policy.mode == Mode::Workspace {
            for path in &policy.writable {
                let real = path.canonicalize().map_err(|error| {
                    format!("The sandbox cannot allow writing in {}: {error}", path.display())
                })?;
                writable.push(real);
            }
            let passing = [std::env::temp_dir(), "/dev/shm".into()];
            writable.extend(passing.iter().filter_map(|path| path.canonicalize().ok()));
            writable.dedup();
        }
        let gaps = platform::gaps().map_err(|reason| {
            format!(
                "The sandbox cannot be enforced here: {reason}. Use --sandbox off, or run pi in a container."
            )
        })?;
        Ok(Self { mode: policy.mode, network: policy.network, writable, gaps })
    }

    /// What stays open on this machine though the policy closes it.
    pub fn gaps(&self) -> &[&'static str] {
        &self.gaps
    }

    /// Whether `path`, with its links resolved, may be written.
    pub fn allows(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }

    /// A command that runs `program` confined, and what must live until it has been started.
    pub fn command(&self, program: &Path) -> io::Result<(Command, Confinement)> {
        platform::command(self, program)
    }

    /// Does `work` where it can write no more than a command could.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        platform::run(self, work)
    }

    /// For the model, when a command has failed and its output reads as if this was the reason.
    pub fn explain(&self, output: &str) -> Option<String> {
        const SIGNS: [&str; 12] = [
            "Permission denied",
            "permission denied",
            "Operation not permitted",
            "operation not permitted",
            "Read-only file system",
            "EACCES",
            "EPERM",
            "PermissionError",
            "Could not resolve host",
            "name resolution",
            "ENOTFOUND",
            "Network is unreachable",
        ];
        SIGNS
            .iter()
            .any(|sign| output.contains(sign))
            .then(|| format!("[This command ran in a sandbox. {self}]"))
    }
}

/// What is allowed, in a sentence or two.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            Mode::ReadOnly => f.write_str("It may write no file")?,
            Mode::Workspace => {
                let roots: Vec<_> = self.writable.iter().map(|root| root.display().to_string()).collect();
                write!(f, "It may write only in {}", roots.join(", "))?;
            }
        }
        f.write_str(if self.network { "." } else { ", and has no network." })
    }
}

/// What belongs to a command until it has been started. To be dropped then.
#[derive(Debug, Default)]
pub struct Confinement {
    /// The child's end of the channel that its listener comes over.
    #[cfg(target_os = "linux")]
    _channel: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
mod platform {
    use super::{Command, Confinement, DEVICES, Mode, Path, Sandbox, io};
    use super::{landlock, seccomp, supervisor};
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;

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
        if abi < 6 {
            gaps.push("other processes of yours can be sent signals (Linux 6.12 is needed)");
        }
        Ok(gaps)
    }

    fn ruleset(sandbox: &Sandbox) -> io::Result<landlock::Ruleset> {
        let devices = DEVICES.iter().map(PathBuf::from);
        let writable: Vec<PathBuf> = sandbox.writable.iter().cloned().chain(devices).collect();
        landlock::Ruleset::new(&writable, sandbox.network)
    }

    pub fn command(sandbox: &Sandbox, program: &Path) -> io::Result<(Command, Confinement)> {
        let ruleset = ruleset(sandbox)?;
        let channel = match sandbox.mode {
            Mode::ReadOnly => None,
            Mode::Workspace => Some(supervisor::start(sandbox.writable.clone())?),
        };
        let filter = seccomp::Filter::new(sandbox.network);
        let sender = channel.as_ref().map(AsRawFd::as_raw_fd);
        let mut command = Command::new(program);
        // SAFETY: between fork and exec only system calls are made, on memory that was made before.
        unsafe {
            command.pre_exec(move || {
                ruleset.restrict_this_thread()?;
                match sender {
                    None => filter.install(),
                    Some(sender) => filter.install_supervised(sender),
                }
            });
        }
        Ok((command, Confinement { _channel: channel }))
    }

    pub fn run<T: Send>(sandbox: &Sandbox, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let ruleset = ruleset(sandbox)?;
        std::thread::scope(|scope| {
            let confined = move || {
                ruleset.restrict_this_thread()?;
                work()
            };
            let thread = std::thread::Builder::new().name("pi-confined".into());
            match thread.spawn_scoped(scope, confined)?.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

#[cfg(target_os = "macos")]
mod platform {
    use super::{Command, Confinement, Path, Sandbox, io, seatbelt};

    pub fn gaps() -> Result<Vec<&'static str>, &'static str> {
        match Path::new(seatbelt::PROGRAM).exists() {
            true => Ok(vec!["file tools are checked by path only"]),
            false => Err("there is no /usr/bin/sandbox-exec"),
        }
    }

    pub fn command(sandbox: &Sandbox, program: &Path) -> io::Result<(Command, Confinement)> {
        let mut command = Command::new(seatbelt::PROGRAM);
        let profile = seatbelt::profile(&sandbox.writable, &super::DEVICES, sandbox.network);
        command.arg("-p").arg(profile).arg(program);
        Ok((command, Confinement::default()))
    }

    pub fn run<T: Send>(_: &Sandbox, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        work()
    }
}

#[cfg(test)]
mod tests;
