//! Enforces the sandbox on macOS by a profile for `sandbox-exec`.

use super::{DEVICES, Policy, Sandbox};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "/usr/bin/sandbox-exec";

pub fn gaps() -> Result<Vec<&'static str>, &'static str> {
    match Path::new(PROGRAM).exists() {
        true => Ok(vec!["file tools are checked by path only"]),
        false => Err("there is no /usr/bin/sandbox-exec"),
    }
}

/// A folder by name, since profiles contain names.
pub type Root = PathBuf;

/// The name of `path` without links.
pub fn open(path: &Path) -> io::Result<(PathBuf, Root)> {
    let real = path.canonicalize()?;
    Ok((real.clone(), real))
}

/// The profile for every command.
#[derive(Debug)]
pub struct Rules(String);

impl Rules {
    #[allow(clippy::unnecessary_wraps)] // it can fail elsewhere
    pub fn new(roots: Vec<Root>, policy: &Policy) -> io::Result<Self> {
        Ok(Self(profile(&roots, policy.network)))
    }
}

/// The confinement of a command until it is started: empty on macOS.
#[derive(Debug, Default)]
pub struct Confinement;

pub fn command(sandbox: &Sandbox, program: &Path, cwd: &Path) -> io::Result<(Command, Confinement)> {
    let mut command = Command::new(PROGRAM);
    command.arg("-p").arg(&sandbox.rules.0).arg(program).current_dir(cwd);
    Ok((command, Confinement))
}

pub fn run<T: Send>(_: &Sandbox, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    work()
}

/// Allows everything except writing elsewhere and, unless `network`, sockets.
fn profile(writable: &[PathBuf], network: bool) -> String {
    let mut profile = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let devices = DEVICES.iter().map(PathBuf::from);
    for path in writable.iter().cloned().chain(devices) {
        let path = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
        // A later rule wins.
        let _ = writeln!(profile, "(allow file-write* (subpath \"{path}\"))");
    }
    if !network {
        profile.push_str("(deny network*)\n");
    }
    profile
}
