//! Exports a session as an HTML page, Markdown, or JSON lines.
//!
//! Entries are read one by one while the export is written: memory holds the tree and one turn, and time is
//! linear. The session's own file is only read, even if it is of an older version.
//!
//! Not here: import of a file into the store (`upkeep`).

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

pub use redact::{Redactor, may_hold_secret};
pub use target::Target;

use crate::agent::call::Describe;
use crate::session::error::SessionError;
use crate::session::index::Kind;
use crate::session::log::Log;
use crate::session::notice::Notice;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A page with the whole tree.
    #[default]
    Html,
    /// The current branch as Markdown.
    Markdown,
    /// The current branch as a chain of entries, or every line of the file.
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

    /// Parses the name of a format, or a common alias.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" => Some(Self::Markdown),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// Returns the format for the file extension of `path`.
    pub fn of(path: &Path) -> Option<Self> {
        Self::parse(path.extension()?.to_str()?)
    }
}

#[derive(Default)]
pub struct Options {
    pub format: Format,
    /// True to include all branches in JSON lines.
    pub all: bool,
    /// Replaces secrets in every text, if set.
    pub redactor: Option<Redactor>,
}

#[derive(Debug)]
pub enum ExportError {
    /// The session is not stored in a file.
    InMemory,
    /// The session has a model and a name at most.
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

/// Writes `log` to `out`, and returns the ids of newly found damaged entries.
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

/// Writes `log` to a file, completely or not at all, and returns notices about damaged entries.
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

/// Makes notices about damaged entries.
pub fn notices(log: &Log, damaged: Vec<String>) -> Vec<Notice> {
    let path = log.path().unwrap_or(Path::new("")).to_owned();
    let tell = |id| Notice::Unreadable { path: path.clone(), id };
    damaged.into_iter().map(tell).collect()
}

/// Exports an open session, as `/export` and `export_html` do: as a page unless `path` ends in `.jsonl` or
/// `.md`. The default path is [`default_name`] in `cwd`. Returns the path.
pub fn export_live(
    log: &Log,
    path: Option<&Path>,
    cwd: &Path,
    redactor: Option<Redactor>,
    describe: Describe<'_>,
) -> Result<PathBuf, ExportError> {
    let file = log.path().ok_or(ExportError::InMemory)?;
    let is_begun = |kind| !matches!(kind, Kind::ModelChange | Kind::ThinkingLevelChange | Kind::SessionInfo);
    if !log.index().slots.iter().any(|slot| is_begun(slot.kind)) {
        return Err(ExportError::Nothing);
    }
    let path = path.map_or_else(|| default_name(file, Format::Html), Path::to_owned);
    let options = Options { format: Format::of(&path).unwrap_or_default(), all: false, redactor };
    let path = cwd.join(path);
    write_file(log, &options, describe, &path)?;
    Ok(path)
}

/// Opens the session at `path` to export it. An empty file is a session without entries.
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

/// Returns the file name of an export, such as `pi-session-NAME.html` for the session file `NAME.jsonl`.
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
