//! Markdown as lines for a width.
//!
//! No line is wider than the width, if that is at least two cells: a container (quote, list) whose marks
//! would leave too little room moves or omits them. [`Stream`] lays out growing text.

mod inline;
mod stream;
mod table;

pub use stream::Stream;

use super::highlight::Highlighter;
use super::line::Line;
use super::mermaid;
use super::style::{Attributes, Style};
use super::theme::{Role, Theme};
use super::wrap::wrap;
use crate::markdown::{self, Block, Item, List};
use std::ops::Range;

/// Minimum cells for the content of a container.
const CONTENT_MIN: usize = 6;
/// Maximum width of a rule.
const RULE_MAX: usize = 80;

/// How blocks are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub theme: &'a Theme,
    /// Width in cells.
    pub width: usize,
    /// True if the terminal supports links; otherwise addresses are written out.
    pub hyperlinks: bool,
    /// Text before each line of code.
    pub code_indent: &'a str,
    pub diagrams: Diagrams,
    /// Style of text without markup.
    pub base: Style,
    /// True if nothing is drawn with lines, such as for a screen reader.
    pub is_plain: bool,
}

/// An owned [`Look`], to know another one by.
#[derive(Clone, Debug)]
struct Layout {
    theme: Theme,
    width: usize,
    hyperlinks: bool,
    code_indent: String,
    diagrams: Diagrams,
    base: Style,
    is_plain: bool,
}

impl Layout {
    fn of(look: &Look<'_>) -> Self {
        let Look { theme, width, hyperlinks, code_indent, diagrams, base, is_plain } = *look;
        let (theme, code_indent) = (theme.clone(), code_indent.to_owned());
        Self { theme, width, hyperlinks, code_indent, diagrams, base, is_plain }
    }

    fn is_of(&self, look: &Look<'_>) -> bool {
        (self.width, self.base, self.diagrams) == (look.width, look.base, look.diagrams)
            && (self.hyperlinks, self.is_plain) == (look.hyperlinks, look.is_plain)
            && self.code_indent == look.code_indent
            && self.theme == *look.theme
    }
}

/// When Mermaid code is drawn instead of shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagrams {
    Off,
    /// Once it is complete.
    #[default]
    Final,
    /// While it arrives too, as far as it can be drawn.
    Streaming,
}

/// The lines of a whole text.
pub fn lines(text: &str, look: &Look<'_>) -> Vec<Line> {
    blocks(&markdown::parse(text), look, true)
}

/// Lays out blocks, with blank lines between them if `spaced`.
fn blocks(blocks: &[Block], look: &Look<'_>, spaced: bool) -> Vec<Line> {
    let mut out = Vec::new();
    for block in blocks {
        if spaced && !out.is_empty() {
            out.push(Line::new());
        }
        look.block(block, &mut out);
    }
    out
}

impl<'a> Look<'a> {
    fn style(&self, role: Role) -> Style {
        self.theme.style(role).over(self.base)
    }

    fn within(&self, width: usize) -> Self {
        Self { width, ..*self }
    }

    fn block(&self, block: &Block, out: &mut Vec<Line>) {
        match block {
            Block::Heading { level, text } => {
                let marks = match level {
                    1 => Attributes::BOLD | Attributes::UNDERLINE,
                    2 => Attributes::BOLD,
                    _ => Attributes::BOLD | Attributes::ITALIC,
                };
                let style = self.style(Role::MdHeading).with(marks);
                for part in inline::lines(text, self, style) {
                    out.extend(wrap(&part, self.width));
                }
            }
            Block::Paragraph(text) => {
                for line in inline::lines(text, self, self.base) {
                    out.extend(wrap(&line, self.width));
                }
            }
            Block::Code { language, text } => {
                if let Some(diagram) = self.diagram(language, text) {
                    return out.extend(diagram);
                }
                self.code(text, &mut Highlighter::new(language), out);
            }
            Block::Quote(inside) => self.quote(inside, out),
            Block::List(list) => self.items(list, 0..list.items.len(), out),
            Block::Table(table) => table::lines(table, self, out),
            Block::Rule => {
                let rule = if self.is_plain { "-" } else { "─" }.repeat(self.width.min(RULE_MAX));
                out.push(Line::of(&rule, self.style(Role::MdHr)));
            }
        }
    }

    /// True if code could be drawn as a diagram.
    fn is_diagram(&self, language: &str, text: &str) -> bool {
        self.diagrams != Diagrams::Off
            && language.split_whitespace().next() == Some("mermaid")
            && text.len() <= mermaid::BYTES_MAX
    }

    fn diagram(&self, language: &str, text: &str) -> Option<Vec<Line>> {
        let indent = self.indent();
        let room = self.width.saturating_sub(indent.width());
        let rows = Some(text).filter(|text| self.is_diagram(language, text));
        let rows = rows.and_then(|text| mermaid::draw(text, room, self.is_plain))?;
        let line = |row: String| {
            let mut line = indent.clone();
            line.push(&row, self.base);
            line
        };
        Some(rows.into_iter().map(line).collect())
    }

    /// The indent of code, if there is room for it.
    fn indent(&self) -> Line {
        let indent = Line::of(self.code_indent, self.base);
        if indent.width() + CONTENT_MIN > self.width { Line::new() } else { indent }
    }

    fn code(&self, text: &str, highlighter: &mut Highlighter, out: &mut Vec<Line>) {
        match text.is_empty() {
            true => out.push(Line::new()),
            false => self.code_lines(text, highlighter, out),
        }
    }

    fn code_lines(&self, text: &str, highlighter: &mut Highlighter, out: &mut Vec<Line>) {
        let indent = self.indent();
        for code in text.split('\n') {
            let mut line = Line::new();
            highlighter.line(code, self.theme, &mut line);
            line.over(self.base);
            for row in wrap(&line, self.width - indent.width().min(self.width)) {
                if row.is_empty() {
                    out.push(row);
                    continue;
                }
                let mut whole = indent.clone();
                whole.append(&row);
                out.push(whole);
            }
        }
    }

    fn quote(&self, inside: &[Block], out: &mut Vec<Line>) {
        let mark = if self.is_plain { "> " } else { "│ " };
        let mut border = Line::of(mark, self.style(Role::MdQuoteBorder));
        if border.width() + CONTENT_MIN > self.width {
            border = Line::new();
        }
        let look = Look {
            base: self.style(Role::MdQuote).with(Attributes::ITALIC),
            ..self.within(self.width - border.width())
        };
        let mut lines = blocks(inside, &look, true);
        if lines.is_empty() {
            lines.push(Line::new());
        }
        for line in lines {
            let mut whole = border.clone();
            whole.append(&line);
            out.push(whole);
        }
    }

    fn items(&self, list: &List, items: Range<usize>, out: &mut Vec<Line>) {
        let count = items.len();
        let mut gap =
            items.start.checked_sub(1).and_then(|last| list.items.get(last)).is_some_and(|item| item.gap);
        for (item, number) in list.items.iter().zip(0..).skip(items.start).take(count) {
            if std::mem::replace(&mut gap, item.gap) {
                out.push(Line::new());
            }
            let mut marker = match list.start {
                Some(start) => format!("{}. ", start.saturating_add(number)),
                None => "- ".to_owned(),
            };
            marker += match item.task {
                Some(true) => "[x] ",
                Some(false) => "[ ] ",
                None => "",
            };
            let marker = Line::of(&marker, self.style(Role::MdListBullet));
            self.item(item, marker, out);
        }
    }

    fn item(&self, item: &Item, marker: Line, out: &mut Vec<Line>) {
        let indent = marker.width();
        if indent + CONTENT_MIN > self.width {
            out.extend(wrap(&marker, self.width));
            return out.extend(blocks(&item.blocks, self, item.spaced));
        }
        let mut before = marker;
        for line in blocks(&item.blocks, &self.within(self.width - indent), item.spaced) {
            before.append(&line);
            out.push(before);
            before = Line::new();
            before.pad_to(indent, self.base);
        }
        if item.blocks.is_empty() {
            out.push(before);
        }
    }
}

#[cfg(test)]
mod tests;
