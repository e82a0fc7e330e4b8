//! The reference's lock: a folder `NAME.lock` beside a file, created before a change of the file and removed
//! after it.
//!
//! A folder cannot be waited for, so waiting means polling.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock, held until dropped.
pub struct FolderLock(PathBuf);

impl FolderLock {
    /// Path of the lock for the file at `path`.
    pub fn place(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }

    /// Takes the lock of the file at `path`; `None` while another process holds it. A lock that `is_left` by
    /// a dead program is removed.
    pub fn take(path: &Path, is_left: impl Fn(&Metadata) -> bool) -> io::Result<Option<Self>> {
        let place = Self::place(path);
        loop {
            match DirBuilder::new().mode(0o700).create(&place) {
                Ok(()) => return Ok(Some(Self(place))),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
            let is_left = fs::symlink_metadata(&place).is_ok_and(|about| is_left(&about));
            if !is_left || fs::remove_dir(&place).is_err() {
                return Ok(None);
            }
        }
    }
}

/// True if a lock was touched longer ago than `age`, or is that far in the future: the clock was set back since then.
pub fn is_older(lock: &Metadata, age: Duration) -> bool {
    let Ok(touched) = lock.modified() else {
        return false;
    };
    touched.elapsed().unwrap_or_else(|ahead| ahead.duration()) > age
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
