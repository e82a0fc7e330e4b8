//! OpenAI's chat completions, as spoken by OpenAI and by everyone who says so.
//!
//! The protocol is the common tongue of gateways and of servers on one's own machine, and most of this
//! folder is about their dialects: [`compat`] knows who differs in what, [`thinking`] how each is asked to
//! think, [`inline`] what small models write into plain text. A server that takes requests of another form
//! and answers alike is a [`Profile`]: a file beside `mistral.rs` and a row in `wire`'s table.

mod calls;
mod chunk;
mod compat;
mod decoder;
mod inline;
mod inline_call;
mod messages;
mod mistral;
mod reasoning;
mod request;
#[cfg(test)]
mod tests;
mod thinking;
mod tools;

pub use mistral::MISTRAL;
pub use request::OPENAI;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use decoder::{ChunkReader, Reading};

/// Who speaks chat completions, and how.
pub struct Profile {
    request: fn(&Model, &Context, &StreamOptions) -> Result<HttpRequest, StreamError>,
    reading: fn(&Model) -> Reading,
    /// An abort ends the blocks that are open.
    closes_when_aborted: bool,
}

pub struct ChatCompletions(pub &'static Profile);

impl Protocol for ChatCompletions {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError> {
        (self.0.request)(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(ChunkReader::decoder((self.0.reading)(model), model, context))
    }

    fn closes_when_aborted(&self) -> bool {
        self.0.closes_when_aborted
    }
}
