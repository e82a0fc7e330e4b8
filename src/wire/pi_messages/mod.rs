//! The reference's own protocol, spoken by gateways that hold the providers' keys themselves.
//!
//! The conversation is sent as it is stored; what a provider may see of it is the gateway's to decide.
//! The answer is a stream of the events that the reference has inside, with `done` or `error` at its end.

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
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(AnswerDecoder::new(decoder::EventReader::default(), Answer::new(model, context)))
    }
}
