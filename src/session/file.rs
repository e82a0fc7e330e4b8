//! A session file on disk: private, locked, and only appended to.
//!
//! An append is a single write. It is made only if the path still leads to the opened file and nobody else
//! has written to it, so that lines of two programs never mix, even without locks. After a partial write, its
//! bytes are cut off again; if that fails, the next append starts on a new line.
//!
//! The lock is advisory and belongs to the open file, so it ends with the process.

use super::index::{Scan, scan};
use crate::base::failpoint;
use crate::base::file::make_private_folder;
use crate::session::error::SessionError;
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for another process to release a session file.
const OWNER_ENDS_MAX: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) struct SessionFile {
    file: File,
    path: PathBuf,
    /// Size of the file in bytes, as last read or written by this process.
    size: u64,
    /// True if the last line lacks its newline.
    torn: bool,
    writable: bool,
    /// Number of folders, from the file's own upwards, in which a name is not synced to the disk yet: the file's,
    /// or that of a folder made for it.
    unnamed: usize,
    /// Why nothing may be appended any more: a sync failed.
    doubt: Option<String>,
}

/// Written data that may not be on the disk yet.
pub struct Unsynced {
    file: File,
    /// Folders with new names: the file's, and those in which a folder was made for it.
    folders: Vec<PathBuf>,
}

impl Unsynced {
    pub fn sync(self) -> io::Result<()> {
        failpoint::hit("session.sync")?;
        self.file.sync_data()?;
        self.folders.iter().for_each(|folder| sync_folder(folder));
        Ok(())
    }
}

/// Syncs the names in a folder to the disk. Errors are ignored, since not every file system supports it.
fn sync_folder(folder: &Path) {
    let _ = failpoint::hit("session.folder").and_then(|()| File::open(folder)?.sync_all());
}

impl SessionFile {
    /// Creates and locks a new file with mode 0600, and its folders with 0700, whatever the umask. An existing
    /// file is an error.
    pub fn create(path: &Path) -> Result<Self, SessionError> {
        let mut made = 0;
        if let Some(folder) = path.parent() {
            made = folder.ancestors().take_while(|folder| !folder.exists()).count();
            make_private_folder(folder).map_err(SessionError::io("create the session folder", folder))?;
        }
        let create = || {
            failpoint::hit("session.create")?;
            let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(file)
        };
        let file = create().map_err(SessionError::io("create the session file", path))?;
        lock(&file, path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            size: 0,
            torn: false,
            writable: true,
            unnamed: 1 + made,
            doubt: None,
        })
    }

    /// Opens a file for appending, with a lock, or for reading, without one.
    pub fn open(path: &Path, writable: bool) -> Result<(Self, Scan), SessionError> {
        let doing = if writable { "open the session file" } else { "read the session file" };
        let io = |source| SessionError::Io { doing, path: path.to_owned(), source };
        // Checked before opening: opening a pipe would block.
        if !path.metadata().map_err(io)?.is_file() {
            return Err(SessionError::NotASession { path: path.to_owned() });
        }
        let file = OpenOptions::new().read(true).append(writable).open(path).map_err(io)?;
        if writable && wait_for_lock(&file, path)? && !is_at(&file, path) {
            // The previous process renamed or removed the file when it ended.
            return Self::open(path, writable);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".jsonl").unwrap_or(&name);
        let scan = scan(&file, name).map_err(io)?;
        let opened = Self {
            file,
            path: path.to_owned(),
            size: scan.size,
            torn: scan.torn,
            writable,
            unnamed: 0,
            doubt: None,
        };
        Ok((opened, scan))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns why nothing may be appended: another program has changed the file, or a sync failed.
    pub fn changed(&self) -> Option<String> {
        if let Some(doubt) = &self.doubt {
            return Some(doubt.clone());
        }
        let (Ok(ours), there) = (self.file.metadata(), self.path.metadata()) else {
            return Some("can no longer be examined".into());
        };
        match there {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("was deleted or moved".into()),
            Err(error) => Some(format!("can no longer be reached ({error})")),
            Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => {
                Some("was replaced by another file".into())
            }
            Ok(_) if ours.len() > self.size => Some("was written to by another program".into()),
            Ok(_) if ours.len() < self.size => Some("was cut short by another program".into()),
            Ok(_) => None,
        }
    }

    /// Appends `lines`, each with its newline, and returns the offset of their first byte. After an error
    /// none of the lines is in the file, and the append can be repeated.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, SessionError> {
        let fence = usize::from(self.torn);
        let mut bytes = Vec::new();
        let whole = if self.torn {
            bytes.reserve_exact(lines.len() + 1);
            bytes.push(b'\n');
            bytes.extend_from_slice(lines);
            &bytes
        } else {
            lines
        };
        if let Err(error) = self.write(whole) {
            self.cut_back();
            return Err(SessionError::io("write to the session file", &self.path)(error));
        }
        let start = self.size + fence as u64;
        self.size += whole.len() as u64;
        self.torn = false;
        Ok(start)
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        failpoint::hit("session.write")?;
        if let Some((first, rest)) = bytes.split_at_checked(failpoint::cut("session.torn", bytes.len()))
            && !rest.is_empty()
        {
            self.file.write_all(first)?;
            failpoint::hit("session.torn")?;
            bytes = rest;
        }
        self.file.write_all(bytes)
    }

    /// Cuts off the bytes of a failed write.
    fn cut_back(&mut self) {
        let cut = failpoint::hit("session.cut").and_then(|()| self.file.set_len(self.size));
        if cut.is_err()
            && let Ok(metadata) = self.file.metadata()
            && metadata.len() > self.size
        {
            self.size = metadata.len();
            self.torn = true;
        }
    }

    /// Syncs written data to the disk. After a failure, the system may have dropped the data, so the next
    /// append goes to a new file.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        let done = self.unsynced().and_then(Unsynced::sync);
        self.synced(done)
    }

    /// Prepares a sync that can run without a borrow of the file. [`Self::synced`] takes its result.
    pub fn unsynced(&mut self) -> io::Result<Unsynced> {
        let file = self.file.try_clone()?;
        Ok(Unsynced { file, folders: self.take_unnamed() })
    }

    pub fn synced(&mut self, done: io::Result<()>) -> Result<(), SessionError> {
        done.map_err(|error| {
            self.doubt = Some(format!("could not be stored safely ({error})"));
            SessionError::io("store the session file", &self.path)(error)
        })
    }

    /// Syncs the file's name to the disk.
    pub fn sync_name(&mut self) {
        self.take_unnamed().iter().for_each(|folder| sync_folder(folder));
    }

    fn take_unnamed(&mut self) -> Vec<PathBuf> {
        let count = std::mem::take(&mut self.unnamed);
        self.path.ancestors().skip(1).take(count).map(Path::to_owned).collect()
    }

    /// Reads `len` bytes from the offset `start`; fewer if the file has become shorter.
    pub fn read(&self, start: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = len.min(self.size.saturating_sub(start));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, start + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Renames the file to `to`, which must not exist.
    pub fn rename(&mut self, to: &Path) -> Result<(), SessionError> {
        rename_exclusive(&self.path, to).map_err(SessionError::io("name the session file", to))?;
        self.path = to.to_owned();
        self.unnamed = self.unnamed.max(1);
        Ok(())
    }

    /// Renames the file to `to`. The old file at `to` is kept as `backup`.
    pub fn replace(&mut self, to: &Path, backup: &Path) -> Result<(), SessionError> {
        let replace = || {
            if std::fs::hard_link(to, backup).is_err() {
                std::fs::copy(to, backup)?;
            }
            failpoint::hit("session.rename")?;
            std::fs::rename(&self.path, to)
        };
        replace().map_err(SessionError::io("replace the session file", to))?;
        self.path = to.to_owned();
        self.unnamed = self.unnamed.max(1);
        self.sync_name();
        Ok(())
    }

    /// Reads the whole file again.
    pub fn rescan(&mut self) -> Result<Scan, SessionError> {
        let mut read = || {
            self.file.rewind()?;
            scan(&self.file, "")
        };
        let scan = read().map_err(SessionError::io("read the session file", &self.path))?;
        self.size = scan.size;
        self.torn = scan.torn;
        Ok(scan)
    }

    pub fn remove(mut self) -> Result<(), SessionError> {
        // A failed sync does not matter for a file that is removed.
        self.doubt = None;
        // A file that another program put in this place stays.
        if self.changed().is_some() {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(SessionError::io("remove the draft", &self.path))
    }
}

impl Drop for SessionFile {
    /// Unlocks explicitly: a child process being started holds a copy of the open file, which would keep the
    /// lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Renames a file without replacing another: a hard link cannot replace a file.
pub(super) fn rename_exclusive(from: &Path, to: &Path) -> io::Result<()> {
    failpoint::hit("session.rename")?;
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The file system has no hard links.
        Err(_) if to.symlink_metadata().is_err() => std::fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// Removes `other` if it is the same file as `path`: a process was killed between linking a draft under its
/// final name and removing the old name.
pub(super) fn remove_other_name(path: &Path, other: &Path) {
    let place = |path: &Path| path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()));
    if place(other).is_some_and(|other| Some(other) == place(path)) {
        let _ = std::fs::remove_file(other);
    }
}

/// Locks a file; an error says that another process holds the lock.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    let held = failpoint::hit("session.lock").is_err();
    match file.try_lock() {
        Ok(()) if !held => Ok(()),
        // Some file systems have no locks; the check before each append must do there.
        Err(TryLockError::Error(_)) => Ok(()),
        _ => Err(SessionError::Held { path: path.to_owned(), pid: holder(file) }),
    }
}

/// Locks a file, and waits if another process is about to release it. True if it had to wait.
fn wait_for_lock(file: &File, path: &Path) -> Result<bool, SessionError> {
    let until = Instant::now() + OWNER_ENDS_MAX;
    let mut has_waited = false;
    loop {
        match lock(file, path) {
            // The system has no lock with a timeout.
            Err(SessionError::Held { pid, .. })
                if pid != Some(std::process::id()) && Instant::now() < until =>
            {
                has_waited = true;
                thread::sleep(LOOK_AGAIN);
            }
            taken => return taken.map(|()| has_waited),
        }
    }
}

/// True if `path` leads to `file`.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let place = |file: Metadata| (file.dev(), file.ino());
    file.metadata().is_ok_and(|file| path.metadata().is_ok_and(|there| place(there) == place(file)))
}

/// A lock on a stored session file. Nobody else can write to the file while the lock lives.
#[must_use]
pub struct Hold(File);

impl Hold {
    /// Locks a session file. An error says if another process holds the lock.
    pub fn take(path: &Path) -> Result<Self, SessionError> {
        let file = File::open(path).map_err(SessionError::io("open the session file", path))?;
        lock(&file, path)?;
        Ok(Self(file))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// True if another process has locked `path` for writing.
pub(super) fn is_held(path: &Path) -> bool {
    held_by(path).is_some()
}

/// Returns `Some` if a process has locked `path` for writing, with its process id if that is known.
pub(super) fn held_by(path: &Path) -> Option<Option<u32>> {
    let file = File::open(path).ok()?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&file))
}

/// Returns the id of the process that holds the lock, from `/proc/locks` on Linux; elsewhere `None`.
fn holder(file: &File) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let of_this_file = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.nth(1) == Some("FLOCK") && fields.nth(3).is_some_and(|place| place.ends_with(&inode))
    };
    let line = locks.lines().find(of_this_file)?;
    let pid = line.split_whitespace().nth(4)?.parse().ok()?;
    // A process of another container has the number 0 here.
    (pid != 0).then_some(pid)
}
