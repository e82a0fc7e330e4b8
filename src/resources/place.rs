//! Finds the files of skills, prompt templates, themes and extensions: in paths that settings name, in the standard
//! folders, and in packages.
//!
//! If two files have one name, the first wins: packages and folders of the command line come first, then files of the
//! project, files of the user, and packages of settings; files that settings name come before files that were found.
//! Files of an untrusted project are not read.

use super::dirs;
use super::package::Package;
use super::pattern::{Choice, Plain, is_path};
use super::settings::Settings;
use super::source::{Found, Scope, Source};
use super::text_file::Bounds;
pub use super::walk::{Kind, MANIFEST, is_script, tidy};
use super::walk::{Layout, below, programs_below, walk};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The folders and settings to search.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub agent: &'a Path,
    pub home: Option<&'a Path>,
    pub cwd: &'a Path,
    pub settings: &'a Settings,
    pub is_trusted: bool,
    /// Packages of the settings.
    pub packages: &'a [Package],
    /// Packages, folders and files of `--extension`.
    pub named_packages: &'a [Package],
}

impl Places<'_> {
    /// Returns the enabled files of a kind, in order of precedence. With `only_named`, only those of the command line.
    pub fn files(&self, kind: Kind, only_named: bool) -> Vec<Source> {
        let mut named = self.search(kind);
        self.named_packages.iter().for_each(|package| named.packaged(package));
        let others = if only_named { Vec::new() } else { self.configured(kind) };
        let all = named.sources.into_iter().chain(others);
        unique(all.collect()).into_iter().filter(|(_, is_on)| *is_on).map(|(source, _)| source).collect()
    }

    /// Returns the files of a kind that settings, standard folders and packages bring, in order of precedence, each
    /// with true if it is enabled.
    pub fn configured(&self, kind: Kind) -> Vec<(Source, bool)> {
        let (user_list, _) = self.settings.resources(kind.name());
        let mut found = self.search(kind);
        self.project_files(&mut found);
        found.bounds = Bounds::anywhere();
        self.listed(&mut found, &user_list, self.agent, Scope::User);
        found.looked(self.agent, &self.agent.join(kind.name()), Scope::User, &user_list, false);
        if let Some(home) = self.home.filter(|_| kind == Kind::Skills) {
            let base = home.join(".agents");
            found.looked(&base, &base.join("skills"), Scope::User, &user_list, true);
        }
        self.packages.iter().for_each(|package| self.package_files(&mut found, package));
        unique(found.sources)
    }

    /// Returns the enabled files of a kind that the project brings.
    pub fn of_project(&self, kind: Kind) -> Vec<Source> {
        let mut found = self.search(kind);
        self.project_files(&mut found);
        let packages = self.packages.iter().filter(|package| package.scope == Scope::Project);
        packages.for_each(|package| self.package_files(&mut found, package));
        found.sources.into_iter().filter(|(_, is_on)| *is_on).map(|(source, _)| source).collect()
    }

    fn project_files(&self, found: &mut Search) {
        if !self.is_trusted {
            return;
        }
        let (_, list) = self.settings.resources(found.kind.name());
        let base = self.cwd.join(".pi");
        let folder = base.join(found.kind.name());
        // Bounds are found by many looks at the disk: only where there is something to read.
        if !list.is_empty() || folder.exists() {
            found.bounds = self.bounds(self.cwd, &base);
            self.listed(found, &list, &base, Scope::Project);
            found.looked(&base, &folder, Scope::Project, &list, false);
        }
        if found.kind == Kind::Skills {
            for folder in self.agents_folders().into_iter().filter(|folder| folder.exists()) {
                let base = folder.parent().unwrap_or(&folder).to_owned();
                found.bounds = self.bounds(base.parent().unwrap_or(&base), &base);
                found.looked(&base, &folder, Scope::Project, &list, true);
            }
        }
    }

    fn package_files(&self, found: &mut Search, package: &Package) {
        found.bounds = match package.scope {
            Scope::Project => {
                self.bounds(self.cwd, &self.cwd.join(".pi")).and_project(&package.root, self.home)
            }
            _ => Bounds::anywhere(),
        };
        found.packaged(package);
    }

    /// Bounds of files of the project.
    fn bounds(&self, folder: &Path, base: &Path) -> Bounds {
        Bounds::project(folder, self.home).and_project(base, self.home)
    }

    fn search(&self, kind: Kind) -> Search {
        Search {
            kind,
            home: self.home.map(Path::to_owned),
            bounds: Bounds::anywhere(),
            sources: Vec::new(),
            paths: HashSet::new(),
        }
    }

    /// Returns the files of a path on the command line, which names a file or a folder. `None` if nothing is
    /// there.
    pub fn named(&self, kind: Kind, path: &Path) -> Option<Vec<Source>> {
        let about = std::fs::metadata(path).ok()?;
        let files = if about.is_dir() {
            let layout = if kind == Kind::Skills { Layout::SkillsTop } else { Layout::Flat };
            walk(path, kind, layout)
        } else {
            vec![path.to_owned()]
        };
        let base = |file: &Path| match kind {
            Kind::Skills => file.parent().map(Path::to_owned),
            _ if about.is_dir() => Some(path.to_owned()),
            _ => path.parent().map(Path::to_owned),
        };
        let source = |file: PathBuf| Source {
            base: base(&file),
            path: file,
            found: Found::Named,
            scope: Scope::Temporary,
            bounds: Bounds::anywhere(),
        };
        Some(files.into_iter().map(source).collect())
    }

    fn listed(&self, found: &mut Search, list: &[String], base: &Path, scope: Scope) {
        let rules = Choice::new(list, Plain::Globs, self.home);
        let bounds = found.bounds.clone();
        for entry in list.iter().filter(|entry| is_path(entry)) {
            let path = tidy(&self.resolve(entry.trim(), base));
            let mut named = path.as_path();
            let files = match std::fs::metadata(&path) {
                Ok(about) if about.is_dir() => below(&path, found.kind),
                Ok(_) => {
                    named = path.parent().unwrap_or(named);
                    vec![path.clone()]
                }
                Err(_) => Vec::new(),
            };
            found.bounds = match scope {
                Scope::Project => bounds.clone().and_project(named, self.home),
                _ => bounds.clone(),
            };
            for file in files {
                let is_on = rules.allow(&file, base);
                found.add(file, Found::Named, scope, None, is_on);
            }
        }
        found.bounds = bounds;
    }

    /// Resolves a path of the settings: `~` is the home folder, a `file://` URL its path, and relative paths begin at
    /// `base`.
    pub fn resolve(&self, path: &str, base: &Path) -> PathBuf {
        dirs::resolve(path, self.home, base)
    }

    /// Returns the `.agents/skills` folders of the working folder and its ancestors, up to the repository's
    /// root. The user's own folder is not among them.
    fn agents_folders(&self) -> Vec<PathBuf> {
        let own = self.home.map(|home| home.join(".agents/skills"));
        let mut folders = Vec::new();
        for folder in self.cwd.ancestors() {
            let skills = folder.join(".agents/skills");
            if Some(&skills) != own.as_ref() {
                folders.push(skills);
            }
            if folder.join(".git").exists() {
                break;
            }
        }
        folders
    }
}

/// Leaves a file that is found twice only in its first position.
fn unique(mut sources: Vec<(Source, bool)>) -> Vec<(Source, bool)> {
    let mut seen = HashSet::new();
    sources.retain(|(source, _)| {
        let path = source.path.canonicalize();
        seen.insert(path.unwrap_or_else(|_| source.path.clone()))
    });
    sources
}

struct Search {
    kind: Kind,
    home: Option<PathBuf>,
    /// Bounds of the files that are found at present.
    bounds: Bounds,
    /// Files, each with true if it is enabled.
    sources: Vec<(Source, bool)>,
    paths: HashSet<PathBuf>,
}

impl Search {
    fn add(&mut self, path: PathBuf, found: Found, scope: Scope, base: Option<&Path>, is_on: bool) {
        if self.paths.insert(path.clone()) {
            let (base, bounds) = (base.map(Path::to_owned), self.bounds.clone());
            let source = Source { path, found, scope, base, bounds };
            self.sources.push((source, is_on));
        }
    }

    fn packaged(&mut self, package: &Package) {
        let folder = if package.root.is_file() { package.root.parent() } else { None };
        let base = folder.unwrap_or(&package.root).to_owned();
        let is_flag =
            package.scope == Scope::Temporary && matches!(self.kind, Kind::Extensions | Kind::Skills);
        let (found, base) = match is_flag {
            true => (Found::Flag, None),
            false => (Found::Package(package.text.as_str().into()), Some(&*base)),
        };
        for (file, is_on) in package.files(self.kind, self.home.as_deref()) {
            self.add(file, found.clone(), package.scope, base, is_on);
        }
    }

    fn looked(&mut self, base: &Path, folder: &Path, scope: Scope, list: &[String], is_agents: bool) {
        let layout = match self.kind {
            Kind::Skills if is_agents => Layout::SkillsBelow,
            Kind::Skills => Layout::SkillsTop,
            _ => Layout::Flat,
        };
        let rules = Choice::new(list, Plain::Ignored, self.home.as_deref());
        let files = match self.kind {
            Kind::Extensions => programs_below(folder),
            kind => walk(folder, kind, layout),
        };
        for file in files {
            let is_on = rules.allow(&file, base);
            self.add(file, Found::Looked, scope, Some(base), is_on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn each_kind_has_its_folder_and_its_files() {
        let scratch = TempDir::create();
        for name in ["a.json", "b.md", "in/c.json", ".d.json", "e.json/x"] {
            scratch.write(&format!("agent/themes/{name}"), "");
        }
        let (agent, cwd) = (scratch.path().join("agent"), scratch.path().join("p"));
        let settings = Settings::default();
        let places = Places {
            agent: &agent,
            home: None,
            cwd: &cwd,
            settings: &settings,
            is_trusted: true,
            packages: &[],
            named_packages: &[],
        };
        let paths: Vec<PathBuf> = places.files(Kind::Themes, false).into_iter().map(|s| s.path).collect();
        assert_eq!(paths, [agent.join("themes/a.json")]);
        assert_eq!(places.files(Kind::Prompts, false), []);
        assert_eq!(places.named(Kind::Themes, &agent.join("nope")), None);
    }

    #[test]
    fn ignore_files_count_for_their_folder_and_those_below() {
        let scratch = TempDir::create();
        for name in
            ["a", "out", "deep/a", "deep/local", "deep/x/local", "x/local", ".hid/a", "node_modules/a"]
        {
            scratch.write(&format!("{name}/SKILL.md"), "");
        }
        scratch.write(".gitignore", "/out\n");
        scratch.write("deep/.ignore", "local\n!a\n");
        let files = walk(scratch.path(), Kind::Skills, Layout::SkillsTop);
        let names: Vec<&Path> =
            files.iter().map(|file| file.parent().unwrap().strip_prefix(scratch.path()).unwrap()).collect();
        assert_eq!(names, ["a", "deep/a", "x/local"].map(Path::new));
        scratch.write("SKILL.md", "");
        assert_eq!(
            walk(scratch.path(), Kind::Skills, Layout::SkillsBelow),
            [scratch.path().join("SKILL.md")]
        );
    }

    #[test]
    fn paths_are_tidied_as_they_are_written() {
        for (path, expected) in [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("/a/", "/a")] {
            assert_eq!(tidy(Path::new(path)), Path::new(expected));
        }
    }
}
