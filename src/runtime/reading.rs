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

/// Returns the messages of the current branch of a stored session.
pub fn messages(path: &Path) -> Result<Vec<AgentMessage>, String> {
    let log = Log::open_to_read(path).map_err(|error| error.to_string())?;
    let (places, _) = places(&log, None).unwrap_or_default();
    Ok(places.iter().filter_map(|place| log.message(&place.entry)).collect())
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
