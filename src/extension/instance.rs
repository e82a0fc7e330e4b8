//! One extension: where it comes from, its program, and what it has registered.

use super::component::Remote;
use super::connection::{Answer, Connection, Failed, Serve};
use super::find::Found;
use super::registration::Registration;
use super::sign_in::News;
use super::{About, Extensions, INITIALIZE_MAX, PROTOCOL_VERSION, call};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::jsonrpc::message::{Failure, INVALID_PARAMS};
use crate::runtime::addition::Owner;
use crate::runtime::ui::Change;
use crate::tools::process::peer::Program;
use crate::tools::truncate::size;
use crossbeam_channel::{Sender, at, select};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for the reader of a stream to take an event.
const STREAM_MAX: Duration = Duration::from_secs(30);
/// How a program ends that is not to take part any more.
const RETIRED: &str = "was shut down";

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
    /// The session waits for its answer to `initialize`.
    starting: AtomicBool,
    /// Cancelled when its start is over, and it was told that the session began.
    ready: CancelToken,
}

#[derive(Default)]
struct State {
    registration: Arc<Registration>,
    connection: Option<Arc<Connection>>,
    /// Started, or on the way.
    has_begun: bool,
    /// How it ended, where it did.
    end: Option<String>,
    /// Tool calls under way that take updates, by their ids.
    updates: HashMap<String, Sender<Map<String, Value>>>,
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
    /// It has no part in the session any more.
    is_retired: bool,
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
            starting: AtomicBool::new(false),
            ready: CancelToken::new(),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        Owner { rank: self.rank, name: self.found.path.to_string_lossy().into_owned() }
    }

    /// True while it waits to be used.
    pub fn is_lazy(&self) -> bool {
        self.found.lazy.is_some() && !self.state().has_begun
    }

    pub(super) fn is_starting(&self) -> bool {
        self.starting.load(Ordering::Relaxed)
    }

    pub(super) fn set_starting(&self, is_starting: bool) {
        self.starting.store(is_starting, Ordering::Relaxed);
    }

    /// Nobody has to wait for its start any more.
    pub(super) fn set_ready(&self) {
        self.ready.cancel();
    }

    /// Waits until its start is over, `limit` has passed or `cancel` is cancelled.
    pub(super) fn wait_until_ready(&self, limit: Instant, cancel: &CancelToken) {
        select! {
            recv(self.ready.receiver()) -> _ => {}
            recv(cancel.receiver()) -> _ => {}
            recv(at(limit)) -> _ => {}
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
            Some(connection) => {
                let memory = connection.memory_bytes().map(|bytes| format!(", {}", size(bytes)));
                format!("running, started in {} ms{}", self.start_ms(), memory.unwrap_or_default())
            }
            None if self.is_lazy() => "started when it is used".to_owned(),
            None => self.end_text(),
        };
        text.push_str(&format!("  {state}\n"));
        let Registration { tools, commands, flags, shortcuts, events, .. } = &*self.registration();
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

    /// Takes its part of the answer to `initialize`.
    fn take(&self, answer: &Value) -> Result<(), String> {
        let own =
            answer["extensions"].as_array().and_then(|all| all.iter().find(|one| one["id"] == *self.id));
        if let Some(error) = own.and_then(|own| own["error"].as_str()) {
            return Err(error.to_owned());
        }
        self.register(own.unwrap_or(answer))
    }

    /// It could not be loaded; others of its program may.
    pub(super) fn fail(&self, why: &str) {
        let mut state = self.state();
        state.end = Some(why.to_owned());
        state.connection = None;
    }

    /// Adds to what it has registered.
    pub(super) fn register(&self, fields: &Value) -> Result<(), String> {
        let mut state = self.state();
        Arc::make_mut(&mut state.registration).add(fields)
    }

    pub(super) fn unregister(&self, fields: &Value) {
        Arc::make_mut(&mut self.state().registration).remove(fields);
    }

    /// Sends updates of a tool call to `sender`, until it is forgotten.
    pub(super) fn follow(&self, call: &str, sender: Sender<Map<String, Value>>) {
        self.state().updates.insert(call.to_owned(), sender);
    }

    pub(super) fn forget(&self, call: &str) {
        self.state().updates.remove(call);
    }

    pub(super) fn update(&self, call: &str, fields: Map<String, Value>) {
        if let Some(sender) = self.state().updates.get(call) {
            // An update is a snapshot: a later one follows.
            let _ = sender.try_send(fields);
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

/// Starts the program of `group` and waits for what its instances register. Gives why each failed, if it did.
pub(super) fn start(
    group: &[Arc<Instance>],
    extensions: &Arc<Extensions>,
    about: &About,
) -> Result<Vec<Option<String>>, String> {
    let Some(first) = group.first() else { return Ok(Vec::new()) };
    if first.is_retired() {
        return Err(RETIRED.to_owned());
    }
    let begun = Instant::now();
    let found = &first.found;
    let mut env = about.env();
    if found.consent.is_some() {
        // Compiled files beside the sources would count as a change of the project.
        env.entry("PYTHONDONTWRITEBYTECODE".into()).or_insert_with(|| "1".into());
    }
    env.extend(found.env.iter().map(|(name, value)| (name.into(), value.into())));
    let program = Program {
        path: found.program.clone(),
        args: found.args.iter().map(Into::into).collect(),
        cwd: about.cwd.clone(),
        env,
    };
    let server = Arc::new(Server { extensions: extensions.clone(), group: group.to_vec() });
    let connection = Connection::start(&program, server)
        .map_err(|error| format!("cannot be started ({}): {error}", program.path.display()))?;
    let instances: Vec<Value> = group
        .iter()
        .map(|one| {
            json!({"id": one.id, "path": one.found.path.to_string_lossy(), "args": one.found.args,
                "sourceInfo": one.found.source})
        })
        .collect();
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "referenceVersion": about.reference_version,
        "mode": about.mode,
        "hasUI": about.has_ui(),
        "cwd": about.cwd.to_string_lossy(),
        "agentDir": about.dirs.agent().to_string_lossy(),
        "executable": std::env::current_exe().ok(),
        "isProjectTrusted": about.is_trusted,
        "extensions": instances,
        "flags": about.flags,
    });
    for instance in group {
        instance.begins_now();
        let mut state = instance.state();
        if state.is_retired {
            connection.end(RETIRED);
            return Err(RETIRED.to_owned());
        }
        // Calls may come before the answer does.
        state.connection = Some(connection.clone());
    }
    let answer = connection.ask("initialize", params, Some(INITIALIZE_MAX), &CancelToken::new());
    let answer = answer.map_err(|failed| match failed {
        Failed::Late(limit) => format!("did not answer initialize within {limit:?}"),
        failed => failed.to_string(),
    });
    let answer = answer.and_then(|answer| check_version(&answer).map(|()| answer)).inspect_err(|why| {
        group.iter().for_each(|instance| instance.state().end = Some(why.clone()));
        connection.end(why);
    })?;
    let taken = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let failures: Vec<Option<String>> = group
        .iter()
        .map(|instance| {
            let taken_over = instance.take(&answer);
            match &taken_over {
                Ok(()) => instance.start_ms.store(taken, Ordering::Relaxed),
                Err(why) => instance.fail(why),
            }
            taken_over.err()
        })
        .collect();
    if failures.iter().all(Option::is_some) {
        connection.end("was shut down");
    }
    Ok(failures)
}

fn check_version(answer: &Value) -> Result<(), String> {
    match answer["protocolVersion"].as_u64() {
        Some(PROTOCOL_VERSION) => Ok(()),
        Some(version) => Err(format!(
            "speaks version {version} of the protocol; this pi speaks version {PROTOCOL_VERSION}"
        )),
        None => Err("did not say which version of the protocol it speaks".to_owned()),
    }
}

fn join(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Answers the calls of the program of a group.
struct Server {
    extensions: Arc<Extensions>,
    group: Vec<Arc<Instance>>,
}

impl Server {
    /// The instance that a call is of: the one that it names, or the only one.
    fn caller(&self, params: &Value) -> Result<&Arc<Instance>, Failure> {
        let named = params["extension"].as_str();
        let found = match (named, self.group.as_slice()) {
            (None, [only]) => Some(only),
            (Some(id), group) => group.iter().find(|instance| instance.id == id),
            (None, _) => None,
        };
        found.ok_or_else(|| Failure::new(INVALID_PARAMS, "\"extension\" names no instance of this program"))
    }
}

impl Serve for Server {
    fn waits(&self, method: &str, params: &Value) -> bool {
        call::waits(method, params)
    }

    fn stops_clock(&self, method: &str) -> bool {
        super::stops_clock(method)
    }

    fn call(&self, id: Option<&Value>, method: &str, params: Value, cancel: &CancelToken) -> Answer {
        let instance = self.caller(&params)?;
        call::answer(&self.extensions, instance, id, method, params, cancel)
    }

    fn ended(&self, connection: &Connection) {
        let end = connection.end_text();
        let mut ended = Vec::new();
        for instance in &self.group {
            let mut state = instance.state();
            let is_current = state.connection.as_deref().is_some_and(|known| std::ptr::eq(known, connection));
            if is_current && state.end.is_none() {
                state.end = Some(end.clone());
                ended.push(instance);
            }
        }
        // One that failed at the start is reported there; one that was shut down is not current.
        ended.iter().for_each(|instance| self.extensions.clear(instance));
        if let Some(instance) = ended.into_iter().find(|instance| instance.start_ms() > 0) {
            self.extensions.report(instance, "exit", &end);
        }
    }
}
