//! Globs as models and people write them, for choosing files. Ignore files have a dialect of their own.
//!
//! `*` and `?` stay within a name, `**` crosses folders, `[a-z]` and `[!a-z]` are sets, `{a,b}` is a
//! choice, `\` takes the next character as it stands. A glob becomes a regular expression, so matching
//! takes linear time whatever the glob.

use regex::bytes::{Regex, RegexBuilder};
use std::fmt::Write;

/// Longer globs are a mistake.
const MAX_CHARS: usize = 4096;

#[derive(Clone, Debug)]
pub struct Glob(Regex);

impl Glob {
    /// An error says what is wrong with the glob.
    pub fn new(glob: &str, ignore_case: bool) -> Result<Self, String> {
        let fail = |why: &str| format!("Invalid glob '{glob}': {why}");
        if glob.len() > MAX_CHARS {
            return Err(format!("The glob is longer than {MAX_CHARS} bytes."));
        }
        let regex = translate(glob).map_err(fail)?;
        RegexBuilder::new(&regex).case_insensitive(ignore_case).build().map(Self).map_err(|error| match error
        {
            regex::Error::CompiledTooBig(_) => fail("it is too large"),
            _ => fail("a range in [] runs backwards, or braces are nested too deeply"),
        })
    }

    pub fn is_match(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

fn translate(glob: &str) -> Result<String, &'static str> {
    // Names need not be UTF-8: what `*` takes is bytes.
    const NAME: &str = "(?-u:[^/])*";
    let chars: Vec<char> = glob.chars().collect();
    let mut out = String::from(r"\A(?:");
    let mut braces = 0;
    let mut at = 0;
    while let Some(&char) = chars.get(at) {
        at += 1;
        match char {
            '*' => {
                let first = at - 1;
                while chars.get(at) == Some(&'*') {
                    at += 1;
                }
                let starts = first == 0 || matches!(chars[first - 1], '/' | '{' | ',');
                match chars.get(at) {
                    Some('/') if starts && at > first + 1 => {
                        out.push_str("(?s-u:.*/)?");
                        at += 1;
                    }
                    None | Some('}' | ',') if starts && at > first + 1 => {
                        out.push_str("(?s-u:.*)");
                    }
                    _ => out.push_str(NAME),
                }
            }
            '?' => out.push_str("[^/]"),
            '[' => at = set(&chars, at, &mut out)?,
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '\\' => {
                literal(*chars.get(at).ok_or(r"it ends in '\'")?, &mut out);
                at += 1;
            }
            _ => literal(char, &mut out),
        }
    }
    if braces > 0 {
        return Err("a '{' is not closed");
    }
    out.push_str(r")\z");
    Ok(out)
}

/// Translates the set whose `[` lies before `at`, and gives the place after its `]`.
fn set(chars: &[char], mut at: usize, out: &mut String) -> Result<usize, &'static str> {
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
    out.push_str("[[");
    if matches!(chars.get(at), Some('!' | '^')) {
        out.push('^');
        at += 1;
    }
    let first = at;
    while at == first || chars.get(at) != Some(&']') {
        literal(next(&mut at)?, out);
        if chars.get(at) == Some(&'-') && !matches!(chars.get(at + 1), None | Some(']')) {
            at += 1;
            out.push('-');
            literal(next(&mut at)?, out);
        }
    }
    out.push_str("]&&[^/]]");
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
        let glob = Glob::new(glob, false).unwrap();
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
        let glob = Glob::new("a*.c", false).unwrap();
        assert!(glob.is_match(b"a\xff.c"));
    }

    #[test]
    fn case_can_be_ignored() {
        let glob = Glob::new("readme*", true).unwrap();
        assert!(glob.is_match(b"README.md"));
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
            let error = Glob::new(glob, false).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Glob::new(&"{".repeat(2000), false).is_err());
        assert!(Glob::new(&"a".repeat(5000), false).is_err());
        assert!(Glob::new(&format!("{}{}", "{".repeat(2000), "}".repeat(2000)), false).is_err());
    }

    proptest! {
        #[test]
        fn no_glob_panics(glob in r"[\[\]\\{},*?!^/a-c&~.-]{0,12}") {
            if let Ok(glob) = Glob::new(&glob, false) {
                glob.is_match(b"a/b.c");
            }
        }

        #[test]
        fn an_escaped_name_matches_itself(name in "[^/]{1,12}") {
            let escaped: String = name.chars().flat_map(|char| ['\\', char]).collect();
            prop_assert!(Glob::new(&escaped, false).unwrap().is_match(name.as_bytes()));
        }
    }
}
