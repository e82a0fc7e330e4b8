//! Queues of messages for the model.

use super::{Emit, Queue};
use crate::agent::message::AgentMessage;
use crate::agent::queue::{self, QueueMode};
use crate::runtime::event::Event;

#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub steering: queue::Queue,
    pub follow_up: queue::Queue,
}

impl Queues {
    pub fn new((steering, follow_up): (QueueMode, QueueMode)) -> Self {
        Self { steering: queue::Queue::new(steering), follow_up: queue::Queue::new(follow_up) }
    }

    /// Emits both queues in full. Must be called after each change.
    pub fn emit(&self, emit: Emit<'_>) {
        let (steering, follow_up): (Vec<_>, Vec<_>) =
            (self.steering.iter().cloned().collect(), self.follow_up.iter().cloned().collect());
        emit(&Event::QueueUpdate { steering: &steering, follow_up: &follow_up });
    }
}

impl Queue<'_> {
    /// Queues a steering message, which joins the run after the current turn. In an idle session the message
    /// waits for the next prompt.
    pub fn steer(&self, message: AgentMessage, emit: Emit<'_>) {
        let mut queues = self.control.queues();
        queues.steering.push(self.control.hidden(message));
        queues.emit(emit);
    }

    /// Queues a message that is sent when the run would end.
    pub fn follow_up(&self, message: AgentMessage, emit: Emit<'_>) {
        let mut queues = self.control.queues();
        queues.follow_up.push(self.control.hidden(message));
        queues.emit(emit);
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
