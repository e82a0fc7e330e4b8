//! Radius, and gateways of its kind that models.json names with `"oauth": "radius"`: through the browser
//! or with a code.

use super::browser::{self, Return};
use super::device::{self, Pace, Poll};
use super::form;
use super::pkce::{self, Pkce};
use super::token::{Lifetime, Token, whole};
use super::wire::{Answer, Wire, web_address};
use crate::auth::oauth::interaction::Event;
use crate::auth::oauth::method::{Entry, Flow, Method, no_base_url, refresh_token};
use crate::llm::event::StreamError;
use serde_json::Value;

pub(super) const METHOD: Method = Method {
    provider: "radius",
    label: "a Radius gateway",
    login,
    renew,
    base_url: no_base_url,
    bearer: false,
    otherwise: "An API key works too: see pi docs providers",
};

const GATEWAY: &str = "https://radius.pi.dev";
const CLIENT_ID: &str = "pi-gateway";
const SCOPE: &str = "gateway offline_access";
const LIFETIME: Lifetime = Lifetime { margin_seconds: 60, default_seconds: None };

fn gateway<'a>(wire: &Wire<'a>) -> &'a str {
    wire.gateway.unwrap_or(GATEWAY)
}

fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let ways =
        [("browser", "In a browser on this machine"), ("device-code", "With a code, in a browser anywhere")];
    match flow.choose("Sign in to the gateway", &ways)? {
        "browser" => in_browser(flow),
        _ => with_code(flow),
    }
}

fn in_browser(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "Radius OAuth configuration";
    let wire = &flow.wire;
    let gateway = gateway(wire);
    let url = format!("{gateway}/v1/oauth");
    let answer = wire.get(&url).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let page = answer.text("authorizationEndpoint").and_then(web_address);
    let page = page.ok_or_else(|| answer.lacks(what, "authorizationEndpoint"))?;
    let page = page.split(['?', '#']).next().unwrap_or_default();
    let (pkce, state) = (Pkce::new()?, pkce::random()?);
    let back = Return {
        port: 1456,
        host: "127.0.0.1",
        path: "/oauth/callback".into(),
        state: Some(state.clone()),
        name: "The gateway",
    };
    let found = browser::code(flow, back, |redirect_uri| {
        let query = form::encode(&[
            ("response_type", "code"),
            ("client_id", CLIENT_ID),
            ("redirect_uri", redirect_uri),
            ("scope", SCOPE),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
            ("handoff", "url"),
            ("state", &state),
        ]);
        format!("{page}?{query}")
    })?;
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", &*found.redirect_uri),
        ("code", &*found.code),
        ("code_verifier", &*pkce.verifier),
    ];
    let answer = ask_token(wire, &form)?;
    read(&answer, None)
}

fn with_code(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "Radius device authorization";
    let wire = &flow.wire;
    let url = format!("{}/v1/oauth/device", gateway(wire));
    let answer = wire.post_form(&url, &[("client_id", CLIENT_ID), ("scope", SCOPE)]).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (device_code, user_code) = (field("device_code")?, field("user_code")?);
    let page = web_address(field("verification_uri")?);
    let expires = answer.positive("expires_in").ok_or_else(|| answer.lacks(what, "expires_in"))?;
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: page.ok_or_else(|| answer.lacks(what, "verification_uri"))?,
        expires_in_seconds: whole(expires),
    });
    let pace = Pace {
        interval_seconds: answer.positive("interval"),
        expires_in_seconds: expires,
        wait_first: false,
    };
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("client_id", CLIENT_ID),
        ("device_code", device_code),
    ];
    device::poll(wire, &pace, || {
        let answer = ask_token(wire, &form)?;
        match answer.is_ok() {
            true => read(&answer, None).map(Poll::Done),
            false => device::read_error(&answer, TOKEN),
        }
    })
}

const TOKEN: &str = "Radius token request";

fn ask_token(wire: &Wire<'_>, form: &[(&str, &str)]) -> Result<Answer, StreamError> {
    let url = format!("{}/v1/oauth/token", gateway(wire));
    wire.post_form(&url, form).send()
}

fn read(answer: &Answer, old_refresh: Option<&str>) -> Result<Token, StreamError> {
    let mut token = Token::read(answer, TOKEN, old_refresh, LIFETIME)?;
    if let Some(scope) = answer.text("scope") {
        token.extra.push(("scope", Value::from(scope)));
    }
    Ok(token)
}

fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let refresh = refresh_token(entry)?;
    let form = [("grant_type", "refresh_token"), ("client_id", CLIENT_ID), ("refresh_token", refresh)];
    let answer = ask_token(wire, &form)?;
    read(&answer, Some(refresh))
}
