//! What one request asks for beyond the conversation: key, limits, thinking, clocks.

use super::model::ThinkingLevel;
use super::secret::{Secret, Vault};
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
    /// What requests to AWS are signed with.
    pub aws: Option<Arc<Access>>,
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
    pub resend: Resend,
    /// What is hidden in the request and in its answer.
    pub vault: Vault,
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
    /// The word that most protocols have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
        }
    }
}

/// How long a server may say nothing. Comments and pings say nothing. `None` waits for ever.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Until the first event.
    pub first: Option<Duration>,
    /// Between two events.
    pub idle: Option<Duration>,
    /// The user has chosen `first`: it counts for a server on this machine too.
    pub is_chosen: bool,
}

impl Default for Clocks {
    fn default() -> Self {
        let limit = Some(Duration::from_secs(300));
        Self { first: limit, idle: limit, is_chosen: false }
    }
}

/// How often a request is sent again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resend {
    pub count: u64,
    /// The longest wait that a server may ask for, in milliseconds; 0 for any.
    pub delay_ms_max: u64,
}

/// Where a request goes, and what it is signed with.
#[derive(Clone, Debug)]
pub struct Access {
    /// `None` where a key goes in their place.
    pub keys: Option<Keys>,
    pub region: String,
    /// The address in place of the model's.
    pub endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// No secret: it is in every signature.
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
