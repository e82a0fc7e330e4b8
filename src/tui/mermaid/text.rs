//! Texts of diagrams.

use crate::tui::line::Line;
use crate::tui::style::Style;

/// Diagrams with more nodes, edges or messages are not drawn.
pub const PARTS_MAX: usize = 100;

/// The lines of a text, without quotes and escapes.
pub fn rows(text: &str) -> Vec<String> {
    let text = text.trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let bare = bare.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(bare);
    let mut text =
        bare.replace("<br/>", "\n").replace("<br>", "\n").replace("<br />", "\n").replace("\\n", "\n");
    for (escape, letter) in
        [("#quot;", "\""), ("#35;", "#"), ("#59;", ";"), ("#lt;", "<"), ("#gt;", ">"), ("#amp;", "&")]
    {
        text = text.replace(escape, letter);
    }
    text.split('\n').map(|row| Line::of(row.trim(), Style::PLAIN).text().to_owned()).collect()
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
