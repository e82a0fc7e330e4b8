//! What the model sees of a session: the path from the root to the leaf, as compactions and edits leave
//! it.
//!
//! Only the entries that are needed are read: those from the latest compaction on, and for the model the
//! last entry that names one.

use super::entry::{self, Body, Entry, Replacement};
use super::index::Kind;
use super::log::Log;
use super::time;
use crate::agent::message::{self, AgentMessage};
use crate::llm::message::{Block, Content, Extra, StopReason};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

/// The conversation at the leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionContext {
    pub messages: Vec<ContextMessage>,
    pub marks: Marks,
    /// The model that was used last.
    pub model: Option<StoredModel>,
    /// The thinking level that was chosen last, as it stands in the file.
    pub thinking_level: Option<String>,
}

/// A message and the entry it comes from.
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

/// From which message on the figures of answers can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Messages from here on came after the latest compaction; 0 when there is none.
    pub after_compaction: usize,
    /// Messages from here on came after the latest compaction and the latest edit: what a request with
    /// them cost is what the conversation costs.
    pub fresh: usize,
}

/// The part of the path that the model is told of, entry by entry; those it is not told of lie between.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    pub entries: Vec<Projected>,
    /// Entries from here on came after the latest compaction, which is the first of them; 0 when there
    /// is none.
    after_compaction: usize,
    fresh: usize,
}

#[derive(Clone, Debug)]
pub struct Projected {
    pub entry: Arc<str>,
    pub kind: Kind,
    /// As edits leave them. Two for a compaction with a prompt, none or one for the others.
    pub messages: Vec<AgentMessage>,
    /// An edit leaves its message out.
    pub omitted: bool,
    /// What it changes, if it is an edit.
    pub edit: Option<Edit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub target: String,
    /// Leaves the target out; otherwise it has other content.
    pub omits: bool,
}

impl SessionContext {
    pub fn into_messages(self) -> Vec<AgentMessage> {
        self.messages
            .into_iter()
            .map(|message| message.message)
            .collect()
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
        Marks {
            after_compaction: count(self.after_compaction),
            fresh: count(self.fresh),
        }
    }

    fn into_context_messages(self) -> Vec<ContextMessage> {
        let of = |projected: Projected| {
            let entry = projected.entry;
            let messages = projected.messages.into_iter();
            messages.map(move |message| ContextMessage {
                entry: entry.clone(),
                message,
            })
        };
        self.entries.into_iter().flat_map(of).collect()
    }
}

impl Log {
    /// Builds the context at the leaf. Entries that cannot be read are left out and reported.
    pub fn context(&mut self) -> SessionContext {
        self.read_path(|reader, path| {
            let projection = reader.projection(path);
            SessionContext {
                marks: projection.marks(),
                messages: projection.into_context_messages(),
                model: reader.last_model(path),
                thinking_level: reader.last_thinking_level(path),
            }
        })
    }

    /// The context at the leaf with all that lies between its messages.
    pub fn projection(&mut self) -> Projection {
        self.read_path(|reader, path| reader.projection(path))
    }

    fn read_path<T>(&mut self, read: impl FnOnce(&mut Reader<'_>, &[u32]) -> T) -> T {
        let path = self.index().path(self.leaf_position());
        let mut reader = Reader {
            log: self,
            damaged: Vec::new(),
        };
        let result = read(&mut reader, &path);
        for position in reader.damaged {
            self.mark_damaged(position);
        }
        result
    }
}

/// Reads entries of a log, and remembers those that cannot be read.
struct Reader<'a> {
    log: &'a Log,
    damaged: Vec<u32>,
}

/// What an entry gives to the conversation.
enum Read {
    Message(AgentMessage),
    Nothing,
    Damaged,
}

/// What edits make of entries, by the id of the entry.
type Edits = HashMap<String, Option<Replacement>>;

impl Reader<'_> {
    fn projection(&mut self, path: &[u32]) -> Projection {
        let selection = self.select(path);
        let (edits, edit_at) = self.edits(&selection.entries);
        let mut projection = Projection::default();
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
            let mut messages = Vec::new();
            match read {
                Read::Message(mut message) => {
                    if let Some(Some(replacement)) = edit {
                        replace_content(&mut message, &replacement.content);
                    }
                    messages.push(message);
                }
                Read::Nothing => {}
                Read::Damaged => self.damaged.push(position),
            }
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

    /// The latest compaction on the path, and the entries that stand for themselves.
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
            let is_system =
                |position: u32| slot(position).is_some_and(|slot| slot.kind == Kind::System);
            let (before, after) = path.split_at(at);
            let kept = before
                .iter()
                .copied()
                .skip_while(|position| !is_first(position));
            let mut entries: Vec<u32> = kept.filter(|position| !is_system(*position)).collect();
            let kept = entries.len();
            entries.extend(after.iter().skip(1));
            return Selection {
                compaction: Some(entry),
                entries,
                kept,
            };
        }
        Selection {
            compaction: None,
            entries: path.to_vec(),
            kept: 0,
        }
    }

    /// The replacements of contents by the id of their entry; none leaves the entry out. And what the
    /// edit at each position does.
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

    /// Reads the messages of many entries, on several threads when there are very many.
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
        let read = |part: &[u32]| -> Vec<Read> {
            part.iter().map(|position| read_one(*position)).collect()
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        if positions.len() < MANY || cores == 1 {
            return read(positions);
        }
        let parts = positions.chunks(positions.len().div_ceil(cores.min(8)));
        thread::scope(|scope| {
            let read = &read;
            let start = |part| {
                let named = thread::Builder::new().name("session-read".to_owned());
                (part, named.spawn_scoped(scope, move || read(part)))
            };
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

    /// The entry at `position` when it is of `kind`.
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

    fn last_model(&mut self, path: &[u32]) -> Option<StoredModel> {
        path.iter().rev().find_map(|&position| {
            if let Some(entry) = self.entry(position, Kind::ModelChange) {
                let Body::ModelChange(change) = entry.body else {
                    return None;
                };
                return Some(StoredModel {
                    provider: change.provider,
                    id: change.model_id,
                });
            }
            let Body::Message(entry) = self.entry(position, Kind::Assistant)?.body else {
                return None;
            };
            match complete(entry.message) {
                AgentMessage::Assistant(answer) => Some(StoredModel {
                    provider: answer.provider.clone(),
                    id: answer.model.clone(),
                }),
                _ => None,
            }
        })
    }

    fn last_thinking_level(&mut self, path: &[u32]) -> Option<String> {
        path.iter().rev().find_map(|&position| {
            match self.entry(position, Kind::ThinkingLevelChange)?.body {
                Body::ThinkingLevelChange(change) => Some(change.thinking_level),
                _ => None,
            }
        })
    }
}

/// What of a path the model is told.
struct Selection {
    compaction: Option<Entry>,
    entries: Vec<u32>,
    /// How many of them stand before the compaction.
    kept: usize,
}

/// The model is told of entries of this kind.
fn gives_message(kind: Kind) -> bool {
    kind.is_message() || matches!(kind, Kind::BranchSummary | Kind::CustomMessage)
}

/// What a compaction puts in the place of all it cut off.
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

fn replace_content(message: &mut AgentMessage, content: &Content) {
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

/// Old versions, forks and people's hands leave messages without fields that every message has.
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
        "toolResult" => &[
            ("content", json!([])),
            ("toolName", json!("")),
            ("isError", json!(false)),
        ],
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
mod tests {
    use super::*;
    use crate::session::SyncMode;
    use crate::session::scratch::Scratch;
    use std::path::Path;

    const USAGE: &str = r#""usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;

    /// A file of entries, each `id type fields`; each hangs on the one before it, or on the one named
    /// as `id<parent`.
    fn session(entries: &[&str]) -> String {
        let mut text =
            r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#.to_owned();
        let mut previous = "null".to_owned();
        for entry in entries {
            let mut parts = entry.splitn(3, ' ');
            let (id, kind, fields) = (
                parts.next().unwrap(),
                parts.next().unwrap(),
                parts.next().unwrap_or(""),
            );
            let (id, parent) = match id.split_once('<') {
                Some((id, parent)) => (id, format!("\"{parent}\"")),
                None => (id, previous),
            };
            let (kind, fields) = match kind {
                "user" => (
                    "message",
                    format!(r#""message":{{"role":"user","content":"{fields}","timestamp":1}}"#),
                ),
                "system" => (
                    "message",
                    format!(r#""message":{{"role":"system","content":"{fields}","timestamp":1}}"#),
                ),
                "answer" => (
                    "message",
                    format!(
                        r#""message":{{"role":"assistant","content":[{{"type":"text","text":"{fields}"}}],"api":"a","provider":"p","model":"{fields}",{USAGE},"stopReason":"stop","timestamp":1}}"#
                    ),
                ),
                "result" => (
                    "message",
                    format!(
                        r#""message":{{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{{"type":"text","text":"{fields}"}}],"isError":false,"timestamp":1}}"#
                    ),
                ),
                "raw" => ("message", format!(r#""message":{fields}"#)),
                kind => (kind, fields.to_owned()),
            };
            let comma = if fields.is_empty() { "" } else { "," };
            text.push_str(&format!(
                "\n{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"1970-01-01T00:00:09.000Z\"{comma}{fields}}}"
            ));
            previous = format!("\"{id}\"");
        }
        text + "\n"
    }

    fn context(entries: &[&str]) -> SessionContext {
        let scratch = Scratch::new();
        let path = scratch.file("x.jsonl", session(entries));
        let mut log = Log::open(&path, Path::new("/"), SyncMode::Never).unwrap();
        let context = log.context();
        assert_eq!(log.take_notices(), []);
        context
    }

    /// Checks what is seen: `entry role text` of each message.
    #[track_caller]
    fn check(entries: &[&str], expected: &[&str]) {
        let seen: Vec<String> = context(entries)
            .messages
            .iter()
            .map(|seen| {
                let text = match &seen.message {
                    AgentMessage::CompactionSummary(summary) => summary.summary.clone(),
                    AgentMessage::BranchSummary(summary) => summary.summary.clone(),
                    AgentMessage::System(system) => system.content.text(),
                    AgentMessage::User(user) => user.content.text(),
                    AgentMessage::Custom(custom) => custom.content.text(),
                    AgentMessage::Assistant(answer) => {
                        crate::llm::message::text_of(&answer.content)
                    }
                    AgentMessage::ToolResult(result) => {
                        crate::llm::message::text_of(&result.content)
                    }
                    _ => String::new(),
                };
                format!("{} {} {text}", seen.entry, seen.message.role())
            })
            .collect();
        assert_eq!(seen, expected, "{entries:#?}");
    }

    fn compaction(id: &str, first_kept: &str) -> String {
        format!(
            r#"{id} compaction "summary":"sum {id}","firstKeptEntryId":"{first_kept}","tokensBefore":9,"systemMessage":{{"role":"system","content":"sys {id}","timestamp":1}}"#
        )
    }

    #[test]
    fn without_a_compaction_all_messages_of_the_path_are_seen() {
        check(
            &[
                "1 session_info \"name\":\"n\"",
                "2 model_change \"provider\":\"p\",\"modelId\":\"m\"",
                "3 system s",
                "4 user a",
                "5 custom \"customType\":\"k\",\"data\":1",
                "6 answer b",
                "7 label \"targetId\":\"4\",\"label\":\"l\"",
                "8 hologram \"x\":1",
                "9<4 custom_message \"customType\":\"k\",\"content\":\"c\",\"display\":true",
                "10 branch_summary \"fromId\":\"8\",\"summary\":\"left\"",
                "11 branch_summary \"fromId\":\"8\",\"summary\":\"\"",
                &format!("12 usage \"kind\":\"k\",\"provider\":\"p\",\"model\":\"u\",{USAGE}"),
                "13 raw {\"role\":\"bashExecution\",\"command\":\"ls\",\"output\":\"\",\"cancelled\":false,\"truncated\":false,\"timestamp\":1}",
            ],
            &[
                "3 system s",
                "4 user a",
                "9 custom c",
                "10 branchSummary left",
                "13 bashExecution ",
            ],
        );
        let seen = context(&["1 custom_message \"customType\":\"k\",\"display\":true"]);
        assert_eq!(seen.messages[0].message.timestamp(), 9000);
    }

    #[test]
    fn the_latest_compaction_stands_for_what_it_cut_off() {
        let all = [
            "1 system s",
            "2 user a",
            "3 answer b",
            "4 user c",
            "5 system t",
            "6 answer d",
        ];
        let with = |more: &[&str]| -> Vec<String> {
            all.iter()
                .chain(more)
                .map(|entry| (*entry).to_owned())
                .collect()
        };
        let check = |more: &[&str], expected: &[&str]| {
            let entries = with(more);
            check(
                &entries.iter().map(String::as_str).collect::<Vec<_>>(),
                expected,
            );
        };
        // Its checkpoint replaces the system messages that it kept.
        check(
            &[&compaction("7", "4"), "8 user e", "9 system u"],
            &[
                "7 system sys 7",
                "7 compactionSummary sum 7",
                "4 user c",
                "6 assistant d",
                "8 user e",
                "9 system u",
            ],
        );
        // Its own id keeps nothing, and neither does one that is not on the path.
        for first_kept in ["7", "nope", "12"] {
            check(
                &[
                    &compaction("7", first_kept),
                    "8 user e",
                    "12<2 user x",
                    "9<8 answer f",
                ],
                &[
                    "7 system sys 7",
                    "7 compactionSummary sum 7",
                    "8 user e",
                    "9 assistant f",
                ],
            );
        }
        // An older one in the kept range says nothing.
        check(
            &[
                &compaction("7", "4"),
                "8 user e",
                &compaction("9", "6"),
                "10 user f",
            ],
            &[
                "9 system sys 9",
                "9 compactionSummary sum 9",
                "6 assistant d",
                "8 user e",
                "10 user f",
            ],
        );
        // The reference before system messages.
        check(
            &["7 compaction \"summary\":\"old\",\"tokensBefore\":9"],
            &["7 compactionSummary old"],
        );
    }

    #[test]
    fn the_latest_edit_on_the_path_wins() {
        let edit = |id: &str, target: &str, replacement: &str| {
            format!("{id} context_edit \"targetId\":\"{target}\",\"replacement\":{replacement}")
        };
        let text = r#"{"content":"new"}"#;
        let blocks = r#"{"content":[{"type":"text","text":"blocks"}]}"#;
        check(
            &[
                "1 user a",
                "2 answer b",
                "3 result c",
                "4 custom_message \"customType\":\"k\",\"content\":\"d\",\"display\":true",
                &edit("5", "1", "null"),
                &edit("6", "1", text),
                &edit("7", "2", text),
                &edit("8", "3", blocks),
                &edit("9", "4", "null"),
                &edit("10", "nope", "null"),
            ],
            &["1 user new", "2 assistant new", "3 toolResult blocks"],
        );
        // Before the edit, the original is back.
        check(
            &[
                "1 user a",
                "2 answer b",
                &edit("3", "1", "null"),
                "4<2 user c",
            ],
            &["1 user a", "2 assistant b", "4 user c"],
        );
        // An edit that was cut off does not count, one that was kept does.
        check(
            &[
                "1 user a",
                &edit("2", "3", "null"),
                "3 user b",
                &edit("4", "1", "null"),
                &compaction("5", "3"),
            ],
            &["5 system sys 5", "5 compactionSummary sum 5", "3 user b"],
        );
    }

    #[test]
    fn model_and_thinking_level_are_the_last_of_the_path() {
        let entries = [
            "1 model_change \"provider\":\"p\",\"modelId\":\"m\"",
            "2 thinking_level_change \"thinkingLevel\":\"high\"",
            "3 user a",
            "4 answer b",
            &compaction("5", "5"),
            "6<3 model_change \"provider\":\"q\",\"modelId\":\"n\"",
            "7<3 answer z",
            "8<1 user y",
        ];
        let rows: &[(usize, &str, Option<&str>)] = &[
            (1, "m", None),
            (2, "m", Some("high")),
            (4, "b", Some("high")),
            (5, "b", Some("high")),
            (6, "n", Some("high")),
            (7, "z", Some("high")),
            (8, "m", None),
        ];
        for (count, model, level) in rows {
            let seen = context(&entries[..*count]);
            assert_eq!(seen.model.unwrap().id, *model, "{count}");
            assert_eq!(seen.thinking_level.as_deref(), *level, "{count}");
        }
        assert_eq!(context(&[]), SessionContext::default());
    }

    #[test]
    fn messages_without_content_are_completed() {
        for role in ["user", "assistant", "toolResult", "system", "custom"] {
            for content in ["", r#","content":null"#] {
                let raw = format!(
                    r#"1 raw {{"role":"{role}","toolCallId":"c","customType":"k","timestamp":7,"later":1{content}}}"#
                );
                let seen = context(&[&raw]);
                let message = &seen.messages[0].message;
                assert!(!matches!(message, AgentMessage::Unknown(_)), "{raw}");
                assert_eq!((message.role(), message.timestamp()), (role, 7));
            }
        }
        let seen = context(&[r#"1 raw {"role":"assistant","stopReason":"new reason"}"#]);
        assert!(matches!(
            seen.messages[0].message,
            AgentMessage::Assistant(_)
        ));
    }
}
