//! A llama.cpp server: its address, and a key if it wants one.
//!
//! The entry is that of a key, as the reference writes it: `{"type": "api_key", "key", "env": {"LLAMA_BASE_URL"}}`.

use super::entry::failed;
use super::flow::Flow;
use super::token::Token;
use crate::base::json::json;
use crate::llm::event::StreamError;
use crate::llm::secret::Secret;
use crate::models::local;
use crate::models::local::router::Router;
use serde_json::Value;

pub(super) fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let known = flow.wire.env.get(local::LLAMA_URL).unwrap_or_else(|| local::LLAMA_DEFAULT.to_owned());
    let url = flow.line("Address of the llama.cpp server", &known)?;
    let key = flow.secret("API key (Enter: none)")?;
    let router = Router::new(
        if url.is_empty() { &known } else { &url },
        Some(&key).filter(|key| !key.is_empty()).map(Secret::new),
    );
    flow.progress("Asking the server...");
    router.check(flow.wire.cancel).map_err(failed)?;
    let key = if key.is_empty() { Value::Null } else { key.into() };
    let entry = [
        ("type", "api_key".into()),
        ("access", Value::Null),
        ("refresh", Value::Null),
        ("expires", Value::Null),
        ("key", key),
        ("env", json!({(local::LLAMA_URL): router.root()})),
    ];
    Ok(Token { access: String::new(), refresh: String::new(), expires: 0, extra: entry.into() })
}
