//! What happens in a run, as it is told to whoever runs the agent.

use super::message::AgentMessage;
use super::tool::ToolOutput;
use crate::llm::event::{AssistantEvent, Fold};
use crate::llm::message::AssistantMessage;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One step of a run, borrowed from the loop for the time of the call.
///
/// The order of a plain run: `AgentStart`, `TurnStart`, start and end of each message that goes in,
/// start, updates and end of the answer, the tools' events, start and end of each result, `TurnEnd`,
/// further turns, `AgentEnd`.
#[derive(Clone, Copy, Debug)]
pub enum AgentEvent<'a> {
    AgentStart,
    /// `messages` are those the run added. `will_retry`: another run follows by itself.
    AgentEnd {
        messages: &'a [AgentMessage],
        will_retry: bool,
    },
    TurnStart,
    TurnEnd {
        message: &'a Arc<AssistantMessage>,
        tool_results: &'a [AgentMessage],
    },
    MessageStart {
        message: &'a AgentMessage,
    },
    /// The model reads the prompt; of a server that says how far it is. Tokens.
    PromptProgress {
        processed: u64,
        total: u64,
    },
    /// `fold` holds the answer with this event already in it.
    MessageUpdate {
        event: &'a AssistantEvent,
        fold: &'a Fold,
    },
    MessageEnd {
        message: &'a AgentMessage,
    },
    ToolStart {
        id: &'a str,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    },
    ToolUpdate {
        id: &'a str,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        output: &'a ToolOutput,
    },
    ToolEnd {
        id: &'a str,
        name: &'a str,
        output: &'a ToolOutput,
        is_error: bool,
        /// Milliseconds; none for a call that did not run.
        duration_ms: Option<u64>,
    },
}
