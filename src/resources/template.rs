//! Prompt templates: Markdown files whose text replaces a prompt `/name arguments`.

use super::place::{Kind, Places};
use super::source::Source;
use super::{Diagnostic, frontmatter, text_file};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub name: String,
    pub description: String,
    /// Describes the arguments, for completion.
    pub hint: Option<String>,
    pub content: String,
    pub source: Source,
}

/// Loads templates from `places`, unless `only_named` is set, and from the paths `named` on the command line.
pub fn load(places: &Places<'_>, only_named: bool, named: &[PathBuf]) -> (Vec<Template>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut sources = places.files(Kind::Prompts, only_named);
    for path in named {
        match places.named(Kind::Prompts, path) {
            Some(files) => sources.extend(files),
            None => diagnostics.push(Diagnostic {
                path: path.clone(),
                message: "Prompt template path does not exist".into(),
            }),
        }
    }
    let mut templates: Vec<Template> = Vec::new();
    let mut by_name: HashMap<String, PathBuf> = HashMap::new();
    let mut collisions = Vec::new();
    for source in sources {
        let path = source.path.clone();
        if by_name.values().any(|known| *known == path) {
            continue;
        }
        let template = match read(source) {
            Ok(Some(template)) => template,
            Ok(None) => continue,
            Err(message) => {
                diagnostics.push(Diagnostic { path, message });
                continue;
            }
        };
        if let Some(winner) = by_name.get(&template.name) {
            let message = format!("name \"/{}\" collision; {} is used", template.name, winner.display());
            collisions.push(Diagnostic { path, message });
            continue;
        }
        by_name.insert(template.name.clone(), path);
        templates.push(template);
    }
    diagnostics.extend(collisions);
    (templates, diagnostics)
}

/// Reads a template; `None` if the file is not Markdown.
fn read(source: Source) -> Result<Option<Template>, String> {
    const SHOWN: usize = 60;
    let file = source.path.file_name().unwrap_or_default().to_string_lossy();
    let Some(name) = file.strip_suffix(".md").map(str::to_owned) else {
        return Ok(None);
    };
    let document = frontmatter::parse(&text_file::read(&source.path, &source.bounds)?)
        .map_err(|error| error.to_string())?;
    let text_of = |name: &str| {
        let text = document.head.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let description = text_of("description").unwrap_or_else(|| {
        let first = document.body.lines().find(|line| !line.trim().is_empty());
        let first = first.unwrap_or_default();
        let cut: String = first.chars().take(SHOWN).collect();
        if cut.len() < first.len() { cut + "..." } else { cut }
    });
    Ok(Some(Template { name, description, hint: text_of("argument-hint"), content: document.body, source }))
}

impl Template {
    /// Returns the text with `arguments` filled in.
    pub fn fill(&self, arguments: &str) -> String {
        self.fill_words(&split(arguments))
    }

    /// Returns the text with the words filled in.
    pub fn fill_words(&self, words: &[String]) -> String {
        fill(&self.content, words)
    }

    /// The names of the words, and whether each must be given: `<this>` must, `[this]` need not. Empty if the hint does
    /// not name every word, or the text takes any number of words.
    pub fn parameters(&self) -> Vec<(&str, bool)> {
        parameters(&self.content, self.hint.as_deref().unwrap_or_default())
    }
}

fn parameters<'a>(content: &str, hint: &'a str) -> Vec<(&'a str, bool)> {
    const ALL: [&str; 4] = ["$@", "${@", "$ARGUMENTS", "${ARGUMENTS"];
    if !content.contains('$') || ALL.iter().any(|placeholder| content.contains(placeholder)) {
        return Vec::new();
    }
    let parameter = |word: &'a str| {
        let between = |start: char, end: char| word.strip_prefix(start)?.strip_suffix(end);
        let name = between('<', '>').map(|name| (name, true));
        name.or_else(|| between('[', ']').map(|name| (name, false))).filter(|(name, _)| !name.is_empty())
    };
    hint.split_whitespace().map(parameter).collect::<Option<_>>().unwrap_or_default()
}

/// True for JavaScript's white space.
pub fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Splits arguments at white space. A word may begin with text in single or double quotes, which may contain
/// blanks.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '"' | '\'').then(|| unquote(rest, first)).flatten();
        // An unclosed quote, or a quote inside a word, is text.
        let (mut word, after) = quoted.unwrap_or((String::new(), rest));
        let end = after.find(is_space).unwrap_or(after.len());
        word.push_str(after.get(..end).unwrap_or_default());
        words.push(word);
        rest = after.get(end..).unwrap_or_default().trim_start_matches(is_space);
    }
    words
}

/// Parses the quoted text at the beginning of `text`. Returns it with the rest; `None` if the quote is not
/// closed. A backslash before the quote character escapes it.
fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.next_if(|(_, next)| *next == quote).is_some() => word.push(quote),
            c if c == quote => return Some((word, text.get(at + 1..)?)),
            c => word.push(c),
        }
    }
    None
}

/// Replaces placeholders in one pass: inserted arguments are not expanded.
fn fill(content: &str, arguments: &[String]) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        match placeholder(after, arguments) {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Parses the placeholder at the beginning of `text`, which follows a dollar sign. Returns its value and the
/// rest.
fn placeholder<'a>(text: &'a str, arguments: &[String]) -> Option<(String, &'a str)> {
    let all = || arguments.join(" ");
    let nth = |number: usize| arguments.get(number.checked_sub(1)?);
    if let Some(rest) = text.strip_prefix("ARGUMENTS").or_else(|| text.strip_prefix('@')) {
        return Some((all(), rest));
    }
    if let Some((number, rest)) = digits(text) {
        return Some((nth(number).cloned().unwrap_or_default(), rest));
    }
    let text = text.strip_prefix('{')?;
    let named = text.strip_prefix("ARGUMENTS").or_else(|| text.strip_prefix('@'));
    let (value, rest) = match (named, digits(text)) {
        (Some(rest), _) => (all(), rest),
        (None, Some((number, rest))) => (nth(number).cloned().unwrap_or_default(), rest),
        (None, None) => return None,
    };
    if let Some(rest) = rest.strip_prefix(":-") {
        let (default, rest) = rest.split_once('}')?;
        let value = if value.is_empty() { default.to_owned() } else { value };
        return Some((value, rest));
    }
    // A range of arguments: from the given number on, at most that many.
    let (first, rest) = digits(text.strip_prefix("@:")?)?;
    let (count, rest) = match rest.strip_prefix(':').and_then(digits) {
        Some((count, rest)) => (count, rest),
        None => (usize::MAX, rest),
    };
    let rest = rest.strip_prefix('}')?;
    let part = arguments.iter().skip(first.saturating_sub(1)).take(count);
    let part: Vec<&str> = part.map(String::as_str).collect();
    Some((part.join(" "), rest))
}

/// Parses the number at the beginning of `text`; the largest number on overflow.
fn digits(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    (end > 0).then(|| (number.parse().unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;
    use crate::base::testing::TempDir;
    use proptest::prelude::*;

    #[test]
    fn arguments_fill_a_text() {
        let rows: &[(&str, &str, &str)] = &[
            ("$1 and $2", "a b", "a and b"),
            ("$1 and $2", "a", "a and "),
            ("$0|$10", "a", "|"),
            ("$@|$ARGUMENTS", "a 'b c'  d", "a b c d|a b c d"),
            ("${1:-x} ${2:-y z}", "a", "a y z"),
            ("${1:-}", "", ""),
            ("${@:-none} ${ARGUMENTS:-none}", "", "none none"),
            ("${@:-none}", "a b", "a b"),
            ("${@:2}|${@:2:1}|${@:0}|${@:9}|${@:2:0}", "a b c", "b c|b|a b c||"),
            ("${@:2:3}", "a b c d e", "b c d"),
            // Once: what was put in stays.
            ("$1 $2", "'$2' x", "$2 x"),
            ("${1:-$2}", "", "$2"),
            ("$$1", "a", "$a"),
            // Not of these forms.
            ("${1} ${x} $x $ ${@} ${@:x} ${1:-x", "a", "${1} ${x} $x $ ${@} ${@:x} ${1:-x"),
            ("${1:-\n}|", "", "\n|"),
            ("$1x$99999999999999999999999", "a", "ax"),
            ("é$1é", "ü", "éüé"),
            ("$ARGUMENTSx", "a", "ax"),
        ];
        for (content, arguments, expected) in rows {
            assert_eq!(fill(content, &split(arguments)), *expected, "{content} {arguments}");
        }
    }

    #[test]
    fn a_hint_names_the_words() {
        assert_eq!(parameters("$1 $2", "<file> [a|b]"), [("file", true), ("a|b", false)]);
        let unnamed = [
            ("$1", ""),
            ("$1", "<file> and more"),
            ("$1", "<a name> [x]"),
            ("$1", "<>"),
            ("1", "<file>"),
            ("$1 $@", "<file>"),
            ("${@:2}", "<file>"),
            ("${ARGUMENTS:-x}", "<file>"),
        ];
        for (content, hint) in unnamed {
            assert_eq!(parameters(content, hint), [], "{content} {hint}");
        }
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[]),
            (" a  b\t\nc ", &["a", "b", "c"]),
            ("\"a b\" 'c d'", &["a b", "c d"]),
            ("a\"b c\"d", &["a\"b", "c\"d"]),
            ("it's fine", &["it's", "fine"]),
            ("\"\" a ''", &["", "a", ""]),
            ("\"it's\"", &["it's"]),
            ("\"a b\"c d", &["a bc", "d"]),
            ("\"the \\\"fast\\\" path\" x", &["the \"fast\" path", "x"]),
            (r"'a\n' 'b\", &["a\\n", "'b\\"]),
            ("\"a b", &["\"a", "b"]),
            ("'\"a b\"", &["'\"a", "b\""]),
            ("é 'ü'", &["é", "ü"]),
            ("a\\ b", &["a\\", "b"]),
            ("a\u{a0}b", &["a", "b"]),
        ];
        for (text, words) in rows {
            assert_eq!(split(text), *words, "{text}");
        }
    }

    fn loaded(scratch: &TempDir, named: &[&str]) -> (Vec<Template>, Vec<String>) {
        let (agent, cwd) = (scratch.path().join("agent"), scratch.path().join("p"));
        let (mut settings, _) = Settings::load(&agent);
        settings.add_project(&cwd);
        let places = Places {
            agent: &agent,
            home: None,
            cwd: &cwd,
            settings: &settings,
            is_trusted: true,
            packages: &[],
            named_packages: &[],
        };
        let named: Vec<PathBuf> = named.iter().map(|name| scratch.path().join(name)).collect();
        let (templates, diagnostics) = load(&places, false, &named);
        let root = format!("{}/", scratch.path().display());
        let said = diagnostics.iter().map(|said| said.to_string().replace(&root, ""));
        (templates, said.collect())
    }

    #[test]
    fn files_become_templates() {
        let scratch = TempDir::create();
        scratch
            .write("agent/prompts/a.md", "---\ndescription: Does a\nargument-hint: \"[x]\"\n---\n\nDo $1\n");
        let long = "é".repeat(61);
        scratch.write("agent/prompts/b.md", format!("\n{long}\nmore\n"));
        scratch.write("agent/prompts/c.txt", "no");
        scratch.write("agent/prompts/sub/d.md", "no");
        scratch.write("agent/prompts/.e.md", "no");
        scratch.write("agent/prompts/f.md", "---\na: *x\n---\n");
        scratch.write("p/.pi/prompts/a.md", "project");
        scratch.write("p/.pi/settings.json", "{\"prompts\":[\"more\"]}");
        scratch.write("p/.pi/more/deep/g.md", "g");
        scratch.write("named/a.md", "named");
        scratch.write("h.md", "h");
        let (templates, said) = loaded(&scratch, &["named", "h.md", "nope"]);
        let names: Vec<&str> = templates.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["g", "a", "b", "h"]);
        assert_eq!(templates[1].content, "project");
        assert_eq!(templates[2].description, format!("{}...", "é".repeat(60)));
        assert_eq!(
            said,
            [
                "nope: Prompt template path does not exist",
                "agent/prompts/f.md: line 2: aliases (*) are not supported; put the value in quotes",
                "agent/prompts/a.md: name \"/a\" collision; p/.pi/prompts/a.md is used",
                "named/a.md: name \"/a\" collision; p/.pi/prompts/a.md is used",
            ]
        );
        std::fs::remove_dir_all(scratch.path().join("p/.pi")).unwrap();
        let (templates, _) = loaded(&scratch, &[]);
        let a = &templates[0];
        assert_eq!(
            (a.description.as_str(), a.hint.as_deref(), a.content.as_str()),
            ("Does a", Some("[x]"), "Do $1")
        );
    }

    proptest! {
        #[test]
        fn a_text_without_dollars_stays(text in "[^$]{0,40}", arguments in "\\PC{0,20}") {
            prop_assert_eq!(fill(&text, &split(&arguments)), text);
        }

        #[test]
        fn any_text_can_be_filled(text in "[$@{}:\\-0-9ARGUMENTSx é]{0,30}", arguments in "[ab\"' $@1]{0,20}") {
            fill(&text, &split(&arguments));
        }
    }
}
