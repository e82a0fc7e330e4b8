//! OpenAI's chat completions, for OpenAI and compatible servers.
//!
//! Most gateways and local servers use this protocol, and much of this folder handles their differences:
//! [`compat`] lists the differences of each server, [`thinking`] has the formats for requesting thinking,
//! [`inline`] finds thinking and calls in the plain text of small models. A server with another request
//! format and equal answers is a [`Profile`]: a file beside `mistral.rs` and a row in the table of `wire`.

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

/// A kind of server: how requests are built and answers decoded.
pub struct Profile {
    request: for<'a> fn(&'a Model, &'a Context, &'a StreamOptions) -> Result<HttpRequest<'a>, StreamError>,
    reading: fn(&Model) -> Reading,
    /// True if an abort ends the open blocks.
    closes_when_aborted: bool,
}

pub struct ChatCompletions(pub &'static Profile);

impl Protocol for ChatCompletions {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        (self.0.request)(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(ChunkReader::decoder((self.0.reading)(model), model, context))
    }

    fn closes_when_aborted(&self) -> bool {
        self.0.closes_when_aborted
    }
}
