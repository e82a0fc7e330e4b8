//! One extension: where it comes from, its program, and what it has registered.

use super::account::OfAccounts;
use super::component::Remote;
use super::connection::Connection;
use super::find::Found;
use super::limit::INITIALIZE_MAX;
use super::registration::{Registration, ServerEntry};
use super::request::Pulse;
use super::sign_in::News;
use crate::base::cancel::CancelToken;
use crate::runtime::addition::Owner;
use crate::runtime::lent::RegisteredServer;
use crate::runtime::nested_calls::Calls;
use crate::runtime::ui::Change;
use crate::tools::truncate::size;
use crossbeam_channel::{Sender, at, select};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The event whose handlers may keep a tool from running: it waits for extensions that are still being started.
pub(super) const GATE: &str = "tool_call";

/// Time for the reader of a stream to take an event.
const STREAM_MAX: Duration = Duration::from_secs(30);

pub struct Instance {
    /// The id that messages name it by.
    pub id: String,
    rank: usize,
    pub found: Found,
    state: Mutex<State>,
    /// Milliseconds from the start of the program to its answer.
    start_ms: AtomicU64,
    /// `session_start` was sent.
    greeted: AtomicBool,
    /// Cancelled when its program has answered `initialize`, or has failed; and when nobody has to wait for that.
    answered: CancelToken,
    /// Cancelled when what its program has answered to `initialize` is taken in.
    taken: CancelToken,
    /// Held while what is registered is taken into the session: the newest has to be the last.
    pub(super) applying: Mutex<()>,
    pub(super) of_accounts: OfAccounts,
    pub(super) pulse: Arc<Pulse>,
    /// Its program is to say when it has loaded it.
    loading: AtomicBool,
    /// The user was told that a prompt goes without it.
    missed: AtomicBool,
    /// The user was told that a tool call waits for it.
    waited_for: AtomicBool,
    /// Cancelled when its program will find out no more models of providers.
    models_found: CancelToken,
    /// Cancelled when its start is over, and it was told that the session began.
    ready: CancelToken,
}

#[derive(Default)]
struct State {
    registration: Arc<Registration>,
    connection: Option<Arc<Connection>>,
    /// Started, or on the way.
    has_begun: bool,
    begun: Option<Instant>,
    /// When its program last said that it is at work on the start.
    last_sign: Option<Instant>,
    /// How it ended, where it did.
    end: Option<String>,
    /// Tool calls under way, by their ids.
    tool_calls: HashMap<String, ToolCall>,
    /// Answers of providers that are streamed, by the ids of the streams.
    streams: HashMap<String, Sender<Value>>,
    /// Sign-ins under way, by their providers.
    logins: HashMap<String, Sender<News>>,
    /// Components on the screen, by their names.
    components: HashMap<String, Arc<Remote>>,
    /// The components of places on the screen.
    placed: HashMap<String, String>,
    /// Channels of the bus that it listens to.
    channels: HashSet<String>,
    /// Its completers of the editor, by their ids.
    completers: Vec<String>,
    /// What takes from the screen what it shows there, by places.
    shown: BTreeMap<String, Change>,
    /// What was reported once.
    reported: HashSet<String>,
    /// It has no part in the session any more.
    is_retired: bool,
}

/// A call of one of its tools that is under way.
struct ToolCall {
    updates: Sender<Map<String, Value>>,
    /// The calls of other tools that it makes.
    made: Calls,
}

impl Instance {
    pub(super) fn new(rank: usize, found: Found) -> Self {
        let registration = Arc::new(found.lazy.clone().unwrap_or_default());
        Self {
            id: format!("e{}", rank + 1),
            rank,
            found,
            state: Mutex::new(State { registration, ..State::default() }),
            start_ms: AtomicU64::new(0),
            greeted: AtomicBool::new(false),
            answered: CancelToken::new(),
            taken: CancelToken::new(),
            applying: Mutex::default(),
            of_accounts: OfAccounts::default(),
            pulse: Arc::default(),
            loading: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            waited_for: AtomicBool::new(false),
            models_found: CancelToken::new(),
            ready: CancelToken::new(),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        Owner { rank: self.rank, name: self.found.path.to_string_lossy().into_owned() }
    }

    /// The MCP servers that it brings.
    pub(super) fn servers(&self) -> Vec<RegisteredServer> {
        let extension_path = self.found.path.to_string_lossy().into_owned();
        let server = |entry: &ServerEntry| RegisteredServer {
            name: entry.name.clone(),
            config: entry.config.clone(),
            extension_path: extension_path.clone(),
        };
        let registration = self.registration();
        // They go with their program.
        let has_ended = self.state().end.is_some();
        registration.servers.iter().filter(|_| !has_ended).map(server).collect()
    }

    /// True for the one caller that is to report `error`.
    pub(super) fn is_news(&self, event: &str, error: &str) -> bool {
        self.state().reported.insert(format!("{event}: {error}"))
    }

    /// True while it waits to be used.
    pub fn is_lazy(&self) -> bool {
        self.found.lazy.is_some() && !self.state().has_begun
    }

    /// Its program has answered `initialize`, or will not.
    pub(super) fn set_answered(&self) {
        self.taken.cancel();
        self.answered.cancel();
    }

    /// True if its program has had the time to begin something.
    pub(super) fn has_begun(&self) -> bool {
        self.taken.is_cancelled()
    }

    /// Waits until the answer to `initialize` is taken in, or `over` is cancelled.
    pub(super) fn wait_until_taken(&self, over: &CancelToken) {
        wait(&self.taken, Instant::now() + INITIALIZE_MAX, over);
    }

    pub(super) fn has_answered(&self) -> bool {
        self.answered.is_cancelled()
    }

    /// Waits for the answer to `initialize`, until `limit` has passed or `cancel` is cancelled.
    pub(super) fn wait_for_answer(&self, limit: Instant, cancel: &CancelToken) {
        wait(&self.answered, limit, cancel);
    }

    /// True if its program goes on loading it after the answer.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Relaxed)
    }

    /// True if it has a handler of `tool_call`, or its file names the event.
    pub(super) fn may_gate(&self) -> bool {
        let has_handler = self.registration().events.iter().any(|known| known.event == GATE);
        has_handler || self.found.mentions(GATE)
    }

    /// True for the one caller that is told that it is loaded.
    pub(super) fn has_loaded(&self) -> bool {
        self.loading.swap(false, Ordering::Relaxed)
    }

    /// True once for an instance that is still being started.
    pub(super) fn is_missed(&self) -> bool {
        let is_missing = self.start_ms() == 0 && self.is_coming();
        is_missing && !self.missed.swap(true, Ordering::Relaxed)
    }

    /// True once, for the one caller that tells of the wait.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waited_for.swap(true, Ordering::Relaxed)
    }

    /// Its program says that it is at work on the start.
    pub(super) fn give_sign(&self) {
        self.state().last_sign = Some(Instant::now());
    }

    pub(super) fn last_sign(&self) -> Option<Instant> {
        self.state().last_sign
    }

    /// Nobody has to wait for its start any more.
    pub(super) fn set_ready(&self) {
        self.answered.cancel();
        self.ready.cancel();
    }

    /// Waits until its start is over, `limit` has passed or `cancel` is cancelled.
    pub(super) fn wait_until_ready(&self, limit: Instant, cancel: &CancelToken) {
        wait(&self.ready, limit, cancel);
    }

    /// Waits until its start is over, `limit` has passed, which may move on, or `cancel` is cancelled.
    pub(super) fn await_ready(&self, limit: impl Fn() -> Instant, cancel: &CancelToken) {
        while self.is_coming() && !cancel.is_cancelled() && Instant::now() < limit() {
            self.wait_until_ready(limit(), cancel);
        }
    }

    /// True if a start is under way that is not over.
    pub(super) fn is_coming(&self) -> bool {
        !self.ready.is_cancelled()
    }

    /// Gives up its part in the session, also if it is still being started.
    pub(super) fn retire(&self) {
        self.state().is_retired = true;
    }

    pub(super) fn is_retired(&self) -> bool {
        self.state().is_retired
    }

    pub(super) fn add_completer(&self, id: &str) {
        let mut state = self.state();
        if !state.completers.iter().any(|known| known == id) {
            state.completers.push(id.to_owned());
        }
    }

    pub(super) fn completers(&self) -> Vec<String> {
        self.state().completers.clone()
    }

    /// Notes what takes a change from the screen again.
    pub(super) fn showed(&self, place: String, undo: Option<Change>) {
        let mut state = self.state();
        match undo {
            Some(undo) => drop(state.shown.insert(place, undo)),
            None => drop(state.shown.remove(&place)),
        }
    }

    pub(super) fn take_shown(&self) -> Vec<Change> {
        std::mem::take(&mut self.state().shown).into_values().collect()
    }

    /// Milliseconds from its start to its answer, at least 1; 0 before that.
    pub fn start_ms(&self) -> u64 {
        self.start_ms.load(Ordering::Relaxed)
    }

    pub fn registration(&self) -> Arc<Registration> {
        self.state().registration.clone()
    }

    /// What it is and what it has registered, for people.
    pub(super) fn describe(&self) -> String {
        let scope = self.found.source["scope"].as_str().unwrap_or_default();
        let mut text = format!("{} ({scope})\n  {}\n", self.found.name, self.found.path.display());
        let state = match self.connection() {
            Some(_) if self.is_loading() => "is still being loaded".to_owned(),
            Some(connection) => {
                let memory = connection.memory_bytes().map(|bytes| format!(", {}", size(bytes)));
                format!("running, started in {} ms{}", self.start_ms(), memory.unwrap_or_default())
            }
            None if self.is_lazy() => "started when it is used".to_owned(),
            None => self.end_text(),
        };
        text.push_str(&format!("  {state}\n"));
        let Registration {
            tools,
            commands,
            flags,
            shortcuts,
            events,
            providers,
            virtual_models,
            servers,
            ..
        } = &*self.registration();
        let text_of = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let full = |entry: &Value| format!("{}/{}", text_of(entry, "provider"), text_of(entry, "id"));
        let rows = [
            ("tools", join(tools.iter().map(|tool| tool.info.spec.name.clone()))),
            ("commands", join(commands.iter().map(|command| format!("/{}", command.name)))),
            (
                "flags",
                join(flags.iter().map(|flag| match &flag.description {
                    Some(about) => format!("--{} ({about})", flag.name),
                    None => format!("--{}", flag.name),
                })),
            ),
            ("shortcuts", join(shortcuts.iter().map(|shortcut| shortcut.key.clone()))),
            ("providers", join(providers.iter().map(|provider| text_of(provider, "name")))),
            ("virtual models", join(virtual_models.iter().map(full))),
            ("MCP servers", join(servers.iter().map(|server| server.name.clone()))),
            ("events", join(events.iter().map(|subscription| subscription.event.clone()))),
        ];
        for (kind, names) in rows.iter().filter(|(_, names)| !names.is_empty()) {
            text.push_str(&format!("  {kind}: {names}\n"));
        }
        text
    }

    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        self.state().connection.clone().filter(|connection| !connection.is_over())
    }

    /// True if its program was ended by pi.
    pub(super) fn is_shut_down(&self) -> bool {
        let state = self.state();
        state.has_begun && state.connection.is_none() && state.end.is_none()
    }

    pub(super) fn take_connection(&self) -> Option<Arc<Connection>> {
        self.state().connection.take()
    }

    /// True for the one caller that is to start it.
    pub(super) fn begins_now(&self) -> bool {
        !std::mem::replace(&mut self.state().has_begun, true)
    }

    /// True if `session_start` was sent before; it counts as sent from now on.
    pub(super) fn is_greeted(&self) -> bool {
        self.greeted.swap(true, Ordering::Relaxed)
    }

    pub(super) fn end_text(&self) -> String {
        self.state().end.clone().unwrap_or_else(|| "is not running".to_owned())
    }

    /// Takes part by this connection from now on. False if it has no part in the session any more.
    pub(super) fn enter(&self, connection: &Arc<Connection>) -> bool {
        self.begins_now();
        let mut state = self.state();
        state.connection = Some(connection.clone()).filter(|_| !state.is_retired);
        state.begun = Some(Instant::now());
        // That Node starts is a sign of pi's own host.
        state.last_sign = self.found.is_script().then(Instant::now);
        !state.is_retired
    }

    /// Notes how its program ended. False if that is known already, or it has another program now.
    pub(super) fn has_ended(&self, connection: &Connection, how: &str) -> bool {
        let mut state = self.state();
        let is_current = state.connection.as_deref().is_some_and(|known| std::ptr::eq(known, connection));
        let is_news = is_current && state.end.is_none();
        self.models_found.cancel();
        if is_news {
            state.end = Some(how.to_owned());
        }
        is_news
    }

    /// Takes its part of the answer to `initialize`. Gives what is wrong with entries that are left out.
    pub(super) fn take(&self, answer: &Value) -> Result<Vec<String>, String> {
        let own =
            answer["extensions"].as_array().and_then(|all| all.iter().find(|one| one["id"] == *self.id));
        if let Some(error) = own.and_then(|own| own["error"].as_str()) {
            return Err(error.to_owned());
        }
        if own.is_some_and(|own| own["loading"] == true) {
            self.loading.store(true, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let faults = self.register(own.unwrap_or(answer));
        self.set_started();
        Ok(faults)
    }

    /// Takes its part of the answer to `renew` in place of all that it had registered and shown before.
    pub(super) fn renew(&self, answer: &Value) -> Result<Vec<String>, String> {
        {
            let mut state = self.state();
            state.registration = Arc::default();
            state.components.clear();
            state.placed.clear();
            state.channels.clear();
            state.completers.clear();
        }
        self.take(answer)
    }

    /// Notes how long its start took.
    pub(super) fn set_started(&self) {
        let begun = self.state().begun;
        let taken = begun.map_or(0, |begun| u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.start_ms.store(taken.max(1), Ordering::Relaxed);
    }

    /// It could not be loaded; others of its program may.
    pub(super) fn fail(&self, why: &str) {
        let mut state = self.state();
        state.end = Some(why.to_owned());
        state.connection = None;
    }

    /// Forgets what it has registered.
    pub(super) fn clear_registration(&self) {
        self.state().registration = Arc::default();
    }

    /// Waits for models of providers that are still being found out, until `limit` has passed or `cancel` is
    /// cancelled.
    pub(super) fn await_models(&self, limit: Instant, cancel: &CancelToken) {
        if self.registration().models_pending {
            wait(&self.models_found, limit, cancel);
        }
    }

    /// Adds to what it has registered. Gives what is wrong with entries that are left out.
    pub(super) fn register(&self, fields: &Value) -> Vec<String> {
        let mut state = self.state();
        let faults = Arc::make_mut(&mut state.registration).add(fields);
        if fields["modelsPending"] == false {
            self.models_found.cancel();
        }
        faults
    }

    pub(super) fn unregister(&self, fields: &Value) {
        Arc::make_mut(&mut self.state().registration).remove(fields);
    }

    /// Sends updates of a tool call to `sender`, and records the calls that it makes, until it is forgotten.
    pub(super) fn follow(&self, call: &str, sender: Sender<Map<String, Value>>) {
        let known = ToolCall { updates: sender, made: Calls::new(call) };
        self.state().tool_calls.insert(call.to_owned(), known);
    }

    /// Gives the calls that a tool call has made.
    pub(super) fn forget(&self, call: &str) -> Option<Calls> {
        let mut made = self.state().tool_calls.remove(call)?.made;
        made.close();
        Some(made)
    }

    /// Records what a tool call under way does. None if there is no such call.
    pub(super) fn record<T>(&self, call: &str, record: impl FnOnce(&mut Calls) -> T) -> Option<T> {
        self.state().tool_calls.get_mut(call).map(|known| record(&mut known.made))
    }

    pub(super) fn update(&self, call: &str, fields: Map<String, Value>) {
        if let Some(known) = self.state().tool_calls.get(call) {
            // An update is a snapshot: a later one follows.
            let _ = known.updates.try_send(fields);
        }
    }

    /// Sends the events of a stream to `sender`, until it is left.
    pub(super) fn attend(&self, stream: &str, sender: Sender<Value>) {
        self.state().streams.insert(stream.to_owned(), sender);
    }

    pub(super) fn leave(&self, stream: &str) {
        self.state().streams.remove(stream);
    }

    /// Passes an event of a stream on. Waits while its reader is slow, which then slows the extension.
    pub(super) fn streamed(&self, stream: &str, event: Value) {
        let sender = self.state().streams.get(stream).cloned();
        if let Some(sender) = sender {
            let _ = sender.send_timeout(event, STREAM_MAX);
        }
    }

    /// Sends what it says while it signs in at `provider` to `sender`, until that is none.
    pub(super) fn hear_login(&self, provider: &str, sender: Option<Sender<News>>) {
        let logins = &mut self.state().logins;
        match sender {
            Some(sender) => drop(logins.insert(provider.to_owned(), sender)),
            None => drop(logins.remove(provider)),
        }
    }

    /// Where news of its sign-in at `provider` go.
    pub(super) fn login(&self, provider: &str) -> Option<Sender<News>> {
        self.state().logins.get(provider).cloned()
    }

    pub(super) fn show(&self, name: &str, component: Arc<Remote>) {
        self.state().components.insert(name.to_owned(), component);
    }

    pub(super) fn hide(&self, name: &str) {
        self.state().components.remove(name);
    }

    pub(super) fn component(&self, name: &str) -> Option<Arc<Remote>> {
        self.state().components.get(name).cloned()
    }

    /// Takes a place on the screen for a component, or for none. The one before is let go of.
    pub(super) fn occupy(&self, place: &str, name: Option<&str>) {
        let mut state = self.state();
        let before = match name {
            Some(name) => state.placed.insert(place.to_owned(), name.to_owned()),
            None => state.placed.remove(place),
        };
        if let Some(before) = before.and_then(|before| state.components.remove(&before)) {
            before.close(None);
        }
    }

    /// Listens to a channel of the bus, or does not any more.
    pub(super) fn listen(&self, channel: &str, on: bool) {
        let mut state = self.state();
        if on {
            state.channels.insert(channel.to_owned());
        } else {
            state.channels.remove(channel);
        }
    }

    pub(super) fn listens(&self, channel: &str) -> bool {
        self.state().channels.contains(channel)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until `token` or `cancel` is cancelled, or `limit` has passed.
fn wait(token: &CancelToken, limit: Instant, cancel: &CancelToken) {
    select! {
        recv(token.receiver()) -> _ => {}
        recv(cancel.receiver()) -> _ => {}
        recv(at(limit)) -> _ => {}
    }
}

fn join(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
