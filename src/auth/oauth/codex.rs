//! OpenAI Codex (ChatGPT Plus and Pro): a device flow of OpenAI's own, and the account id in its tokens.

use super::client::Grant;
use super::device::{self, Pace, Poll};
use super::entry::failed;
use super::flow::Flow;
use super::interaction::Event;
use super::table::CODEX;
use super::token::Token;
use super::wire::Answer;
use crate::base::json::{self, json};
use crate::llm::event::StreamError;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

pub(super) const HOST: &str = "https://auth.openai.com";

const DEVICE_CODE: &str = "https://auth.openai.com/api/accounts/deviceauth/usercode";
const DEVICE_TOKEN: &str = "https://auth.openai.com/api/accounts/deviceauth/token";
const DEVICE_PAGE: &str = "https://auth.openai.com/codex/device";
const DEVICE_REDIRECT: &str = "https://auth.openai.com/deviceauth/callback";
const DEVICE_SECONDS: u64 = 15 * 60;

/// The claim of an access token that holds the account id.
const CLAIM: &str = "https://api.openai.com/auth";

pub(super) fn with_code(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let what = "OpenAI Codex device code";
    let wire = &flow.wire;
    let answer = wire.post_json(DEVICE_CODE, &json!({"client_id": CODEX.id})).send()?;
    if answer.status == 404 {
        return Err(failed(format!("{what}: this way is not open; sign in with the browser")));
    }
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (id, user_code) = (field("device_auth_id")?, field("user_code")?);
    // The interval is a number in a string.
    let interval = answer.text("interval").and_then(|text| text.trim().parse().ok());
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: DEVICE_PAGE.to_owned(),
        expires_in_seconds: DEVICE_SECONDS,
    });
    let pace = Pace {
        interval_seconds: interval.or(answer.positive("interval")),
        expires_in_seconds: device::LIFETIME_SECONDS,
        wait_first: false,
    };
    let body = json!({"device_auth_id": id, "user_code": user_code});
    let (code, verifier) = device::poll(wire, &pace, || {
        let what = "OpenAI Codex device token";
        let answer = wire.post_json(DEVICE_TOKEN, &body).send()?;
        if answer.is_ok() {
            let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
            let (code, verifier) = (field("authorization_code")?, field("code_verifier")?);
            return Ok(Poll::Done((code.to_owned(), verifier.to_owned())));
        }
        match (answer.status, answer.error()) {
            (403 | 404, _) | (_, Some("deviceauth_authorization_pending")) => Ok(Poll::Pending),
            _ => device::read_error(&answer, what),
        }
    })?;
    let grant = Grant { code: &code, verifier: &verifier, redirect_uri: DEVICE_REDIRECT, state: None };
    CODEX.exchange(wire, &grant)
}

/// Adds the account id in the access token.
pub(super) fn with_account(_: &Answer, mut token: Token) -> Result<Token, StreamError> {
    let account = account_id(&token.access);
    let account = account.ok_or_else(|| failed("OpenAI's token does not name an account"))?;
    token.extra.push(("accountId", account.into()));
    Ok(token)
}

/// The account id in a JSON web token. The signature is not checked: only the server can do that.
fn account_id(access: &str) -> Option<String> {
    let mut parts = access.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let payload = GeneralPurpose::new(&URL_SAFE, config).decode(payload).ok()?;
    let claims: Value = json::parse(&payload).ok()?;
    let id = claims.get(CLAIM)?.get("chatgpt_account_id")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE as ENGINE;

    #[test]
    fn the_account_is_read_from_the_token() {
        let token = |payload: &str| format!("h.{}.s", ENGINE.encode(payload));
        let whole = token(r#"{"https://api.openai.com/auth":{"chatgpt_account_id":"acct-ü?>"}}"#);
        let rows = [
            (whole.clone(), Some("acct-ü?>")),
            (whole.replace('=', ""), Some("acct-ü?>")),
            (token("{}"), None),
            (token(r#"{"https://api.openai.com/auth":{"chatgpt_account_id":""}}"#), None),
            (token("garbage"), None),
            ("h.%%%.s".into(), None),
            ("no-token".into(), None),
            (String::new(), None),
        ];
        for (token, expected) in rows {
            assert_eq!(account_id(&token).as_deref(), expected, "{token}");
        }
    }
}
