//! What is to be done: what keys of dialogs ask for, and what threads have found out.
//!
//! The list is closed. `carry_out` does each in one place, on the drawing thread; who asks knows nothing of
//! sessions or of the screen.

use super::card::{Call, Weight};
use super::dialog::sessions::list::Found;
use crate::runtime::approval::Decision;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::outline::{ForkPoint, Outline};
use crate::runtime::shell::ShellResult;
use crate::runtime::sign_in::{Answer as SignInAnswer, Door, Event as SignInEvent, Prompt, Way};
use crate::runtime::stats::Stats;
use crate::runtime::succession::{Folder, NotOpened, Way as Opening};
use crate::runtime::tree::Moved;
use crate::runtime::trust::{Answer, Project, Snapshot};
use crate::runtime::undo::{Plan, Undone};
use crate::runtime::{Model, Scoped, Settings, ThinkingLevel};
use crossbeam_channel::Sender;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

pub enum Effect {
    /// The dialog that asks for it closes; what else it asks for is done then.
    Close,
    Say(Weight, String),
    /// A text goes to the clipboard; then this is said.
    Copy(String, &'static str),
    /// The answer with this index, of a question that nothing follows from here.
    Answer(usize),
    /// A slash command.
    Call(&'static str),
    /// Something has changed that is drawn.
    Draw,
    /// Sequences for the terminal that are no part of a frame.
    Write(String),
    /// Text for the editor, as if it were pasted.
    Paste(String),
    /// Text of a prompt that could not be sent, and why.
    Refuse {
        reason: String,
        typed: String,
    },
    /// Files of the project, for completion.
    ListFiles {
        listing: u64,
        found: Vec<String>,
        is_first: bool,
        is_whole: bool,
    },
    /// An open dialog is told something.
    Update(Update),

    UseModel {
        model: Arc<Model>,
        saves: bool,
    },
    UseThinking {
        level: ThinkingLevel,
        saves: bool,
    },
    UseScope(Vec<Scoped>),
    /// Patterns for the setting; none: all models.
    SaveScope(Option<Vec<String>>),
    /// Servers of this machine have answered, some of them not to be trusted.
    FoundModels {
        has_found: bool,
        strangers: Vec<String>,
    },
    UseTools(Vec<String>),
    SaveTools(Vec<String>),

    WriteSetting {
        path: &'static str,
        value: Option<Value>,
    },
    ChooseTheme(ThemeFor),
    /// Draws with a theme without choosing it; without a name, with the one that is chosen.
    PreviewTheme(Option<String>),
    UseTheme(String),
    ListModelLevels,
    ChooseModelLevel(Arc<Model>),
    /// A level for one model; none: as for all.
    SetModelLevel {
        model: Arc<Model>,
        level: Option<ThinkingLevel>,
    },

    /// Another conversation is in place; then this is said.
    Begin(String),
    Reloaded {
        was_trusted: bool,
    },
    ShowStats {
        stats: Box<Stats>,
        name: Option<String>,
    },
    Summed {
        changes: u64,
        stats: Box<Stats>,
    },
    Shared(Result<String, String>),
    /// A file that is taken among the sessions, as it was typed and where it is.
    Import {
        path: PathBuf,
        word: String,
    },
    Rename(String),
    Open(Opened),
    Visited {
        session: Opened,
        done: Result<(), NotOpened>,
    },
    Trust(Box<TrustDecision>),
    ShellEnded(Result<ShellResult, String>),
    /// What an edit would change, by the id of its call.
    Preview {
        id: String,
        diff: String,
    },

    OpenTree(Option<String>),
    GoTo(String),
    AskInstructions(String),
    AskSummary(String),
    /// Goes to an entry; the branch that is left is summed up if there is a summary.
    Navigate {
        id: String,
        summary: Option<Summary>,
    },
    Navigated {
        id: String,
        moved: Box<Result<Moved, NotCompacted>>,
    },
    /// What runs besides the agent, as the editor's border says it.
    Busy(Option<&'static str>),
    CopyEntry(String),
    Label {
        id: String,
        label: Option<String>,
    },
    ListForks(Vec<ForkPoint>),
    Fork(String),
    /// A fork is in place; the prompt that it was made before.
    Forked(String),

    PlanUndo(Box<UndoPlan>),
    Undo {
        session: PathBuf,
        plans: Vec<Plan>,
        forces: bool,
    },
    Undone {
        done: Vec<Undone>,
        problem: Option<String>,
    },

    ChooseProvider(Option<Way>),
    SignIn(Door),
    StoreKey {
        door: Door,
        key: String,
    },
    /// A credential is stored.
    SignedIn {
        provider: String,
        name: String,
        way: Way,
    },
    SignOut {
        provider: String,
        name: String,
        way: Way,
    },
    SignedOut(Option<(Weight, String)>),
    OpenAddress(String),

    /// A tool call is to be approved.
    Approve {
        call: Box<Call>,
        reply: Sender<Decision>,
    },
}

/// What is put before an open dialog.
pub enum Update {
    /// The call with this id is not to be decided on any more.
    ApprovalOver(String),
    Models(ModelLists),
    ScopeSaved,
    /// The tools that are active.
    Tools(Vec<String>),
    /// The settings as they are now; the result is that of the change that a dialog has asked for.
    Settings {
        settings: Box<Settings>,
        result: Option<Result<(), String>>,
    },
    Outline(Option<Outline>),
    Sessions(Found),
    ReloadSessions,
    SignIn {
        number: u64,
        news: SignInNews,
    },
}

/// The models that a list shows.
#[derive(Clone, Default)]
pub struct ModelLists {
    pub all: Vec<Arc<Model>>,
    /// Those that keys change between; empty: all.
    pub scope: Vec<Arc<Model>>,
    /// Provider and id.
    pub current: (String, String),
    pub default: Option<(String, String)>,
    /// Servers of this machine are being asked.
    pub is_looking: bool,
}

/// What a sign-in has for its dialog.
pub enum SignInNews {
    Tell(SignInEvent),
    Ask(Prompt, Sender<SignInAnswer>),
    /// The question has been taken back.
    AskNoMore,
    Over,
}

/// Terminals that a theme is chosen for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThemeFor {
    All,
    Light,
    /// The theme for light terminals is chosen.
    Dark(String),
}

/// How a branch that is left is summed up.
pub struct Summary {
    pub instructions: Option<String>,
}

/// A stored session to go on with, and how.
#[derive(Clone)]
pub struct Opened {
    pub path: PathBuf,
    pub way: Opening,
    pub folder: Folder,
    /// What is said when it is there.
    pub done: String,
    /// The user was asked whether the project of its folder is trusted.
    pub is_asked: bool,
}

impl Opened {
    pub fn new(path: PathBuf, done: &str) -> Self {
        Self { path, way: Opening::Open, folder: Folder::Own, done: done.to_owned(), is_asked: false }
    }
}

/// The user's word on a project.
pub struct TrustDecision {
    pub project: Project,
    /// What the project brought when the user was asked.
    pub look: Snapshot,
    pub answer: Option<Answer>,
    /// The session that is opened then; without one, what follows is said.
    pub session: Option<Opened>,
}

/// What `/undo` would do.
pub struct UndoPlan {
    pub session: PathBuf,
    /// Each with the diff that is shown of it.
    pub plans: Vec<(Plan, Option<String>)>,
    pub doubts: Vec<String>,
}
