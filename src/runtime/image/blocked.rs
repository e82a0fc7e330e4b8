//! The `images.blockImages` setting, which keeps images from providers.

use crate::agent::message::AgentMessage;
use crate::llm::message::{Block, Content};
use std::sync::Arc;

const NOTE: &str = "Image reading is disabled.";

/// Returns the messages with a note in place of each run of images. The stored messages keep their images.
pub fn without(messages: &[AgentMessage]) -> Vec<AgentMessage> {
    messages.iter().map(replace).collect()
}

fn replace(message: &AgentMessage) -> AgentMessage {
    let mut message = message.clone();
    match &mut message {
        AgentMessage::User(user) => {
            if let Content::Blocks(blocks) = &user.content
                && let Some(blocks) = noted(blocks)
            {
                Arc::make_mut(user).content = Content::Blocks(blocks);
            }
        }
        AgentMessage::ToolResult(result) => {
            if let Some(blocks) = noted(&result.content) {
                Arc::make_mut(result).content = blocks;
            }
        }
        AgentMessage::Custom(custom) => {
            if let Content::Blocks(blocks) = &custom.content
                && let Some(blocks) = noted(blocks)
            {
                Arc::make_mut(custom).content = Content::Blocks(blocks);
            }
        }
        _ => {}
    }
    message
}

fn noted(blocks: &[Block]) -> Option<Vec<Block>> {
    if !blocks.iter().any(|block| matches!(block, Block::Image(_))) {
        return None;
    }
    let mut kept: Vec<Block> = Vec::new();
    for block in blocks {
        match block {
            Block::Image(_) if kept.last().and_then(Block::as_text) == Some(NOTE) => {}
            Block::Image(_) => kept.push(Block::text(NOTE)),
            other => kept.push(other.clone()),
        }
    }
    Some(kept)
}
