//! Actions that dialogs request and threads report.
//!
//! The list is closed. `carry_out` applies each effect in one place, on the drawing thread; the sender knows
//! nothing of sessions or of the screen.

use super::asked::Asked;
use super::card::{Call, Weight};
use super::dialog::sessions::list::Found;
use crate::runtime::approval::Decision;
use crate::runtime::cache_warming;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::control::Streaming;
use crate::runtime::filling::Filling;
use crate::runtime::helpers::Member;
use crate::runtime::outline::{ForkPoint, Outline};
use crate::runtime::permission::{self, Always, Entry, Mode, Policy, Scope};
use crate::runtime::reading::Messages;
use crate::runtime::shell::ShellResult;
use crate::runtime::sign_in::{Answer as SignInAnswer, Event as SignInEvent, Prompt, SignInMethod, Way};
use crate::runtime::stats::Stats;
use crate::runtime::succession::{Folder, ImportedCopy, NotOpened, Way as Opening};
use crate::runtime::tree::Moved;
use crate::runtime::trust::{Answer, Project, Snapshot};
use crate::runtime::ui::{Arrange, Change, Component, Picture, Place, Query};
use crate::runtime::undo::{Plan, Undone};
use crate::runtime::{Block, Model, Scoped, Settings, ThinkingLevel};
use crate::tui::complete::Wanted;
use crate::tui::select::Item;
use crossbeam_channel::Sender;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

pub enum Effect {
    /// Closes the dialog that sent the effect, before its other effects are applied.
    Close,
    /// Removes all dialogs.
    Dismiss,
    Say(Weight, String),
    /// Shows a notice above the editor, until the next one.
    Note(String),
    /// Copies a text to the clipboard, then shows the notice.
    Copy(String, &'static str),
    /// Index of the answer to a question that the caller evaluates.
    Answer(usize),
    /// Runs a slash command.
    Call(&'static str),
    /// Redraws the screen.
    Draw,
    /// Writes escape sequences to the terminal, besides the frame.
    Write(String),
    /// Inserts text into the editor as a paste.
    Paste(String),
    /// Puts a prompt that could not be sent back into the editor, with the reason.
    Refuse {
        reason: String,
        typed: String,
    },
    /// Puts a prompt that was aborted before it was sent back into the editor.
    GiveBack(String),
    /// Found files of the project, for completion.
    ListFiles {
        listing: u64,
        found: Vec<String>,
        is_first: bool,
        is_whole: bool,
    },
    /// A change for open dialogs.
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
    /// Patterns for the setting; `None` for all models.
    SaveScope(Option<Vec<String>>),
    /// Models of local servers, and servers that are not trusted.
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
    /// Shows the text of the changelog, as extensions have changed it.
    ShowChangelog(String),
    ChooseTheme(ThemeFor),
    /// Draws with a theme without choosing it; `None` returns to the chosen one.
    PreviewTheme(Option<String>),
    UseTheme(String),
    ListModelLevels,
    ChooseModelLevel(Arc<Model>),
    /// Thinking level of one model; `None` for the common one.
    SetModelLevel {
        model: Arc<Model>,
        level: Option<ThinkingLevel>,
    },

    /// Shows another conversation that was opened, then the notice.
    Begin(String),
    Reloaded {
        was_trusted: bool,
    },
    ShowStats {
        stats: Box<Stats>,
        name: Option<String>,
        warming: cache_warming::Status,
    },
    ShowContext(Box<Filling>),
    Summed {
        changes: u64,
        stats: Box<Stats>,
    },
    Shared(Result<String, String>),
    /// A session file to import: its path as typed, and resolved.
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
    /// Diff of an edit before it runs, by the id of its call.
    Preview {
        id: String,
        diff: String,
    },

    OpenTree(Option<String>),
    GoTo(String),
    AskInstructions(String),
    AskSummary(String),
    /// Goes to an entry; with `summary` the abandoned branch is summarised.
    Navigate {
        id: String,
        summary: Option<Summary>,
    },
    Navigated {
        id: String,
        moved: Box<Result<Moved, NotCompacted>>,
    },
    /// Name of work besides the agent, for the editor's border.
    Busy(Option<&'static str>),
    CopyEntry(String),
    Label {
        id: String,
        label: Option<String>,
    },
    ListForks(Vec<ForkPoint>),
    Fork(String),
    /// A fork was opened; the prompt that it ends before.
    Forked(String),

    /// Shows what a helper does.
    OpenHelper(Arc<Member>),
    /// Asks for a message to a helper.
    WriteToHelper(Arc<Member>),
    /// The answer to a question beside the conversation.
    AnswerAside(Result<String, String>),
    /// The first message of a new session.
    HandOff(Result<String, String>),
    HandedOff(String),
    ListRewinds(Vec<ForkPoint>),
    /// Asks what goes back to before this prompt.
    AskRewind(String),
    Rewind {
        id: String,
        files: bool,
        conversation: bool,
    },
    PlanUndo(Box<UndoPlan>),
    Undo {
        session: PathBuf,
        plans: Vec<Plan>,
        forces: bool,
        /// Entry that the conversation goes to afterwards.
        goes_to: Option<String>,
    },
    Undone {
        done: Vec<Undone>,
        problem: Option<String>,
        goes_to: Option<String>,
    },

    ChooseProvider(Option<Way>),
    SignIn(SignInMethod),
    StoreKey {
        method: SignInMethod,
        key: String,
    },
    /// A credential was stored.
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

    /// The call with this id waits for the answer to another question.
    Waits(String),
    /// Tells a decision to the call that waits for it.
    Decide(Sender<Decision>, Decision),
    /// The user has decided about the call with this id, which goes on.
    Approved(String),
    /// Sends the prompts that were held back.
    SendHeld,
    /// Sends a prompt that others have looked at.
    Send {
        text: String,
        images: Vec<Block>,
        streaming: Streaming,
    },
    /// The line that the command of the user's footer has printed, or why there is none.
    StatusLine(Result<String, String>),
    /// A question of an extension.
    Ask(Box<Asked>),
    /// Something that an extension shows.
    Show(Box<Change>),
    /// Shows a component of an extension.
    ShowComponent {
        number: u64,
        component: Arc<dyn Component>,
        place: Place,
    },
    Arrange(u64, Arrange),
    /// Answers a question of an extension about the screen.
    Read(Query, Sender<Value>),
    /// Keys that extensions have looked at.
    Typed(String),
    /// Gives keys to pi's own editor.
    TypeIn(String),
    /// Proposals for the text before the cursor, if that is still `before`.
    Offer {
        before: String,
        wanted: Wanted,
        items: Vec<Item>,
        is_asked: bool,
    },
    /// Asks the user to approve a tool call.
    Approve(Box<ToApprove>),
    /// Sets the mode of approval.
    UseMode {
        mode: Mode,
        saves: bool,
    },
    /// Adds a rule about tool calls.
    AddRule {
        effect: permission::Effect,
        scope: Scope,
        rule: String,
    },
    RemoveRule(Entry),
}

/// A tool call that waits for approval.
pub struct ToApprove {
    pub call: Call,
    /// What can be allowed for good, the narrowest first.
    pub always: Vec<Always>,
    /// The rule that asks.
    pub asked_by: Option<String>,
    pub reply: Sender<Decision>,
}

/// A change that open dialogs are told of.
pub enum Update {
    /// The call with this id needs no decision any more.
    ApprovalOver(String),
    /// The question of an extension with this number needs no answer any more.
    QuestionOver(u64),
    /// The question with this number goes away by itself in so many seconds.
    QuestionEnds(u64, u64),
    /// What the component with this number has drawn.
    Drawn {
        number: u64,
        picture: Picture,
    },
    ComponentOver(u64),
    /// Something about a helper has changed.
    Helpers,
    /// The messages of the helper with this name.
    HelperTurns(String, Result<Messages, String>),
    Models(ModelLists),
    ScopeSaved,
    /// The active tools.
    Tools(Vec<String>),
    /// The mode of approval and the rules.
    Policy(Policy),
    /// The current settings, with the result of a change that a dialog requested.
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

/// Models for the list.
#[derive(Clone, Default)]
pub struct ModelLists {
    pub all: Vec<Arc<Model>>,
    /// Models that keys cycle through; empty for all.
    pub scope: Vec<Arc<Model>>,
    /// Provider and id of the current model.
    pub current: (String, String),
    pub default: Option<(String, String)>,
    /// True while local servers are queried.
    pub is_looking: bool,
}

/// A message of a sign-in to its dialog.
pub enum SignInNews {
    Tell(SignInEvent),
    Ask(Prompt, Sender<SignInAnswer>),
    /// The question was withdrawn.
    AskNoMore,
    Over,
}

/// Terminal backgrounds that a theme is chosen for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThemeFor {
    All,
    Light,
    /// For dark terminals; the theme for light ones is already chosen.
    Dark(String),
}

/// How an abandoned branch is summarised.
pub struct Summary {
    pub instructions: Option<String>,
}

/// A stored session to open, and how.
#[derive(Clone)]
pub struct Opened {
    pub path: PathBuf,
    pub way: Opening,
    pub folder: Folder,
    /// Notice shown when the session is open.
    pub done: String,
    /// True if the user was already asked whether to trust the project of the folder.
    pub is_asked: bool,
    /// The file if it was imported for this: removed unless the session is opened.
    pub copy: Option<Arc<ImportedCopy>>,
}

impl Opened {
    pub fn new(path: PathBuf, done: &str) -> Self {
        let (way, folder, done) = (Opening::Open, Folder::Own, done.to_owned());
        Self { path, way, folder, done, is_asked: false, copy: None }
    }
}

/// The user's decision on the trust of a project.
pub struct TrustDecision {
    pub project: Project,
    /// State of the project when the user was asked.
    pub look: Snapshot,
    pub answer: Option<Answer>,
    /// Session to open after the decision; `None` shows a notice instead.
    pub session: Option<Opened>,
}

/// The planned changes of `/undo`.
pub struct UndoPlan {
    pub session: PathBuf,
    /// Plans, each with the diff to show.
    pub plans: Vec<(Plan, Option<String>)>,
    pub doubts: Vec<String>,
    /// What is not known of the time that is undone.
    pub unseen: Vec<String>,
    /// Entry that the conversation goes to afterwards.
    pub goes_to: Option<String>,
}
