//! Recovers the user's text from the message that the model received.
//!
//! A session stores the model's side of a prompt: the full text of a skill, the content of attached files. An
//! editor shows the skill's name and links to the files instead. A prompt template cannot be recovered: its
//! text is shown.

use super::place::file_uri;
use crate::base::json::json;
use crate::runtime::CalledSkill;
use crate::runtime::plain_text;
use serde_json::Value;

/// Maximum characters of a title.
const TITLE_MAX: usize = 80;

const SKILL: &str = "<skill name=\"";
const FILE: &str = "<file name=\"";

#[derive(Debug, Default, PartialEq)]
pub struct Typed {
    pub text: String,
    pub files: Vec<Attached>,
}

/// A file whose content is part of the prompt.
#[derive(Debug, PartialEq)]
pub struct Attached {
    pub name: String,
    /// The selected lines, as `10-12`.
    lines: Option<String>,
}

impl Typed {
    pub fn of(text: &str) -> Self {
        let mut typed = Self::without_files(text);
        if let Some(call) = CalledSkill::parse(&typed.text) {
            typed.text = call.typed();
        }
        typed
    }

    /// Removes the first run of files from the text; other programs put files at the beginning.
    fn without_files(text: &str) -> Self {
        let start =
            if text.starts_with(FILE) { Some(0) } else { text.find("\n<file name=\"").map(|at| at + 1) };
        let (before, mut rest) = text.split_at(start.unwrap_or(text.len()));
        let mut files = Vec::new();
        while let Some((file, after)) = Attached::split_off(rest) {
            files.push(file);
            rest = after;
        }
        if files.is_empty() {
            return Self { text: text.to_owned(), files };
        }
        let before = before.strip_suffix('\n').unwrap_or(before);
        let gap = if before.is_empty() || rest.is_empty() { "" } else { "\n" };
        Self { text: [before, gap, rest].concat(), files }
    }
}

impl Attached {
    /// Splits `text` after the file at its start.
    fn split_off(text: &str) -> Option<(Self, &str)> {
        let (name, rest) = text.strip_prefix(FILE)?.split_once('"')?;
        let (part, rest) = rest.split_once('>')?;
        let lines = part.strip_prefix(" lines=\"").and_then(|lines| lines.split('"').next());
        let after = rest.match_indices("</file>").find_map(|(at, end)| {
            let after = rest.get(at + end.len()..)?;
            if after.is_empty() { Some(after) } else { after.strip_prefix('\n') }
        })?;
        Some((Self { name: name.into(), lines: lines.map(str::to_owned) }, after))
    }

    /// A link to the file, as a content block.
    pub fn link(&self) -> Value {
        let mut uri = if self.name.starts_with('/') { file_uri(&self.name) } else { self.name.clone() };
        if let Some(lines) = &self.lines {
            uri.push_str(&format!("#L{}", lines.replace('-', ":")));
        }
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        json!({"type": "resource_link", "uri": uri, "name": name})
    }
}

/// A title for a conversation that begins with `text`, which may be truncated.
pub fn title(text: &str) -> String {
    let typed = Typed::of(text);
    let line = typed.text.lines().find(|line| !line.trim().is_empty());
    let line = line.or(typed.files.first().map(|file| file.name.as_str())).unwrap_or_default();
    let named = |head: &str| line.strip_prefix(head)?.split('"').next();
    let line = match (named(SKILL), named(FILE)) {
        (Some(skill), _) => format!("/skill:{skill}"),
        (_, Some(file)) => file.to_owned(),
        _ => line.to_owned(),
    };
    one_line(&line)
}

/// `text` on one line, without control characters, and truncated.
pub fn one_line(text: &str) -> String {
    let plain = plain_text(text.as_bytes());
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKILL_TEXT: &str = "<skill name=\"go\" location=\"/s/SKILL.md\">\nSteps\n</skill>";

    #[test]
    fn skills_and_files_are_taken_back_to_what_was_typed() {
        let a = "<file name=\"/p/a b.rs\" lines=\"3-4\">\nfn a() {}\n</file>";
        let b = "<file name=\"/p/b.rs\">\n</file> no end\n</file>";
        let links = |typed: &Typed| -> Vec<String> {
            let uri = |file: &Attached| file.link()["uri"].as_str().unwrap().to_owned();
            typed.files.iter().map(uri).collect()
        };
        let (a_uri, b_uri) = ("file:///p/a%20b.rs#L3:4", "file:///p/b.rs");
        for (text, typed, files) in [
            ("Explain".to_owned(), "Explain", vec![]),
            (format!("Explain\n{a}\n{b}"), "Explain", vec![a_uri, b_uri]),
            (format!("{a}\n{b}\nExplain"), "Explain", vec![a_uri, b_uri]),
            (format!("Explain\n{b}\n\n[hint]"), "Explain\n\n[hint]", vec![b_uri]),
            (a.to_owned(), "", vec![a_uri]),
            (format!("{SKILL_TEXT}\n\nnow"), "/skill:go now", vec![]),
            (SKILL_TEXT.to_owned(), "/skill:go", vec![]),
            (format!("{SKILL_TEXT}\n{b}"), "/skill:go", vec![b_uri]),
            (format!("{SKILL_TEXT}\n\nnow\n{b}"), "/skill:go now", vec![b_uri]),
            ("x\n<file name=\"a\">\nno end".to_owned(), "x\n<file name=\"a\">\nno end", vec![]),
        ] {
            let found = Typed::of(&text);
            assert_eq!(
                (found.text.as_str(), links(&found)),
                (typed, files.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_title_is_one_short_line_of_what_was_typed() {
        let long = "word ".repeat(50);
        for (text, expected) in [
            ("  Fix\tthe \u{1b}[31mbug \nplease", "Fix the bug"),
            ("\n\nSecond line", "Second line"),
            (&format!("{SKILL_TEXT}\n\nnow"), "/skill:go now"),
            ("<skill name=\"go\" location=\"/s\">\nSteps that are cut", "/skill:go"),
            ("<file name=\"/a.rs\">\ncut", "/a.rs"),
            ("<file name=\"/a.rs\">\nx\n</file>", "/a.rs"),
            ("Explain\n<file name=\"/a.rs\">\ncut", "Explain"),
            ("", ""),
        ] {
            assert_eq!(title(text), expected, "{text:?}");
        }
        let cut = title(&long);
        assert!(cut.ends_with("word…") && cut.chars().count() <= TITLE_MAX + 1, "{cut}");
    }
}
