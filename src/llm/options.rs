//! Options of a request: key, limits, thinking, time limits.

use super::model::ThinkingLevel;
use super::secret::{Secret, Vault};
use crate::base::cancel::CancelToken;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Options of a request.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The resolved key, which is never printed.
    pub api_key: Option<Secret>,
    /// Added to the protocol's headers; `None` removes a header.
    pub headers: Vec<Header>,
    /// Variables of the credential, which override the process environment.
    pub env: Vec<(String, String)>,
    /// Credentials and endpoint of a request to AWS.
    pub aws: Option<Arc<Access>>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Must be a level that the model supports.
    pub thinking: ThinkingLevel,
    /// Token budgets by level, for providers that accept a budget.
    pub thinking_budgets: Vec<(ThinkingLevel, u64)>,
    pub cache: CacheRetention,
    /// Lets a provider route the requests of a conversation to one cache.
    pub session_id: Option<String>,
    /// Merged into the body unchanged, for servers with OpenAI protocols.
    pub sampling_params: Map<String, Value>,
    pub tool_choice: Option<ToolChoice>,
    pub clocks: Clocks,
    pub resend: Resend,
    /// Secrets to hide in the request and its answer.
    pub vault: Vault,
    /// True for a repetition of the last request that keeps the prompt cache warm: the conversation that the server
    /// has stored stays as it is.
    pub is_repetition: bool,
    pub tap: Option<Arc<dyn Tap>>,
    /// Answers in place of a server.
    pub outside: Option<Arc<dyn Outside>>,
}

/// Name and value of a header; `None` removes the header.
pub type Header = (String, Option<String>);

/// Sees what goes to a server and what comes back. Called on the thread of the request.
pub trait Tap: Debug + Send + Sync {
    /// The headers to send in place of the configured ones; `None` to send those. `None` as a value removes a
    /// header. Called once for a request and its retries.
    fn headers(&self, configured: &[Header]) -> Option<Vec<Header>>;

    /// True if bodies are to be passed to [`Self::body`].
    fn wants_body(&self) -> bool;

    /// The fields to send in place of the JSON body `body`; `None` to send it as it is.
    fn body(&self, body: &[u8]) -> Option<Map<String, Value>>;

    /// The head of an answer, successful or not.
    fn answered(&self, status: u16, headers: &[(String, String)]);

    /// The data of one event of the answer, before it is decoded.
    fn event(&self, data: &str);
}

/// A program that answers requests in place of a server.
pub trait Outside: Debug + Send + Sync {
    /// Answers a request: an object with `model`, `messages`, `thinkingLevel`, `maxTokens`, `sessionId` and
    /// `apiKey`. Calls `event` with each event of the answer, as in the protocol `pi-messages`, until that is false.
    /// Returns the last event, or why there is no answer.
    fn answer(
        &self,
        request: Value,
        cancel: &CancelToken,
        event: &mut dyn FnMut(&Value) -> bool,
    ) -> Result<Value, String>;
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

impl ToolChoice {
    /// The name that most protocols use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
        }
    }
}

/// Time limits without an event from the server; comments and pings do not count as events. `None` waits for
/// ever.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Until the first event.
    pub first: Option<Duration>,
    /// Between two events.
    pub idle: Option<Duration>,
    /// True if the user set `first`, which then also applies to a server on this machine.
    pub is_chosen: bool,
}

impl Default for Clocks {
    fn default() -> Self {
        let limit = Some(Duration::from_secs(300));
        Self { first: limit, idle: limit, is_chosen: false }
    }
}

/// Retries of a failed request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resend {
    pub count: u64,
    /// The longest wait that a server may request, in milliseconds; 0 for any.
    pub delay_ms_max: u64,
}

/// The credentials, region and endpoint of a request to AWS.
#[derive(Clone, Debug)]
pub struct Access {
    /// `None` if an API key is sent instead of a signature.
    pub keys: Option<Keys>,
    pub region: String,
    /// Replaces the model's base URL.
    pub endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Not a secret: every signature contains it.
    pub id: String,
    pub secret: Secret,
    pub session_token: Option<Secret>,
    /// Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl Keys {
    pub fn new(id: &str, secret: &str, session_token: Option<&str>) -> Self {
        Self {
            id: id.trim().to_owned(),
            secret: Secret::new(secret.trim()),
            session_token: session_token.map(|token| Secret::new(token.trim())),
            expires_ms: None,
        }
    }

    pub fn until(mut self, expires_ms: Option<u64>) -> Self {
        self.expires_ms = expires_ms;
        self
    }
}
