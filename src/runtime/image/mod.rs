//! Prepares the images of a prompt.

pub mod blocked;
pub mod named;

use super::session::Session;
use crate::base::cancel::CancelToken;
use crate::llm::message::Block;
use crate::tools::image::{self, Kind, Limits};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const UNKNOWN: &str = "[Image omitted: could not be converted to a supported inline image format.]";

impl Session {
    /// Converts images to what the model accepts. Also returns lines for the prompt's text: how an image was
    /// changed, or why one was left out.
    pub fn prepare_images(&self, images: Vec<Block>, cancel: &CancelToken) -> (Vec<Block>, Vec<String>) {
        let limits = Limits::of(&self.control().models().current(), self.workspace().options.resize_images);
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
