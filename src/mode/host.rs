//! The interface of modes that open sessions for a client to the command line, which makes sessions from flags and
//! settings.

use crate::runtime::CancelToken;
use crate::runtime::backend::Over;
use crate::runtime::lent::{Lend, LentServer};
use crate::runtime::session::Session;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Opens and lists sessions.
pub trait Host: Send + 'static {
    /// Fails with a reason if a new session would have no model, or no key for it.
    fn check_key(&mut self, cancel: &CancelToken) -> Result<(), String>;

    /// Opens a session in `cwd`: the stored one with this id, or a new one. Its tools access files through
    /// `files`, and may write to `folders`, too, where a sandbox limits that.
    fn open(
        &mut self,
        cwd: &Path,
        stored: Option<&str>,
        folders: &[PathBuf],
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal>;

    /// True if servers that a client lends are used, as far as that is known before a session's settings are.
    fn takes_servers(&self) -> bool;

    /// Starts the servers of a session: its own, and those that the client lends. `Ok(None)` if it takes none.
    fn start_servers(
        &mut self,
        session: &Session,
        lent: Vec<LentServer>,
        cancel: &CancelToken,
    ) -> Result<Option<Lend>, Refusal>;

    /// Opens a session that only runs tools: without a key it gets a model that sends nothing.
    fn open_tools(&mut self, cancel: &CancelToken) -> Result<Session, Refusal>;

    /// The conversation of the stored session with this id, in Markdown.
    fn read(&mut self, id: &str) -> Result<String, Refusal>;

    /// The file of the stored session with this id.
    fn place(&mut self, id: &str) -> Result<PathBuf, Refusal>;

    /// Removes the stored session with this id, with all that belongs to it.
    fn delete(&mut self, id: &str) -> Result<(), Refusal>;

    /// Removes the stored sign-in that a new session would use.
    fn sign_out(&mut self, cancel: &CancelToken) -> Result<(), String>;

    /// The stored sessions of `cwd`, or all.
    fn list(&mut self, cwd: Option<&Path>) -> Result<Vec<Listed>, Refusal>;
}

/// Why a session could not be opened or listed.
#[derive(Debug)]
pub enum Refusal {
    NoFolder(String),
    NotFound(String),
    NoModel(String),
    Failed(String),
}

/// Maximum sessions in a page.
pub const PAGE_MAX: usize = 100;

/// The page of sessions that begins after the session `after`, and the cursor of the next page.
pub fn page<'a>(
    sessions: &'a [Listed],
    after: Option<&str>,
) -> Result<(&'a [Listed], Option<&'a str>), Refusal> {
    let from = match after {
        None => 0,
        Some(id) => {
            let at = sessions.iter().position(|listed| listed.session_id == id);
            at.ok_or_else(|| Refusal::NotFound(format!("No session \"{id}\" to go on from")))? + 1
        }
    };
    let rest = sessions.get(from..).unwrap_or_default();
    let (shown, later) = rest.split_at(rest.len().min(PAGE_MAX));
    let next = shown.last().filter(|_| !later.is_empty()).map(|last| last.session_id.as_str());
    Ok((shown, next))
}

/// A stored session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub session_id: String,
    pub cwd: String,
    /// The session's name, or its first prompt.
    pub title: String,
    /// Time of the last change, in ISO 8601.
    pub updated_at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_comes_in_pages() {
        let listed = |n: usize| Listed {
            session_id: format!("s{n}"),
            cwd: String::new(),
            title: String::new(),
            updated_at: String::new(),
        };
        let sessions: Vec<Listed> = (0..2 * PAGE_MAX + 1).map(listed).collect();
        let (mut all, mut pages, mut after) = (Vec::new(), 0, None);
        loop {
            let (shown, next) = page(&sessions, after).unwrap();
            all.extend(shown.iter().map(|listed| listed.session_id.clone()));
            pages += 1;
            after = next;
            if after.is_none() {
                break;
            }
        }
        let ids: Vec<String> = sessions.iter().map(|listed| listed.session_id.clone()).collect();
        assert_eq!((pages, all), (3, ids));
        assert!(page(&[], None).unwrap().0.is_empty());
        assert!(page(&sessions, Some("gone")).is_err());
        assert_eq!(page(&sessions[..PAGE_MAX], None).unwrap().1, None);
    }
}
