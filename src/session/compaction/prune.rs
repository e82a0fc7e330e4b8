//! Tool outputs that need not stay in the conversation: those that can be read again from a file.
//!
//! When what a compaction keeps is still too large, the outputs of kept tool calls make way, oldest
//! first. Each is stored as a file before a line takes its place, so nothing is lost; small ones stay.

use super::estimate;
use crate::agent::message::AgentMessage;
use crate::llm::message::text_of;
use crate::session::context::Projected;
use std::sync::Arc;

/// An output below this size stays: the line in its place would save little.
const SMALLEST_TOKENS: u64 = 1000;

/// The output of a kept tool call that makes way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub entry: Arc<str>,
    pub tool: String,
    pub text: String,
}

/// Chooses outputs among `kept` until these entries fit into `room` tokens.
pub fn choose(kept: &[Projected], room: u64) -> Vec<Pruned> {
    let sizes = kept.iter().flat_map(|entry| &entry.messages);
    let mut tokens = sizes.map(estimate::message_tokens).fold(0, u64::saturating_add);
    let mut chosen = Vec::new();
    for projected in kept {
        if tokens <= room {
            break;
        }
        let [message @ AgentMessage::ToolResult(result)] = projected.messages.as_slice() else {
            continue;
        };
        let size = estimate::message_tokens(message);
        let text = text_of(&result.content);
        let is_text = result.content.iter().all(|block| block.as_text().is_some());
        if size < SMALLEST_TOKENS || !is_text {
            continue;
        }
        tokens = tokens.saturating_sub(size);
        chosen.push(Pruned { entry: projected.entry.clone(), tool: result.tool_name.clone(), text });
    }
    chosen
}

/// What the model reads in the place of an output that is kept at `place`.
pub fn line(pruned: &Pruned, place: &str) -> String {
    let lines = pruned.text.lines().count();
    let bytes = pruned.text.len();
    format!(
        "[This output ({lines} lines, {bytes} bytes) was moved out of the conversation to save space. Read {place} if it is needed.]"
    )
}
