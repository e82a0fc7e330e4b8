//! What is said when a request fails: what was being done, why it failed, and what to do about it.
//!
//! Texts of servers are cut to one line without control characters; credentials of URLs and their
//! queries are not shown.

use super::Request;
use super::header;
use super::proxy::is_loopback;
use super::tls::Trust;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::now_ms;
use rustls::{CertificateError, InvalidMessage};
use serde_json::Value;
use std::io;
use ureq::http::Uri;
use ureq::{Error, Timeout};

/// Characters of a server's text that are kept.
const TEXT_LIMIT: usize = 4000;

/// The server that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub host: String,
    pub port: u16,
    pub secure: bool,
    /// Without credentials and query.
    pub url: String,
    /// The proxy on the way, as host and port.
    pub proxy: Option<String>,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Connect,
    Answer,
    Body,
}

impl Target {
    pub(super) fn new(uri: &Uri) -> Option<Self> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?;
        Some(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            secure,
            url: shown(uri),
            proxy: None,
        })
    }

    pub(crate) fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The URL that a redirect leads to, if it may be followed.
    pub(super) fn redirect(
        &self,
        location: &str,
        status: u16,
        request: &Request<'_>,
    ) -> Result<String, StreamError> {
        let scheme = if self.secure { "https" } else { "http" };
        let first_part = location.split(['/', '?', '#']).next().unwrap_or_default();
        let url = if first_part.ends_with(':') {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else if location.starts_with('/') {
            format!("{scheme}://{}{location}", self.server())
        } else {
            let folder = self.url.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        let next = url.parse().ok().and_then(|uri| Self::new(&uri));
        let same_server = next.as_ref().is_some_and(|next| {
            next.host.eq_ignore_ascii_case(&self.host)
                && (next.port, next.secure) == (self.port, self.secure)
        });
        let repeats = request.body.is_empty() || matches!(status, 307 | 308);
        if same_server && repeats {
            return Ok(url);
        }
        let to = next.map_or_else(|| one_line(location, 200), |next| next.url);
        let text = format!(
            "{} redirects to {to}, which is not followed with a key: if that is right, make it the base URL",
            self.url
        );
        Err(StreamError {
            status: Some(status),
            ..StreamError::new(ErrorKind::Request, text)
        })
    }
}

/// A URL without credentials and query.
pub(super) fn shown(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16();
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    format!("{scheme}://{host}{port}{}", uri.path())
}

pub(super) fn bad_url(url: &str) -> StreamError {
    // Whatever it is, a password may stand before an @ and a key after a ?.
    let url = url.split('?').next().unwrap_or_default();
    let url = match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, Some((_, rest))) => rest.to_owned(),
        _ => url.to_owned(),
    };
    let text = format!(
        "not a URL: {:?}; a base URL looks like https://host/v1",
        one_line(&url, 200)
    );
    StreamError::new(ErrorKind::Request, text)
}

/// Says why no answer, or not all of one, came.
pub(super) fn transport(
    error: &Error,
    target: &Target,
    phase: Phase,
    trust: &Trust,
) -> StreamError {
    let server = target.server();
    let say = |kind: ErrorKind, text: String| StreamError::new(kind, text);
    match error {
        Error::Io(error) => {
            if let Some(error) = inner::<rustls::Error>(error) {
                return say(ErrorKind::Transport, tls(error, target, trust));
            }
            say(ErrorKind::Transport, io_text(error, target, phase))
        }
        Error::Rustls(error) => say(ErrorKind::Transport, tls(error, target, trust)),
        Error::HostNotFound => say(ErrorKind::Transport, no_host(target)),
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            say(ErrorKind::Timeout, no_connection(target, "timed out"))
        }
        Error::Timeout(_) => say(
            ErrorKind::Timeout,
            format!("the request to {server} timed out"),
        ),
        Error::ConnectProxyFailed(reason) => {
            let proxy = target.proxy.as_deref().unwrap_or("the proxy");
            let reason = one_line(reason, 200);
            let text = format!(
                "the proxy {proxy} gave no way to {server}: {reason}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
            );
            say(ErrorKind::Transport, text)
        }
        Error::Http(error) => say(
            ErrorKind::Request,
            format!(
                "the request to {server} cannot be made: {error}; check the key and the headers"
            ),
        ),
        Error::BadUri(problem) => say(ErrorKind::Request, format!("bad URL: {problem}")),
        Error::Protocol(problem) if phase == Phase::Body => say(
            ErrorKind::Transport,
            format!("the answer of {server} is broken: {problem}"),
        ),
        Error::Protocol(problem) => {
            let hint = match target.secure {
                true => "",
                false => "; if it wants TLS, the base URL must begin with https://",
            };
            say(
                ErrorKind::Transport,
                format!("{server} did not answer in HTTP: {problem}{hint}"),
            )
        }
        Error::Decompress(_, problem) => say(
            ErrorKind::Transport,
            format!("the compressed answer of {server} is broken: {problem}"),
        ),
        other => say(ErrorKind::Transport, format!("{server}: {other}")),
    }
}

fn inner<T: std::error::Error + 'static>(error: &io::Error) -> Option<&T> {
    error.get_ref()?.downcast_ref()
}

fn io_text(error: &io::Error, target: &Target, phase: Phase) -> String {
    use io::ErrorKind as Kind;
    let server = target.server();
    let why = match error.kind() {
        Kind::ConnectionRefused => "connection refused".to_owned(),
        Kind::ConnectionReset => "connection reset".to_owned(),
        Kind::ConnectionAborted => "connection aborted".to_owned(),
        Kind::BrokenPipe | Kind::UnexpectedEof => "connection closed".to_owned(),
        Kind::TimedOut | Kind::WouldBlock => "timed out".to_owned(),
        Kind::HostUnreachable => "host unreachable".to_owned(),
        Kind::NetworkUnreachable => "network unreachable".to_owned(),
        _ => error.to_string(),
    };
    match phase {
        Phase::Connect if is_lookup(error) => no_host(target),
        Phase::Connect => no_connection(target, &why),
        Phase::Answer => format!("connection lost: no answer came from {server} ({why})"),
        Phase::Body => {
            format!("connection lost: the answer of {server} was cut short ({why})")
        }
    }
}

/// Failed name lookups have no kind of their own.
fn is_lookup(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("lookup address")
}

fn no_host(target: &Target) -> String {
    let host = &target.host;
    match &target.proxy {
        Some(proxy) => format!(
            "network error: host not found: the proxy {proxy} or {host}; check HTTPS_PROXY, HTTP_PROXY and the base URL"
        ),
        None => format!(
            "network error: host {host} not found; check the base URL and the network connection"
        ),
    }
}

fn no_connection(target: &Target, why: &str) -> String {
    let server = target.server();
    if let Some(proxy) = &target.proxy {
        return format!(
            "connection error: cannot connect to {server} through the proxy {proxy}: {why}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
        );
    }
    let advice = match is_loopback(&target.host) {
        true => "is the server running there? Start it, or correct the base URL",
        false => "check the base URL and the network connection",
    };
    format!("connection error: cannot connect to {server}: {why}; {advice}")
}

fn tls(error: &rustls::Error, target: &Target, trust: &Trust) -> String {
    let server = target.server();
    let text = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => format!(
                "the certificate of {server} is from an issuer that is not trusted; if it is your own or your company's, set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS to a PEM file with its root certificate"
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                format!("the certificate of {server} has expired; check this machine's clock too")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the certificate of {server} is not valid yet; check this machine's clock")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the certificate of {server} is for another name; check the base URL")
            }
            other => format!("the certificate of {server} is not valid: {other}"),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => format!(
            "{server} does not speak TLS; if it is meant to be plain HTTP, the base URL must begin with http://"
        ),
        other => format!("TLS with {server} failed: {other}"),
    };
    match trust.problems() {
        [] => text,
        problems => format!("{text} ({})", problems.join("; ")),
    }
}

/// The error for an answer with an error status, from the beginning of its body.
pub(crate) fn status_error(
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    target: &Target,
) -> StreamError {
    let said = body_text(&String::from_utf8_lossy(body));
    let mut message = match said {
        Some(said) => format!("{status} {said}"),
        None => format!("{status} status code (no body)"),
    };
    match status {
        404 => message.push_str(&format!(
            " (asked: {}; check the base URL and the model's name)",
            target.url
        )),
        407 => message.push_str(" (from the proxy; check its user name and password)"),
        _ => {}
    }
    StreamError {
        kind: match status {
            401 | 403 => ErrorKind::Auth,
            _ => ErrorKind::Provider,
        },
        message,
        status: Some(status),
        retry_after_ms: retry_after_ms(headers, now_ms()),
        request_id: request_id(headers),
    }
}

/// The name that the server gave the request.
pub(crate) fn request_id(headers: &[(String, String)]) -> Option<String> {
    let names = [
        "request-id",
        "x-request-id",
        "x-amzn-requestid",
        "x-ms-request-id",
        "cf-ray",
    ];
    let id = names.iter().find_map(|name| header(headers, name))?;
    Some(one_line(id, 200))
}

/// The text inside the body of an error: JSON in one of the usual shapes, the title of an HTML page, or
/// plain text.
fn body_text(body: &str) -> Option<String> {
    let body = body.trim();
    if let Ok(json) = serde_json::from_str::<Value>(body)
        && let Some(text) = json_text(&json)
    {
        return Some(one_line(&text, TEXT_LIMIT));
    }
    if body.starts_with('<') {
        return Some(html_text(body));
    }
    let text = one_line(body, TEXT_LIMIT);
    (!text.is_empty()).then_some(text)
}

fn json_text(json: &Value) -> Option<String> {
    match json {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(json_text),
        Value::Object(members) => {
            let inside = [
                "error",
                "errors",
                "message",
                "detail",
                "msg",
                "error_description",
            ];
            let text = inside
                .iter()
                .find_map(|name| members.get(*name).and_then(json_text))?;
            // What programs go by: `insufficient_quota`, `overloaded_error`. And what an aggregator
            // was told by the provider behind it.
            let raw = members
                .get("metadata")
                .and_then(|metadata| metadata.get("raw"));
            let word = ["code", "type"]
                .iter()
                .find_map(|name| members.get(*name)?.as_str());
            let word = word.filter(|word| *word != "error" && !text.contains(*word));
            Some(match (word, raw.and_then(Value::as_str)) {
                (_, Some(raw)) => format!("{text}: {raw}"),
                (Some(word), None) => format!("{text} ({word})"),
                (None, None) => text,
            })
        }
        _ => None,
    }
}

/// One line about an HTML page.
pub(crate) fn html_text(page: &str) -> String {
    let lower = page.to_ascii_lowercase(); // of the same length
    let title = ["title", "h1"].iter().find_map(|tag| {
        let open = lower.find(&format!("<{tag}"))?;
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</")?;
        let title = one_line(page.get(start..end)?, 200);
        (!title.is_empty()).then_some(title)
    });
    match title {
        Some(title) => format!("{title} (an HTML page)"),
        None => "an HTML page without a title".to_owned(),
    }
}

/// Text on one line: white space becomes one space, control characters go, and at most `limit`
/// characters stay.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut kept = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
            kept += 1;
        }
        for c in word.chars() {
            if kept == limit {
                line.push('…');
                return line;
            }
            line.push(c);
            kept += 1;
        }
    }
    line
}

/// How long the server wants us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after_ms(headers: &[(String, String)], now_ms: u64) -> Option<u64> {
    let millis = |text: &str, unit: f64| {
        let number: f64 = text.trim().parse().ok()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
        (number.is_finite() && number >= 0.0).then_some((number * unit) as u64)
    };
    if let Some(wait) = header(headers, "retry-after-ms").and_then(|text| millis(text, 1.0)) {
        return Some(wait);
    }
    let text = header(headers, "retry-after")?;
    millis(text, 1000.0).or_else(|| Some(http_date_ms(text)?.saturating_sub(now_ms)))
}

/// Unix milliseconds of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date_ms(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut parts = text.split_whitespace().skip(1);
    let day: u64 = parts.next()?.parse().ok()?;
    let month = MONTHS.find(parts.next().filter(|name| name.len() == 3)?)? as u64 / 3 + 1;
    let year: u64 = parts.next()?.parse().ok()?;
    let time: Vec<u64> = parts
        .next()?
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let [hour, minute, second] = time[..] else {
        return None;
    };
    let sane = (1970..10_000).contains(&year) && (1..32).contains(&day);
    if !sane || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (y, m) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}
