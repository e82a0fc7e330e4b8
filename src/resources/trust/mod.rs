//! Trust in projects: whether what lies under `.pi/` and `.agents/` may be used at all.
//!
//! A project without these folders needs no trust. `trust.json` in the agent folder holds what the user
//! decided, by the real path of the project or of a folder above it. What a trusted project may run is
//! remembered beside it, in `trust-surfaces.json`: when that grows or changes, the decision is asked for
//! again.
//!
//! Not here: asking (`cli`), and `AGENTS.md` and its like, which are text and run nothing.

mod project;
mod store;

pub use project::{Answer, Project, Snapshot};
pub use store::{Entry, Store};

use crate::base::hex::hex;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of a path in a JSON file, one for each path: the text, or all bytes of a path that is not UTF-8.
fn name_of(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", hex(path.as_os_str().as_bytes())),
    }
}

#[cfg(test)]
mod tests;
