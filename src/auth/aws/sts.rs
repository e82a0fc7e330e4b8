//! Requests the keys of a role from AWS's Security Token Service.

use super::region;
use crate::auth::aws::env::refused;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::time;
use crate::llm::body::Payload;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Request, Secrets};
use crate::llm::message::now_ms;
use crate::llm::options::Keys;
use crate::wire::sigv4;
use crate::wire::sigv4::{Scope, percent};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);
const VERSION: &str = "2011-06-15";

pub struct Role<'a> {
    pub arn: &'a str,
    pub session: Option<&'a str>,
    pub external_id: Option<&'a str>,
    pub seconds: Option<&'a str>,
}

/// Assumes a role with `keys`, and returns the keys of the role.
pub fn assume(
    role: &Role<'_>,
    keys: &Keys,
    region: &str,
    env: &Env,
    cancel: &CancelToken,
) -> Result<Keys, StreamError> {
    let body = form(
        role,
        "AssumeRole",
        &[("DurationSeconds", role.seconds.or(Some("3600"))), ("ExternalId", role.external_id)],
    );
    ask(role, &body, Some(keys), &[], region, env, cancel)
}

/// Assumes a role with a web identity token, and returns the keys of the role.
pub fn assume_with_token(
    role: &Role<'_>,
    token: &str,
    region: &str,
    env: &Env,
    cancel: &CancelToken,
) -> Result<Keys, StreamError> {
    let body = form(
        role,
        "AssumeRoleWithWebIdentity",
        &[("DurationSeconds", role.seconds), ("WebIdentityToken", Some(token))],
    );
    ask(role, &body, None, &[token], region, env, cancel)
}

fn form(role: &Role<'_>, action: &str, more: &[(&str, Option<&str>)]) -> String {
    let session = role.session.map_or_else(|| format!("pi-{}", now_ms()), str::to_owned);
    let fields = [
        ("Action", Some(action)),
        ("Version", Some(VERSION)),
        ("RoleArn", Some(role.arn)),
        ("RoleSessionName", Some(&*session)),
    ];
    let fields = fields.iter().chain(more);
    let fields = fields.filter_map(|(name, value)| Some(format!("{name}={}", percent((*value)?, ""))));
    fields.collect::<Vec<_>>().join("&")
}

fn ask(
    role: &Role<'_>,
    body: &str,
    keys: Option<&Keys>,
    secrets: &[&str],
    region: &str,
    env: &Env,
    cancel: &CancelToken,
) -> Result<Keys, StreamError> {
    let url = format!("{}/", region::service(env, "STS", "sts", region));
    let mut hidden = Secrets::default();
    secrets.iter().for_each(|secret| hidden.add(secret));
    let kind = "application/x-www-form-urlencoded; charset=utf-8";
    let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
    if let Some(keys) = keys {
        let scope = Scope { region, service: "sts", now_ms: now_ms() };
        let signed = sigv4::sign(keys, &scope, &url, &headers, &Payload::Whole(body.as_bytes().to_vec()));
        headers.extend(signed.ok_or_else(|| refused(format!("{url} is not the URL of a service")))?);
    }
    let request = Request {
        headers,
        body: body.as_bytes(),
        timeout: Some(LIMIT),
        secrets: hidden,
        private: true,
        ..Request::new(&url)
    };
    let reply = http::ask(&request, cancel)?;
    let text = reply.text();
    let arn = role.arn;
    if !reply.is_ok() {
        let said = match (element(&text, "Code"), element(&text, "Message")) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            _ => format!("status {}", reply.status),
        };
        let kind = match reply.status {
            429 | 500.. => ErrorKind::Provider,
            _ => ErrorKind::Auth,
        };
        return Err(StreamError {
            status: Some(reply.status),
            ..StreamError::new(kind, format!("AWS did not give the role {arn}: {said}"))
        });
    }
    let keys = || {
        let id = element(&text, "AccessKeyId")?;
        let secret = element(&text, "SecretAccessKey")?;
        let token = element(&text, "SessionToken")?;
        let expires = time::parse_iso(&element(&text, "Expiration")?)?;
        Some(Keys::new(&id, &secret, Some(&token)).until(Some(expires)))
    };
    keys().ok_or_else(|| {
        let message = format!("AWS gave no credentials for the role {arn}");
        StreamError::new(ErrorKind::Protocol, message)
    })
}

/// The text of the first element called `name`; `None` if it is missing or empty. An element must not contain
/// one of its own name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text = text.trim().to_owned();
    let text = entities.iter().fold(text, |text, (entity, c)| text.replace(entity, c));
    (!text.is_empty()).then_some(text)
}
