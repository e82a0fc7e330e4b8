//! The files of a project that may run, and with which it is trusted. Texts of its own for the model (skills,
//! templates, agents, prompts) do not count: they change as often as its sources do.
//!
//! Extensions count with all that lies beside them, in their folder or in their package, since no rule tells what a
//! program loads. The number of files has a bound: files that the project names come first, then those beside them,
//! and what lies in `node_modules` last.
//!
//! Not covered: programs outside of these folders that an extension or a command calls on its own.

use super::Project;
use super::named::Named;
use crate::resources::package;
use crate::resources::pattern::is_path;
use crate::resources::place::{Kind, Places, tidy};
use crate::resources::settings::{Content, Settings};
use crate::resources::source::Scope;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Maximum number of files.
const FILES_MAX: usize = 2000;

/// Maximum number of folders and files that are looked at.
const ENTRIES_MAX: usize = 20_000;

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
    for name in ["npm/package.json", "npm/package-lock.json"] {
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
    for source in places.of_project(Kind::Extensions) {
        if let Some(folder) = source.path.parent() {
            walk.add_tree(folder.to_owned(), true);
        }
        walk.add_file(source.path, true);
    }
    let mut named = Named::new(&places);
    commands.iter().for_each(|value| named.add(value, root));
    for source in places.of_project(Kind::Extensions) {
        named.add_manifest(&source.path);
    }
    for path in named.files() {
        walk.add_file(path, true);
    }
    walk.last.push((config.join("npm").join(DEPENDENCIES), None));
    walk.finish()
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
            folders: HashSet::new(),
            entries: 0,
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
        // Links are followed, each folder once: two links in each of many folders would make paths without end.
        let mut walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            found.entries += 1;
            let Ok(entry) = entry else { continue };
            if found.entries > ENTRIES_MAX {
                found.cover.next.get_or_insert(entry.into_path());
                return;
            }
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
            } else if !entry.metadata().is_ok_and(|about| found.folders.insert((about.dev(), about.ino()))) {
                walk.skip_current_dir();
            }
        }
    }
}

struct Found {
    cover: Cover,
    seen: HashSet<PathBuf>,
    /// Device and number of each folder.
    folders: HashSet<(u64, u64)>,
    /// Folders and files that were looked at.
    entries: usize,
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
