//! A line of styled text, ready for a row of the terminal.
//!
//! A line holds no control characters: they are dropped on input, and a tab becomes spaces. So untrusted text
//! cannot control the terminal. Invisible characters are shown as `�` (see [`visible`]).

use super::style::{Attributes, Depth, Style};
use super::width::{self, clusters};
use crate::base::visible;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Columns between tab stops.
const TAB: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    /// Runs of text in one style, by their ends; the last ends with the text.
    runs: Vec<Run>,
    width: usize,
    /// The cell on which to place the terminal's cursor.
    pub cursor: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    end: usize,
    style: Style,
    link: Option<Arc<str>>,
}

/// A run of a line in one style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    pub text: &'a str,
    pub style: Style,
    pub link: Option<&'a Arc<str>>,
}

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn of(text: &str, style: Style) -> Self {
        let mut line = Self::new();
        line.push(text, style);
        line
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Width in cells.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds text, without control characters and line ends.
    pub fn push(&mut self, text: &str, style: Style) {
        self.push_link(text, style, None);
    }

    /// Adds text with a link, for terminals that support links.
    pub fn push_link(&mut self, text: &str, style: Style, link: Option<&Arc<str>>) {
        let start = self.text.len();
        let shown = visible::shown(text);
        let mut parts = shown.split(is_control);
        let mut rest = &*shown;
        if let Some(first) = parts.next() {
            self.text.push_str(first);
            self.width += width::width(first);
            rest = rest.get(first.len()..).unwrap_or_default();
        }
        for part in parts {
            if rest.starts_with('\t') {
                let spaces = TAB - self.width % TAB;
                self.text.extend(std::iter::repeat_n(' ', spaces));
                self.width += spaces;
            }
            self.text.push_str(part);
            self.width += width::width(part);
            let control = rest.chars().next().map_or(0, char::len_utf8);
            rest = rest.get(control + part.len()..).unwrap_or_default();
        }
        if self.text.len() > start {
            self.extend_runs(style, link);
        }
    }

    /// Adds another line at the end, with its cursor.
    pub fn append(&mut self, other: &Self) {
        if let Some(cursor) = other.cursor {
            self.cursor = Some(self.width + cursor);
        }
        for span in other.spans() {
            self.text.push_str(span.text);
            self.extend_runs(span.style, span.link);
        }
        self.width += other.width;
    }

    fn extend_runs(&mut self, style: Style, link: Option<&Arc<str>>) {
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.style == style && last.link.as_ref() == link => last.end = end,
            _ => self.runs.push(Run { end, style, link: link.cloned() }),
        }
    }

    /// Adds spaces up to a width of `cells`.
    pub fn pad_to(&mut self, cells: usize, style: Style) {
        let missing = cells.saturating_sub(self.width);
        if missing > 0 {
            self.text.extend(std::iter::repeat_n(' ', missing));
            self.width += missing;
            self.extend_runs(style, None);
        }
    }

    /// Applies `below` under the whole line: its colours show where none are set.
    pub fn over(&mut self, below: Style) {
        for run in &mut self.runs {
            run.style = run.style.over(below);
        }
    }

    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        let mut start = 0;
        self.runs.iter().map(move |run| {
            let range = std::mem::replace(&mut start, run.end)..run.end;
            Span { text: self.text.get(range).unwrap_or_default(), style: run.style, link: run.link.as_ref() }
        })
    }

    /// The part between two byte offsets at character boundaries, without the cursor.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let first = self.runs.partition_point(|run| run.end <= range.start);
        let mut runs = Vec::new();
        for run in self.runs.get(first..).unwrap_or_default() {
            let end = run.end.min(range.end) - range.start.min(run.end);
            runs.push(Run { end, ..run.clone() });
            if run.end >= range.end {
                break;
            }
        }
        if text.is_empty() {
            runs.clear();
        }
        Self { text: text.to_owned(), runs, width: width::width(text), cursor: None }
    }

    /// The line with the part between two byte offsets inverted.
    pub fn inverted(self, range: Range<usize>) -> Self {
        if range.is_empty() {
            return self;
        }
        let mut out = self.slice(0..range.start);
        for span in self.slice(range.clone()).spans() {
            out.push_link(span.text, span.style.with(Attributes::INVERSE), span.link);
        }
        out.append(&self.slice(range.end..self.text.len()));
        out.cursor = self.cursor;
        out
    }

    /// The beginning that fits into `cells`; if cut, the last cell is `…`.
    pub fn cut(&self, cells: usize) -> Self {
        if self.width <= cells {
            return self.clone();
        }
        let (part, _) = width::fit(&self.text, cells.saturating_sub(1));
        let mut line = self.slice(0..part.len());
        if cells > 0 {
            let style = self.runs.get(line.runs.len().saturating_sub(1));
            line.push("…", style.map_or(Style::PLAIN, |run| run.style));
        }
        line.cursor = self.cursor.filter(|&cursor| cursor < cells);
        line
    }

    /// Writes the line with escape sequences; styles and links are closed at its end.
    pub fn write(&self, depth: Depth, hyperlinks: bool, out: &mut String) {
        let mut style = Style::PLAIN;
        for span in self.spans() {
            if span.style != style {
                span.style.write(depth, out);
                style = span.style;
            }
            match span.link.filter(|_| hyperlinks) {
                Some(link) => {
                    let _ = write!(out, "\x1b]8;;{link}\x1b\\{}\x1b]8;;\x1b\\", span.text);
                }
                None => out.push_str(span.text),
            }
        }
        if style != Style::PLAIN {
            out.push_str("\x1b[0m");
        }
    }

    /// The byte of the text at which cell `cell` begins.
    pub fn byte_at(&self, cell: usize) -> usize {
        let mut at = 0;
        for (start, _, width) in clusters(&self.text) {
            if at + width > cell {
                return start;
            }
            at += width;
        }
        self.text.len()
    }
}

/// True for control characters, including C1, which some terminals obey.
fn is_control(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// A link that is safe for a terminal: a web or file address without control characters.
pub fn link(address: &str) -> Option<Arc<str>> {
    const SCHEMES: [&str; 4] = ["https://", "http://", "file://", "mailto:"];
    let is_safe = SCHEMES.iter().any(|scheme| address.starts_with(scheme))
        && address.chars().all(|letter| !is_control(letter) && letter != ' ')
        && visible::shown(address) == address;
    is_safe.then(|| address.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::style::{Attributes, Color};
    use proptest::prelude::*;

    const RED: Style = Style { foreground: Color::Indexed(1), ..Style::PLAIN };

    fn sent(line: &Line) -> String {
        let mut out = String::new();
        line.write(Depth::True, true, &mut out);
        out
    }

    #[test]
    fn nothing_that_drives_a_terminal_comes_in() {
        for (text, expected) in [
            ("a\x1b[31mb", "a[31mb"),
            ("a\nb\r\n", "ab"),
            ("a\u{9b}31mb", "a31mb"),
            ("\x07\x08\x7f", ""),
            ("a\tb\t", "a   b   "),
            ("\t\tx", "        x"),
            ("a\u{2028}b", "ab"),
            ("a\u{202e}b\u{2066}", "a�b�"),
        ] {
            let line = Line::of(text, Style::PLAIN);
            assert_eq!(line.text(), expected, "{text:?}");
            assert_eq!(line.width(), expected.chars().count());
        }
    }

    #[test]
    fn what_is_sent_leaves_nothing_open() {
        let mut line = Line::of("a", Style::PLAIN);
        line.push("b", RED);
        line.push("c", RED);
        line.push_link("d", Style::PLAIN, link("https://x.y/").as_ref());
        assert_eq!(sent(&line), "a\x1b[0;31mbc\x1b[0m\x1b]8;;https://x.y/\x1b\\d\x1b]8;;\x1b\\");
        assert_eq!(sent(&Line::of("b", RED)), "\x1b[0;31mb\x1b[0m");
        assert_eq!(sent(&Line::new()), "");
    }

    #[test]
    fn a_line_is_cut_at_its_width() {
        let mut line = Line::of("ab", RED);
        line.push("日本", Style::PLAIN.with(Attributes::BOLD));
        for (cells, expected) in
            [(6, "ab日本"), (5, "ab日…"), (4, "ab…"), (3, "ab…"), (2, "a…"), (1, "…"), (0, "")]
        {
            let cut = line.cut(cells);
            assert_eq!(cut.text(), expected);
            assert!(cut.width() <= cells);
        }
    }

    #[test]
    fn links_that_could_do_harm_are_none() {
        for bad in ["javascript:x", "https://a\x1b\\b", "https://a b", "https://a\u{202e}b", ""] {
            assert_eq!(link(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn slices_together_are_the_line(texts in prop::collection::vec(("\\PC{0,8}", 0u8..3), 0..6), at in 0usize..60) {
            let mut line = Line::new();
            for (text, color) in &texts {
                line.push(text, Style::foreground(Color::Indexed(*color)));
            }
            let mut middle = at.min(line.text().len());
            while !line.text().is_char_boundary(middle) { middle -= 1; }
            let mut joined = line.slice(0..middle);
            joined.append(&line.slice(middle..line.text().len()));
            prop_assert_eq!(joined.text(), line.text());
            prop_assert_eq!(joined.spans().collect::<Vec<_>>(), line.spans().collect::<Vec<_>>());
            for cells in 0..10 {
                prop_assert!(line.cut(cells).width() <= cells);
            }
        }
    }
}
