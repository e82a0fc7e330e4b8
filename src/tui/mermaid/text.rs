//! Texts of diagrams.

use crate::markdown::entity;
use crate::tui::line::Line;
use crate::tui::style::Style;

/// Diagrams with more nodes, edges or messages are not drawn.
pub const PARTS_MAX: usize = 100;

/// Tags that only change how a text looks.
const TAGS: [&str; 16] = [
    "b", "i", "u", "s", "em", "strong", "small", "big", "code", "sub", "sup", "span", "p", "div", "center",
    "font",
];

/// The lines of a text of a flowchart or a state: there `\n` is a line end too.
pub fn label_rows(text: &str) -> Vec<String> {
    rows(&text.replace("\\n", "<br>"))
}

/// The lines of a text, without quotes, tags and escapes.
pub fn rows(text: &str) -> Vec<String> {
    let text = text.trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let bare = bare.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(bare);
    let untagged = without_tags(bare);
    let row = |row: &str| Line::of(unescaped(row).trim(), Style::PLAIN).text().to_owned();
    untagged.split('\n').map(row).collect()
}

/// The text with line ends for `<br>`, and without the tags that change its look.
fn without_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        let inside = tag.split_once('>').map(|(inside, _)| inside).unwrap_or_default();
        let name = inside.strip_prefix('/').unwrap_or(inside);
        let name = name.split([' ', '/']).next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "br" => out.push('\n'),
            name if TAGS.contains(&name) => {}
            _ => {
                out.push('<');
                rest = tag;
                continue;
            }
        }
        rest = tag.get(inside.len() + 1..).unwrap_or_default();
    }
    out + rest
}

/// The text with the characters that its escapes stand for: `&amp;`, `#quot;`, `#35;`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['&', '#']) {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        match escaped(escape) {
            Some((letter, len)) => {
                // A decoded line end parts words.
                out.push(if letter.is_control() { ' ' } else { letter });
                rest = escape.get(len..).unwrap_or_default();
            }
            None => {
                out.push_str(escape.get(..1).unwrap_or_default());
                rest = escape.get(1..).unwrap_or_default();
            }
        }
    }
    out + rest
}

/// The character of the escape with which a text begins, and the length of the escape.
fn escaped(text: &str) -> Option<(char, usize)> {
    let (name, _) = text.split_once(';')?;
    let number = |name: &str| entity(&format!("#{name}"));
    let letter = match name.strip_prefix('#') {
        Some(name) => number(name).or_else(|| entity(name)),
        None => entity(name.strip_prefix('&')?),
    };
    Some((letter?, name.len() + 1))
}

/// True if the semicolon at `at` ends an escape, and so no statement.
pub fn ends_escape(line: &str, at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let Some((mark, name)) = before.rfind(['&', '#']).map(|start| before.split_at(start).1.split_at(1))
    else {
        return false;
    };
    match mark {
        // All that looks like one, known or not.
        "#" if !before.ends_with("&#") => {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        "#" => entity(&format!("#{name}")).is_some(),
        _ => entity(name).is_some(),
    }
}

/// A text in one line.
pub fn row(text: &str) -> String {
    rows(text).join(" ")
}

/// Splits off the first word.
pub fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}
