//! The user, as parts of a session reach him: through whatever surface the mode has.
//!
//! A mode that can show something sets a [`Ui`] when it starts. Without one, questions are dismissed at once.

use super::event::Event;
use crate::base::cancel::CancelToken;
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
    EditorText(String),
    /// Text that is put into the editor where the cursor is.
    Paste(String),
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

/// Something on the screen that its owner draws, and that gets the keys.
pub trait Component: Send + Sync {
    /// Says how much room it has: cells and rows.
    fn resize(&self, width: usize, rows: usize);

    /// Takes a key: as a terminal sends it, and its name as in `keybindings.json`.
    fn input(&self, data: &str, key: &str);

    /// Takes it from the screen, whatever its owner wants.
    fn dismiss(&self);
}

/// A surface that reaches the user. Called from many threads at once.
pub trait Ui: Send + Sync {
    /// Asks, and waits for the answer: the text, or `yes` for a confirmation. `None` if the question was dismissed,
    /// cancelled or not answered in time.
    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String>;

    fn show(&self, change: Change);

    fn problem(&self, problem: &Problem);

    /// Takes the events that no run of the agent caused.
    fn event(&self, event: &Event<'_>) {
        let _ = event;
    }

    /// Shows a component with the focus, under a number of the caller. False if there is no screen.
    fn open(&self, number: u64, component: Arc<dyn Component>) -> bool {
        let _ = (number, component);
        false
    }

    /// Takes what a component has drawn: its lines, and the row and column of the cursor.
    fn drawn(&self, number: u64, lines: Vec<String>, cursor: Option<(usize, usize)>) {
        let _ = (number, lines, cursor);
    }

    /// Takes a component from the screen.
    fn close(&self, number: u64) {
        let _ = number;
    }

    /// The width of the screen in cells.
    fn width(&self) -> usize {
        80
    }

    /// The text of the editor.
    fn editor_text(&self) -> String {
        String::new()
    }
}

/// The answer to a confirmation.
pub const YES: &str = "yes";
