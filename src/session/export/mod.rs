//! A session as something to read or to take elsewhere: an HTML page, Markdown, or JSON lines.
//!
//! Entries are read one by one as they are written out, so memory holds the tree and the turn at hand,
//! never the whole session, and time is linear. The session's own file is only read, an older version too.
//!
//! Not here: how a file comes into the store (import).

mod call;
mod entry;
mod html;
mod inert;
mod jsonl;
mod markup;
mod page;
mod plain;
mod redact;
mod source;
mod survey;
mod target;
mod tree;

pub use redact::Redactor;
pub use target::Target;

use crate::agent::call::Describe;
use crate::session::error::SessionError;
use crate::session::log::Log;
use crate::session::notice::Notice;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One page with the whole tree.
    #[default]
    Html,
    /// The current branch.
    Markdown,
    /// The current branch with parents linked anew, or every line.
    Jsonl,
}

impl Format {
    pub const ALL: [Self; 3] = [Self::Html, Self::Markdown, Self::Jsonl];

    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Jsonl => "jsonl",
        }
    }

    /// By its name, or by another that is common.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" => Some(Self::Markdown),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// What the ending of a file's name asks for.
    pub fn of(path: &Path) -> Option<Self> {
        Self::parse(path.extension()?.to_str()?)
    }
}

#[derive(Default)]
pub struct Options {
    pub format: Format,
    /// JSON lines: all branches, not the current one alone.
    pub all: bool,
    /// Takes secrets out of every text.
    pub redactor: Option<Redactor>,
}

#[derive(Debug)]
pub enum ExportError {
    /// The session has no file, and never will.
    InMemory,
    /// Nothing was said yet.
    Nothing,
    Session(SessionError),
    Write {
        path: PathBuf,
        source: io::Error,
    },
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InMemory => f.write_str("Cannot export in-memory session to HTML"),
            Self::Nothing => f.write_str("Nothing to export yet - start a conversation first"),
            Self::Session(error) => error.fmt(f),
            Self::Write { path, source } => write!(f, "Cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Session(error) => Some(error),
            Self::Write { source, .. } => Some(source),
            Self::InMemory | Self::Nothing => None,
        }
    }
}

/// Writes `log` to `out`, and gives the ids of entries that turned out to be damaged.
pub fn write(
    log: &Log,
    options: &Options,
    describe: Describe<'_>,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let source = source::Source::new(log, options.redactor.as_ref(), describe);
    match options.format {
        Format::Html => page::write(&source, out)?,
        Format::Markdown => plain::write(&source, out)?,
        Format::Jsonl => jsonl::write(&source, options.all, out)?,
    }
    out.flush()?;
    Ok(source.damaged())
}

/// Writes `log` into a file, whole or not at all, and tells what is damaged.
pub fn write_file(
    log: &Log,
    options: &Options,
    describe: Describe<'_>,
    path: &Path,
) -> Result<Vec<Notice>, ExportError> {
    let write_it = || {
        if is_same_file(log.path(), path) {
            let why = "it is the session itself";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut target = Target::create(path)?;
        let damaged = write(log, options, describe, &mut target)?;
        target.finish()?;
        Ok(damaged)
    };
    let damaged = write_it().map_err(|source| ExportError::Write { path: path.to_owned(), source })?;
    Ok(notices(log, damaged))
}

fn is_same_file(session: Option<&Path>, path: &Path) -> bool {
    let session = session.and_then(|session| session.canonicalize().ok());
    session.is_some_and(|session| path.canonicalize().is_ok_and(|path| path == session))
}

/// What to tell of damaged entries.
pub fn notices(log: &Log, damaged: Vec<String>) -> Vec<Notice> {
    let path = log.path().unwrap_or(Path::new("")).to_owned();
    let tell = |id| Notice::Unreadable { path: path.clone(), id };
    damaged.into_iter().map(tell).collect()
}

/// Exports the session of a running conversation, as `/export` and `export_html` do: a page unless `path`
/// ends in `.jsonl` or `.md`. Without a path it is [`default_name`] in `cwd`. Gives the path.
pub fn export_live(
    log: &Log,
    path: Option<&Path>,
    cwd: &Path,
    redactor: Option<Redactor>,
    describe: Describe<'_>,
) -> Result<PathBuf, ExportError> {
    let file = log.path().ok_or(ExportError::InMemory)?;
    if log.index().slots.is_empty() {
        return Err(ExportError::Nothing);
    }
    let path = path.map_or_else(|| default_name(file, Format::Html), Path::to_owned);
    let options = Options { format: Format::of(&path).unwrap_or_default(), all: false, redactor };
    let path = cwd.join(path);
    write_file(log, &options, describe, &path)?;
    Ok(path)
}

/// Opens the session at `path` to export it. A file without a byte is a session without an entry.
pub fn open(path: &Path) -> Result<Log, SessionError> {
    match Log::open_to_read(path) {
        Err(SessionError::NotASession { .. })
            if path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) =>
        {
            Log::in_memory(Path::new(""), None)
        }
        opened => opened,
    }
}

/// `pi-session-NAME.html`, after the name of the session's file.
pub fn default_name(session: &Path, format: Format) -> PathBuf {
    let mut name = OsString::from("pi-session-");
    let file = session.file_name().unwrap_or_default();
    let stem = match session.extension() {
        Some(end) if end == "jsonl" => session.file_stem().unwrap_or(file),
        _ => file,
    };
    name.push(stem);
    name.push(".");
    name.push(format.name());
    name.into()
}

#[cfg(test)]
mod tests;
