//! The lock of the reference: a folder `NAME.lock` beside a file, made by who changes the file and removed
//! after that.
//!
//! A folder cannot be waited for, so who waits looks at it again and again.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Held until dropped.
pub struct FolderLock(PathBuf);

impl FolderLock {
    /// Where the lock of the file at `path` lies.
    pub fn place(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }

    /// Takes the lock of the file at `path`; none while somebody else holds it. One that `is_left` by a program
    /// that died is removed.
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

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
