//! The user, as parts of a session reach him: through whatever surface the mode has.
//!
//! A mode that can show something sets a [`Ui`] when it starts. Without one, questions are dismissed at once.

use super::event::Event;
use super::overlay::Overlay;
use crate::base::cancel::CancelToken;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A question that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog<'a> {
    Select { title: &'a str, options: &'a [String] },
    Confirm { title: &'a str, message: &'a str },
    Input { title: &'a str, placeholder: Option<&'a str> },
    Editor { title: &'a str, prefill: Option<&'a str> },
}

/// Asks the user while there is no session. None if there is no answer.
pub type Asker = Arc<dyn Fn(&Dialog<'_>) -> Option<String> + Send + Sync>;

impl Dialog<'_> {
    /// The name that other programs know it by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Select { .. } => "select",
            Self::Confirm { .. } => "confirm",
            Self::Input { .. } => "input",
            Self::Editor { .. } => "editor",
        }
    }

    pub fn title(&self) -> &str {
        let (Self::Select { title, .. }
        | Self::Confirm { title, .. }
        | Self::Input { title, .. }
        | Self::Editor { title, .. }) = self;
        title
    }
}

/// What is shown without an answer. A text of none takes away what was shown before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Notify {
        message: String,
        severity: Severity,
    },
    Status {
        key: String,
        text: Option<String>,
    },
    Widget {
        key: String,
        lines: Option<Vec<String>>,
        is_below: bool,
    },
    Header(Option<Vec<String>>),
    Footer(Option<Vec<String>>),
    Title(String),
    WorkingMessage(Option<String>),
    /// False if running work is not shown above the editor.
    WorkingVisible(bool),
    WorkingIndicator(Option<Indicator>),
    /// What stands for thinking that is not shown.
    ThinkingLabel(Option<String>),
    ToolsExpanded(bool),
    /// A notification of the desktop, through the terminal.
    DesktopNotify {
        title: String,
        body: String,
    },
    /// There are other skills, prompt templates, commands of servers, or themes.
    Resources,
    /// Other tools are active.
    Tools,
    /// What an extension draws of the tool call with this id is out of date.
    Redraw(String),
    EditorText(String),
    /// Text that is put into the editor where the cursor is.
    Paste(String),
}

/// Frames that are shown in turn while work is running. None, and nothing is shown before the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indicator {
    pub frames: Vec<String>,
    pub interval: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "info" => Some(Self::Info),
            "warning" => Some(Self::Warning),
            "error" => Some(Self::Error),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A failure of a part that was added to the session. The session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The part: a path.
    pub source: String,
    /// What it was doing.
    pub event: String,
    pub error: String,
}

/// Room of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Cells that its lines may have.
    pub width: usize,
    pub rows: usize,
    /// Cells of the screen.
    pub columns: usize,
}

/// What a component has drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    pub lines: Vec<String>,
    /// Row and column.
    pub cursor: Option<(usize, usize)>,
    /// A new place for an overlay.
    pub overlay: Option<Box<Overlay>>,
    /// True for an overlay that is not to be seen on a screen of this size.
    pub is_hidden: bool,
}

/// Where a component stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Instead of the editor, with the focus, until it is closed.
    Dialog,
    /// Over the rest of the screen.
    Overlay(Box<Overlay>),
    /// As the editor: it is given all keys, and may have pi's own editor draw and take keys.
    Editor,
}

/// A change of an overlay that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrange {
    Hidden(bool),
    Focused(bool),
}

/// Something on the screen that its owner draws, and that gets the keys.
pub trait Component: Send + Sync {
    /// Says how much room it has.
    fn resize(&self, room: Room);

    /// Takes a key: as a terminal sends it, and its name as in `keybindings.json`.
    fn input(&self, data: &str, key: &str);

    /// Says that it has the focus now, or has not any more.
    fn focus(&self, is_focused: bool);

    /// Has it drawn again.
    fn redraw(&self);

    /// Takes it from the screen, whatever its owner wants.
    fn dismiss(&self);

    /// What the user is waited for while it is on the screen, if work waits for it.
    fn awaited(&self) -> Option<&Awaited> {
        None
    }
}

/// What the user is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Awaited {
    pub kind: AwaitedKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AwaitedKind {
    Permission,
    Question,
    Auth,
}

/// A question to the surface itself, which it answers at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Cells of the screen.
    Width,
    EditorText,
    /// Pi's own editor in so many cells: `lines` and `cursor`.
    Editor(usize),
    /// Colours of the theme of this name, otherwise of the one in use.
    Theme(Option<String>),
    Themes,
    /// Changes to a theme: `success`, `error`.
    SetTheme(String),
    /// Keys by the ids of actions.
    Keybindings,
    ToolsExpanded,
    /// Texts of the status line by their keys.
    Statuses,
}

/// A surface that reaches the user. Called from many threads at once.
pub trait Ui: Send + Sync {
    /// Asks, and waits for the answer: the text, or `yes` for a confirmation. `None` if the question was dismissed,
    /// cancelled or not answered in time.
    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String>;

    fn show(&self, change: Change);

    fn problem(&self, problem: &Problem);

    /// Tells the user something that he has to know, whether or not there is a screen.
    fn tell(&self, severity: Severity, message: String) {
        self.show(Change::Notify { message, severity });
    }

    /// Takes the events that no run of the agent caused.
    fn event(&self, event: &Event<'_>) {
        let _ = event;
    }

    /// Shows a component under a number of the caller. False if there is no screen.
    fn open(&self, number: u64, component: Arc<dyn Component>, place: Place) -> bool {
        let _ = (number, component, place);
        false
    }

    /// Takes what a component has drawn.
    fn drawn(&self, number: u64, picture: Picture) {
        let _ = (number, picture);
    }

    fn arrange(&self, number: u64, arrange: Arrange) {
        let _ = (number, arrange);
    }

    /// Takes a component from the screen.
    fn close(&self, number: u64) {
        let _ = number;
    }

    /// True if somebody may answer questions.
    fn is_attended(&self) -> bool {
        true
    }

    /// True if the session goes on when a run has ended.
    fn lasts(&self) -> bool {
        true
    }

    /// True if the user is told what requests beside the conversation cost, so that prompt caches may be kept warm.
    fn tells_costs(&self) -> bool {
        false
    }

    /// Answers a question about the screen. Null without one.
    fn read(&self, query: Query) -> Value {
        let _ = query;
        Value::Null
    }

    /// Gives a key, as a terminal sends it, to pi's own editor.
    fn editor_input(&self, data: String) {
        let _ = data;
    }
}

/// The answer to a confirmation.
pub const YES: &str = "yes";
