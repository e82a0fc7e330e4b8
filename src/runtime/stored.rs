//! Lists, searches, renames and removes stored sessions.

use crate::session::{SessionError, Store, upkeep};
use std::path::{Path, PathBuf};

pub use crate::session::info::Info;
pub use crate::session::search::{Query, search_while};
pub use crate::session::store::home;

/// Renames a session that is not open in this process.
pub fn rename(store: &Store, path: &Path, cwd: &Path, name: &str) -> Result<(), String> {
    let say = |error: SessionError| error.to_string();
    let mut log = store.open(path, cwd).map_err(say)?;
    log.append_session_info(name).map_err(say)?;
    log.finish().map_err(say)
}

/// Removes a session's files; see [`upkeep::throw_away`].
pub fn remove(path: &Path, trash: impl FnOnce(&[PathBuf])) -> Result<bool, String> {
    upkeep::throw_away(path, trash).map_err(|error| error.to_string())
}
