//! The model's context of a session: the path from the root to the leaf, after compactions and edits.
//!
//! Only necessary entries are read: those from the latest compaction on, and the last entry that names a
//! model.

use super::entry::{self, Body, Entry, Replacement};
use super::index::Kind;
use super::log::Log;
use crate::agent::message::{self, AgentMessage};
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::base::time;
use crate::llm::message::{Block, Content, Extra, StopReason};
use crate::llm::model::VIRTUAL_API;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

/// The model's context at the leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionContext {
    pub messages: Vec<ContextMessage>,
    pub marks: Marks,
    pub models: StoredModels,
    /// The name of the last chosen thinking level, unchecked.
    pub thinking_level: Option<String>,
}

/// A message, and the id of its entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextMessage {
    pub entry: Arc<str>,
    pub message: AgentMessage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredModel {
    pub provider: String,
    pub id: String,
}

/// The models that a branch names last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredModels {
    /// The model of the last answer or choice.
    pub last: Option<StoredModel>,
    /// The last choice.
    pub chosen: Option<StoredModel>,
}

impl StoredModels {
    /// The model that the branch uses. A choice of a virtual model holds although answers name other models: those that
    /// it has chosen.
    pub fn used(&self, is_virtual: impl Fn(&StoredModel) -> bool) -> Option<&StoredModel> {
        self.chosen.as_ref().filter(|chosen| is_virtual(chosen)).or(self.last.as_ref())
    }
}

/// Indexes of messages from which on token usage of answers is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Index of the first message after the latest compaction; 0 without a compaction.
    pub after_compaction: usize,
    /// Index of the first message after the latest compaction and edit. The usage of an answer from here on
    /// describes the present conversation.
    pub fresh: usize,
}

/// The entries from the latest compaction on, including entries without a message for the model.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    pub entries: Vec<Projected>,
    /// Index of the first entry after the latest compaction, which is at index 0; 0 without a compaction.
    after_compaction: usize,
    fresh: usize,
}

#[derive(Clone, Debug)]
pub struct Projected {
    pub entry: Arc<str>,
    pub kind: Kind,
    /// The entry's messages after edits: up to two for a compaction, up to one for other kinds.
    pub messages: Vec<AgentMessage>,
    /// True if an edit leaves the entry's message out.
    pub omitted: bool,
    /// The change, if the entry is an edit.
    pub edit: Option<Edit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub target: String,
    /// True if the edit leaves the target out; false if it replaces the content.
    pub omits: bool,
}

impl SessionContext {
    pub fn into_messages(self) -> Vec<AgentMessage> {
        self.messages.into_iter().map(|message| message.message).collect()
    }
}

impl Projection {
    pub fn messages(&self) -> impl Iterator<Item = &AgentMessage> {
        self.entries.iter().flat_map(|entry| &entry.messages)
    }

    pub fn marks(&self) -> Marks {
        let count = |end: usize| {
            let entries = self.entries.get(..end).unwrap_or_default();
            entries.iter().map(|entry| entry.messages.len()).sum()
        };
        Marks { after_compaction: count(self.after_compaction), fresh: count(self.fresh) }
    }

    fn into_context_messages(self) -> Vec<ContextMessage> {
        let of = |projected: Projected| {
            let entry = projected.entry;
            let messages = projected.messages.into_iter();
            messages.map(move |message| ContextMessage { entry: entry.clone(), message })
        };
        self.entries.into_iter().flat_map(of).collect()
    }
}

impl Log {
    /// Builds the model's context at the leaf. Unreadable entries are skipped and reported as damaged.
    pub fn context(&mut self) -> SessionContext {
        self.read_path(|reader, path| {
            let projection = reader.projection(path);
            SessionContext {
                marks: projection.marks(),
                messages: projection.into_context_messages(),
                models: reader.last_models(path),
                thinking_level: reader.last_thinking_level(path),
            }
        })
    }

    /// Returns the last models and the last chosen thinking level on the branch.
    pub fn last_choice(&mut self) -> (StoredModels, Option<String>) {
        self.read_path(|reader, path| (reader.last_models(path), reader.last_thinking_level(path)))
    }

    /// Returns the message of an entry before any edit; for a compaction or a branch summary, the summary.
    pub fn message(&self, id: &str) -> Option<AgentMessage> {
        let entry = self.entry(id)?;
        match entry.body {
            Body::Message(body) => Some(complete(body.message)),
            Body::Compaction(_) => checkpoint(entry).pop(),
            _ => summary_or_custom(entry),
        }
    }

    /// Builds the model's context at the leaf, including entries without a message.
    pub fn projection(&mut self) -> Projection {
        self.read_path(|reader, path| reader.projection(path))
    }

    fn read_path<T>(&mut self, read: impl FnOnce(&mut Reader<'_>, &[u32]) -> T) -> T {
        let path = self.index().path(self.leaf_position());
        let mut reader = Reader { log: self, damaged: Vec::new() };
        let result = read(&mut reader, &path);
        for position in reader.damaged {
            self.mark_damaged(position);
        }
        result
    }
}

/// Reads entries of a log, and collects the positions of unreadable ones.
struct Reader<'a> {
    log: &'a Log,
    damaged: Vec<u32>,
}

/// The result of reading an entry.
enum Read {
    Message(AgentMessage),
    Nothing,
    Damaged,
}

/// Replacements by entry id; `None` leaves the entry's message out.
type Edits = HashMap<String, Option<Replacement>>;

impl Reader<'_> {
    fn projection(&mut self, path: &[u32]) -> Projection {
        let selection = self.select(path);
        let (edits, edit_at) = self.edits(&selection.entries);
        let mut projection = Projection::default();
        projection.entries.reserve_exact(selection.entries.len() + 1);
        if let Some(compaction) = selection.compaction {
            projection.entries.push(Projected {
                entry: compaction.id.as_str().into(),
                kind: Kind::Compaction,
                messages: checkpoint(compaction),
                omitted: false,
                edit: None,
            });
            projection.after_compaction = 1 + selection.kept;
        }
        projection.fresh = projection.after_compaction;
        let positions = &selection.entries;
        let reads = self.read_all(positions, &edits);
        for (&position, read) in positions.iter().zip(reads) {
            let Some(slot) = self.log.index().get(position) else {
                continue;
            };
            let edit = edits.get(slot.id.as_ref());
            let messages = match read {
                Read::Message(mut message) => {
                    if let Some(Some(replacement)) = edit {
                        replace_content(&mut message, &replacement.content);
                    }
                    // Of the exact size, unlike one that grows.
                    vec![message]
                }
                Read::Nothing => Vec::new(),
                Read::Damaged => {
                    self.damaged.push(position);
                    Vec::new()
                }
            };
            projection.entries.push(Projected {
                entry: slot.id.clone(),
                kind: slot.kind,
                omitted: gives_message(slot.kind) && matches!(edit, Some(None)),
                messages,
                edit: edit_at.get(&position).cloned(),
            });
            if slot.kind == Kind::ContextEdit {
                projection.fresh = projection.fresh.max(projection.entries.len());
            }
        }
        projection
    }

    /// Selects the latest compaction on the path, and the entries whose own content is used.
    fn select(&mut self, path: &[u32]) -> Selection {
        for (at, &position) in path.iter().enumerate().rev() {
            let Some(entry) = self.entry(position, Kind::Compaction) else {
                continue;
            };
            let Body::Compaction(compaction) = &entry.body else {
                continue;
            };
            let slot = |position: u32| self.log.index().get(position);
            let is_first = |position: &u32| {
                let id = slot(*position).map(|slot| &*slot.id);
                id.is_some() && id == compaction.first_kept_entry_id.as_deref()
            };
            let is_system = |position: u32| slot(position).is_some_and(|slot| slot.kind == Kind::System);
            let (before, after) = path.split_at(at);
            let kept = before.iter().copied().skip_while(|position| !is_first(position));
            let mut entries: Vec<u32> = kept.filter(|position| !is_system(*position)).collect();
            let kept = entries.len();
            entries.extend(after.iter().skip(1));
            return Selection { compaction: Some(entry), entries, kept };
        }
        Selection { compaction: None, entries: path.to_vec(), kept: 0 }
    }

    /// Returns the replacements by entry id, and the edits by position.
    fn edits(&mut self, selected: &[u32]) -> (Edits, HashMap<u32, Edit>) {
        let (mut edits, mut at) = (Edits::new(), HashMap::new());
        for &position in selected {
            let Some(entry) = self.entry(position, Kind::ContextEdit) else {
                continue;
            };
            let Body::ContextEdit(edit) = entry.body else {
                continue;
            };
            let omits = edit.replacement.is_none();
            let target = edit.target_id.clone();
            at.insert(position, Edit { target, omits });
            edits.insert(edit.target_id, edit.replacement);
        }
        (edits, at)
    }

    /// Reads the messages of many entries, on several threads from 1000 entries on.
    fn read_all(&self, positions: &[u32], edits: &Edits) -> Vec<Read> {
        const MANY: usize = 1000;
        let is_omitted = |position: u32| {
            let slot = self.log.index().get(position);
            slot.is_some_and(|slot| matches!(edits.get(slot.id.as_ref()), Some(None)))
        };
        let read_one = |position: u32| match is_omitted(position) {
            true => Read::Nothing,
            false => self.read(position),
        };
        let read = |part: &[u32]| -> Vec<Read> { part.iter().map(|position| read_one(*position)).collect() };
        if positions.len() < MANY {
            return read(positions);
        }
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        if cores == 1 {
            return read(positions);
        }
        let parts = positions.chunks(positions.len().div_ceil(cores.min(8)));
        thread::scope(|scope| {
            let read = &read;
            let start = |part| (part, Thread::named("session-read").start_in(scope, move || read(part)));
            let started: Vec<_> = parts.map(start).collect();
            let finish = |(part, worker): (&[u32], io::Result<thread::ScopedJoinHandle<'_, _>>)| {
                let done = worker.ok().and_then(|worker| worker.join().ok());
                done.unwrap_or_else(|| read(part))
            };
            started.into_iter().flat_map(finish).collect()
        })
    }

    fn read(&self, position: u32) -> Read {
        let Some(slot) = self.log.index().get(position) else {
            return Read::Nothing;
        };
        match slot.kind {
            kind if kind.is_message() => {
                #[derive(Deserialize)]
                struct Line {
                    message: AgentMessage,
                }
                let line = self.log.line(slot);
                match line.and_then(|line| entry::read::<Line>(&line).ok()) {
                    Some(line) => Read::Message(complete(line.message)),
                    None => Read::Damaged,
                }
            }
            Kind::BranchSummary | Kind::CustomMessage => match self.log.entry_at(position) {
                Some(entry) => summary_or_custom(entry).map_or(Read::Nothing, Read::Message),
                None => Read::Damaged,
            },
            _ => Read::Nothing,
        }
    }

    /// Returns the entry at `position` if it is of `kind`.
    fn entry(&mut self, position: u32, kind: Kind) -> Option<Entry> {
        if self.log.index().get(position)?.kind != kind {
            return None;
        }
        let entry = self.log.entry_at(position);
        if entry.is_none() {
            self.damaged.push(position);
        }
        entry
    }

    fn last_models(&mut self, path: &[u32]) -> StoredModels {
        let mut last = None;
        for &position in path.iter().rev() {
            if let Some(entry) = self.entry(position, Kind::ModelChange)
                && let Body::ModelChange(change) = entry.body
            {
                let chosen = Some(StoredModel { provider: change.provider, id: change.model_id });
                return StoredModels { last: last.or_else(|| chosen.clone()), chosen };
            }
            if last.is_none()
                && let Some(entry) = self.entry(position, Kind::Assistant)
                && let Body::Message(entry) = entry.body
                && let AgentMessage::Assistant(answer) = complete(entry.message)
                // An answer that names a virtual model says that it chose no model.
                && answer.api != VIRTUAL_API
            {
                last = Some(StoredModel { provider: answer.provider.clone(), id: answer.model.clone() });
            }
        }
        StoredModels { last, chosen: None }
    }

    fn last_thinking_level(&mut self, path: &[u32]) -> Option<String> {
        path.iter().rev().find_map(|&position| match self.entry(position, Kind::ThinkingLevelChange)?.body {
            Body::ThinkingLevelChange(change) => Some(change.thinking_level),
            _ => None,
        })
    }
}

/// The entries of a path from which the model's context is built.
struct Selection {
    compaction: Option<Entry>,
    entries: Vec<u32>,
    /// Number of selected entries before the compaction.
    kept: usize,
}

/// True if entries of this kind have a message for the model.
fn gives_message(kind: Kind) -> bool {
    kind.is_message() || matches!(kind, Kind::BranchSummary | Kind::CustomMessage)
}

/// Returns the messages that replace everything before a compaction: the system message and the summary.
pub(super) fn checkpoint(entry: Entry) -> Vec<AgentMessage> {
    let timestamp = time::parse_iso(&entry.timestamp).unwrap_or(0);
    let Body::Compaction(compaction) = entry.body else {
        return Vec::new();
    };
    let summary = message::CompactionSummary {
        summary: compaction.summary,
        tokens_before: compaction.tokens_before,
        timestamp,
        extra: Extra::new(),
    };
    let system = compaction.system_message.map(complete);
    system.into_iter().chain([summary.into()]).collect()
}

pub(super) fn summary_or_custom(entry: Entry) -> Option<AgentMessage> {
    let timestamp = time::parse_iso(&entry.timestamp).unwrap_or(0);
    match entry.body {
        Body::BranchSummary(branch) if !branch.summary.is_empty() => Some(
            message::BranchSummary {
                summary: branch.summary,
                from_id: branch.from_id,
                timestamp,
                extra: Extra::new(),
            }
            .into(),
        ),
        Body::CustomMessage(custom) => Some(
            message::CustomMessage {
                custom_type: custom.custom_type,
                content: custom.content.unwrap_or(Content::Blocks(Vec::new())),
                display: custom.display,
                details: custom.details,
                timestamp,
                extra: Extra::new(),
            }
            .into(),
        ),
        _ => None,
    }
}

pub(super) fn replace_content(message: &mut AgentMessage, content: &Content) {
    let blocks = || match content {
        Content::Text(text) => vec![Block::text(text)],
        Content::Blocks(blocks) => blocks.clone(),
    };
    match message {
        AgentMessage::User(user) => Arc::make_mut(user).content = content.clone(),
        AgentMessage::Custom(custom) => Arc::make_mut(custom).content = content.clone(),
        AgentMessage::Assistant(answer) => Arc::make_mut(answer).content = blocks(),
        AgentMessage::ToolResult(result) => Arc::make_mut(result).content = blocks(),
        _ => {}
    }
}

/// Adds required fields that are missing in messages of old versions, of forks or after editing by hand.
pub(super) fn complete(message: AgentMessage) -> AgentMessage {
    let AgentMessage::Unknown(value) = &message else {
        return message;
    };
    let Value::Object(fields) = &**value else {
        return message;
    };
    let missing: &[(&str, Value)] = match message.role() {
        "user" | "custom" => &[("content", json!([]))],
        "system" => &[("content", json!(""))],
        "toolResult" => &[("content", json!([])), ("toolName", json!("")), ("isError", json!(false))],
        "assistant" => &[
            ("content", json!([])),
            ("api", json!("")),
            ("provider", json!("")),
            ("model", json!("")),
            ("stopReason", json!("stop")),
        ],
        _ => return message,
    };
    let mut fields: Map<String, Value> = fields.clone();
    for (name, value) in missing {
        if fields.get(*name).is_none_or(Value::is_null) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }
    if let Some(reason) = fields.get_mut("stopReason")
        && StopReason::deserialize(&*reason).is_err()
    {
        *reason = json!("stop");
    }
    serde_json::from_value(Value::Object(fields)).unwrap_or(message)
}

#[cfg(test)]
mod tests;
