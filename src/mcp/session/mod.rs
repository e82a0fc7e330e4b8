//! The servers of a session: they come and go with its configuration, and what they offer becomes tools.
//!
//! A server whose offer is known from before is started when it is first needed, any other one at once, in the
//! background. Before a prompt runs, servers with declared tools are waited for.

mod add;
mod change;

use crate::agent::tool::{Invocation, Tool};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::codemode;
use crate::mcp::access;
use crate::mcp::cache::Cache;
use crate::mcp::config::{self, Entry, Exposure};
use crate::mcp::log::Log;
use crate::mcp::mention;
use crate::mcp::name::Names;
use crate::mcp::question::Questions;
use crate::mcp::server::{Context, END, Offer, Server, State, Widen, sign_in_hint, wider_hint};
use crate::mcp::tool::Servers;
use crate::resources::dirs::Dirs;
use crate::runtime::addition::Owner;
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use crate::runtime::hook::{Fold, Hooks};
use crate::runtime::lent::{LentServer, RegisteredServer, SERVERS_CHANGED};
use crate::runtime::ui::Ui;
pub use add::tokens;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Functions of scripts that look at all tools.
const LOOKING: [&str; 4] = ["searchTools", "describeTool", "describeNamespace", "ALL_TOOLS"];

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
    /// Servers that extensions bring, with the changes of this session.
    registered: Vec<RegisteredServer>,
    /// The servers that extensions bring, as they were last seen.
    seen: Vec<RegisteredServer>,
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

    /// Takes up the servers of the configuration and of extensions, if they are others than before.
    fn follow_config(&self) {
        let is_known = || {
            let (config, registered) = (self.control.config(), self.control.registered_servers());
            let inside = self.inside();
            inside.seen == registered
                && inside.config.as_ref().is_some_and(|known| Arc::ptr_eq(known, &config))
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

    /// Takes up the servers of the configuration, of a client and of extensions. Servers that run already go on, unless
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
        let registered = self.control.registered_servers();
        {
            let mut inside = self.inside();
            let seen = std::mem::replace(&mut inside.seen, registered);
            let changed = std::mem::take(&mut inside.registered);
            // What the user has changed holds until the extension gives that server another form.
            let now = inside.seen.iter().map(|server| {
                let is_its = |one: &&RegisteredServer| one.name == server.name && seen.contains(server);
                changed.iter().find(is_its).unwrap_or(server).clone()
            });
            inside.registered = now.collect();
            loaded.register(&inside.registered);
        }
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
                    let known = if entry.scope.is_stored() { cache.find(&entry) } else { None };
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
            widen: self.may_ask.then(|| {
                let mcp = self.this.clone();
                let widen = move |entry: &Entry, challenge: &str, cancel: &CancelToken| {
                    mcp.upgrade().is_some_and(|mcp| mcp.widen(entry, challenge, cancel))
                };
                Box::new(widen) as Widen
            }),
            questions: self.may_ask.then(|| Questions { control: self.control.downgrade() }),
        })
    }

    /// A server has another state, or offers something else.
    fn changed(&self, server: &Arc<Server>) {
        // What ends with the session is no news.
        if self.cancel.is_cancelled() {
            return;
        }
        if let Some(challenge) = server.wants() {
            self.tell_once(server.error(wider_hint(&server.entry(), &challenge)));
        }
        match server.state() {
            State::Connected if !server.entry().scope.is_stored() => {}
            State::Connected => Cache::store(self.dirs.agent(), &server.entry(), &server.offer()),
            State::Failed(text) => self.tell_once(server.error(text)),
            State::NeedsSignIn(_) => self.tell_once(server.error(sign_in_hint(&server.entry()))),
            _ => {}
        }
        self.update();
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
}

impl Hooks for Mcp {
    fn settle(&self, _cancel: &CancelToken) {
        self.follow_config();
    }

    fn wants(&self, event: &str) -> bool {
        match event {
            "tool_call" => !self.inside().servers.is_empty(),
            "input" => with_resources(&self.servers()).next().is_some(),
            SERVERS_CHANGED => true,
            _ => false,
        }
    }

    fn server_fault(&self, server: &RegisteredServer) -> Option<String> {
        config::check(&server.name, &mut server.config.clone()).err()
    }

    /// A script waits for the servers that it may call; a prompt gets the resources that it names.
    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        if event["type"] == SERVERS_CHANGED {
            // Who tells of it may hold up others while servers end.
            let mcp = self.this.clone();
            let follow = move || mcp.upgrade().iter().for_each(|mcp| mcp.follow_config());
            if let Err(error) = Thread::named("mcp-follow").start(follow) {
                self.tell_once(format!("MCP: no thread can be started: {error}"));
            }
        } else if event["type"] == "input" {
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

/// Ends servers, all at once.
fn end(servers: Vec<Arc<Server>>) {
    let until = Instant::now() + END;
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || server.end(until));
        }
    });
}
