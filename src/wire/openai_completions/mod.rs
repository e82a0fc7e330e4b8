//! OpenAI's chat completions, as spoken by OpenAI and by everyone who says so.
//!
//! The protocol is the common tongue of gateways and of servers on one's own machine, and most of this
//! room is about their dialects: [`compat`] knows who differs in what, [`thinking`] how each is asked to
//! think, [`inline`] what small models write into plain text.

pub(super) mod calls;
pub(super) mod chunk;
mod compat;
mod decoder;
mod inline;
mod inline_call;
mod messages;
mod reasoning;
mod request;
#[cfg(test)]
mod tests;
mod thinking;
mod tools;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};

pub struct OpenAiCompletions;

impl Protocol for OpenAiCompletions {
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

    /// The reference's client library takes an abort for the end of the answer.
    fn closes_when_aborted(&self) -> bool {
        true
    }
}
