//! The text of an editor: lines, and the rows that each takes at a width.
//!
//! Rows are cached per line and rebuilt only for changed lines, so that the cost of a key does not depend on
//! the length of the text.

use super::paste::Pastes;
use super::unit::{self, Unit};
use crate::tui::width::clusters;
use crate::tui::wrap::breaks_anywhere;
use std::ops::Range;

/// A position in the text: a line, and a byte offset at a character boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub byte: usize,
}

impl Position {
    /// The end of a text inserted at this position.
    pub fn after(self, text: &str) -> Self {
        match text.rsplit_once('\n') {
            Some((before, last)) => {
                Self { line: self.line + 1 + before.matches('\n').count(), byte: last.len() }
            }
            None => Self { line: self.line, byte: self.byte + text.len() },
        }
    }
}

#[derive(Debug)]
pub struct Buffer {
    /// The lines, at least one.
    lines: Vec<Paragraph>,
}

#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    /// Cached rows for a width in cells.
    rows: Option<(usize, Vec<Range<usize>>)>,
}

impl From<String> for Paragraph {
    fn from(text: String) -> Self {
        Self { text, rows: None }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { lines: vec![Paragraph::default()] }
    }
}

impl Buffer {
    pub fn line(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", |line| &line.text)
    }

    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.len() == 1 && self.line(0).is_empty()
    }

    pub fn end(&self) -> Position {
        let line = self.lines.len().saturating_sub(1);
        Position { line, byte: self.line(line).len() }
    }

    pub fn text(&self) -> String {
        self.slice(Position::default()..self.end())
    }

    pub fn slice(&self, range: Range<Position>) -> String {
        let mut text = String::new();
        for index in range.start.line..=range.end.line {
            let line = self.line(index);
            let from = if index == range.start.line {
                range.start.byte
            } else {
                text.push('\n');
                0
            };
            let to = if index == range.end.line { range.end.byte } else { line.len() };
            text.push_str(line.get(from..to).unwrap_or_default());
        }
        text
    }

    /// Replaces a range with `text`; returns the old text.
    pub fn replace(&mut self, range: Range<Position>, text: &str) -> String {
        let removed = self.slice(range.clone());
        let first = self.line(range.start.line);
        let before = first.get(..range.start.byte).unwrap_or(first);
        let last = self.line(range.end.line);
        let behind = last.get(range.end.byte..).unwrap_or_default().to_owned();
        let mut joined = String::with_capacity(before.len() + text.len());
        joined.push_str(before);
        let mut parts = text.split('\n');
        joined.push_str(parts.next().unwrap_or_default());
        let mut lines = vec![joined];
        lines.extend(parts.map(str::to_owned));
        if let Some(last) = lines.last_mut() {
            last.push_str(&behind);
        }
        let replaced = range.start.line..(range.end.line + 1).min(self.lines.len());
        self.lines.splice(replaced, lines.into_iter().map(Paragraph::from));
        removed
    }

    /// The rows of a line; together they are the whole line, including white space at breaks.
    pub fn rows(&mut self, line: usize, cells: usize, pastes: &Pastes) -> &[Range<usize>] {
        let Some(paragraph) = self.lines.get_mut(line) else {
            return &[];
        };
        let kept = paragraph.rows.take().filter(|(width, _)| *width == cells);
        let rows = kept.unwrap_or_else(|| (cells, rows(&paragraph.text, cells, pastes)));
        &paragraph.rows.insert(rows).1
    }
}

/// Splits a line into at least one row: after white space, between characters of scripts without spaces,
/// otherwise anywhere.
fn rows(text: &str, cells: usize, pastes: &Pastes) -> Vec<Range<usize>> {
    let cells = cells.max(1);
    let mut rows = Vec::new();
    let (mut start, mut width) = (0, 0);
    // Where a break would be good, and the cells before it.
    let mut chance: Option<(usize, usize)> = None;
    let mut may_break = false;
    for Unit { range, cells: own } in unit::units(text, pastes) {
        let piece = text.get(range.clone()).unwrap_or_default();
        let is_space = piece.chars().all(char::is_whitespace);
        if !is_space && range.start > start && (may_break || breaks_anywhere(piece)) {
            chance = Some((range.start, width));
        }
        may_break = is_space || breaks_anywhere(piece);
        if width + own > cells && range.start > start {
            match chance.take() {
                Some((at, before)) if at > start && width - before + own <= cells => {
                    rows.push(start..at);
                    (start, width) = (at, width - before);
                }
                _ => {
                    rows.push(start..range.start);
                    (start, width) = (range.start, 0);
                }
            }
        }
        if own <= cells {
            width += own;
            continue;
        }
        // A marker that is wider than the editor.
        for (at, _, own) in clusters(piece) {
            let at = range.start + at;
            if width + own > cells && at > start {
                rows.push(start..at);
                (start, width) = (at, 0);
            }
            width += own;
        }
    }
    rows.push(start..text.len());
    rows
}
