//! An outline of the session's tree: for each entry one line of text and its children.
//!
//! An outline holds only the beginnings of texts, so that it stays small for any session.

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

/// Entries that are read before the log is unlocked for others.
const BATCH: u32 = 256;

/// Characters of a text that a preview keeps.
const TEXT_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct Outline {
    /// Items in the order of the file; `None` for entries that cannot be read.
    pub items: Vec<Option<Item>>,
    /// Items without a parent.
    pub roots: Vec<u32>,
    /// The item at which the conversation continues.
    pub leaf: Option<u32>,
}

#[derive(Debug)]
pub struct Item {
    pub id: String,
    pub children: Vec<u32>,
    pub preview: Preview,
    pub bookmark: Option<Bookmark>,
}

/// The content of an entry, on one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Preview {
    User(String),
    Answer(String),
    /// An answer that was aborted before its first text.
    Aborted,
    /// A failed answer, with its error.
    Failed(String),
    /// An answer of tool calls only.
    Silent,
    /// A tool result, shown as its call, such as `read: src/main.rs`.
    Tool(String),
    Shell(String),
    /// A message of any other role.
    Message(String),
    Custom {
        kind: String,
        text: String,
    },
    Compaction {
        tokens: u64,
    },
    Summary(String),
    /// Token usage outside the conversation.
    Usage,
    /// An entry that changes a setting, such as the model.
    Setting(String),
    Unknown,
}

impl Tree<'_> {
    /// Reads all entries and their tree, which takes time in a long session. Paths in `home` begin with `~`.
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
                    preview: preview(&entry.body, &mut calls),
                    id: entry.id,
                    children: node.children,
                    bookmark: node.bookmark,
                }));
            }
        }
        outline
    }

    /// Returns the number of entries in the session.
    pub fn entry_count(&self) -> usize {
        self.control.log().index().slots.len()
    }

    /// Returns the user messages that a fork can begin at, oldest first.
    pub fn fork_points(&self) -> Vec<ForkPoint> {
        let mut points = Vec::new();
        self.control.each(0, Log::fork_point, |point| points.push(point));
        points
    }

    /// Returns the full text of an entry; `None` for an entry without text.
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

/// The tool calls of the entries read so far.
struct Calls<'a> {
    describer: Describer,
    home: &'a Path,
    /// Previews of calls, by call id.
    asked: HashMap<String, String>,
}

fn preview(body: &Body, calls: &mut Calls<'_>) -> Preview {
    match body {
        Body::Message(body) => message(&body.message, calls),
        Body::CustomMessage(custom) => Preview::Custom {
            kind: custom.custom_type.clone(),
            text: custom.content.as_ref().map_or_else(String::new, |content| line(&joined(content))),
        },
        Body::Compaction(compaction) => Preview::Compaction { tokens: compaction.tokens_before },
        Body::BranchSummary(summary) => Preview::Summary(line(&summary.summary)),
        Body::Usage(_) => Preview::Usage,
        Body::ModelChange(change) => Preview::Setting(format!("model: {}", change.model_id)),
        Body::ThinkingLevelChange(change) => Preview::Setting(format!("thinking: {}", change.thinking_level)),
        Body::Custom(custom) => Preview::Setting(format!("custom: {}", custom.custom_type)),
        Body::ContextEdit(edit) => {
            let what = match edit.replacement {
                Some(_) => "replace",
                None => "omit",
            };
            Preview::Setting(format!("context {what}: {}", edit.target_id))
        }
        Body::Label(label) => {
            let label = label.label.as_deref().filter(|label| !label.is_empty());
            Preview::Setting(format!("label: {}", label.unwrap_or("(cleared)")))
        }
        Body::SessionInfo(info) => {
            let name = match info.name.as_str() {
                "" => "empty",
                name => name,
            };
            Preview::Setting(format!("title: {name}"))
        }
        Body::Unknown(_) => Preview::Unknown,
    }
}

fn message(message: &AgentMessage, calls: &mut Calls<'_>) -> Preview {
    match message {
        AgentMessage::User(_) => Preview::User(line(&message.text())),
        AgentMessage::Assistant(answer) => {
            for block in &answer.content {
                if let Block::ToolCall(call) = block {
                    let asked = asked(call, &calls.describer, calls.home);
                    calls.asked.insert(call.id.clone(), asked);
                }
            }
            let text: String = answer.content.iter().filter_map(Block::as_text).collect();
            match (line(&text), answer.stop_reason) {
                (text, _) if !text.is_empty() => Preview::Answer(text),
                (_, StopReason::Aborted) => Preview::Aborted,
                (_, reason) => match &answer.error_message {
                    Some(error) => Preview::Failed(line(error)),
                    None if matches!(reason, StopReason::Error | StopReason::Length) => {
                        Preview::Failed(String::new())
                    }
                    None => Preview::Silent,
                },
            }
        }
        AgentMessage::ToolResult(result) => {
            let known = calls.asked.get(&result.tool_call_id).cloned();
            Preview::Tool(known.unwrap_or_else(|| result.tool_name.clone()))
        }
        AgentMessage::BashExecution(run) => Preview::Shell(line(&run.command)),
        other => Preview::Message(other.role().to_owned()),
    }
}

/// Formats a call, such as `read: src/main.rs:10-20`.
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

/// Returns the beginning of a text on one line.
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
    use crate::base::json::json;

    fn of(value: Value, calls: &mut Calls<'_>) -> Preview {
        let mut value = value;
        value["id"] = json!("a");
        let entry: Entry = serde_json::from_value(value).unwrap();
        preview(&entry.body, calls)
    }

    #[test]
    fn an_entry_is_previewed_in_a_line() {
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
        assert_eq!(of(user, &mut calls), Preview::User("a b c".into()));
        let text = json!([{"type": "text", "text": "x".repeat(300)}]);
        assert_eq!(of(answer(text, "stop", None), &mut calls), Preview::Answer("x".repeat(200)));
        assert_eq!(of(answer(json!([]), "aborted", None), &mut calls), Preview::Aborted);
        assert_eq!(
            of(answer(json!([]), "error", Some("no\nkey")), &mut calls),
            Preview::Failed("no key".into())
        );
        for (name, arguments, expected) in [
            ("read", json!({"path": "/home/me/a.rs", "offset": 3, "limit": 5}), "read: ~/a.rs:3-7"),
            ("bash", json!({"command": "ls -l\nx"}), "bash: ls -l x"),
            ("grep", json!({"pattern": "x"}), "grep: /x/ in ."),
            ("other", json!({"a": 1}), "other: {\"a\":1}"),
        ] {
            let said = of(answer(call(name, arguments), "toolUse", None), &mut calls);
            assert_eq!(said, Preview::Silent);
            assert_eq!(of(result(name), &mut calls), Preview::Tool(expected.into()));
        }
        assert_eq!(of(result("lost"), &mut calls), Preview::Tool("lost".into()));
        let change = json!({"type": "model_change", "provider": "p", "modelId": "m"});
        assert_eq!(of(change, &mut calls), Preview::Setting("model: m".into()));
        let odd = json!({"type": "of tomorrow", "x": 1});
        assert_eq!(of(odd, &mut calls), Preview::Unknown);
    }
}
