//! OpenAI's Responses API, for OpenAI and compatible servers, Azure, and ChatGPT subscriptions (Codex).
//!
//! The variants differ in URL, headers and a few fields; [`items`] and [`decoder`] serve all of them. The
//! provider stores nothing: every request contains the whole conversation, including the provider's encrypted
//! records of its thinking.

mod blocks;
mod call_id;
mod codex;
mod compat;
mod decoder;
mod items;
mod request;
#[cfg(test)]
mod tests;
mod tools;
mod usage;
mod variant;

pub use variant::Variant;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use crate::wire::answer::{Answer, AnswerDecoder};

pub struct OpenAiResponses(pub Variant);

impl Protocol for OpenAiResponses {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        request::request(self.0, model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder> {
        let reader = decoder::EventReader::new(self.0, model, context, options);
        Box::new(AnswerDecoder::new(reader, Answer::new(model, context)))
    }

    fn explain(&self, error: &mut StreamError, _: &[(String, String)], body: &str) {
        if self.0 == Variant::Codex {
            codex::explain(error, body);
        }
    }
}
