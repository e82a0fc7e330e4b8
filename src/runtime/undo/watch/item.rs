//! What is known of a file, a link or a folder, and its path below the watched folder.

use crate::tools::ignore::Marks;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub type Hash = [u8; 32];

/// The part of a stat that changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub mode: u32,
    pub size: u64,
    pub inode: u64,
    /// In nanoseconds since 1970.
    pub mtime: i64,
    pub ctime: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The content; `None` if it was not read, since the file is too large or cannot be read.
    File(Option<Hash>),
    Link(Vec<u8>),
}

#[derive(Debug)]
pub struct Item {
    pub name: Box<CStr>,
    pub meta: Meta,
    pub what: What,
    /// True if the file may have changed after it was read without a trace in its stat.
    pub is_racy: bool,
}

#[derive(Debug)]
pub struct Folder {
    pub meta: Meta,
    pub marks: Marks,
    pub is_racy: bool,
    /// Files and links, by name.
    pub items: Vec<Item>,
    /// Names of folders inside, in order.
    pub folders: Vec<Vec<u8>>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    File { hash: Option<Hash>, mode: u32, size: u64 },
    Link(Vec<u8>),
    Folder { mode: u32 },
}

/// A change between two scans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the watched folder.
    pub path: PathBuf,
    pub before: Option<Thing>,
    pub after: Option<Thing>,
}

impl Meta {
    pub fn of(about: &Metadata) -> Self {
        Self {
            mode: about.mode(),
            size: about.size(),
            inode: about.ino(),
            mtime: nanoseconds(about.mtime(), about.mtime_nsec()),
            ctime: nanoseconds(about.ctime(), about.ctime_nsec()),
        }
    }
}

/// The stat of a name in an open folder, without following a link.
pub fn stat_at(folder: &File, name: &CStr) -> io::Result<Meta> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name is a C string that lives until the call returns, and the call fills the buffer or fails.
    let stat = unsafe {
        match libc::fstatat(folder.as_raw_fd(), name.as_ptr(), stat.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW) {
            0 => stat.assume_init(),
            _ => return Err(io::Error::last_os_error()),
        }
    };
    // Types differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    Ok(Meta {
        mode: u32::from(stat.st_mode),
        size: stat.st_size.cast_unsigned(),
        inode: stat.st_ino as u64,
        mtime: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    })
}

pub fn nanoseconds(seconds: i64, more: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(more)
}

/// The time in nanoseconds since 1970.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// True if a file could change after `now` without a trace in its stat.
pub fn is_racy(meta: &Meta, now: i64) -> bool {
    // Some file systems count seconds only.
    let resolution = if meta.ctime % 1_000_000_000 == 0 { 2_000_000_000 } else { 50_000_000 };
    now.saturating_sub(meta.ctime) < resolution
}

/// The bytes of an item that count towards the limit.
pub fn kept(item: &Item) -> u64 {
    match item.what {
        What::File(Some(_)) => item.meta.size,
        _ => 0,
    }
}

pub fn thing(item: &Item) -> Thing {
    match &item.what {
        What::File(hash) => Thing::File { hash: *hash, mode: item.meta.mode & 0o7777, size: item.meta.size },
        What::Link(target) => Thing::Link(target.clone()),
    }
}

pub fn is_rules(name: &[u8]) -> bool {
    matches!(name, b".gitignore" | b".ignore")
}

pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_vec(),
        false => [folder, b"/", name].concat(),
    }
}

/// The folder and the name of a relative path.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', path) {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// True if `path` is `folder` or lies below it.
pub fn is_within(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
