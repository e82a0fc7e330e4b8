//! Descriptions of tool calls, for display, export and summaries.

use serde_json::{Map, Value};
use std::borrow::Cow;

pub type Arguments = Map<String, Value>;

/// Describes a call from the tool's name and the arguments.
pub type Describe<'d> = &'d dyn for<'a> Fn(&str, &'a Arguments) -> CallInfo<'a>;

/// A description of a tool call. The arguments may be incomplete, or invalid under the tool's schema.
#[derive(Debug, Default)]
pub struct CallInfo<'a> {
    pub kind: Kind,
    /// A sentence for people; `None` if a required argument is missing.
    pub title: Option<Cow<'a, str>>,
    /// The pattern or query of a search.
    pub subject: Option<Subject<'a>>,
    /// The file or folder that the call is about.
    pub path: Option<Place<'a>>,
    /// The range of lines in the file.
    pub lines: Lines,
    /// Further words about how the call works, each with a space before it.
    pub notes: Vec<String>,
    pub body: Body<'a>,
    /// Lines of the result that a folded card shows.
    pub rows: usize,
}

impl<'a> CallInfo<'a> {
    /// Describes a call of any tool by arguments with common names: path, offset and limit.
    pub fn of(arguments: &'a Arguments) -> Self {
        let path = Some(Place { given: path(arguments), default: None });
        Self {
            path: path.filter(|path| path.given != Argument::Missing),
            lines: Lines::of(arguments),
            rows: 10,
            ..Self::default()
        }
    }

    /// Describes a call about one file. The title is `verb` and the path.
    pub fn of_file(kind: Kind, verb: &str, arguments: &'a Arguments, body: Body<'a>) -> Self {
        let path = Place { given: path(arguments), default: None };
        let title = path.given.text().map(|path| format!("{verb} {path}").into());
        Self { kind, title, path: Some(path), body, ..Self::of(arguments) }
    }

    /// Describes a call that searches or lists a folder, by default the working folder. `title` makes the
    /// title from the path.
    pub fn of_search(arguments: &'a Arguments, title: impl Fn(&str) -> String) -> Self {
        let path = Place { given: path(arguments), default: Some(".") };
        Self {
            kind: Kind::Search,
            title: Some(title(path.text()).into()),
            path: Some(path),
            body: Body::Arguments,
            rows: 20,
            ..Self::default()
        }
    }
}

/// The category of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    Read,
    Edit,
    Execute,
    Search,
    #[default]
    Other,
}

/// An argument that should be a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Argument<'a> {
    Text(&'a str),
    #[default]
    Missing,
    Wrong,
}

impl<'a> Argument<'a> {
    pub fn of(arguments: &'a Arguments, name: &str) -> Self {
        match arguments.get(name) {
            Some(Value::String(text)) => Self::Text(text),
            Some(Value::Null) | None => Self::Missing,
            Some(_) => Self::Wrong,
        }
    }

    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Wrong => None,
        }
    }
}

/// Returns the argument `path`, or `file_path`, which some models send instead.
fn path(arguments: &Arguments) -> Argument<'_> {
    match Argument::of(arguments, "path") {
        Argument::Missing => Argument::of(arguments, "file_path"),
        path => path,
    }
}

/// A pattern or query, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    pub text: Argument<'a>,
    /// The quotation mark before and after the text.
    pub quote: &'static str,
}

/// The file or folder of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub given: Argument<'a>,
    /// The path to use if none is given.
    pub default: Option<&'static str>,
}

impl<'a> Place<'a> {
    /// Returns the given path, or the default, or an empty string.
    pub fn text(&self) -> &'a str {
        self.given.text().or(self.default).unwrap_or_default()
    }
}

/// A range of lines. `offset` is the first line, from 1; `limit` is the number of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

impl Lines {
    pub fn of(arguments: &Arguments) -> Self {
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        Self { offset: number("offset"), limit: number("limit") }
    }

    /// Returns the first line and, if there is a limit, the last; `None` for the whole file.
    pub fn range(self) -> Option<(u64, Option<u64>)> {
        let first = self.offset.or(self.limit.map(|_| 1))?;
        Some((first, self.limit.map(|limit| first.saturating_add(limit).saturating_sub(1))))
    }
}

/// The details of a call that a card shows below its first line.
#[derive(Debug, Default)]
pub enum Body<'a> {
    /// The tool does not describe its calls: name and arguments are shown.
    #[default]
    Unknown,
    /// The first line shows everything.
    Nothing,
    /// The first line shows the most important arguments; the others can be unfolded.
    Arguments,
    Command {
        command: Argument<'a>,
        timeout: Option<&'a Value>,
    },
    /// The full new content of a file.
    Content(Argument<'a>),
    Edits(Vec<Edit<'a>>),
}

/// A replacement of `old` by `new` in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: Option<&'a str>,
    pub new: Option<&'a str>,
}
