//! Sends a stored conversation to the editor.

use super::call;
use super::typed::Typed;
use super::update::{Updates, chunk, text_block};
use crate::runtime::{AgentMessage, Block, unique_id};
use serde_json::Value;

/// Sends a stored message.
pub fn message(updates: &mut Updates, message: &AgentMessage) {
    match message {
        AgentMessage::User(user) => {
            let id = unique_id();
            for block in user.content.to_blocks().iter().flat_map(shown) {
                updates.send(chunk("user_message_chunk", &id, block));
            }
        }
        AgentMessage::Assistant(answer) => {
            updates.begin_answer();
            for block in &answer.content {
                match block {
                    Block::Text(text) => updates.say(&text.text),
                    Block::Thinking(thinking) if !thinking.thinking.is_empty() => {
                        updates.think(&thinking.thinking);
                    }
                    // Those of a failed answer never ran, and have no result.
                    Block::ToolCall(asked) if !answer.is_failed() => {
                        updates.stored_call(&asked.id, &asked.name, &asked.arguments);
                    }
                    _ => {}
                }
            }
        }
        AgentMessage::ToolResult(result) => {
            updates.end_call(&result.tool_call_id, &result.content, None, result.is_error);
        }
        _ => {}
    }
}

/// A block of the user's message, as originally typed.
fn shown(block: &Block) -> Vec<Value> {
    let Block::Text(text) = block else {
        return call::block(block).into_iter().collect();
    };
    let typed = Typed::of(&text.text);
    let mut blocks = Vec::new();
    if !typed.text.is_empty() {
        blocks.push(text_block(&typed.text));
    }
    blocks.extend(typed.files.iter().map(|file| file.link()));
    blocks
}
