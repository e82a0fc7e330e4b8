//! One configured server: connecting, reconnecting, and what it offers.
//!
//! A connection is opened by who needs it first, on a thread of its own; everybody else waits for that. A connection
//! that is lost is opened again by the next call, with pauses that grow while that fails. What a server did with a
//! call nobody knows once it is lost: a call is never repeated, but where the server says that it has not run it.

use super::client::{Client, Kind};
use super::config::{Entry, Scope, Transport as Way};
use super::ear::Ear;
use super::fault::Fault;
use super::http::{Authority, Http, Target};
use super::log::Log;
use super::peer::{Peer, Transport};
use super::question::Questions;
use super::stdio;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::http::Secrets;
use crate::llm::secret::Vault;
use crate::models::config_value::{self, Keep};
use crate::tools::process::peer::{self as process, Program};
use crossbeam_channel::{Receiver, bounded, select};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
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

    fn fault_text(&self, fault: &Fault) -> String {
        match fault {
            Fault::SignIn(_) => self.error(sign_in_hint(&self.entry())),
            fault => self.error(fault),
        }
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

    fn connect(self: &Arc<Self>, cancel: &CancelToken) -> Result<(Client, Offer), Fault> {
        let entry = self.entry();
        let outcome = self.connect_by(&entry, false, cancel);
        // The protocol's first transport refuses the POST that its follower begins with.
        let may_be_old = matches!(entry.transport(), Way::Http { is_old: false, .. });
        match outcome {
            Err(Fault::Status { status: 400 | 404 | 405, text }) if may_be_old => {
                let old = self.connect_by(&entry, true, cancel);
                old.map_err(|fault| match fault {
                    Fault::SignIn(_) | Fault::Aborted => fault,
                    _ => Fault::Failed(format!("HTTP status 404 or 405: {text}")),
                })
            }
            outcome => outcome,
        }
    }

    fn connect_by(
        self: &Arc<Self>,
        entry: &Entry,
        as_old: bool,
        cancel: &CancelToken,
    ) -> Result<(Client, Offer), Fault> {
        let peer = Peer::new(Box::new(Ear { server: Arc::downgrade(self), log: self.context.log.clone() }));
        let offered = match &self.context.questions {
            Some(_) => Questions::capabilities(),
            None => json!({"roots": {}}),
        };
        let timeout = entry.timeout();
        let attempt = || {
            let transport = self.transport(entry, as_old, &peer, cancel)?;
            peer.attach(transport);
            let client = Client::greet(peer.clone(), timeout, &offered, cancel)?;
            let offer = read_offer(&client, cancel)?;
            Ok((client, offer))
        };
        let outcome = attempt();
        if let Err(fault) = &outcome {
            let words = peer.last_words();
            peer.close(Instant::now() + END);
            // A program that does not answer may have said why.
            if let (Fault::Timeout(_), Some(words)) = (fault, words) {
                return Err(Fault::Failed(format!("{fault}:\n{words}")));
            }
            return outcome;
        }
        let (server, closing) = (Arc::downgrade(self), peer.clone());
        peer.over()
            .on_cancel(move || {
                if let Some(server) = server.upgrade() {
                    server.lost(&closing);
                }
            })
            .forget();
        outcome
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

    fn transport(
        &self,
        entry: &Entry,
        as_old: bool,
        peer: &Peer,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Transport>, Fault> {
        // A client writes values as they are.
        let is_lent = entry.scope == Scope::Client;
        let resolve = |pairs: &[(&str, &str)], what: &str| -> Result<Vec<(String, String)>, Fault> {
            let resolve = |(name, value): &(&str, &str)| {
                if is_lent {
                    return Ok(((*name).to_owned(), (*value).to_owned()));
                }
                let place = format!("{what} \"{name}\"");
                let value = config_value::resolve(value, &place, Keep::Process, &self.context.env, cancel);
                let value = value.map_err(Fault::Failed)?;
                Ok(((*name).to_owned(), value.expose().to_owned()))
            };
            pairs.iter().map(resolve).collect()
        };
        match entry.transport() {
            Way::Stdio { command, args, env, cwd } => {
                let home = |text: &str| match is_lent {
                    true => text.to_owned(),
                    false => expand_home(text, self.context.home.as_deref()),
                };
                let env = resolve(&env, "env")?;
                for (name, value) in &env {
                    self.context.vault.learn_if_random(name, value);
                }
                let env = stdio::environment(&env);
                let cwd =
                    cwd.map_or_else(|| self.context.cwd.clone(), |cwd| self.context.cwd.join(home(cwd)));
                let name = home(command);
                let path = process::find(&name, &cwd, &env).map_err(|error| {
                    Fault::Failed(format!("Cannot start {name} in {}: {error}", cwd.display()))
                })?;
                let args = args.iter().map(|arg| home(arg).into()).collect();
                let program = Program { path, args, cwd, env };
                let program = match entry.memory() {
                    Some(megabytes) => stdio::limited(program, megabytes),
                    None => program,
                };
                Ok(Box::new(stdio::start(&program, &entry.name, peer, &self.context.log)?))
            }
            Way::Http { url, headers, is_old } => {
                let written = headers.clone();
                let headers = resolve(&headers, "header")?;
                let mut secrets = Secrets::new(&self.context.vault);
                for ((name, value), (_, text)) in headers.iter().zip(&written) {
                    // What comes from elsewhere is likely a secret.
                    if is_lent || value != text {
                        secrets.add(value);
                        secrets.mask_header(name);
                    }
                }
                let target = Target {
                    url: url.to_owned(),
                    headers,
                    secrets,
                    authority: (self.context.authority)(entry),
                    is_old: is_old || as_old,
                };
                Ok(Box::new(Http::open(target, peer, entry.timeout(), cancel)?))
            }
        }
    }

    /// Runs a request, and opens the connection before if need be. The error names the server. A request that only
    /// reads is made once more after a passing failure; another one only when the server has certainly not run it.
    pub fn run<T>(
        self: &Arc<Self>,
        only_reads: bool,
        cancel: &CancelToken,
        request: impl Fn(&Client) -> Result<T, Fault>,
    ) -> Result<T, String> {
        let mut is_first = true;
        loop {
            let outcome = self.client(cancel).and_then(|client| {
                let outcome = request(&client);
                if let Err(Fault::SessionGone | Fault::SignIn(_)) = &outcome {
                    self.forget(&client);
                }
                outcome
            });
            let fault = match outcome {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            let again = fault == Fault::SessionGone || (only_reads && fault.is_passing());
            if !(again && std::mem::take(&mut is_first)) || cancel.wait_timeout(again_after(&fault)) {
                if let Fault::SignIn(challenge) = &fault {
                    self.slot().state = State::NeedsSignIn(challenge.clone());
                    self.tell();
                }
                return Err(self.fault_text(&fault));
            }
        }
    }

    /// Leaves a connection that is of no use any more. Requests that are under way on it end by themselves.
    fn forget(&self, client: &Client) {
        let mut slot = self.slot();
        if slot.client.as_ref().is_some_and(|known| known.peer.is(&client.peer)) {
            slot.client = None;
        }
    }

    /// Opens the connection anew, with the entry as it is now.
    pub fn reconnect(self: &Arc<Self>, cancel: &CancelToken) -> Result<(), String> {
        self.close(Instant::now() + END);
        {
            let mut slot = self.slot();
            slot.closed_until = None;
            slot.failures = 0;
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

/// What a user can do about a server that refuses pi.
pub fn sign_in_hint(entry: &Entry) -> String {
    match (entry.provider(), entry.has_authorization()) {
        (None, false) if entry.scope == Scope::Client => {
            format!("it wants a sign-in: /mcp login {}", entry.name)
        }
        (Some(provider), _) => format!("it wants a sign-in: pi auth login {provider}"),
        (None, true) => "the credential in its headers was refused".to_owned(),
        (None, false) => {
            format!("it wants a sign-in: pi mcp login {0} (in a session: /mcp login {0})", entry.name)
        }
    }
}

fn again_after(fault: &Fault) -> Duration {
    if *fault == Fault::SessionGone { Duration::ZERO } else { TRY_AGAIN[0] }
}

fn read_offer(client: &Client, cancel: &CancelToken) -> Result<Offer, Fault> {
    let list = |what: &str, kind: Kind| match client.offers(what) {
        true => client.list(kind, cancel),
        false => Ok(Vec::new()),
    };
    let mut tools = list("tools", Kind::Tools)?;
    let mut names = std::collections::BTreeSet::new();
    tools
        .retain(|tool| names.insert(tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()));
    Ok(Offer {
        tools,
        prompts: list("prompts", Kind::Prompts)?,
        instructions: client.instructions.clone(),
        has_resources: client.offers("resources"),
    })
}

/// The path that `~` and `~/…` mean.
fn expand_home(text: &str, home: Option<&Path>) -> String {
    let rest = match text {
        "~" => Some(""),
        text => text.strip_prefix("~/"),
    };
    match (rest, home) {
        (Some(""), Some(home)) => home.to_string_lossy().into_owned(),
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => text.to_owned(),
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
