//! A JSON-RPC conversation with a server, over any transport.
//!
//! Many threads may ask at once; each waits for its own answer, with a limit that progress starts anew and a cancel
//! token. An answer that nobody waits for (late, twice, never asked for) is dropped. What the server asks is answered
//! by a [`Handler`].

use super::fault::Fault;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::jsonrpc::message::{self, Failure, METHOD_NOT_FOUND, Message};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, never, select};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum bytes of a message.
pub const MESSAGE_MAX: usize = 16 << 20;

/// Questions of a server that are answered at a time; more are refused.
const QUESTIONS_MAX: usize = 8;

/// News of a request's progress that are passed on at once; after that there is a [`PAUSE`] behind each.
const BURST: usize = 32;
const PAUSE: Duration = Duration::from_millis(100);

/// Carries messages to a server. What comes from there goes to [`Peer::receive`].
pub trait Transport: Send + Sync {
    /// Hands a message over without waiting for the server. `request` is the id if it is to be answered; `cancel` ends
    /// waiting for the answer.
    fn send(
        &self,
        peer: &Peer,
        message: Vec<u8>,
        request: Option<u64>,
        cancel: &CancelToken,
    ) -> Result<(), Fault>;

    /// Takes up the version that both sides have agreed on, and sends the `message` that ends the greeting.
    fn greeted(
        &self,
        peer: &Peer,
        version: &str,
        message: Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<(), Fault> {
        let _ = version;
        self.send(peer, message, None, cancel)
    }

    /// Ends the connection, and waits until `until` for the server to end in order.
    fn close(&self, until: Instant);

    /// What the server said last outside of the protocol.
    fn last_words(&self) -> Option<String> {
        None
    }
}

/// Answers what the server asks, and takes what it tells.
pub trait Handler: Send + Sync {
    /// The answer to a request; none if the method is unknown. May ask the user: `cancel` ends that.
    fn request(&self, method: &str, params: &Value, cancel: &CancelToken) -> Option<Result<Value, Failure>>;

    fn notification(&self, method: &str, params: &Value);
}

/// How a request is made.
pub struct Options<'a> {
    /// Time without an answer or progress.
    pub timeout: Duration,
    pub cancel: &'a CancelToken,
    /// Receives the parameters of progress notifications: the newest, if there are many.
    pub progress: Option<&'a dyn Fn(&Value)>,
}

/// Cheap to clone; clones are one conversation.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    next_id: AtomicU64,
    state: Mutex<State>,
    transport: OnceLock<Box<dyn Transport>>,
    handler: Box<dyn Handler>,
    questions: AtomicUsize,
    /// Ends all that is under way when the conversation is over.
    over: CancelToken,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<u64, Waiting>,
    /// Why the conversation is over.
    closed: Option<Fault>,
}

struct Waiting {
    answer: Sender<Result<Value, Fault>>,
    /// Both ends: what is oldest gives way.
    progress: Option<(Sender<Value>, Receiver<Value>)>,
}

impl Peer {
    pub fn new(handler: Box<dyn Handler>) -> Self {
        Self(Arc::new(Inner {
            next_id: AtomicU64::new(1),
            state: Mutex::default(),
            transport: OnceLock::new(),
            handler,
            questions: AtomicUsize::new(0),
            over: CancelToken::new(),
        }))
    }

    /// Sets what carries the messages, once.
    pub fn attach(&self, transport: Box<dyn Transport>) {
        let _ = self.0.transport.set(transport);
    }

    /// Cancelled when the conversation is over.
    pub fn over(&self) -> &CancelToken {
        &self.0.over
    }

    /// True if both are one conversation.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Why the conversation is over; none while it goes on.
    pub fn reason(&self) -> Option<String> {
        self.state().closed.as_ref().map(Fault::to_string)
    }

    pub fn is_closed(&self) -> bool {
        self.state().closed.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transport(&self) -> Result<&dyn Transport, Fault> {
        self.0
            .transport
            .get()
            .map(|transport| &**transport)
            .ok_or_else(|| Fault::Closed("not started".into()))
    }

    /// Asks the server and waits for the answer.
    pub fn request(&self, method: &str, mut params: Value, options: &Options<'_>) -> Result<Value, Fault> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = bounded(1);
        let (progress, progressed) = match options.progress {
            Some(_) => {
                let (sender, receiver) = bounded(BURST);
                if let Value::Object(params) = &mut params {
                    let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
                    meta["progressToken"] = id.into();
                }
                (Some((sender, receiver.clone())), receiver)
            }
            None => (None, never()),
        };
        {
            let mut state = self.state();
            if let Some(fault) = &state.closed {
                return Err(fault.clone());
            }
            state.waiting.insert(id, Waiting { answer, progress });
        }
        let cancel = options.cancel.child();
        let sent = self.send_to_server(&message::request(id, method, &params), Some(id), &cancel);
        let outcome = sent.and_then(|()| wait(&answered, &progressed, options));
        self.state().waiting.remove(&id);
        if let Err(fault @ (Fault::Timeout(_) | Fault::Aborted)) = &outcome
            && method != "initialize"
        {
            let params = json!({"requestId": id, "reason": fault.to_string()});
            let _ = self.notify("notifications/cancelled", &params);
        }
        cancel.cancel();
        outcome
    }

    /// Tells the server something.
    pub fn notify(&self, method: &str, params: &Value) -> Result<(), Fault> {
        self.send_to_server(&message::notification(method, params), None, &self.0.over)
    }

    fn send_to_server(
        &self,
        message: &impl Serialize,
        request: Option<u64>,
        cancel: &CancelToken,
    ) -> Result<(), Fault> {
        let bytes = serde_json::to_vec(message).map_err(|error| Fault::Failed(error.to_string()))?;
        if bytes.len() > MESSAGE_MAX {
            return Err(Fault::Failed(format!(
                "the message has {} MB, the limit is 16 MB",
                bytes.len() >> 20
            )));
        }
        self.transport()?.send(self, bytes, request, cancel)
    }

    /// Ends the greeting with the version that both sides have agreed on.
    pub fn greeted(&self, version: &str, cancel: &CancelToken) -> Result<(), Fault> {
        let message = message::notification("notifications/initialized", json!({}));
        let bytes = serde_json::to_vec(&message).map_err(|error| Fault::Failed(error.to_string()))?;
        self.transport()?.greeted(self, version, bytes, cancel)
    }

    /// Takes a line or an event from the server.
    pub fn receive(&self, bytes: &[u8]) {
        // The first versions of the protocol have batches.
        if bytes.trim_ascii_start().first() == Some(&b'[')
            && let Ok(Value::Array(messages)) = crate::base::lenient::read(bytes)
        {
            messages.iter().for_each(|message| self.receive_one(message.to_string().as_bytes()));
            return;
        }
        self.receive_one(bytes);
    }

    fn receive_one(&self, bytes: &[u8]) {
        match message::parse(bytes) {
            Ok(Message::Response { id, outcome }) => self.answer(&id, outcome.map_err(Fault::Refused)),
            Ok(Message::Request { id, method, params }) => self.be_asked(id, method, params),
            Ok(Message::Notification { method, params }) => self.be_told(&method, &params),
            // A print to stdout in the middle of the protocol is common, and no reason to stop.
            Err(_) => {}
        }
    }

    /// Ends the request with this id.
    pub fn answer(&self, id: &Value, outcome: Result<Value, Fault>) {
        // Some servers write numbers as texts.
        let id = id.as_u64().or_else(|| id.as_str()?.parse().ok());
        let waiting = id.and_then(|id| self.state().waiting.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.answer.try_send(outcome);
        }
    }

    /// True if somebody waits for the answer to this request.
    pub fn awaits(&self, id: u64) -> bool {
        self.state().waiting.contains_key(&id)
    }

    /// Ends all requests that are under way.
    pub fn fail_all(&self, fault: &Fault) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for (_, waiting) in waiting {
            let _ = waiting.answer.try_send(Err(fault.clone()));
        }
    }

    /// The conversation is over.
    pub fn closed(&self, fault: Fault) {
        self.state().closed.get_or_insert_with(|| fault.clone());
        self.fail_all(&fault);
        self.0.over.cancel();
    }

    /// Ends the connection, and waits until `until` for the server to end in order.
    pub fn close(&self, until: Instant) {
        self.closed(Fault::Closed("the connection was closed".into()));
        if let Ok(transport) = self.transport() {
            transport.close(until);
        }
    }

    /// What the server said last outside of the protocol.
    pub fn last_words(&self) -> Option<String> {
        self.transport().ok()?.last_words()
    }

    fn be_told(&self, method: &str, params: &Value) {
        if method == "notifications/progress" {
            let token = params.get("progressToken");
            let id = token.and_then(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()));
            let progress = id.and_then(|id| self.state().waiting.get(&id)?.progress.clone());
            if let Some((progress, progressed)) = progress
                && let Err(TrySendError::Full(params)) = progress.try_send(params.clone())
            {
                let _ = progressed.try_recv();
                let _ = progress.try_send(params);
            }
            return;
        }
        self.0.handler.notification(method, params);
    }

    /// Answers a request on a thread of its own: it may ask the user.
    fn be_asked(&self, id: Value, method: String, params: Value) {
        if method == "ping" {
            return self.reply(&id, Ok(json!({})));
        }
        let busy = self.0.questions.fetch_add(1, Ordering::SeqCst);
        let peer = self.clone();
        let asked = id.clone();
        let work = move || {
            let outcome = peer.0.handler.request(&method, &params, &peer.0.over);
            let unknown = || Err(Failure::new(METHOD_NOT_FOUND, format!("Method not found: {method}")));
            peer.reply(&asked, outcome.unwrap_or_else(unknown));
            peer.0.questions.fetch_sub(1, Ordering::SeqCst);
        };
        let started =
            busy < QUESTIONS_MAX && Thread::named("mcp-question").stack(256 << 10).start(work).is_ok();
        if !started {
            self.0.questions.fetch_sub(1, Ordering::SeqCst);
            self.reply(&id, Err(Failure::new(message::INTERNAL_ERROR, "Too many requests at once")));
        }
    }

    fn reply(&self, id: &Value, outcome: Result<Value, Failure>) {
        // A server that does not take its answer is told no more.
        let _ = match outcome {
            Ok(result) => self.send_to_server(&message::result(id, result), None, &self.0.over),
            Err(failure) => self.send_to_server(&message::failure(id, &failure), None, &self.0.over),
        };
    }
}

fn wait(
    answered: &Receiver<Result<Value, Fault>>,
    progressed: &Receiver<Value>,
    options: &Options<'_>,
) -> Result<Value, Fault> {
    let closed = || Err(Fault::Closed("the connection was closed".into()));
    let tell = |progress: &Value| options.progress.iter().for_each(|tell| tell(progress));
    let mut told = 0;
    let outcome = loop {
        select! {
            recv(answered) -> answer => break answer.unwrap_or_else(|_| closed()),
            recv(progressed) -> progress => progress.iter().for_each(tell),
            recv(options.cancel.receiver()) -> _ => return Err(Fault::Aborted),
            default(options.timeout) => return Err(Fault::Timeout(options.timeout)),
        }
        told += 1;
        if told >= BURST {
            select! {
                recv(answered) -> answer => break answer.unwrap_or_else(|_| closed()),
                recv(options.cancel.receiver()) -> _ => return Err(Fault::Aborted),
                default(PAUSE) => {}
            }
        }
    };
    // An answer comes after all progress, and may be seen before it.
    progressed.try_iter().last().iter().for_each(tell);
    outcome
}
