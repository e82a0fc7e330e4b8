//! Signing in with a subscription instead of a key, and renewing what a sign-in gave.
//!
//! Two ways: the browser comes back to a server of ours on this machine with a code (PKCE, and the
//! address it was sent to can be pasted where the browser is elsewhere), or the user types a code that
//! we show into a page of the provider while we ask whether it is done. What a sign-in gives is the
//! provider's entry in auth.json, field for field as the reference writes it.
//!
//! Requests go out under our own name: no header claims to be another program. A provider may refuse
//! that; the error then says what else works.
//!
//! Whoever asks the user implements [`Interaction`]; nothing here sees a terminal. Not here: where the
//! entry is stored and who renews it when (`llm::credential`).

mod anthropic;
mod browser;
mod callback;
mod codex;
mod copilot;
mod device;
mod form;
mod interaction;
mod kimi;
mod meta;
mod method;
mod openrouter;
mod pkce;
mod radius;
mod token;
mod wire;
mod xai;

pub use interaction::{Answer, Choice, Event, Interaction, Prompt};
pub(crate) use method::Setting;
pub use method::{Entry, Method};
pub(crate) use wire::{Clock, Hosts, RealClock};

const METHODS: &[Method] = &[
    anthropic::METHOD,
    codex::METHOD,
    copilot::METHOD,
    kimi::METHOD,
    meta::METHOD,
    openrouter::METHOD,
    radius::METHOD,
    xai::METHOD,
];

/// The sign-in of a provider. `gateway`: models.json makes it a Radius gateway at this address.
pub fn method(provider: &str, gateway: Option<&str>) -> Option<&'static Method> {
    let provider = match gateway {
        Some(_) => radius::METHOD.provider,
        None => provider,
    };
    METHODS.iter().find(|method| method.provider == provider)
}

#[cfg(test)]
mod tests;
