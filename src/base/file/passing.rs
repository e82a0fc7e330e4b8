//! Temporary files and folders, accessible to their owner only, removed on drop.
//!
//! The end of a process drops not all values, so [`remove_all`] is called there. What a killed process left is found
//! by the next one that makes such a folder: a folder is locked by its process.

use super::create_private;
use super::temp::with_new_name;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Ends the names of folders that their processes lock. One without it may be in use by a build that locks none.
const LOCKED: &str = ".locked";

/// A folder without a lock that is younger may be about to be locked.
const AGE_MIN: Duration = Duration::from_secs(60);

/// What is there now, each with true for a folder.
static ALL: Mutex<Vec<(PathBuf, bool)>> = Mutex::new(Vec::new());

/// A path that is removed on drop. If that fails it stays in the temporary folder.
pub struct Passing {
    path: PathBuf,
    /// Holds the lock of a folder.
    _lock: Option<File>,
}

impl Passing {
    /// Creates a file whose name contains `what` and ends with `.` and `extension`.
    pub fn file(what: &str, extension: &str) -> io::Result<(Self, File)> {
        let (prefix, suffix) = (format!("pi-{what}-"), format!(".{extension}"));
        let (file, path) = with_new_name(&std::env::temp_dir(), &prefix, &suffix, create_private)?;
        Ok((Self::new(path, None), file))
    }

    /// Creates a folder whose name contains `what`.
    pub fn folder(what: &str) -> io::Result<Self> {
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        let (place, prefix) = (std::env::temp_dir(), format!("pi-{what}-"));
        remove_left(&place, &prefix);
        let ((), path) = with_new_name(&place, &prefix, LOCKED, make)?;
        // Where there are no locks, nobody finds what is left.
        let lock = File::open(&path).ok().filter(|folder| folder.try_lock().is_ok());
        Ok(Self::new(path, Some(lock)))
    }

    /// `lock` is for a folder.
    fn new(path: PathBuf, lock: Option<Option<File>>) -> Self {
        all().push((path.clone(), lock.is_some()));
        Self { path, _lock: lock.flatten() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let mut all = all();
        if let Some(at) = all.iter().position(|(path, _)| *path == self.path) {
            remove(&all.swap_remove(at));
        }
    }
}

fn all() -> std::sync::MutexGuard<'static, Vec<(PathBuf, bool)>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove((path, is_folder): &(PathBuf, bool)) {
    // Somebody may have put another file in its place; it goes all the same.
    let _ = match is_folder {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}

/// Removes all that is there still: for the end of the process.
pub fn remove_all() {
    all().drain(..).for_each(|entry| remove(&entry));
}

/// Removes folders that processes of this user have left: they are old, and nobody has their locks.
fn remove_left(place: &Path, prefix: &str) {
    // SAFETY: it only reads the id of the user.
    let user = unsafe { libc::geteuid() };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let is_meant = |name: &str| name.starts_with(prefix) && name.ends_with(LOCKED);
    for entry in entries.filter(|entry| is_meant(&entry.file_name().to_string_lossy())) {
        let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > AGE_MIN);
        let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let Ok(folder) = OpenOptions::new().read(true).custom_flags(flags).open(entry.path()) else {
            continue;
        };
        let is_left = folder.metadata().is_ok_and(|about| {
            about.uid() == user && about.modified().is_ok_and(is_old) && folder.try_lock().is_ok()
        });
        if is_left {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_passes_is_its_owner_s_alone_and_goes() {
        let (file, other) = (Passing::file("test", "md").unwrap().0, Passing::file("test", "md").unwrap().0);
        let folder = Passing::folder("test").unwrap();
        fs::write(folder.path().join("inside"), "").unwrap();
        let paths = [&file, &other, &folder].map(|made| made.path().to_owned());
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(paths.each_ref().map(mode), [0o600, 0o600, 0o700]);
        assert_eq!(paths[0].extension().unwrap(), "md");
        drop((file, other, folder));
        assert!(paths.iter().all(|path| path.symlink_metadata().is_err()));
    }

    #[test]
    fn old_folders_that_nobody_has_locked_are_removed() {
        let dir = crate::base::testing::TempDir::create();
        let old = SystemTime::now() - 2 * AGE_MIN;
        let made = |name: &str, time: SystemTime| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("inside"), "").unwrap();
            let folder = File::open(&path).unwrap();
            folder.set_modified(time).unwrap();
            folder
        };
        made("pi-x-1-0.locked", old);
        made("pi-x-2-0.locked", SystemTime::now());
        made("pi-y-3-0.locked", old);
        let held = made("pi-x-4-0.locked", old);
        held.try_lock().unwrap();
        // Its process may run: it would not lock it.
        made("pi-x-5-0", old);
        remove_left(dir.path(), "pi-x-");
        let left = |name: &str| dir.path().join(name).exists();
        let names = ["pi-x-1-0.locked", "pi-x-2-0.locked", "pi-y-3-0.locked", "pi-x-4-0.locked", "pi-x-5-0"];
        assert_eq!(names.map(left), [false, true, true, true, true]);
    }
}
