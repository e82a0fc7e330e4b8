//! Meta, with a code. The token of the sign-in only says who the user is; it is exchanged for a key that
//! lives for a day, again and again until the sign-in itself has ended.

use super::device::{self, Pace, Poll};
use super::token::{Token, expiry, whole};
use super::wire::{Wire, web_address};
use crate::auth::oauth::interaction::Event;
use crate::auth::oauth::method::{Entry, Flow, Method, failed, no_base_url, refresh_token};
use crate::llm::event::StreamError;
use serde_json::json;

pub(super) const METHOD: Method = Method {
    provider: "meta",
    label: "a Meta subscription",
    login,
    renew,
    base_url: no_base_url,
    bearer: false,
    otherwise: "An API key works too: set META_API_KEY",
};

const CLIENT_ID: &str = "1031625952748946";
const DEVICE_CODE: &str = "https://auth.meta.com/oidc/device/authorization/";
const DEVICE_TOKEN: &str = "https://auth.meta.com/oidc/device/token/";
const KEY: &str = "https://api.meta.ai/muse-code/key";
const KEY_SECONDS: u64 = 24 * 60 * 60;

fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "Meta device authorization";
    let wire = &flow.wire;
    let answer = wire.post_form(DEVICE_CODE, &[("client_id", CLIENT_ID)]).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (device_code, user_code) = (field("device_code")?, field("user_code")?);
    let pages = ["verification_uri_complete", "verification_uri"];
    let page = pages.iter().find_map(|name| web_address(answer.text(name)?));
    let expires = answer.positive("expires_in").unwrap_or(device::LIFETIME_SECONDS);
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: page.ok_or_else(|| answer.lacks(what, "verification_uri"))?,
        expires_in_seconds: whole(expires),
    });
    let pace =
        Pace { interval_seconds: answer.positive("interval"), expires_in_seconds: expires, wait_first: true };
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", device_code),
        ("client_id", CLIENT_ID),
    ];
    let identity = device::poll(wire, &pace, || {
        let answer = wire.post_form(DEVICE_TOKEN, &form).send()?;
        match answer.text("access_token").filter(|_| answer.is_ok()) {
            Some(token) => Ok(Poll::Done(token.to_owned())),
            None => device::read_error(&answer, "Meta device token"),
        }
    })?;
    flow.progress("Asking Meta for a key...");
    key(wire, &identity)
}

fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
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
