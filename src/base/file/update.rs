//! Files that several programs change: one writer at a time, replaced atomically.
//!
//! Readers need no lock, since a write replaces the content in one step.

use super::lock::{FolderLock, is_older};
use super::{make_private_folder, place_of, read, replace};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum file size, far above any real configuration.
const BYTES_MAX: u64 = 64 << 20;
/// Age at which a lock counts as abandoned.
const STALE_AFTER: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(12);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Passes the content of `path`, `None` if it does not exist, to `change`, and replaces it with the result.
/// If `change` returns `None`, nothing is written. An error names the operation that failed.
pub fn update(
    path: &Path,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let path = &place_of(path).unwrap_or_else(|_| path.to_owned());
    let fail = |what: &str, error: io::Error| format!("{}: could not be {what}: {error}", path.display());
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_private_folder(folder).map_err(|error| fail("written", error))?;
    let _lock = lock(path).map_err(|error| fail("locked", error))?;
    let old = match read(path, BYTES_MAX) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail("read", error)),
    };
    match change(old)? {
        Some(new) => replace(path, new.as_bytes()).map_err(|error| fail("written", error)),
        None => Ok(()),
    }
}

fn lock(path: &Path) -> io::Result<FolderLock> {
    let start = Instant::now();
    loop {
        if let Some(lock) = FolderLock::take(path, |lock| is_older(lock, STALE_AFTER))? {
            return Ok(lock);
        }
        if start.elapsed() > PATIENCE {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

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
        let now = SystemTime::now();
        // The second was made before the clock was set back.
        for (time, count) in [(now - Duration::from_secs(60), "2"), (now + Duration::from_secs(3600), "3")] {
            fs::create_dir(&lock).unwrap();
            fs::File::open(&lock).unwrap().set_modified(time).unwrap();
            add_one(&path);
            assert_eq!(fs::read_to_string(&path).unwrap(), count);
            assert!(!lock.exists());
        }
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

    #[test]
    fn a_pipe_is_neither_waited_for_nor_replaced() {
        let dir = TempDir::create();
        let pipe = dir.fifo("f");
        let error = update(&pipe, |_| Ok(Some("new".into()))).unwrap_err();
        assert_eq!(error, format!("{}: could not be read: not a regular file", pipe.display()));
        assert_eq!(dir.names(), ["f"]);
    }

    #[test]
    fn a_lock_that_cannot_be_removed_is_not_taken() {
        let dir = TempDir::create();
        let path = dir.path().join("f");
        dir.write("f.lock/odd", "");
        assert!(FolderLock::take(&path, |_| true).unwrap().is_none());
    }
}
