//! Signs in with a subscription instead of a key, and renews tokens.
//!
//! Each provider is a row of a table (`table.rs`) with the data for one or both of two flows. In the browser
//! flow (PKCE) the provider redirects the browser to a local server; if the browser runs elsewhere, the user
//! pastes the redirect address. In the device flow the user enters a code on a page of the provider while the
//! program polls. The result is the provider's entry in auth.json, field for field as in the reference.
//!
//! Requests carry this program's own name; no header claims to be another program. A provider may refuse such
//! requests; the error then names alternatives.
//!
//! Another program, such as an extension, may lend a sign-in for a provider (`lent`).
//!
//! A server that nobody knows before, such as an MCP server over HTTP, is signed in to by `resource`.
//!
//! The user is asked through [`Interaction`], so this module needs no terminal. Not here: storing entries and
//! deciding when to renew (`auth::credential`).

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
mod lent;
mod llama;
mod meta;
mod method;
mod openrouter;
mod pkce;
pub mod resource;
mod table;
mod token;
mod wire;

pub use entry::Entry;
pub use interaction::{Answer, Choice, Event, Interaction, Prompt};
pub use lent::{LentSignIn, SignIn};
pub use method::Method;
pub(crate) use wire::{Clock, Hosts, RealClock, Setting};

/// Id of the provider whose row serves all Radius gateways.
const RADIUS: &str = "radius";

/// The sign-in of a provider; `None` if it has none. `gateway`: the address if models.json declares the
/// provider as a Radius gateway.
pub fn method(provider: &str, gateway: Option<&str>) -> Option<&'static Method> {
    let provider = match gateway {
        Some(_) => RADIUS,
        None => provider,
    };
    table::METHODS.iter().find(|method| method.provider == provider)
}

#[cfg(test)]
mod tests;
