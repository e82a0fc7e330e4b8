//! Amazon Bedrock's ConverseStream, one conversation format for the models of many vendors.
//!
//! A request goes to a path with the model's id, and is signed with AWS credentials or carries a Bedrock API
//! key. The answer is an AWS event stream (`llm::event_stream`). The model's [`family`] decides on
//! vendor-specific fields.
//!
//! Not here: credentials, region and endpoint (`auth::aws`).

mod decoder;
mod event;
mod family;
mod fault;
mod messages;
mod request;
#[cfg(test)]
mod tests;

use crate::llm::body::Payload;
use crate::llm::context::Context;
use crate::llm::event::ErrorKind;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, HttpRequest, Protocol};
use crate::wire::answer::{Answer, AnswerDecoder};
use crate::wire::sigv4;

pub struct BedrockConverseStream;

/// Name of the service in a signature.
const SERVICE: &str = "bedrock";

impl Protocol for BedrockConverseStream {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        request::request(model, context, options)
    }

    fn decoder(&self, model: &Model, context: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(AnswerDecoder::new(decoder::ConverseReader::default(), Answer::new(model, context)))
    }

    /// Sets all headers for authentication; those of the caller are removed.
    fn sign(
        &self,
        url: &str,
        headers: &mut Vec<(String, String)>,
        body: &Payload<'_>,
        options: &StreamOptions,
        now_ms: u64,
    ) -> Result<(), StreamError> {
        headers.retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            !(name.starts_with("x-amz-") || name == "authorization" || name == "host")
        });
        let access = options.aws.as_deref();
        if let Some((access, keys)) = access.and_then(|access| Some((access, access.keys.as_ref()?))) {
            let scope = sigv4::Scope { region: &access.region, service: SERVICE, now_ms };
            let signed = sigv4::sign(keys, &scope, url, headers, body);
            headers.extend(signed.ok_or_else(|| {
                let message = format!("cannot sign a request to {url}: it is not a URL");
                StreamError::new(ErrorKind::Request, message)
            })?);
        } else if let Some(token) = &options.api_key {
            let bearer = format!("Bearer {}", token.expose());
            headers.push(("authorization".to_owned(), bearer));
        } else {
            let message = "No AWS credentials for Amazon Bedrock";
            return Err(StreamError::new(ErrorKind::Auth, message));
        }
        Ok(())
    }

    fn explain(&self, error: &mut StreamError, headers: &[(String, String)], body: &str) {
        fault::explain(error, headers, body);
    }

    fn diagnose(&self, error: &mut StreamError, answered: bool) {
        fault::diagnose(error, answered);
    }
}
