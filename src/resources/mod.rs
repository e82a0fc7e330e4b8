//! Files of the user and the project: settings, trust, context files, skills, prompt templates, and the
//! system prompt made from them.

pub mod agent;
pub mod context_file;
pub mod dirs;
mod frontmatter;
pub mod git;
mod import;
pub mod package;
pub mod pattern;
pub mod place;
pub mod prompt;
pub mod settings;
pub mod skill;
pub mod source;
pub mod switch;
pub mod template;
pub mod text_file;
pub mod trust;
mod walk;
mod yaml;

use std::fmt;
use std::path::PathBuf;

/// A problem with a file, to be shown to the user. The program continues without the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub path: PathBuf,
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// Decodes the bytes of a text file, without a byte order mark and with U+FFFD for invalid UTF-8.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}
