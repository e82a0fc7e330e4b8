//! Tables of rules and of the files that hold them.

use super::pattern::{Name, Pattern};
use super::*;
use crate::tools::local::Local;
use crate::tools::testing::TempDir;
use proptest::prelude::*;

/// Checks what the rules of one file ignore, seen from its folder. A path with a trailing `/` is a
/// folder; nothing is said about the folders above a path.
#[track_caller]
fn check(rules: &str, ignored: &[&str], kept: &[&str]) {
    let rules = Rules::parse(rules.as_bytes());
    for (paths, expected) in [(ignored, true), (kept, false)] {
        for path in paths {
            let name = path.trim_end_matches('/');
            let file = name.rsplit('/').next().unwrap();
            let verdict = rules.verdict(name.as_bytes(), file.as_bytes(), path.ends_with('/'));
            assert_eq!(verdict == Some(true), expected, "{path}");
        }
    }
}

#[test]
fn a_name_counts_at_any_depth_and_a_path_where_it_stands() {
    check("a", &["a", "a/", "x/a", "x/y/a/"], &["ab", "a/b"]);
    check("/a", &["a", "a/"], &["x/a"]);
    check("a/b", &["a/b"], &["x/a/b", "b"]);
    check("*.c", &["a.c", "x/.c", "a.b.c"], &["a.cc", "c"]);
    check("a*c", &["abc", "x/ac"], &["a/c"]);
    check("a/*.c", &["a/b.c"], &["a/b/d.c", "x/a/b.c"]);
    check("*.tar.gz", &["a.tar.gz"], &["a.gz"]);
}

#[test]
fn a_trailing_slash_means_folders() {
    check("a/", &["a/", "x/a/"], &["a", "x/a"]);
    check("/a/b/", &["a/b/"], &["a/b"]);
    check("a//", &[], &["a/", "a"]);
}

#[test]
fn two_stars_cross_folders() {
    check("**/a", &["a", "x/a", "x/y/a"], &["xa"]);
    check("a/**", &["a/b", "a/b/c"], &["a", "a/"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
    check("a/**b", &["a/xb"], &["a/x/b"]);
    check("/**", &["a", "a/b"], &[]);
    // The literal start is cut off first, so the stars stand at a start.
    check("a**/b", &["ab", "axx/b", "a/x/b"], &["b"]);
    check(r"**\/a", &["x/a", "x/y/a"], &["a"]);
}

#[test]
fn the_last_rule_decides() {
    check("*.c\n!a.c", &["b.c"], &["a.c", "x/a.c"]);
    check("!a.c\n*.c", &["a.c"], &[]);
    check("*\n!*/\n!*.c", &["a", "x/b"], &["a/", "x/b.c"]);
    check("a\n!/a\nx/a", &["y/a", "x/a"], &["a"]);
}

#[test]
fn lines_are_read_as_git_reads_them() {
    check("# a\n\n  \na\r\nb", &["a", "b"], &["# a", "  ", "a\r"]);
    check("\u{feff}a\n", &["a"], &["\u{feff}a"]);
    check("\\#a\n\\!b", &["#a", "!b"], &["a"]);
    check("a  \nb\\ \nc\\  ", &["a", "b ", "c "], &["b", "c", "a  "]);
    check("a\t", &["a\t"], &["a"]);
    check("a\0b", &["a"], &["ab"]);
    check("a\\", &[], &["a", "a\\"]);
    check("a\\\\", &["a\\"], &["a"]);
    check(" a", &[" a"], &["a"]);
    check("!\n/\n//\n!/", &[], &["a", ""]);
}

#[test]
fn sets_are_those_of_git() {
    check("[a-c]", &["a", "c"], &["d", "ab"]);
    check("[!a-c]\n", &["d"], &["a"]);
    check("[^a]x", &["bx"], &["ax"]);
    check("x/[!a]", &["x/b"], &["x/a"]);
    check("[]a]", &["]", "a"], &["b"]);
    check("[a-]", &["a", "-"], &["b"]);
    check(r"[\]\-a]", &["]", "-", "a"], &["\\"]);
    check("[[:digit:]_]", &["1", "_"], &["a", ":"]);
    check("[[:nope:]]", &[], &["n", ":"]);
    check("[[:]", &[":", "["], &["]"]);
    check("[a", &[], &["a", "[a"]);
    check("a?c", &["abc"], &["a/c", "ac"]);
    check("?", &["a"], &["é"]);
}

#[test]
fn an_index_by_name_leaves_no_rule_out() {
    let name = |line: &str| Pattern::parse(line.as_bytes()).unwrap().name();
    let exactly = |text: &str| Name::Exactly(text.as_bytes().to_vec());
    assert_eq!(name("a"), exactly("a"));
    assert_eq!(name("a/*/b.c"), exactly("b.c"));
    assert_eq!(name("**/b"), exactly("b"));
    assert_eq!(name("x**/b"), Name::Unknown);
    assert_eq!(name(r"a/\*b"), exactly("*b"));
    assert_eq!(name("x/*.c"), Name::Extension(b"c".to_vec()));
    assert_eq!(name("*.c.d"), Name::Unknown);
    assert_eq!(name("a*.c"), Name::Unknown);
    assert_eq!(name("x/**"), Name::Unknown);
}

/// The rules that hold in `dir` of a folder, with its own files.
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

proptest! {
    #[test]
    fn no_rules_panic(text in r"[\[\]\\*?!/#a-c:^ \r\n\t-]{0,24}", path in "[a-c/]{1,8}") {
        let rules = Rules::parse(text.as_bytes());
        let name = path.rsplit('/').next().unwrap_or_default();
        rules.verdict(path.as_bytes(), name.as_bytes(), false);
    }

    #[test]
    fn an_escaped_name_is_ignored(name in r"[ -.0-~]{1,8}") {
        let escaped: String = name.chars().flat_map(|char| ['\\', char]).collect();
        let rules = Rules::parse(escaped.as_bytes());
        prop_assert_eq!(rules.verdict(name.as_bytes(), name.as_bytes(), false), Some(true));
    }
}
