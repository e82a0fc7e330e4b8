//! Messages that wait for their moment in a run.

use super::message::AgentMessage;
use std::collections::VecDeque;

/// How many waiting messages one moment takes.
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
}

#[derive(Debug, Default)]
pub struct Queue {
    pub mode: QueueMode,
    waiting: VecDeque<AgentMessage>,
}

impl Queue {
    pub fn new(mode: QueueMode) -> Self {
        Self {
            mode,
            waiting: VecDeque::new(),
        }
    }

    pub fn push(&mut self, message: AgentMessage) {
        self.waiting.push_back(message);
    }

    /// The messages whose moment has come.
    pub fn take(&mut self) -> Vec<AgentMessage> {
        match self.mode {
            QueueMode::All => self.waiting.drain(..).collect(),
            QueueMode::OneAtATime => self.waiting.pop_front().into_iter().collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &AgentMessage> {
        self.waiting.iter()
    }
}
