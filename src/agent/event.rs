//! Events of an agent's run.

use super::message::AgentMessage;
use super::tool::ToolOutput;
use crate::llm::event::{AssistantEvent, Fold};
use crate::llm::message::AssistantMessage;
use serde_json::{Map, Value};
use std::sync::Arc;

/// An event of a run, borrowed from the loop for the duration of a call.
///
/// Order in a run without errors: `AgentStart`, `TurnStart`, start and end of each input message, start,
/// updates and end of the answer, events of the tool calls, start and end of each result, `TurnEnd`, further
/// turns, `AgentEnd`.
#[derive(Clone, Copy, Debug)]
pub enum AgentEvent<'a> {
    AgentStart,
    /// `messages` are those that the run added. `will_retry` is true if another run follows without a prompt.
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
    /// Tokens of the prompt that the server has processed. Only some servers report them.
    PromptProgress {
        processed: u64,
        total: u64,
    },
    /// An event of the answer's stream. `fold` contains the answer up to and including `event`.
    MessageUpdate {
        event: &'a AssistantEvent,
        fold: &'a Fold,
    },
    MessageEnd {
        message: &'a AgentMessage,
    },
    /// `parent` is the id of the call that made this one, for instance of a script. Calls with a parent are not part
    /// of the conversation.
    ToolStart {
        id: &'a str,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        parent: Option<&'a str>,
    },
    ToolUpdate {
        id: &'a str,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        output: &'a ToolOutput,
        parent: Option<&'a str>,
    },
    ToolEnd {
        id: &'a str,
        name: &'a str,
        output: &'a ToolOutput,
        is_error: bool,
        /// Duration in milliseconds; `None` for a call that did not run.
        duration_ms: Option<u64>,
        parent: Option<&'a str>,
    },
}
