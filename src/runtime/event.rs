//! What happens in a session: the agent's events and those above a single run.

use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;

#[derive(Clone, Copy)]
pub enum Event<'a> {
    Agent(AgentEvent<'a>),
    /// Nothing more happens by itself. Once for each prompt.
    AgentSettled,
    /// The whole of both queues.
    QueueUpdate {
        steering: &'a [AgentMessage],
        follow_up: &'a [AgentMessage],
    },
}
