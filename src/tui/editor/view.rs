//! The visible rows of an editor.

use super::Editor;
use super::buffer::Position;
use crate::tui::line::Line;
use crate::tui::style::Style;
use std::cmp::Ordering;
use std::ops::Range;

/// The visible part of an editor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// At least one line; the cursor is in one of them.
    pub lines: Vec<Line>,
    /// Hidden rows above.
    pub above: usize,
    pub below: usize,
}

/// The part that was last drawn.
#[derive(Debug)]
pub(super) struct Window {
    width: usize,
    rows: usize,
    /// Index of the top row.
    top: usize,
    /// First visible column of a one-line editor.
    left: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { width: 80, rows: 5, top: 0, left: 0 }
    }
}

impl Window {
    /// Cells for text: the last column is kept for a cursor at the end of a row.
    pub(super) fn cells(&self) -> usize {
        self.width.saturating_sub(1).max(1)
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

impl Editor {
    /// The visible rows in `width` cells, at most `rows_max`, always including the cursor.
    pub fn render(&mut self, width: usize, rows_max: usize, text: Style, marker: Style) -> View {
        (self.view.width, self.view.rows) = (width.max(1), rows_max.max(1));
        if self.is_single {
            return self.render_single(text);
        }
        let cells = self.view.cells();
        let mut rows: Vec<(usize, Range<usize>)> = Vec::new();
        let mut cursor_row = 0;
        for line in 0..self.buffer.lines() {
            let own = self.buffer.rows(line, cells, &self.pastes);
            if line == self.cursor.line {
                let before = own.partition_point(|row| row.start <= self.cursor.byte);
                cursor_row = rows.len() + before.saturating_sub(1);
            }
            rows.extend(own.iter().map(|row| (line, row.clone())));
        }
        let shown = rows.len().min(self.view.rows);
        let top = self.view.top.min(rows.len() - shown);
        let top = top.clamp((cursor_row + 1).saturating_sub(shown), cursor_row);
        self.view.top = top;
        let lines = rows.iter().enumerate().skip(top).take(shown);
        let lines = lines.map(|(index, (line, range))| {
            let mut drawn = self.draw(*line, range, text, marker).cut(self.view.width);
            if index == cursor_row {
                // As it is drawn: some characters are shown as others.
                let before = self.draw(*line, &(range.start..self.cursor.byte), text, marker);
                let cell = before.width();
                drawn.cursor = Some(cell.min(self.view.width - 1));
            }
            drawn
        });
        View { lines: lines.collect(), above: top, below: rows.len() - top - shown }
    }

    fn draw(&self, line: usize, range: &Range<usize>, text: Style, marker: Style) -> Line {
        let row = self.draw_plain(line, range, text, marker);
        let Some(selected) = self.selection() else {
            return row;
        };
        // As it is drawn: some characters are shown as others.
        let byte = |place: Position| {
            let byte = match place.line.cmp(&line) {
                Ordering::Less => range.start,
                Ordering::Equal => place.byte.clamp(range.start, range.end),
                Ordering::Greater => range.end,
            };
            self.draw_plain(line, &(range.start..byte), text, marker).text().len()
        };
        row.inverted(byte(selected.start)..byte(selected.end))
    }

    fn draw_plain(&self, line: usize, range: &Range<usize>, text: Style, marker: Style) -> Line {
        let own = self.buffer.line(line);
        let mut drawn = Line::new();
        let mut at = range.start;
        let part = |range: Range<usize>| own.get(range).unwrap_or_default();
        for found in self.pastes.markers(own) {
            let found = found.start.max(at)..found.end.min(range.end);
            if found.is_empty() {
                continue;
            }
            drawn.push(part(at..found.start), text);
            drawn.push(part(found.clone()), marker);
            at = found.end;
        }
        drawn.push(part(at..range.end), text);
        drawn
    }

    /// The row of a one-line editor, scrolled sideways to show the cursor.
    fn render_single(&mut self, text: Style) -> View {
        let line = Line::of(self.buffer.line(0), text);
        let cell = self.cell_of(self.cursor);
        let room = self.view.cells();
        let left = self.view.left.clamp(cell.saturating_sub(room), cell);
        // No empty cells at the end while there is text before the beginning.
        let left = left.min((line.width() + 1).saturating_sub(self.view.width));
        let from = line.byte_at(left);
        // A character that is cut in two at the left is not shown.
        let hidden = line.text().get(..from).map_or(0, crate::tui::width::width);
        self.view.left = left;
        let mut shown = line.slice(from..line.text().len());
        let end = shown.byte_at(self.view.width);
        shown = shown.slice(0..end);
        shown.cursor = Some(cell.saturating_sub(hidden).min(self.view.width - 1));
        View { lines: vec![shown.cut(self.view.width)], above: 0, below: 0 }
    }

    fn cell_of(&self, place: Position) -> usize {
        let before = self.buffer.line(place.line).get(..place.byte);
        Line::of(before.unwrap_or_default(), Style::PLAIN).width()
    }
}
