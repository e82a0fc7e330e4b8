//! OpenRouter, with a browser flow that yields an API key that never expires.

use super::browser::{self, Return};
use super::entry::{Entry, text};
use super::flow::Flow;
use super::form;
use super::pkce::{self, Pkce};
use super::token::{NEVER, Token};
use super::wire::Wire;
use crate::base::json::json;
use crate::llm::event::StreamError;

const AUTHORIZE: &str = "https://openrouter.ai/auth";
const KEY: &str = "https://openrouter.ai/api/v1/auth/keys";

pub(super) fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let pkce = Pkce::new()?;
    let back = Return {
        port: 0,
        any_port: false,
        host: "127.0.0.1",
        path: format!("/oauth/callback/{}", pkce::random()?),
        // The provider returns no state; the random path replaces it.
        state: None,
        name: "OpenRouter",
    };
    let found = browser::code(flow, back, |redirect_uri| {
        let query = form::encode(&[
            ("callback_url", redirect_uri),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(format!("{AUTHORIZE}?{query}"))
    })?;
    flow.progress("Asking OpenRouter for a key...");
    let body = json!({
        "code": found.code,
        "code_verifier": pkce.verifier,
        "code_challenge_method": "S256",
    });
    let what = "OpenRouter key exchange";
    let answer = flow.wire.post_json(KEY, &body).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let key = answer.text("key").ok_or_else(|| answer.lacks(what, "key"))?;
    Ok(forever(key))
}

pub(super) fn renew(_: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    Ok(forever(text(entry, "access").unwrap_or_default()))
}

fn forever(key: &str) -> Token {
    Token { access: key.to_owned(), refresh: String::new(), expires: NEVER, extra: Vec::new() }
}
