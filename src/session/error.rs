//! Errors of sessions.

use crate::agent::run::Fatal;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum SessionError {
    /// Another process writes to the session.
    Held {
        path: PathBuf,
        pid: Option<u32>,
    },
    /// The file is not a session.
    NotASession {
        path: PathBuf,
    },
    Io {
        /// Completes "could not … PATH".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    InvalidId {
        id: String,
    },
    NotFound {
        wanted: String,
    },
    /// Several session ids begin with the given text.
    Ambiguous {
        wanted: String,
        found: Vec<PathBuf>,
    },
    /// An older file was changed by another program before it could be migrated.
    Changed {
        path: PathBuf,
        why: String,
    },
    /// A session without an answer cannot be forked.
    NotSaved {
        path: PathBuf,
    },
    /// There is no entry to fork at, or no user message to fork before.
    NoForkPoint,
    /// The file has no entries to copy.
    EmptySource {
        path: PathBuf,
    },
    /// A session with the given id exists.
    IdTaken {
        id: String,
    },
    /// The log was opened without write access.
    ReadOnly {
        path: PathBuf,
    },
}

impl SessionError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { path, pid } => {
                let holder = pid.map_or("another process".into(), |pid| format!("process {pid}"));
                write!(f, "Session {} is in use by {holder}. ", path.display())?;
                write!(
                    f,
                    "Close it there first, or go on in a copy with --fork {}.",
                    shell_word(path)
                )
            }
            Self::NotASession { path } => {
                write!(
                    f,
                    "Session file is not a valid pi session: {}",
                    path.display()
                )
            }
            Self::Io {
                doing,
                path,
                source,
            } => {
                write!(
                    f,
                    "Could not {doing} {}: {}",
                    path.display(),
                    explain(source)
                )
            }
            Self::InvalidId { id } => write!(
                f,
                "Session id {id:?} is not allowed: use letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            ),
            Self::NotFound { wanted } => write!(f, "No session found matching '{wanted}'"),
            Self::Ambiguous { wanted, found } => {
                write!(f, "Several sessions match '{wanted}'; give more of the id:")?;
                found
                    .iter()
                    .try_for_each(|path| write!(f, "\n  {}", path.display()))
            }
            Self::Changed { path, why } => {
                write!(f, "Session file {} {why}; open it again", path.display())
            }
            Self::NotSaved { .. } => f.write_str(
                "This session has not been saved yet. Wait for the first assistant response before cloning or forking it.",
            ),
            Self::NoForkPoint => f.write_str("Invalid entry ID for forking"),
            Self::EmptySource { path } => write!(
                f,
                "Cannot fork: source session file is empty or invalid: {}",
                path.display()
            ),
            Self::IdTaken { id } => write!(f, "Session already exists with id '{id}'"),
            Self::ReadOnly { path } => {
                write!(f, "Session {} was opened to be read only", path.display())
            }
        }
    }
}

impl From<SessionError> for Fatal {
    fn from(error: SessionError) -> Self {
        Self(error.to_string())
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Quotes a path for a shell if necessary.
fn shell_word(path: &Path) -> String {
    let path = path.to_string_lossy();
    let plain = |char: char| char.is_alphanumeric() || "._-+/@%:,=".contains(char);
    if path.chars().all(plain) { path.into_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// Returns the system's error text, with advice for common errors.
fn explain(source: &io::Error) -> String {
    let hint = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space and try again",
        io::ErrorKind::FileTooLarge => "; the limit for the size of a file was reached",
        io::ErrorKind::ReadOnlyFilesystem => "; choose another folder with --session-dir",
        io::ErrorKind::PermissionDenied => {
            "; check its owner and mode, or choose another folder with --session-dir"
        }
        _ => "",
    };
    format!("{source}{hint}")
}
