//! Tables of the rules of one ignore file.

use super::pattern::{Name, Pattern};
use super::*;
use proptest::prelude::*;

/// Checks what the rules of one file ignore, relative to its folder. A path with a trailing `/` is a folder;
/// the folders above a path are not checked.
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
