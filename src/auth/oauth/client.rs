//! The token endpoint of a provider: a code for a token, and a new token for an old one.

use super::entry::{Entry, cancelled, refresh_token};
use super::token::{Lifetime, Token};
use super::wire::{Answer, Wire};
use crate::llm::event::{ErrorKind, StreamError};
use serde_json::{Map, Value};
use std::time::Duration;

/// What a program is to a provider that gives tokens.
pub(super) struct Client {
    pub id: &'static str,
    /// Empty where none is asked for.
    pub scope: &'static str,
    /// Scheme and host of the provider's sign-in server.
    pub host: fn(&Wire<'_>) -> Result<String, StreamError>,
    /// Path of the token endpoint.
    pub path: &'static str,
    pub encoding: Encoding,
    /// What a request is called in errors.
    pub exchange: &'static str,
    pub refresh: &'static str,
    pub lifetime: Lifetime,
    /// Adds to a token what the provider's entry has besides.
    pub complete: fn(&Answer, Token) -> Result<Token, StreamError>,
    /// How often a renewal is asked again of a server that stumbles.
    pub retries: u32,
}

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Form,
    Json,
}

/// What came back from the browser, and what it was asked for with.
pub(super) struct Grant<'a> {
    pub code: &'a str,
    pub verifier: &'a str,
    pub redirect_uri: &'a str,
    /// Sent where the provider asks for it.
    pub state: Option<&'a str>,
}

impl Client {
    /// Asks the token endpoint.
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

    /// Reads the answer of the token endpoint.
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

    /// Asks for a new token with the refresh token of `entry`.
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

/// For providers whose entry has no more than the token.
pub(super) fn as_it_is(_: &Answer, token: Token) -> Result<Token, StreamError> {
    Ok(token)
}
