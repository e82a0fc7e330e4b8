//! Extensions: programs that take part in a session over JSON-RPC. `docs/extensions.md` is the protocol.
//!
//! [`Extensions`] owns all of them. It adds what they register to the session (`runtime::addition`), asks their
//! handlers (`runtime::hook`), and answers their calls (`call`). A program that fails ends alone: it is reported once,
//! and what it registered answers with an error.

mod call;
mod component;
mod connection;
pub mod find;
mod host;
mod instance;
mod member;
mod provider;
mod registration;
mod render;
mod sign_in;
mod tool;

use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::patience::patience;
use crate::base::thread::Thread;
use crate::runtime::addition::{Addition, Provider, SlashCommand};
use crate::runtime::config::Inputs;
use crate::runtime::control::Control;
use crate::runtime::hook::{Fold, Hooks};
use crate::runtime::service::{self, Services};
use crate::runtime::task::Task;
use crate::runtime::ui::{Asker, Problem};
use crate::runtime::{Dirs, Tool};
use crate::tools::process::peer::STACK;
use connection::{Connection, Failed};
use crossbeam_channel::Sender;
pub use find::Found;
pub use instance::Instance;
use member::Member;
use registration::{FlagKind, Registration};
use serde_json::{Map, Value};
use sign_in::News;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

pub const PROTOCOL_VERSION: u64 = 1;

/// How long the first prompt waits for programs that are being started.
const SETTLE: Duration = Duration::from_millis(250);
/// How long the conversation of an opened session waits for extensions that may draw parts of it.
const ALL_MAX: Duration = Duration::from_secs(2);
/// Time for the answer to `initialize`.
const INITIALIZE_MAX: Duration = Duration::from_secs(30);
/// Time for the end of all programs.
const END_MAX: Duration = Duration::from_secs(2);
/// Time for a handler that sets no limit.
const HANDLER_MAX: Duration = Duration::from_secs(30);

/// The event that begins a session.
const OPENING: &str = "session_start";

/// The event whose handlers may keep a tool from running: it waits for extensions that are still being started.
const GATE: &str = "tool_call";

/// Time for a handler of keys. One that is late is not asked any more.
const KEY_MAX: Duration = Duration::from_millis(500);

/// Events that nobody waits for: pieces of a stream, and news of changes that are made.
const NEWS: &[&str] = &[
    "message_update",
    "tool_execution_update",
    "model_select",
    "thinking_level_select",
    "session_info_changed",
    "ui_prompt_start",
    "ui_prompt_end",
    "theme_changed",
    "after_provider_response",
    "provider_stream_event",
];

/// True if the limit of a handler does not run while the program waits for this call. Calls that wait for the run
/// are not among them: a handler that waits for the run, which waits for the handler, ends by its limit.
fn stops_clock(method: &str) -> bool {
    method.starts_with("ui.") || matches!(method, "exec" | "models.complete" | "tools.execute")
}

/// What an extension says about the trust of a project.
pub struct Vote {
    pub is_trusted: bool,
    /// The answer is to be stored.
    pub is_kept: bool,
}

/// What programs are told of the one that starts them.
#[derive(Clone)]
pub struct About {
    /// `tui`, `rpc`, `json`, `print` or `acp`.
    pub mode: &'static str,
    pub reference_version: &'static str,
    pub cwd: PathBuf,
    pub dirs: Dirs,
    pub is_trusted: bool,
    /// Flags of the command line that no part of pi knows.
    pub flags: Map<String, Value>,
    /// Answers questions of programs before there is a session.
    pub asker: Option<Asker>,
    services: Services,
}

impl About {
    pub fn new(inputs: &Inputs, mode: &'static str, reference_version: &'static str) -> Self {
        Self {
            mode,
            reference_version,
            cwd: inputs.cwd.clone(),
            dirs: inputs.dirs.clone(),
            is_trusted: inputs.is_trusted,
            flags: Map::new(),
            asker: None,
            services: inputs.services.clone(),
        }
    }

    /// The complete environment of a program, without keys.
    fn env(&self) -> BTreeMap<OsString, OsString> {
        let secrets = self.services.vault().all();
        let is_secret = |value: &OsString| {
            let bytes = value.as_encoded_bytes();
            secrets.as_ref().is_some_and(|secrets| secrets.is_in(bytes))
        };
        let mut env = service::environment();
        env.retain(|_, value| !is_secret(value));
        env.insert("PI_EXTENSION".into(), "1".into());
        env
    }

    fn has_ui(&self) -> bool {
        matches!(self.mode, "tui" | "rpc" | "acp")
    }
}

/// All extensions of a process. One for its whole life, whatever the session.
pub struct Extensions {
    state: Mutex<State>,
    changed: Condvar,
    control: OnceLock<Control>,
    /// Types of events that a handler takes.
    wanted: RwLock<HashSet<String>>,
}

struct State {
    about: About,
    instances: Vec<Arc<Instance>>,
    begun: Instant,
    /// The event that the session began with: instances that come later are told of it on their own.
    opening: Option<Value>,
    /// Problems that came before there was somebody to tell.
    problems: Vec<Problem>,
}

impl State {
    /// True while instances have not answered `initialize`.
    fn is_starting(&mut self) -> bool {
        self.instances.iter().any(|instance| instance.is_starting())
    }

    /// True while extensions of the TypeScript pi have not answered `initialize`.
    fn is_loading_scripts(&mut self) -> bool {
        self.instances.iter().any(|instance| instance.is_starting() && instance.found.is_script())
    }
}

impl Extensions {
    /// Starts extensions, in load order.
    pub fn start(about: About, found: Vec<Found>) -> Arc<Self> {
        let extensions = Arc::new(Self {
            state: Mutex::new(State {
                about,
                instances: Vec::new(),
                begun: Instant::now(),
                opening: None,
                problems: Vec::new(),
            }),
            changed: Condvar::new(),
            control: OnceLock::new(),
            wanted: RwLock::default(),
        });
        extensions.launch(found);
        extensions
    }

    /// Takes part in the session of `control` from now on.
    pub fn attach(self: &Arc<Self>, control: &Control) {
        if self.control.set(control.clone()).is_ok() {
            control.add_hooks(self.clone());
            self.instances().iter().for_each(|instance| self.apply(instance));
        }
    }

    /// True if `about` and `found` are of another folder, trust or set of programs than those that run.
    pub fn differ(&self, about: &About, found: &[Found]) -> bool {
        let state = self.state();
        let known = state.instances.iter().map(|instance| &instance.found.path);
        (&state.about.cwd, state.about.is_trusted) != (&about.cwd, about.is_trusted)
            || !known.eq(found.iter().map(|found| &found.path))
    }

    /// Ends all extensions and starts those that `found` gives, in the folder that `about` names.
    pub fn restart(self: &Arc<Self>, about: About, found: Vec<Found>) {
        let old = std::mem::take(&mut self.state().instances);
        // One that is still being started is not let in any more.
        for instance in &old {
            instance.retire();
            instance.set_ready();
        }
        end_all(&old);
        for instance in &old {
            if let Some(control) = self.control.get() {
                control.remove_addition(&instance.owner());
            }
            self.clear(instance);
        }
        {
            let mut state = self.state();
            let flags = std::mem::take(&mut state.about.flags);
            state.about = About { flags, ..about };
            (state.begun, state.opening) = (Instant::now(), None);
        }
        self.launch(found);
    }

    /// Takes from the screen what an instance has put there.
    fn clear(&self, instance: &Instance) {
        if let Some(ui) = self.control.get().and_then(Control::ui) {
            instance.take_shown().into_iter().for_each(|change| ui.show(change));
        }
    }

    /// Waits until every extension has been started or has failed, and describes all for people.
    pub fn list(&self) -> String {
        {
            let state = self.state();
            let limit = INITIALIZE_MAX + END_MAX;
            drop(self.changed.wait_timeout_while(state, limit, State::is_starting));
        }
        self.instances().iter().map(|instance| instance.describe()).collect()
    }

    /// The providers that are registered. With `waits` all extensions are waited for before.
    pub fn providers(self: &Arc<Self>, waits: bool) -> Vec<Provider> {
        if waits {
            let state = self.state();
            drop(self.changed.wait_timeout_while(state, INITIALIZE_MAX, State::is_starting));
        }
        self.instances().iter().flat_map(|instance| provider::providers(&self.member(instance)).0).collect()
    }

    /// Asks all handlers of an event about trust, one after another. The first that says yes or no decides.
    pub fn vote(&self, event: &str) -> Option<Vote> {
        let about = self.state().about.clone();
        let event = json!({"type": event, "cwd": about.cwd.to_string_lossy()});
        let limit = Instant::now() + INITIALIZE_MAX;
        self.instances().iter().find_map(|instance| {
            instance.wait_until_ready(limit, &CancelToken::new());
            match self.ask_one(instance, &event, None, &CancelToken::new())? {
                Ok(result) => match result["trusted"].as_str() {
                    Some("yes" | "no") => Some(Vote {
                        is_trusted: result["trusted"] == "yes",
                        is_kept: result["remember"] == true,
                    }),
                    _ => None,
                },
                Err(failed) => {
                    self.report(instance, "project_trust", &failed.to_string());
                    None
                }
            }
        })
    }

    /// Waits for what extensions register, and gives each flag of the command line to the one that knows it. `give` is
    /// told whether a flag takes a text, and returns its value; none for a flag that is not given.
    pub fn take_flags(&self, mut give: impl FnMut(&str, bool) -> Option<Value>) {
        let state = self.state();
        drop(self.changed.wait_timeout_while(state, INITIALIZE_MAX, State::is_starting));
        for instance in self.instances() {
            for flag in &instance.registration().flags {
                if let Some(value) = give(&flag.name, flag.kind == FlagKind::String) {
                    self.state().about.flags.insert(flag.name.clone(), value);
                }
            }
        }
    }

    /// Ends all programs.
    pub fn end(&self) {
        end_all(&self.instances());
    }

    fn instances(&self) -> Vec<Arc<Instance>> {
        self.state().instances.clone()
    }

    /// What went wrong before there was a session.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.state().problems)
    }

    fn launch(self: &Arc<Self>, found: Vec<Found>) {
        let instances: Vec<Arc<Instance>> =
            found.into_iter().enumerate().map(|(rank, found)| Arc::new(Instance::new(rank, found))).collect();
        for instance in &instances {
            match instance.is_lazy() {
                true => instance.set_ready(),
                false => instance.set_starting(true),
            }
        }
        self.state().instances.clone_from(&instances);
        self.count_events();
        for group in groups(instances) {
            if let [instance] = group.as_slice()
                && instance.is_lazy()
            {
                self.apply(instance);
                continue;
            }
            let (extensions, starting) = (self.clone(), group.clone());
            let run = move || {
                extensions.bring_up(&starting);
                extensions.started(&starting);
                for instance in &starting {
                    extensions.greet(instance);
                    instance.set_ready();
                }
            };
            if let Err(error) = Thread::named("ext-start").stack(2 * STACK).start(run) {
                self.report(&group[0], "start", &format!("no thread can be started: {error}"));
                self.started(&group);
                group.iter().for_each(|instance| instance.set_ready());
            }
        }
    }

    /// Nobody waits for the start of these instances any more.
    fn started(&self, group: &[Arc<Instance>]) {
        let state = self.state();
        group.iter().for_each(|instance| instance.set_starting(false));
        drop(state);
        self.changed.notify_all();
    }

    /// Starts the program of a group and takes what each instance registers.
    fn bring_up(self: &Arc<Self>, group: &[Arc<Instance>]) {
        let about = self.state().about.clone();
        let group = self.agreed(group);
        match instance::start(&group, self, &about) {
            Ok(failures) => {
                for (instance, failure) in group.iter().zip(failures) {
                    match failure {
                        None => self.apply(instance),
                        Some(why) => self.report(instance, "start", &why),
                    }
                }
            }
            Err(why) => group.iter().take(1).for_each(|first| self.report(first, "start", &why)),
        }
    }

    /// The instances of a group whose files are those that the user agreed to. Others fail.
    fn agreed(&self, group: &[Arc<Instance>]) -> Vec<Arc<Instance>> {
        let of_project = |instance: &&Arc<Instance>| instance.found.consent.is_some();
        // All of a project have the same consent.
        let consent = group.iter().find_map(|instance| instance.found.consent.as_ref());
        let Some(Err(why)) = consent.map(|consent| consent.check()) else { return group.to_vec() };
        let why = format!("is not started: {why}. Reload to be asked about it");
        for instance in group.iter().filter(of_project) {
            instance.fail(&why);
            self.report(instance, "start", &why);
        }
        group.iter().filter(|instance| !of_project(instance)).cloned().collect()
    }

    /// The connection of an instance; starts a lazy one.
    fn connection(self: &Arc<Self>, instance: &Arc<Instance>) -> Result<Arc<Connection>, Failed> {
        if let Some(connection) = instance.connection() {
            return Ok(connection);
        }
        if instance.begins_now() {
            self.bring_up(std::slice::from_ref(instance));
            self.greet(instance);
        }
        instance.connection().ok_or_else(|| Failed::Over("is not running".to_owned()))
    }

    fn member(self: &Arc<Self>, instance: &Arc<Instance>) -> Arc<dyn Member> {
        Arc::new(Joined { extensions: self.clone(), instance: instance.clone() })
    }

    /// Adds what an instance has registered to the session.
    fn apply(self: &Arc<Self>, instance: &Arc<Instance>) {
        self.count_events();
        let Some(control) = self.control.get() else { return };
        let registration = instance.registration();
        let tools = registration.tools.iter().map(|entry| tool::tool(self, instance, entry));
        let member = self.member(instance);
        let (providers, problems) = provider::providers(&member);
        problems.iter().for_each(|problem| self.report(instance, "register", problem));
        let commands = registration.commands.iter().map(|entry| tool::command(self, instance, entry));
        let addition = Addition {
            tools: tools.collect::<Vec<Arc<dyn Tool>>>(),
            commands: commands.collect::<Vec<Arc<dyn SlashCommand>>>(),
            shortcuts: registration
                .shortcuts
                .iter()
                .map(|entry| (entry.key.clone(), tool::shortcut(self, instance, entry)))
                .collect(),
            sections: registration.prompt.clone(),
            renderer: render::renderer(&member),
            completers: render::completers(&member, instance.completers()),
            arranger: None,
            providers,
            source: instance.found.source.clone(),
        };
        if instance.is_retired() {
            return;
        }
        for problem in control.set_addition(instance.owner(), addition) {
            self.report(instance, "register", &problem);
        }
        // It may have been retired meanwhile.
        if instance.is_retired() {
            control.remove_addition(&instance.owner());
        }
    }

    fn count_events(&self) {
        let instances = self.instances();
        let wanted = instances.iter().flat_map(|instance| {
            let events = &instance.registration().events;
            events.iter().map(|subscription| subscription.event.clone()).collect::<Vec<_>>()
        });
        *self.wanted.write().unwrap_or_else(PoisonError::into_inner) = wanted.collect();
    }

    /// Tells an instance that came late that the session has begun.
    fn greet(&self, instance: &Arc<Instance>) {
        let opening = self.state().opening.clone();
        let Some(event) = opening.filter(|_| instance.start_ms() > 0 && !instance.is_greeted()) else {
            return;
        };
        let _ = self.ask_one(instance, &event, None, &CancelToken::new());
        let subscribed = &instance.registration().events;
        if subscribed.iter().any(|subscription| subscription.event == "resources_discover")
            && let Some(control) = self.control.get()
            && let Err(why) = control.hand_over(Task::Discover)
        {
            self.report(instance, "resources_discover", &why);
        }
    }

    fn report(&self, instance: &Instance, event: &str, error: &str) {
        if instance.is_retired() {
            return;
        }
        let source = instance.found.path.to_string_lossy().into_owned();
        let problem = Problem { source, event: event.to_owned(), error: error.to_owned() };
        match self.control.get().and_then(Control::ui) {
            Some(ui) => ui.problem(&problem),
            None => self.state().problems.push(problem),
        }
    }

    /// Asks the handler of one instance. None if it takes no such event, or nobody waits for it.
    fn ask_one(
        &self,
        instance: &Arc<Instance>,
        event: &Value,
        deadline: Option<Instant>,
        cancel: &CancelToken,
    ) -> Option<Result<Value, Failed>> {
        let name = event["type"].as_str().unwrap_or_default();
        let (timeout, waits) = {
            let registration = instance.registration();
            let subscription = registration.events.iter().find(|known| known.event == name)?;
            (subscription.timeout, subscription.waits && !NEWS.contains(&name))
        };
        let Some(connection) = instance.connection() else {
            return Some(Err(Failed::Over(instance.end_text())));
        };
        let params = json!({"extension": instance.id, "event": event});
        if !waits {
            connection.notify("event", params, cancel);
            return None;
        }
        let usual = match name {
            "session_before_compact" | "session_before_tree" => Duration::from_secs(300),
            "session_shutdown" => END_MAX,
            "terminal_input" => KEY_MAX,
            _ => HANDLER_MAX,
        };
        let mut limit = timeout.unwrap_or(usual);
        if let Some(deadline) = deadline {
            limit = limit.min(deadline.saturating_duration_since(Instant::now()));
        }
        Some(connection.ask("event", params, Some(limit), cancel))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An instance among the extensions of its session.
struct Joined {
    extensions: Arc<Extensions>,
    instance: Arc<Instance>,
}

impl Member for Joined {
    fn id(&self) -> &str {
        &self.instance.id
    }

    fn name(&self) -> &str {
        &self.instance.found.name
    }

    fn registration(&self) -> Arc<Registration> {
        self.instance.registration()
    }

    fn connection(&self) -> Result<Arc<Connection>, Failed> {
        self.extensions.connection(&self.instance)
    }

    fn report(&self, event: &str, error: &str) {
        self.extensions.report(&self.instance, event, error);
    }

    fn attend(&self, stream: &str, sender: Sender<Value>) {
        self.instance.attend(stream, sender);
    }

    fn leave(&self, stream: &str) {
        self.instance.leave(stream);
    }

    fn hear_login(&self, provider: &str, sender: Option<Sender<News>>) {
        self.instance.hear_login(provider, sender);
    }

    fn services(&self) -> Services {
        self.extensions.state().about.services.clone()
    }

    fn apply(&self) {
        self.extensions.apply(&self.instance);
    }
}

impl Hooks for Extensions {
    fn wants(&self, event: &str) -> bool {
        // Instances that come later are told how the session began.
        event == OPENING
            || self.wanted.read().unwrap_or_else(PoisonError::into_inner).contains(event)
            || (event == GATE && self.instances().iter().any(|instance| instance.is_coming()))
    }

    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        let name = event["type"].as_str().unwrap_or_default().to_owned();
        let is_opening = name == OPENING;
        if name == GATE {
            let limit = self.state().begun + INITIALIZE_MAX;
            self.instances().iter().for_each(|instance| instance.wait_until_ready(limit, cancel));
        }
        if is_opening {
            self.state().opening = Some(event.clone());
        }
        // What all handlers of an end may take together.
        let deadline = (name == "session_shutdown").then(|| Instant::now() + END_MAX);
        for instance in self.instances() {
            // One that is still being started is told when it has come.
            if is_opening && instance.start_ms() == 0 {
                continue;
            }
            let is_fresh = matches!(event["reason"].as_str(), Some("startup" | "reload"));
            if is_opening && instance.is_greeted() && is_fresh {
                continue;
            }
            let Some(result) = self.ask_one(&instance, event, deadline, cancel) else { continue };
            if name == "terminal_input" && matches!(result, Err(Failed::Late(_))) {
                instance.unregister(&json!({"events": [name]}));
                self.count_events();
            }
            let result = result.map_err(|failed| {
                // The end of a program was reported when it came.
                if !matches!(failed, Failed::Over(_) | Failed::Cancelled) {
                    self.report(&instance, &name, &failed.to_string());
                }
                format!("{}: {failed}", instance.found.path.display())
            });
            if cancel.is_cancelled() || fold(event, result).is_break() {
                return;
            }
        }
    }

    fn settle(&self) {
        let problems = {
            let state = self.state();
            let until = state.begun + patience(SETTLE);
            let left = until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout_while(state, left, State::is_starting);
            let state = waited.unwrap_or_else(PoisonError::into_inner).0;
            // They expect to be loaded before anything happens, and Node alone can take longer.
            let loaded = self.changed.wait_timeout_while(state, INITIALIZE_MAX, State::is_loading_scripts);
            let mut state = loaded.unwrap_or_else(PoisonError::into_inner).0;
            std::mem::take(&mut state.problems)
        };
        if let Some(control) = self.control.get() {
            problems.iter().for_each(|problem| control.report(problem));
        }
    }

    fn is_to_come(&self) -> bool {
        let state = self.state();
        state.begun.elapsed() < patience(ALL_MAX) && state.instances.iter().any(|one| one.is_coming())
    }

    fn await_all(&self, cancel: &CancelToken) {
        let limit = self.state().begun + patience(ALL_MAX);
        self.instances().iter().for_each(|instance| instance.wait_until_ready(limit, cancel));
    }

    fn close(&self) {
        self.end();
    }
}

/// The instances that share a program, together, where the first of each group stands.
fn groups(instances: Vec<Arc<Instance>>) -> Vec<Vec<Arc<Instance>>> {
    let mut groups: Vec<Vec<Arc<Instance>>> = Vec::new();
    for instance in instances {
        let known = groups.iter_mut().find(|group| {
            let of_group = group.first().map(|first| &first.found.group);
            instance.found.group.is_some() && of_group == Some(&instance.found.group)
        });
        match known {
            Some(group) => group.push(instance),
            None => groups.push(vec![instance]),
        }
    }
    groups
}

/// Ends programs, all at the same time.
fn end_all(instances: &[Arc<Instance>]) {
    let until = Instant::now() + END_MAX;
    thread::scope(|scope| {
        let mut connections: Vec<Arc<Connection>> = Vec::new();
        for connection in instances.iter().filter_map(|instance| instance.take_connection()) {
            if !connections.iter().any(|known| Arc::ptr_eq(known, &connection)) {
                connections.push(connection);
            }
        }
        for connection in connections {
            let spare = connection.clone();
            let end = move || connection.shut_down(until);
            if Thread::named("ext-end").stack(STACK).start_in(scope, end).is_err() {
                spare.end("was shut down");
            }
        }
    });
}
