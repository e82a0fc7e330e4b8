//! Meta, with a device flow. The token of the sign-in is exchanged for an API key that is valid for a day;
//! renewals exchange the token again.

use super::device::{self, Device};
use super::entry::{Entry, failed, refresh_token};
use super::flow::Flow;
use super::token::{Token, expiry};
use super::wire::{Wire, web_address};
use crate::base::json::json;
use crate::llm::event::StreamError;

const HOST: &str = "https://auth.meta.com";

const DEVICE: Device = Device {
    client_id: "1031625952748946",
    path: "/oidc/device/authorization/",
    token_path: "/oidc/device/token/",
    what: "Meta device authorization",
    token_what: "Meta device token",
    ..device::DEVICE
};

const KEY: &str = "https://api.meta.ai/muse-code/key";
const KEY_SECONDS: u64 = 24 * 60 * 60;

pub(super) fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let answer = device::authorize(flow, &DEVICE, HOST)?;
    let identity = answer.text("access_token");
    let identity = identity.ok_or_else(|| answer.lacks(DEVICE.token_what, "access_token"))?;
    flow.progress("Asking Meta for a key...");
    key(&flow.wire, identity)
}

pub(super) fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    key(wire, refresh_token(entry)?)
}

fn key(wire: &Wire<'_>, identity: &str) -> Result<Token, StreamError> {
    let what = "Meta key request";
    let ask = wire.post_json(KEY, &json!({})).bearer(identity);
    let answer = ask.header("x-api-version", "1.0.0").send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let Some(access) = answer.text("api_key") else {
        let page = answer.text("action_url").and_then(web_address);
        return Err(match page {
            Some(page) => failed(format!("Meta gave no key. Complete the setup at {page}")),
            None => answer.lacks(what, "api_key"),
        });
    };
    Ok(Token {
        access: access.to_owned(),
        refresh: identity.to_owned(),
        expires: expiry(KEY_SECONDS, 0),
        extra: Vec::new(),
    })
}
