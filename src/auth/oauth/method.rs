//! What a sign-in is: a row with its two functions, and what these work with.

use super::interaction::{Answer, Choice, Event, Interaction, Prompt};
use super::token::Token;
use super::wire::{Clock, Hosts, Wire};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// An entry of auth.json.
pub type Entry = Map<String, Value>;

/// For all requests of a renewal together.
const RENEWAL_LIMIT: Duration = Duration::from_secs(15);

/// How to sign in to a provider.
pub struct Method {
    pub(super) provider: &'static str,
    /// What the user signs in with.
    pub label: &'static str,
    pub(super) login: fn(&Flow<'_>) -> Result<Token, StreamError>,
    pub(super) renew: fn(&Wire<'_>, &Entry) -> Result<Token, StreamError>,
    pub(super) base_url: fn(&Entry) -> Option<String>,
    /// The token travels as `Authorization: Bearer`, whatever the protocol does with a key.
    pub bearer: bool,
    /// What to do where the provider refuses.
    pub otherwise: &'static str,
}

/// What a sign-in is done in.
pub(crate) struct Setting<'a> {
    pub hosts: &'a Hosts,
    pub clock: &'a dyn Clock,
    pub env: &'a Env,
    pub gateway: Option<&'a str>,
    /// For requests, where the environment names no proxy.
    pub http_proxy: Option<&'a str>,
}

/// A sign-in under way.
pub(super) struct Flow<'a> {
    pub(super) wire: Wire<'a>,
    pub(super) interaction: &'a dyn Interaction,
}

impl Method {
    /// Signs in, and gives the entry for auth.json.
    pub(crate) fn login(
        &self,
        setting: &Setting<'_>,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<Entry, StreamError> {
        let flow = Flow { wire: Wire::new(setting, cancel, None), interaction };
        let result = (self.login)(&flow);
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let token = result.map_err(|error| self.explained(error))?;
        Ok(token.into_entry())
    }

    /// Asks for a new token, and puts it into the entry in the place of the old one.
    pub(crate) fn renew(
        &self,
        setting: &Setting<'_>,
        entry: &mut Entry,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let until = Instant::now() + RENEWAL_LIMIT;
        let wire = Wire::new(setting, cancel, Some(until));
        let token = (self.renew)(&wire, entry).map_err(|error| self.explained(error))?;
        token.write_to(entry);
        Ok(())
    }

    /// The server that this sign-in is for, where that is not the model's.
    pub fn base_url(&self, entry: &Entry) -> Option<String> {
        (self.base_url)(entry)
    }

    fn explained(&self, mut error: StreamError) -> StreamError {
        if error.kind == ErrorKind::Auth && !self.otherwise.is_empty() {
            error.message = format!("{}. {}", error.message.trim_end_matches('.'), self.otherwise);
        }
        error
    }
}

impl Flow<'_> {
    pub(super) fn tell(&self, event: Event) {
        self.interaction.tell(&event);
    }

    pub(super) fn progress(&self, text: impl Into<String>) {
        self.tell(Event::Progress(text.into()));
    }

    /// The chosen way; the first where nobody can be asked.
    pub(super) fn choose(
        &self,
        message: &str,
        options: &[(&'static str, &str)],
    ) -> Result<&'static str, StreamError> {
        let choices =
            options.iter().map(|(id, label)| Choice { id: (*id).to_owned(), label: (*label).to_owned() });
        let prompt = Prompt::Select { message: message.to_owned(), options: choices.collect() };
        let ids = || options.iter().map(|(id, _)| *id);
        let chosen = match self.interaction.ask(&prompt, self.wire.cancel) {
            Answer::Text(id) => ids().find(|known| *known == id.trim()),
            Answer::Nobody => ids().next(),
            Answer::Cancelled => return Err(cancelled()),
        };
        chosen.ok_or_else(|| failed("there is no such way to sign in"))
    }

    /// A line of text; nothing where nobody can be asked.
    pub(super) fn line(&self, message: &str, placeholder: &str) -> Result<String, StreamError> {
        let prompt = Prompt::Text { message: message.to_owned(), placeholder: placeholder.to_owned() };
        match self.interaction.ask(&prompt, self.wire.cancel) {
            Answer::Text(line) => Ok(line.trim().to_owned()),
            Answer::Nobody => Ok(String::new()),
            Answer::Cancelled => Err(cancelled()),
        }
    }
}

pub(super) fn cancelled() -> StreamError {
    StreamError::new(ErrorKind::Aborted, "Login cancelled")
}

pub(super) fn failed(text: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Auth, text)
}

pub(super) fn text<'e>(entry: &'e Entry, name: &str) -> Option<&'e str> {
    let text = entry.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// The token that a renewal is asked with.
pub(super) fn refresh_token(entry: &Entry) -> Result<&str, StreamError> {
    text(entry, "refresh").ok_or_else(|| failed("there is no \"refresh\" token"))
}

pub(super) const fn no_base_url(_: &Entry) -> Option<String> {
    None
}
