//! Rules of a resource list in the settings: globs, `!` before an excluded glob, `+` and `-` before a path.
//!
//! A wildcard at the start of a name does not match a dot.

use super::place::MANIFEST;
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

/// True if an entry of a list is the path of a file or folder rather than a rule.
pub fn is_path(entry: &str) -> bool {
    !entry.starts_with(['!', '+', '-']) && !entry.contains(['*', '?'])
}

impl Choice {
    /// Parses the rules. `~/` after a sign stands for the folder `home`. Globs without a sign include files
    /// if `with_globs` is set, and are ignored otherwise.
    pub fn new(entries: &[String], with_globs: bool, home: Option<&Path>) -> Self {
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
            } else if with_globs && !is_path(entry) {
                rules.includes.push(compile(entry));
            }
        }
        rules
    }

    /// True if `file` is to be used. Relative rules begin at `base`. For a `SKILL.md`, rules may also name
    /// its folder.
    pub fn allow(&self, file: &Path, base: &Path) -> bool {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = |path: &Path| path.file_name().map(|name| text(Path::new(name)));
        let folder = file.parent().filter(|_| file.ends_with("SKILL.md") || file.ends_with(MANIFEST));
        let exact: Vec<String> = std::iter::once(file)
            .chain(folder)
            .flat_map(|path| [text(&relative(base, path)), text(path)])
            .collect();
        let names = std::iter::once(file).chain(folder).filter_map(name);
        let all: Vec<String> = exact.iter().cloned().chain(names).collect();
        let globbed = |globs: &[Option<Glob>]| {
            globs.iter().flatten().any(|glob| all.iter().any(|text| glob.is_match(text.as_bytes())))
        };
        let named = |paths: &[String]| paths.iter().any(|path| exact.contains(path));
        let chosen = self.includes.is_empty() || globbed(&self.includes);
        let chosen = chosen && !globbed(&self.excludes);
        (chosen || named(&self.kept)) && !named(&self.dropped)
    }
}

fn compile(glob: &str) -> Option<Glob> {
    Glob::new(glob, Dialect { no_hidden: true, lenient: true, ignore_case: false }).ok()
}

/// Returns the relative path from `base` to `path`. Both are absolute.
fn relative(base: &Path, path: &Path) -> PathBuf {
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
            let rules = Choice::new(&entries, true, Some(Path::new("/h")));
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
