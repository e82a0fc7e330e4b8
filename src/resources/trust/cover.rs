//! The files of a project that trust is about: what can run, and what reaches the model.
//!
//! Extensions count with all that lies beside them, in their folder or in their package, since no rule tells what a
//! program loads. The number of files has a bound: files that the project names come first, then those beside them,
//! and what lies in `node_modules` last.
//!
//! Not covered: programs outside of these folders that an extension or a command calls on its own.

use super::Project;
use crate::resources::package;
use crate::resources::pattern::is_path;
use crate::resources::place::{Kind, Places, tidy};
use crate::resources::settings::{Content, Settings};
use crate::resources::source::Scope;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Maximum number of files.
const FILES_MAX: usize = 2000;

/// Maximum number of words of commands that are looked up as files.
const WORDS_MAX: usize = 500;

/// Endings of files that a program runs although they are not executable.
const SCRIPTS: [&str; 12] = ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "lua"];

const DEPENDENCIES: &str = "node_modules";

pub(super) struct Cover {
    /// Files, each with true if it may run.
    pub files: Vec<(PathBuf, bool)>,
    /// Folders and files of programs, with the number of their files.
    pub groups: BTreeMap<String, usize>,
    /// The first file beyond the bound.
    pub next: Option<PathBuf>,
}

/// Lists the files of `project`. `settings` is its settings file, `commands` has the values that name programs.
pub(super) fn cover(project: &Project, content: &Content, commands: &[&Value]) -> Cover {
    let root = project.root();
    let config = root.join(".pi");
    let mut settings = Settings::default();
    settings.add_project_as(root, content);
    let places = Places {
        agent: root,
        home: project.home(),
        cwd: root,
        settings: &settings,
        is_trusted: true,
        packages: &[],
        named_packages: &[],
    };
    let packages = package::configured(&places).0;
    let places = Places { packages: &packages, ..places };
    let mut walk = Walk::new(root, &config);
    for name in ["SYSTEM.md", "APPEND_SYSTEM.md", "npm/package.json", "npm/package-lock.json"] {
        walk.add_file(config.join(name), false);
    }
    walk.add_tree(config.join("extensions"), true);
    for entry in settings.resources(Kind::Extensions.name()).1.iter().filter(|entry| is_path(entry)) {
        let path = tidy(&places.resolve(entry.trim(), &config));
        if path.is_dir() {
            walk.add_tree(path, true);
        }
    }
    for package in packages.iter().filter(|package| package.scope == Scope::Project) {
        walk.add_file(package.root.join("package.json"), false);
        if package.root.is_dir() {
            walk.add_tree(package.root.clone(), true);
        }
    }
    for kind in [Kind::Extensions, Kind::Skills, Kind::Prompts, Kind::Agents] {
        for source in places.of_project(kind) {
            let runs = kind == Kind::Extensions;
            let folder = source.path.parent().map(Path::to_owned);
            if let Some(folder) = folder.filter(|_| runs || source.path.ends_with("SKILL.md")) {
                walk.add_tree(folder, runs);
            }
            walk.add_file(source.path, runs);
        }
    }
    let mut words = Vec::new();
    commands.iter().for_each(|value| add_words(value, &mut words));
    for word in words.into_iter().take(WORDS_MAX) {
        let path = tidy(&places.resolve(&word, root));
        if path.starts_with(root) && is_program(&path, &config) {
            walk.add_file(path, true);
        }
    }
    walk.last.push((config.join("npm").join(DEPENDENCIES), None));
    walk.finish()
}

/// Adds the words of all texts in a value. A variable at the beginning of a path is left out: it names the project.
fn add_words(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let parts = text.split(|c: char| c.is_whitespace() || "'\";|&()<>=`!".contains(c));
            let path = |part: &str| match part.strip_prefix('$').and_then(|rest| rest.split_once('/')) {
                Some((_, path)) => path.to_owned(),
                None => part.to_owned(),
            };
            words.extend(parts.filter(|part| !part.is_empty()).map(path));
        }
        Value::Array(values) => values.iter().for_each(|value| add_words(value, words)),
        Value::Object(fields) => fields.values().for_each(|value| add_words(value, words)),
        _ => {}
    }
}

/// True for a file that a command which names it may run.
fn is_program(path: &Path, config: &Path) -> bool {
    let is_script = path.extension().is_some_and(|end| SCRIPTS.iter().any(|script| end == *script));
    std::fs::metadata(path).is_ok_and(|about| {
        about.is_file() && (is_script || path.starts_with(config) || about.permissions().mode() & 0o111 != 0)
    })
}

struct Walk<'a> {
    root: &'a Path,
    config: &'a Path,
    /// Files, and under what name they are counted.
    files: Vec<(PathBuf, Option<String>)>,
    trees: Vec<(PathBuf, Option<String>)>,
    /// Folders of dependencies.
    last: Vec<(PathBuf, Option<String>)>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, config: &'a Path) -> Self {
        Self { root, config, files: Vec::new(), trees: Vec::new(), last: Vec::new() }
    }

    fn label(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).display().to_string()
    }

    fn add_file(&mut self, path: PathBuf, runs: bool) {
        // One that lies in a folder is counted there.
        let around = self.trees.iter().find(|(tree, label)| label.is_some() && path.starts_with(tree));
        let label = match around {
            Some((_, label)) => label.clone(),
            None => Some(self.label(&path)),
        };
        if path.symlink_metadata().is_ok() {
            self.files.push((path, label.filter(|_| runs)));
        }
    }

    /// Adds all below a folder, unless the project itself lies there.
    fn add_tree(&mut self, folder: PathBuf, runs: bool) {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let holds_project = self.root.starts_with(&real) || folder == self.config;
        let is_known =
            self.trees.iter().any(|(tree, label)| folder.starts_with(tree) && (label.is_some() || !runs));
        if !holds_project && !is_known {
            let label = runs.then(|| self.label(&folder));
            self.trees.push((folder, label));
        }
    }

    fn finish(mut self) -> Cover {
        let mut found = Found {
            cover: Cover { files: Vec::new(), groups: BTreeMap::new(), next: None },
            seen: HashSet::new(),
        };
        for (path, label) in std::mem::take(&mut self.files) {
            found.add(path, label.as_deref());
        }
        for (folder, label) in std::mem::take(&mut self.trees) {
            self.walk(&folder, label, &mut found, false);
        }
        for (folder, label) in std::mem::take(&mut self.last) {
            self.walk(&folder, label, &mut found, true);
        }
        found.cover
    }

    fn walk(&mut self, folder: &Path, label: Option<String>, found: &mut Found, with_dependencies: bool) {
        // Links are followed; a loop ends as an error.
        let mut walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_dir() {
                if !found.add(entry.into_path(), label.as_deref()) {
                    return;
                }
                continue;
            }
            let name = entry.file_name();
            let is_dependencies = name == DEPENDENCIES && !with_dependencies;
            if entry.depth() > 0 && (name == ".git" || is_dependencies) {
                walk.skip_current_dir();
                if is_dependencies {
                    self.last.push((entry.into_path(), label.clone()));
                }
            }
        }
    }
}

struct Found {
    cover: Cover,
    seen: HashSet<PathBuf>,
}

impl Found {
    /// Adds a file. False if there are too many.
    fn add(&mut self, path: PathBuf, label: Option<&str>) -> bool {
        if self.seen.contains(&path) {
            return true;
        }
        if self.seen.len() >= FILES_MAX {
            self.cover.next.get_or_insert(path);
            return false;
        }
        if let Some(label) = label {
            *self.cover.groups.entry(label.to_owned()).or_default() += 1;
        }
        self.seen.insert(path.clone());
        self.cover.files.push((path, label.is_some()));
        true
    }
}
