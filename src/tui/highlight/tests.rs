//! Rows of code, each with a short form of its colours.

use super::*;
use proptest::prelude::*;

/// The coloured parts as `k:fn`, plain text left out.
fn shown(language: &str, text: &str) -> Vec<String> {
    let theme = Theme::dark();
    let mut highlighter = Highlighter::new(language);
    let mut found: Vec<(char, String)> = Vec::new();
    for line in text.split('\n') {
        let Some(known) = &highlighter.known else {
            return Vec::new();
        };
        let mut all = String::new();
        let mut paint = |part: &str, role| {
            all.push_str(part);
            let sign = match role {
                Role::SyntaxComment => 'c',
                Role::SyntaxKeyword => 'k',
                Role::SyntaxFunction => 'f',
                Role::SyntaxVariable => 'v',
                Role::SyntaxString => 's',
                Role::SyntaxNumber => 'n',
                Role::SyntaxType => 't',
                Role::ToolDiffAdded => '+',
                Role::ToolDiffRemoved => '-',
                Role::MdHeading => 'h',
                _ => return,
            };
            found.push((sign, part.to_owned()));
        };
        let mut scanner = Scanner { known, text: line, at: 0, open: highlighter.open, paint: &mut paint };
        scanner.line();
        let open = scanner.open;
        assert_eq!(all, line);
        highlighter.open = open;
    }
    let mut plain = Line::new();
    Highlighter::new(language).line("x", &theme, &mut plain);
    assert_eq!(plain.text(), "x");
    found.iter().map(|(sign, part)| format!("{sign}:{part}")).collect()
}

#[track_caller]
fn check(language: &str, text: &str, expected: &[&str]) {
    assert_eq!(shown(language, text), expected, "{language}: {text}");
}

#[test]
fn words_strings_numbers_and_comments() {
    check(
        "rust",
        "fn main<'a>(x: &'a Str) { println!(\"a\\\"b\"); 'x' '\\n' 0x1f 1..2 } // end",
        &[
            "k:fn",
            "t:'a",
            "t:'a",
            "t:Str",
            "f:println",
            "s:\"a\\\"b\"",
            "s:'x'",
            "s:'\\n'",
            "n:0x1f",
            "n:1",
            "n:2",
            "c:// end",
        ],
    );
    check("rs", "r#\"a\"b\"# r\"c\"", &["s:r#\"a\"b\"#", "s:r\"c\""]);
    check(
        "python",
        "def f(x): return None # no\n@dec",
        &["k:def", "f:f", "k:return", "n:None", "c:# no", "v:@dec"],
    );
    check(
        "bash",
        "if [ $# -gt 1 ]; then echo \"$x\" a#b # c",
        &["k:if", "v:$#", "n:1", "k:then", "k:echo", "s:\"$x\"", "c:# c"],
    );
    check("sql", "SELECT a FROM b -- c", &["k:SELECT", "k:FROM", "c:-- c"]);
    check("js", "let a = 1.5e-3 + `x", &["k:let", "n:1.5e-3", "s:`x"]);
    check("go", "type T struct { n int }", &["k:type", "t:T", "k:struct", "t:int"]);
    check("c", "#include <a.h>\nint x = 'a';", &["k:#include", "t:int", "s:'a'"]);
}

#[test]
fn data_and_markup() {
    check("json", r#"{"a": "b", "c": [1, true]}"#, &["v:\"a\"", "s:\"b\"", "v:\"c\"", "n:1", "n:true"]);
    check("yaml", "a-b: 'c' # d", &["v:a-b", "s:'c'", "c:# d"]);
    check("toml", "a = \"b\"", &["v:a", "s:\"b\""]);
    check("css", "a { color: #fff }", &["v:color"]);
    check(
        "html",
        "<a href=\"x\">b &amp; c</a><!-- d -->",
        &["k:a", "v: href", "s:\"x\"", "n:&amp;", "k:a", "c:<!--", "c: d -->"],
    );
    check("diff", "+a\n-b\n c", &["+:+a", "-:-b"]);
    check("md", "# a\n`b` c", &["h:# a", "s:`b`"]);
}

#[test]
fn what_is_open_goes_on_with_the_next_line() {
    check("c", "/* a\nb */ int", &["c:/*", "c: a", "c:b */", "t:int"]);
    check("rust", "/* /* a */\n*/ fn", &["c:/*", "c: /* a */", "c:*/", "k:fn"]);
    check("c", "/* /* a */ int", &["c:/*", "c: /* a */", "t:int"]);
    check("py", "\"\"\"a\nb\"\"\" in", &["s:\"\"\"a", "s:b\"\"\"", "k:in"]);
    check("c", "\"a\nint", &["s:\"a", "t:int"]);
    check("html", "<a\nb='c'>", &["k:a", "v:b", "s:'c'"]);
    check("rust", "r#\"a\nb\"# fn", &["s:r#\"a", "s:b\"#", "k:fn"]);
}

#[test]
fn a_language_that_is_not_known_is_plain() {
    for name in ["", "klingon", "rust,ignore"] {
        assert!(!Highlighter::new(name).is_known(), "{name:?}");
    }
    assert!(LANGUAGES.len() >= 25);
}

#[test]
fn names_are_those_of_one_language_only() {
    let mut names: Vec<&str> = LANGUAGES.iter().flat_map(|l| l.names.split(' ')).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for (path, name) in [("a/b.rs", "rs"), ("Makefile", "Makefile"), ("x\\y.PY", "PY")] {
        assert_eq!(of_path(path), name);
        assert!(Highlighter::new(name).is_known(), "{name}");
    }
}

proptest! {
    /// Highlighting keeps all characters, in any language.
    #[test]
    fn only_colours_are_added(
        language in 0..LANGUAGES.len(),
        text in "[a-c\"'`#/*<>&;=:$@r%{}\\[\\]\\-+!0.\\\\ é日\n]{0,60}",
    ) {
        let name = LANGUAGES[language].names.split(' ').next().unwrap();
        shown(name, &text);
    }
}
