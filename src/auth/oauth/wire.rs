//! HTTP requests of a sign-in, with time limits, and without secrets in errors and logs.

use super::entry::{cancelled, failed, text};
use super::form;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Client, Method, Request, Secrets};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// Time limit of one request, including its answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of a server's error text in messages, in characters.
const DETAIL_CHARS: usize = 300;

/// Request fields whose values are hidden in error messages.
const SECRET_FIELDS: &[&str] =
    &["client_secret", "code", "code_verifier", "device_auth_id", "device_code", "refresh_token"];

/// Where requests are sent. Only tests replace the providers' servers.
#[derive(Clone, Debug, Default)]
pub(crate) enum Hosts {
    #[default]
    Real,
    /// One server replaces all others: a request to `https://auth.example.com/path` becomes one for the path
    /// `/auth.example.com/path`.
    #[cfg(test)]
    At(String),
}

impl Hosts {
    fn url(&self, url: &str) -> String {
        match self {
            Self::Real => url.to_owned(),
            #[cfg(test)]
            Self::At(base) => match url.strip_prefix("https://") {
                Some(rest) => format!("{base}/{rest}"),
                None => url.to_owned(),
            },
        }
    }

    /// The port of the redirect address; 0 for any free port.
    pub(super) fn port(&self, port: u16) -> u16 {
        match self {
            Self::Real => port,
            #[cfg(test)]
            Self::At(_) => 0,
        }
    }
}

/// A clock that tests can replace, so that they need not wait.
pub(crate) trait Clock: Send + Sync {
    /// Time since an arbitrary moment.
    fn now(&self) -> Duration;
    /// Waits for `time`. True if cancelled earlier.
    fn wait(&self, time: Duration, cancel: &CancelToken) -> bool;
}

#[derive(Debug)]
pub(crate) struct RealClock(Instant);

impl RealClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&self, time: Duration, cancel: &CancelToken) -> bool {
        cancel.wait_timeout(time)
    }
}

/// The environment of a sign-in.
pub(crate) struct Setting<'a> {
    pub hosts: &'a Hosts,
    pub clock: &'a dyn Clock,
    pub env: &'a Env,
    pub gateway: Option<&'a str>,
    /// UUID of this installation, for providers that require it.
    pub device: Option<&'a str>,
    /// Proxy of the settings, used if the environment names none.
    pub http_proxy: Option<&'a str>,
}

pub(super) struct Wire<'a> {
    pub hosts: &'a Hosts,
    pub clock: &'a dyn Clock,
    pub env: &'a Env,
    pub gateway: Option<&'a str>,
    pub device: Option<&'a str>,
    pub cancel: &'a CancelToken,
    /// Variables that override the process environment for requests.
    request_env: Vec<(String, String)>,
    /// Deadline of all requests together.
    until: Option<Instant>,
}

/// The proxy of the settings as a variable; empty if the environment names a proxy.
fn proxies(setting: &Setting<'_>) -> Vec<(String, String)> {
    const NAMES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
    let is_known = |name: &str| setting.env.has(name) || setting.env.has(&name.to_lowercase());
    match setting.http_proxy {
        Some(proxy) if !NAMES.into_iter().any(is_known) => {
            vec![("ALL_PROXY".to_owned(), proxy.to_owned())]
        }
        _ => Vec::new(),
    }
}

/// The answer of a server.
pub(super) struct Answer {
    pub status: u16,
    /// The fields of a JSON object; empty if the body is not an object.
    pub fields: Map<String, Value>,
    pub retry_after: Option<String>,
    /// The body as one line, without the secrets of the request.
    said: String,
}

/// A request under construction.
pub(super) struct Ask<'a> {
    wire: &'a Wire<'a>,
    method: Method,
    url: &'a str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    secrets: Secrets,
}

impl<'a> Wire<'a> {
    pub fn new(setting: &Setting<'a>, cancel: &'a CancelToken, until: Option<Instant>) -> Self {
        Self {
            hosts: setting.hosts,
            clock: setting.clock,
            env: setting.env,
            gateway: setting.gateway,
            device: setting.device,
            cancel,
            request_env: proxies(setting),
            until,
        }
    }

    pub fn get(&'a self, url: &'a str) -> Ask<'a> {
        self.ask(Method::GET, url, Vec::new())
    }

    pub fn post_form(&'a self, url: &'a str, fields: &[(&str, &str)]) -> Ask<'a> {
        let mut ask = self.ask(Method::POST, url, form::encode(fields).into_bytes());
        let secret = fields.iter().filter(|(name, _)| SECRET_FIELDS.contains(name));
        secret.for_each(|(_, value)| ask.secrets.add(value));
        ask.header("content-type", "application/x-www-form-urlencoded")
    }

    pub fn post_json(&'a self, url: &'a str, body: &Value) -> Ask<'a> {
        let mut ask = self.ask(Method::POST, url, body.to_string().into_bytes());
        let secret = SECRET_FIELDS.iter().filter_map(|name| body.get(name)?.as_str());
        secret.for_each(|value| ask.secrets.add(value));
        ask.header("content-type", "application/json")
    }

    fn ask(&'a self, method: Method, url: &'a str, body: Vec<u8>) -> Ask<'a> {
        let ask = Ask { wire: self, method, url, headers: Vec::new(), body, secrets: Secrets::default() };
        ask.header("accept", "application/json")
    }
}

impl Ask<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sends the request. An answer with an error status is not an `Err`.
    pub fn send(self) -> Result<Answer, StreamError> {
        let wire = self.wire;
        let left = wire.until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(LIMIT, |left| left.min(LIMIT));
        if timeout.is_zero() {
            return Err(StreamError::new(ErrorKind::Timeout, "it took too long"));
        }
        let mut secrets = self.secrets;
        secrets.add_headers(&self.headers);
        let url = wire.hosts.url(self.url);
        let request = Request {
            method: self.method,
            headers: self.headers,
            body: &self.body,
            timeout: Some(timeout),
            secrets: secrets.clone(),
            private: true,
            env: &wire.request_env,
            ..Request::new(&url)
        };
        let client = Client::shared();
        let reply = client.whole(&request, wire.cancel).map_err(|error| match error.kind {
            ErrorKind::Aborted => cancelled(),
            _ => error,
        })?;
        let text = reply.text();
        let said = match text.trim_start().starts_with('<') {
            true => http::html_text(&text),
            false => http::one_line(&text, DETAIL_CHARS),
        };
        let fields = match reply.json() {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Ok(Answer {
            status: reply.status,
            retry_after: reply.header("retry-after").map(str::to_owned),
            said: secrets.hide(&said).into_owned(),
            fields: hidden(fields, &secrets, (200..300).contains(&reply.status)),
        })
    }
}

/// Hides the secrets of the request in the fields of an error answer. Fields of a success are kept, since a
/// server may return a token again.
fn hidden(mut fields: Map<String, Value>, secrets: &Secrets, is_ok: bool) -> Map<String, Value> {
    if !is_ok {
        for value in fields.values_mut() {
            if let Value::String(text) = value {
                *text = secrets.hide(text).into_owned();
            }
        }
    }
    fields
}

impl Answer {
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        text(&self.fields, name)
    }

    /// The field `name`, if it is a number above zero.
    pub fn positive(&self, name: &str) -> Option<f64> {
        let number = self.fields.get(name).and_then(Value::as_f64);
        number.filter(|number| number.is_finite() && *number > 0.0)
    }

    /// The OAuth error code.
    pub fn error(&self) -> Option<&str> {
        match self.fields.get("error") {
            Some(Value::Object(error)) => text(error, "code"),
            _ => self.text("error"),
        }
    }

    /// The server's description of an error.
    fn detail(&self) -> Option<String> {
        let nested = |name: &str| {
            let error = self.fields.get("error").and_then(Value::as_object)?;
            text(error, name)
        };
        let about = ["error_description", "detail", "message"];
        let about = about.iter().find_map(|name| self.text(name)).or(nested("message"));
        let detail = match (self.error(), about) {
            (Some(code), Some(about)) => format!("{code}: {about}"),
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            (None, None) if self.fields.is_empty() => self.said.clone(),
            (None, None) => return None,
        };
        let detail = http::one_line(&detail, DETAIL_CHARS);
        (!detail.is_empty()).then_some(detail)
    }

    /// The error for an answer with an error status; `what` names the request.
    pub fn refused(&self, what: &str) -> StreamError {
        let status = self.status;
        let detail = self.detail().map_or_else(String::new, |detail| format!(": {detail}"));
        let kind = match status {
            408 | 429 | 500.. => ErrorKind::Provider,
            _ => ErrorKind::Auth,
        };
        StreamError {
            status: Some(status),
            ..StreamError::new(kind, format!("{what} failed with status {status}{detail}"))
        }
    }

    /// The error for a success without a valid field `name`; `what` names the request.
    pub fn lacks(&self, what: &str, name: &str) -> StreamError {
        match self.fields.is_empty() {
            true => failed(format!("{what} gave no JSON object")),
            false => failed(format!("{what} gave an answer without a valid \"{name}\"")),
        }
    }
}

/// Accepts a URL that is safe to show and to open: http or https, without characters that are special in a
/// terminal or a shell.
pub(super) fn web_address(url: &str) -> Option<String> {
    let is_plain = url.chars().all(|c| c.is_ascii_graphic() && !"\"'<>\\^`{|}".contains(c));
    let uri: ureq::http::Uri = url.parse().ok().filter(|_| is_plain)?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_web && uri.host().is_some_and(|host| !host.is_empty())).then(|| url.to_owned())
}
