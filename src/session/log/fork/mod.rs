//! Makes new sessions from entries of an existing one.
//!
//! A fork contains the entries from the root to a chosen entry. Labels on the way are removed from the chain,
//! and those that name a kept entry are appended at the end. A copy for another folder contains all entries.
//! Both name the original file as their parent, as the reference does.
//!
//! A fork with an answer is written to a file at once, completely or not at all. A fork without an answer
//! starts as a draft with its next message, like any new session.

use super::{Log, SyncMode, new_header};
use crate::llm::message::{Block, Content};
use crate::session::entry::{self, Body, Entry, Header, Label};
use crate::session::error::SessionError;
use crate::session::file::SessionFile;
use crate::session::index::{self, Index, Kind, Slot, scan};
use crate::session::place::{Later, Place, file_name, with_suffix};
use crate::session::{beside, id};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A user message before which a fork can end.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkPoint {
    pub entry_id: String,
    pub text: String,
}

impl Log {
    /// Makes a session from the entries before the user message `id`, and returns the message's text.
    pub fn fork_before(&self, id: &str) -> Result<(Self, String), SessionError> {
        let position = self.index.find(id).ok_or(SessionError::NoForkPoint)?;
        let entry = self.entry_at(position).ok_or(SessionError::NoForkPoint)?;
        let text = user_text(&entry).ok_or(SessionError::NoForkPoint)?;
        let log = match self.index.get(position).and_then(|slot| slot.parent) {
            Some(parent) => self.branch(parent)?,
            None => {
                let header = self.child_header()?;
                let later = self.later(&header);
                Self::start(header, later, self.sync)?
            }
        };
        Ok((log, text))
    }

    /// Makes a session from the branch that ends in the entry `id`.
    pub fn fork_at(&self, id: &str) -> Result<Self, SessionError> {
        let leaf = self.index.find(id).ok_or(SessionError::NoForkPoint)?;
        self.branch(leaf)
    }

    /// Returns all user messages with text, in the order of the file.
    pub fn fork_points(&self) -> Vec<ForkPoint> {
        let slots = self.index.slots.iter().zip(0..);
        slots.filter_map(|(_, position)| self.fork_point(position)).collect()
    }

    /// Returns the entry at `position`, if it is a user message with text.
    pub fn fork_point(&self, position: u32) -> Option<ForkPoint> {
        let slot = self.index.get(position)?;
        if slot.kind != Kind::User {
            return None;
        }
        let text = user_text(&self.entry_at(position)?)?;
        let entry_id = slot.id.to_string();
        (!text.is_empty()).then_some(ForkPoint { entry_id, text })
    }

    /// Copies all entries to a new session in `folder` with the working folder `cwd`.
    pub(in crate::session) fn copy_into(
        &self,
        folder: &Path,
        cwd: &Path,
        id: Option<&str>,
        sync: SyncMode,
    ) -> Result<Self, SessionError> {
        let mut header = new_header(cwd, id)?;
        header.parent_session = self.place.path().map(to_string);
        let lines = self.index.slots.iter().filter_map(|slot| {
            let line = self.sound_line(slot)?;
            let parent = slot.parent.and_then(|parent| self.index.get(parent));
            Some(rechained(&line, parent.map(|parent| &*parent.id), &HashMap::new()))
        });
        let path = folder.join(file_name(&header));
        let copy = write(header, &path, lines, sync)?;
        self.share_outputs(&path);
        Ok(copy)
    }

    fn branch(&self, leaf: u32) -> Result<Self, SessionError> {
        if !self.is_saved()
            && let Some(path) = self.path()
        {
            return Err(SessionError::NotSaved { path: path.to_owned() });
        }
        let header = self.child_header()?;
        let path = self.index.path(Some(leaf));
        let slots: Vec<&Slot> = path.iter().filter_map(|&position| self.index.get(position)).collect();
        let mut chain = Chain::default();
        for slot in &slots {
            chain.push(slot);
        }
        let kept: HashSet<&str> = chain.kept.iter().map(|slot| &*slot.id).collect();
        let labels = self.labels_of(&kept, chain.kept.last().map(|slot| &*slot.id));
        let mut parent = None;
        let lines = chain.kept.iter().filter_map(|slot| {
            let line = self.sound_line(slot)?;
            let line = rechained(&line, parent, &chain.instead);
            parent = Some(&*slot.id);
            Some(line)
        });
        let lines = lines.chain(labels.iter().filter_map(|label| {
            let mut line = entry::line(label).ok()?;
            line.pop();
            Some(line)
        }));
        let answered = slots.iter().any(|slot| slot.kind == Kind::Assistant);
        let later = self.later(&header);
        match later {
            Later::Draft(path) if answered => {
                let fork = write(header, &path, lines, self.sync)?;
                self.share_outputs(&path);
                Ok(fork)
            }
            later => in_memory(header, lines, later, self.sync),
        }
    }

    /// Copies the branch at the leaf into memory, with its ids. Nothing of the copy is ever stored.
    pub fn sketch(&self) -> Result<Self, SessionError> {
        let path = self.index.path(self.leaf);
        let mut parent = None;
        let lines = path.iter().filter_map(|&position| {
            let slot = self.index.get(position)?;
            let line = rechained(&self.sound_line(slot)?, parent, &HashMap::new());
            parent = Some(&*slot.id);
            Some(line)
        });
        in_memory(self.header.clone(), lines, Later::Never, SyncMode::Never)
    }

    /// Returns the current labels of the entries `kept`, as a chain below `parent`.
    fn labels_of(&self, kept: &HashSet<&str>, parent: Option<&str>) -> Vec<Entry> {
        let mut standing: Vec<Option<(String, Label)>> = Vec::new();
        let mut by_target: HashMap<String, usize> = HashMap::new();
        let slots = self.index.slots.iter().zip(0..);
        for (_, position) in slots.filter(|(slot, _)| slot.kind == Kind::Label) {
            let Some(entry) = self.entry_at(position) else {
                continue;
            };
            let Body::Label(label) = entry.body else {
                continue;
            };
            let known = by_target.get(&label.target_id).copied();
            let place = known.and_then(|at| standing.get_mut(at));
            if label.label.as_deref().is_none_or(str::is_empty) {
                by_target.remove(&label.target_id);
                place.map(Option::take);
            } else if let Some(place) = place {
                *place = Some((entry.timestamp, label));
            } else {
                by_target.insert(label.target_id.clone(), standing.len());
                standing.push(Some((entry.timestamp, label)));
            }
        }
        let mut parent = parent.map(str::to_owned);
        let mut taken: HashSet<String> = HashSet::new();
        let labels = standing.into_iter().flatten();
        labels
            .filter(|(_, label)| kept.contains(label.target_id.as_str()))
            .map(|(timestamp, label)| {
                let id = id::entry_id(|id| kept.contains(id) || taken.contains(id));
                taken.insert(id.clone());
                Entry {
                    parent_id: parent.replace(id.clone()),
                    id,
                    timestamp,
                    body: Body::Label(Label { extra: Default::default(), ..label }),
                }
            })
            .collect()
    }

    fn child_header(&self) -> Result<Header, SessionError> {
        let mut header = new_header(Path::new(&self.header.cwd), None)?;
        header.parent_session = self.place.path().map(to_string);
        Ok(header)
    }

    /// Returns the place for a fork of this session: a draft in its folder, or memory.
    fn later(&self, header: &Header) -> Later {
        match self.place.path() {
            Some(path) => Later::Draft(path.with_file_name(file_name(header))),
            None => Later::Never,
        }
    }

    fn share_outputs(&self, to: &Path) {
        if let Some(from) = self.path() {
            beside::share_outputs(from, to);
        }
    }

    /// Returns the line of an entry, unless it is damaged.
    fn sound_line(&self, slot: &Slot) -> Option<Cow<'_, [u8]>> {
        (slot.kind != Kind::Damaged).then(|| self.line(slot))?
    }
}

/// The entries of a branch without its labels.
#[derive(Default)]
struct Chain<'a> {
    kept: Vec<&'a Slot>,
    /// For each removed label, the id of the entry after it.
    instead: HashMap<&'a str, &'a str>,
    pending: Vec<&'a str>,
}

impl<'a> Chain<'a> {
    fn push(&mut self, slot: &'a Slot) {
        match slot.kind {
            Kind::Label => self.pending.push(&slot.id),
            // Damaged entries are dropped; their children are attached to the entry before them.
            Kind::Damaged => {}
            _ => {
                let labels = self.pending.drain(..);
                self.instead.extend(labels.map(|label| (label, &*slot.id)));
                self.kept.push(slot);
            }
        }
    }
}

/// Attaches an entry's line to `parent`. A compaction whose first kept entry is a removed label gets the
/// entry in `instead`. A line that needs no change is returned unchanged.
fn rechained(line: &[u8], parent: Option<&str>, instead: &HashMap<&str, &str>) -> Vec<u8> {
    let head = index::parent_and_kind(line);
    let same = head.as_ref().is_some_and(|(known, _)| known.as_deref() == parent);
    let may_keep_from_a_label = !instead.is_empty() && head.is_some_and(|(_, kind)| kind == Kind::Compaction);
    if same && !may_keep_from_a_label {
        return line.to_vec();
    }
    let Ok(mut fields) = entry::read::<Map<String, Value>>(line) else {
        return line.to_vec();
    };
    let parent = parent.map_or(Value::Null, Value::from);
    fields.insert("parentId".into(), parent);
    if let Some(first) = fields.get_mut("firstKeptEntryId")
        && let Some(other) = first.as_str().and_then(|id| instead.get(id))
    {
        *first = Value::from(*other);
    }
    serde_json::to_vec(&fields).unwrap_or_else(|_| line.to_vec())
}

/// Makes a log in memory of these lines.
fn in_memory(
    header: Header,
    lines: impl Iterator<Item = Vec<u8>>,
    later: Later,
    sync: SyncMode,
) -> Result<Log, SessionError> {
    let mut bytes = entry::line(&header)?;
    for line in lines {
        bytes.extend_from_slice(&line);
        bytes.push(b'\n');
    }
    let scan =
        scan(bytes.as_slice(), "").map_err(SessionError::io("read the fork of", Path::new("the session")))?;
    let place = Place::Memory { bytes, later };
    Ok(Log::new(header, scan.index, place, sync))
}

/// Writes a session file with these lines and opens it. The file gets its name `path` when it is complete.
fn write(
    header: Header,
    path: &Path,
    lines: impl Iterator<Item = Vec<u8>>,
    sync: SyncMode,
) -> Result<Log, SessionError> {
    const CHUNK: usize = 1 << 20;
    let mut file = SessionFile::create(&with_suffix(path, &format!(".{}", id::session_id())))?;
    let fill = || {
        let mut bytes = entry::line(&header)?;
        let body = bytes.len() as u64;
        for line in lines {
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
            if bytes.len() >= CHUNK {
                file.append(&bytes)?;
                bytes.clear();
            }
        }
        file.append(&bytes)?;
        if sync != SyncMode::Never {
            file.sync()?;
        }
        let scan = file.rescan()?;
        file.rename(path)?;
        Ok((body, scan))
    };
    match fill() {
        Ok((body, scan)) => {
            let index: Index = scan.index;
            Ok(Log::new(header, index, Place::on_disk(file, body), sync))
        }
        Err(error) => {
            let _ = file.remove();
            Err(error)
        }
    }
}

fn to_string(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the text of a user message; `None` for other entries.
fn user_text(entry: &Entry) -> Option<String> {
    let Body::Message(body) = &entry.body else {
        return None;
    };
    let crate::agent::message::AgentMessage::User(message) = &body.message else {
        return None;
    };
    Some(match &message.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect(),
    })
}

/// Returns the file of a session to copy: the session file, or its draft if there is no session file.
pub(in crate::session) fn source_of(path: &Path) -> PathBuf {
    let draft = super::draft_of(path);
    if !path.exists() && draft.exists() { draft } else { path.to_owned() }
}

#[cfg(test)]
mod tests;
