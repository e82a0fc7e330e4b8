//! A queue of messages that join a run later.

use super::message::AgentMessage;
use std::collections::VecDeque;

/// How many queued messages are taken at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    All,
    #[default]
    OneAtATime,
}

impl QueueMode {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "one-at-a-time" => Some(Self::OneAtATime),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::OneAtATime => "one-at-a-time",
        }
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    pub mode: QueueMode,
    /// Messages that the run has taken, but that are not in the conversation yet.
    leaving: VecDeque<AgentMessage>,
    waiting: VecDeque<AgentMessage>,
    /// Number of waiting messages that were queued before the last [`Queue::mark`].
    marked: usize,
}

impl Queue {
    pub fn new(mode: QueueMode) -> Self {
        Self { mode, ..Self::default() }
    }

    pub fn push(&mut self, message: AgentMessage) {
        self.waiting.push_back(message);
    }

    /// Marks the messages that wait when a prompt is accepted. Only marked messages may join its first
    /// request.
    pub fn mark(&mut self) {
        self.marked = self.waiting.len();
    }

    /// Takes messages like [`Queue::take`], but only marked ones.
    pub fn take_marked(&mut self) -> Vec<AgentMessage> {
        self.take_of(self.marked)
    }

    /// Takes one or all waiting messages, depending on the mode. Taken messages count as queued until
    /// [`Queue::started`].
    pub fn take(&mut self) -> Vec<AgentMessage> {
        self.take_of(self.waiting.len())
    }

    /// Returns the messages that [`Queue::take`] would take.
    pub fn peek(&self) -> impl Iterator<Item = &AgentMessage> {
        let count = match self.mode {
            QueueMode::All => self.waiting.len(),
            QueueMode::OneAtATime => 1,
        };
        self.waiting.iter().take(count)
    }

    fn take_of(&mut self, most: usize) -> Vec<AgentMessage> {
        let count = match self.mode {
            QueueMode::All => most,
            QueueMode::OneAtATime => most.min(1),
        };
        self.marked = self.marked.saturating_sub(count);
        let taken: Vec<AgentMessage> = self.waiting.drain(..count).collect();
        self.leaving.extend(taken.iter().cloned());
        taken
    }

    /// Removes a taken message when it joins the conversation. True if `message` was in the queue.
    pub fn started(&mut self, message: &AgentMessage) -> bool {
        let at = self.leaving.iter().position(|leaving| leaving == message);
        at.and_then(|at| self.leaving.remove(at)).is_some()
    }

    /// Empties the queue and returns its messages. A message that a run has taken still joins the
    /// conversation.
    pub fn clear(&mut self) -> Vec<AgentMessage> {
        self.marked = 0;
        self.leaving.drain(..).chain(self.waiting.drain(..)).collect()
    }

    /// True if no message waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns messages that are not in the conversation yet.
    pub fn iter(&self) -> impl Iterator<Item = &AgentMessage> {
        self.leaving.iter().chain(&self.waiting)
    }

    /// Returns the number of messages that are not in the conversation yet.
    pub fn len(&self) -> usize {
        self.leaving.len() + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::{Content, UserMessage};

    fn message(text: &str) -> AgentMessage {
        UserMessage { content: Content::Text(text.into()), ..UserMessage::default() }.into()
    }

    fn texts<'a>(messages: impl IntoIterator<Item = &'a AgentMessage>) -> Vec<String> {
        messages.into_iter().map(AgentMessage::text).collect()
    }

    #[test]
    fn a_message_stays_in_the_list_until_it_is_in_the_conversation() {
        for (mode, first) in [(QueueMode::OneAtATime, vec!["a"]), (QueueMode::All, vec!["a", "b"])] {
            let mut queue = Queue::new(mode);
            queue.push(message("a"));
            queue.push(message("b"));
            let taken = queue.take();
            assert_eq!(texts(&taken), first);
            assert_eq!(texts(queue.iter()), ["a", "b"]);
            assert!(!queue.started(&message("c")));
            assert!(queue.started(&message("a")));
            assert!(!queue.started(&message("a")));
            assert_eq!(texts(queue.iter()), ["b"]);
            assert_eq!(queue.is_empty(), mode == QueueMode::All);
            assert_eq!(texts(&queue.clear()), ["b"]);
            assert_eq!((queue.len(), queue.take().len()), (0, 0));
        }
    }

    #[test]
    fn what_comes_after_a_mark_is_not_taken_with_it() {
        for (mode, first, then) in
            [(QueueMode::OneAtATime, vec!["a"], vec!["b"]), (QueueMode::All, vec!["a", "b"], vec!["c"])]
        {
            let mut queue = Queue::new(mode);
            queue.push(message("a"));
            queue.push(message("b"));
            queue.mark();
            queue.push(message("c"));
            assert_eq!(texts(&queue.take_marked()), first);
            assert_eq!(texts(&queue.take()), then);
            // What was marked is gone with the rest.
            queue.mark();
            queue.clear();
            queue.push(message("d"));
            assert_eq!(texts(&queue.take_marked()), [""; 0]);
            assert_eq!(texts(&queue.take()), ["d"]);
        }
    }
}
