//! The context of a session's tools: folder, backend, settings, and observers.

use super::backend::Backend;
use crate::agent::CancelToken;
use crate::llm::secret::Vault;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The context in which the tools of a session work.
pub struct Workspace {
    /// Base of relative paths.
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub backend: Arc<dyn Backend>,
    pub options: Options,
    /// Session variables for child processes (`PI_SESSION_ID` …); replaced when the session changes.
    pub env: Mutex<Vec<(String, String)>>,
    /// The folder for complete outputs; created when first needed.
    pub outputs: Arc<dyn OutputDir>,
    /// Notified before a tool changes a file.
    pub changes: Arc<dyn Changes>,
    /// Secrets, which tools hide before truncating a text: half of a secret would not be recognized.
    pub vault: Vault,
}

impl Workspace {
    /// The rules of a tool that changes files, with those of the sandbox.
    pub(super) fn rules<const N: usize>(&self, own: [&str; N]) -> Vec<String> {
        let sandbox = self.backend.sandbox();
        let limits = sandbox.map(|sandbox| format!("Tools run in a sandbox. {sandbox}"));
        own.into_iter().map(str::to_owned).chain(limits).collect()
    }
}

/// Settings of the tools.
#[derive(Clone, Debug)]
pub struct Options {
    pub shell_path: Option<String>,
    /// Inserted before every command, with a newline.
    pub shell_command_prefix: Option<String>,
    /// Default time limit in seconds; none by default.
    pub bash_timeout_seconds: Option<f64>,
    /// True if processes that outlive their call keep running when pi ends.
    pub bash_keep_background: bool,
    /// Maximum bytes stored of a command's output.
    pub output_cap_bytes: u64,
    /// True to scale images down to the model's limits.
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

/// The folder for complete outputs: beside the session, or temporary.
pub trait OutputDir: Send + Sync {
    /// Path of the folder, which is created (0700) if missing.
    fn path(&self) -> std::io::Result<PathBuf>;
    /// The folder, if it exists.
    fn if_there(&self) -> Option<PathBuf>;
    /// Called when the session moves to another file.
    fn follow(&self, _session_file: &Path) {}
}

/// Sees every change of a file before it is made, so that it can be undone.
pub trait Changes: Send + Sync {
    /// Records a change before it is made, under the file's lock. Returns its number, `None` if not recorded.
    fn before(&self, change: &Change<'_>) -> Option<u64>;
    /// Withdraws the change with this number, which was not made.
    fn withdraw(&self, number: u64);
    /// Called when tools are about to be used.
    fn prepare(&self) {}
    /// Called before a command, or another tool whose changes are not known beforehand. Returns a number for
    /// [`Changes::end`], `None` if nobody looks at what it changes. May wait, and stops waiting on `cancel`.
    fn begin(&self, _tool: &str, _call: &str, _cancel: &CancelToken) -> Option<u64> {
        None
    }
    /// Called after the command for which `begin` returned `number`.
    fn end(&self, _tool: &str, _call: &str, _number: u64) {}
    /// Called when the session moves to another file.
    fn follow(&self, _session_file: &Path) {}
}

/// A planned change of a file's content.
pub struct Change<'a> {
    /// The tool's name, and the id of its call.
    pub tool: &'a str,
    pub call: &'a str,
    /// Path without links.
    pub path: &'a Path,
    pub content: &'a [u8],
    pub backend: &'a dyn Backend,
}

/// Records nothing.
pub struct Forgotten;

impl Changes for Forgotten {
    fn before(&self, _change: &Change<'_>) -> Option<u64> {
        None
    }

    fn withdraw(&self, _number: u64) {}
}

/// A recorded change. If dropped before [`Noted::made`], it is withdrawn.
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

/// A command whose changes are looked at until this is dropped.
#[must_use]
pub(super) struct Looking<'a> {
    changes: &'a dyn Changes,
    tool: &'a str,
    call: &'a str,
    number: Option<u64>,
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.changes.end(self.tool, self.call, number);
        }
    }
}

impl Workspace {
    /// Records what changes until the result is dropped.
    pub(super) fn look<'a>(&'a self, tool: &'a str, call: &'a str, cancel: &CancelToken) -> Looking<'a> {
        let changes = &*self.changes;
        Looking { changes, tool, call, number: changes.begin(tool, call, cancel) }
    }
}

impl Workspace {
    /// Records that `path` is about to get `content`.
    pub(super) fn note(&self, tool: &str, call: &str, path: &Path, content: &[u8]) -> Noted<'_> {
        let backend = self.backend.as_ref();
        let change = Change { tool, call, path, content, backend };
        Noted { changes: &*self.changes, number: self.changes.before(&change) }
    }
}
