//! Keeps what tools start, and what they write, inside a workspace.
//!
//! Off by default. `workspace` allows writing below the working folder, the folder for temporary files
//! and listed paths; `read-only` nowhere. Neither opens the network unless told. Reading is not limited.
//!
//! The kernel enforces it, in the child before it becomes the command, and for file tools on a thread of
//! their own: a path that changes between a check and its use gains nothing. Folders are opened once, at
//! the start: a name that leads elsewhere later gains nothing either. How it is done is in `platform`, one
//! for Linux, one for macOS, and one for a build without a sandbox. What this kernel cannot enforce is an error where it is all of it, and
//! else a gap that the user is told of.

#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod capability;
pub mod confined;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod landlock;
#[cfg_attr(all(feature = "sandbox", target_os = "linux"), path = "linux.rs")]
#[cfg_attr(all(feature = "sandbox", target_os = "macos"), path = "macos.rs")]
#[cfg_attr(not(feature = "sandbox"), path = "absent.rs")]
mod platform;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod seccomp;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod supervisor;

pub use platform::Confinement;

use platform::{Root, Rules};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    ReadOnly,
    Workspace,
}

/// What tools and commands may do.
#[derive(Clone, Debug)]
pub struct Policy {
    pub mode: Mode,
    /// The working folder. In a workspace it may be written in, with all below.
    pub cwd: PathBuf,
    /// Other folders that may be written in. Without effect when nothing may be written.
    pub writable: Vec<PathBuf>,
    pub network: bool,
    /// A command may open the terminals that are pi's input and output.
    pub terminal: bool,
}

/// Devices that keep nothing and reach nobody. The last one is a command's own terminal, if it has one.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// A policy that this machine can enforce.
#[derive(Debug)]
pub struct Sandbox {
    mode: Mode,
    network: bool,
    /// Names of the folders that may be written in, without links, as they were when pi started.
    writable: Vec<PathBuf>,
    gaps: Vec<&'static str>,
    rules: Arc<Rules>,
}

impl Sandbox {
    /// An error says why nothing can be enforced here, or which path is not there.
    pub fn new(policy: Policy) -> Result<Self, String> {
        Self::with_passing(policy, &[std::env::temp_dir(), "/dev/shm".into()])
    }

    /// `passing` are folders for temporary files, as far as they are there.
    fn with_passing(policy: Policy, passing: &[PathBuf]) -> Result<Self, String> {
        let cannot = |reason: &dyn fmt::Display| {
            format!(
                "The sandbox cannot be enforced here: {reason}. Use --sandbox off, or run pi in a container."
            )
        };
        let gaps = platform::gaps().map_err(|reason| cannot(&reason))?;
        let open = |path: &PathBuf| {
            let opened = platform::open(path);
            opened.map_err(|error| format!("The sandbox cannot open {}: {error}", path.display()))
        };
        let mut roots: Vec<(PathBuf, Root)> = Vec::new();
        if policy.mode == Mode::Workspace {
            roots =
                std::iter::once(&policy.cwd).chain(&policy.writable).map(open).collect::<Result<_, _>>()?;
            roots.extend(passing.iter().filter_map(|path| platform::open(path).ok()));
            roots.dedup_by(|(name, _), (before, _)| name == before);
        }
        let (writable, roots) = roots.into_iter().unzip();
        let rules = Rules::new(roots, &policy).map_err(|error| cannot(&error))?;
        let Policy { mode, network, .. } = policy;
        Ok(Self { mode, network, writable, gaps, rules: Arc::new(rules) })
    }

    /// Parts of the policy that this machine cannot enforce.
    pub fn gaps(&self) -> &[&'static str] {
        &self.gaps
    }

    /// True if `path`, with its links resolved, may be written.
    pub fn allows(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }

    /// A command that runs `program` in `cwd`, confined, and what must live until it has been started.
    pub fn command(&self, program: &Path, cwd: &Path) -> io::Result<(Command, Confinement)> {
        platform::command(self, program, cwd)
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

/// The policy in a sentence or two.
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

#[cfg(all(test, feature = "sandbox"))]
mod tests;
