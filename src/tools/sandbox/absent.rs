//! A build without a sandbox: creating one fails.

use super::{Policy, Sandbox};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn gaps() -> Result<Vec<&'static str>, String> {
    Err(crate::base::feature::absent("sandbox"))
}

pub type Root = PathBuf;

pub fn open(path: &Path) -> io::Result<(PathBuf, Root)> {
    Ok((path.to_owned(), path.to_owned()))
}

/// Uninhabited: no sandbox has rules.
#[derive(Debug)]
pub enum Rules {}

impl Rules {
    pub fn new(_: Vec<Root>, _: &Policy) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug, Default)]
pub struct Confinement(());

pub fn command(sandbox: &Sandbox, _: &Path, _: &Path) -> io::Result<(Command, Confinement)> {
    match *sandbox.rules {}
}

pub fn run<T: Send>(sandbox: &Sandbox, _: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    match *sandbox.rules {}
}
