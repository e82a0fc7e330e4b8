//! Requests to a provider's token endpoint: exchanges a code for a token, and renews a token.

use super::entry::{Entry, cancelled, refresh_token};
use super::token::{Lifetime, Token};
use super::wire::{Answer, Wire};
use crate::llm::event::{ErrorKind, StreamError};
use serde_json::{Map, Value};
use std::time::Duration;

/// An OAuth client, as registered with a provider.
pub(super) struct Client {
    pub id: &'static str,
    /// Empty if the provider expects no scope.
    pub scope: &'static str,
    /// Scheme and host of the provider's sign-in server.
    pub host: fn(&Wire<'_>) -> Result<String, StreamError>,
    /// Path of the token endpoint.
    pub path: &'static str,
    pub encoding: Encoding,
    /// Names of the two requests in error messages.
    pub exchange: &'static str,
    pub refresh: &'static str,
    pub lifetime: Lifetime,
    /// Adds provider-specific fields to a token.
    pub complete: fn(&Answer, Token) -> Result<Token, StreamError>,
    /// Maximum number of retries of a renewal after a server or connection error.
    pub retries: u32,
}

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Form,
    Json,
}

/// An authorization code, and the parameters of its request.
pub(super) struct Grant<'a> {
    pub code: &'a str,
    pub verifier: &'a str,
    pub redirect_uri: &'a str,
    /// Set if the provider expects the state at the token endpoint.
    pub state: Option<&'a str>,
}

impl Client {
    /// Sends a request to the token endpoint.
    pub fn ask(&self, wire: &Wire<'_>, fields: &[(&str, &str)]) -> Result<Answer, StreamError> {
        let url = format!("{}{}", (self.host)(wire)?, self.path);
        match self.encoding {
            Encoding::Form => wire.post_form(&url, fields).send(),
            Encoding::Json => {
                let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
                wire.post_json(&url, &fields.collect::<Map<_, _>>().into()).send()
            }
        }
    }

    /// Reads a token from the answer of the token endpoint. `what` names the request in errors.
    pub fn read(&self, answer: &Answer, what: &str, old_refresh: Option<&str>) -> Result<Token, StreamError> {
        let token = Token::read(answer, what, old_refresh, self.lifetime)?;
        (self.complete)(answer, token)
    }

    /// Exchanges a code for a token.
    pub fn exchange(&self, wire: &Wire<'_>, grant: &Grant<'_>) -> Result<Token, StreamError> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", self.id),
            ("code", grant.code),
            ("code_verifier", grant.verifier),
            ("redirect_uri", grant.redirect_uri),
        ];
        fields.extend(grant.state.map(|state| ("state", state)));
        self.read(&self.ask(wire, &fields)?, self.exchange, None)
    }

    /// Requests a new token with the refresh token of `entry`.
    pub fn renew(&self, wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
        let refresh = refresh_token(entry)?;
        let fields = [("grant_type", "refresh_token"), ("client_id", self.id), ("refresh_token", refresh)];
        let ask = || self.read(&self.ask(wire, &fields)?, self.refresh, Some(refresh));
        for retry in 0..self.retries {
            match ask() {
                Err(error) if matches!(error.kind, ErrorKind::Provider | ErrorKind::Transport) => {}
                result => return result,
            }
            if wire.clock.wait(Duration::from_secs(1 << retry), wire.cancel) {
                return Err(cancelled());
            }
        }
        ask()
    }
}

/// The `complete` of a provider without additional fields.
pub(super) fn as_it_is(_: &Answer, token: Token) -> Result<Token, StreamError> {
    Ok(token)
}
