//! One request to a model, from the call to the last event.

use super::cancel::CancelToken;
use super::context::Context;
use super::event::{AssistantEvent, Fold, StreamError};
use super::message::AssistantMessage;
use super::model::{Model, ThinkingLevel};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// What one request may ask for beyond the conversation.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The resolved key; never printed.
    pub api_key: Option<Secret>,
    /// Added to the protocol's own headers; `None` takes one away.
    pub headers: Vec<(String, Option<String>)>,
    /// Settings of the credential, before the process environment.
    pub env: Vec<(String, String)>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Clamped to the model by the caller.
    pub thinking: ThinkingLevel,
    /// Tokens for a level, where the provider takes a budget.
    pub thinking_budgets: Vec<(ThinkingLevel, u64)>,
    pub cache: CacheRetention,
    /// Lets a provider route requests of one conversation to the same cache.
    pub session_id: Option<String>,
    /// Merged into the body as it is, for servers on the OpenAI protocols.
    pub sampling_params: Map<String, Value>,
    pub tool_choice: Option<ToolChoice>,
    pub clocks: Clocks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheRetention {
    None,
    #[default]
    Short,
    Long,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    Required,
}

/// How long a server may say nothing. Comments and pings say nothing. `None` waits for ever.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Until the first event.
    pub first: Option<Duration>,
    /// Between two events.
    pub idle: Option<Duration>,
}

impl Default for Clocks {
    fn default() -> Self {
        let limit = Some(Duration::from_secs(300));
        Self {
            first: limit,
            idle: limit,
        }
    }
}

/// A key or token. Its value is in no output: `Debug` shows dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("•••")
    }
}

/// A running request.
pub struct StreamHandle {
    fold: Fold,
    error: Option<StreamError>,
}

/// Starts a request on a thread of its own. Never fails: what goes wrong is the last event.
pub fn stream(
    model: &Arc<Model>,
    context: Context,
    options: StreamOptions,
    cancel: &CancelToken,
) -> StreamHandle {
    let _ = (model, context, options, cancel);
    todo!("owned by the wire work")
}

impl StreamHandle {
    /// The next event; `None` after the last. Returns at once with the terminal event when the token is
    /// cancelled, whatever the provider thread is waiting for.
    pub fn next_event(&mut self) -> Option<AssistantEvent> {
        None
    }

    /// The answer so far; complete after the terminal event.
    pub fn partial(&self) -> &AssistantMessage {
        self.fold.message()
    }

    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// The whole answer, and why it failed if it did. Drains what is left.
    pub fn finish(self) -> (AssistantMessage, Option<StreamError>) {
        (self.fold.into_message(), self.error)
    }
}
impl StreamHandle {
    /// A request that failed before it could be sent: its only event is the error.
    pub fn failed(model: &Model, error: StreamError) -> Self {
        let _ = (model, error);
        todo!()
    }
}
