//! Reads the branch of a folder from git's files, without running git.

use super::text_file;
use crate::base::file;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the checked-out branch of a repository or work tree, or `detached` and eight digits of the commit.
pub fn branch(folder: &Path) -> Option<String> {
    let head = small(&head(folder)?)?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => head.get(..8).map(|commit| format!("detached {commit}")),
    }
    .filter(|name| !name.is_empty())
}

/// Reads one of git's small files. `None` if it is not valid UTF-8 text of at most 1 MiB.
pub(super) fn small(path: &Path) -> Option<String> {
    String::from_utf8(file::read(path, text_file::BYTES_MAX).ok()?).ok()
}

/// Returns the path of the `HEAD` file for `folder`.
fn head(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let git = folder.join(".git");
        let Ok(found) = fs::metadata(&git) else {
            continue;
        };
        if found.is_dir() {
            return Some(git.join("HEAD"));
        }
        // In a work tree or a submodule, `.git` is a file.
        let text = small(&git)?;
        let place = text.trim().strip_prefix("gitdir: ")?;
        return Some(folder.join(place).join("HEAD"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn branches_commits_and_work_trees_are_told_apart() {
        let scratch = TempDir::create();
        let root = scratch.path();
        assert_eq!(branch(root), None);
        scratch.write("main/.git/HEAD", "ref: refs/heads/topic/one\n");
        scratch.write("main/a/b/file", "");
        scratch.write("main/.git/worktrees/tree/HEAD", "0123456789abcdef0123456789abcdef01234567\n");
        scratch.write("tree/.git", "gitdir: ../main/.git/worktrees/tree\n");
        scratch.write("broken/.git", "nothing of use");
        for (folder, expected) in [
            ("main", Some("topic/one")),
            ("main/a/b", Some("topic/one")),
            ("tree", Some("detached 01234567")),
            ("broken", None),
        ] {
            assert_eq!(branch(&root.join(folder)).as_deref(), expected, "{folder}");
        }
    }
}
