//! One session file on disk: created for its owner alone, locked, and only ever appended to.
//!
//! An append is one write. It happens only while the path still leads to the file that was opened and
//! nobody else has written to it, so that two programs can never mix their lines, even where there are
//! no locks. When a write fails half way, its bytes are cut off again; where that fails too, the next
//! append begins on a line of its own.
//!
//! The lock is advisory and belongs to the open file: it dies with the process, whatever ended it.

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

/// How long an owner that is ending may take to let a file go.
const OWNER_ENDS_MAX: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) struct SessionFile {
    file: File,
    path: PathBuf,
    /// Bytes that are ours, all of them known.
    size: u64,
    /// The last line has no end.
    torn: bool,
    writable: bool,
    /// The file's name is not on the disk itself yet.
    unnamed: bool,
    /// Why nothing may be appended any more: the system failed to store what was written.
    doubt: Option<String>,
}

/// What was written and may not be on the disk yet.
pub struct Unsynced {
    file: File,
    /// Folder of the file, if the file's name in it is new.
    folder: Option<PathBuf>,
}

impl Unsynced {
    pub fn sync(self) -> io::Result<()> {
        failpoint::hit("session.sync")?;
        self.file.sync_data()?;
        if let Some(folder) = self.folder {
            sync_folder(&folder);
        }
        Ok(())
    }
}

/// Hands the names in a folder to the disk. Not every file system can, and none has to be asked twice.
fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

impl SessionFile {
    /// Makes a new file (0600 whatever the umask, its folders 0700), locked. It must not exist.
    pub fn create(path: &Path) -> Result<Self, SessionError> {
        if let Some(folder) = path.parent() {
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
            unnamed: true,
            doubt: None,
        })
    }

    /// Opens a file to append to it, locked, or to read it, not locked.
    pub fn open(path: &Path, writable: bool) -> Result<(Self, Scan), SessionError> {
        let doing = if writable { "open the session file" } else { "read the session file" };
        let io = |source| SessionError::Io { doing, path: path.to_owned(), source };
        // Asked before it is opened: to open a pipe waits for its other end.
        if !path.metadata().map_err(io)?.is_file() {
            return Err(SessionError::NotASession { path: path.to_owned() });
        }
        let file = OpenOptions::new().read(true).append(writable).open(path).map_err(io)?;
        if writable && wait_for_lock(&file, path)? && !is_at(&file, path) {
            // Its owner has given it another name, or removed it, as one does that ends.
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
            unnamed: false,
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

    /// Why nothing may be appended: another program has been at the file, or the disk failed.
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

    /// Appends `lines`, which end in a newline, and gives the place of their first byte. On an error
    /// none of the lines is left, and they can be appended again.
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

    /// Takes the bytes of a failed write away.
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

    /// Hands what was written to the disk. A failure is final: what the system could not store it may
    /// have dropped, so the next append goes to a new file.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        let done = self.unsynced().and_then(Unsynced::sync);
        self.synced(done)
    }

    /// First step of a sync without holding the file: what is to be handed to the disk.
    pub fn unsynced(&mut self) -> io::Result<Unsynced> {
        let folder = std::mem::take(&mut self.unnamed).then(|| self.path.parent());
        Ok(Unsynced { file: self.file.try_clone()?, folder: folder.flatten().map(Path::to_owned) })
    }

    pub fn synced(&mut self, done: io::Result<()>) -> Result<(), SessionError> {
        done.map_err(|error| {
            self.doubt = Some(format!("could not be stored safely ({error})"));
            SessionError::io("store the session file", &self.path)(error)
        })
    }

    /// Hands the file's name to the disk.
    pub fn sync_name(&mut self) {
        if std::mem::take(&mut self.unnamed)
            && let Some(folder) = self.path.parent()
        {
            sync_folder(folder);
        }
    }

    /// The `len` bytes from `start`; fewer when the file has become shorter.
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

    /// Gives the file its final name, which must be free.
    pub fn rename(&mut self, to: &Path) -> Result<(), SessionError> {
        rename_exclusive(&self.path, to).map_err(SessionError::io("name the session file", to))?;
        self.path = to.to_owned();
        self.unnamed = true;
        Ok(())
    }

    /// Takes the place of the file at `to`, which stays as `backup`.
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
        self.unnamed = true;
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
        // What was not stored safely need not be kept either.
        self.doubt = None;
        // Whoever took our place keeps his file.
        if self.changed().is_some() {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(SessionError::io("remove the draft", &self.path))
    }
}

impl Drop for SessionFile {
    /// A child process that is just being started has a copy of the open file for a moment: without
    /// this the lock would live until it lets go.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// A rename that never replaces a file: a link can only be made where nothing is.
pub(super) fn rename_exclusive(from: &Path, to: &Path) -> io::Result<()> {
    failpoint::hit("session.rename")?;
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links.
        Err(_) if to.symlink_metadata().is_err() => std::fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// Removes `other` if it is the same file as `path`: its process was killed between giving a draft its
/// name and taking the old one away.
pub(super) fn remove_other_name(path: &Path, other: &Path) {
    let place = |path: &Path| path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()));
    if place(other).is_some_and(|other| Some(other) == place(path)) {
        let _ = std::fs::remove_file(other);
    }
}

fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    let held = failpoint::hit("session.lock").is_err();
    match file.try_lock() {
        Ok(()) if !held => Ok(()),
        // Some file systems have no locks: there the look before each append has to do.
        Err(TryLockError::Error(_)) => Ok(()),
        _ => Err(SessionError::Held { path: path.to_owned(), pid: holder(file) }),
    }
}

/// Takes the lock of a file whose owner may be about to end. Gives whether that took a wait.
fn wait_for_lock(file: &File, path: &Path) -> Result<bool, SessionError> {
    let until = Instant::now() + OWNER_ENDS_MAX;
    let mut has_waited = false;
    loop {
        match lock(file, path) {
            // The system has no lock that is waited for with a limit.
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
fn is_at(file: &File, path: &Path) -> bool {
    let place = |file: Metadata| (file.dev(), file.ino());
    file.metadata().is_ok_and(|file| path.metadata().is_ok_and(|there| place(there) == place(file)))
}

/// A stored file that nobody else may write to while this lives.
#[must_use]
pub struct Hold(File);

impl Hold {
    /// Takes the lock of a session file.
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

/// True if a process has `path` open to write to it.
pub(super) fn is_held(path: &Path) -> bool {
    held_by(path).is_some()
}

/// The process that has `path` open to write to it, where that can be told.
pub(super) fn held_by(path: &Path) -> Option<Option<u32>> {
    let file = File::open(path).ok()?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&file))
}

/// The process that holds the lock: Linux lists locks by inode. Elsewhere it cannot be told.
fn holder(file: &File) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let of_this_file = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.nth(1) == Some("FLOCK") && fields.nth(3).is_some_and(|place| place.ends_with(&inode))
    };
    let line = locks.lines().find(of_this_file)?;
    let pid = line.split_whitespace().nth(4)?.parse().ok()?;
    // A process of another container has no number here.
    (pid != 0).then_some(pid)
}
