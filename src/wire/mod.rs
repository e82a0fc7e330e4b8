//! The wire protocols: a table from api name to protocol.
//!
//! A protocol is two pure things: a request made from model, context and options, and a decoder that is
//! fed frames and yields events. Threads, sockets, clocks and aborts are in `llm::stream`, once.

pub mod anthropic_messages;
pub mod balance;
pub mod bedrock_converse_stream;
pub mod endpoint;
pub mod faux;
pub mod google;
pub mod grammar;
pub mod hash;
pub mod ids;
#[cfg(test)]
mod matrix;
pub mod mistral_conversations;
pub mod openai_completions;
pub mod openai_responses;
pub mod pi_messages;
pub mod schema;
pub mod sigv4;
#[cfg(test)]
pub mod testing;
pub mod transcript;
pub mod transform;

use crate::base::cancel::CancelToken;
use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::Api;
use crate::llm::stream::{self, StreamHandle};
use openai_responses::{OpenAiResponses, Variant};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

/// Starts a request to a model, on a thread of its own. Never fails: what goes wrong is the last event.
pub fn stream(
    model: &Arc<Model>,
    context: Context,
    options: StreamOptions,
    cancel: &CancelToken,
) -> StreamHandle {
    match find(&model.api) {
        Some(api) => stream::start(api, model, context, options, cancel),
        None => StreamHandle::failed(model, unknown(model)),
    }
}

fn unknown(model: &Model) -> StreamError {
    let (id, api, known) = (&model.id, &model.api, names().join(", "));
    let text = format!("the model {id} speaks {api:?}, which is not known here; known: {known}");
    StreamError::new(ErrorKind::Request, text)
}

/// The protocols that are always there, by name.
const BUILTIN: &[(&str, Maker)] = &[
    ("anthropic-messages", || Api::Wire(Arc::new(anthropic_messages::AnthropicMessages))),
    ("azure-openai-responses", || responses(Variant::Azure)),
    ("bedrock-converse-stream", || Api::Wire(Arc::new(bedrock_converse_stream::BedrockConverseStream))),
    ("faux", crate::wire::faux::api),
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
    use crate::llm::event::AssistantEvent;
    use crate::llm::protocol::{Call, Gone, Source};

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

    #[test]
    fn an_unknown_api_is_an_error_that_names_the_known_ones() {
        let model = Arc::new(Model { id: "toy-1".into(), api: "toy".into(), ..Model::default() });
        let stream = stream(&model, Context::default(), StreamOptions::default(), &CancelToken::new());
        let error = stream.finish().1.unwrap();
        assert_eq!(error.kind, ErrorKind::Request);
        for part in ["toy-1", "\"toy\"", "known: "].into_iter().chain(names().iter().map(String::as_str)) {
            assert!(error.message.contains(part), "{part}");
        }
    }
}
