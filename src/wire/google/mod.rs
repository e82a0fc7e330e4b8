//! Google's `generateContent`, for the Gemini API and Vertex AI.
//!
//! The two services differ only in URL and authentication ([`endpoint`]). A request has the prompt, function
//! declarations, and contents: turns of `user` and `model` made of parts. An answer is a stream of chunks
//! with parts; the last chunk contains the stop reason, and there is no other end marker.

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
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        Ok(HttpRequest {
            url: endpoint::url(*self, model, options)?,
            headers: endpoint::headers(*self, model, options)?,
            body: request::body(*self, model, context, options)?,
        })
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(AnswerDecoder::new(decoder::ChunkReader::new(*self), Answer::new(model, context)))
    }
}
