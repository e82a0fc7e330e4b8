//! What the tools of one session work on: the folder, the backend that does it, settings, and who is told.

use super::backend::Backend;
use crate::llm::secret::Vault;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The surroundings that the tools of a session work in.
pub struct Workspace {
    /// Relative paths start here.
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub backend: Arc<dyn Backend>,
    pub options: Options,
    /// Session variables for child processes (`PI_SESSION_ID` …); replaced when the session changes.
    pub env: Mutex<Vec<(String, String)>>,
    /// The folder for whole outputs; made when first needed.
    pub outputs: Arc<dyn OutputDir>,
    /// Told before a tool changes a file.
    pub changes: Arc<dyn Changes>,
    /// Secrets, which tools hide before they cut a text: half of a secret would not be recognized.
    pub vault: Vault,
}

impl Workspace {
    /// The rules of a tool that changes things, with what the sandbox adds.
    pub(super) fn rules<const N: usize>(&self, own: [&str; N]) -> Vec<String> {
        let sandbox = self.backend.sandbox();
        let limits = sandbox.map(|sandbox| format!("Tools run in a sandbox. {sandbox}"));
        own.into_iter().map(str::to_owned).chain(limits).collect()
    }
}

/// Settings that tools follow.
#[derive(Clone, Debug)]
pub struct Options {
    pub shell_path: Option<String>,
    /// Put before every command, with a newline.
    pub shell_command_prefix: Option<String>,
    /// Seconds; none by default.
    pub bash_timeout_seconds: Option<f64>,
    /// Processes that outlive their call live on when pi ends.
    pub bash_keep_background: bool,
    /// Bytes kept of one command's output.
    pub output_cap_bytes: u64,
    /// Images over the model's limits are scaled down.
    pub resize_images: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shell_path: None,
            shell_command_prefix: None,
            bash_timeout_seconds: None,
            bash_keep_background: false,
            output_cap_bytes: 1 << 30,
            resize_images: true,
        }
    }
}

/// The folder for whole outputs: beside the session, or one that is removed at exit.
pub trait OutputDir: Send + Sync {
    /// Path of the folder, which is created (0700) if missing.
    fn path(&self) -> std::io::Result<PathBuf>;
    /// The folder, when there is one.
    fn if_there(&self) -> Option<PathBuf>;
    /// The session goes on in another file.
    fn follow(&self, _session_file: &Path) {}
}

/// Sees every change of a file before it is made, so that it can be undone.
pub trait Changes: Send + Sync {
    /// Notes a change that is about to be made, under the file's lock. Gives its number, none when it is
    /// not noted.
    fn before(&self, change: &Change<'_>) -> Option<u64>;
    /// The change with this number was not made after all.
    fn withdraw(&self, number: u64);
    /// The session goes on in another file.
    fn follow(&self, _session_file: &Path) {}
}

/// A file is about to get new content.
pub struct Change<'a> {
    /// The tool and the id of its call.
    pub tool: &'a str,
    pub call: &'a str,
    /// Without links in it.
    pub path: &'a Path,
    pub content: &'a [u8],
    pub backend: &'a dyn Backend,
}

/// Notes nothing.
pub struct Forgotten;

impl Changes for Forgotten {
    fn before(&self, _change: &Change<'_>) -> Option<u64> {
        None
    }

    fn withdraw(&self, _number: u64) {}
}

/// A change that was noted. Dropped before it is [`Noted::made`], it is withdrawn.
#[must_use]
pub(super) struct Noted<'a> {
    changes: &'a dyn Changes,
    number: Option<u64>,
}

impl Noted<'_> {
    pub(super) fn made(mut self) {
        self.number = None;
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.changes.withdraw(number);
        }
    }
}

impl Workspace {
    /// Notes that `path` is about to get `content`.
    pub(super) fn note(&self, tool: &str, call: &str, path: &Path, content: &[u8]) -> Noted<'_> {
        let backend = self.backend.as_ref();
        let change = Change { tool, call, path, content, backend };
        Noted { changes: &*self.changes, number: self.changes.before(&change) }
    }
}
