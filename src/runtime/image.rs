//! Images of a prompt, and the setting that keeps images on this machine.

use super::session::Session;
use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::llm::message::{Block, Content};
use crate::tools::image::{self, Kind, Limits};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

const NOTE: &str = "Image reading is disabled.";

const UNKNOWN: &str = "[Image omitted: could not be converted to a supported inline image format.]";

impl Session {
    /// Images as the model takes them, and lines for the text beside them: what was done to them, or why
    /// one was left out.
    pub fn prepare_images(&self, images: Vec<Block>, cancel: &CancelToken) -> (Vec<Block>, Vec<String>) {
        let limits = Limits::of(&self.control().model(), self.workspace().options.resize_images);
        let (mut kept, mut hints) = (Vec::new(), Vec::new());
        for block in images {
            let Block::Image(given) = &block else {
                kept.push(block);
                continue;
            };
            let file = STANDARD.decode(&given.data).ok();
            let known = file.and_then(|file| Kind::sniff(&file).map(|kind| (file, kind)));
            let prepared = match known {
                Some((file, kind)) => {
                    image::prepare(&file, kind, &limits, self.workspace().backend.sandbox(), cancel)
                }
                None => Err(UNKNOWN.to_owned()),
            };
            match prepared {
                Ok(prepared) => {
                    kept.push(Block::image(prepared.data, prepared.mime_type));
                    hints.extend(prepared.hints);
                }
                Err(note) => hints.push(note),
            }
        }
        (kept, hints)
    }
}

/// The messages with a note in place of each run of images. What is stored keeps them.
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
