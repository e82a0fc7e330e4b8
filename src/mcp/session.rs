//! The servers of a session: they come and go with its configuration, and what they offer becomes tools.
//!
//! A server whose offer is known from before is started when it is first needed, any other one at once, in the
//! background. Before a prompt runs, servers with declared tools are waited for.

use super::access;
use super::ask::SignIn;
use super::cache::Cache;
use super::command::Slash;
use super::config::{self, Entry, Exposure, Scope, edit};
use super::fault::Fault;
use super::log::Log;
use super::mention;
use super::name::Names;
use super::prompt::Prompt;
use super::question::Questions;
use super::resource::{self, ResourceTool};
use super::section;
use super::server::{Context, END, Offer, Server, State, sign_in_hint};
use super::tool::{SearchTool, ServerTool, Servers};
use crate::agent::tool::{Invocation, Namespace, Tool};
use crate::auth::oauth::resource::Resource;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::json::json;
use crate::codemode;
use crate::llm::estimate::text_tokens;
use crate::resources::dirs::Dirs;
use crate::runtime::addition::{Addition, Arranger, LentServer, Owner, SlashCommand};
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use crate::runtime::hook::{Fold, Hooks};
use crate::runtime::ui::{Change, Ui};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Functions of scripts that look at all tools.
const LOOKING: [&str; 4] = ["searchTools", "describeTool", "describeNamespace", "ALL_TOOLS"];

/// The part of a model's window that declarations may take.
const WINDOW_PART: u64 = 10;

/// The servers of a session.
pub struct Mcp {
    control: Control,
    dirs: Dirs,
    /// How long the first prompt waits for servers with declared tools.
    patience: Duration,
    tell: Tell,
    /// Servers may ask the user.
    may_ask: bool,
    /// The user chooses from lists.
    has_lists: bool,
    cancel: CancelToken,
    log: Arc<Log>,
    inside: Mutex<Inside>,
    /// Held while servers are taken up or ended: each server is started once, and ended once.
    taking_up: Mutex<()>,
    this: Weak<Self>,
}

#[derive(Default)]
struct Inside {
    servers: Vec<Arc<Server>>,
    names: Names,
    /// Servers that a client lends to the session.
    lent: Vec<LentServer>,
    /// The configuration that the servers are of.
    config: Option<Arc<Config>>,
    /// What the user was told already.
    told: BTreeSet<String>,
    /// Tools that have been declared: they stay so.
    declared: BTreeSet<String>,
    /// The tools that a search finds.
    searched: Vec<Arc<dyn Tool>>,
    /// Servers do not switch codemode on.
    leaves_codemode: bool,
    /// Codemode was switched on for servers, once.
    has_switched: bool,
    section: Option<String>,
    /// What was last added to the session, to see whether something has changed.
    added: Value,
    is_closed: bool,
}

/// Shows the user a text; true for a problem.
pub type Tell = Box<dyn Fn(bool, String) + Send + Sync>;

/// How servers are started and problems told.
pub struct Options {
    pub dirs: Dirs,
    /// How long the first prompt waits for servers with declared tools.
    pub patience: Duration,
    pub tell: Tell,
    /// True if the mode can ask the user.
    pub may_ask: bool,
    /// True if the mode shows lists to choose from.
    pub has_lists: bool,
    pub lent: Vec<LentServer>,
    pub cancel: CancelToken,
}

/// A server as it is now, for lists.
pub struct Status {
    pub entry: Arc<Entry>,
    pub state: State,
    pub offer: Arc<Offer>,
}

impl Mcp {
    /// Starts the servers of a session. They end with it.
    pub fn start(control: &Control, options: Options) -> Arc<Self> {
        let Options { dirs, patience, tell, may_ask, has_lists, lent, cancel } = options;
        let vault = control.config().services.vault().clone();
        let log = Arc::new(Log::new(dirs.agent(), vault));
        let mcp = Arc::new_cyclic(|this| Self {
            control: control.clone(),
            dirs,
            patience,
            tell,
            may_ask,
            has_lists,
            cancel: cancel.child(),
            log,
            inside: Mutex::new(Inside { lent, ..Inside::default() }),
            taking_up: Mutex::default(),
            this: this.clone(),
        });
        mcp.follow_config();
        control.add_hooks(mcp.clone());
        mcp
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.taking_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.inside().servers.clone()
    }

    /// The servers, in the order of the files.
    pub fn statuses(&self) -> Vec<Status> {
        let status = |server: &Arc<Server>| Status {
            entry: server.entry(),
            state: server.state(),
            offer: server.offer(),
        };
        self.servers().iter().map(status).collect()
    }

    /// The surface on which the user chooses from lists.
    pub fn lists_on(&self) -> Option<Arc<dyn Ui>> {
        self.control.ui().filter(|_| self.has_lists)
    }

    /// Shows the user an answer.
    pub fn show(&self, text: String) {
        (self.tell)(false, text);
    }

    /// Tells the user of a problem, once.
    fn tell_once(&self, text: String) {
        if self.inside().told.insert(text.clone()) {
            (self.tell)(true, text);
        }
    }

    /// Takes up the servers of the configuration, if it is another one than before.
    fn follow_config(&self) {
        let is_known = || {
            let config = self.control.config();
            self.inside().config.as_ref().is_some_and(|known| Arc::ptr_eq(known, &config))
        };
        if is_known() {
            return;
        }
        let turn = self.turn();
        if !is_known() {
            self.take_up(&turn);
        }
    }

    /// Replaces the servers that a client lends to the session.
    pub fn lend(&self, lent: Vec<LentServer>) {
        let turn = self.turn();
        self.inside().lent = lent;
        self.take_up(&turn);
    }

    /// Takes up the servers of the configuration, and those that a client lends. Servers that run already go on, unless
    /// the working folder is another one.
    fn take_up(&self, _turn: &MutexGuard<'_, ()>) {
        if self.inside().is_closed {
            return;
        }
        let config = self.control.config();
        let cwd = &config.workspace.cwd;
        let known = self.inside().config.replace(config.clone());
        let same_place = known.is_some_and(|known| known.workspace.cwd == *cwd);
        let mut loaded = config::load_trusted(self.dirs.agent(), cwd, config.consent.as_deref());
        loaded.lend(&self.inside().lent);
        loaded.errors.into_iter().for_each(|error| self.tell_once(error));
        self.inside().leaves_codemode = loaded.leaves_codemode;
        let cache = Cache::load(self.dirs.agent());
        let context = self.context(&config);
        let old = std::mem::take(&mut self.inside().servers);
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|server| same_place && loaded.entries.contains(&server.entry()));
        end(gone);
        let servers: Vec<Arc<Server>> = loaded
            .entries
            .into_iter()
            .map(|entry| match kept.iter().position(|server| *server.entry() == entry) {
                Some(at) => kept.swap_remove(at),
                None => {
                    let known = if entry.scope == Scope::Client { None } else { cache.find(&entry) };
                    let is_known = known.is_some();
                    let server = Server::new(entry, context.clone(), known);
                    let (mcp, weak) = (self.this.clone(), Arc::downgrade(&server));
                    server.when_changed(move || {
                        if let (Some(mcp), Some(server)) = (mcp.upgrade(), weak.upgrade()) {
                            mcp.changed(&server);
                        }
                    });
                    let (control, name) = (self.control.downgrade(), server.name());
                    server.when_updated(move |uri| {
                        if let Some(control) = control.upgrade() {
                            control.mention("mcp", format!("The resource {uri} of the MCP server \"{name}\" has changed since it was read."));
                        }
                    });
                    if !is_known {
                        server.start();
                    }
                    server
                }
            })
            .collect();
        self.inside().servers = servers;
        self.describe();
        self.update();
    }

    fn context(&self, config: &Config) -> Arc<Context> {
        Arc::new(Context {
            cwd: config.workspace.cwd.clone(),
            home: self.dirs.home().map(ToOwned::to_owned),
            env: Env::process(),
            vault: config.services.vault().clone(),
            log: self.log.clone(),
            cancel: self.cancel.clone(),
            authority: Box::new(access::authorities(config.services.clone(), self.dirs.agent())),
            questions: self.may_ask.then(|| Questions { control: self.control.downgrade() }),
        })
    }

    /// A server has another state, or offers something else.
    fn changed(&self, server: &Arc<Server>) {
        // What ends with the session is no news.
        if self.cancel.is_cancelled() {
            return;
        }
        match server.state() {
            State::Connected if server.entry().scope == Scope::Client => {}
            State::Connected => Cache::store(self.dirs.agent(), &server.entry(), &server.offer()),
            State::Failed(text) => self.tell_once(server.error(text)),
            State::NeedsSignIn(_) => self.tell_once(server.error(sign_in_hint(&server.entry()))),
            _ => {}
        }
        self.update();
    }

    /// Makes the section of the prompt anew.
    fn describe(&self) {
        let servers = self.servers();
        let listed = servers.iter().filter(|server| {
            let entry = server.entry();
            entry.is_enabled() && entry.may_expose(Exposure::is_searched)
        });
        let has_scripts = self.has_scripts();
        let row = |server: &Arc<Server>| {
            let entry = server.entry();
            let may = |wanted: Exposure| entry.may_expose(|exposure| exposure == wanted);
            let reached_by = match (has_scripts && may(Exposure::Codemode), may(Exposure::Deferred)) {
                (true, false) => section::WAYS[0],
                (false, _) => section::WAYS[1],
                (true, true) => section::WAYS[2],
            };
            section::Row { name: server.name(), reached_by, summary: summary(server) }
        };
        let rows: Vec<section::Row> = listed.map(row).collect();
        self.inside().section = section::text(&rows);
    }

    /// True if scripts can call tools: codemode is active, or is switched on for servers.
    fn has_scripts(&self) -> bool {
        let all = self.control.tools().all();
        let scripts = all.iter().find(|(tool, _)| tool.info().spec.name == codemode::NAME);
        scripts.is_some_and(|(_, is_active)| *is_active || !self.inside().leaves_codemode)
    }

    /// Adds to the session what the servers offer now.
    fn update(&self) {
        let has_scripts = self.has_scripts();
        let mut inside = self.inside();
        if inside.is_closed {
            return;
        }
        let budget = self.budget();
        let mut all: Vec<Arc<dyn Tool>> = Vec::new();
        let (mut spent, mut over) = (0, 0);
        let servers = inside.servers.clone();
        for server in &servers {
            let entry = server.entry();
            if !entry.is_enabled() {
                continue;
            }
            let offer = server.offer();
            let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let own: Vec<String> = offer.tools.iter().map(name).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let names = inside.names.of(&entry.name, &own);
            let namespace = Arc::new(Namespace {
                name: config::namespace(&entry.name),
                alias: entry.name.clone(),
                description: Some(summary(server)).filter(|text| !text.is_empty()),
                instructions: offer.instructions.clone(),
            });
            for ((tool, own), name) in offer.tools.iter().zip(own).zip(names) {
                let mut exposure = entry.exposure_of(own);
                if exposure == Exposure::Hidden {
                    continue;
                }
                if exposure == Exposure::Direct {
                    let tokens = tokens(tool);
                    if inside.declared.contains(&name) || spent + tokens <= budget {
                        spent += tokens;
                        inside.declared.insert(name.clone());
                    } else {
                        exposure = Exposure::Deferred;
                        over += 1;
                    }
                }
                let tool = ServerTool::new(name, tool, exposure, &namespace, server, &self.control);
                all.push(Arc::new(tool));
            }
        }
        let resources = self.resource_tools(&servers);
        let arranger = resources.last().map(|tool| tool.clone() as Arc<dyn Arranger>);
        all.extend(resources.into_iter().map(|tool| tool as Arc<dyn Tool>));
        let may_expose = |wanted: &dyn Fn(Exposure) -> bool| {
            servers
                .iter()
                .map(|server| server.entry())
                .any(|entry| entry.is_enabled() && entry.may_expose(wanted))
        };
        let by_scripts = has_scripts && may_expose(&|exposure| exposure == Exposure::Codemode);
        let may_search = over > 0
            || may_expose(&|exposure| {
                exposure == Exposure::Deferred || (exposure == Exposure::Codemode && !has_scripts)
            });
        let switches =
            by_scripts && !inside.leaves_codemode && !std::mem::replace(&mut inside.has_switched, by_scripts);
        inside.searched = all.iter().filter(|tool| !tool.info().exposure.is_declared()).cloned().collect();
        let mut tools = all;
        if may_search {
            tools.insert(0, Arc::new(SearchTool::new(self.weak(), &self.control)));
        }
        let sections: Vec<(String, String)> =
            inside.section.iter().map(|text| (section::NAME.to_owned(), text.clone())).collect();
        let spec = |tool: &Arc<dyn Tool>| json!([tool.info().spec, tool.info().exposure.name()]);
        let enabled = servers.iter().filter(|server| server.entry().is_enabled());
        let of = |server: &Arc<Server>| {
            server.offer().prompts.iter().map(|prompt| json!([server.name(), prompt])).collect::<Vec<_>>()
        };
        let prompts: Value = enabled.flat_map(of).collect();
        let added = json!([sections, tools.iter().map(spec).collect::<Vec<_>>(), prompts]);
        if inside.added != added {
            let none = json!([]);
            let prompts_changed = inside.added.get(2).unwrap_or(&none) != &added[2];
            inside.added = added;
            let source = json!({"path": "builtin:mcp", "source": "builtin", "scope": "temporary", "origin": "top-level"});
            let mut commands: Vec<Arc<dyn SlashCommand>> = vec![Arc::new(Slash::new(self.this.clone()))];
            commands.extend(self.prompts(&servers));
            let addition = Addition { tools, commands, sections, arranger, source, ..Addition::default() };
            let problems = self.control.set_addition(owner(), addition);
            drop(inside);
            if prompts_changed && let Some(ui) = self.control.ui() {
                ui.show(Change::Resources);
            }
            problems.into_iter().for_each(|problem| self.tell_once(format!("MCP: {problem}")));
        } else {
            drop(inside);
        }
        if switches {
            self.control.tools().activate_too(&[codemode::NAME.to_owned()]);
        }
        if over > 0 {
            self.tell_once(format!(
                "{over} MCP tools with direct exposure are found by tool_search only: declared, they would take more \
                 than {budget} tokens (setting mcp.directTokens, and a tenth of the model's window)"
            ));
        }
    }

    /// The prompts of enabled servers, as commands.
    fn prompts(&self, servers: &[Arc<Server>]) -> Vec<Arc<dyn SlashCommand>> {
        let mut commands: Vec<Arc<dyn SlashCommand>> = Vec::new();
        for server in servers.iter().filter(|server| server.entry().is_enabled()) {
            let offer = server.offer();
            let name =
                |prompt: &Value| prompt.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let own: Vec<String> = offer.prompts.iter().map(name).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let names = Names::default().of(&server.name(), &own);
            for (prompt, name) in offer.prompts.iter().zip(names) {
                commands.push(Arc::new(Prompt::new(name, prompt, server, self.control.downgrade())));
            }
        }
        commands
    }

    /// The tools for resources, if some server offers any.
    fn resource_tools(&self, servers: &[Arc<Server>]) -> Vec<Arc<ResourceTool>> {
        let widest = with_resources(servers).map(|server| server.entry().exposure()).min();
        widest.map(|exposure| resource::tools(exposure, &self.weak(), &self.control)).unwrap_or_default()
    }

    fn weak(&self) -> Weak<dyn Servers> {
        self.this.clone()
    }

    /// Tokens that declarations of tools may take.
    fn budget(&self) -> u64 {
        let window = self.control.models().current().context_window;
        let set = self.control.config().settings.count("mcp.directTokens");
        if window == 0 { set } else { set.min(window / WINDOW_PART) }
    }

    /// Waits for attempts to connect to the servers that are `wanted`. Gives those that are not done.
    fn wait_for(&self, wanted: impl Fn(&Entry) -> bool, until: Instant, cancel: &CancelToken) -> Vec<String> {
        let servers = self.servers();
        let wanted = servers.iter().filter(|server| wanted(&server.entry()));
        wanted.filter(|server| !server.wait(until, cancel)).map(|server| server.name()).collect()
    }

    /// Waits for enabled servers that are `wanted`, for as long as one of their requests may take.
    fn wait_long(&self, wanted: impl Fn(&Entry) -> bool, cancel: &CancelToken) {
        let longest = self.servers().iter().map(|server| server.entry().timeout()).max().unwrap_or_default();
        self.wait_for(|entry| entry.is_enabled() && wanted(entry), Instant::now() + longest, cancel);
    }

    fn find(&self, name: &str) -> Result<Arc<Server>, String> {
        let servers = self.servers();
        let names: Vec<String> = servers.iter().map(|server| server.name()).collect();
        let found = servers.into_iter().find(|server| server.name() == name);
        found.ok_or_else(|| format!("There is no MCP server \"{name}\". Configured: {}", names.join(", ")))
    }

    /// Connects anew.
    pub fn reconnect(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        self.find(name)?.reconnect(cancel)
    }

    /// Signs in to a server, and connects to it.
    pub fn login(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let resource = self.resource(&server)?;
        let challenge = match server.state() {
            State::NeedsSignIn(challenge) => challenge,
            _ => match server.client(cancel) {
                Ok(_) => {
                    self.show(format!("Already signed in to the MCP server \"{name}\""));
                    return Ok(());
                }
                Err(Fault::SignIn(challenge)) => challenge,
                Err(fault) => return Err(server.error(fault)),
            },
        };
        let ui = self.control.ui().ok_or("Nobody can be asked here: use pi mcp login in a shell")?;
        let asker = SignIn { server: name.to_owned(), ui };
        let signed_in = resource.sign_in(challenge.as_deref(), &asker, cancel);
        signed_in.map_err(|error| server.error(format_args!("cannot sign in: {}", error.message)))?;
        server.reconnect(cancel)
    }

    /// Forgets the sign-in to a server, and closes the connection.
    pub fn logout(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let removed = self.resource(&server)?.sign_out(cancel).map_err(|error| error.message)?;
        if !removed {
            self.show(format!("There is no sign-in to the MCP server \"{name}\""));
        }
        server.close(Instant::now() + END);
        Ok(())
    }

    fn resource(&self, server: &Server) -> Result<Resource, String> {
        let config = self.control.config();
        access::sign_in(&server.entry(), &config.services, self.dirs.agent())
            .ok_or_else(|| server.error("it has no sign-in of its own"))
    }

    /// Changes a server, here and in the file that defines it; in the project's own file with `in_project`.
    pub fn patch(&self, name: &str, patch: edit::Patch, in_project: bool) -> Result<(), String> {
        let server = self.find(name)?;
        let mut entry = Entry::clone(&server.entry());
        let config = self.control.config();
        let file: PathBuf = match (&entry.changed_by, in_project) {
            (Some(file), _) => file.clone(),
            (None, true) => config::project_file(&config.workspace.cwd),
            (None, false) => entry.source.clone(),
        };
        if entry.scope == Scope::Client && in_project {
            return Err(server.error("the client lends it to this session only: leave out -l"));
        }
        if entry.scope != Scope::Client {
            edit::patch(&file, name, patch, in_project || entry.changed_by.is_some())?;
        }
        if in_project && entry.scope == Scope::User {
            entry.changed_by = Some(file);
        }
        if let Some(enabled) = patch.enabled {
            match enabled && entry.changed_by.is_none() {
                true => drop(entry.fields.shift_remove("enabled")),
                false => drop(entry.fields.insert("enabled".into(), enabled.into())),
            }
        }
        if let Some(exposure) = patch.exposure {
            match exposure == Exposure::default() && entry.changed_by.is_none() {
                true => drop(entry.fields.shift_remove("exposure")),
                false => drop(entry.fields.insert("exposure".into(), exposure.name().into())),
            }
        }
        let starts = patch.enabled == Some(true);
        if entry.scope == Scope::Client {
            let mut inside = self.inside();
            let mut lent = inside.lent.iter_mut();
            if let Some((_, fields)) = lent.find(|(given, _)| config::name_of_lent(given) == entry.name) {
                fields.clone_from(&entry.fields);
            }
        }
        server.set_entry(entry);
        if starts {
            server.start();
        }
        self.describe();
        self.update();
        Ok(())
    }
}

impl Hooks for Mcp {
    fn settle(&self) {
        self.follow_config();
    }

    fn wants(&self, event: &str) -> bool {
        match event {
            "tool_call" => !self.inside().servers.is_empty(),
            "input" => with_resources(&self.servers()).next().is_some(),
            _ => false,
        }
    }

    /// A script waits for the servers that it may call; a prompt gets the resources that it names.
    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        if event["type"] == "input" {
            let text = event["text"].as_str().unwrap_or_default();
            let servers: Vec<Arc<Server>> = with_resources(&self.servers()).cloned().collect();
            let brought = mention::read(text, &servers, cancel);
            brought.errors.into_iter().for_each(|error| (self.tell)(true, error));
            if !brought.text.is_empty() || !brought.images.is_empty() {
                let text = format!("{text}{}", brought.text);
                let mut images = event["images"].as_array().cloned().unwrap_or_default();
                images.extend(brought.images);
                let _ = fold(event, Ok(json!({"action": "transform", "text": text, "images": images})));
            }
        } else if event["toolName"] == codemode::NAME {
            let code = event["input"]["code"].as_str().unwrap_or_default();
            let looks = LOOKING.iter().any(|name| code.contains(name));
            self.wait_long(|entry| looks || code.contains(&config::namespace(&entry.name)), cancel);
        }
    }

    fn before_prompt(&self, cancel: &CancelToken) {
        self.follow_config();
        // A server that is not known yet is being connected to since it was configured.
        let until = Instant::now() + self.patience;
        let is_direct =
            |entry: &Entry| entry.is_enabled() && entry.may_expose(|exposure| exposure == Exposure::Direct);
        let missing = self.wait_for(is_direct, until, cancel);
        if !missing.is_empty() && !cancel.is_cancelled() {
            self.tell_once(format!(
                "Not connected yet, and so without tools in this request: MCP servers {}",
                missing.join(", ")
            ));
        }
        self.describe();
        self.update();
    }

    fn close(&self) {
        // A server that is being connected to must not hold up those that end.
        self.cancel.cancel();
        let _turn = self.turn();
        let servers = {
            let mut inside = self.inside();
            inside.is_closed = true;
            std::mem::take(&mut inside.servers)
        };
        end(servers);
        self.control.remove_addition(&owner());
    }
}

impl Servers for Mcp {
    fn wait(&self, call: &Invocation<'_>) {
        self.wait_long(|_| true, call.cancel);
        // A server is connected a moment before its tools are registered.
        self.update();
    }

    fn searched(&self) -> Vec<Arc<dyn Tool>> {
        self.inside().searched.clone()
    }

    fn with_resources(&self) -> Vec<Arc<Server>> {
        with_resources(&self.servers()).cloned().collect()
    }
}

fn owner() -> Owner {
    Owner { rank: usize::MAX, name: "MCP servers".into() }
}

/// The servers whose resources may be read.
fn with_resources(servers: &[Arc<Server>]) -> impl Iterator<Item = &Arc<Server>> {
    servers.iter().filter(|server| {
        let entry = server.entry();
        entry.is_enabled() && entry.exposure() != Exposure::Hidden && server.offer().has_resources
    })
}

/// What a server offers, in a line.
fn summary(server: &Server) -> String {
    let entry = server.entry();
    let offer = server.offer();
    let text = entry.description().or(offer.instructions.as_deref()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Tokens of a tool's declaration.
pub fn tokens(tool: &Value) -> u64 {
    let part = |name: &str| tool.get(name).map(ToString::to_string).unwrap_or_default();
    text_tokens(&part("name")) + text_tokens(&part("description")) + text_tokens(&part("inputSchema"))
}

/// Ends servers, all at once.
fn end(servers: Vec<Arc<Server>>) {
    let until = Instant::now() + END;
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || server.end(until));
        }
    });
}
