//! What happens in a session: the agent's events and those above a single run.

use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::session::entry::Entry;

#[derive(Clone, Copy)]
pub enum Event<'a> {
    Agent(AgentEvent<'a>),
    /// Nothing more happens by itself. Once for each prompt.
    AgentSettled,
    /// An answer failed and is asked for again after `delay_ms`.
    AutoRetryStart {
        attempt: u64,
        max_attempts: u64,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// An answer came, or there will be none: `final_error` says why.
    AutoRetryEnd {
        success: bool,
        attempt: u64,
        final_error: Option<&'a str>,
    },
    /// Something that is no message was written to the log.
    EntryAppended {
        entry: &'a Entry,
    },
    /// The whole of both queues.
    QueueUpdate {
        steering: &'a [AgentMessage],
        follow_up: &'a [AgentMessage],
    },
}
