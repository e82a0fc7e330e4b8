//! Extensions: programs that take part in a session over JSON-RPC. `docs/extensions.md` is the protocol.
//!
//! [`Extensions`] owns all of them. It adds what they register to the session (`runtime::addition`), asks their
//! handlers (`runtime::hook`), and answers their calls (`call`). A program that fails ends alone: it is reported once,
//! and what it registered answers with an error.

mod account;
mod call;
mod calls;
mod component;
mod conflict;
mod connection;
mod event;
pub mod find;
mod host;
mod instance;
mod limit;
mod member;
mod provider;
mod registration;
mod render;
mod renew;
mod request;
mod result;
mod sign_in;
mod start;
mod tool;

use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::runtime::addition::{Addition, SlashCommand};
use crate::runtime::config::Inputs;
use crate::runtime::control::Control;
use crate::runtime::lent::{LentModels, RegisteredServer, SERVERS_CHANGED};
use crate::runtime::service::{self, Services};
use crate::runtime::ui::{Asker, Problem};
use crate::runtime::{Dirs, Tool};
use connection::Connection;
use crossbeam_channel::Sender;
pub use find::Found;
pub use instance::Instance;
use member::Member;
use registration::{FlagKind, Registration};
use request::Failed;
use serde_json::{Map, Value};
use sign_in::News;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Instant;

pub const PROTOCOL_VERSION: u64 = 1;

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
    control: OnceLock<Control>,
    /// Types of events that a handler takes.
    wanted: RwLock<HashSet<String>>,
    /// How many questions wait for the user, and what was told of the first.
    asking: Mutex<(usize, Value)>,
}

struct State {
    about: About,
    instances: Vec<Arc<Instance>>,
    begun: Instant,
    /// The first prompt does not wait any more.
    is_settled: bool,
    /// The event that the session began with: instances that come later are told of it on their own.
    opening: Option<Value>,
    /// Problems that came before there was somebody to tell.
    problems: Vec<Problem>,
}

impl State {
    fn new(about: About) -> Self {
        Self {
            about,
            instances: Vec::new(),
            begun: Instant::now(),
            is_settled: false,
            opening: None,
            problems: Vec::new(),
        }
    }
}

impl Extensions {
    /// Starts extensions, in load order.
    pub fn start(about: About, found: Vec<Found>) -> Arc<Self> {
        let extensions = Arc::new(Self {
            state: Mutex::new(State::new(about)),
            control: OnceLock::new(),
            wanted: RwLock::default(),
            asking: Mutex::default(),
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

    /// Takes from the screen what an instance has put there.
    fn clear(&self, instance: &Instance) {
        if let Some(ui) = self.control.get().and_then(Control::ui) {
            instance.take_shown().into_iter().for_each(|change| ui.show(change));
        }
    }

    /// Describes all extensions for people.
    pub fn list(&self) -> String {
        let instances = self.instances();
        let conflicts = conflicts(&instances);
        let of = |at: usize| -> String {
            let own = conflicts.iter().filter(|(known, _)| *known == at);
            own.map(|(_, text)| format!("  {text}\n")).collect()
        };
        instances.iter().enumerate().map(|(at, instance)| instance.describe() + &of(at)).collect()
    }

    /// The models that are registered.
    pub fn models(self: &Arc<Self>) -> LentModels {
        let mut models = LentModels::default();
        for instance in self.instances() {
            let member = self.member(&instance);
            // What goes wrong is told when the session takes the models.
            provider::ask_for_accounts(&member);
            models.add(provider::models(&member).0);
        }
        models
    }

    /// Asks all handlers of an event about trust, one after another. The first that says yes or no decides.
    pub fn vote(&self, event: &str) -> Option<Vote> {
        let about = self.state().about.clone();
        let event = json!({"type": event, "cwd": about.cwd.to_string_lossy()});
        let limit = Instant::now() + limit::INITIALIZE_MAX;
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

    /// Gives each flag of the command line to the extension that has registered it. `give` is told whether a flag takes
    /// a text, and returns its value; none for a flag that is not given.
    pub fn take_flags(&self, mut give: impl FnMut(&str, bool) -> Option<Value>) {
        let mut given = HashSet::new();
        for instance in self.instances() {
            for flag in &instance.registration().flags {
                // The first that has registered it says what it takes.
                if !given.insert(flag.name.clone()) {
                    continue;
                }
                if let Some(value) = give(&flag.name, flag.kind == FlagKind::String) {
                    self.state().about.flags.insert(flag.name.clone(), value);
                }
            }
        }
    }

    fn instances(&self) -> Vec<Arc<Instance>> {
        self.state().instances.clone()
    }

    /// What went wrong before there was a session.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.state().problems)
    }

    fn member(self: &Arc<Self>, instance: &Arc<Instance>) -> Arc<dyn Member> {
        Arc::new(Joined { extensions: self.clone(), instance: instance.clone() })
    }

    /// Adds what an instance has registered to the session. Asks it for the models of accounts that are not known yet,
    /// so that it must not be called where its answers are read.
    fn apply(self: &Arc<Self>, instance: &Arc<Instance>) {
        if self.control.get().is_some() {
            let problems = provider::ask_for_accounts(&self.member(instance));
            self.report_faults(instance, &problems);
        }
        self.apply_known(instance);
    }

    /// Like [`Self::apply`], with what is known of accounts. Waits for nobody.
    fn apply_known(self: &Arc<Self>, instance: &Arc<Instance>) {
        self.count_events();
        self.report_unknown_events(instance);
        let Some(control) = self.control.get() else { return };
        let applying = instance.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let registration = instance.registration();
        let tools = registration.tools.iter().map(|entry| tool::tool(self, instance, entry));
        let member = self.member(instance);
        let (models, problems) = provider::models(&member);
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
            models,
            servers: instance.servers(),
            source: instance.found.source.clone(),
        };
        if instance.is_retired() {
            return;
        }
        let servers = control.registered_servers();
        control.set_addition(instance.owner(), addition);
        drop(applying);
        self.report_faults(instance, &problems);
        let instances = self.instances();
        for (at, text) in conflicts(&instances) {
            instances.get(at).into_iter().for_each(|instance| self.report_once(instance, "register", &text));
        }
        // Those that are there when the session begins are no news.
        if self.state().opening.is_some() && servers != control.registered_servers() {
            let fields = || json!({"servers": control.registered_servers()});
            control.hooked().tell(SERVERS_CHANGED, fields, control.root());
        }
        // It may have been retired meanwhile.
        if instance.is_retired() {
            control.remove_addition(&instance.owner());
        }
    }

    /// Reports MCP servers that nothing connects to, once each.
    fn report_unconnected(&self) {
        if self.control.get().is_none_or(|control| control.hooked().wants(SERVERS_CHANGED)) {
            return;
        }
        for instance in self.instances() {
            for RegisteredServer { name, .. } in instance.servers() {
                let text =
                    format!("The MCP server \"{name}\" is not connected: MCP servers are switched off");
                self.report_once(&instance, "register", &text);
            }
        }
    }

    fn count_events(&self) {
        // Held meanwhile: of two counts at the same time, the later one has to be written last.
        let mut wanted = self.wanted.write().unwrap_or_else(PoisonError::into_inner);
        wanted.clear();
        for instance in self.instances() {
            wanted.extend(instance.registration().events.iter().map(|known| known.event.clone()));
        }
    }

    /// Reports what is wrong with what an instance registers, each fault once.
    fn report_faults(&self, instance: &Instance, faults: &[String]) {
        faults.iter().for_each(|fault| self.report_once(instance, "register", fault));
    }

    /// Reports what was not reported of this event before.
    fn report_once(&self, instance: &Instance, event: &str, error: &str) {
        if instance.is_news(event, error) {
            self.report(instance, event, error);
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

    fn of_accounts(&self) -> &account::OfAccounts {
        &self.instance.of_accounts
    }

    fn apply(&self) {
        self.extensions.apply(&self.instance);
    }
}

/// What is said of names that several of these extensions register, each with a place in the list.
fn conflicts(instances: &[Arc<Instance>]) -> Vec<(usize, String)> {
    let all = instances.iter().map(|one| (one.found.path.as_path(), one.registration()));
    conflict::conflicts(&all.collect::<Vec<_>>())
}
