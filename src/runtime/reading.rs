//! The current branch in full, for display, including entries that a compaction removed from the model's
//! context. Finding the entries is cheap; the content of an entry is read only when it is shown.

use super::control::Tree;
use crate::agent::message::AgentMessage;
use crate::session::index::Kind;
use crate::session::log::Log;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// An entry to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub entry: Arc<str>,
    pub part: Part,
}

/// The role of an entry in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A message of the user.
    Prompt,
    Answer,
    /// The result of a tool call in the preceding answer.
    Result,
    Other,
    /// An entry that is no message, which an extension may draw.
    Entry,
}

impl Part {
    fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::User => Self::Prompt,
            Kind::Assistant => Self::Answer,
            Kind::ToolResult => Self::Result,
            Kind::OtherMessage | Kind::Compaction | Kind::BranchSummary | Kind::CustomMessage => Self::Other,
            Kind::Custom => Self::Entry,
            _ => return None,
        })
    }
}

/// Messages of the current branch of a stored session.
pub struct Messages {
    pub messages: Vec<AgentMessage>,
    /// The last entry of the branch.
    pub leaf: Option<Arc<str>>,
    /// True if these are all messages of the branch.
    pub is_whole: bool,
}

/// Reads the messages after the entry `after`, or all of them if it is none or not on the branch.
pub fn messages(path: &Path, after: Option<&str>) -> Result<Messages, String> {
    let log = Log::open_to_read(path).map_err(|error| error.to_string())?;
    let new = after.and_then(|after| places(&log, Some(after)));
    let is_whole = new.is_none();
    let (places, leaf) = new.or_else(|| places(&log, None)).unwrap_or_default();
    let messages = places.iter().filter_map(|place| log.message(&place.entry)).collect();
    Ok(Messages { messages, leaf, is_whole })
}

fn places(log: &Log, after: Option<&str>) -> Option<(Vec<Place>, Option<Arc<str>>)> {
    let index = log.index();
    let leaf = log.leaf().and_then(|leaf| index.find(leaf));
    let end = leaf.and_then(|leaf| Some(index.get(leaf)?.id.clone()));
    let first = match after {
        None => None,
        Some(after) => Some(index.find(after)?),
    };
    let mut places = Vec::new();
    let mut next = leaf;
    let mut left = index.slots.len();
    while next != first {
        // A damaged file may hold a cycle: the path is never longer than the number of entries.
        left = left.checked_sub(1)?;
        let slot = index.get(next?)?;
        places.extend(Part::of(slot.kind).map(|part| Place { entry: slot.id.clone(), part }));
        next = slot.parent;
    }
    places.reverse();
    Some((places, end))
}

impl Tree<'_> {
    /// Returns the entries of the current branch after the entry `after`, or all of them, and the leaf.
    /// `None` if `after` is not on the branch.
    pub fn places(&self, after: Option<&str>) -> Option<(Vec<Place>, Option<Arc<str>>)> {
        places(&self.control.log(), after)
    }

    /// Reads the message of an entry; `None` if it cannot be read.
    pub fn shown(&self, entry: &str) -> Option<AgentMessage> {
        self.control.log().message(entry)
    }

    /// Reads an entry in the form of the session file; `None` if it cannot be read.
    pub fn entry(&self, entry: &str) -> Option<Value> {
        let entry = self.control.log().entry(entry)?;
        serde_json::to_value(entry).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn a_session_is_read_on_from_the_entry_that_was_read_last() {
        let folder = TempDir::create();
        let entry = |id: &str, parent: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"{id}"}}}}
"#
            )
        };
        let head = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
"#;
        let texts =
            |new: &Messages| new.messages.iter().map(AgentMessage::text).collect::<Vec<_>>().join(" ");
        let mut text = format!("{head}{}{}", entry("a0000001", "null"), entry("a0000002", r#""a0000001""#));
        let path = folder.write("s.jsonl", &text);
        let all = messages(&path, None).unwrap();
        assert_eq!((texts(&all).as_str(), all.is_whole), ("a0000001 a0000002", true));
        text += &entry("a0000003", r#""a0000002""#);
        let path = folder.write("s.jsonl", &text);
        let new = messages(&path, all.leaf.as_deref()).unwrap();
        assert_eq!((texts(&new).as_str(), new.is_whole), ("a0000003", false));
        // Another branch.
        text += &entry("a0000004", r#""a0000001""#);
        let path = folder.write("s.jsonl", &text);
        let other = messages(&path, new.leaf.as_deref()).unwrap();
        assert_eq!((texts(&other).as_str(), other.is_whole), ("a0000001 a0000004", true));
    }
}
