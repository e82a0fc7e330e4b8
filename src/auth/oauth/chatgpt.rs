//! Sign in with ChatGPT, for requests to OpenAI's API.
//!
//! Each sign-in registers a client, whose id is returned with the code and used in all token requests. The
//! installation identifies itself by the UUID in the setting `deviceId`.

use super::browser::{self, Return};
use super::client::Client;
use super::entry::{Entry, failed, refresh_token, text};
use super::flow::Flow;
use super::form;
use super::pkce::{self, Pkce};
use super::table::CHATGPT;
use super::token::Token;
use super::wire::{Answer, Wire};
use crate::llm::event::StreamError;
use serde_json::Value;

const AUTHORIZE: &str = "https://auth.openai.com/api/accounts/authorize";
const RESOURCE: &str = "https://api.openai.com/v1";

/// Scope without which the API rejects the token.
const DIRECT: &str = "chatgpt.tokens.use.direct";

const CLIENT_ID: &str = "clientId";

pub(super) fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let client: &Client = &CHATGPT;
    let device = flow.wire.device.ok_or_else(|| failed("this installation has no id (\"deviceId\")"))?;
    let host_id = format!("urn:uuid:{}", device.to_ascii_lowercase());
    let (pkce, state, nonce) = (Pkce::new()?, pkce::random()?, pkce::random()?);
    let back = Return {
        port: 1455,
        any_port: false,
        host: "127.0.0.1",
        path: "/auth/callback".to_owned(),
        state: Some(state.clone()),
        name: "OpenAI",
    };
    let found = browser::code(flow, back, |redirect_uri| {
        let query = form::encode(&[
            ("client_id", client.id),
            ("agent_name_hint", "Pi"),
            ("ext_agent_host_id", &host_id),
            ("response_type", "code"),
            ("redirect_uri", redirect_uri),
            ("resource", RESOURCE),
            ("scope", client.scope),
            ("state", &state),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
            ("nonce", &nonce),
        ]);
        Ok(format!("{AUTHORIZE}?{query}"))
    })?;
    let issued = found.client_id.ok_or_else(|| {
        failed(
            "OpenAI's answer names no client (client_id): paste the whole address that the browser ends at",
        )
    })?;
    flow.progress("Asking OpenAI for the token...");
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", &issued),
        ("code", &found.code),
        ("code_verifier", &pkce.verifier),
        ("redirect_uri", &found.redirect_uri),
        ("resource", RESOURCE),
    ];
    let answer = client.ask(&flow.wire, &fields)?;
    let token = client.read(&answer, client.exchange, None)?;
    match answer.text("id_token") {
        Some(_) => Ok(of_client(token, &issued)),
        None => Err(answer.lacks(client.exchange, "id_token")),
    }
}

pub(super) fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let refresh = refresh_token(entry)?;
    let issued = text(entry, CLIENT_ID).ok_or_else(|| failed("there is no \"clientId\"; sign in again"))?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", issued),
        ("refresh_token", refresh),
        ("resource", RESOURCE),
    ];
    let token = CHATGPT.read(&CHATGPT.ask(wire, &fields)?, CHATGPT.refresh, Some(refresh))?;
    Ok(of_client(token, issued))
}

fn of_client(mut token: Token, id: &str) -> Token {
    token.extra.insert(0, (CLIENT_ID, id.into()));
    token
}

/// Adds the granted scopes to the token. Fails if the API scope is missing.
pub(super) fn with_scopes(answer: &Answer, mut token: Token) -> Result<Token, StreamError> {
    let scopes: Vec<&str> = answer.text("scope").unwrap_or_default().split_whitespace().collect();
    if !scopes.contains(&DIRECT) {
        return Err(failed(format!("OpenAI's token may not be used for the API (no scope {DIRECT})")));
    }
    token.extra.push(("scopes", Value::from(scopes)));
    Ok(token)
}
