//! Writing auth.json: one writer at a time, the old file or the new one and never a half.
//!
//! Writers hold two locks. Ours is the kernel's, on the folder: who waits for it is woken when it is
//! free, and it ends with the process that held it. The other is the reference's, a folder
//! `auth.json.lock` that exists while somebody writes; both programs may run side by side. One that is
//! older than its holder may take is left from a crash, and so is one that bears our mark while we hold
//! the kernel's lock.
//!
//! The whole file is read again under the lock and only one entry of it changed. A file that cannot be
//! read as JSON is never written over.

use super::file::read_entries;
use crate::base::cancel::CancelToken;
use crate::base::file::{FolderLock, Temp, make_private_folder, place_of};
use crate::llm::event::{ErrorKind, StreamError};
use crossbeam_channel::{RecvError, after, bounded, select};
use serde_json::{Map, Value};
use std::fs::{File, FileTimes, Metadata, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For the lock to become free. The reference waits as long, and holds it no longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the reference's lock, for which nobody wakes us.
const LOOK: Duration = Duration::from_millis(20);
/// Nanoseconds of the time of a lock of ours. The reference writes whole milliseconds.
const MARK_NANOS: u64 = 70_000_105;

/// auth.json, while nobody else can change it.
pub(super) struct Store {
    path: PathBuf,
    /// Given back before the kernel's lock: whoever holds that one takes a marked folder for left behind.
    _foreign: FolderLock,
    /// Holds the kernel's lock; none where the file system has no locks.
    _folder: Option<File>,
}

/// The place of the new content, which is there before the old token is given away for it.
pub(super) struct Draft {
    temp: Temp,
    target: PathBuf,
}

impl Store {
    /// Waits for its turn. Makes the folder if there is none.
    pub fn lock(path: &Path, cancel: &CancelToken) -> Result<Self, StreamError> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let opened = make_private_folder(folder).and_then(|()| File::open(folder));
        let file = opened.map_err(|error| cannot("use the folder of", path, &error))?;
        let held = wait_for_kernel(file, path, cancel)?;
        let foreign = take_foreign(path, held.is_some(), cancel)?;
        Ok(Self { path: path.to_owned(), _foreign: foreign, _folder: held })
    }

    /// The entries as they are now.
    pub fn read(&self) -> Result<Map<String, Value>, StreamError> {
        let entries = read_entries(&self.path).map_err(|error| StreamError::new(ErrorKind::Auth, error))?;
        Ok(entries.as_ref().clone())
    }

    /// Makes room for a new content.
    pub fn draft(&self) -> Result<Draft, StreamError> {
        let make = || {
            let target = place_of(&self.path)?;
            // There is one writer, so one name is enough, and what a crash left is not left for long.
            let temp = Temp::named(target.with_file_name(".auth.json.new"))?;
            Ok(Draft { temp, target })
        };
        make().map_err(|error| cannot("write", &self.path, &error))
    }
}

impl Draft {
    /// Puts the entries in the place of the old ones.
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

/// `left`: the lock, where it is one that a program can leave behind. The kernel's ends with its holder.
fn busy(path: &Path, left: Option<&Path>) -> StreamError {
    let what = match left {
        Some(left) => format!("If none is running, remove {}", left.display()),
        None => "Try again when it has ended".to_owned(),
    };
    let (path, seconds) = (path.display(), PATIENCE.as_secs());
    let text = format!("Another program has been changing {path} for {seconds} seconds. {what}");
    StreamError::new(ErrorKind::Timeout, text)
}

/// `None` where the file system has no locks.
fn wait_for_kernel(file: File, path: &Path, cancel: &CancelToken) -> Result<Option<File>, StreamError> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        Err(TryLockError::Error(_)) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
    }
    // Nothing but the lock's release ends this wait, so a thread does it; one that comes too late gives
    // the lock back.
    let (sender, locked) = bounded(0);
    let waiting = std::thread::Builder::new().name("auth.json lock".into());
    let waiting = waiting.spawn(move || {
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

/// Makes the reference's lock.
fn take_foreign(path: &Path, alone: bool, cancel: &CancelToken) -> Result<FolderLock, StreamError> {
    let place = FolderLock::place(path);
    let mut looks = PATIENCE.as_millis() / LOOK.as_millis();
    loop {
        let taken = FolderLock::take(path, |about| is_left(about, alone));
        if let Some(lock) = taken.map_err(|error| cannot("write beside", path, &error))? {
            // A lock without the mark is only waited for longer, should we be killed.
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

/// True if the holder of this lock is gone. `alone`: no other process of ours can hold one.
fn is_left(facts: &Metadata, alone: bool) -> bool {
    let Ok(time) = facts.modified() else {
        return false;
    };
    let nanos = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    alone && u64::from(nanos) == MARK_NANOS || time.elapsed().is_ok_and(|age| age > PATIENCE)
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
