//! Finds names similar to a missing one.

use super::likeness::Likeness;
use crate::base::order::Order;
use crate::tools::workspace::Workspace;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Maximum names compared in a folder, and maximum paths suggested.
const MAX_COMPARED: usize = 10_000;
const MAX_NAMED: usize = 3;
const MIN_LIKENESS: usize = 45;

/// A sentence about paths similar to the missing `path`, after a space; empty if there are none.
pub fn similar_paths(workspace: &Workspace, path: &Path) -> String {
    let paths: Vec<String> = similar(workspace, path)
        .iter()
        .map(|found| {
            let relative = found.strip_prefix(&workspace.cwd).unwrap_or(found);
            relative.display().to_string()
        })
        .collect();
    match paths.as_slice() {
        [] => String::new(),
        paths => format!(" Similar paths: {}.", paths.join(", ")),
    }
}

/// Compares the first missing component of the path with the entries of its folder.
fn similar(workspace: &Workspace, path: &Path) -> Vec<PathBuf> {
    let mut missing = path;
    let (folder, entries) = loop {
        let Some(parent) = missing.parent() else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        let listed = workspace.backend.each_entry(parent, &mut |entry| {
            entries.push(entry);
            match entries.len() {
                MAX_COMPARED => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        if listed.is_ok() {
            break (parent, entries);
        }
        missing = parent;
    };
    let Some(name) = missing.file_name() else {
        return Vec::new();
    };
    let wanted = name.to_string_lossy().to_lowercase();
    let likeness = Likeness::to(&wanted);
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let mut found: Vec<(usize, PathBuf)> = entries
        .iter()
        .filter_map(|entry| {
            let name = entry.name.to_string_lossy().to_lowercase();
            // The same name in other case, or with another ending, is nearer than any that is alike.
            let score = if name == wanted {
                200
            } else if !stem(&name).is_empty() && stem(&name) == stem(&wanted) {
                150
            } else {
                likeness.percent(&name)
            };
            (score >= MIN_LIKENESS).then(|| (score, folder.join(&entry.name)))
        })
        .collect();
    found.order_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    found.truncate(MAX_NAMED);
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;

    #[test]
    fn names_like_the_missing_one_are_found() {
        let dir = TempDir::create();
        for name in ["src/tools/read.rs", "src/tools/write.rs", "README.md", "main.ts"] {
            dir.write(name, "");
        }
        let workspace = dir.workspace();
        for (missing, expected) in [
            ("readme.md", " Similar paths: README.md."),
            ("main.rs", " Similar paths: main.ts."),
            ("src/tools/raed.rs", " Similar paths: src/tools/read.rs."),
            ("src/tool/read.rs", " Similar paths: src/tools."),
            ("src/tools/something-else", ""),
            ("nowhere/at/all", ""),
        ] {
            assert_eq!(similar_paths(&workspace, &dir.path().join(missing)), expected, "{missing}");
        }
        assert_eq!(similar_paths(&workspace, Path::new("/")), "");
    }
}
