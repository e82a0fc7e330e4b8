//! Queues of messages for the model.

use super::{Emit, Queue};
use crate::agent::message::AgentMessage;
use crate::agent::queue::{self, QueueMode};
use crate::runtime::event::Event;
use crate::runtime::task::Streaming;

#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub steering: queue::Queue,
    pub follow_up: queue::Queue,
}

impl Queues {
    pub fn new((steering, follow_up): (QueueMode, QueueMode)) -> Self {
        Self { steering: queue::Queue::new(steering), follow_up: queue::Queue::new(follow_up) }
    }

    /// Emits what of both queues is the user's. Must be called after each change of that.
    pub fn emit(&self, emit: Emit<'_>) {
        let typed =
            |queue: &queue::Queue| queue.iter().filter(|message| is_typed(message)).cloned().collect();
        let (steering, follow_up): (Vec<_>, Vec<_>) = (typed(&self.steering), typed(&self.follow_up));
        emit(&Event::QueueUpdate { steering: &steering, follow_up: &follow_up });
    }

    /// Queues a message and emits the change.
    pub fn push(&mut self, message: AgentMessage, streaming: Streaming, emit: Emit<'_>) {
        let is_told = is_typed(&message);
        match streaming {
            Streaming::Steer => self.steering.push(message),
            Streaming::FollowUp => self.follow_up.push(message),
        }
        if is_told {
            self.emit(emit);
        }
    }
}

/// True for a message of the user. Others, such as those of extensions, wait unseen.
pub(crate) fn is_typed(message: &AgentMessage) -> bool {
    matches!(message, AgentMessage::User(_))
}

impl Queue<'_> {
    /// Queues a steering message, which joins the run after the current turn. In an idle session the message
    /// waits for the next prompt.
    pub fn steer(&self, message: AgentMessage, emit: Emit<'_>) {
        let message = self.control.hidden(message);
        self.control.queues().push(message, Streaming::Steer, emit);
    }

    /// Queues a message that is sent when the run would end.
    pub fn follow_up(&self, message: AgentMessage, emit: Emit<'_>) {
        let message = self.control.hidden(message);
        self.control.queues().push(message, Streaming::FollowUp, emit);
    }

    /// Empties both queues, and returns the texts of the steering and of the follow-up messages.
    pub fn clear(&self, emit: Emit<'_>) -> (Vec<String>, Vec<String>) {
        let texts = |messages: Vec<AgentMessage>| -> Vec<String> {
            messages.iter().map(AgentMessage::text).collect()
        };
        let mut queues = self.control.queues();
        let cleared = (texts(queues.steering.clear()), texts(queues.follow_up.clear()));
        queues.emit(emit);
        cleared
    }
}
