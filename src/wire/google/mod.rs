//! Google's `generateContent`, as the Gemini API and Vertex AI speak it.
//!
//! Both take the same body and stream the same answer; they differ in where a request goes and what it
//! is signed with ([`endpoint`]). A request is the prompt, declarations of functions, and contents: turns
//! of `user` and `model` made of parts. An answer is a stream of chunks that each hold some parts, with
//! the reason for its end in the last one; the protocol has no other end.

mod chunk;
mod contents;
mod decoder;
mod endpoint;
mod family;
mod request;
#[cfg(test)]
mod tests;
mod thinking;
mod variant;

pub use endpoint::is_placeholder;
pub use variant::Google;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use crate::wire::answer::{Answer, AnswerDecoder};

impl Protocol for Google {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError> {
        Ok(HttpRequest {
            url: endpoint::url(*self, model, options)?,
            headers: endpoint::headers(*self, model, options)?,
            body: request::body(*self, model, context, options)?.into_bytes(),
        })
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(AnswerDecoder::new(decoder::ChunkReader::new(*self), Answer::new(model, context)))
    }
}
