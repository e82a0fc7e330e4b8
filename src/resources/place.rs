//! Finds the files of skills, prompt templates and themes, in paths that settings name and in the standard
//! folders.
//!
//! If two files have one name, the first wins: files of the project come before files of the user, and files
//! that settings name before files that were found. Files of an untrusted project are not read.

use super::pattern::{Choice, is_path};
use super::settings::Settings;
use super::source::{Found, Scope, Source};
use super::text_file::{self, Bounds};
use crate::base::ignore::Rules;
use crate::base::{executable, file};
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Maximum nesting of folders, since links may form loops.
const DEPTH_MAX: usize = 16;
/// Maximum number of entries that are examined in one folder tree.
const ENTRIES_MAX: usize = 20_000;
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Skills,
    Prompts,
    Themes,
    Agents,
    /// Programs, and manifests of programs.
    Extensions,
}

/// The file that says how an extension is started.
pub const MANIFEST: &str = "pi-extension.json";

impl Kind {
    /// Returns the name of the setting and of the folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skills => "skills",
            Self::Prompts => "prompts",
            Self::Themes => "themes",
            Self::Agents => "agents",
            Self::Extensions => "extensions",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Skills | Self::Prompts | Self::Agents => ".md",
            Self::Themes => ".json",
            Self::Extensions => MANIFEST,
        }
    }
}

/// The folders and settings to search.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub agent: &'a Path,
    pub home: Option<&'a Path>,
    pub cwd: &'a Path,
    pub settings: &'a Settings,
    pub is_trusted: bool,
}

/// Which files of a folder are resources.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Skills: a folder with a `SKILL.md`, and other Markdown files in the top folder.
    SkillsTop,
    /// Skills in `.agents`: a folder with a `SKILL.md`, and other Markdown files below the top folder.
    SkillsBelow,
    /// Files in the folder itself.
    Flat,
    /// Files at any depth.
    Deep,
}

impl Places<'_> {
    /// Returns the enabled files of a kind, in order of precedence.
    pub fn files(&self, kind: Kind) -> Vec<Source> {
        let (user_list, project_list) = self.settings.resources(kind.name());
        let project_base = self.cwd.join(".pi");
        let of_project =
            |folder: &Path, base: &Path| Bounds::project(folder, self.home).and_project(base, self.home);
        let mut found = Search {
            kind,
            home: self.home.map(Path::to_owned),
            bounds: Bounds::default(),
            sources: Vec::new(),
            paths: HashSet::new(),
        };
        if self.is_trusted {
            let folder = project_base.join(kind.name());
            // Bounds are found by many looks at the disk: only where there is something to read.
            if !project_list.is_empty() || folder.exists() {
                found.bounds = of_project(self.cwd, &project_base);
                self.listed(&mut found, &project_list, &project_base, Scope::Project);
                found.looked(&project_base, &folder, Scope::Project, &project_list, false);
            }
            if kind == Kind::Skills {
                for folder in self.agents_folders().into_iter().filter(|folder| folder.exists()) {
                    let base = folder.parent().unwrap_or(&folder).to_owned();
                    found.bounds = of_project(base.parent().unwrap_or(&base), &base);
                    found.looked(&base, &folder, Scope::Project, &project_list, true);
                }
            }
        }
        found.bounds = Bounds::anywhere();
        self.listed(&mut found, &user_list, self.agent, Scope::User);
        found.looked(self.agent, &self.agent.join(kind.name()), Scope::User, &user_list, false);
        if let Some(home) = self.home.filter(|_| kind == Kind::Skills) {
            let base = home.join(".agents");
            found.looked(&base, &base.join("skills"), Scope::User, &user_list, true);
        }
        // A file that is found twice counts only once, in its first position.
        let mut seen = HashSet::new();
        let mut sources = found.sources;
        sources.retain(|(source, _)| {
            let path = source.path.canonicalize();
            seen.insert(path.unwrap_or_else(|_| source.path.clone()))
        });
        let on = sources.into_iter().filter(|(_, is_on)| *is_on);
        on.map(|(source, _)| source).collect()
    }

    /// Returns the files of a path on the command line, which names a file or a folder. `None` if nothing is
    /// there.
    pub fn named(&self, kind: Kind, path: &Path) -> Option<Vec<Source>> {
        let about = std::fs::metadata(path).ok()?;
        let files = if about.is_dir() && kind == Kind::Extensions {
            programs(path)
        } else if about.is_dir() {
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
        let rules = Choice::new(list, true, self.home);
        let bounds = found.bounds.clone();
        for entry in list.iter().filter(|entry| is_path(entry)) {
            let path = tidy(&self.resolve(entry.trim(), base));
            let mut named = path.as_path();
            let files = match std::fs::metadata(&path) {
                Ok(about) if about.is_dir() && found.kind == Kind::Extensions => programs(&path),
                Ok(about) if about.is_dir() => {
                    let layout = if found.kind == Kind::Skills { Layout::SkillsTop } else { Layout::Deep };
                    walk(&path, found.kind, layout)
                }
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

    fn resolve(&self, path: &str, base: &Path) -> PathBuf {
        match (path.strip_prefix('~'), self.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => base.join(path),
        }
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

/// Resolves `.` and `..` in a path without reading the disk.
pub fn tidy(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
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

    fn looked(&mut self, base: &Path, folder: &Path, scope: Scope, list: &[String], is_agents: bool) {
        let layout = match self.kind {
            Kind::Skills if is_agents => Layout::SkillsBelow,
            Kind::Skills => Layout::SkillsTop,
            _ => Layout::Flat,
        };
        let rules = Choice::new(list, false, self.home.as_deref());
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

/// True if `path` is a TypeScript or JavaScript extension that a host runs: a file with such an ending that is no
/// program of its own, which begins with `#!`.
pub fn is_script(path: &Path) -> bool {
    let is_named =
        path.extension().is_some_and(|end| ["ts", "mts", "js", "mjs"].iter().any(|one| end == *one));
    is_named && !(executable::is_one(path) && file::read_start(path, 2).is_ok_and(|start| start == b"#!"))
}

/// The extensions that a folder is, or those that lie in it.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let own = programs_of(folder);
    if own.is_empty() { programs_below(folder) } else { own }
}

/// The extensions right in a folder: programs, scripts, and folders that are extensions.
fn programs_below(folder: &Path) -> Vec<PathBuf> {
    let walk = WalkDir::new(folder).min_depth(1).max_depth(1).follow_links(true).sort_by_file_name();
    let entries = walk.into_iter().flatten().take(ENTRIES_MAX);
    let seen = entries.filter(|entry| !entry.file_name().as_bytes().starts_with(b"."));
    let program = |entry: walkdir::DirEntry| {
        let path = entry.into_path();
        match path.is_dir() {
            true => programs_of(&path),
            false if path.ends_with(MANIFEST) || executable::is_one(&path) || is_script(&path) => vec![path],
            false => Vec::new(),
        }
    };
    seen.flat_map(program).collect()
}

/// The extensions that a folder is: its manifest, the files that its package.json names, or its index.
fn programs_of(folder: &Path) -> Vec<PathBuf> {
    let manifest = folder.join(MANIFEST);
    if manifest.is_file() {
        return vec![manifest];
    }
    let named = package_extensions(folder);
    if !named.is_empty() {
        return named;
    }
    let index = ["index.ts", "index.js"].map(|name| folder.join(name));
    index.into_iter().find(|file| file.is_file()).into_iter().collect()
}

/// The existing paths of `pi.extensions` in the package.json of a folder.
fn package_extensions(folder: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = file::read(&folder.join("package.json"), text_file::BYTES_MAX) else { return Vec::new() };
    let package: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let entries = package["pi"]["extensions"].as_array().into_iter().flatten();
    let paths = entries.filter_map(|entry| entry.as_str()).map(|entry| tidy(&folder.join(entry)));
    let files = paths.flat_map(|path| if path.is_dir() { programs(&path) } else { vec![path] });
    files.filter(|path| path.is_file()).collect()
}

/// Returns the files of a kind below `top`, sorted by name. Links are followed; hidden entries,
/// `node_modules` and ignored files are skipped.
fn walk(top: &Path, kind: Kind, layout: Layout) -> Vec<PathBuf> {
    let is_skills = matches!(layout, Layout::SkillsTop | Layout::SkillsBelow);
    let depth_max = if layout == Layout::Flat { 1 } else { DEPTH_MAX };
    let walk = WalkDir::new(top).follow_links(true).sort_by_file_name().max_depth(depth_max);
    let mut walk = walk.into_iter();
    let mut files = Vec::new();
    // Rules of the ignore files of each folder from `top` to the current one.
    let mut ignored: Vec<Rules> = Vec::new();
    for _ in 0..ENTRIES_MAX {
        let Some(entry) = walk.next() else {
            break;
        };
        let Ok(entry) = entry else {
            continue;
        };
        let (path, depth) = (entry.path(), entry.depth());
        let Some(name) = path.to_str().and_then(|path| path.rsplit('/').next()) else {
            continue;
        };
        let is_folder = entry.file_type().is_dir();
        ignored.truncate(depth);
        let is_skipped =
            || name.starts_with('.') || name == "node_modules" || leaves_out(&ignored, path, is_folder);
        if depth > 0 && is_skipped() {
            if is_folder {
                walk.skip_current_dir();
            }
            continue;
        }
        if is_folder {
            ignored.push(ignore_rules(path));
            let skill = path.join("SKILL.md");
            if is_skills && skill.is_file() && !leaves_out(&ignored, &skill, false) {
                files.push(skill);
                walk.skip_current_dir();
            }
            continue;
        }
        let counts_here = match layout {
            Layout::SkillsTop => depth == 1,
            Layout::SkillsBelow => depth > 1,
            Layout::Flat | Layout::Deep => true,
        };
        if entry.file_type().is_file() && counts_here && name.ends_with(kind.extension()) {
            files.push(entry.into_path());
        }
    }
    files
}

/// Parses the ignore files in a folder.
fn ignore_rules(folder: &Path) -> Rules {
    let read = |name: &&str| file::read(&folder.join(name), text_file::BYTES_MAX).ok();
    let texts: Vec<Vec<u8>> = IGNORE_FILES.iter().filter_map(read).collect();
    Rules::parse(&texts.join(&b'\n'))
}

/// True if the rules ignore `path`. `ignored` has the rules of each folder on the path, outermost first.
fn leaves_out(ignored: &[Rules], path: &Path, is_folder: bool) -> bool {
    let path = path.as_os_str().as_bytes();
    let starts = memchr::memrchr_iter(b'/', path).map(|slash| slash + 1);
    let mut name = None;
    let says = ignored.iter().rev().zip(starts).find_map(|(rules, start)| {
        let name = *name.get_or_insert(&path[start..]);
        rules.verdict(&path[start..], name, is_folder)
    });
    says.unwrap_or(false)
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
        let places = Places { agent: &agent, home: None, cwd: &cwd, settings: &settings, is_trusted: true };
        let paths: Vec<PathBuf> = places.files(Kind::Themes).into_iter().map(|s| s.path).collect();
        assert_eq!(paths, [agent.join("themes/a.json")]);
        assert_eq!(places.files(Kind::Prompts), []);
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
