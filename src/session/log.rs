//! The log of one conversation: a tree of entries with a leaf where the next one is hung.
//!
//! An entry is on disk (with the kernel; on the disk itself after a sync) when its append returns, and
//! the caller tells nobody before. A failed append leaves no trace and can be tried again.
//!
//! A new session is a draft, `NAME.jsonl.draft`, from its first message on, and gets its name when the
//! first answer has ended; [`Log::finish`] removes a draft that never had one. Before the first message
//! there is nothing on disk. When somebody else has been at the file, the conversation goes on in a
//! copy, and a [`Notice`] says so.

use super::entry::{
    self, Body, Entry, Header, ModelChange, SessionInfo, ThinkingLevelChange, VERSION,
};
use super::file::{self, SessionFile};
use super::index::{Index, Kind, Slot};
use super::{Notice, SessionError, id, migrate, time};
use crate::agent::message::AgentMessage;
use crate::llm::message::now_ms;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// When written entries are handed to the disk itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// After each entry.
    Always,
    /// When a turn has ended: see [`Log::turn_ended`].
    #[default]
    Turn,
    Never,
}

impl Sync {
    /// The words of the setting `session.sync`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "always" => Some(Self::Always),
            "turn" => Some(Self::Turn),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

pub struct Log {
    header: Header,
    index: Index,
    leaf: Option<u32>,
    place: Place,
    sync: Sync,
    notices: Vec<Notice>,
}

enum Place {
    /// The whole file, not on disk (yet).
    Memory { bytes: Vec<u8>, later: Later },
    Disk {
        file: SessionFile,
        /// Where the line after the header begins.
        body: u64,
        /// The name that a draft is to get.
        name: Option<PathBuf>,
    },
}

enum Later {
    Never,
    /// With the first message, as a draft of this file.
    Draft(PathBuf),
    /// With the next entry, in place of this older file.
    Replace {
        old: SessionFile,
        version: u64,
    },
}

impl Log {
    /// A log that never touches the disk.
    pub fn in_memory(cwd: &Path, id: Option<&str>) -> Result<Self, SessionError> {
        Self::start(new_header(cwd, id)?, Later::Never, Sync::Never)
    }

    /// A new session in `folder`, which need not exist yet.
    pub fn create(
        folder: &Path,
        cwd: &Path,
        id: Option<&str>,
        sync: Sync,
    ) -> Result<Self, SessionError> {
        let header = new_header(cwd, id)?;
        let path = folder.join(file_name(&header));
        Self::start(header, Later::Draft(path), sync)
    }

    /// Opens the session at `path` to go on with it. A file that does not exist, or is empty, becomes a
    /// new session of `cwd`; when a draft of it was left behind, that is opened.
    pub fn open(path: &Path, cwd: &Path, sync: Sync) -> Result<Self, SessionError> {
        let draft = draft_of(path);
        // A link stays a link when the file behind it is replaced.
        if let Ok(path) = path.canonicalize() {
            file::remove_other_name(&path, &draft_of(&path));
            Self::load(&path, true, cwd, sync)
        } else if draft.exists() {
            Self::load(&draft, true, cwd, sync)
        } else {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Self::start(new_header(cwd, None)?, Later::Draft(path), sync)
        }
    }

    /// Opens the session at `path` to look into it: no lock is taken and nothing can be appended.
    pub fn open_to_read(path: &Path) -> Result<Self, SessionError> {
        Self::load(path, false, Path::new(""), Sync::Never)
    }

    fn start(header: Header, later: Later, sync: Sync) -> Result<Self, SessionError> {
        let bytes = entry::line(&header)?;
        Ok(Self {
            header,
            index: Index::default(),
            leaf: None,
            place: Place::Memory { bytes, later },
            sync,
            notices: Vec::new(),
        })
    }

    fn load(path: &Path, writable: bool, cwd: &Path, sync: Sync) -> Result<Self, SessionError> {
        let (mut file, scan) = SessionFile::open(path, writable)?;
        let Some(mut header) = scan.header else {
            if scan.has_content || !writable {
                return Err(SessionError::NotASession {
                    path: path.to_owned(),
                });
            }
            let header = new_header(cwd, None)?;
            file.append(&entry::line(&header)?)?;
            let body = file.size();
            return Ok(Self::opened(header, Index::default(), file, body, sync));
        };
        let mut notices = Vec::new();
        let path = || path.to_owned();
        if scan.header_lost {
            notices.push(Notice::HeaderLost { path: path() });
        }
        if !scan.damaged.is_empty() {
            notices.push(Notice::Damaged {
                path: path(),
                lines: scan.damaged,
            });
        }
        if header.cwd.is_empty() {
            header.cwd = cwd.to_string_lossy().into_owned();
        }
        if header.version > VERSION {
            notices.push(Notice::NewerVersion {
                path: path(),
                version: header.version,
            });
        }
        let mut log = if header.version < VERSION {
            Self::migrated(header, file)?
        } else {
            Self::opened(header, scan.index, file, scan.header_end, sync)
        };
        log.sync = sync;
        log.notices.splice(..0, notices);
        log.leaf_on_sound_ground();
        Ok(log)
    }

    fn opened(header: Header, index: Index, file: SessionFile, body: u64, sync: Sync) -> Self {
        let name = file
            .path()
            .as_os_str()
            .to_string_lossy()
            .ends_with(".jsonl.draft");
        let name = name.then(|| file.path().with_extension(""));
        Self {
            header,
            leaf: index.last_sound(),
            index,
            place: Place::Disk { file, body, name },
            sync,
            notices: Vec::new(),
        }
    }

    fn migrated(mut header: Header, old: SessionFile) -> Result<Self, SessionError> {
        let version = std::mem::replace(&mut header.version, VERSION);
        let bytes = migrate::migrate(&file::read_whole(old.path())?, version);
        let scan = super::index::scan(bytes.as_slice(), "")
            .map_err(SessionError::io("read the session file", old.path()))?;
        Ok(Self {
            header,
            leaf: scan.index.last_sound(),
            index: scan.index,
            place: Place::Memory {
                bytes,
                later: Later::Replace { old, version },
            },
            sync: Sync::default(),
            notices: Vec::new(),
        })
    }

    /// Moves the leaf back over entries that only look whole: programs that give up damaged lines would
    /// lose all that is hung on one.
    fn leaf_on_sound_ground(&mut self) {
        while let Some(leaf) = self.leaf {
            if self.entry_at(leaf).is_some() {
                break;
            }
            self.mark_damaged(leaf);
            self.leaf = self.index.last_sound();
        }
    }

    pub(super) fn mark_damaged(&mut self, position: u32) {
        let path = self.path().unwrap_or(Path::new("")).to_owned();
        let slot = self.index.slots.get_mut(position as usize);
        if let Some(slot) = slot.filter(|slot| slot.kind != Kind::Damaged) {
            slot.kind = Kind::Damaged;
            self.notices.push(Notice::Unreadable {
                path,
                id: slot.id.to_string(),
            });
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The session's file, or where it will be; none for a log in memory. While it is a draft, its
    /// name to be.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Disk {
                name: Some(name), ..
            } => Some(name),
            Place::Disk { file, .. } => Some(file.path()),
            Place::Memory {
                later: Later::Never,
                ..
            } => None,
            Place::Memory {
                later: Later::Draft(path),
                ..
            } => Some(path),
            Place::Memory {
                later: Later::Replace { old, .. },
                ..
            } => Some(old.path()),
        }
    }

    /// Whether the session has a file under its own name.
    pub fn is_saved(&self) -> bool {
        match &self.place {
            Place::Disk { name, .. } => name.is_none(),
            Place::Memory { later, .. } => matches!(later, Later::Replace { .. }),
        }
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn leaf_position(&self) -> Option<u32> {
        self.leaf
    }

    /// The entry that the next one is hung on.
    pub fn leaf(&self) -> Option<&str> {
        Some(&self.index.get(self.leaf?)?.id)
    }

    /// Moves the leaf to an entry, or before all of them. Nothing is written.
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<(), SessionError> {
        self.leaf = match id {
            None => None,
            Some(id) => {
                let found = self.index.find(id);
                Some(found.ok_or_else(|| SessionError::NotFound {
                    wanted: id.to_owned(),
                })?)
            }
        };
        Ok(())
    }

    /// The entry with this id; none when there is no such entry, or it is damaged.
    pub fn entry(&self, id: &str) -> Option<Entry> {
        self.entry_at(self.index.find(id)?)
    }

    pub fn entry_at(&self, position: u32) -> Option<Entry> {
        entry::read(&self.line(self.index.get(position)?)?).ok()
    }

    /// The bytes of an entry.
    pub(super) fn line(&self, slot: &Slot) -> Option<Cow<'_, [u8]>> {
        match &self.place {
            Place::Disk { file, .. } => file.read(slot.start, slot.len).ok().map(Cow::Owned),
            Place::Memory { bytes, .. } => {
                let start = usize::try_from(slot.start).ok()?;
                let end = start.checked_add(usize::try_from(slot.len).ok()?)?;
                bytes.get(start..end).map(Cow::Borrowed)
            }
        }
    }

    /// The name that the user gave the session last.
    pub fn name(&self) -> Option<String> {
        let slot = self
            .index
            .slots
            .iter()
            .rposition(|slot| slot.kind == Kind::SessionInfo)?;
        match self.entry_at(u32::try_from(slot).ok()?)?.body {
            Body::SessionInfo(info) => {
                Some(info.name.trim().to_owned()).filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// What the user should be told since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub(super) fn add_notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        self.notices.extend(notices);
    }

    pub fn append_message(&mut self, message: &AgentMessage) -> Result<Entry, SessionError> {
        self.append(message.clone())
    }

    pub fn append_model_change(
        &mut self,
        provider: &str,
        model: &str,
    ) -> Result<Entry, SessionError> {
        self.append(ModelChange {
            provider: provider.to_owned(),
            model_id: model.to_owned(),
            ..ModelChange::default()
        })
    }

    pub fn append_thinking_level(&mut self, level: &str) -> Result<Entry, SessionError> {
        self.append(ThinkingLevelChange {
            thinking_level: level.to_owned(),
            ..ThinkingLevelChange::default()
        })
    }

    /// Names the session; an empty name takes the earlier one away.
    pub fn append_session_info(&mut self, name: &str) -> Result<Entry, SessionError> {
        let words: Vec<&str> = name
            .split(['\r', '\n'])
            .filter(|part| !part.is_empty())
            .collect();
        self.append(SessionInfo {
            name: words.join(" ").trim().to_owned(),
            ..SessionInfo::default()
        })
    }

    /// Hangs a new entry on the leaf and makes it the leaf.
    pub fn append(&mut self, body: impl Into<Body>) -> Result<Entry, SessionError> {
        let entry = Entry {
            id: id::entry_id(|id| self.index.find(id).is_some()),
            parent_id: self.leaf().map(str::to_owned),
            timestamp: time::iso(now_ms()),
            body: body.into(),
        };
        let line = entry::line(&entry)?;
        let role = match &entry.body {
            Body::Message(body) => Some(body.message.role()),
            _ => None,
        };
        let kind = Kind::new(entry.body.kind(), role);
        let start = self.write(&line, kind)?;
        self.leaf = Some(self.index.push(Slot {
            id: entry.id.as_str().into(),
            parent: self.leaf,
            kind,
            start,
            len: line.len() as u64 - 1,
        }));
        if kind == Kind::Assistant {
            self.name_draft();
        }
        if self.sync == Sync::Always {
            self.sync();
        }
        Ok(entry)
    }

    /// Puts a line at the end, wherever that is by now, and gives its place.
    fn write(&mut self, line: &[u8], kind: Kind) -> Result<u64, SessionError> {
        self.settle()?;
        match &mut self.place {
            Place::Disk { file, .. } => file.append(line),
            Place::Memory { bytes, later } => {
                let start = bytes.len() as u64;
                if let (Later::Draft(name), true) = (&*later, kind.is_message()) {
                    let all = [bytes.as_slice(), line].concat();
                    let mut file = SessionFile::create(&draft_of(name))?;
                    if let Err(error) = file.append(&all) {
                        // The next try makes it anew.
                        let _ = file.remove();
                        return Err(error);
                    }
                    let body = memchr::memchr(b'\n', bytes).map_or(0, |at| at as u64 + 1);
                    self.place = Place::Disk {
                        file,
                        body,
                        name: Some(name.clone()),
                    };
                } else {
                    bytes.extend_from_slice(line);
                }
                Ok(start)
            }
        }
    }

    /// Makes sure that the next line goes to a file that is ours and of this version.
    fn settle(&mut self) -> Result<(), SessionError> {
        match &self.place {
            Place::Disk { file, .. } if !file.is_writable() => Err(SessionError::ReadOnly {
                path: file.path().to_owned(),
            }),
            Place::Disk { file, .. } => match file.changed() {
                Some(why) => self.move_away(why),
                None => Ok(()),
            },
            Place::Memory {
                later: Later::Replace { .. },
                ..
            } => self.replace_older(),
            Place::Memory { .. } => Ok(()),
        }
    }

    /// Goes on in a copy of what was ours: a new session that names this one as its parent.
    fn move_away(&mut self, why: String) -> Result<(), SessionError> {
        const CHUNK: u64 = 1 << 20;
        let Place::Disk { file, body, name } = &self.place else {
            return Ok(());
        };
        let from = name.as_deref().unwrap_or(file.path()).to_owned();
        let mut header = self.header.clone();
        header.id = id::session_id();
        header.timestamp = time::iso(now_ms());
        header.parent_session = Some(from.to_string_lossy().into_owned());
        let to = from.with_file_name(file_name(&header));
        let mut copy = SessionFile::create(&if name.is_some() {
            draft_of(&to)
        } else {
            to.clone()
        })?;
        let filled = (|| {
            copy.append(&entry::line(&header)?)?;
            let new_body = copy.size();
            let mut at = *body;
            loop {
                let chunk = file.read(at, CHUNK);
                let chunk = chunk.map_err(SessionError::io("read the session file", &from))?;
                if chunk.is_empty() {
                    break;
                }
                copy.append(&chunk)?;
                at += chunk.len() as u64;
            }
            Ok((new_body, copy.rescan()?))
        })();
        let (body, scan) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                let _ = copy.remove();
                return Err(error);
            }
        };
        let name = name.is_some().then(|| to.clone());
        self.leaf = match self.leaf() {
            Some(leaf) => scan.index.find(leaf).or(scan.index.last_sound()),
            None => None,
        };
        self.index = scan.index;
        self.header = header;
        self.place = Place::Disk {
            file: copy,
            body,
            name,
        };
        self.notices.push(Notice::Moved { from, to, why });
        Ok(())
    }

    /// Puts the migrated file in the place of the older one, which stays beside it.
    fn replace_older(&mut self) -> Result<(), SessionError> {
        let Place::Memory {
            bytes,
            later: Later::Replace { old, version },
        } = &self.place
        else {
            return Ok(());
        };
        if !old.is_writable() {
            return Err(SessionError::ReadOnly {
                path: old.path().to_owned(),
            });
        }
        if let Some(why) = old.changed() {
            return Err(SessionError::Changed {
                path: old.path().to_owned(),
                why,
            });
        }
        let path = old.path().to_owned();
        let backup = (0..)
            .map(|n: u32| match n {
                0 => with_suffix(&path, &format!(".v{version}.bak")),
                n => with_suffix(&path, &format!(".v{version}.bak{n}")),
            })
            .find(|backup| backup.symlink_metadata().is_err())
            .unwrap_or_else(|| with_suffix(&path, ".bak"));
        let mut file = SessionFile::create(&with_suffix(&path, &format!(".{}", id::session_id())))?;
        let replaced = file
            .append(bytes)
            .and_then(|_| file.sync())
            .and_then(|()| file.replace(&path, &backup));
        if let Err(error) = replaced {
            let _ = file.remove();
            return Err(error);
        }
        let body = memchr::memchr(b'\n', bytes).map_or(0, |at| at as u64 + 1);
        self.notices.push(Notice::Migrated {
            path,
            from: *version,
            backup,
        });
        self.place = Place::Disk {
            file,
            body,
            name: None,
        };
        Ok(())
    }

    /// Gives the draft its name, now that there is an answer.
    fn name_draft(&mut self) {
        if let Place::Disk { file, name, .. } = &mut self.place
            && let Some(to) = name.as_deref()
        {
            match file.rename(to) {
                Ok(()) => *name = None,
                Err(error) => self.notices.push(Notice::StillADraft {
                    path: file.path().to_owned(),
                    why: error.to_string(),
                }),
            }
        }
    }

    /// A turn has ended: what it wrote is handed to the disk, if the settings ask for it.
    pub fn turn_ended(&mut self) {
        if self.sync == Sync::Turn {
            self.sync();
        }
    }

    fn sync(&mut self) {
        if let Place::Disk { file, .. } = &mut self.place
            && let Err(error) = file.sync()
        {
            self.notices.push(Notice::NotStored {
                why: error.to_string(),
            });
        }
    }

    /// The run has ended: a draft without an answer is removed.
    pub fn finish(self) -> Result<(), SessionError> {
        let answered = self
            .index
            .slots
            .iter()
            .any(|slot| slot.kind == Kind::Assistant);
        match self.place {
            Place::Disk {
                file,
                name: Some(_),
                ..
            } if !answered => file.remove(),
            _ => Ok(()),
        }
    }
}

fn new_header(cwd: &Path, id: Option<&str>) -> Result<Header, SessionError> {
    let id = match id {
        Some(id) if !id::is_valid(id) => return Err(SessionError::InvalidId { id: id.to_owned() }),
        Some(id) => id.to_owned(),
        None => id::session_id(),
    };
    let cwd = cwd.to_string_lossy().into_owned();
    Ok(Header::new(id, time::iso(now_ms()), cwd))
}

/// `2024-12-03T14-00-00-000Z_ID.jsonl`.
fn file_name(header: &Header) -> String {
    let time = header.timestamp.replace([':', '.'], "-");
    format!("{time}_{}.jsonl", header.id)
}

pub(super) fn draft_of(path: &Path) -> PathBuf {
    with_suffix(path, ".draft")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
