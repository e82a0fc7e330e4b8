//! Where tools find files and processes.
//!
//! All tools go through this one trait, so that an editor, a container or another machine can stand
//! behind them. Limits, queues and diffs sit above it.

use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub trait Backend: Send + Sync {
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;
    /// Facts about a path, links followed.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// The entries of a folder, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Replaces a file's content, or makes the file: either the whole new content is there or the old.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Makes a folder and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The path with all links resolved; for a path that does not exist, its nearest parent resolved.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
}

pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: Kind,
    pub len: u64,
    pub modified: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    /// A device, pipe or socket: never opened by a tool, since that may block.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: std::ffi::OsString,
    /// Of the entry itself, links not followed.
    pub kind: Kind,
}
