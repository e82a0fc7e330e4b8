//! HTTP requests to model servers.
//!
//! A process has one client, which keeps connections, chooses the proxy, checks certificates, and writes the
//! debug log. Cancelling the [`CancelToken`] of a request closes its socket and ends the request at once;
//! only a name lookup and the opening of a connection run on until their own time limits, without further
//! effect. Reads have no time limit here: the clocks of [`stream`](crate::llm::stream) limit how long a
//! server may be silent.
//!
//! Redirects are followed only to the same scheme, host and port, since a key is meant for one server.

pub mod address;
mod connection;
mod debug;
mod failure;
pub mod fault;
mod proxy;
mod secrets;
mod status;
mod tls;
mod upload;

pub(crate) use failure::{Target, one_line};
pub(crate) use proxy::is_loopback;
pub(crate) use secrets::Secrets;
pub(crate) use status::{body_error, body_text, html_text, http_date_ms, request_id, status_error, utc_ms};
pub(crate) use tls::Trusted;

use super::body::Long;
use super::event::{ErrorKind, StreamError};
use crate::base::cancel::{CancelGuard, CancelToken};
use crate::base::env::Env;
use crate::base::json;
use connection::Lease;
use debug::{Exchange, Log};
use failure::Phase;
use std::io::Read;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;
pub(crate) use ureq::http::Method;
use ureq::http::{Request as WireRequest, Uri};
use ureq::unversioned::resolver::DefaultResolver;

/// Time limit for opening a connection, including proxy and TLS.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The largest body that [`get`] and [`post`] accept, in bytes.
pub const REPLY_LIMIT: usize = 16 << 20;
const MAX_REDIRECTS: usize = 5;
/// Maximum number of reads that drain an unneeded response, so that its connection can be reused.
const DRAIN_READS: usize = 16;
const DRAIN_PATIENCE: Duration = Duration::from_millis(250);

/// A complete answer with any status.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// True for a status from 200 to 299.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; `None` if it is not valid.
    pub fn json(&self) -> Option<serde_json::Value> {
        json::parse(&self.body).ok()
    }
}

/// Sends a GET for `url` and reads the complete answer, both within `timeout`. An error status is not an
/// `Err`.
pub fn get(
    url: &str,
    headers: &[(&str, &str)],
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let request =
        Request { method: Method::GET, headers: owned(headers), timeout: Some(timeout), ..Request::new(url) };
    Client::shared().whole(&request, cancel)
}

/// Sends a POST with a body, otherwise like [`get`]. The content type is JSON unless `headers` set another.
pub fn post(
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let mut headers = owned(headers);
    if header(&headers, "content-type").is_none() {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    let request = Request { headers, body, timeout: Some(timeout), ..Request::new(url) };
    Client::shared().whole(&request, cancel)
}

/// Sends `request` and reads the complete answer. An error status is not an `Err`.
pub(crate) fn ask(request: &Request<'_>, cancel: &CancelToken) -> Result<Reply, StreamError> {
    Client::shared().whole(request, cancel)
}

/// The proxy for requests to `url`, as host and port; `None` for a direct connection.
pub(crate) fn proxy_of(url: &str, env: &Env) -> Result<Option<String>, StreamError> {
    let target = url.parse().ok().and_then(|uri: Uri| Target::new(&uri));
    let target = target.ok_or_else(|| failure::bad_url(url))?;
    Ok(proxy::choose(&target, env)?.as_ref().map(proxy::shown))
}

/// The certificates that servers are trusted by.
pub(crate) fn certificates(env: Env) -> Trusted {
    tls::Trust::new(env).survey()
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = headers.iter();
    pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The value of a header, ignoring the case of its name.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(&found.1)
}

/// An HTTP request to send.
pub(crate) struct Request<'a> {
    pub method: Method,
    pub url: &'a str,
    pub headers: Vec<(String, String)>,
    pub body: &'a [u8],
    /// A body that is made while it is sent, in place of `body`.
    pub long: Option<&'a Long<'a>>,
    /// Time limit for the request and its complete answer.
    pub timeout: Option<Duration>,
    /// Values to hide in logs and errors, besides headers with secret names.
    pub secrets: Secrets,
    /// Variables that override the client's environment.
    pub env: &'a [(String, String)],
    /// True to bypass any proxy, for services of the local network.
    pub direct: bool,
    /// True if logs must show neither of the two bodies.
    pub private: bool,
    /// True to send no `user-agent` where `headers` have none.
    pub is_unnamed: bool,
}

impl<'a> Request<'a> {
    /// A POST without headers and body.
    pub(crate) fn new(url: &'a str) -> Self {
        Self {
            method: Method::POST,
            url,
            headers: Vec::new(),
            body: &[],
            long: None,
            timeout: None,
            secrets: Secrets::default(),
            env: &[],
            direct: false,
            private: false,
            is_unnamed: false,
        }
    }
}

/// An HTTP client. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    agent: ureq::Agent,
    trust: Arc<tls::Trust>,
    env: Env,
    log: OnceLock<Result<Option<Log>, String>>,
}

impl Client {
    /// The client of this process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Client> = LazyLock::new(|| Client::new(Env::process()));
        &SHARED
    }

    pub(crate) fn new(env: Env) -> Self {
        let config = ureq::Agent::config_builder()
            .user_agent(user_agent())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_connect(Some(CONNECT_LIMIT))
            .input_buffer_size(64 << 10)
            .output_buffer_size(64 << 10)
            .build();
        let trust = Arc::new(tls::Trust::new(env.clone()));
        let connector = connection::connector(trust.clone());
        Self(Arc::new(Inner {
            agent: ureq::Agent::with_parts(config, connector, DefaultResolver::default()),
            trust,
            env,
            log: OnceLock::new(),
        }))
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) fn send(&self, request: &Request<'_>, cancel: &CancelToken) -> Result<Answer, StreamError> {
        let mut secrets = request.secrets.clone();
        secrets.add_headers(&request.headers);
        let result = self.send_all(request, &secrets, cancel);
        if cancel.is_cancelled() {
            return Err(StreamError::aborted());
        }
        result.map_err(|mut error| {
            error.message = secrets.hide(&error.message).into_owned();
            error
        })
    }

    fn send_all(
        &self,
        request: &Request<'_>,
        secrets: &Secrets,
        cancel: &CancelToken,
    ) -> Result<Answer, StreamError> {
        let mut url = request.url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send_once(request, &url, secrets, cancel)?;
            let location = match answer.status {
                301 | 302 | 303 | 307 | 308 => header(&answer.headers, "location"),
                _ => None,
            };
            let Some(location) = location else {
                return Ok(answer);
            };
            url = answer.target.redirect(location, answer.status, request)?;
            answer.detach().drain();
        }
        let text = format!("more than {MAX_REDIRECTS} redirects in a row from {url}");
        Err(StreamError::new(ErrorKind::Request, text))
    }

    fn send_once(
        &self,
        request: &Request<'_>,
        url: &str,
        secrets: &Secrets,
        cancel: &CancelToken,
    ) -> Result<Answer, StreamError> {
        let uri: Uri = url.parse().map_err(|_| failure::bad_url(url))?;
        let mut target = Target::new(&uri).ok_or_else(|| failure::bad_url(url))?;
        let proxy = match request.direct {
            true => None,
            false => proxy::choose(&target, &self.0.env.with(request.env))?,
        };
        target.proxy = proxy.as_ref().map(proxy::shown);

        let log = self.log()?;
        let exchange = log.map(|log| log.begin(request, &uri, secrets));
        let lease = Lease::new();
        let guard = {
            let lease = lease.clone();
            cancel.on_cancel(move || lease.cancel())
        };

        let run = |fresh: bool| {
            let mut builder = WireRequest::builder().method(request.method.clone()).uri(&uri);
            for (name, value) in &request.headers {
                builder = builder.header(name, value);
            }
            let _entered = lease.enter();
            let agent = &self.0.agent;
            // A GET must not have a body, not even an empty one.
            if request.method == Method::GET {
                let wire = builder.body(()).map_err(ureq::Error::Http)?;
                agent.run(self.configure(wire, request, proxy.as_ref(), fresh))
            } else if let Some(long) = request.long {
                let builder = builder.header("content-length", long.length);
                upload::send(long, |body| {
                    let wire = builder.body(body).map_err(ureq::Error::Http)?;
                    agent.run(self.configure(wire, request, proxy.as_ref(), fresh))
                })
            } else {
                let wire = builder.body(request.body).map_err(ureq::Error::Http)?;
                agent.run(self.configure(wire, request, proxy.as_ref(), fresh))
            }
        };
        let mut result = run(false);
        if let Err(error) = &result
            && lease.went_stale(error)
        {
            result = run(true);
        }
        let response = result.map_err(|error| {
            let phase = match lease.has_connected() {
                true => Phase::Answer,
                false => Phase::Connect,
            };
            let error = failure::transport(&error, &target, phase, &self.0.trust);
            if let Some(exchange) = &exchange {
                exchange.failed(&error.message);
            }
            error
        })?;

        let (head, body) = response.into_parts();
        let headers = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        let headers: Vec<_> = headers.collect();
        let status = head.status.as_u16();
        if let Some(exchange) = &exchange {
            exchange.answered(status, &headers);
        }
        Ok(Answer {
            status,
            headers,
            target,
            body: body.into_with_config().reader(),
            lease,
            trust: self.0.trust.clone(),
            exchange,
            _guard: guard,
        })
    }

    fn configure<S: ureq::AsSendBody>(
        &self,
        wire: WireRequest<S>,
        request: &Request<'_>,
        proxy: Option<&ureq::Proxy>,
        fresh: bool,
    ) -> WireRequest<S> {
        let mut config =
            self.0.agent.configure_request(wire).proxy(proxy.cloned()).timeout_global(request.timeout);
        if fresh {
            config = config.max_idle_age(Duration::ZERO);
        }
        if request.is_unnamed {
            config = config.user_agent("");
        }
        config.build()
    }

    /// Sends a request and reads the complete answer.
    pub(crate) fn whole(&self, request: &Request<'_>, cancel: &CancelToken) -> Result<Reply, StreamError> {
        let mut answer = self.send(request, cancel)?;
        let mut body = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = match answer.read(&mut buffer) {
                Ok(count) => count,
                Err(_) if cancel.is_cancelled() => return Err(StreamError::aborted()),
                Err(error) => return Err(error),
            };
            if count == 0 {
                break;
            }
            body.extend_from_slice(&buffer[..count]);
            if body.len() > REPLY_LIMIT {
                let text = format!("the answer of {} is too large", answer.target.server());
                return Err(StreamError::new(ErrorKind::Protocol, text));
            }
        }
        Ok(Reply { status: answer.status, headers: std::mem::take(&mut answer.headers), body })
    }

    fn log(&self) -> Result<Option<&Log>, StreamError> {
        let log = self.0.log.get_or_init(|| match self.0.env.get(debug::FILE) {
            Some(path) => Log::open(&path).map(Some),
            None => Ok(None),
        });
        match log {
            Ok(log) => Ok(log.as_ref()),
            Err(problem) => Err(StreamError::new(ErrorKind::Request, problem)),
        }
    }
}

/// The head of an answer, and its body to be read.
pub(crate) struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub target: Target,
    body: ureq::BodyReader<'static>,
    lease: Arc<Lease>,
    trust: Arc<tls::Trust>,
    exchange: Option<Exchange>,
    /// Closes the socket when the token is cancelled.
    _guard: CancelGuard,
}

impl Answer {
    /// Reads the next bytes of the body; 0 at its end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        match self.body.read(buffer) {
            Ok(count) => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.body(&buffer[..count]);
                }
                Ok(count)
            }
            Err(error) => {
                let error = ureq::Error::from(error);
                let error = failure::transport(&error, &self.target, Phase::Body, &self.trust);
                if let Some(exchange) = &self.exchange {
                    exchange.failed(&error.message);
                }
                Err(error)
            }
        }
    }

    /// Reads at most `limit` bytes, waiting at most `patience` for each part. Returns what arrived, also
    /// after an error.
    pub(crate) fn read_some(&mut self, limit: usize, patience: Duration) -> Vec<u8> {
        self.lease.set_patience(patience);
        let mut body = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count) = self.read(&mut buffer)
            && count > 0
            && body.len() < limit
        {
            body.extend_from_slice(&buffer[..count]);
        }
        body.truncate(limit);
        body
    }

    /// Drops the cancel token: a later cancellation does not close the connection.
    pub(crate) fn detach(self) -> Rest {
        Rest { body: self.body, lease: self.lease }
    }
}

/// The unread rest of an answer.
pub(crate) struct Rest {
    body: ureq::BodyReader<'static>,
    lease: Arc<Lease>,
}

impl Rest {
    /// Reads the rest if it is short and arrives at once, so that the connection can be reused.
    pub(crate) fn drain(mut self) {
        self.lease.set_patience(DRAIN_PATIENCE);
        let mut buffer = vec![0; 16 << 10];
        for _ in 0..DRAIN_READS {
            if !matches!(self.body.read(&mut buffer), Ok(1..)) {
                break;
            }
        }
    }
}

fn user_agent() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("pi/{version} ({os}; {arch})")
}
