//! Anthropic's messages, as spoken by Anthropic and by those who took the protocol over.

mod compat;
mod decoder;
mod event;
mod messages;
mod request;
#[cfg(test)]
mod tests;
mod tools;

use super::{Context, Decoder, HttpRequest, Model, Protocol, StreamError, StreamOptions};

pub struct AnthropicMessages;

impl Protocol for AnthropicMessages {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(decoder::MessageDecoder::new(model, context, options))
    }
}
