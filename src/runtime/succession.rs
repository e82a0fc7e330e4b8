//! Changes the conversation of a process to a new one, a stored one or a fork, or reloads its configuration.
//!
//! The previous conversation is closed first. Settings, models, tools and prompt of the next one are made for
//! its folder, as at a start.

use super::config::Config;
use super::control::Parts;
use super::hook::Flow;
use super::session::Session;
use super::todo;
use super::ui::{Change, Problem};
use crate::agent::run::Fatal;
use crate::base::json::json;
use crate::session::entry::Body;
pub use crate::session::upkeep::ImportedCopy;
use crate::session::{Log, SessionError, Store, SyncMode, store, upkeep};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Renew = Box<dyn FnMut(&Config, &Renewal) -> Result<Config, String> + Send>;

/// Why a configuration is made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Files may have changed. Programs that take part in sessions are started anew.
    Reload,
    /// Handlers have named further files.
    Found(Found),
}

/// Files and folders of skills, prompt templates and themes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub skills: Vec<String>,
    pub prompts: Vec<String>,
    pub themes: Vec<String>,
}

/// Opens further conversations, and makes their configuration.
pub struct Succession {
    store: Option<Store>,
    make: Make,
    renew: Renew,
}

type Make = Box<dyn FnMut(Log, Folder) -> Result<Next, String> + Send>;

/// A conversation to change to.
pub struct Next {
    pub parts: Parts,
    /// Has programs that take part in sessions follow into the folder of the conversation. Called once the
    /// conversation before has ended, and before the next one begins.
    pub enter: Box<dyn FnOnce() + Send>,
}

/// The working folder for a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// The folder that the session records.
    Own,
    /// The folder of the program, if the session's folder is gone.
    Here,
}

/// How a stored session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Continues in a copy.
    Fork,
    /// Reads the session, and stores no further messages.
    Read,
}

/// Why a stored session was not opened.
#[derive(Debug, PartialEq)]
pub enum NotOpened {
    /// Another process writes to the session, as the text explains.
    Held(String),
    /// The session's recorded folder, which does not exist any more.
    FolderGone(PathBuf),
    /// A handler cancelled it.
    Cancelled,
    Failed(String),
}

impl From<Fatal> for NotOpened {
    fn from(Fatal(reason): Fatal) -> Self {
        Self::Failed(reason)
    }
}

impl From<SessionError> for NotOpened {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Held { .. } => Self::Held(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Succession {
    /// Makes a succession. Without a store no conversation is saved. `make` makes the parts of a conversation
    /// from its log; `renew` reloads a configuration.
    pub fn new(
        store: Option<Store>,
        make: impl FnMut(Log, Folder) -> Result<Next, String> + Send + 'static,
        renew: impl FnMut(&Config, &Renewal) -> Result<Config, String> + Send + 'static,
    ) -> Self {
        Self { store, make: Box::new(make), renew: Box::new(renew) }
    }

    fn create(&self, cwd: &Path, parent: Option<String>) -> Result<Log, SessionError> {
        match &self.store {
            Some(store) => store.create_child(cwd, None, parent),
            None => Log::in_memory(cwd, None),
        }
    }
}

impl Session {
    /// Starts an empty conversation in the current folder. `parent` is the path of the session to record as
    /// its origin. False if a handler cancels it.
    pub fn start_new(&mut self, parent: Option<String>) -> Result<bool, Fatal> {
        self.start_with(parent, Vec::new())
    }

    /// Starts a conversation that begins with `entries`.
    pub fn start_with(&mut self, parent: Option<String>, entries: Vec<Body>) -> Result<bool, Fatal> {
        if !self.permits("session_before_switch", json!({"reason": "new"})) {
            return Ok(false);
        }
        let cwd = self.cwd();
        let succession = self.next()?;
        let log = succession.create(&cwd, parent)?;
        let mut next = (succession.make)(log, Folder::Own).map_err(Fatal)?;
        // Model and thinking level, which a session begins with, are recorded already.
        for entry in entries {
            next.parts.conversation.append(entry)?;
        }
        self.succeed(next, "new").map(|()| true)
    }

    /// Opens the session at `path`, or starts a new one if there is no such file. False if a handler cancels it.
    pub fn open_other(&mut self, path: &Path) -> Result<bool, Fatal> {
        match self.visit(path, Way::Open, Folder::Own) {
            Ok(()) => Ok(true),
            Err(NotOpened::Cancelled) => Ok(false),
            Err(NotOpened::Held(reason) | NotOpened::Failed(reason)) => Err(Fatal(reason)),
            Err(NotOpened::FolderGone(home)) => Err(Fatal(format!(
                "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {}",
                home.display(),
                path.display(),
                self.cwd().display()
            ))),
        }
    }

    /// Changes to the session at `path`: opened, copied or only read, as `way` says.
    pub fn visit(&mut self, path: &Path, way: Way, folder: Folder) -> Result<(), NotOpened> {
        let cwd = self.cwd();
        let path = cwd.join(path);
        let own = self.control().log().path().map(ToOwned::to_owned);
        let is_own = own.is_some_and(|own| own == path || same_file(&own, &path));
        let store = self.next()?.store.clone();
        if folder == Folder::Own
            && way != Way::Fork
            && let Some(home) = store::home(&path)
            && !home.is_dir()
        {
            return Err(NotOpened::FolderGone(home));
        }
        let target = json!({"reason": "resume", "targetSessionFile": path.to_string_lossy()});
        if !self.permits("session_before_switch", target) {
            return Err(NotOpened::Cancelled);
        }
        if is_own && way == Way::Open {
            // One that cannot be opened must not cost this session its own.
            drop(Log::open_detached(&path)?);
            // A session file has one writer: this session releases the file first.
            self.control().end_log()?;
        }
        let log = match (way, &store) {
            (Way::Read, _) => Log::open_detached(&path),
            (Way::Fork, Some(store)) => store.fork_from(&path, &cwd, None),
            (Way::Fork, None) => Log::open_detached(&path),
            (Way::Open, Some(store)) => store.open(&path, &cwd),
            (Way::Open, None) => Log::open(&path, &cwd, SyncMode::Turn),
        };
        let next = (self.next()?.make)(log?, folder).map_err(NotOpened::Failed)?;
        Ok(self.succeed(next, if way == Way::Fork { "fork" } else { "resume" })?)
    }

    /// Copies a session file to the sessions of this folder. Returns the path of the copy, and the copy to keep when
    /// it is used.
    pub fn import(&mut self, source: &Path) -> Result<(PathBuf, Option<ImportedCopy>), Fatal> {
        if !source.exists() {
            return Err(Fatal(format!("File not found: {}", source.display())));
        }
        let cwd = self.cwd();
        let Some(store) = self.next()?.store.clone() else {
            return Ok((source.to_owned(), None));
        };
        let imported = upkeep::import(source, &store.folder(&cwd))?;
        let mut log = self.control().log();
        imported.notices.into_iter().for_each(|notice| log.notice(notice));
        Ok((imported.path, imported.copy))
    }

    /// Switches to a fork that ends before the user message `entry`. Returns the message's text; none if a handler
    /// cancels it.
    pub fn fork_before(&mut self, entry: &str) -> Result<Option<String>, Fatal> {
        if !self.permits("session_before_fork", json!({"entryId": entry, "position": "before"})) {
            return Ok(None);
        }
        let (log, text) = {
            let log = self.control().log();
            let is_first = log.entry(entry).is_some_and(|entry| entry.parent_id.is_none());
            if !is_first && log.entry(entry).is_some() {
                check_saved(&log)?;
            }
            log.fork_before(entry)?
        };
        self.go_on_with(log, "fork")?;
        Ok(Some(text))
    }

    /// Changes to a copy of the current branch. False if a handler cancels it.
    pub fn fork_here(&mut self) -> Result<bool, Fatal> {
        let leaf = self.control().log().leaf().map(str::to_owned);
        let leaf = leaf.ok_or_else(|| Fatal("Cannot clone session: no current entry selected".into()))?;
        self.fork_at(&leaf)
    }

    /// Changes to a copy of the branch that ends with `entry`. False if a handler cancels it.
    pub fn fork_at(&mut self, entry: &str) -> Result<bool, Fatal> {
        if !self.permits("session_before_fork", json!({"entryId": entry, "position": "at"})) {
            return Ok(false);
        }
        let log = {
            let log = self.control().log();
            check_saved(&log)?;
            log.fork_at(entry)?
        };
        self.go_on_with(log, "fork").map(|()| true)
    }

    /// Reloads settings, models, skills, templates, context files and prompts. The conversation, its model
    /// and its active tools stay; the next request tells the model what changed.
    pub fn reload(&mut self) -> Result<(), Fatal> {
        let config = self.control().config();
        self.tell("session_shutdown", json!({"reason": "reload"}));
        let config = (self.next()?.renew)(&config, &Renewal::Reload).map_err(Fatal)?;
        self.reconfigure(Arc::new(config));
        self.open("reload");
        Ok(())
    }

    /// Asks handlers for further skills, prompt templates and themes, and takes them up.
    pub fn discover(&mut self, reason: &str) -> Result<(), Fatal> {
        let control = self.control().clone();
        let cwd = self.cwd();
        let mut found = Found::default();
        let fields = || json!({"cwd": cwd.to_string_lossy(), "reason": reason});
        let mut fold = |_: &mut Value, result: Result<Value, String>| {
            let Ok(result) = result else { return Flow::Next };
            let lists = [
                ("skillPaths", &mut found.skills),
                ("promptPaths", &mut found.prompts),
                ("themePaths", &mut found.themes),
            ];
            for (name, list) in lists {
                let paths = result[name].as_array().into_iter().flatten().filter_map(Value::as_str);
                list.extend(paths.map(|path| cwd.join(path).to_string_lossy().into_owned()));
            }
            Flow::Next
        };
        control.wait_for_handlers(control.root(), |cancel| {
            control.hooked().ask("resources_discover", fields, cancel, &mut fold);
        });
        // A session of an editor stays as it was opened.
        if found == Found::default() || self.succession().is_none() {
            return Ok(());
        }
        let config = control.config();
        let config = (self.next()?.renew)(&config, &Renewal::Found(found)).map_err(Fatal)?;
        self.reconfigure(Arc::new(config));
        if let Some(ui) = control.ui() {
            ui.show(Change::Resources);
        }
        Ok(())
    }

    /// Waits a moment for handlers that are being started, and tells them that the session has begun.
    pub fn open(&mut self, reason: &str) {
        self.control().settle_hooks(&self.control().begin_settling());
        todo::show(self.control());
        self.tell("session_start", json!({"reason": reason}));
        self.discover_or_report(if reason == "reload" { reason } else { "startup" });
    }

    fn discover_or_report(&mut self, reason: &str) {
        if let Err(Fatal(error)) = self.discover(reason) {
            let event = "resources_discover".to_owned();
            self.control().report(&Problem { source: "resources".to_owned(), event, error });
        }
    }

    fn permits(&self, event: &str, fields: Value) -> bool {
        let control = self.control();
        control.wait_for_handlers(control.root(), |cancel| {
            control.hooked().permits(event, || fields, cancel) && !cancel.is_cancelled()
        })
    }

    pub(super) fn tell(&self, event: &str, fields: Value) {
        let control = self.control();
        control.wait_for_handlers(control.root(), |cancel| control.hooked().tell(event, || fields, cancel));
    }

    fn go_on_with(&mut self, log: Log, reason: &str) -> Result<(), Fatal> {
        let next = (self.next()?.make)(log, Folder::Own).map_err(Fatal)?;
        self.succeed(next, reason)
    }

    /// Goes on with another conversation, and tells of it.
    fn succeed(&mut self, Next { parts, enter }: Next, reason: &str) -> Result<(), Fatal> {
        let target = parts.conversation.path().map(|path| path.to_string_lossy().into_owned());
        self.tell("session_shutdown", json!({"reason": reason, "targetSessionFile": target}));
        let previous = self.control().log().path().map(|path| path.to_string_lossy().into_owned());
        // What works in the background belongs to the conversation that it answers.
        self.control().helpers().end(self.control().root());
        let replaced = self.replace(parts);
        // Also if the file of the conversation before could not be closed: this one goes on.
        enter();
        replaced?;
        self.control().restore_planning();
        todo::show(self.control());
        self.control().settle_hooks(&self.control().begin_settling());
        self.control().renew_hooks();
        self.tell("session_start", json!({"reason": reason, "previousSessionFile": previous}));
        self.discover_or_report("startup");
        Ok(())
    }

    fn cwd(&self) -> PathBuf {
        self.workspace().cwd.clone()
    }

    fn next(&mut self) -> Result<&mut Succession, Fatal> {
        self.succession().ok_or_else(|| Fatal("This session cannot be left for another one".into()))
    }
}

/// Returns an error if the session has a path but is not saved, since an unsaved session cannot be copied.
fn check_saved(log: &Log) -> Result<(), SessionError> {
    match log.path() {
        Some(path) if !log.is_saved() => Err(SessionError::NotSaved { path: path.to_owned() }),
        _ => Ok(()),
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
