//! Messages to fill sessions with.

use crate::agent::message::AgentMessage;
use crate::llm::message::{AssistantMessage, Block, Content, StopReason, UserMessage};

pub fn user(text: &str) -> AgentMessage {
    UserMessage { content: Content::Text(text.into()), timestamp: 1, ..UserMessage::default() }.into()
}

pub fn answer(text: &str) -> AgentMessage {
    AssistantMessage {
        content: vec![Block::text(text)],
        api: "faux".into(),
        provider: "faux".into(),
        model: "echo".into(),
        stop_reason: StopReason::Stop,
        timestamp: 2,
        ..AssistantMessage::default()
    }
    .into()
}
