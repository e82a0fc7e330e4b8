//! Kimi For Coding, with a code.

use super::device::{self, Pace, Poll};
use super::token::{Lifetime, Token, whole};
use super::wire::{Wire, web_address};
use crate::auth::oauth::interaction::Event;
use crate::auth::oauth::method::{Entry, Flow, Method, failed, no_base_url, refresh_token};
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::is_loopback;
use std::time::Duration;

pub(super) const METHOD: Method = Method {
    provider: "kimi-coding",
    label: "a Kimi Code subscription",
    login,
    renew,
    base_url: no_base_url,
    bearer: true,
    otherwise: "An API key works too: set KIMI_API_KEY",
};

const CLIENT_ID: &str = "17e5f671-d194-4dfb-9706-5516cb48c098";
const HOST: &str = "https://auth.kimi.com";
const RETRIES: u32 = 3;

/// The sign-in server. It can be another one, as in the reference, but never one without TLS on another
/// machine.
fn host(env: &Env) -> Result<String, StreamError> {
    let name = ["KIMI_CODE_OAUTH_HOST", "KIMI_OAUTH_HOST"].into_iter().find(|name| env.has(name));
    let Some((name, host)) = name.and_then(|name| Some((name, env.get(name)?))) else {
        return Ok(HOST.to_owned());
    };
    let uri: Option<ureq::http::Uri> = web_address(&host).and_then(|host| host.parse().ok());
    let is_safe =
        uri.is_some_and(|uri| uri.scheme_str() == Some("https") || uri.host().is_some_and(is_loopback));
    match is_safe {
        true => Ok(host.trim_end_matches('/').to_owned()),
        false => Err(failed(format!("{name} is no https address"))),
    }
}

fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "Kimi Code device authorization";
    let wire = &flow.wire;
    let host = host(wire.env)?;
    let url = format!("{host}/api/oauth/device_authorization");
    let answer = wire.post_form(&url, &[("client_id", CLIENT_ID)]).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (device_code, user_code) = (field("device_code")?, field("user_code")?);
    let page = web_address(field("verification_uri_complete")?);
    let expires = answer.positive("expires_in").unwrap_or(device::LIFETIME_SECONDS);
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: page.ok_or_else(|| answer.lacks(what, "verification_uri_complete"))?,
        expires_in_seconds: whole(expires),
    });
    let pace =
        Pace { interval_seconds: answer.positive("interval"), expires_in_seconds: expires, wait_first: true };
    let url = format!("{host}/api/oauth/token");
    let form = [
        ("client_id", CLIENT_ID),
        ("device_code", device_code),
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
    ];
    device::poll(wire, &pace, || {
        let what = "Kimi Code device token";
        let answer = wire.post_form(&url, &form).send()?;
        match answer.is_ok() && answer.error().is_none() {
            true => Token::read(&answer, what, None, Lifetime::default()).map(Poll::Done),
            false => device::read_error(&answer, what),
        }
    })
}

fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let refresh = refresh_token(entry)?;
    let url = format!("{}/api/oauth/token", host(wire.env)?);
    let form = [("client_id", CLIENT_ID), ("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let ask = || {
        let answer = wire.post_form(&url, &form).send()?;
        Token::read(&answer, "Kimi Code token refresh", Some(refresh), Lifetime::default())
    };
    for retry in 0..RETRIES {
        match ask() {
            // The server is known to stumble.
            Err(error) if matches!(error.kind, ErrorKind::Provider | ErrorKind::Transport) => {}
            result => return result,
        }
        if wire.clock.wait(Duration::from_secs(1 << retry), wire.cancel) {
            return Err(crate::auth::oauth::method::cancelled());
        }
    }
    ask()
}
