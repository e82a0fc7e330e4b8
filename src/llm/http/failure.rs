//! Error messages for failed requests: what was being done, why it failed, and what to do.
//!
//! Texts of servers are cut to one line without control characters. Credentials and queries of URLs are not
//! shown.

use super::Request;
use super::proxy::is_loopback;
use super::tls::Trust;
use crate::llm::event::{ErrorKind, StreamError};
use rustls::{CertificateError, InvalidMessage};
use std::io;
use ureq::http::Uri;
use ureq::{Error, Timeout};

/// The server of a request.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub host: String,
    pub port: u16,
    pub secure: bool,
    /// Without credentials and query.
    pub url: String,
    /// The proxy as host and port, if one is used.
    pub proxy: Option<String>,
}

/// The phase in which a request failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Connect,
    Answer,
    Body,
}

impl Target {
    pub(crate) fn new(uri: &Uri) -> Option<Self> {
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

    /// The URL of a redirect; an error if following it could send a key to another server or drop the body.
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
            next.host.eq_ignore_ascii_case(&self.host) && (next.port, next.secure) == (self.port, self.secure)
        });
        let repeats = (request.body.is_empty() && request.long.is_none()) || matches!(status, 307 | 308);
        if same_server && repeats {
            return Ok(url);
        }
        let to = next.map_or_else(|| one_line(location, 200), |next| next.url);
        let text = format!(
            "{} redirects to {to}, which is not followed with a key: if that is right, make it the base URL",
            self.url
        );
        Err(StreamError { status: Some(status), ..StreamError::new(ErrorKind::Request, text) })
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
    // A password may precede an @, and a key may follow a ?.
    let url = url.split('?').next().unwrap_or_default();
    let url = match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, Some((_, rest))) => rest.to_owned(),
        _ => url.to_owned(),
    };
    let text = format!("not a URL: {:?}; a base URL looks like https://host/v1", one_line(&url, 200));
    StreamError::new(ErrorKind::Request, text)
}

/// The error for a request without an answer, or with an incomplete one.
pub(super) fn transport(error: &Error, target: &Target, phase: Phase, trust: &Trust) -> StreamError {
    let server = target.server();
    let say = |kind: ErrorKind, text: String| StreamError::new(kind, text);
    match error {
        Error::Io(error) => {
            if let Some(error) = inner::<rustls::Error>(error) {
                return tls(error, target, trust);
            }
            say(ErrorKind::Transport, io_text(error, target, phase))
        }
        Error::Rustls(error) => tls(error, target, trust),
        Error::HostNotFound => say(ErrorKind::Transport, no_host(target)),
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            say(ErrorKind::Timeout, no_connection(target, "timed out"))
        }
        Error::Timeout(_) => say(ErrorKind::Timeout, format!("the request to {server} timed out")),
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
            format!("the request to {server} cannot be made: {error}; check the key and the headers"),
        ),
        Error::BadUri(problem) => say(ErrorKind::Request, format!("bad URL: {problem}")),
        Error::Protocol(problem) if phase == Phase::Body => {
            say(ErrorKind::Transport, format!("the answer of {server} is broken: {problem}"))
        }
        Error::Protocol(problem) => {
            let hint = match target.secure {
                true => "",
                false => "; if it wants TLS, the base URL must begin with https://",
            };
            say(ErrorKind::Transport, format!("{server} did not answer in HTTP: {problem}{hint}"))
        }
        Error::Decompress(_, problem) => {
            say(ErrorKind::Transport, format!("the compressed answer of {server} is broken: {problem}"))
        }
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

/// True if a name lookup failed: such errors have no kind of their own.
fn is_lookup(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("lookup address")
}

fn no_host(target: &Target) -> String {
    let host = &target.host;
    match &target.proxy {
        Some(proxy) => format!(
            "network error: host not found: the proxy {proxy} or {host}; check HTTPS_PROXY, HTTP_PROXY and the base URL"
        ),
        None => {
            format!("network error: host {host} not found; check the base URL and the network connection")
        }
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

/// The error of a TLS handshake. A wrong certificate or a server without TLS is as wrong the next time, so that such
/// a request is not tried again.
fn tls(error: &rustls::Error, target: &Target, trust: &Trust) -> StreamError {
    let server = target.server();
    let kind = match error {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => ErrorKind::Request,
        _ => ErrorKind::Transport,
    };
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
    StreamError::new(
        kind,
        match trust.problems() {
            [] => text,
            problems => format!("{text} ({})", problems.join("; ")),
        },
    )
}

/// Cuts text to one line of at most `limit` characters: white space becomes one space, control characters are
/// removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_put_on_one_line() {
        let rows = [
            ("", ""),
            (" a \r\n\t b ", "a b"),
            ("\u{1b}[31mred\u{7}", "[31mred"),
            ("12345678", "12345678"),
            ("123456789", "12345678…"),
            ("1234567 8", "1234567 …"),
            ("äääääääää", "ääääääää…"),
        ];
        for (text, expected) in rows {
            assert_eq!(one_line(text, 8), expected, "{text:?}");
        }
    }

    #[test]
    fn where_a_redirect_leads() {
        let target = Target::new(&"http://a.com/v1/chat?key=secret".parse().unwrap()).unwrap();
        let rows = [
            ("/x", Some("http://a.com:80/x")),
            ("y?z=http://b.com", Some("http://a.com/v1/y?z=http://b.com")),
            ("//a.com/x", Some("http://a.com/x")),
            ("http://A.com:80/x", Some("http://A.com:80/x")),
            ("http://a.com:81/x", None),
            ("https://a.com/x", None),
            ("//b.com/x", None),
            ("ftp://a.com/x", None),
            ("http://a.com@b.com/x", None),
            ("", Some("http://a.com/v1/")),
        ];
        let request = Request { body: b"x", ..Request::new("") };
        for (location, expected) in rows {
            let url = target.redirect(location, 308, &request).ok();
            assert_eq!(url.as_deref(), expected, "{location}");
            assert!(target.redirect(location, 301, &request).is_err(), "{location}");
            let get = Request::new("");
            assert_eq!(target.redirect(location, 301, &get).ok(), url, "{location}");
        }
    }

    #[test]
    fn a_bad_url_is_shown_without_its_secrets() {
        for url in
            ["http://me:secret@ho st/", "me:secret@host", "host?key=secret", "http://a b@secret@x/?secret"]
        {
            let message = bad_url(url).message;
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
