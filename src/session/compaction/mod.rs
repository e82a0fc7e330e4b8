//! Plans compactions and writes their prompts, without I/O except reading the log.
//!
//! A compaction replaces the older part of a conversation by a summary in the model's context. Its entry
//! names the first kept entry; the file keeps everything.
//!
//! Not here: the time of a compaction, its request and its events (`runtime::compaction`).

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

/// The result of a compaction.
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

/// Sizes of a compaction, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Tokens to leave free for an answer. A conversation that leaves less is compacted.
    pub reserve: u64,
    /// Tokens at the end of the conversation that are kept unchanged.
    pub keep: u64,
}

impl Sizes {
    const RESERVE: u64 = 16_384;
    const KEEP: u64 = 20_000;

    /// Returns the sizes for a window of `window` tokens. Configured sizes are used unchanged. The default
    /// reserve is lowered to a quarter of the window if the reserve exceeds two thirds of the window. The
    /// default `keep` is lowered to half of the room beside the reserve if `keep` exceeds that room.
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

    /// True if a conversation of `tokens` leaves less than the reserve.
    pub fn is_over(self, tokens: u64, window: u64) -> bool {
        tokens > window.saturating_sub(self.reserve)
    }
}

/// Combines all system messages into one, which a compaction stores; `None` if there are none.
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

/// Adds the usage of two requests.
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
