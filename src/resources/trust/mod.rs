//! Trust in projects: whether files under `.pi/` and `.agents/` may be used.
//!
//! A project without these folders needs no trust. `trust.json` in the agent folder stores the user's
//! decisions by the real path of the project or of a folder above it. `trust-surfaces.json` stores hashes of
//! what a trusted project may run or tell the model; if that grows or changes, the user is asked again.
//!
//! Not here: the question (`cli`). `AGENTS.md` and similar files need no trust, since they run nothing.

mod cover;
mod named;
mod project;
mod snapshot;
mod store;

pub use project::{Answer, Project};
pub use snapshot::{Consent, Passed, Snapshot, list};
pub use store::{Entry, Store};

use crate::base::hex::hex;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns a unique name for a path in a JSON file: the path, or the bytes in hexadecimal if it is not UTF-8.
fn name_of(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", hex(path.as_os_str().as_bytes())),
    }
}

#[cfg(test)]
mod tests;
