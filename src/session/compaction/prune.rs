//! Chooses tool outputs that are moved from the conversation into files.
//!
//! If the messages that a compaction keeps are still too large, outputs of kept tool calls are moved, oldest
//! first. Each is stored in a file before a line replaces it, so nothing is lost. Small outputs stay.

use super::estimate;
use crate::agent::message::AgentMessage;
use crate::llm::message::text_of;
use crate::session::context::Projected;
use std::sync::Arc;

/// Minimum size of an output to move, in tokens.
const SMALLEST_TOKENS: u64 = 1000;

/// The output of a tool call that is moved into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub entry: Arc<str>,
    pub tool: String,
    pub text: String,
}

/// Chooses outputs until the entries `kept` fit into `room` tokens.
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

/// Returns the line that replaces an output, which is stored at `place`.
pub fn line(pruned: &Pruned, place: &str) -> String {
    let lines = pruned.text.lines().count();
    let bytes = pruned.text.len();
    format!(
        "[This output ({lines} lines, {bytes} bytes) was moved out of the conversation to save space. Read {place} if it is needed.]"
    )
}
