//! The session's tree as something to look through: what each entry is, in a line, and what it hangs on.
//!
//! An outline holds the beginnings of texts, not the texts, so that it costs little for any session.

use super::control::Tree;
use super::describe::Describer;
use crate::agent::call::{Body as CallBody, Subject};
use crate::agent::message::AgentMessage;
use crate::llm::message::{Block, Content, StopReason, ToolCall};
use crate::session::Log;
use crate::session::entry::{Body, Entry};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

pub use crate::session::log::fork::ForkPoint;
pub use crate::session::tree::Bookmark;

/// Entries that are read before others get a chance at the log.
const BATCH: u32 = 256;

/// Characters kept of a text.
const TEXT_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct Outline {
    /// In the order of the file; those that cannot be read are gaps.
    pub items: Vec<Option<Item>>,
    /// Items without a parent.
    pub roots: Vec<u32>,
    /// The item that the next entry is hung on.
    pub leaf: Option<u32>,
}

#[derive(Debug)]
pub struct Item {
    pub id: String,
    pub children: Vec<u32>,
    pub said: Said,
    pub bookmark: Option<Bookmark>,
}

/// What an entry says, on one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    User(String),
    Answer(String),
    /// An answer that was broken off before it said anything.
    Aborted,
    /// An answer that failed, and how.
    Failed(String),
    /// An answer without words: it only called tools.
    Silent,
    /// What a tool was asked.
    Tool(String),
    Shell(String),
    /// A message of another role.
    Message(String),
    Custom {
        kind: String,
        text: String,
    },
    Compaction {
        tokens: u64,
    },
    Summary(String),
    /// Tokens spent outside the conversation.
    Usage,
    /// What is no part of the conversation, such as another model.
    Setting(String),
    Unknown,
}

impl Tree<'_> {
    /// All entries and how they hang together. Long sessions take a while. `home` is written as `~`.
    pub fn outline(&self, home: &Path) -> Outline {
        let (tree, leaf, count) = {
            let log = self.control.log();
            let leaf = log.leaf().and_then(|leaf| log.index().find(leaf));
            let count = u32::try_from(log.index().slots.len()).unwrap_or(u32::MAX);
            (log.tree(), leaf, count)
        };
        let mut outline = Outline { items: Vec::with_capacity(tree.nodes.len()), roots: tree.roots, leaf };
        let mut calls = Calls { describer: self.control.tools().describer(), home, asked: HashMap::new() };
        let mut nodes = tree.nodes.into_iter();
        let mut next = 0;
        while next < count {
            let from = next;
            next = count.min(from.saturating_add(BATCH));
            let entries: Vec<Option<Entry>> = {
                let log = self.control.log();
                (from..next).map(|position| log.entry_at(position)).collect()
            };
            for (entry, node) in entries.into_iter().zip(&mut nodes) {
                outline.items.push(entry.map(|entry| Item {
                    said: said(&entry.body, &mut calls),
                    id: entry.id,
                    children: node.children,
                    bookmark: node.bookmark,
                }));
            }
        }
        outline
    }

    /// How many entries the session has.
    pub fn entry_count(&self) -> usize {
        self.control.log().index().slots.len()
    }

    /// The messages of the user that a fork can begin at, oldest first.
    pub fn fork_points(&self) -> Vec<ForkPoint> {
        let mut points = Vec::new();
        self.control.each(0, Log::fork_point, |point| points.push(point));
        points
    }

    /// All that an entry says; none where it says nothing.
    pub fn entry_text(&self, id: &str) -> Option<String> {
        let text = match self.control.log().entry(id)?.body {
            Body::Message(body) => match &body.message {
                AgentMessage::BashExecution(run) => run.command.clone(),
                AgentMessage::Assistant(answer) => {
                    let text: String = answer.content.iter().filter_map(Block::as_text).collect();
                    match text.is_empty() {
                        true => answer.error_message.clone().unwrap_or_default(),
                        false => text,
                    }
                }
                message => message.text(),
            },
            Body::CustomMessage(custom) => custom.content.as_ref().map(joined)?,
            Body::Compaction(compaction) => compaction.summary,
            Body::BranchSummary(summary) => summary.summary,
            _ => return None,
        };
        (!text.trim().is_empty()).then_some(text)
    }
}

/// The calls of the entries so far.
struct Calls<'a> {
    describer: Describer,
    home: &'a Path,
    /// What was asked, by the id of the call.
    asked: HashMap<String, String>,
}

fn said(body: &Body, calls: &mut Calls<'_>) -> Said {
    match body {
        Body::Message(body) => message(&body.message, calls),
        Body::CustomMessage(custom) => Said::Custom {
            kind: custom.custom_type.clone(),
            text: custom.content.as_ref().map_or_else(String::new, |content| line(&joined(content))),
        },
        Body::Compaction(compaction) => Said::Compaction { tokens: compaction.tokens_before },
        Body::BranchSummary(summary) => Said::Summary(line(&summary.summary)),
        Body::Usage(_) => Said::Usage,
        Body::ModelChange(change) => Said::Setting(format!("model: {}", change.model_id)),
        Body::ThinkingLevelChange(change) => Said::Setting(format!("thinking: {}", change.thinking_level)),
        Body::Custom(custom) => Said::Setting(format!("custom: {}", custom.custom_type)),
        Body::ContextEdit(edit) => {
            let what = match edit.replacement {
                Some(_) => "replace",
                None => "omit",
            };
            Said::Setting(format!("context {what}: {}", edit.target_id))
        }
        Body::Label(label) => {
            let label = label.label.as_deref().filter(|label| !label.is_empty());
            Said::Setting(format!("label: {}", label.unwrap_or("(cleared)")))
        }
        Body::SessionInfo(info) => {
            let name = match info.name.as_str() {
                "" => "empty",
                name => name,
            };
            Said::Setting(format!("title: {name}"))
        }
        Body::Unknown(_) => Said::Unknown,
    }
}

fn message(message: &AgentMessage, calls: &mut Calls<'_>) -> Said {
    match message {
        AgentMessage::User(_) => Said::User(line(&message.text())),
        AgentMessage::Assistant(answer) => {
            for block in &answer.content {
                if let Block::ToolCall(call) = block {
                    let asked = asked(call, &calls.describer, calls.home);
                    calls.asked.insert(call.id.clone(), asked);
                }
            }
            let text: String = answer.content.iter().filter_map(Block::as_text).collect();
            match (line(&text), answer.stop_reason) {
                (text, _) if !text.is_empty() => Said::Answer(text),
                (_, StopReason::Aborted) => Said::Aborted,
                (_, reason) => match &answer.error_message {
                    Some(error) => Said::Failed(line(error)),
                    None if matches!(reason, StopReason::Error | StopReason::Length) => {
                        Said::Failed(String::new())
                    }
                    None => Said::Silent,
                },
            }
        }
        AgentMessage::ToolResult(result) => {
            let known = calls.asked.get(&result.tool_call_id).cloned();
            Said::Tool(known.unwrap_or_else(|| result.tool_name.clone()))
        }
        AgentMessage::BashExecution(run) => Said::Shell(line(&run.command)),
        other => Said::Message(other.role().to_owned()),
    }
}

/// `read: src/main.rs:10-20`.
fn asked(call: &ToolCall, describer: &Describer, home: &Path) -> String {
    let info = describer.describe(&call.name, &call.arguments);
    let what = match info.body {
        CallBody::Unknown => shortened(&line(&Value::Object(call.arguments.clone()).to_string()), 40),
        CallBody::Command { command, .. } => shortened(&line(command.text().unwrap_or_default()), 50),
        _ => {
            let mut what = info.subject.map_or_else(String::new, |Subject { text, quote }| {
                format!("{quote}{}{quote} in ", text.text().unwrap_or_default())
            });
            let path = info.path.map_or("", |path| path.text());
            match Path::new(path).strip_prefix(home) {
                Ok(rest) if !home.as_os_str().is_empty() => what += &format!("~/{}", rest.display()),
                _ => what += path,
            }
            match info.lines.range() {
                Some((first, Some(last))) => what += &format!(":{first}-{last}"),
                Some((first, None)) => what += &format!(":{first}"),
                None => {}
            }
            what
        }
    };
    line(&format!("{}: {what}", call.name))
}

fn joined(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect(),
    }
}

/// The beginning of a text on one line.
fn line(text: &str) -> String {
    let begin: String = text.trim_start().chars().take(TEXT_MAX).collect();
    let spaced = begin.replace(['\n', '\t', '\r'], " ");
    spaced.trim_end().to_owned()
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value, calls: &mut Calls<'_>) -> Said {
        let mut value = value;
        value["id"] = json!("a");
        let entry: Entry = serde_json::from_value(value).unwrap();
        said(&entry.body, calls)
    }

    #[test]
    fn an_entry_is_said_in_a_line() {
        let home = Path::new("/home/me");
        let mut calls = Calls { describer: Describer::default(), home, asked: HashMap::new() };
        let answer = |content: Value, reason: &str, error: Option<&str>| {
            let mut message = json!({"role": "assistant", "content": content, "api": "x", "provider": "p", "model": "m",
                "stopReason": reason, "timestamp": 1});
            if let Some(error) = error {
                message["errorMessage"] = json!(error);
            }
            json!({"type": "message", "message": message})
        };
        let call = |name: &str, arguments: Value| json!([{"type": "toolCall", "id": name, "name": name, "arguments": arguments}]);
        let result = |name: &str| {
            json!({"type": "message", "message": {"role": "toolResult", "toolCallId": name, "toolName": name,
                "content": [], "isError": false, "timestamp": 1}})
        };
        let user =
            json!({"type": "message", "message": {"role": "user", "content": "  a\nb\tc ", "timestamp": 1}});
        assert_eq!(of(user, &mut calls), Said::User("a b c".into()));
        let text = json!([{"type": "text", "text": "x".repeat(300)}]);
        assert_eq!(of(answer(text, "stop", None), &mut calls), Said::Answer("x".repeat(200)));
        assert_eq!(of(answer(json!([]), "aborted", None), &mut calls), Said::Aborted);
        assert_eq!(
            of(answer(json!([]), "error", Some("no\nkey")), &mut calls),
            Said::Failed("no key".into())
        );
        for (name, arguments, expected) in [
            ("read", json!({"path": "/home/me/a.rs", "offset": 3, "limit": 5}), "read: ~/a.rs:3-7"),
            ("bash", json!({"command": "ls -l\nx"}), "bash: ls -l x"),
            ("grep", json!({"pattern": "x"}), "grep: /x/ in ."),
            ("other", json!({"a": 1}), "other: {\"a\":1}"),
        ] {
            let said = of(answer(call(name, arguments), "toolUse", None), &mut calls);
            assert_eq!(said, Said::Silent);
            assert_eq!(of(result(name), &mut calls), Said::Tool(expected.into()));
        }
        assert_eq!(of(result("lost"), &mut calls), Said::Tool("lost".into()));
        let change = json!({"type": "model_change", "provider": "p", "modelId": "m"});
        assert_eq!(of(change, &mut calls), Said::Setting("model: m".into()));
        let odd = json!({"type": "of tomorrow", "x": 1});
        assert_eq!(of(odd, &mut calls), Said::Unknown);
    }
}
