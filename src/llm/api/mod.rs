//! The wire protocols: a table from api name to protocol.
//!
//! A protocol is two pure things: a request made from model, context and options, and a decoder that is
//! fed frames and yields events. Threads, sockets, clocks and aborts are in `llm::stream`, once.

pub mod anthropic_messages;
pub mod balance;
pub mod bedrock_converse_stream;
pub mod body;
pub mod endpoint;
pub mod fault;
pub mod google;
pub mod grammar;
pub mod hash;
pub mod ids;
pub mod lax;
pub mod limits;
#[cfg(test)]
mod matrix;
pub mod mistral_conversations;
pub mod openai_completions;
pub mod openai_responses;
pub mod pi_messages;
pub mod schema;
pub mod size;
#[cfg(test)]
pub mod testing;
pub mod transcript;
pub mod transform;

use super::context::Context;
use super::event::{AssistantEvent, StreamError};
use super::model::Model;
use super::stream::StreamOptions;
use openai_responses::{OpenAiResponses, Variant};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

/// An HTTP request to a provider; always a POST with a JSON body.
#[derive(Clone, Debug, Default)]
pub struct HttpRequest {
    pub url: String,
    /// Names in lower case. Values that are secrets are marked by name in `llm::http`.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One unit of a streamed answer.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A server-sent event, or a message of an AWS event stream.
    Sse { event: &'a str, data: &'a str },
    /// A whole JSON body, from a server that does not stream.
    Body(&'a str),
}

/// A protocol that goes over HTTP.
pub trait Protocol: Send + Sync {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError>;
    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder>;

    /// Signs the request in its final form, with the caller's headers in it, where a key in a header is
    /// not enough.
    fn sign(
        &self,
        _url: &str,
        _headers: &mut Vec<(String, String)>,
        _body: &[u8],
        _options: &StreamOptions,
        _now_ms: u64,
    ) -> Result<(), StreamError> {
        Ok(())
    }

    /// Adds to an error what this protocol's users should know; `body` is the beginning of what the server
    /// said with its error status.
    fn explain(&self, _error: &mut StreamError, _headers: &[(String, String)], _body: &str) {}

    /// What the message keeps of a failure besides its text. `answered`: the status said that all was well.
    fn diagnose(&self, _error: &mut StreamError, _answered: bool) {}

    /// Whether an abort first ends the blocks that are open.
    fn closes_when_aborted(&self) -> bool {
        false
    }
}

/// Turns frames into events. Pure: no clock, no socket.
pub trait Decoder: Send {
    /// Takes one frame. An `Err` ends the stream with that error; events already in `out` are kept.
    /// A frame that carries nothing (a ping) leaves `out` as it is.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// The server has said all it will say: emits what is left and `Done`, or says what is missing.
    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// The protocol's terminal marker was seen: what follows on the wire is not waited for.
    fn is_done(&self) -> bool;
}

/// A source of events that is not behind HTTP: the faux provider, later an extension's.
/// Runs on the stream's thread; `emit` blocks when the reader is slow and fails when it has gone.
pub trait Source: Send + Sync {
    fn run(&self, call: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>);
}

/// What a source is asked.
pub struct Call<'a> {
    pub model: &'a Model,
    pub context: &'a Context,
    pub options: &'a StreamOptions,
    pub cancel: &'a super::cancel::CancelToken,
}

/// The reader has gone away.
#[derive(Debug)]
pub struct Gone;

#[derive(Clone)]
pub enum Api {
    Wire(Arc<dyn Protocol>),
    Source(Arc<dyn Source>),
}

/// The protocols that are always there, by name.
const BUILTIN: &[(&str, Maker)] = &[
    ("anthropic-messages", || Api::Wire(Arc::new(anthropic_messages::AnthropicMessages))),
    ("azure-openai-responses", || responses(Variant::Azure)),
    ("bedrock-converse-stream", || Api::Wire(Arc::new(bedrock_converse_stream::BedrockConverseStream))),
    ("faux", super::faux::api),
    ("google-generative-ai", || Api::Wire(Arc::new(google::Google::GenerativeAi))),
    ("google-vertex", || Api::Wire(Arc::new(google::Google::Vertex))),
    ("mistral-conversations", || Api::Wire(Arc::new(mistral_conversations::MistralConversations))),
    ("openai-codex-responses", || responses(Variant::Codex)),
    ("openai-completions", || Api::Wire(Arc::new(openai_completions::OpenAiCompletions))),
    ("openai-responses", || responses(Variant::OpenAi)),
    ("pi-messages", || Api::Wire(Arc::new(pi_messages::PiMessages))),
];

fn responses(variant: Variant) -> Api {
    Api::Wire(Arc::new(OpenAiResponses(variant)))
}

type Maker = fn() -> Api;

/// Entries added at run time, oldest first.
static ADDED: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

struct Entry {
    owner: String,
    name: String,
    api: Api,
}

/// The protocol of that name: the one registered last, else the builtin one.
pub fn find(name: &str) -> Option<Api> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let last = added.iter().rev().find(|entry| entry.name == name);
    last.map(|entry| entry.api.clone()).or_else(|| {
        let builtin = BUILTIN.iter().find(|(known, _)| *known == name)?;
        Some(builtin.1())
    })
}

/// Every name that [`find`] knows, sorted.
pub fn names() -> Vec<String> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let builtin = BUILTIN.iter().map(|(name, _)| (*name).to_owned());
    let mut names: Vec<String> = added.iter().map(|entry| entry.name.clone()).collect();
    names.extend(builtin);
    names.sort();
    names.dedup();
    names
}

/// Puts a protocol before all others of that name, until its owner leaves.
pub fn register(owner: &str, name: &str, api: Api) {
    added_mut().push(Entry { owner: owner.to_owned(), name: name.to_owned(), api });
}

/// Takes away all that `owner` registered; what it covered shows again.
pub fn unregister(owner: &str) {
    added_mut().retain(|entry| entry.owner != owner);
}

fn added_mut() -> RwLockWriteGuard<'static, Vec<Entry>> {
    ADDED.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Source for Silent {
        fn run(&self, _: &Call<'_>, _: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>) {}
    }

    fn found(name: &str) -> Option<*const ()> {
        match find(name)? {
            Api::Source(source) => Some(Arc::as_ptr(&source).cast()),
            Api::Wire(protocol) => Some(Arc::as_ptr(&protocol).cast()),
        }
    }

    #[test]
    fn the_last_registration_wins_and_an_owner_leaves_with_all_its_entries() {
        // Zero-sized values may share an address: the two sources must differ.
        struct Other(#[allow(dead_code)] u8);
        impl Source for Other {
            fn run(&self, _: &Call<'_>, _: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>) {}
        }
        let (first, second): (Arc<dyn Source>, Arc<dyn Source>) = (Arc::new(Silent), Arc::new(Other(1)));
        let address = |source: &Arc<dyn Source>| Some(Arc::as_ptr(source).cast::<()>());

        register("table test a", "table-test-x", Api::Source(first.clone()));
        register("table test b", "table-test-x", Api::Source(second.clone()));
        register("table test b", "table-test-y", Api::Source(second.clone()));
        assert_eq!(found("table-test-x"), address(&second));
        let mine = |names: Vec<String>| -> Vec<String> {
            let mine = names.into_iter().filter(|n| n.starts_with("table-test-"));
            mine.collect()
        };
        assert_eq!(mine(names()), ["table-test-x", "table-test-y"]);

        unregister("table test b");
        assert_eq!(found("table-test-x"), address(&first));
        assert_eq!(found("table-test-y"), None);

        unregister("table test a");
        assert_eq!(found("table-test-x"), None);
        assert!(mine(names()).is_empty());
    }
}
