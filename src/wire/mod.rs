//! The wire protocols, in a table by api name.
//!
//! A protocol has two parts without I/O: a function that builds a request from model, context and options,
//! and a decoder that turns frames into events. Threads, sockets, clocks and aborts are in `llm::stream`.

pub mod answer;
pub mod anthropic_messages;
pub mod ask;
mod azure;
pub mod balance;
#[cfg(feature = "clouds")]
pub mod bedrock_converse_stream;
pub mod billed;
pub mod endpoint;
pub mod faux;
pub mod google;
pub mod grammar;
pub mod hash;
pub mod ids;
#[cfg(test)]
mod matrix;
pub mod openai_completions;
pub mod openai_responses;
mod outside;
pub mod parse;
pub mod pi_messages;
pub mod schema;
#[cfg(feature = "clouds")]
pub mod sigv4;
#[cfg(test)]
pub mod testing;
pub mod transcript;
pub mod transform;

use crate::base::cancel::CancelToken;
use crate::base::feature::absent;
use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::Api;
use crate::llm::stream::{self, StreamHandle};
use openai_responses::{OpenAiResponses, Variant};
use std::sync::Arc;

/// Starts a request to a model on a new thread. An error is the last event of the stream.
pub fn stream(
    model: &Arc<Model>,
    context: Context,
    options: StreamOptions,
    cancel: &CancelToken,
) -> StreamHandle {
    let outside = options.outside.clone();
    let outside = outside.map(|outside| Api::Source(Arc::new(outside::ByOutside(outside))));
    match outside.or_else(|| find(&model.api)) {
        Some(api) => stream::start(api, model, context, options, cancel),
        None => StreamHandle::failed(model, unknown(model)),
    }
}

fn unknown(model: &Model) -> StreamError {
    if let Some(text) = left_out(model) {
        return StreamError::new(ErrorKind::Request, text);
    }
    let (id, api, known) = (&model.id, &model.api, names().collect::<Vec<_>>().join(", "));
    let text = format!("the model {id} speaks {api:?}, which is not known here; known: {known}");
    StreamError::new(ErrorKind::Request, text)
}

/// The protocols, sorted by name.
const BUILTIN: &[(&str, Maker)] = &[
    ("anthropic-messages", || Api::Wire(Arc::new(anthropic_messages::AnthropicMessages))),
    ("azure-openai-responses", || responses(Variant::Azure)),
    #[cfg(feature = "clouds")]
    ("bedrock-converse-stream", || Api::Wire(Arc::new(bedrock_converse_stream::BedrockConverseStream))),
    ("faux", faux::api),
    ("google-generative-ai", || Api::Wire(Arc::new(google::Google::GenerativeAi))),
    #[cfg(feature = "clouds")]
    ("google-vertex", || Api::Wire(Arc::new(google::Google::Vertex))),
    ("mistral-conversations", || completions(&openai_completions::MISTRAL)),
    ("openai-codex-responses", || responses(Variant::Codex)),
    ("openai-completions", || completions(&openai_completions::OPENAI)),
    ("openai-responses", || responses(Variant::OpenAi)),
    ("pi-messages", || Api::Wire(Arc::new(pi_messages::PiMessages))),
];

fn completions(profile: &'static openai_completions::Profile) -> Api {
    Api::Wire(Arc::new(openai_completions::ChatCompletions(profile)))
}

fn responses(variant: Variant) -> Api {
    Api::Wire(Arc::new(OpenAiResponses(variant)))
}

type Maker = fn() -> Api;

/// Protocols that need a feature of the build, and the feature.
const OPTIONAL: &[(&str, &str)] = &[("bedrock-converse-stream", "clouds"), ("google-vertex", "clouds")];

/// An error message if this build lacks the protocol of `model`.
pub fn left_out(model: &Model) -> Option<String> {
    let (name, feature) = OPTIONAL.iter().find(|(name, _)| *name == model.api)?;
    let is_there = names().any(|known| known == *name);
    (!is_there).then(|| format!("{} of {} cannot be asked: {}", model.id, model.provider, absent(feature)))
}

pub fn find(name: &str) -> Option<Api> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}

/// The names of all protocols, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_api_is_an_error_that_names_the_known_ones() {
        let model = Arc::new(Model { id: "toy-1".into(), api: "toy".into(), ..Model::default() });
        let stream = stream(&model, Context::default(), StreamOptions::default(), &CancelToken::new());
        let error = stream.finish().1.unwrap();
        assert_eq!(error.kind, ErrorKind::Request);
        for part in ["toy-1", "\"toy\"", "known: "].into_iter().chain(names()) {
            assert!(error.message.contains(part), "{part}");
        }
    }
}
