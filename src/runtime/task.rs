//! Work for the session's thread that others than its mode hand in.

use crate::agent::message::AgentMessage;
use crate::llm::message::Block;
use crate::session::entry::{Body, Entry};
use crossbeam_channel::Sender;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// What has become of a prompt that others have looked at.
pub enum Taken {
    /// It goes on as they left it.
    Goes(String, Vec<Block>),
    /// It is dealt with.
    Handled,
    /// The wait for them was aborted.
    Aborted,
}

/// Where a prompt goes that comes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    Steer,
    FollowUp,
}

/// When a message that no user typed reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Now(Streaming),
    /// When the turn under way ends, without a request of its own.
    AfterTurn,
    /// With the next prompt.
    NextTurn,
}

/// Takes what came of a task.
pub type Reply = Sender<Result<Value, String>>;

/// What the session's thread is to do. Events go to the mode's listener.
pub enum Task {
    /// Runs a message as a prompt; if a run has begun meanwhile it is queued.
    Prompt(AgentMessage, Streaming),
    /// Asks handlers, which have come late, for further resources.
    Discover,
    /// Anything that has an answer.
    Ask(Ask, Reply),
}

/// A change of the conversation, with an answer.
pub enum Ask {
    New {
        parent: Option<String>,
        /// Content of the session's first entries.
        entries: Vec<Body>,
    },
    Switch(PathBuf),
    ForkBefore(String),
    ForkAt(String),
    Reload,
    Compact {
        instructions: Option<String>,
    },
    /// Nothing: the answer comes when all that was handed over before is done.
    Wait,
    Navigate {
        target: String,
        summarize: bool,
        instructions: Option<String>,
        replace_instructions: bool,
        label: Option<String>,
    },
}

/// Types of entries that a new session may begin with.
const FIRST: [&str; 6] =
    ["message", "custom", "custom_message", "session_info", "model_change", "thinking_level_change"];

/// Reads the first entries of a new session, which are lines of a session file without their places in it.
pub fn first_entries(entries: Vec<Value>) -> Result<Vec<Body>, String> {
    let read = |value: Value| match Entry::deserialize(&value) {
        Ok(entry) if FIRST.contains(&entry.body.kind()) && !matches!(entry.body, Body::Unknown(_)) => {
            Ok(entry.body)
        }
        _ => Err(format!("\"setup\": not an entry that a session can begin with: {value}")),
    };
    entries.into_iter().map(read).collect()
}
