//! A server over HTTP: each message is a POST, whose answer is JSON or a stream of events.
//!
//! A stream that breaks before the answer is resumed from its last event, if the server numbers them. What the server
//! says unasked comes over a stream of its own, where it offers one. The protocol's first transport is spoken, too:
//! there one stream brings everything, and names the address for messages.

use super::fault::Fault;
use super::peer::{MESSAGE_MAX, Peer, Transport};
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::address::address;
use crate::llm::http::{Answer, Client, Method, Request, Secrets, body_text, header};
use crate::llm::secret::Secret;
use crate::llm::sse::{SseDecoder, TooLarge};
use crossbeam_channel::{bounded, select};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of an error's body that are read, and the wait for each part.
const ERROR_BODY: (usize, Duration) = (8 << 10, Duration::from_secs(2));
/// Attempts to resume a stream that breaks again and again.
const RESUMES_MAX: u32 = 5;
const RESUME_AFTER: Duration = Duration::from_secs(1);
const RESUME_AFTER_MAX: Duration = Duration::from_secs(30);
/// Time limit for the end of a session.
const GOODBYE: Duration = Duration::from_secs(1);

/// Who gives requests their credential.
pub trait Authority: Send + Sync {
    /// The token to send, none if there is none.
    fn token(&self, cancel: &CancelToken) -> Option<Secret>;

    /// The server has refused `token`, with this challenge. True if there is another token now. An error if it could
    /// not be renewed for the moment.
    fn refused(
        &self,
        token: Option<&Secret>,
        challenge: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<bool, String>;
}

/// Where a server is, and what each request carries.
#[derive(Clone)]
pub struct Target {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub secrets: Secrets,
    pub authority: Option<Arc<dyn Authority>>,
    /// The first HTTP transport of the protocol.
    pub is_old: bool,
}

pub struct Http(Arc<Inner>);

struct Inner {
    target: Target,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<String>,
    version: Option<String>,
    /// Where messages go, if not to the server's address.
    endpoint: Option<String>,
    /// The token with which the server does not let pi listen, for want of a scope.
    deaf: Option<Secret>,
}

impl Http {
    /// Nothing is sent yet, but by the old transport: it opens its stream, which ends with the peer.
    pub fn open(target: Target, peer: &Peer, timeout: Duration, cancel: &CancelToken) -> Result<Self, Fault> {
        let is_old = target.is_old;
        let inner = Arc::new(Inner { target, state: Mutex::default() });
        if is_old {
            inner.open_old(peer, timeout, cancel)?;
        }
        Ok(Self(inner))
    }
}

impl Transport for Http {
    fn send(
        &self,
        peer: &Peer,
        message: Vec<u8>,
        request: Option<u64>,
        cancel: &CancelToken,
    ) -> Result<(), Fault> {
        let (inner, peer, cancel) = (self.0.clone(), peer.clone(), cancel.clone());
        spawn("mcp-http", move || {
            let sent = inner.exchange(&peer, &message, request, &cancel);
            if let (Err(fault), Some(id)) = (sent, request) {
                peer.answer(&id.into(), Err(fault));
            }
        })
    }

    fn greeted(
        &self,
        peer: &Peer,
        version: &str,
        message: Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<(), Fault> {
        self.0.state().version = Some(version.to_owned());
        // The next request must not overtake it.
        self.0.exchange(peer, &message, None, cancel)?;
        if !self.0.target.is_old {
            self.0.begin_to_listen(peer)?;
        }
        Ok(())
    }

    fn close(&self, until: Instant) {
        let session = self.0.state().session.is_some();
        let left = until.saturating_duration_since(Instant::now()).min(GOODBYE);
        if session && !left.is_zero() {
            // A server that does not hear it forgets the session some day.
            let _ = self.0.send_once(Method::DELETE, &[], &[], Some(left), &CancelToken::new());
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let started = Thread::named(name).stack(512 << 10).start(work);
    started.map(drop).map_err(|error| Fault::Failed(format!("cannot start a thread: {error}")))
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self, cancel: &CancelToken) -> Option<Secret> {
        self.target.authority.as_ref()?.token(cancel)
    }

    /// Posts a message, and passes on what comes back.
    fn exchange(
        self: &Arc<Self>,
        peer: &Peer,
        message: &[u8],
        request: Option<u64>,
        cancel: &CancelToken,
    ) -> Result<(), Fault> {
        let headers =
            [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
        let mut answer = self.ask(Method::POST, &headers, message, cancel)?;
        if let Some(session) = header(&answer.headers, "mcp-session-id") {
            self.state().session = Some(session.to_owned());
        }
        let deaf = self.state().deaf.clone();
        if deaf.is_some() && self.token(cancel) != deaf && self.state().deaf.take().is_some() {
            self.begin_to_listen(peer)?;
        }
        let id = match request {
            Some(id) if !self.target.is_old => id,
            // The answer comes over the one stream.
            _ => {
                answer.detach().drain();
                return Ok(());
            }
        };
        let kind = header(&answer.headers, "content-type").unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => {
                peer.receive(&whole(&mut answer)?);
                match peer.awaits(id) {
                    true => Err(Fault::Failed("the answer is none to what was asked".into())),
                    false => Ok(()),
                }
            }
            "text/event-stream" => self.follow(peer, answer, id, cancel),
            _ if matches!(answer.status, 202 | 204) => Err(Fault::Failed("the server gave no answer".into())),
            kind => Err(Fault::Failed(format!(
                "the answer is neither JSON nor a stream of events but \"{kind}\""
            ))),
        }
    }

    /// Passes on the events of a stream until the request is answered. Resumes a stream that breaks.
    fn follow(&self, peer: &Peer, answer: Answer, id: u64, cancel: &CancelToken) -> Result<(), Fault> {
        let mut stream = Stream::new(answer);
        for attempt in 0.. {
            let ended = stream.pass_on(peer, &|| !peer.awaits(id));
            if !peer.awaits(id) || cancel.is_cancelled() {
                return Ok(());
            }
            let (Some(last), true) = (stream.last_id(), attempt < RESUMES_MAX) else {
                return Err(ended
                    .err()
                    .unwrap_or_else(|| Fault::Closed("the stream ended before the answer".into())));
            };
            if cancel.wait_timeout(stream.pause(attempt)) {
                return Ok(());
            }
            match self.resume(&last, cancel) {
                Ok(answer) => stream = Stream::new(answer),
                Err(fault) if fault.is_passing() => {}
                // The request itself was taken, and must not be sent again.
                Err(Fault::SessionGone | Fault::Scope(_) | Fault::SignIn(_)) => {
                    let why = "the stream broke before the answer, and the server does not resume it";
                    return Err(Fault::Closed(why.into()));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn resume(&self, last: &str, cancel: &CancelToken) -> Result<Answer, Fault> {
        let headers = [("accept", "text/event-stream"), ("last-event-id", last)];
        self.ask(Method::GET, &headers, &[], cancel)
    }

    fn begin_to_listen(self: &Arc<Self>, peer: &Peer) -> Result<(), Fault> {
        let (inner, peer) = (self.clone(), peer.clone());
        spawn("mcp-listen", move || inner.listen(&peer))
    }

    /// Passes on what the server says unasked, for as long as the peer lives. A server need not offer this.
    fn listen(&self, peer: &Peer) {
        let cancel = peer.over();
        let (mut last, mut failures) = (None::<String>, 0);
        while failures <= RESUMES_MAX && !cancel.is_cancelled() {
            let token = self.token(cancel);
            let answer = match &last {
                Some(last) => self.resume(last, cancel),
                None => self.ask(Method::GET, &[("accept", "text/event-stream")], &[], cancel),
            };
            let mut pause = RESUME_AFTER;
            match answer {
                Ok(answer) if is_events(&answer) => {
                    let mut stream = Stream::new(answer);
                    let _ = stream.pass_on(peer, &|| false);
                    last = stream.last_id().or(last);
                    pause = stream.pause(failures);
                    failures = if stream.has_events { 0 } else { failures + 1 };
                }
                Err(fault) if fault.is_passing() => failures += 1,
                // Until the user has signed in for more.
                Err(Fault::Scope(_)) => return self.state().deaf = token,
                _ => return,
            }
            if cancel.wait_timeout(pause) {
                return;
            }
        }
    }

    /// Opens the stream of the old transport and waits for the address of messages.
    fn open_old(self: &Arc<Self>, peer: &Peer, timeout: Duration, cancel: &CancelToken) -> Result<(), Fault> {
        let (told, endpoint) = bounded::<Result<String, Fault>>(1);
        let (inner, peer) = (self.clone(), peer.clone());
        spawn("mcp-listen", move || {
            let answer = inner.ask(Method::GET, &[("accept", "text/event-stream")], &[], peer.over());
            let answer = match answer {
                Ok(answer) if is_events(&answer) => answer,
                Ok(_) => {
                    return drop(told.send(Err(Fault::Failed("the answer is no stream of events".into()))));
                }
                Err(fault) => return drop(told.send(Err(fault))),
            };
            let mut stream = Stream::new(answer);
            stream.endpoint = Some(told);
            let ended = stream.pass_on(&peer, &|| false);
            peer.closed(
                ended.err().unwrap_or_else(|| Fault::Closed("the server has ended its stream".into())),
            );
        })?;
        let endpoint = select! {
            recv(endpoint) -> endpoint => endpoint.unwrap_or_else(|_| Err(Fault::Closed("the stream has ended".into()))),
            recv(cancel.receiver()) -> _ => Err(Fault::Aborted),
            default(timeout) => Err(Fault::Timeout(timeout)),
        }?;
        self.state().endpoint = Some(join(&self.target.url, &endpoint).ok_or_else(|| {
            Fault::Failed("the server names an address for messages that is on another server".into())
        })?);
        Ok(())
    }

    /// Sends a request; after a refusal once more, with another token. An error status is a fault.
    fn ask(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &[u8],
        cancel: &CancelToken,
    ) -> Result<Answer, Fault> {
        let authority = self.target.authority.as_deref();
        for attempt in 0.. {
            let (mut answer, token) = self.send_once(method.clone(), headers, body, None, cancel)?;
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            let challenge = header(&answer.headers, "www-authenticate").map(str::to_owned);
            let wants_more = challenge.as_ref().is_some_and(|text| text.contains("insufficient_scope"));
            if answer.status == 401 || (answer.status == 403 && wants_more) {
                let is_new = match authority.filter(|_| attempt == 0) {
                    Some(authority) => authority
                        .refused(token.as_ref(), challenge.as_deref(), cancel)
                        .map_err(Fault::Unreachable)?,
                    None => false,
                };
                if is_new {
                    answer.detach().drain();
                    continue;
                }
                match challenge {
                    Some(challenge) if wants_more && authority.is_some() => {
                        return Err(Fault::Scope(challenge));
                    }
                    challenge if authority.is_some() || answer.status == 401 => {
                        return Err(Fault::SignIn(challenge));
                    }
                    _ => {}
                }
            }
            if answer.status == 404 && self.state().session.is_some() {
                return Err(Fault::SessionGone);
            }
            let body = answer.read_some(ERROR_BODY.0, ERROR_BODY.1);
            let text = body_text(&String::from_utf8_lossy(&body)).unwrap_or_default();
            return Err(Fault::Status {
                status: answer.status,
                text: self.target.secrets.hide(&text).into_owned(),
            });
        }
        Err(Fault::SignIn(None))
    }

    fn send_once(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Option<Duration>,
        cancel: &CancelToken,
    ) -> Result<(Answer, Option<Secret>), Fault> {
        let token = self.token(cancel);
        let mut all = self.target.headers.clone();
        let mut set = |name: &str, value: &str| {
            all.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            all.push((name.to_owned(), value.to_owned()));
        };
        headers.iter().for_each(|(name, value)| set(name, value));
        let state = self.state();
        if let Some(session) = &state.session {
            set("mcp-session-id", session);
        }
        if let Some(version) = &state.version {
            set("mcp-protocol-version", version);
        }
        let url = match (&state.endpoint, &method) {
            (Some(endpoint), &Method::POST) => endpoint.clone(),
            _ => self.target.url.clone(),
        };
        drop(state);
        if let Some(token) = &token {
            set("authorization", &format!("Bearer {}", token.expose()));
        }
        let secrets = self.target.secrets.clone();
        let request = Request { method, headers: all, body, timeout, secrets, ..Request::new(&url) };
        let answer = Client::shared().send(&request, cancel).map_err(fault)?;
        Ok((answer, token))
    }
}

fn fault(error: StreamError) -> Fault {
    match error.kind {
        ErrorKind::Aborted => Fault::Aborted,
        ErrorKind::Transport | ErrorKind::Timeout => Fault::Unreachable(error.message),
        _ => Fault::Failed(error.message),
    }
}

fn is_events(answer: &Answer) -> bool {
    header(&answer.headers, "content-type")
        .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

/// Reads a whole body.
fn whole(answer: &mut Answer) -> Result<Vec<u8>, Fault> {
    let (mut body, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let count = answer.read(&mut buffer).map_err(fault)?;
        if count == 0 {
            return Ok(body);
        }
        body.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if body.len() > MESSAGE_MAX {
            return Err(Fault::Failed("the server sent a message of more than 16 MB".into()));
        }
    }
}

/// A stream of events.
struct Stream {
    answer: Answer,
    decoder: SseDecoder,
    has_events: bool,
    /// Takes the address for messages that the old transport names.
    endpoint: Option<crossbeam_channel::Sender<Result<String, Fault>>>,
}

/// Why reading a stream ends early.
enum Stop {
    Done,
    TooLarge,
}

impl From<TooLarge> for Stop {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl Stream {
    fn new(answer: Answer) -> Self {
        Self { answer, decoder: SseDecoder::with_limit(MESSAGE_MAX), has_events: false, endpoint: None }
    }

    fn last_id(&self) -> Option<String> {
        self.decoder.last_id.clone()
    }

    /// The pause before the stream is opened again.
    fn pause(&self, attempt: u32) -> Duration {
        let usual = RESUME_AFTER.saturating_mul(1 << attempt.min(5));
        self.decoder.retry_ms.map_or(usual, Duration::from_millis).min(RESUME_AFTER_MAX)
    }

    /// Passes on events to the end of the stream, or until `is_done` says so after one.
    fn pass_on(&mut self, peer: &Peer, is_done: &dyn Fn() -> bool) -> Result<(), Fault> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = self.answer.read(&mut buffer).map_err(fault)?;
            let (has_events, endpoint) = (&mut self.has_events, &mut self.endpoint);
            let each = |name: &str, data: &str| {
                *has_events = true;
                match name {
                    "" | "message" if !data.trim().is_empty() => peer.receive(data.as_bytes()),
                    "endpoint" => {
                        if let Some(endpoint) = endpoint.take() {
                            let _ = endpoint.send(Ok(data.trim().to_owned()));
                        }
                    }
                    _ => {}
                }
                if is_done() { Err(Stop::Done) } else { Ok(()) }
            };
            let fed = match count {
                0 => self.decoder.end(each),
                _ => self.decoder.feed(buffer.get(..count).unwrap_or_default(), each),
            };
            match fed {
                Err(Stop::Done) => return Ok(()),
                Err(Stop::TooLarge) => {
                    return Err(Fault::Failed("the server sent a message of more than 16 MB".into()));
                }
                Ok(()) if count == 0 => return Ok(()),
                Ok(()) => {}
            }
        }
    }
}

/// `reference`, which may be relative to `base`; none if it is on another server.
fn join(base: &str, reference: &str) -> Option<String> {
    let (scheme, rest) = base.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (server, path) = rest.split_at(end);
    if reference.contains("://") {
        let (there, here) = (address(reference)?, address(base)?);
        return (there.origin() == here.origin()).then(|| reference.to_owned());
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    Some(match reference.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => return None,
        Some(rest) => format!("{scheme}://{server}/{rest}"),
        None => format!("{scheme}://{server}{folder}/{reference}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_messages_stays_on_its_server() {
        for (base, reference, expected) in [
            ("http://h:1/sse", "/messages?id=1", Some("http://h:1/messages?id=1")),
            ("http://h:1/a/sse?x=/y", "m", Some("http://h:1/a/m")),
            ("http://h:1", "m", Some("http://h:1/m")),
            ("http://h:1/sse", "http://h:1/m", Some("http://h:1/m")),
            ("http://h:1/sse", "http://h:2/m", None),
            ("http://h:1/sse", "https://h:1/m", None),
            ("http://h:1/sse", "//other/m", None),
        ] {
            assert_eq!(join(base, reference).as_deref(), expected, "{base} {reference}");
        }
    }
}
