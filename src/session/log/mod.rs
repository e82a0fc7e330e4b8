//! The log of a conversation: a tree of entries, and a leaf below which the next entry is appended.
//!
//! When an append returns, the operating system has the entry; a sync brings it to the disk. Nobody is
//! notified of an entry before. A failed append leaves no trace and can be repeated.
//!
//! A new session has no file until its first message. It then is a draft, `NAME.jsonl.draft`, which is
//! renamed when the first answer has ended; [`Log::finish`] removes a draft without an answer. If another
//! program has changed the file, the log continues in a copy, and a [`Notice`] tells the user.

use super::entry::{self, Body, Entry, Header, ModelChange, SessionInfo, ThinkingLevelChange, VERSION};
use super::file::{self, SessionFile, Unsynced};
use super::id;
use super::index::{Index, Kind, Slot};
use super::place::{Later, Place, draft_of, file_name};
use crate::agent::message::AgentMessage;
use crate::base::time;
use crate::llm::message::now_ms;
use crate::llm::secret::Vault;
use crate::session::error::SessionError;
use crate::session::notice::Notice;
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use std::path::Path;

pub mod fork;

/// When entries are synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// After each entry.
    Always,
    /// After each turn: see [`Log::turn_ended`].
    #[default]
    Turn,
    Never,
}

impl SyncMode {
    /// Parses the value of the `session.sync` setting.
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
    sync: SyncMode,
    notices: Vec<Notice>,
    /// Secrets that are replaced in entries when these are written or read.
    vault: Vault,
}

impl Log {
    /// Makes a log that is never stored.
    pub fn in_memory(cwd: &Path, id: Option<&str>) -> Result<Self, SessionError> {
        Self::start(new_header(cwd, id)?, Later::Never, SyncMode::Never)
    }

    /// Makes a session in `folder`, which is created when needed.
    pub fn create(folder: &Path, cwd: &Path, id: Option<&str>, sync: SyncMode) -> Result<Self, SessionError> {
        let header = new_header(cwd, id)?;
        let path = folder.join(file_name(&header));
        Self::start(header, Later::Draft(path), sync)
    }

    /// Makes a session in `folder` whose header names `parent` as its origin.
    pub fn create_child(
        folder: &Path,
        cwd: &Path,
        id: Option<&str>,
        parent: Option<String>,
        sync: SyncMode,
    ) -> Result<Self, SessionError> {
        let mut header = new_header(cwd, id)?;
        header.parent_session = parent;
        let path = folder.join(file_name(&header));
        Self::start(header, Later::Draft(path), sync)
    }

    /// Opens the session at `path` for appending. If there is only its draft, the draft is opened; if there
    /// is neither, or the file is empty, a new session with the working folder `cwd` is made.
    pub fn open(path: &Path, cwd: &Path, sync: SyncMode) -> Result<Self, SessionError> {
        let draft = draft_of(path);
        // A link stays a link if its target is replaced.
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

    /// Opens the session at `path` for reading, without a lock. Nothing can be appended.
    pub fn open_to_read(path: &Path) -> Result<Self, SessionError> {
        Self::load(path, false, Path::new(""), SyncMode::Never)
    }

    /// Opens the session at `path`, which may be in use, and continues in memory: new entries are not stored.
    pub fn open_detached(path: &Path) -> Result<Self, SessionError> {
        let mut log = Self::open_to_read(path)?;
        log.place.detach()?;
        Ok(log)
    }

    fn start(header: Header, later: Later, sync: SyncMode) -> Result<Self, SessionError> {
        let place = Place::in_memory(&header, later)?;
        Ok(Self::new(header, Index::default(), place, sync))
    }

    fn new(header: Header, index: Index, place: Place, sync: SyncMode) -> Self {
        Self {
            header,
            leaf: index.last_sound(),
            index,
            place,
            sync,
            notices: Vec::new(),
            vault: Vault::default(),
        }
    }

    fn load(path: &Path, writable: bool, cwd: &Path, sync: SyncMode) -> Result<Self, SessionError> {
        let (mut file, scan) = SessionFile::open(path, writable)?;
        let path = || path.to_owned();
        let Some(mut header) = scan.header else {
            if scan.has_content || !writable {
                return Err(SessionError::NotASession { path: path() });
            }
            let header = new_header(cwd, None)?;
            file.append(&entry::line(&header)?)?;
            let body = file.size();
            let place = Place::on_disk(file, body);
            return Ok(Self::new(header, Index::default(), place, sync));
        };
        if header.cwd.is_empty() {
            header.cwd = cwd.to_string_lossy().into_owned();
        }
        let version = header.version;
        let mut log = if version < VERSION {
            header.version = VERSION;
            let (place, scan) = Place::migrated(file, version)?;
            Self::new(header, scan.index, place, sync)
        } else {
            let place = Place::on_disk(file, scan.header_end);
            Self::new(header, scan.index, place, sync)
        };
        let lines = scan.damaged;
        let said = [
            scan.header_lost.then(|| Notice::HeaderLost { path: path() }),
            (!lines.is_empty()).then(|| Notice::Damaged { path: path(), lines }),
            (version > VERSION).then(|| Notice::NewerVersion { path: path(), version }),
        ];
        log.add_notices(said.into_iter().flatten());
        log.leaf_on_sound_ground();
        Ok(log)
    }

    /// Moves the leaf back to the last readable entry: programs that drop damaged lines would also lose all
    /// entries below them.
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
            self.notices.push(Notice::Unreadable { path, id: slot.id.to_string() });
        }
    }

    /// Replaces the secrets of `vault` in entries that are written or read from now on. The file's existing
    /// lines are not changed.
    pub fn hide(&mut self, vault: Vault) {
        self.vault = vault;
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the path of the session file, even while it is still a draft or not written yet; `None` for a
    /// log in memory.
    pub fn path(&self) -> Option<&Path> {
        self.place.path()
    }

    /// True if the session has a file under its final name.
    pub fn is_saved(&self) -> bool {
        self.place.is_saved()
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn leaf_position(&self) -> Option<u32> {
        self.leaf
    }

    /// Returns the id of the entry below which the next one is appended.
    pub fn leaf(&self) -> Option<&str> {
        Some(&self.index.get(self.leaf?)?.id)
    }

    /// Moves the leaf to an entry, or before the first entry if `None`. Writes nothing.
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<(), SessionError> {
        self.leaf = match id {
            None => None,
            Some(id) => {
                let found = self.index.find(id);
                Some(found.ok_or_else(|| SessionError::NotFound { wanted: id.to_owned() })?)
            }
        };
        Ok(())
    }

    /// Returns the entry `id`; `None` if it does not exist or is damaged.
    pub fn entry(&self, id: &str) -> Option<Entry> {
        self.entry_at(self.index.find(id)?)
    }

    pub fn entry_at(&self, position: u32) -> Option<Entry> {
        entry::read(&self.line(self.index.get(position)?)?).ok()
    }

    /// Reads the line of an entry, without secrets.
    pub(super) fn line(&self, slot: &Slot) -> Option<Cow<'_, [u8]>> {
        let line = self.place.read(slot.start, slot.len)?;
        Some(self.hidden(&line).map_or(line, Cow::Owned))
    }

    /// Replaces secrets in an entry's line; `None` if there are none.
    fn hidden(&self, line: &[u8]) -> Option<Vec<u8>> {
        let set = self.vault.set().filter(|set| set.is_in(line))?;
        let mut value: Value = entry::read(line).ok()?;
        set.hide_value(&mut value);
        serde_json::to_vec(&value).ok()
    }

    /// Returns the session's name.
    pub fn name(&self) -> Option<String> {
        let slot = self.index.slots.iter().rposition(|slot| slot.kind == Kind::SessionInfo)?;
        match self.entry_at(u32::try_from(slot).ok()?)?.body {
            Body::SessionInfo(info) => Some(info.name.trim().to_owned()).filter(|name| !name.is_empty()),
            _ => None,
        }
    }

    /// Takes the notices for the user since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub(super) fn add_notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        self.notices.extend(notices);
    }

    pub fn append_message(&mut self, message: &AgentMessage) -> Result<Entry, SessionError> {
        self.append(message.clone())
    }

    pub fn append_model_change(&mut self, provider: &str, model: &str) -> Result<Entry, SessionError> {
        self.append(ModelChange::new(provider, model))
    }

    pub fn append_thinking_level(&mut self, level: &str) -> Result<Entry, SessionError> {
        self.append(ThinkingLevelChange::new(level))
    }

    /// Names the session; an empty name removes the name.
    pub fn append_session_info(&mut self, name: &str) -> Result<Entry, SessionError> {
        self.append(SessionInfo::new(name))
    }

    /// Appends an entry below the leaf and moves the leaf to it.
    pub fn append(&mut self, body: impl Into<Body>) -> Result<Entry, SessionError> {
        let mut entry = Entry {
            id: id::entry_id(|id| self.index.find(id).is_some()),
            parent_id: self.leaf().map(str::to_owned),
            timestamp: time::iso(now_ms()),
            body: body.into(),
        };
        // A compaction that names no first entry keeps none: it names itself.
        if let Body::Compaction(compaction) = &mut entry.body {
            compaction.first_kept_entry_id.get_or_insert_with(|| entry.id.clone());
        }
        let mut line = entry::line(&entry)?;
        if let Some(hidden) = self.hidden(&line) {
            entry = entry::read(&hidden).unwrap_or(entry);
            line = [&hidden[..], b"\n"].concat();
        }
        let role = match &entry.body {
            Body::Message(body) => Some(body.message.role()),
            _ => None,
        };
        let kind = Kind::new(entry.body.kind(), role);
        self.make_writable()?;
        let start = self.place.append(&line, kind.is_message())?;
        self.leaf = Some(self.index.push(Slot {
            id: entry.id.as_str().into(),
            parent: self.leaf,
            kind,
            start,
            len: line.len() as u64 - 1,
        }));
        if kind == Kind::Assistant {
            self.notices.extend(self.place.name_draft());
        }
        if self.sync == SyncMode::Always {
            self.sync();
        }
        Ok(entry)
    }

    /// Syncs the entries of a turn to the disk, if the `session.sync` setting asks for it.
    pub fn turn_ended(&mut self) {
        if self.sync == SyncMode::Turn {
            self.sync();
        }
    }

    /// Returns the sync that is due after a turn, if the `session.sync` setting asks for one, to be run
    /// without the log's lock.
    pub fn turn_unsynced(&mut self) -> Option<Unsynced> {
        if self.sync != SyncMode::Turn {
            return None;
        }
        match self.place.file()?.unsynced() {
            Ok(unsynced) => Some(unsynced),
            Err(error) => {
                self.synced(Err(error));
                None
            }
        }
    }

    pub fn synced(&mut self, done: io::Result<()>) {
        if let Some(file) = self.place.file() {
            let done = file.synced(done);
            self.note_sync(done);
        }
    }

    fn sync(&mut self) {
        let done = self.place.sync();
        self.note_sync(done);
    }

    fn note_sync(&mut self, synced: Result<(), SessionError>) {
        if let Err(error) = synced {
            let why = error.to_string();
            self.notices.push(Notice::NotStored { why });
        }
    }

    /// Ensures that the next line goes to an unchanged file of the current version.
    fn make_writable(&mut self) -> Result<(), SessionError> {
        if let Some((scan, notice)) = self.place.make_writable(&mut self.header)? {
            if let Some(scan) = scan {
                let leaf = self.leaf().map(|leaf| scan.index.find(leaf).or(scan.index.last_sound()));
                self.leaf = leaf.flatten();
                self.index = scan.index;
            }
            self.notices.push(notice);
        }
        Ok(())
    }

    /// Closes the log. A draft without an answer is removed.
    pub fn finish(self) -> Result<(), SessionError> {
        let answered = self.index.slots.iter().any(|slot| slot.kind == Kind::Assistant);
        self.place.finish(answered)
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

#[cfg(test)]
mod power_loss;
#[cfg(test)]
mod tests;
