//! Notices for the user about problems that do not prevent the use of a session.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Lines of the session file, counted from 1, are damaged. They stay in the file.
    Damaged {
        path: PathBuf,
        lines: Vec<usize>,
    },
    /// The header is damaged, so the conversation's working folder is unknown.
    HeaderLost {
        path: PathBuf,
    },
    /// A needed entry proved to be damaged.
    Unreadable {
        path: PathBuf,
        id: String,
    },
    NewerVersion {
        path: PathBuf,
        version: u64,
    },
    /// A file of an older version was migrated. The original is kept as `backup`.
    Migrated {
        path: PathBuf,
        from: u64,
        backup: PathBuf,
    },
    /// Another program changed the file, so the conversation continues in a copy.
    Moved {
        from: PathBuf,
        to: PathBuf,
        why: String,
    },
    /// The draft could not be renamed to its final name. Its entries are stored.
    StillADraft {
        path: PathBuf,
        why: String,
    },
    /// A sync to the disk failed. The next entry goes to a copy.
    NotStored {
        why: String,
    },
    /// A compaction freed next to nothing. All sizes are in tokens.
    StillFull {
        tokens: u64,
        /// The size of the system prompt and the tools, which is part of `tokens`.
        system: u64,
        window: u64,
    },
    /// The configured model for summaries is unusable; another one is used.
    NoSummaryModel {
        wanted: String,
        used: String,
    },
    /// A request could not be made as configured.
    Request {
        text: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, lines } => {
                let (verb, word) = match lines.len() {
                    1 => ("was", "line"),
                    _ => ("were", "lines"),
                };
                let shown: Vec<String> = lines.iter().take(10).map(usize::to_string).collect();
                let more = if lines.len() > shown.len() { ", …" } else { "" };
                write!(
                    f,
                    "{} damaged {word} of session {} {verb} skipped and left in the file ({word} {}{more})",
                    lines.len(),
                    path.display(),
                    shown.join(", ")
                )
            }
            Self::HeaderLost { path } => write!(
                f,
                "The first line of session {} is damaged: its id and folder are guessed",
                path.display()
            ),
            Self::Unreadable { path, id } => write!(
                f,
                "Entry {id} of session {} is damaged: it was skipped and left in the file",
                path.display()
            ),
            Self::NewerVersion { path, version } => write!(
                f,
                "Session {} was written by a newer program (version {version}): what is not known here is kept and not shown",
                path.display()
            ),
            Self::Migrated { path, from, backup } => write!(
                f,
                "Session {} was brought from version {from} to 3; the old file is kept as {}",
                path.display(),
                backup.display()
            ),
            Self::Moved { from, to, why } => write!(
                f,
                "Session file {} {why}; the conversation goes on in {}",
                from.display(),
                to.display()
            ),
            Self::StillADraft { path, why } => {
                write!(f, "The session stays in {} for now: {why}", path.display())
            }
            Self::NotStored { why } => write!(f, "The session may not survive a power loss: {why}"),
            Self::StillFull { tokens, system, window } => write!(
                f,
                "The conversation still takes about {tokens} of {window} tokens after a compaction, {system} of them prompt and tools. It is not compacted again before the next prompt: use a model with a larger window, or fewer tools and context files"
            ),
            Self::NoSummaryModel { wanted, used } => write!(
                f,
                "The model {wanted} of the setting compaction.model cannot be used; {used} writes the summary"
            ),
            Self::Request { text } => f.write_str(text),
        }
    }
}
