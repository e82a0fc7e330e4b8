//! The reference's own protocol, for gateways that hold the providers' keys.
//!
//! The conversation is sent as stored; the gateway decides which parts a provider sees. The answer is a
//! stream of the reference's internal events, which ends with `done` or `error`.

mod decoder;
mod event;
mod request;
#[cfg(test)]
mod tests;

use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use crate::wire::answer::{Answer, AnswerDecoder};

pub struct PiMessages;

impl Protocol for PiMessages {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(AnswerDecoder::new(decoder::EventReader::default(), Answer::new(model, context)))
    }
}
