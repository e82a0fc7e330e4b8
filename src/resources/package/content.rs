//! What a package holds: what its `package.json` says under `pi`, or its conventional folders.

use super::super::pattern::{Choice, Plain, compile, relative};
use super::super::walk::{DEPTH_MAX, ENTRIES_MAX, Kind, below, tidy};
use super::super::{text, text_file};
use crate::base::file;
use serde_json::Value;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The kinds of resources that a package may hold.
pub const KINDS: [Kind; 4] = [Kind::Extensions, Kind::Skills, Kind::Prompts, Kind::Themes];

/// The `package.json` of a folder; null if there is none.
pub fn manifest(root: &Path) -> Value {
    let bytes = file::read(&root.join("package.json"), text_file::BYTES_MAX).unwrap_or_default();
    serde_json::from_str(&text(&bytes)).unwrap_or_default()
}

/// The files of a kind that the package in the folder `root` declares. None if the folder declares no resources.
pub fn declared(root: &Path, kind: Kind) -> Option<Vec<PathBuf>> {
    let manifest = manifest(root);
    let listed = |kind: Kind| -> Option<Vec<String>> {
        let entries = manifest["pi"][kind.name()].as_array()?;
        entries.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
    };
    if KINDS.iter().any(|kind| listed(*kind).is_some()) {
        return Some(listed(kind).map(|entries| files(root, kind, &entries)).unwrap_or_default());
    }
    let has_folder = KINDS.iter().any(|kind| root.join(kind.name()).is_dir());
    has_folder.then(|| below(&root.join(kind.name()), kind))
}

/// The files that the entries of a manifest name: paths and globs, and rules with a sign.
fn files(root: &Path, kind: Kind, entries: &[String]) -> Vec<PathBuf> {
    let plain = entries.iter().filter(|entry| !entry.starts_with(['!', '+', '-']));
    let paths = plain.flat_map(|entry| match entry.contains(['*', '?']) {
        true => expand(root, entry),
        false => vec![tidy(&root.join(entry))],
    });
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        let files = if path.is_dir() { below(&path, kind) } else { vec![path] };
        found.extend(files.into_iter().filter(|file| file.is_file()));
    }
    let rules = Choice::new(entries, Plain::Ignored, None);
    found.retain(|file| rules.allow(file, root));
    found
}

/// The paths that a glob names. Hidden entries are left out.
fn expand(root: &Path, glob: &str) -> Vec<PathBuf> {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let Some(matcher) = compile(glob) else { return Vec::new() };
    let parts: Vec<&str> = glob.split('/').collect();
    let fixed = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '{'])).count();
    let (fixed, open) = parts.split_at(fixed);
    let depth = if glob.contains("**") { DEPTH_MAX } else { open.len() };
    let walk = WalkDir::new(root.join(fixed.join("/"))).min_depth(1).max_depth(depth).sort_by_file_name();
    let is_seen = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    let entries = walk.into_iter().filter_entry(is_seen).take(ENTRIES_MAX).flatten();
    let paths = entries.map(|entry| tidy(entry.path()));
    paths.filter(|path| matcher.is_match(relative(root, path).to_string_lossy().as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn names(root: &Path, kind: Kind) -> Option<Vec<String>> {
        let files = declared(root, kind)?.into_iter();
        Some(files.map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect())
    }

    #[test]
    fn a_manifest_or_the_folders_declare_resources() {
        let scratch = TempDir::create();
        let root = scratch.path();
        assert_eq!(names(root, Kind::Skills), None);
        for name in [
            "prompts/a.md",
            "prompts/in/b.md",
            "skills/s/SKILL.md",
            "themes/.t.json",
            "src/x/c.md",
            "src/.h/d.md",
        ] {
            scratch.write(name, "");
        }
        let folders = |kind| names(root, kind).unwrap();
        assert_eq!(folders(Kind::Prompts), ["prompts/a.md", "prompts/in/b.md"]);
        assert_eq!(folders(Kind::Skills), ["skills/s/SKILL.md"]);
        assert_eq!(folders(Kind::Themes), [""; 0]);
        // Fields that name no resources change nothing.
        scratch.write("package.json", r#"{"pi": {"image": "x.png", "prompts": "no list"}}"#);
        assert_eq!(folders(Kind::Prompts).len(), 2);
        let rows: &[(&str, &[&str])] = &[
            (r#"["./prompts"]"#, &["prompts/a.md", "prompts/in/b.md"]),
            (r#"["prompts/*.md", "nowhere.md"]"#, &["prompts/a.md"]),
            (r#"["./prompts/**/*.md"]"#, &["prompts/a.md", "prompts/in/b.md"]),
            (r#"["src/*/*.md"]"#, &["src/x/c.md"]),
            (r#"["src/.h/d.md"]"#, &["src/.h/d.md"]),
            (r#"["**/*.md", "!**/b.md", "!src/**"]"#, &["prompts/a.md", "skills/s/SKILL.md"]),
            (r#"["prompts", "-prompts/a.md"]"#, &["prompts/in/b.md"]),
            (r#"["prompts", "!**", "+prompts/a.md"]"#, &["prompts/a.md"]),
            ("[]", &[]),
        ];
        for (entries, expected) in rows {
            scratch.write("package.json", format!("\u{feff}{{\"pi\": {{\"prompts\": {entries}}}}}"));
            assert_eq!(folders(Kind::Prompts), *expected, "{entries}");
            // What the manifest does not name is no part of the package.
            assert_eq!(folders(Kind::Skills), [""; 0]);
        }
    }
}
