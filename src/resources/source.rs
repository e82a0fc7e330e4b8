//! The origin of a skill, a prompt template or a theme.

use super::text_file::Bounds;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Project,
    User,
    /// Named on the command line.
    Temporary,
}

/// How the file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Named in the settings or on the command line.
    Named,
    /// Found in a standard folder.
    Looked,
    /// Named by `--extension`, or in a package that is.
    Flag,
    /// Part of a package, whose source is given as it was written.
    Package(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    pub found: Found,
    pub scope: Scope,
    /// The folder that the file belongs to, if known.
    pub base: Option<PathBuf>,
    /// Folders that the file's real path must be in.
    pub bounds: Bounds,
}

impl Source {
    /// Returns the `sourceInfo` object of RPC mode.
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("path".into(), self.path.to_string_lossy().into());
        let (source, origin) = match &self.found {
            Found::Named => ("local", "top-level"),
            Found::Looked => ("auto", "top-level"),
            Found::Flag => ("cli", "top-level"),
            Found::Package(source) => (&**source, "package"),
        };
        json.insert("source".into(), source.into());
        json.insert("scope".into(), self.scope.name().into());
        json.insert("origin".into(), origin.into());
        if let Some(base) = &self.base {
            json.insert("baseDir".into(), base.to_string_lossy().into());
        }
        json.into()
    }
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Temporary => "temporary",
        }
    }
}
