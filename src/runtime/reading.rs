//! The conversation as people read it: all that lies on the way to the leaf, also what the model is not told
//! any more. Where entries lie costs little; what they say is read when it is looked at.

use super::control::Tree;
use crate::agent::message::AgentMessage;
use crate::session::index::Kind;
use std::sync::Arc;

/// An entry that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub entry: Arc<str>,
    pub part: Part,
}

/// What an entry is in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the user said.
    Prompt,
    Answer,
    /// Result of a tool call in the answer before it.
    Result,
    Other,
}

impl Part {
    fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::User => Self::Prompt,
            Kind::Assistant => Self::Answer,
            Kind::ToolResult => Self::Result,
            Kind::OtherMessage | Kind::Compaction | Kind::BranchSummary | Kind::CustomMessage => Self::Other,
            _ => return None,
        })
    }
}

impl Tree<'_> {
    /// What is shown from behind `after` on, and the leaf it ends at; none when `after` is not on the way
    /// there. Without `after`, all of it.
    pub fn places(&self, after: Option<&str>) -> Option<(Vec<Place>, Option<Arc<str>>)> {
        let log = self.control.log();
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
            // No way is longer than there are entries, whatever a file says.
            left = left.checked_sub(1)?;
            let slot = index.get(next?)?;
            places.extend(Part::of(slot.kind).map(|part| Place { entry: slot.id.clone(), part }));
            next = slot.parent;
        }
        places.reverse();
        Some((places, end))
    }

    /// What an entry says; none for one that cannot be read.
    pub fn shown(&self, entry: &str) -> Option<AgentMessage> {
        self.control.log().message(entry)
    }
}
