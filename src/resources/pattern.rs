//! Rules that choose among files: those of a settings list (`!`, `+`, `-`), and ignore files.
//!
//! A glob knows `*` and `?` within a name, `**` across folders, `[a-z]`, `[!a-z]` and `{a,b}`. In
//! settings lists a wildcard does not stand for a dot at the beginning of a name.

use regex::Regex;
use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug)]
struct Glob(Option<Regex>);

impl Glob {
    /// One that makes no sense matches nothing.
    fn new(glob: &str, dots: bool) -> Self {
        Self(Regex::new(&translate(glob, dots)).ok())
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

fn translate(glob: &str, dots: bool) -> String {
    let first = if dots { "[^/]" } else { "[^/.]" };
    let mut out = String::from(r"\A(?s:");
    let mut chars = glob.chars().peekable();
    let (mut at_start, mut braces) = (true, 0u32);
    while let Some(c) = chars.next() {
        let starts = std::mem::replace(&mut at_start, c == '/');
        match c {
            '*' => {
                let mut stars = 1;
                while chars.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                let next = chars.peek().copied();
                if starts && stars > 1 && next == Some('/') {
                    chars.next();
                    out.push_str(&format!("(?:{first}[^/]*/)*"));
                    at_start = true;
                } else if starts && stars > 1 && next.is_none() {
                    out.push_str(&format!("(?:{first}[^/]*(?:/{first}[^/]*)*)?"));
                } else if starts && next.is_none_or(|c| c == '/') {
                    out.push_str(&format!("{first}[^/]*"));
                } else if starts {
                    out.push_str(&format!("(?:{first}[^/]*)?"));
                } else {
                    out.push_str("[^/]*");
                }
            }
            '?' if starts => out.push_str(first),
            '?' => out.push_str("[^/]"),
            '[' => {
                let rest: String = chars.clone().collect();
                let negated = rest.starts_with(['!', '^']);
                let members = rest.strip_prefix(['!', '^']).unwrap_or(&rest);
                // A bracket right at the beginning is a member.
                let end = members.char_indices().skip(1).find(|(_, c)| *c == ']');
                match end.and_then(|(end, _)| members.get(..end)) {
                    Some(members) => {
                        let taken = members.chars().count() + usize::from(negated) + 1;
                        chars.by_ref().take(taken).for_each(drop);
                        out.push_str(if negated { "[^/" } else { "[" });
                        for c in members.chars() {
                            if matches!(c, '[' | ']' | '\\' | '&' | '~' | '^') {
                                out.push('\\');
                            }
                            out.push(c);
                        }
                        out.push(']');
                    }
                    None => out.push_str(r"\["),
                }
            }
            '{' if chars.clone().any(|c| c == '}') => {
                braces += 1;
                at_start = starts;
                out.push_str("(?:");
            }
            ',' if braces > 0 => out.push('|'),
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            '\\' => out.push_str(&regex::escape(&chars.next().unwrap_or('\\').to_string())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.extend(std::iter::repeat_n(')', braces as usize));
    out.push_str(r")\z");
    out
}

/// What a list of the settings says about the files that were found.
#[derive(Debug, Default)]
pub struct Rules {
    includes: Vec<Glob>,
    excludes: Vec<Glob>,
    kept: Vec<String>,
    dropped: Vec<String>,
}

/// Whether an entry of a list names a file or folder, and is no rule.
pub fn is_path(entry: &str) -> bool {
    !entry.starts_with(['!', '+', '-']) && !entry.contains(['*', '?'])
}

impl Rules {
    /// `with_globs`: globs without a sign before them choose; else they count for nothing.
    pub fn new(entries: &[String], with_globs: bool) -> Self {
        let mut rules = Self::default();
        for entry in entries {
            let exact = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
            if let Some(glob) = entry.strip_prefix('!') {
                rules.excludes.push(Glob::new(glob, false));
            } else if let Some(path) = entry.strip_prefix('+') {
                rules.kept.push(exact(path));
            } else if let Some(path) = entry.strip_prefix('-') {
                rules.dropped.push(exact(path));
            } else if with_globs && !is_path(entry) {
                rules.includes.push(Glob::new(entry, false));
            }
        }
        rules
    }

    /// Whether `file` is to be used. Relative rules begin at `base`. A skill goes by its folder too.
    pub fn allow(&self, file: &Path, base: &Path) -> bool {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = |path: &Path| path.file_name().map(|name| text(Path::new(name)));
        let folder = file.parent().filter(|_| file.ends_with("SKILL.md"));
        let exact: Vec<String> = std::iter::once(file)
            .chain(folder)
            .flat_map(|path| [text(&relative(base, path)), text(path)])
            .collect();
        let names = std::iter::once(file).chain(folder).filter_map(name);
        let all: Vec<String> = exact.iter().cloned().chain(names).collect();
        let globbed = |globs: &[Glob]| globs.iter().any(|glob| all.iter().any(|text| glob.is_match(text)));
        let named = |paths: &[String]| paths.iter().any(|path| exact.contains(path));
        let chosen = self.includes.is_empty() || globbed(&self.includes);
        let chosen = chosen && !globbed(&self.excludes);
        (chosen || named(&self.kept)) && !named(&self.dropped)
    }
}

/// The way from `base` to `path`, both absolute.
fn relative(base: &Path, path: &Path) -> PathBuf {
    let (mut from, mut to) = (base.components().peekable(), path.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let up = from.map(|_| Component::ParentDir);
    up.chain(to).collect()
}

/// The lines of ignore files in a folder and those above it, up to where the search began.
#[derive(Clone, Debug, Default)]
pub struct Ignored(Vec<IgnoreRule>);

#[derive(Clone, Debug)]
struct IgnoreRule {
    glob: Glob,
    negated: bool,
    folders_only: bool,
    /// Counts for the last name of a path alone.
    by_name: bool,
}

impl Ignored {
    /// Adds the lines of a file in the folder `within`, relative to where the search began.
    pub fn add(&mut self, content: &str, within: &str) {
        for line in content.lines() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (negated, line) = match line.strip_prefix('!') {
                Some(line) => (true, line),
                None => {
                    (false, line.strip_prefix('\\').filter(|l| l.starts_with(['!', '#'])).unwrap_or(line))
                }
            };
            let folders_only = line.ends_with('/');
            let line = line.trim_end_matches('/');
            let by_name = within.is_empty() && !line.contains('/');
            let line = line.strip_prefix('/').unwrap_or(line);
            let prefix = if within.is_empty() { String::new() } else { format!("{within}/") };
            self.0.push(IgnoreRule {
                glob: Glob::new(&format!("{prefix}{line}"), true),
                negated,
                folders_only,
                by_name,
            });
        }
    }

    /// Whether `path`, relative to where the search began, is left out.
    pub fn leaves_out(&self, path: &str, is_folder: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let says = self.0.iter().rev().find(|rule| {
            (is_folder || !rule.folders_only) && rule.glob.is_match(if rule.by_name { name } else { path })
        });
        says.is_some_and(|rule| !rule.negated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs() {
        let rows: &[(&str, &str, bool)] = &[
            ("*.md", "a.md", true),
            ("*.md", "x/a.md", false),
            ("*.md", ".a.md", false),
            ("**/*.md", "a.md", true),
            ("**/*.md", "x/y/a.md", true),
            ("**/*.md", "x/.y/a.md", false),
            ("skills/**", "skills/a/SKILL.md", true),
            ("skills/*", "skills/a/SKILL.md", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[ab]c", "bc", true),
            ("[!ab]c", "bc", false),
            ("[!ab]c", "dc", true),
            ("[", "[", true),
            ("{a,b*}.md", "bcd.md", true),
            ("{a,b*}.md", "c.md", false),
            ("a.b", "axb", false),
            ("\\*", "*", true),
            ("A", "a", false),
        ];
        for (glob, text, expected) in rows {
            assert_eq!(Glob::new(glob, false).is_match(text), *expected, "{glob} {text}");
        }
        assert!(Glob::new("*", true).is_match(".a"));
    }

    #[test]
    fn rules_choose_in_order() {
        let base = Path::new("/h/.pi/agent");
        let skill = |name: &str| base.join("skills").join(name).join("SKILL.md");
        let check = |entries: &[&str], expected: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
            let rules = Rules::new(&entries, true);
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
        check(&["skills/[ab]*"], &["a", "b"]);
        check(&["skills/?", "!c"], &["a", "b"]);
        check(&["x*"], &[]);
    }

    #[test]
    fn relative_paths() {
        let rows = [("/a/b", "/a/b/c", "c"), ("/a/b", "/a/c/d", "../c/d"), ("/a", "/a", "")];
        for (base, path, expected) in rows {
            assert_eq!(relative(Path::new(base), Path::new(path)), Path::new(expected));
        }
    }

    #[test]
    fn ignore_files() {
        let mut ignored = Ignored::default();
        ignored.add("# no\n\n*.tmp\n/top\nsub/x\nbuild/\n!keep.tmp\n\\#odd\n", "");
        ignored.add("local\n", "deep");
        let rows = [
            ("a.tmp", false, true),
            ("d/a.tmp", false, true),
            ("keep.tmp", false, false),
            ("top", true, true),
            ("d/top", true, false),
            ("sub/x", false, true),
            ("build", true, true),
            ("build", false, false),
            ("#odd", false, true),
            ("deep/local", false, true),
            ("local", false, false),
            ("other", true, false),
        ];
        for (path, is_folder, expected) in rows {
            assert_eq!(ignored.leaves_out(path, is_folder), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_glob_does_harm(glob in "[a*?\\[\\]{},!/.\\\\^-]{0,20}", text in "[a./-]{0,10}") {
            Glob::new(&glob, false).is_match(&text);
        }

        #[test]
        fn plain_names_match_themselves(name in "[a-zé0-9 .+$()|]{1,12}") {
            prop_assert!(Glob::new(&name, false).is_match(&name));
        }
    }
}
