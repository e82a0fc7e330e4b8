//! Anthropic: Claude Pro and Max, through the browser.

use super::browser::{self, Return};
use super::form;
use super::pkce::Pkce;
use super::token::{Lifetime, Token};
use super::wire::Wire;
use crate::auth::oauth::method::{Entry, Flow, Method, no_base_url, refresh_token};
use crate::llm::event::StreamError;
use serde_json::json;

pub(super) const METHOD: Method = Method {
    provider: "anthropic",
    label: "Claude Pro or Max",
    login,
    renew,
    base_url: no_base_url,
    bearer: false,
    otherwise: "An API key works too: set ANTHROPIC_API_KEY, or pi auth login anthropic --stdin",
};

const CLIENT_ID: &str = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
const AUTHORIZE: &str = "https://claude.ai/oauth/authorize";
const TOKEN: &str = "https://platform.claude.com/v1/oauth/token";
const SCOPE: &str = "org:create_api_key user:profile user:inference user:sessions:claude_code \
                     user:mcp_servers user:file_upload";
const LIFETIME: Lifetime = Lifetime { margin_seconds: 300, default_seconds: None };

fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let pkce = Pkce::new()?;
    // This provider's tokens are asked for with the state too, and it is the verifier.
    let state = &pkce.verifier;
    let back = Return {
        port: 53692,
        host: "localhost",
        path: "/callback".into(),
        state: Some(state.clone()),
        name: "Anthropic",
    };
    let found = browser::code(flow, back, |redirect_uri| {
        let query = form::encode(&[
            ("code", "true"),
            ("client_id", CLIENT_ID),
            ("response_type", "code"),
            ("redirect_uri", redirect_uri),
            ("scope", SCOPE),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
            ("state", state),
        ]);
        format!("{AUTHORIZE}?{query}")
    })?;
    flow.progress("Asking Anthropic for the token...");
    let body = json!({
        "grant_type": "authorization_code",
        "client_id": CLIENT_ID,
        "code": found.code,
        "state": state,
        "redirect_uri": found.redirect_uri,
        "code_verifier": pkce.verifier,
    });
    let answer = flow.wire.post_json(TOKEN, &body).send()?;
    Token::read(&answer, "Anthropic token exchange", None, LIFETIME)
}

fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let refresh = refresh_token(entry)?;
    let body = json!({
        "grant_type": "refresh_token",
        "client_id": CLIENT_ID,
        "refresh_token": refresh,
    });
    let answer = wire.post_json(TOKEN, &body).send()?;
    Token::read(&answer, "Anthropic token refresh", Some(refresh), LIFETIME)
}
