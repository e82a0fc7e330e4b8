//! What a compaction cuts off, and what it asks a model to make of that: values in, values out.
//!
//! A compaction replaces the older part of a conversation by a summary. Its entry names the first entry
//! that is kept; nothing is removed from the file.
//!
//! Not here: when it happens, the request, the events (`runtime::compaction`).

pub mod branch;
pub mod cut;
pub mod estimate;
pub mod files;
pub mod prompt;
pub mod prune;
pub mod transcript;

#[cfg(test)]
mod tests;

use crate::agent::message::AgentMessage;
use crate::llm::context::Head;
use crate::llm::message::{Content, SystemMessage, Usage, UsageCost};
use serde::Serialize;
use serde_json::Value;

pub use cut::Preparation;

/// What a compaction came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    pub summary: String,
    pub first_kept_entry_id: String,
    pub tokens_before: u64,
    pub estimated_tokens_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Tokens that a compaction leaves room for and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Left free in the window for an answer; a context that leaves less is compacted.
    pub reserve: u64,
    /// The end of the conversation that stays as it is.
    pub keep: u64,
}

impl Sizes {
    const RESERVE: u64 = 16_384;
    const KEEP: u64 = 20_000;

    /// The sizes for a window of `window` tokens. What is set holds; what is not is the usual figure,
    /// or less where the window is too small for it: a reserve of a quarter where the usual one would
    /// take more than two thirds, and half of what the reserve leaves to keep where that is not more
    /// than would be kept.
    pub fn new(window: u64, reserve: Option<u64>, keep: Option<u64>) -> Self {
        let is_known = window > 0;
        let reserve = reserve.unwrap_or(match Self::RESERVE {
            usual if is_known && usual > window / 3 * 2 => window / 4,
            usual => usual,
        });
        let room = window.saturating_sub(reserve);
        let keep = keep.unwrap_or(match Self::KEEP {
            usual if room > 0 && usual >= room => room / 2,
            usual => usual,
        });
        Self { reserve, keep }
    }

    /// True if a context of `tokens` leaves less than the reserve.
    pub fn is_over(self, tokens: u64, window: u64) -> bool {
        tokens > window.saturating_sub(self.reserve)
    }
}

/// All system messages in one, as a compaction keeps it; none when there is nothing to say.
pub fn current_system<'a>(messages: impl IntoIterator<Item = &'a AgentMessage>) -> Option<SystemMessage> {
    let mut head = Head::default();
    let mut first = None;
    for message in messages {
        if let AgentMessage::System(system) = message {
            first.get_or_insert(system.timestamp);
            head.apply(system);
        }
    }
    let timestamp = first?;
    Some(SystemMessage {
        content: Content::Text(head.contents.join("\n\n")),
        sections: (!head.sections.is_empty()).then_some(head.sections),
        tools_added: head.tools,
        timestamp,
        ..SystemMessage::default()
    })
}

/// The usage of both requests together.
pub fn add_usage(one: &Usage, other: &Usage) -> Usage {
    let either = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
        cache_write_1h: either(one.cache_write_1h, other.cache_write_1h),
        reasoning: either(one.reasoning, other.reasoning),
        total_tokens: one.total_tokens.saturating_add(other.total_tokens),
        cost: UsageCost {
            input: one.cost.input + other.cost.input,
            output: one.cost.output + other.cost.output,
            cache_read: one.cost.cache_read + other.cost.cache_read,
            cache_write: one.cost.cache_write + other.cost.cache_write,
            total: one.cost.total + other.cost.total,
            total_from_provider: one
                .cost
                .total_from_provider
                .zip(other.cost.total_from_provider)
                .map(|(one, other)| one && other),
        },
        ..Usage::default()
    }
}
