//! The local backend inside a sandbox.

use super::super::backend::{Backend, Child, DirEntry, ShellCommand, Source, Stat};
use super::super::local::Local;
use super::super::process;
use super::Sandbox;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub struct Confined {
    pub sandbox: Arc<Sandbox>,
}

impl Confined {
    /// Returns the error with the reason. The kernel enforces the rule, whatever the path becomes meanwhile.
    fn check(&self, path: &Path) -> io::Result<()> {
        if self.sandbox.allows(&Local.canonical(path)?) {
            return Ok(());
        }
        let reason = format!("the sandbox forbids it. {}", self.sandbox);
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }
}

impl Backend for Confined {
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.check(path)?;
        self.sandbox.run(|| Local.write(path, content))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        self.check(path)?;
        self.sandbox.run(|| Local.create_dir_all(path))
    }

    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        Ok(Box::new(process::spawn(command, Some(&self.sandbox))?))
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        Some(&self.sandbox)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Local.open(path)
    }

    fn open_listed(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Local.open_listed(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Local.stat(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        Local.list(path)
    }

    fn each_entry(&self, path: &Path, visit: &mut dyn FnMut(DirEntry) -> ControlFlow<()>) -> io::Result<()> {
        Local.each_entry(path, visit)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Local.canonical(path)
    }
}
