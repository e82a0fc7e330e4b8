//! The place of a log's lines: memory, a draft, or a file.
//!
//! A place is made writable before each append, so that the next line goes to an unchanged file of the
//! current version. If another program has changed the file, the log moves to a copy: a new session whose
//! header names the old one as parent.

use super::entry::{self, Header};
use super::file::SessionFile;
use super::index::{self, Scan};
use super::{beside, id, migrate};
use crate::base::time;
use crate::llm::message::now_ms;
use crate::session::error::SessionError;
use crate::session::notice::Notice;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) enum Place {
    /// All lines in memory, not on disk, or not yet.
    Memory { bytes: Vec<u8>, later: Later },
    Disk {
        file: SessionFile,
        /// Offset of the line after the header.
        body: u64,
        /// The final path of a draft.
        name: Option<PathBuf>,
    },
}

pub(super) enum Later {
    Never,
    /// Written to a draft of this file with the first message.
    Draft(PathBuf),
    /// Replaces the older file with the next entry.
    Replace {
        old: SessionFile,
        version: u64,
    },
}

impl Place {
    pub fn in_memory(header: &Header, later: Later) -> Result<Self, SessionError> {
        let bytes = entry::line(header)?;
        Ok(Self::Memory { bytes, later })
    }

    pub fn on_disk(file: SessionFile, body: u64) -> Self {
        let draft = file.path().extension().is_some_and(|end| end == "draft");
        let name = draft.then(|| file.path().with_extension(""));
        Self::Disk { file, body, name }
    }

    /// Migrates an older file in memory.
    pub fn migrated(old: SessionFile, version: u64) -> Result<(Self, Scan), SessionError> {
        let read = || {
            let bytes = migrate::migrate(&old.read(0, old.size())?, version);
            let scan = index::scan(bytes.as_slice(), "")?;
            Ok((bytes, scan))
        };
        let (bytes, scan) = read().map_err(SessionError::io("read the session file", old.path()))?;
        let later = Later::Replace { old, version };
        Ok((Self::Memory { bytes, later }, scan))
    }

    /// Reads all lines into memory and closes the file.
    pub fn detach(&mut self) -> Result<(), SessionError> {
        let bytes = match self {
            Self::Disk { file, .. } => {
                file.read(0, file.size()).map_err(SessionError::io("read the session file", file.path()))?
            }
            Self::Memory { bytes, .. } => std::mem::take(bytes),
        };
        *self = Self::Memory { bytes, later: Later::Never };
        Ok(())
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Disk { name: Some(name), .. } => Some(name),
            Self::Disk { file, .. } => Some(file.path()),
            Self::Memory { later, .. } => match later {
                Later::Never => None,
                Later::Draft(path) => Some(path),
                Later::Replace { old, .. } => Some(old.path()),
            },
        }
    }

    pub fn is_saved(&self) -> bool {
        match self {
            Self::Disk { name, .. } => name.is_none(),
            Self::Memory { later, .. } => matches!(later, Later::Replace { .. }),
        }
    }

    /// Reads `len` bytes from the offset `start`; fewer if the file has become shorter.
    pub fn read(&self, start: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Disk { file, .. } => file.read(start, len).ok().map(Cow::Owned),
            Self::Memory { bytes, .. } => {
                let start = usize::try_from(start).ok()?;
                let end = start.checked_add(usize::try_from(len).ok()?)?;
                bytes.get(start..end).map(Cow::Borrowed)
            }
        }
    }

    /// Appends a line to a writable place, and returns its offset. The first message creates the draft of a
    /// new session.
    pub fn append(&mut self, line: &[u8], is_message: bool) -> Result<u64, SessionError> {
        let (bytes, later) = match self {
            Self::Disk { file, .. } => return file.append(line),
            Self::Memory { bytes, later } => (bytes, later),
        };
        let start = bytes.len() as u64;
        if let (Later::Draft(name), true) = (&*later, is_message) {
            let mut file = SessionFile::create(&draft_of(name))?;
            if let Err(error) = file.append(&[bytes.as_slice(), line].concat()) {
                // The next attempt creates the file again.
                let _ = file.remove();
                return Err(error);
            }
            *self = Self::Disk { file, body: end_of_header(bytes), name: Some(name.clone()) };
        } else {
            bytes.extend_from_slice(line);
        }
        Ok(start)
    }

    /// Prepares the place for an append. If the place changed, returns a notice, and a scan if offsets
    /// changed.
    pub fn make_writable(
        &mut self,
        header: &mut Header,
    ) -> Result<Option<(Option<Scan>, Notice)>, SessionError> {
        match self {
            Self::Disk { file, .. } if !file.is_writable() => {
                let path = file.path().to_owned();
                Err(SessionError::ReadOnly { path })
            }
            Self::Disk { file, .. } => match file.changed() {
                Some(why) => self.move_away(header, why),
                None => Ok(None),
            },
            Self::Memory { later: Later::Replace { .. }, .. } => self.replace_older(),
            Self::Memory { .. } => Ok(None),
        }
    }

    fn move_away(
        &mut self,
        header: &mut Header,
        why: String,
    ) -> Result<Option<(Option<Scan>, Notice)>, SessionError> {
        let Self::Disk { file, body, name } = self else {
            return Ok(None);
        };
        let from = name.as_deref().unwrap_or(file.path()).to_owned();
        let mut new = header.clone();
        new.id = id::session_id();
        new.timestamp = time::iso(now_ms());
        new.parent_session = Some(from.to_string_lossy().into_owned());
        let to = from.with_file_name(file_name(&new));
        let is_draft = name.is_some();
        let mut copy = SessionFile::create(&if is_draft { draft_of(&to) } else { to.clone() })?;
        let (body, scan) = match copy_lines(file, *body, &new, &mut copy) {
            Ok(copied) => copied,
            Err(error) => {
                let _ = copy.remove();
                return Err(error);
            }
        };
        beside::share_outputs(&from, &to);
        let name = is_draft.then(|| to.clone());
        *header = new;
        *self = Self::Disk { file: copy, body, name };
        Ok(Some((Some(scan), Notice::Moved { from, to, why })))
    }

    /// Replaces an older file by its migrated version. The original is kept as a backup.
    fn replace_older(&mut self) -> Result<Option<(Option<Scan>, Notice)>, SessionError> {
        let Self::Memory { bytes, later: Later::Replace { old, version } } = self else {
            return Ok(None);
        };
        let path = old.path().to_owned();
        if !old.is_writable() {
            return Err(SessionError::ReadOnly { path });
        }
        if let Some(why) = old.changed() {
            return Err(SessionError::Changed { path, why });
        }
        let backup = free_name(&path, &format!(".v{version}.bak"));
        let mut file = SessionFile::create(&with_suffix(&path, &format!(".{}", id::session_id())))?;
        let replaced =
            file.append(bytes).and_then(|_| file.sync()).and_then(|()| file.replace(&path, &backup));
        if let Err(error) = replaced {
            let _ = file.remove();
            return Err(error);
        }
        let from = *version;
        let body = end_of_header(bytes);
        *self = Self::Disk { file, body, name: None };
        Ok(Some((None, Notice::Migrated { path, from, backup })))
    }

    /// Renames a draft to its final name. Returns a notice if that fails.
    pub fn name_draft(&mut self) -> Option<Notice> {
        let Self::Disk { file, name, .. } = self else {
            return None;
        };
        match file.rename(name.as_deref()?) {
            Ok(()) => {
                *name = None;
                None
            }
            Err(error) => Some(Notice::StillADraft { path: file.path().to_owned(), why: error.to_string() }),
        }
    }

    pub fn sync(&mut self) -> Result<(), SessionError> {
        self.file().map_or(Ok(()), SessionFile::sync)
    }

    /// Returns the open file, if there is one.
    pub fn file(&mut self) -> Option<&mut SessionFile> {
        match self {
            Self::Disk { file, .. } => Some(file),
            Self::Memory { .. } => None,
        }
    }

    /// Removes a draft without an answer.
    pub fn finish(self, answered: bool) -> Result<(), SessionError> {
        match self {
            Self::Disk { file, name: Some(_), .. } if !answered => file.remove(),
            _ => Ok(()),
        }
    }
}

/// Writes `header` and the lines of `from` to `to`. Returns the offset after the header, and a scan of `to`.
fn copy_lines(
    from: &SessionFile,
    mut at: u64,
    header: &Header,
    to: &mut SessionFile,
) -> Result<(u64, Scan), SessionError> {
    const CHUNK: u64 = 1 << 20;
    to.append(&entry::line(header)?)?;
    let body = to.size();
    loop {
        let chunk = from.read(at, CHUNK);
        let chunk = chunk.map_err(SessionError::io("read the session file", from.path()))?;
        if chunk.is_empty() {
            return Ok((body, to.rescan()?));
        }
        to.append(&chunk)?;
        at += chunk.len() as u64;
    }
}

fn end_of_header(bytes: &[u8]) -> u64 {
    memchr::memchr(b'\n', bytes).map_or(0, |at| at as u64 + 1)
}

/// Returns the file name of a session: `2024-12-03T14-00-00-000Z_ID.jsonl`.
pub(super) fn file_name(header: &Header) -> String {
    let time = header.timestamp.replace([':', '.'], "-");
    format!("{time}_{}.jsonl", header.id)
}

pub(super) fn draft_of(path: &Path) -> PathBuf {
    with_suffix(path, ".draft")
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the first free path made of `path`, `suffix`, and a number if necessary.
fn free_name(path: &Path, suffix: &str) -> PathBuf {
    let numbered = (1..).map(|n: u64| with_suffix(path, &format!("{suffix}{n}")));
    let mut names = std::iter::once(with_suffix(path, suffix)).chain(numbered);
    names.find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| with_suffix(path, suffix))
}
