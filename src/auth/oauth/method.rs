//! A row of the sign-in table, and how its flows are run.

use super::browser::Browser;
use super::client::Client;
use super::device::{self, Device};
use super::entry::{Entry, cancelled};
use super::flow::{Flow, no_such_way};
use super::interaction::Interaction;
use super::token::Token;
use super::wire::{Setting, Wire};
use crate::base::cancel::CancelToken;
use crate::llm::event::{ErrorKind, StreamError};
use std::time::{Duration, Instant};

/// Time limit of all requests of a renewal together.
const RENEWAL_LIMIT: Duration = Duration::from_secs(15);

/// How to sign in to a provider.
pub struct Method {
    pub(super) provider: &'static str,
    /// The account or subscription, as shown to the user.
    pub label: &'static str,
    /// Question shown if there are several ways.
    pub(super) question: &'static str,
    pub(super) ways: &'static [Way],
    pub(super) renewal: Renewal,
    pub(super) base_url: fn(&Entry) -> Option<String>,
    /// True if the token is sent as `Authorization: Bearer` with every protocol.
    pub bearer: bool,
    /// True if the sign-in requires the UUID of this installation.
    pub needs_device: bool,
    /// Advice after a refusal by the provider.
    pub otherwise: &'static str,
}

/// A way to sign in, and the id by which the user chooses it.
pub(super) struct Way {
    pub(super) id: &'static str,
    pub(super) flow: Engine,
}

/// The flow of a [`Way`].
pub(super) enum Engine {
    Browser(&'static Client, Browser),
    Device(&'static Client, Device),
    /// A flow that only one provider has.
    Own(fn(&Flow<'_>) -> Result<Token, StreamError>),
}

/// How a token is renewed.
pub(super) enum Renewal {
    Client(&'static Client),
    Own(fn(&Wire<'_>, &Entry) -> Result<Token, StreamError>),
}

impl Method {
    /// Signs in, and returns the entry for auth.json.
    pub(crate) fn login(
        &self,
        setting: &Setting<'_>,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<Entry, StreamError> {
        let flow = Flow { wire: Wire::new(setting, cancel, None), interaction };
        let result = self.sign_in(&flow);
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let token = result.map_err(|error| self.explained(error))?;
        Ok(token.into_entry())
    }

    fn sign_in(&self, flow: &Flow<'_>) -> Result<Token, StreamError> {
        let labels = self.ways.iter().map(|way| match way.flow {
            Engine::Browser(..) => (way.id, "In a browser on this machine"),
            Engine::Device(..) | Engine::Own(_) => (way.id, "With a code, in a browser anywhere"),
        });
        let chosen = match self.ways {
            [only] => only.id,
            _ => flow.choose(self.question, &labels.collect::<Vec<_>>())?,
        };
        let way = self.ways.iter().find(|way| way.id == chosen).ok_or_else(no_such_way)?;
        match &way.flow {
            Engine::Browser(client, browser) => browser.sign_in(flow, client),
            Engine::Device(client, device) => device::sign_in(flow, client, device),
            Engine::Own(login) => login(flow),
        }
    }

    /// Requests a new token, and writes it to `entry`.
    pub(crate) fn renew(
        &self,
        setting: &Setting<'_>,
        entry: &mut Entry,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let until = Instant::now() + RENEWAL_LIMIT;
        let wire = Wire::new(setting, cancel, Some(until));
        let token = match &self.renewal {
            Renewal::Client(client) => client.renew(&wire, entry),
            Renewal::Own(renew) => renew(&wire, entry),
        };
        let token = token.map_err(|error| self.explained(error))?;
        token.write_to(entry);
        Ok(())
    }

    /// Base URL in the sign-in's `entry`; `None` if the model's base URL is used.
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

pub(super) const fn no_base_url(_: &Entry) -> Option<String> {
    None
}
