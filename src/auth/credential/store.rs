//! Writes auth.json and mcp-auth.json: one writer at a time, and the file is replaced atomically.
//!
//! A writer holds two locks. The first is a kernel lock on the folder: it wakes the next writer, and ends
//! with its process. The second is the reference's lock, a folder `auth.json.lock` that exists during a
//! write, since both programs may run side by side. A lock folder left by a crash is removed: one that is too
//! old, or one that bears the mark of this program while this process holds the kernel lock.
//!
//! Under the locks the whole file is read again and only one entry is changed. A file that is not valid JSON
//! is never overwritten.

use super::file::read_entries;
use crate::base::cancel::CancelToken;
use crate::base::file::{FolderLock, Temp, is_older, make_private_folder, place_of};
use crate::base::thread::Thread;
use crate::llm::event::{ErrorKind, StreamError};
use crossbeam_channel::{RecvError, after, bounded, select};
use serde_json::{Map, Value};
use std::fs::{File, FileTimes, Metadata, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit of the wait for a lock, and the age of a lock folder that counts as left by a crash; as in the
/// reference.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval for checking the reference's lock, which gives no notice when it is released.
const LOOK: Duration = Duration::from_millis(20);
/// The nanoseconds in the time of a lock folder made by this program. The reference writes whole
/// milliseconds.
const MARK_NANOS: u64 = 70_000_105;

/// A file of credentials, locked for writing.
pub(in crate::auth) struct Store {
    path: PathBuf,
    /// Released before the kernel lock: the holder of the kernel lock removes a marked lock folder.
    _foreign: FolderLock,
    /// Holds the kernel lock; `None` if the file system has no locks.
    _folder: Option<File>,
}

/// The new file, created before a token is renewed, so that the new token can be saved.
pub(in crate::auth) struct Draft {
    temp: Temp,
    target: PathBuf,
}

/// The entries of a file of credentials.
pub(in crate::auth) fn read(path: &Path) -> Result<Map<String, Value>, StreamError> {
    let entries = read_entries(path).map_err(|error| StreamError::new(ErrorKind::Auth, error))?;
    Ok(entries.as_ref().clone())
}

/// Takes the lock of `path` that the reference takes, too, for work that lasts longer than a write.
pub(in crate::auth) fn lock_beside(path: &Path, cancel: &CancelToken) -> Result<FolderLock, StreamError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_private_folder(folder).map_err(|error| cannot("use the folder of", path, &error))?;
    take_foreign(path, false, cancel)
}

impl Store {
    /// Waits for both locks. Creates the folder if it is missing.
    pub fn lock(path: &Path, cancel: &CancelToken) -> Result<Self, StreamError> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let opened = make_private_folder(folder).and_then(|()| File::open(folder));
        let file = opened.map_err(|error| cannot("use the folder of", path, &error))?;
        let held = wait_for_kernel(file, path, cancel)?;
        let foreign = take_foreign(path, held.is_some(), cancel)?;
        Ok(Self { path: path.to_owned(), _foreign: foreign, _folder: held })
    }

    pub fn read(&self) -> Result<Map<String, Value>, StreamError> {
        read(&self.path)
    }

    /// Creates the new file, still empty.
    pub fn draft(&self) -> Result<Draft, StreamError> {
        let make = || {
            let target = place_of(&self.path)?;
            // There is one writer, so a fixed name suffices, and the next write replaces a file left by a
            // crash.
            let name = target.file_name().unwrap_or_default().to_string_lossy();
            let temp = Temp::named(target.with_file_name(format!(".{name}.new")))?;
            temp.keep_owner(&target);
            Ok(Draft { temp, target })
        };
        make().map_err(|error| cannot("write", &self.path, &error))
    }
}

impl Draft {
    /// Replaces the file with `entries`.
    pub fn commit(mut self, entries: &Map<String, Value>) -> Result<(), StreamError> {
        let written = serde_json::to_vec_pretty(entries).map_err(io::Error::other);
        let written = written.and_then(|text| {
            self.temp.file.write_all(&text)?;
            self.temp.file.sync_all()?;
            self.temp.rename(&self.target)
        });
        written.map_err(|error| cannot("write", &self.target, &error))
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> StreamError {
    let text = format!("Cannot {what} {}: {error}", path.display());
    StreamError::new(ErrorKind::Auth, text)
}

/// The error after waiting too long. `left`: the lock folder, if it may have been left by a crash.
fn busy(path: &Path, left: Option<&Path>) -> StreamError {
    let what = match left {
        Some(left) => format!("If none is running, remove {}", left.display()),
        None => "Try again when it has ended".to_owned(),
    };
    let (path, seconds) = (path.display(), PATIENCE.as_secs());
    let text = format!("Another program has been changing {path} for {seconds} seconds. {what}");
    StreamError::new(ErrorKind::Timeout, text)
}

/// Takes the kernel lock; `None` if the file system has no locks.
fn wait_for_kernel(file: File, path: &Path, cancel: &CancelToken) -> Result<Option<File>, StreamError> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        Err(TryLockError::Error(_)) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
    }
    // Only the release of the lock ends this wait, so a thread waits; a thread that succeeds after the time
    // limit releases the lock again.
    let (sender, locked) = bounded(0);
    let waiting = Thread::named("auth.json lock").start(move || {
        let held = file.lock().ok().map(|()| file);
        let _ = sender.send(held);
    });
    waiting.map_err(|error| cannot("lock", path, &error))?;
    select! {
        recv(locked) -> held => match held {
            Ok(held) => Ok(held),
            Err(RecvError) => Ok(None),
        },
        recv(cancel.receiver()) -> _ => Err(StreamError::aborted()),
        recv(after(PATIENCE)) -> _ => Err(busy(path, None)),
    }
}

/// Takes the reference's lock. `alone`: true if the kernel lock is held.
fn take_foreign(path: &Path, alone: bool, cancel: &CancelToken) -> Result<FolderLock, StreamError> {
    let place = FolderLock::place(path);
    let mut looks = PATIENCE.as_millis() / LOOK.as_millis();
    loop {
        let taken = FolderLock::take(path, |about| is_left(about, alone));
        if let Some(lock) = taken.map_err(|error| cannot("write beside", path, &error))? {
            // A lock without the mark only takes longer to expire after a crash.
            let _ = mark(&place);
            return Ok(lock);
        }
        if looks == 0 {
            return Err(busy(path, Some(&place)));
        }
        looks -= 1;
        if cancel.wait_timeout(LOOK) {
            return Err(StreamError::aborted());
        }
    }
}

fn mark(foreign: &Path) -> io::Result<()> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(MARK_NANOS);
    File::open(foreign)?.set_times(FileTimes::new().set_modified(time))
}

/// True if the lock folder was left by a crash. `alone`: true if no other process of this program can hold a
/// lock.
fn is_left(facts: &Metadata, alone: bool) -> bool {
    let Ok(time) = facts.modified() else {
        return false;
    };
    let nanos = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    alone && u64::from(nanos) == MARK_NANOS || is_older(facts, PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_remove_the_credentials() {
        let (path, lock) = (Path::new("/a/auth.json"), Path::new("/a/auth.json.lock"));
        let said = |left| busy(path, left).to_string();
        assert!(!said(None).contains("remove"), "{}", said(None));
        assert!(said(Some(lock)).ends_with("remove /a/auth.json.lock"), "{}", said(Some(lock)));
    }
}
