//! Compiles the pattern of a search, so that a match never spans lines.
//!
//! A file is searched as a whole, not line by line, which is several times faster. To allow this the pattern
//! is parsed, line breaks are removed from its classes (`\s`, `[^x]`), and anchors of the text become anchors
//! of a line. `$` also matches before the `\r\n` of a Windows line.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
};

/// Each use of a class such as `\w` takes kilobytes.
const MAX_PATTERN_BYTES: usize = 16 * 1024;
const MAX_CLASS_RANGES: usize = 100_000;
const MAX_PROGRAM_BYTES: usize = 16 << 20;
/// Cache limit for each thread.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// The error is a text for the model.
pub(super) fn compile(pattern: &str, literal: bool, ignore_case: bool) -> Result<Regex, String> {
    let regex = if literal {
        if pattern.contains('\n') {
            return Err(line_break());
        }
        regex::escape(pattern)
    } else {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "The pattern is longer than {MAX_PATTERN_BYTES} bytes. Search for a part of it."
            ));
        }
        let parsed = ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            .case_insensitive(ignore_case)
            .build()
            .parse(pattern)
            .map_err(|error| format!("{error}\nTo search for this very text, set literal."))?;
        let mut ranges = 0;
        within_line(parsed, &mut ranges)?.to_string()
    };
    RegexBuilder::new(&regex)
        .case_insensitive(literal && ignore_case)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .nest_limit(1000)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => too_large(),
            error => error.to_string(),
        })
}

fn line_break() -> String {
    "The pattern contains a line break, but lines are searched one by one. Search for one of its lines, and use context to see those around it.".to_owned()
}

fn too_large() -> String {
    "The pattern is too large. Use smaller counts of repetition, or [a-z] in place of \\w.".to_owned()
}

fn within_line(pattern: Hir, ranges: &mut usize) -> Result<Hir, String> {
    let mut all = |parts: Vec<Hir>| -> Result<Vec<Hir>, String> {
        let parts = parts.into_iter();
        parts.map(|part| within_line(part, ranges)).collect()
    };
    Ok(match pattern.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => return Err(line_break()),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(mut class) => {
            match &mut class {
                Class::Unicode(class) => {
                    let newline = ClassUnicodeRange::new('\n', '\n');
                    class.difference(&ClassUnicode::new([newline]));
                    *ranges += class.ranges().len();
                }
                Class::Bytes(class) => {
                    let newline = ClassBytesRange::new(b'\n', b'\n');
                    class.difference(&ClassBytes::new([newline]));
                    *ranges += class.ranges().len();
                }
            }
            if *ranges > MAX_CLASS_RANGES {
                return Err(too_large());
            }
            Hir::class(class)
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End | Look::EndLF) => {
            Hir::alternation(vec![Hir::look(Look::EndLF), Hir::look(Look::EndCRLF)])
        }
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => {
            let part = within_line((*repetition.sub).clone(), ranges)?;
            Hir::repetition(repetition.with(part))
        }
        HirKind::Capture(capture) => within_line(*capture.sub, ranges)?,
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the lines of a text that match: in the whole text, and each alone.
    #[track_caller]
    fn check(pattern: &str, text: &str, expected: &[&str]) {
        let regex = compile(pattern, false, false).unwrap();
        let lines = text.split_inclusive('\n');
        let alone: Vec<&str> = lines
            .map(|line| line.trim_end_matches('\n'))
            .filter(|line| regex.is_match(line.as_bytes()))
            .collect();
        assert_eq!(alone, expected);
        let mut found = Vec::new();
        for hit in regex.find_iter(text.as_bytes()) {
            let (start, end) = (hit.start(), hit.end());
            assert!(!text[start..end].contains('\n'), "{pattern} leaves its line");
            let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
            let line = text[from..].split('\n').next().unwrap();
            if from < text.len() && found.last() != Some(&(from, line)) {
                found.push((from, line));
            }
        }
        let found: Vec<&str> = found.into_iter().map(|(_, line)| line).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_match_stays_in_its_line() {
        check(r"a\s+b", "a\nb\na b\n", &["a b"]);
        check(r"a[^x]*b", "a\nb\na-b", &["a-b"]);
        check(r"(?s)a.*b", "a\nb\na-b", &["a-b"]);
        check(r"a\W*\D*b", "a\nb\na-b", &["a-b"]);
        check(r"(?-u:a[\x00-\x7f]*b)", "a\nb\nab", &["ab"]);
        check(r"[\n ]", "a\nb c", &["b c"]);
    }

    #[test]
    fn anchors_are_those_of_a_line() {
        check("^b$", "a\nb\nc", &["b"]);
        check(r"\Ab\z", "a\nb\nc", &["b"]);
        check("(?-m)^b$", "a\nb\nc", &["b"]);
        check("^$", "a\n\nb\n", &[""]);
        check("b$", "b\r\nb \r\nb", &["b\r", "b"]);
        check(r"\r$", "a\r\nb\n", &["a\r"]);
        check(r"\bfoo\b", "xfoo\nfoo\nfoox", &["foo"]);
    }

    #[test]
    fn case_and_letters_are_those_of_unicode() {
        check(r"(?i)é", "É\n", &["É"]);
        check(r"^\w+$", "naïve\na-b\n", &["naïve"]);
        assert!(compile("σ", false, true).unwrap().is_match("Σ".as_bytes()));
        assert!(compile("a.b", true, true).unwrap().is_match(b"A.B"));
        assert!(!compile("a.b", true, false).unwrap().is_match(b"axb"));
    }

    #[test]
    fn what_cannot_be_searched_is_refused_with_a_reason() {
        let error = |pattern: &str| compile(pattern, false, false).unwrap_err();
        assert_eq!(
            error("a("),
            "regex parse error:\n    a(\n     ^\nerror: unclosed group\nTo search for this very text, set literal."
        );
        assert!(error(r"(?=a)").contains("look-around"));
        for pattern in [r"a\nb", "a\nb", r"\x0A", r"[\n]", r"(a|b\r\n)*"] {
            assert_eq!(error(pattern), line_break());
        }
        assert_eq!(compile("a\nb", true, false).unwrap_err(), line_break());
        assert_eq!(error(r"(\w{1000}){1000}"), too_large());
        assert_eq!(error(&r"\w".repeat(5000)), too_large());
        assert!(error(&"a".repeat(20_000)).starts_with("The pattern is longer"));
        let nested = format!("{}{}", "(".repeat(5000), ")".repeat(5000));
        assert!(error(&nested).contains("nested"));
    }

    #[test]
    fn deep_patterns_are_no_danger() {
        let nested = format!("{}a{}", "(".repeat(100), ")*".repeat(100));
        assert!(compile(&nested, false, false).unwrap().is_match(b"a"));
        let nested = format!("{}a{}", "(b|".repeat(100), ")".repeat(100));
        assert!(compile(&nested, false, false).unwrap().is_match(b"a"));
    }
}
