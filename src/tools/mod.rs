//! The built-in tools and what they share.

pub mod argument;
pub mod artifact;
pub mod backend;
pub mod bash;
pub mod diff;
pub mod edit;
pub mod find;
pub mod fold;
pub mod glob;
pub mod grep;
pub mod ignore;
pub mod image;
pub mod likeness;
pub mod listing;
pub mod local;
pub mod ls;
pub mod mutation;
pub mod output;
pub mod path;
pub mod plain;
pub mod process;
pub mod read;
pub mod sandbox;
pub mod suggest;
pub mod text;
pub mod truncate;
pub mod walk;
pub mod write;

#[cfg(test)]
pub mod testing;

mod workspace;

pub use workspace::{Change, Changes, Forgotten, Options, OutputDir, Workspace};

use crate::agent::tool::Tool;
use std::sync::Arc;

type Make = fn(Arc<Workspace>) -> Arc<dyn Tool>;

/// The built-in tools, by name.
const BUILTIN: &[(&str, Make)] = &[
    ("read", read::tool),
    ("bash", bash::tool),
    ("edit", edit::tool),
    ("write", write::tool),
    ("grep", grep::tool),
    ("find", find::tool),
    ("ls", ls::tool),
];

/// The names of the built-in tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// The built-in tool of this name.
pub fn builtin(name: &str, workspace: &Arc<Workspace>) -> Option<Arc<dyn Tool>> {
    let (_, make) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some(make(workspace.clone()))
}
