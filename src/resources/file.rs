//! Files that several programs change: one at a time, and whole or not at all.
//!
//! The lock is the reference's: a folder `NAME.lock` beside the file, made by who changes it and removed
//! after that; one that was not touched for ten seconds belongs to a program that died. A folder cannot be
//! waited for, so it is looked at again and again. Readers need no lock, since a new content takes the
//! place of the old in one step.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A lock that is older was left behind.
const STALE_AFTER: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(12);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Gives the content of `path`, `None` for no file, to `change`, and puts what that returns in its place.
/// Nothing is written when it returns `None`. An error says what could not be done.
pub fn update(
    path: &Path,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<String>, String>,
) -> Result<(), String> {
    // A file that is kept elsewhere, and linked to from here, stays there.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fail = |what: &str, error: io::Error| format!("{}: could not be {what}: {error}", path.display());
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_folder(folder).map_err(|error| fail("written", error))?;
    let _lock = Lock::take(path).map_err(|error| fail("locked", error))?;
    let old = match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail("read", error)),
    };
    match change(old)? {
        Some(new) => replace(path, new.as_bytes()).map_err(|error| fail("written", error)),
        None => Ok(()),
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Puts `content` at `path` in one step. A new file is its owner's alone; an old one keeps its rights.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let rights = fs::metadata(path).map_or(0o600, |old| old.permissions().mode() & 0o777);
    let write = || {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        file.set_permissions(fs::Permissions::from_mode(rights))?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Held until dropped.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let place = PathBuf::from(name);
        let start = Instant::now();
        loop {
            match fs::create_dir(&place) {
                Ok(()) => return Ok(Self(place)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_stale(&place) => drop(fs::remove_dir(&place)),
                Err(error) if start.elapsed() > PATIENCE => return Err(error),
                Err(_) => thread::sleep(LOOK_AGAIN),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

fn is_stale(place: &Path) -> bool {
    let touched = fs::metadata(place).and_then(|folder| folder.modified());
    touched.is_ok_and(|touched| SystemTime::now().duration_since(touched).is_ok_and(|age| age > STALE_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn add_one(path: &Path) {
        update(path, |old| {
            let old = String::from_utf8(old.unwrap_or_default()).unwrap();
            let count: u32 = old.parse().unwrap_or(0);
            Ok(Some((count + 1).to_string()))
        })
        .unwrap();
    }

    #[test]
    fn no_change_is_lost() {
        let scratch = TempDir::create();
        let path = scratch.path().join("new/count");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).for_each(|_| add_one(&path)));
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "80");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "neither lock nor temporary file is left");
    }

    #[test]
    fn a_lock_of_a_dead_program_does_not_count() {
        let scratch = TempDir::create();
        let path = scratch.write("f", "1");
        let lock = scratch.path().join("f.lock");
        fs::create_dir(&lock).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&lock).unwrap().set_modified(old).unwrap();
        add_one(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "2");
        assert!(!lock.exists());
    }

    #[test]
    fn links_and_rights_stay() {
        let scratch = TempDir::create();
        let real = scratch.write("kept/f", "1");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        let link = scratch.path().join("f");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        add_one(&link);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "2");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        // Nothing to write, and nothing that can be written.
        update(&link, |_| Ok(None)).unwrap();
        assert_eq!(update(&link, |_| Err("no".into())), Err("no".into()));
        assert_eq!(fs::read_to_string(&real).unwrap(), "2");
    }
}
