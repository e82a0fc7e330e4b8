//! Anthropic's messages protocol, for Anthropic and compatible servers.

mod compat;
mod decoder;
mod event;
mod messages;
mod request;
#[cfg(test)]
mod tests;
mod tools;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use crate::wire::answer::{Answer, AnswerDecoder};

pub struct AnthropicMessages;

impl Protocol for AnthropicMessages {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder> {
        let reader = decoder::MessageReader::new(model, options);
        Box::new(AnswerDecoder::new(reader, Answer::new(model, context)))
    }
}
