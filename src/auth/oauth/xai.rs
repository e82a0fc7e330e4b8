//! xAI: SuperGrok and X Premium, with a code.

use super::device::{self, Pace, Poll};
use super::token::{Lifetime, Token, whole};
use super::wire::{Wire, web_address};
use crate::auth::oauth::interaction::Event;
use crate::auth::oauth::method::{Entry, Flow, Method, no_base_url, refresh_token};
use crate::llm::event::StreamError;

pub(super) const METHOD: Method = Method {
    provider: "xai",
    label: "SuperGrok or X Premium",
    login,
    renew,
    base_url: no_base_url,
    bearer: false,
    otherwise: "An API key works too: set XAI_API_KEY",
};

const CLIENT_ID: &str = "b1a00492-073a-47ea-816f-4c329264a828";
const SCOPE: &str = "openid profile email offline_access grok-cli:access api:access";
const DEVICE_CODE: &str = "https://auth.x.ai/oauth2/device/code";
const TOKEN: &str = "https://auth.x.ai/oauth2/token";
const LIFETIME: Lifetime = Lifetime { margin_seconds: 300, default_seconds: Some(3600) };

fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "xAI device authorization";
    let wire = &flow.wire;
    let form = [("client_id", CLIENT_ID), ("scope", SCOPE), ("referrer", "pi")];
    let answer = wire.post_form(DEVICE_CODE, &form).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (device_code, user_code) = (field("device_code")?, field("user_code")?);
    let page = match answer.text("verification_uri_complete") {
        Some(page) => page,
        None => field("verification_uri")?,
    };
    let page = web_address(page).filter(|page| page.starts_with("https://"));
    let expires = answer.positive("expires_in").ok_or_else(|| answer.lacks(what, "expires_in"))?;
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: page.ok_or_else(|| answer.lacks(what, "verification_uri"))?,
        expires_in_seconds: whole(expires),
    });
    let pace =
        Pace { interval_seconds: answer.positive("interval"), expires_in_seconds: expires, wait_first: true };
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("client_id", CLIENT_ID),
        ("device_code", device_code),
    ];
    device::poll(wire, &pace, || {
        let what = "xAI device token";
        let answer = wire.post_form(TOKEN, &form).send()?;
        match answer.is_ok() {
            true => Token::read(&answer, what, None, LIFETIME).map(Poll::Done),
            false => device::read_error(&answer, what),
        }
    })
}

fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let refresh = refresh_token(entry)?;
    let form = [("grant_type", "refresh_token"), ("client_id", CLIENT_ID), ("refresh_token", refresh)];
    let answer = wire.post_form(TOKEN, &form).send()?;
    Token::read(&answer, "xAI token refresh", Some(refresh), LIFETIME)
}
