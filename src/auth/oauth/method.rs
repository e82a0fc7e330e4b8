//! What a sign-in is: a row of the table, and what its flows work with.

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

/// For all requests of a renewal together.
const RENEWAL_LIMIT: Duration = Duration::from_secs(15);

/// How to sign in to a provider.
pub struct Method {
    pub(super) provider: &'static str,
    /// What the user signs in with.
    pub label: &'static str,
    /// Asked where there is more than one way.
    pub(super) question: &'static str,
    pub(super) ways: &'static [Way],
    pub(super) renewal: Renewal,
    pub(super) base_url: fn(&Entry) -> Option<String>,
    /// The token travels as `Authorization: Bearer`, whatever the protocol does with a key.
    pub bearer: bool,
    /// The provider asks for the id of this installation.
    pub needs_device: bool,
    /// What to do where the provider refuses.
    pub otherwise: &'static str,
}

/// A way to sign in, with the id by which it is chosen.
pub(super) struct Way {
    pub(super) id: &'static str,
    pub(super) flow: Engine,
}

/// What a way is done with.
pub(super) enum Engine {
    Browser(&'static Client, Browser),
    Device(&'static Client, Device),
    /// What only this provider does.
    Own(fn(&Flow<'_>) -> Result<Token, StreamError>),
}

/// How a new token is had.
pub(super) enum Renewal {
    Client(&'static Client),
    Own(fn(&Wire<'_>, &Entry) -> Result<Token, StreamError>),
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

    /// Asks for a new token, and puts it into the entry in the place of the old one.
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

    /// Base URL that the sign-in's `entry` names; `None` if the model's own is used.
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
