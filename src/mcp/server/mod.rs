//! One configured server: connecting, reconnecting, and what it offers.
//!
//! A connection is opened by who needs it first, on a thread of its own; everybody else waits for that. A connection
//! that is lost is opened again by the next call, with pauses that grow while that fails. What a server did with a
//! call nobody knows once it is lost: a call is never repeated, but where the server says that it has not run it.

mod connect;
mod run;

use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::secret::Vault;
use crate::mcp::client::Client;
use crate::mcp::config::{Entry, Transport as Way};
use crate::mcp::fault::Fault;
use crate::mcp::http::Authority;
use crate::mcp::log::Log;
use crate::mcp::peer::Peer;
use crate::mcp::question::Questions;
use connect::read_offer;
use crossbeam_channel::{Receiver, bounded, select};
pub use run::{sign_in_hint, wider_hint};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Pauses before a server over HTTP is tried again that failed for the moment.
const TRY_AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// Pause after a failed connection, in which calls fail at once; doubled by each further failure.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Pause before a changed list is read: changes come in bursts.
const SETTLE: Duration = Duration::from_millis(100);
/// Time for a server to end in order.
pub const END: Duration = Duration::from_secs(2);

/// Gives a server over HTTP its credential.
pub type Authorities = Box<dyn Fn(&Entry) -> Option<Arc<dyn Authority>> + Send + Sync>;

/// Signs in to a server for what its challenge names. False if the user does not want that, or it fails.
pub type Widen = Box<dyn Fn(&Entry, &str, &CancelToken) -> bool + Send + Sync>;

/// Takes the address of a resource that has changed.
type Updated = Box<dyn Fn(&str) + Send + Sync>;

/// What all servers of a session share.
pub struct Context {
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub env: Env,
    pub vault: Vault,
    pub log: Arc<Log>,
    /// Ends everything.
    pub cancel: CancelToken,
    /// Gives a server over HTTP its credential.
    pub authority: Authorities,
    /// Asks the user what servers ask; none if nobody can be asked.
    pub questions: Option<Questions>,
    /// Signs in for more than before, if the user wants that; none if nobody can be asked.
    pub widen: Option<Widen>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Not needed yet: what it offers is known from before.
    Waiting,
    Connecting,
    Connected,
    /// The connection was lost; the next call opens it again.
    Lost(String),
    Failed(String),
    /// The server wants a sign-in. Holds its challenge, if it sent one.
    NeedsSignIn(Option<String>),
    Disabled,
}

impl State {
    /// The reference's word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Lost(_) => "disconnected",
            Self::Failed(_) => "failed",
            Self::NeedsSignIn(_) => "needs-auth",
            Self::Disabled => "disabled",
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Lost(text) | Self::Failed(text) => Some(text),
            _ => None,
        }
    }
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// As the server lists them; the first one of a name.
    pub tools: Vec<Value>,
    pub prompts: Vec<Value>,
    pub instructions: Option<String>,
    pub has_resources: bool,
}

pub struct Server {
    entry: Mutex<Arc<Entry>>,
    pub(super) context: Arc<Context>,
    /// Cancelled when the session has no use for the server any more.
    cancel: CancelToken,
    slot: Mutex<Slot>,
    /// Called when the state or the offer has changed.
    changed: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Called with the address of a resource that was read and has changed.
    updated: OnceLock<Updated>,
    /// A changed list is being read.
    refreshing: AtomicBool,
}

struct Slot {
    state: State,
    client: Option<Client>,
    /// Disconnected when the attempt that is under way has ended.
    opening: Option<Receiver<()>>,
    offer: Arc<Offer>,
    failures: u32,
    /// Until then calls fail at once.
    closed_until: Option<Instant>,
    /// What the server said when it wanted more scopes for a request.
    wants: Option<String>,
    /// Disconnected when the sign-in for more scopes that is under way has ended.
    widening: Option<Receiver<()>>,
}

impl Server {
    /// `offer`: what is known of it from before.
    pub fn new(entry: Entry, context: Arc<Context>, offer: Option<Offer>) -> Arc<Self> {
        let state = if entry.is_enabled() { State::Waiting } else { State::Disabled };
        Arc::new(Self {
            entry: Mutex::new(Arc::new(entry)),
            cancel: context.cancel.child(),
            context,
            slot: Mutex::new(Slot {
                state,
                client: None,
                opening: None,
                offer: Arc::new(offer.unwrap_or_default()),
                failures: 0,
                closed_until: None,
                wants: None,
                widening: None,
            }),
            changed: OnceLock::new(),
            updated: OnceLock::new(),
            refreshing: AtomicBool::new(false),
        })
    }

    /// Sets what is called when the state or the offer has changed, once.
    pub fn when_changed(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.changed.set(Box::new(call));
    }

    /// Sets what is called with the address of a resource that was read and has changed, once.
    pub fn when_updated(&self, call: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.updated.set(Box::new(call));
    }

    /// The server says that a resource has changed.
    pub(super) fn resource_updated(&self, uri: &str) {
        let client = self.slot().client.clone();
        if let (Some(client), Some(updated)) = (client, self.updated.get())
            && client.is_news(uri)
        {
            updated(uri);
        }
    }

    pub fn entry(&self) -> Arc<Entry> {
        lock(&self.entry).clone()
    }

    pub fn name(&self) -> String {
        self.entry().name.clone()
    }

    pub fn state(&self) -> State {
        self.slot().state.clone()
    }

    /// What the server said when it wanted more scopes than the sign-in has.
    pub fn wants(&self) -> Option<String> {
        self.slot().wants.clone()
    }

    /// The user has another sign-in now.
    pub fn wants_nothing(&self) {
        self.slot().wants = None;
    }

    pub fn offer(&self) -> Arc<Offer> {
        self.slot().offer.clone()
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        lock(&self.slot)
    }

    fn tell(&self) {
        if let Some(changed) = self.changed.get() {
            changed();
        }
    }

    /// An error of this server, for people and the model.
    pub fn error(&self, text: impl std::fmt::Display) -> String {
        format!("MCP server \"{}\": {text}", self.name())
    }

    /// The connection, opened if need be. The error names the server.
    pub fn client(self: &Arc<Self>, cancel: &CancelToken) -> Result<Client, Fault> {
        let opening = {
            let mut slot = self.slot();
            if let Some(client) = slot.client.as_ref().filter(|client| !client.peer.is_closed()) {
                return Ok(client.clone());
            }
            if slot.state == State::Disabled {
                return Err(Fault::Failed("it is disabled".into()));
            }
            if slot.closed_until.is_some_and(|until| Instant::now() < until)
                && let Some(error) = slot.state.error()
            {
                return Err(Fault::Failed(format!("{error} (tried a moment ago)")));
            }
            self.begin(&mut slot)
        };
        self.tell();
        select! {
            recv(opening) -> _ => {}
            recv(cancel.receiver()) -> _ => return Err(Fault::Aborted),
        }
        let slot = self.slot();
        match (&slot.client, &slot.state) {
            (Some(client), _) => Ok(client.clone()),
            (None, State::NeedsSignIn(challenge)) => Err(Fault::SignIn(challenge.clone())),
            (None, state) => Err(Fault::Failed(state.error().unwrap_or("it was closed").to_owned())),
        }
    }

    /// Opens the connection in the background, if it is neither open nor being opened.
    pub fn start(self: &Arc<Self>) {
        let mut slot = self.slot();
        if slot.client.is_none() && slot.state != State::Disabled {
            self.begin(&mut slot);
            drop(slot);
            self.tell();
        }
    }

    /// Waits for the attempt to connect that is under way. False at `until`.
    pub fn wait(&self, until: Instant, cancel: &CancelToken) -> bool {
        let Some(opening) = self.slot().opening.clone() else { return true };
        select! {
            recv(opening) -> _ => true,
            recv(cancel.receiver()) -> _ => false,
            default(until.saturating_duration_since(Instant::now())) => false,
        }
    }

    /// The attempt that is under way, or a new one.
    fn begin(self: &Arc<Self>, slot: &mut Slot) -> Receiver<()> {
        if let Some(opening) = &slot.opening {
            return opening.clone();
        }
        let (done, opening) = bounded::<()>(0);
        slot.opening = Some(opening.clone());
        slot.state = State::Connecting;
        slot.client = None;
        let server = self.clone();
        let work = move || {
            let _done = done;
            server.open();
        };
        let thread = Thread::named("mcp-connect").stack(1 << 20).start(work);
        if let Err(error) = thread {
            slot.opening = None;
            slot.state = State::Failed(format!("cannot start a thread: {error}"));
        }
        opening
    }

    fn open(self: &Arc<Self>) {
        let cancel = &self.cancel;
        let is_remote = matches!(self.entry().transport(), Way::Http { .. });
        let mut pauses = TRY_AGAIN.iter();
        let outcome = loop {
            let outcome = self.connect(cancel);
            match (&outcome, pauses.next()) {
                (Err(fault), Some(pause))
                    if is_remote && fault.is_passing() && !cancel.wait_timeout(*pause) => {}
                _ => break outcome,
            }
        };
        let mut slot = self.slot();
        slot.opening = None;
        match outcome {
            // Switched off meanwhile.
            Ok((client, _)) if slot.state == State::Disabled || cancel.is_cancelled() => {
                drop(slot);
                return client.peer.close(Instant::now() + END);
            }
            Ok((client, offer)) => {
                slot.client = Some(client);
                slot.offer = Arc::new(offer);
                slot.state = State::Connected;
                slot.failures = 0;
                slot.closed_until = None;
            }
            Err(_) if slot.state == State::Disabled || cancel.is_cancelled() => {}
            Err(Fault::SignIn(challenge)) => slot.state = State::NeedsSignIn(challenge),
            Err(Fault::Scope(challenge)) => slot.state = State::NeedsSignIn(Some(challenge)),
            Err(fault) => {
                let pause = BACKOFF.saturating_mul(1 << slot.failures.min(6)).min(BACKOFF_MAX);
                slot.failures += 1;
                slot.closed_until = Some(Instant::now() + pause);
                slot.state = State::Failed(fault.to_string());
            }
        }
        drop(slot);
        self.tell();
    }

    /// The connection of `peer` is over.
    fn lost(self: &Arc<Self>, peer: &Peer) {
        let mut slot = self.slot();
        if slot.client.as_ref().is_some_and(|client| client.peer.is(peer)) {
            slot.client = None;
            if slot.state == State::Connected {
                slot.state = State::Lost(peer.reason().unwrap_or_default());
            }
            drop(slot);
            self.tell();
        }
    }

    /// Opens the connection anew, with the entry as it is now.
    pub fn reconnect(self: &Arc<Self>, cancel: &CancelToken) -> Result<(), String> {
        self.close(Instant::now() + END);
        {
            let mut slot = self.slot();
            slot.closed_until = None;
            slot.failures = 0;
            slot.wants = None;
        }
        self.client(cancel).map(drop).map_err(|fault| self.fault_text(&fault))
    }

    /// Takes up a changed entry. A server that was switched off is closed, one that was switched on is not started.
    pub fn set_entry(self: &Arc<Self>, entry: Entry) {
        let (was, is) = (self.entry().is_enabled(), entry.is_enabled());
        *lock(&self.entry) = Arc::new(entry);
        if was != is {
            self.slot().state = if is { State::Waiting } else { State::Disabled };
            if !is {
                self.close(Instant::now() + END);
            }
        }
        self.tell();
    }

    /// Ends the connection, also one that is being opened, for good; the server has until `until` to end in order.
    pub fn end(&self, until: Instant) {
        self.cancel.cancel();
        self.close(until);
    }

    /// Ends the connection; the server has until `until` to end in order.
    pub fn close(&self, until: Instant) {
        let client = {
            let mut slot = self.slot();
            if slot.state == State::Connected {
                slot.state = State::Waiting;
            }
            slot.client.take()
        };
        if let Some(client) = client {
            client.peer.close(until);
        }
    }

    /// Reads the lists again, after the server said that they have changed.
    pub(super) fn refresh(self: &Arc<Self>) {
        if self.refreshing.swap(true, Ordering::SeqCst) {
            return;
        }
        let server = self.clone();
        let work = move || {
            let client = server.slot().client.clone();
            // What changes from here on is announced again.
            let is_over = client.as_ref().is_none_or(|client| client.peer.over().wait_timeout(SETTLE));
            server.refreshing.store(false, Ordering::SeqCst);
            if let (Some(client), false) = (client, is_over)
                && let Ok(offer) = read_offer(&client, client.peer.over())
            {
                server.slot().offer = Arc::new(offer);
                server.tell();
            }
        };
        let thread = Thread::named("mcp-refresh").stack(1 << 20).start(work);
        if thread.is_err() {
            self.refreshing.store(false, Ordering::SeqCst);
        }
    }
}

impl Offer {
    /// The object that is kept in a file.
    pub fn to_json(&self) -> Value {
        json!({"tools": self.tools, "prompts": self.prompts, "instructions": self.instructions,
            "resources": self.has_resources})
    }

    pub fn from_json(fields: &Map<String, Value>) -> Self {
        let list = |name: &str| fields.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        Self {
            tools: list("tools"),
            prompts: list("prompts"),
            instructions: fields.get("instructions").and_then(Value::as_str).map(str::to_owned),
            has_resources: fields.get("resources") == Some(&Value::Bool(true)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
