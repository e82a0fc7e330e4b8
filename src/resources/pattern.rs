//! Rules of a resource list in the settings: globs, `!` before an excluded glob, `+` and `-` before a path.
//!
//! A wildcard at the start of a name does not match a dot.

use super::walk::MANIFEST;
use crate::base::glob::{Dialect, Glob};
use std::path::{Component, Path, PathBuf};

/// Parsed rules that choose among the files that were found.
#[derive(Debug, Default)]
pub struct Choice {
    /// Globs that include files; `None` for an invalid glob, which matches nothing.
    includes: Vec<Option<Glob>>,
    excludes: Vec<Option<Glob>>,
    kept: Vec<String>,
    dropped: Vec<String>,
}

/// What an entry without a sign is in a list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// No rule.
    Ignored,
    /// A glob that includes files if it has wildcards; else a path, which is no rule.
    Globs,
    /// A glob that includes files.
    Patterns,
}

/// True if an entry of a list is the path of a file or folder rather than a rule.
pub fn is_path(entry: &str) -> bool {
    !entry.starts_with(['!', '+', '-']) && !entry.contains(['*', '?'])
}

impl Choice {
    /// Parses the rules. `~/` after a sign stands for the folder `home`.
    pub fn new(entries: &[String], plain: Plain, home: Option<&Path>) -> Self {
        let mut rules = Self::default();
        let at_home = |path: &str| match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => format!("{}/{rest}", home.display()),
            _ => path.to_owned(),
        };
        for entry in entries {
            let exact = |path: &str| at_home(path.strip_prefix("./").unwrap_or(path));
            if let Some(glob) = entry.strip_prefix('!') {
                rules.excludes.push(compile(&at_home(glob)));
            } else if let Some(path) = entry.strip_prefix('+') {
                rules.kept.push(exact(path));
            } else if let Some(path) = entry.strip_prefix('-') {
                rules.dropped.push(exact(path));
            } else if plain == Plain::Patterns || (plain == Plain::Globs && !is_path(entry)) {
                rules.includes.push(compile(entry));
            }
        }
        rules
    }

    /// True if `file` is to be used. Relative rules begin at `base`. For a `SKILL.md`, rules may also name
    /// its folder.
    pub fn allow(&self, file: &Path, base: &Path) -> bool {
        let names = Names::of(file, base);
        let chosen = self.includes.is_empty() || names.are_in(&self.includes);
        let chosen = chosen && !names.are_in(&self.excludes);
        (chosen || names.are_exactly(&self.kept)) && !names.are_exactly(&self.dropped)
    }
}

/// What the last of `entries` that speaks of `file` says of it: true if it is to be used. `+path` and globs without a
/// sign include, `-path` and `!glob` exclude.
pub fn last_word(entries: &[String], file: &Path, base: &Path, home: Option<&Path>) -> Option<bool> {
    let names = Names::of(file, base);
    entries.iter().rev().find_map(|entry| {
        let rules = Choice::new(std::slice::from_ref(entry), Plain::Patterns, home);
        let (kept, dropped) = (names.are_exactly(&rules.kept), names.are_exactly(&rules.dropped));
        let (included, excluded) = (names.are_in(&rules.includes), names.are_in(&rules.excludes));
        (kept || dropped || included || excluded).then_some(kept || included)
    })
}

/// The names that rules may call a file by.
struct Names {
    exact: Vec<String>,
    all: Vec<String>,
}

impl Names {
    fn of(file: &Path, base: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = |path: &Path| path.file_name().map(|name| text(Path::new(name)));
        let folder = file.parent().filter(|_| file.ends_with("SKILL.md") || file.ends_with(MANIFEST));
        let exact: Vec<String> = std::iter::once(file)
            .chain(folder)
            .flat_map(|path| [text(&relative(base, path)), text(path)])
            .collect();
        let names = std::iter::once(file).chain(folder).filter_map(name);
        Self { all: exact.iter().cloned().chain(names).collect(), exact }
    }

    fn are_in(&self, globs: &[Option<Glob>]) -> bool {
        globs.iter().flatten().any(|glob| self.all.iter().any(|text| glob.is_match(text.as_bytes())))
    }

    fn are_exactly(&self, paths: &[String]) -> bool {
        paths.iter().any(|path| self.exact.contains(path))
    }
}

pub fn compile(glob: &str) -> Option<Glob> {
    Glob::new(glob, Dialect { no_hidden: true, lenient: true, ignore_case: false }).ok()
}

/// Returns the relative path from `base` to `path`. Both are absolute.
pub fn relative(base: &Path, path: &Path) -> PathBuf {
    let (mut from, mut to) = (base.components().peekable(), path.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let up = from.map(|_| Component::ParentDir);
    up.chain(to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_choose_in_order() {
        let base = Path::new("/h/.pi/agent");
        let skill = |name: &str| base.join("skills").join(name).join("SKILL.md");
        let check = |entries: &[&str], expected: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
            let rules = Choice::new(&entries, Plain::Globs, Some(Path::new("/h")));
            let mut allowed = ["a", "b", "c"].to_vec();
            allowed.retain(|name| rules.allow(&skill(name), base));
            assert_eq!(allowed, expected, "{entries:?}");
        };
        check(&[], &["a", "b", "c"]);
        check(&["!a"], &["b", "c"]);
        check(&["!skills/*"], &[]);
        check(&["!*", "+skills/b"], &["b"]);
        check(&["!**", "+./skills/b/SKILL.md"], &["b"]);
        check(&["!*", "+b"], &[]);
        check(&["+skills/a", "-skills/a"], &["b", "c"]);
        check(&["-/h/.pi/agent/skills/c"], &["a", "b"]);
        check(&["-~/.pi/agent/skills/c"], &["a", "b"]);
        check(&["!~/.pi/agent/skills/*", "+~/.pi/agent/skills/b"], &["b"]);
        check(&["skills/[ab]*"], &["a", "b"]);
        check(&["skills/?", "!c"], &["a", "b"]);
        check(&["x*"], &[]);
        check(&["*[z-a]"], &[]);
    }

    #[test]
    fn relative_paths() {
        let rows = [("/a/b", "/a/b/c", "c"), ("/a/b", "/a/c/d", "../c/d"), ("/a", "/a", "")];
        for (base, path, expected) in rows {
            assert_eq!(relative(Path::new(base), Path::new(path)), Path::new(expected));
        }
    }
}
