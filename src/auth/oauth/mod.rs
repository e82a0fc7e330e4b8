//! Signing in with a subscription instead of a key, and renewing what a sign-in gave.
//!
//! A sign-in is a row of the table (`table.rs`) with data for two flows: the browser comes back to a server of ours on this machine with a code (PKCE, and the
//! address it was sent to can be pasted where the browser is elsewhere), or the user types a code that
//! we show into a page of the provider while we ask whether it is done. What a sign-in gives is the
//! provider's entry in auth.json, field for field as the reference writes it.
//!
//! Requests go out under our own name: no header claims to be another program. A provider may refuse
//! that; the error then says what else works.
//!
//! Whoever asks the user implements [`Interaction`]; nothing here sees a terminal. Not here: where the
//! entry is stored and who renews it when (`auth::credential`).

mod anthropic;
mod browser;
mod callback;
mod chatgpt;
mod client;
mod codex;
mod copilot;
mod device;
mod entry;
mod flow;
mod form;
mod interaction;
mod meta;
mod method;
mod openrouter;
mod pkce;
mod table;
mod token;
mod wire;

pub use entry::Entry;
pub use interaction::{Answer, Choice, Event, Interaction, Prompt};
pub use method::Method;
pub(crate) use wire::{Clock, Hosts, RealClock, Setting};

/// The provider whose sign-in serves every gateway of its kind.
const RADIUS: &str = "radius";

/// The sign-in of a provider. `gateway`: models.json makes it a Radius gateway at this address.
pub fn method(provider: &str, gateway: Option<&str>) -> Option<&'static Method> {
    let provider = match gateway {
        Some(_) => RADIUS,
        None => provider,
    };
    table::METHODS.iter().find(|method| method.provider == provider)
}

#[cfg(test)]
mod tests;
