//! What a tool says of one of its calls, for those who show calls or sum them up.

use serde_json::{Map, Value};
use std::borrow::Cow;

pub type Arguments = Map<String, Value>;

/// Describes a call of the tool with a name.
pub type Describe<'d> = &'d dyn for<'a> Fn(&str, &'a Arguments) -> CallInfo<'a>;

/// What a call is about and what it does. Arguments may be incomplete, or not valid by the tool's schema.
#[derive(Debug, Default)]
pub struct CallInfo<'a> {
    pub kind: Kind,
    /// A sentence for people; none if an argument is missing for it.
    pub title: Option<Cow<'a, str>>,
    /// What is looked for.
    pub subject: Option<Subject<'a>>,
    /// The file or folder that the call is about.
    pub path: Option<Place<'a>>,
    /// The part of the file.
    pub lines: Lines,
    /// Further words about how the call works, each with its own space before it.
    pub notes: Vec<String>,
    pub body: Body<'a>,
    /// Rows of the result that are shown while it is folded.
    pub rows: usize,
}

impl<'a> CallInfo<'a> {
    /// The description of a call whose tool says nothing of it: a path and lines are known by the usual names.
    pub fn of(arguments: &'a Arguments) -> Self {
        let path = Some(Place { given: path(arguments), default: None });
        Self {
            path: path.filter(|path| path.given != Argument::Missing),
            lines: Lines::of(arguments),
            rows: 10,
            ..Self::default()
        }
    }

    /// A call that is about one file. The title is `verb` and the path.
    pub fn of_file(kind: Kind, verb: &str, arguments: &'a Arguments, body: Body<'a>) -> Self {
        let path = Place { given: path(arguments), default: None };
        let title = path.given.text().map(|path| format!("{verb} {path}").into());
        Self { kind, title, path: Some(path), body, ..Self::of(arguments) }
    }

    /// A call that lists what is in a folder, by default the working folder. `title` makes the title of its path.
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

/// The category of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    Read,
    Edit,
    Execute,
    Search,
    #[default]
    Other,
}

/// An argument that should be text.
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

/// The path of a call. Models use either name.
fn path(arguments: &Arguments) -> Argument<'_> {
    match Argument::of(arguments, "path") {
        Argument::Missing => Argument::of(arguments, "file_path"),
        path => path,
    }
}

/// A pattern or query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    pub text: Argument<'a>,
    /// Stands around the text.
    pub quote: &'static str,
}

/// A file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub given: Argument<'a>,
    /// Taken if none is given.
    pub default: Option<&'static str>,
}

impl<'a> Place<'a> {
    /// The path as it was given, else the default, else nothing.
    pub fn text(&self) -> &'a str {
        self.given.text().or(self.default).unwrap_or_default()
    }
}

/// Lines of a file, counted from 1.
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

    /// The first line and, if there is a limit, the last; none for the whole file.
    pub fn range(self) -> Option<(u64, Option<u64>)> {
        let first = self.offset.or(self.limit.map(|_| 1))?;
        Some((first, self.limit.map(|limit| first.saturating_add(limit).saturating_sub(1))))
    }
}

/// What a call does, beyond what a line can say.
#[derive(Debug, Default)]
pub enum Body<'a> {
    /// The tool does not describe its calls: they are shown by name and arguments.
    #[default]
    Unknown,
    /// A line says it all.
    Nothing,
    /// A line says the most; the rest is in the arguments.
    Arguments,
    Command {
        command: Argument<'a>,
        timeout: Option<&'a Value>,
    },
    /// The whole new text of the file.
    Content(Argument<'a>),
    Edits(Vec<Edit<'a>>),
}

/// One text of a file and what takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: Option<&'a str>,
    pub new: Option<&'a str>,
}
