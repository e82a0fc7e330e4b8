//! Decides which tool calls run, which are asked about, and which are refused.
//!
//! A decision is a pure function of the rules, the mode and the call. Rules that deny go before rules that ask,
//! these before rules that allow; where no rule says anything, the mode decides. A rule about commands holds
//! for every simple command of a call: one that is not allowed is enough to ask, one that is denied to refuse.
//! What cannot be read for certain is asked about.
//!
//! Not here: the question itself (`approval`).

mod propose;
mod rule;
mod shell;

pub use propose::{Always, proposals};
pub use rule::Rule;
pub use shell::{parse as parse_command, quoted};

use crate::resources::settings::Settings;
use rule::{Match, moves, target_paths};
use serde_json::{Map, Value};
use shell::{Simple, Word};
use std::path::{Path, PathBuf};

/// What happens to calls about which no rule says anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All calls run.
    #[default]
    Free,
    /// Calls of tools that are not known to change nothing are asked about.
    Writes,
    /// All calls are asked about.
    All,
    /// Calls of tools that are not known to change nothing are refused, whatever rules allow.
    ReadOnly,
    /// Calls of the tools with these names are asked about.
    Named(Vec<String>),
    /// All calls are asked about, whatever rules of the settings allow: the client has rules of its own.
    Every,
}

impl Mode {
    /// The modes that the user changes between.
    pub const CHOICES: [Self; 4] = [Self::Writes, Self::All, Self::Free, Self::ReadOnly];

    /// Parses a value of `--ask-tools`: `all`, `writes`, `every`, or tool names separated by commas.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "all" => Self::All,
            "writes" => Self::Writes,
            "every" => Self::Every,
            names => {
                let names = names.split(',').map(str::trim);
                Self::Named(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
            }
        }
    }

    /// Returns the mode with this name in the settings.
    pub fn of_setting(name: &str) -> Self {
        Self::CHOICES.into_iter().find(|mode| mode.name() == name).unwrap_or_default()
    }

    /// The mode's name in the settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Writes => "writes",
            Self::All => "all",
            Self::ReadOnly => "read-only",
            Self::Named(_) => "named",
            Self::Every => "every",
        }
    }

    /// A few words about the mode.
    pub fn about(&self) -> String {
        match self {
            Self::Free => "runs without asking".into(),
            Self::Writes => "asks before changes".into(),
            Self::All | Self::Every => "asks before each call".into(),
            Self::ReadOnly => "changes nothing".into(),
            Self::Named(names) if names.is_empty() => Self::Free.about(),
            Self::Named(names) => format!("asks before {}", names.join(", ")),
        }
    }

    /// The mode after this one in the order of [`Self::CHOICES`].
    pub fn next(&self) -> Self {
        let at = Self::CHOICES.iter().position(|mode| mode == self).map_or(0, |at| at + 1);
        Self::CHOICES.get(at).cloned().unwrap_or(Self::Writes)
    }
}

/// What a rule does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Allow,
    Ask,
    Deny,
}

impl Effect {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The setting with such rules.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Allow => "permissions.allow",
            Self::Ask => "permissions.ask",
            Self::Deny => "permissions.deny",
        }
    }
}

/// Where a rule comes from, and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Until the program ends.
    Session,
    /// The command line.
    Flag,
    /// The user's settings, for the folder of the session only.
    Folder,
    /// The user's settings.
    User,
    /// The settings of a trusted project.
    Project,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Flag => "command line",
            Self::Folder => "this folder",
            Self::User => "everywhere",
            Self::Project => "the project's settings",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub effect: Effect,
    pub scope: Scope,
    pub rule: Rule,
}

/// The setting with the rules of folders.
pub const FOLDERS: &str = "permissions.folders";

/// The mode, and all rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub mode: Mode,
    pub entries: Vec<Entry>,
    /// Rules that cannot be read, with what is wrong.
    pub faults: Vec<String>,
    /// True if every call is asked about, since a rule that asks or denies cannot be read.
    pub asks_for_all: bool,
}

impl Policy {
    /// Makes the policy of a session in `cwd`. `mode` and the names of tools in `allowed` are the command line's.
    pub fn new(mode: Option<&Mode>, allowed: &[String], settings: &Settings, cwd: &Path) -> Self {
        let stored = || Mode::of_setting(settings.word("permissions.mode"));
        let mut policy = Self { mode: mode.cloned().unwrap_or_else(stored), ..Self::default() };
        for name in allowed {
            policy.add(Effect::Allow, Scope::Flag, name);
        }
        for effect in Effect::ALL {
            let (user, project) = settings.resources(effect.setting());
            user.iter().for_each(|text| policy.add(effect, Scope::User, text));
            project.iter().for_each(|text| policy.add(effect, Scope::Project, text));
        }
        let here = settings.get(FOLDERS).and_then(|folders| folders.get(&*cwd.to_string_lossy()));
        let here = here.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        here.for_each(|text| policy.add(Effect::Allow, Scope::Folder, text));
        policy
    }

    /// Adds a rule, unless it cannot be read.
    pub fn add(&mut self, effect: Effect, scope: Scope, text: &str) {
        match Rule::parse(text) {
            Ok(rule) => self.entries.push(Entry { effect, scope, rule }),
            Err(fault) => {
                self.asks_for_all |= effect != Effect::Allow;
                let effect = effect.setting();
                self.faults.push(format!("{effect}: {text:?} {fault}; see `pi docs permissions`"));
            }
        }
    }

    /// True if every call is allowed.
    pub fn is_empty(&self) -> bool {
        self.mode == Mode::Free
            && !self.asks_for_all
            && self.entries.iter().all(|entry| entry.effect == Effect::Allow)
    }

    fn rules(&self, effect: Effect) -> impl Iterator<Item = &Rule> {
        let counts = move |entry: &&Entry| {
            entry.effect == effect
                && (effect != Effect::Allow || self.mode != Mode::Every || entry.scope == Scope::Flag)
        };
        self.entries.iter().filter(counts).map(|entry| &entry.rule)
    }

    /// True if rules allow a call, every part of it.
    fn allows(&self, call: &Call<'_>) -> bool {
        if self.rules(Effect::Allow).any(|rule| rule.is_about_all_of(call.tool)) {
            return true;
        }
        let Subject::Command(found) = &call.subject else {
            return self.rules(Effect::Allow).any(|rule| rule.allows(call));
        };
        let Some(found) = found.as_ref().filter(|found| !found.is_empty()) else {
            return false;
        };
        let mut is_moved = false;
        found.iter().all(|simple| {
            let is_allowed = self.allows_simple(call, simple, is_moved);
            is_moved |= moves(simple);
            is_allowed
        })
    }

    fn allows_simple(&self, call: &Call<'_>, simple: &Simple, is_moved: bool) -> bool {
        let has_words = !simple.words.is_empty() || !simple.assignments.is_empty();
        (!has_words || self.allows_words(call, simple, is_moved))
            && simple.writes.iter().all(|target| self.allows_target(target, is_moved, call.place))
    }

    fn allows_words(&self, call: &Call<'_>, simple: &Simple, is_moved: bool) -> bool {
        self.rules(Effect::Allow).any(|rule| rule.allows_command(call.tool, simple, is_moved))
    }

    /// True if a command may write the target of a redirection: what the tool `write` may write, and nothing.
    fn allows_target(&self, target: &Word, is_moved: bool, place: &Place<'_>) -> bool {
        if target.text().is_some_and(|text| ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&text)) {
            return true;
        }
        let paths = target_paths(target, is_moved, place).unwrap_or_default();
        !paths.is_empty() && self.rules(Effect::Allow).any(|rule| rule.allows_files("write", &paths, place))
    }
}

/// True for a shell, by its path, whose commands [`parse_command`] reads as the shell does.
pub fn is_known_shell(path: &str) -> bool {
    ["bash", "sh", "dash", "ash", "ksh", "zsh"].contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Where paths of a call lead.
pub struct Place<'a> {
    /// The folder of the session, by its path and by its real path.
    pub folders: &'a [PathBuf],
    pub home: Option<&'a Path>,
    /// Returns the absolute path of a path in a call, and the real one if it differs.
    pub resolve: &'a dyn Fn(&str) -> Vec<PathBuf>,
}

/// What a call is about.
pub enum Subject {
    /// The commands that the call gives to a shell; `None` if they are not understood.
    Command(Option<Vec<Simple>>),
    /// A file or folder: its absolute path, and its real path if that differs.
    Path {
        paths: Vec<PathBuf>,
        is_folder: bool,
    },
    Other,
}

/// A tool call that is decided on.
pub struct Call<'a> {
    pub tool: &'a str,
    /// True if the tool is known to change nothing.
    pub reads_only: bool,
    pub subject: Subject,
    pub arguments: &'a Map<String, Value>,
    pub place: &'a Place<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Ask; with the rule that asks, which no other rule can overrule.
    Ask(Option<String>),
    /// Refuse, for this reason.
    Deny(String),
}

/// Decides on a call.
pub fn judge(policy: &Policy, call: &Call<'_>) -> Verdict {
    let mut asks = policy.asks_for_all.then(|| "a rule that cannot be read".to_owned());
    for rule in policy.rules(Effect::Deny) {
        match rule.concerns(call) {
            Match::Yes => {
                return Verdict::Deny(format!(
                    "The rule \"deny {}\" of the user forbids this call",
                    rule.text()
                ));
            }
            Match::Maybe => asks = Some(format!("deny {}", rule.text())),
            Match::No => {}
        }
    }
    if policy.mode == Mode::ReadOnly && !call.reads_only {
        return Verdict::Deny(
            "Read-only mode: the user allows no calls that may change something for now".to_owned(),
        );
    }
    let asking = || policy.rules(Effect::Ask).find(|rule| rule.concerns(call) != Match::No);
    if let Some(asks) = asks.or_else(|| asking().map(|rule| format!("ask {}", rule.text()))) {
        return Verdict::Ask(Some(asks));
    }
    let asks = match &policy.mode {
        Mode::Free => false,
        Mode::Writes => !call.reads_only,
        Mode::All | Mode::Every => true,
        Mode::ReadOnly => false,
        Mode::Named(names) => names.iter().any(|name| name == call.tool),
    };
    if asks && !policy.allows(call) { Verdict::Ask(None) } else { Verdict::Allow }
}

#[cfg(test)]
mod tests;
