//! Hides secrets in messages. A message without secrets is neither copied nor changed.

use super::Set;
use crate::llm::message::{Block, Content, Message};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

impl Set {
    /// Hides secrets in the parts of `message` that are sent to a provider.
    pub fn hide_message(&self, message: &mut Message) {
        match message {
            Message::System(system) => {
                let sections = system.sections.iter().flatten();
                if self.in_content(&system.content)
                    || sections.into_iter().any(|(_, text)| self.in_value(text))
                {
                    let system = Arc::make_mut(system);
                    self.hide_content(&mut system.content);
                    let sections = system.sections.iter_mut().flat_map(|sections| sections.values_mut());
                    sections.for_each(|text| self.hide_value(text));
                }
            }
            Message::User(user) => {
                if self.in_content(&user.content) {
                    self.hide_content(&mut Arc::make_mut(user).content);
                }
            }
            Message::Assistant(answer) => {
                if self.in_blocks(&answer.content) {
                    self.hide_blocks(&mut Arc::make_mut(answer).content);
                }
            }
            Message::ToolResult(result) => {
                if self.in_blocks(&result.content) {
                    self.hide_blocks(&mut Arc::make_mut(result).content);
                }
            }
        }
    }

    pub fn hide_content(&self, content: &mut Content) {
        match content {
            Content::Text(text) => self.hide_text(text),
            Content::Blocks(blocks) => self.hide_blocks(blocks),
        }
    }

    pub fn hide_blocks(&self, blocks: &mut [Block]) {
        for block in blocks {
            match block {
                Block::Text(text) => self.hide_text(&mut text.text),
                Block::Thinking(thinking) => self.hide_text(&mut thinking.thinking),
                Block::ToolCall(call) => call.arguments.values_mut().for_each(|value| self.hide_value(value)),
                Block::Image(_) | Block::Other(_) => {}
            }
        }
    }

    fn hide_text(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hide(text) {
            *text = hidden;
        }
    }

    fn in_content(&self, content: &Content) -> bool {
        match content {
            Content::Text(text) => self.is_in(text),
            Content::Blocks(blocks) => self.in_blocks(blocks),
        }
    }

    fn in_blocks(&self, blocks: &[Block]) -> bool {
        blocks.iter().any(|block| match block {
            Block::Text(text) => self.is_in(&text.text),
            Block::Thinking(thinking) => self.is_in(&thinking.thinking),
            Block::ToolCall(call) => call.arguments.values().any(|value| self.in_value(value)),
            Block::Image(_) | Block::Other(_) => false,
        })
    }

    fn in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_in(text),
            Value::Array(items) => items.iter().any(|item| self.in_value(item)),
            Value::Object(fields) => {
                fields.iter().any(|(name, value)| self.is_in(name) || self.in_value(value))
            }
            _ => false,
        }
    }
}
