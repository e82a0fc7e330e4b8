//! Tables of folders with ignore files.

use super::*;
use crate::tools::local::Local;
use crate::tools::testing::TempDir;

/// The rules that apply in the folder `dir` of `tree`, including its own files.
fn scope(tree: &TempDir, dir: &str) -> (Scope, String) {
    let dir = tree.path().join(dir);
    let home = tree.path().join("home");
    let scope = Scope::load(&Local, &dir, tree.path(), Some(&home), None);
    let there = |name: &str| dir.join(name).exists();
    let marks = Marks { ignore: there(".ignore"), gitignore: there(".gitignore"), git: there(".git") };
    let dir = dir.to_str().unwrap().trim_end_matches('/').to_owned();
    (scope.enter(&Local, dir.as_bytes(), marks), dir)
}

#[track_caller]
fn check_in(tree: &TempDir, dir: &str, ignored: &[&str], kept: &[&str]) {
    let (scope, dir) = scope(tree, dir);
    for (names, expected) in [(ignored, true), (kept, false)] {
        for name in names {
            let path = format!("{dir}/{name}");
            let verdict = scope.ignores(path.as_bytes(), dir.len() + 1, false);
            assert_eq!(verdict, expected, "{path}");
        }
    }
}

#[test]
fn the_deepest_file_decides_and_ignore_files_come_before_all() {
    let tree = TempDir::create();
    tree.write(".git/info/exclude", "by-exclude\nboth\n");
    tree.write(".gitignore", "*.log\n/top\n!both\n");
    tree.write("sub/.gitignore", "!keep.log\n/top\n");
    tree.write("home/.config/git/ignore", "by-user\n!by-exclude\n");
    check_in(&tree, "", &["a.log", "keep.log", "top", "by-exclude", "by-user"], &["both", "a"]);
    check_in(&tree, "sub", &["a.log", "top", "by-user"], &["keep.log"]);
    check_in(&tree, "other", &["a.log"], &["top"]);
    tree.write(".ignore", "!a.log\nkeep.log\n");
    check_in(&tree, "sub", &["keep.log", "b.log"], &["a.log"]);
    tree.write("sub/.ignore", "!keep.log\n");
    check_in(&tree, "sub", &["b.log"], &["a.log", "keep.log"]);
}

#[test]
fn a_repository_inside_starts_anew_and_rules_above_the_root_do_not_count() {
    let tree = TempDir::create();
    tree.write(".gitignore", "outer\n");
    tree.write(".ignore", "own\n");
    tree.write("repo/.git/info/exclude", "inner\n");
    tree.write("home/.gitconfig", "[core]\nexcludesFile = ~/mine\n");
    tree.write("home/mine", "/user\n");
    check_in(&tree, "", &["outer", "own", "user"], &["inner"]);
    check_in(&tree, "repo", &["inner", "user"], &["outer", "own"]);
    // Entered from above, `.ignore` files go on.
    let (outer, dir) = scope(&tree, "");
    let dir = format!("{dir}/repo");
    let marks = Marks { git: true, ..Marks::default() };
    let inner = outer.enter(&Local, dir.as_bytes(), marks);
    for (name, expected) in [("own", true), ("inner", true), ("user", true), ("outer", false)] {
        let path = format!("{dir}/{name}");
        let verdict = inner.ignores(path.as_bytes(), dir.len() + 1, false);
        assert_eq!(verdict, expected, "{name}");
    }
}

#[test]
fn the_exclude_file_of_a_worktree_is_that_of_its_repository() {
    let tree = TempDir::create();
    tree.write("main/.git/info/exclude", "hidden\n");
    tree.write("main/.git/worktrees/w/commondir", "../..\n");
    tree.write("w/.git", "gitdir: ../main/.git/worktrees/w\n");
    check_in(&tree, "w", &["hidden"], &["a"]);
}

#[test]
fn outside_of_a_repository_files_count_from_the_working_folder_down() {
    let tree = TempDir::create();
    tree.write(".gitignore", "a\n");
    tree.write("x/y/.gitignore", "b\n");
    tree.write("z/.gitignore", "c\n");
    check_in(&tree, "x/y", &["a", "b"], &["c"]);
}
