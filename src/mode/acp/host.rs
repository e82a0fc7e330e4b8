//! What ACP mode needs of the command line: how a session is made from flags and settings.

use crate::runtime::CancelToken;
use crate::runtime::backend::Over;
use crate::runtime::session::Session;
use serde::Serialize;
use std::path::Path;

/// Makes sessions.
pub trait Host: Send + 'static {
    /// Fails with the reason where a new session would have no model, or no key for it.
    fn check_key(&mut self, cancel: &CancelToken) -> Result<(), String>;

    /// Opens a session in `cwd`: the stored one with this id, or a new one. Its tools find files through
    /// `files`.
    fn open(
        &mut self,
        cwd: &Path,
        stored: Option<&str>,
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal>;

    /// The stored sessions of `cwd`, or all there are.
    fn list(&mut self, cwd: Option<&Path>) -> Result<Vec<Listed>, Refusal>;
}

/// Why there is no session.
#[derive(Debug)]
pub enum Refusal {
    NoFolder(String),
    NotFound(String),
    NoModel(String),
    Failed(String),
}

/// A stored session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub session_id: String,
    pub cwd: String,
    pub title: String,
    /// The time of the last change, in ISO 8601.
    pub updated_at: String,
}
