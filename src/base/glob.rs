//! Globs as models and people write them. Ignore files have a dialect of their own ([`super::ignore`]).
//!
//! `*` and `?` stay within a name, `**` crosses folders, `[a-z]` and `[!a-z]` are sets, `{a,b}` is a choice,
//! `\` quotes the next character. A glob becomes a regular expression, so matching takes linear time whatever
//! the glob.

use regex::bytes::{Regex, RegexBuilder};
use std::fmt::Write;

/// Longer globs are rejected.
const MAX_CHARS: usize = 4096;

/// Options in which the callers' glob syntaxes differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dialect {
    pub ignore_case: bool,
    /// True if a wildcard at the start of a name does not match a dot.
    pub no_hidden: bool,
    /// True if an unclosed `[` or `{`, and a final `\`, match themselves instead of being errors.
    pub lenient: bool,
}

#[derive(Clone, Debug)]
pub struct Glob(Regex);

impl Glob {
    /// Compiles a glob. The error describes what is invalid.
    pub fn new(glob: &str, dialect: Dialect) -> Result<Self, String> {
        let fail = |why: &str| format!("Invalid glob '{glob}': {why}");
        if glob.len() > MAX_CHARS {
            return Err(format!("The glob is longer than {MAX_CHARS} bytes."));
        }
        let regex = translate(glob, dialect).map_err(fail)?;
        let built = RegexBuilder::new(&regex).case_insensitive(dialect.ignore_case).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => fail("it is too large"),
            _ => fail("a range in [] runs backwards, or braces are nested too deeply"),
        })
    }

    pub fn is_match(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

/// True if `text` has a wildcard or a set.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn translate(glob: &str, dialect: Dialect) -> Result<String, &'static str> {
    // Names need not be UTF-8: what `*` takes is bytes.
    const ANY: &str = "(?-u:[^/])*";
    const SEEN: &str = "(?-u:[^/.])(?-u:[^/])*";
    let chars: Vec<char> = glob.chars().collect();
    let mut out = String::from(r"\A(?:");
    // For each open brace, whether it stands at the start of a name.
    let mut braces: Vec<bool> = Vec::new();
    let (mut at, mut starts_next) = (0, true);
    while let Some(&char) = chars.get(at) {
        at += 1;
        let starts = std::mem::replace(&mut starts_next, char == '/');
        let hides = starts && dialect.no_hidden;
        match char {
            '*' => {
                let first = at - 1;
                while chars.get(at) == Some(&'*') {
                    at += 1;
                }
                let deep = starts && at > first + 1;
                match chars.get(at) {
                    Some('/') if deep => {
                        match hides {
                            true => write!(out, "(?:{SEEN}/)*").unwrap_or_default(),
                            false => out.push_str("(?s-u:.*/)?"),
                        }
                        starts_next = true;
                        at += 1;
                    }
                    None | Some('}' | ',') if deep && hides => {
                        write!(out, "(?:{SEEN}(?:/{SEEN})*)?").unwrap_or_default();
                    }
                    None | Some('}' | ',') if deep => out.push_str("(?s-u:.*)"),
                    None | Some('/') if hides => out.push_str(SEEN),
                    _ if hides => write!(out, "(?:{SEEN})?").unwrap_or_default(),
                    _ => out.push_str(ANY),
                }
            }
            '?' if hides => out.push_str("[^/.]"),
            '?' => out.push_str("[^/]"),
            '[' => match set(&chars, at, &mut out) {
                Err(_) if dialect.lenient => literal('[', &mut out),
                after => at = after?,
            },
            '{' if dialect.lenient && !chars[at..].contains(&'}') => literal(char, &mut out),
            '{' => {
                braces.push(starts);
                starts_next = starts;
                out.push_str("(?:");
            }
            '}' if braces.pop().is_some() => out.push(')'),
            ',' if !braces.is_empty() => {
                starts_next = braces.last() == Some(&true);
                out.push('|');
            }
            '\\' => match chars.get(at) {
                Some(&escaped) => {
                    literal(escaped, &mut out);
                    at += 1;
                }
                None if dialect.lenient => literal(char, &mut out),
                None => return Err(r"it ends in '\'"),
            },
            _ => literal(char, &mut out),
        }
    }
    if !braces.is_empty() && !dialect.lenient {
        return Err("a '{' is not closed");
    }
    out.extend(braces.iter().map(|_| ')'));
    out.push_str(r")\z");
    Ok(out)
}

/// Translates the set whose `[` is before `at`, and returns the position after its `]`. On an error `all` is
/// unchanged.
fn set(chars: &[char], mut at: usize, all: &mut String) -> Result<usize, &'static str> {
    const OPEN: &str = "a '[' is not closed";
    let next = |at: &mut usize| -> Result<char, &'static str> {
        let char = *chars.get(*at).ok_or(OPEN)?;
        *at += 1;
        match char {
            '\\' => {
                let escaped = *chars.get(*at).ok_or(OPEN)?;
                *at += 1;
                Ok(escaped)
            }
            _ => Ok(char),
        }
    };
    let mut out = String::from("[[");
    if matches!(chars.get(at), Some('!' | '^')) {
        out.push('^');
        at += 1;
    }
    let first = at;
    while at == first || chars.get(at) != Some(&']') {
        literal(next(&mut at)?, &mut out);
        if chars.get(at) == Some(&'-') && !matches!(chars.get(at + 1), None | Some(']')) {
            at += 1;
            out.push('-');
            literal(next(&mut at)?, &mut out);
        }
    }
    all.push_str(&out);
    all.push_str("]&&[^/]]");
    Ok(at + 1)
}

fn literal(char: char, out: &mut String) {
    // Writing to a string does not fail.
    let _ = match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '/' | '_' => out.write_char(char),
        _ => write!(out, r"\x{{{:x}}}", u32::from(char)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks which of some paths a glob matches.
    #[track_caller]
    fn check(glob: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::new(glob, Dialect::default()).unwrap();
        for path in matching {
            assert!(glob.is_match(path.as_bytes()), "{path} matches");
        }
        for path in others {
            assert!(!glob.is_match(path.as_bytes()), "{path} does not match");
        }
    }

    #[test]
    fn a_star_stays_in_a_name() {
        check("*.ts", &["a.ts", ".ts", "é.ts"], &["a.tsx", "a/b.ts"]);
        check("a*b", &["ab", "axb"], &["a/b"]);
        check("src/*", &["src/a"], &["src", "src/a/b"]);
        check("a**b", &["ab", "axb"], &["a/b"]);
        check("?.c", &["a.c", "é.c"], &["ab.c", "/.c"]);
    }

    #[test]
    fn two_stars_cross_folders() {
        check("**", &["a", "a/b"], &[]);
        check("**/a", &["a", "x/a", "x/y/a"], &["xa", "a/x"]);
        check("src/**/*.ts", &["src/a.ts", "src/x/y/a.ts"], &["src.ts", "a.ts"]);
        check("src/**", &["src/a", "src/a/b"], &["src"]);
        check("{**/a,b}", &["a", "x/a", "b"], &["x/b"]);
    }

    #[test]
    fn sets_and_choices() {
        check("[a-c]x", &["ax", "cx"], &["dx", "x"]);
        check("[!a-c]x", &["dx"], &["ax", "/x"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a-]", &["-", "a"], &["b"]);
        check(r"[\]&&b]", &["]", "&", "b"], &["a"]);
        check("[[]", &["["], &["]"]);
        check("*.{ts,tsx}", &["a.ts", "a.tsx"], &["a.t", "a.{ts,tsx}"]);
        check("a{b,{c,d}e,}", &["ab", "ace", "ade", "a"], &["ac"]);
        check("a,b}", &["a,b}"], &["a"]);
    }

    #[test]
    fn special_characters_can_be_meant_as_they_stand() {
        check(r"\*\?\[\{", &["*?[{"], &["a"]);
        check("a.b+(c)|$^", &["a.b+(c)|$^"], &["aXb"]);
        check(" #~&-é\n", &[" #~&-é\n"], &[]);
    }

    #[test]
    fn names_need_not_be_utf8() {
        let glob = Glob::new("a*.c", Dialect::default()).unwrap();
        assert!(glob.is_match(b"a\xff.c"));
    }

    #[test]
    fn case_can_be_ignored() {
        let glob = Glob::new("readme*", Dialect { ignore_case: true, ..Dialect::default() }).unwrap();
        assert!(glob.is_match(b"README.md"));
    }

    #[test]
    fn a_wildcard_may_leave_hidden_names_alone() {
        let rows: &[(&str, &[&str], &[&str])] = &[
            ("*.md", &["a.md"], &["x/a.md", ".a.md"]),
            ("**/*.md", &["a.md", "x/y/a.md"], &["x/.y/a.md"]),
            ("skills/**", &["skills/a/SKILL.md"], &["skills/.a"]),
            ("skills/*", &["skills/a"], &["skills/a/SKILL.md", "skills/.a"]),
            ("?a", &["xa"], &[".a"]),
            ("{*a,b}", &["xa", "b"], &[".a"]),
            ("a{*b}", &["axb", "a.b"], &[]),
            ("a*", &["a.b"], &[]),
        ];
        for (glob, hits, misses) in rows {
            let compiled = Glob::new(glob, Dialect { no_hidden: true, ..Dialect::default() }).unwrap();
            assert!(hits.iter().all(|hit| compiled.is_match(hit.as_bytes())), "{glob}");
            assert!(!misses.iter().any(|miss| compiled.is_match(miss.as_bytes())), "{glob}");
        }
    }

    #[test]
    fn what_is_not_closed_may_stand_for_itself() {
        for (glob, text) in
            [("[", "["), ("a[b", "a[b"), ("a{b", "a{b"), ("a\\", "a\\"), ("{a,b", "{a,b"), ("{{a}", "a")]
        {
            let compiled = Glob::new(glob, Dialect { lenient: true, ..Dialect::default() }).unwrap();
            assert!(compiled.is_match(text.as_bytes()), "{glob}");
        }
    }

    #[test]
    fn a_hostile_glob_ends() {
        let dialect = Dialect { ignore_case: true, ..Dialect::default() };
        let glob = Glob::new(&"*a".repeat(2000), dialect).unwrap();
        assert!(!glob.is_match(format!("{}b", "a".repeat(4000)).as_bytes()));
    }

    #[test]
    fn mistakes_are_named() {
        for (glob, why) in [
            ("a[b", "a '[' is not closed"),
            ("[]", "a '[' is not closed"),
            ("a{b", "a '{' is not closed"),
            ("a\\", "it ends in '\\'"),
            ("[z-a]", "a range in [] runs backwards"),
        ] {
            let error = Glob::new(glob, Dialect::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Glob::new(&"{".repeat(2000), Dialect::default()).is_err());
        assert!(Glob::new(&"a".repeat(5000), Dialect::default()).is_err());
        assert!(Glob::new(&format!("{}{}", "{".repeat(2000), "}".repeat(2000)), Dialect::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_glob_panics(
            glob in r"[\[\]\\{},*?!^/a-c&~.-]{0,12}",
            no_hidden in any::<bool>(),
            lenient in any::<bool>(),
        ) {
            let dialect = Dialect { no_hidden, lenient, ignore_case: false };
            if let Ok(glob) = Glob::new(&glob, dialect) {
                glob.is_match(b"a/b.c");
            }
        }

        #[test]
        fn an_escaped_name_matches_itself(name in "[^/]{1,12}") {
            let escaped: String = name.chars().flat_map(|char| ['\\', char]).collect();
            prop_assert!(Glob::new(&escaped, Dialect::default()).unwrap().is_match(name.as_bytes()));
        }
    }
}
