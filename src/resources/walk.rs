//! Looks for resources in a folder: skills, prompt templates, themes, extensions.

use super::text_file;
use crate::base::ignore::Rules;
use crate::base::json;
use crate::base::{executable, file};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Maximum nesting of folders, since links may form loops.
pub const DEPTH_MAX: usize = 16;
/// Maximum number of entries that are examined in one folder tree.
pub const ENTRIES_MAX: usize = 20_000;
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

/// Which files of a folder are resources.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    /// Skills: a folder with a `SKILL.md`, and other Markdown files in the top folder.
    SkillsTop,
    /// Skills in `.agents`: a folder with a `SKILL.md`, and other Markdown files below the top folder.
    SkillsBelow,
    /// Files in the folder itself.
    Flat,
    /// Files at any depth.
    Deep,
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

/// True if `path` is a TypeScript or JavaScript extension that a host runs: a file with such an ending that is no
/// program of its own, which begins with `#!`.
pub fn is_script(path: &Path) -> bool {
    let is_named =
        path.extension().is_some_and(|end| ["ts", "mts", "js", "mjs"].iter().any(|one| end == *one));
    is_named && !(executable::is_one(path) && file::read_start(path, 2).is_ok_and(|start| start == b"#!"))
}

/// The extensions that a folder is, or those that lie in it.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    let own = programs_of(folder);
    if own.is_empty() { programs_below(folder) } else { own }
}

/// The extensions right in a folder: programs, scripts, and folders that are extensions.
pub fn programs_below(folder: &Path) -> Vec<PathBuf> {
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
    let package: serde_json::Value = json::parse(&bytes).unwrap_or_default();
    let entries = package["pi"]["extensions"].as_array().into_iter().flatten();
    let paths = entries.filter_map(|entry| entry.as_str()).map(|entry| tidy(&folder.join(entry)));
    let files = paths.flat_map(|path| if path.is_dir() { programs(&path) } else { vec![path] });
    files.filter(|path| path.is_file()).collect()
}

/// The resources of a kind in a folder that settings or a package name.
pub fn below(folder: &Path, kind: Kind) -> Vec<PathBuf> {
    match kind {
        Kind::Extensions => programs(folder),
        Kind::Skills => walk(folder, kind, Layout::SkillsTop),
        _ => walk(folder, kind, Layout::Deep),
    }
}

/// Returns the files of a kind below `top`, sorted by name. Links are followed; hidden entries,
/// `node_modules` and ignored files are skipped.
pub fn walk(top: &Path, kind: Kind, layout: Layout) -> Vec<PathBuf> {
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
