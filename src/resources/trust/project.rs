//! A project that may need trust, and the possible decisions.

use std::path::{Path, PathBuf};

/// Files and folders in `.pi/` for which a project needs trust.
const SURFACES: [&str; 9] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "agents",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// A project, identified by its real path.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
    home: Option<PathBuf>,
}

/// A possible decision on a project's trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub label: String,
    pub is_trusted: bool,
    /// Decisions to store, by folder; `None` removes one.
    pub decisions: Vec<(PathBuf, Option<bool>)>,
}

impl Project {
    pub fn new(cwd: &Path, home: Option<&Path>) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { root: real(cwd), home: home.map(real) }
    }

    /// Returns the real path of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns files and folders that need trust; empty if there is nothing to decide.
    pub fn surfaces(&self) -> Vec<PathBuf> {
        let config = self.root.join(".pi");
        let mut found: Vec<PathBuf> =
            SURFACES.iter().map(|name| config.join(name)).filter(|path| path.exists()).collect();
        let own = self.home.as_ref().map(|home| home.join(".agents/skills"));
        let skills = self.root.ancestors().map(|folder| folder.join(".agents/skills"));
        found.extend(skills.filter(|path| Some(path) != own.as_ref() && path.exists()));
        found
    }

    /// Returns the possible decisions. Decisions that are not stored are included only if `with_session` is
    /// set.
    pub fn answers(&self, with_session: bool) -> Vec<Answer> {
        let answer =
            |label: &str, is_trusted, decisions| Answer { label: label.to_owned(), is_trusted, decisions };
        let here = |is_trusted| vec![(self.root.clone(), Some(is_trusted))];
        let mut answers = vec![answer("Trust", true, here(true))];
        if let Some(parent) = self.root.parent() {
            let label = format!("Trust parent folder ({})", parent.display());
            let decisions = vec![(parent.to_owned(), Some(true)), (self.root.clone(), None)];
            answers.push(answer(&label, true, decisions));
        }
        if with_session {
            answers.push(answer("Trust (this session only)", true, Vec::new()));
        }
        answers.push(answer("Do not trust", false, here(false)));
        if with_session {
            answers.push(answer("Do not trust (this session only)", false, Vec::new()));
        }
        answers
    }
}
