//! Mistral's chat completions.
//!
//! Close to OpenAI's in form, and read with the same types; what differs is what may be sent. Ids of
//! calls have nine letters and digits, thinking is a part of content, a user does not speak right after
//! a tool, and models think by a mode or by an effort.

mod decoder;
mod messages;
mod request;
#[cfg(test)]
mod tests;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};

pub struct MistralConversations;

impl Protocol for MistralConversations {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(decoder::ChunkDecoder::new(model, context))
    }
}
