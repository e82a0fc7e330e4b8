//! Text selected with the mouse.
//!
//! A selection is kept by item, line and cell of the conversation, so that it stays where it is while the view
//! scrolls. It begins with a cell, a word or a line, by the number of clicks, and grows by as much.

use crate::mode::interactive::composer::DOUBLE;
use crate::mode::interactive::search::Field;
use crate::runtime::CancelToken;
use crate::tui::line::Line;
use crate::tui::width::clusters;
use std::collections::HashMap;
use std::time::Instant;

/// Item and line number.
pub type Row = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    row: Row,
    /// The first cell, and the one after the last.
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Selection {
    anchor: Part,
    head: Part,
    /// 1 for cells, 2 for words, 3 for lines.
    clicks: u8,
    pressed: Instant,
    /// The cell that was pressed.
    cell: (Row, usize),
    is_held: bool,
    /// False until something is selected, and once it was taken away.
    pub is_shown: bool,
}

impl Selection {
    /// A press on a cell; `last` is the selection before.
    pub fn press(last: Option<&Self>, row: Row, cell: usize, line: &Line, now: Instant) -> Self {
        let is_click = |last: &&Self| last.anchor == last.head && !(last.clicks == 1 && last.is_shown);
        let is_soon = |last: &&Self| now.saturating_duration_since(last.pressed) < DOUBLE;
        let again = last.filter(is_click).filter(is_soon).filter(|last| last.cell == (row, cell));
        let clicks = again.map_or(1, |last| last.clicks % 3 + 1);
        let part = Part::at(row, cell, line, clicks);
        let is_shown = clicks > 1 && part.from < part.to;
        Self { anchor: part, head: part, clicks, pressed: now, cell: (row, cell), is_held: true, is_shown }
    }

    /// Moves the end while the button is held.
    pub fn drag(&mut self, row: Row, cell: usize, line: &Line) {
        if self.is_held {
            self.head = Part::at(row, cell, line, self.clicks);
            self.is_shown |= self.cell != (row, cell);
        }
    }

    /// The button was released. True if there is something to copy.
    pub fn release(&mut self) -> bool {
        std::mem::take(&mut self.is_held) && self.is_shown
    }

    /// The selection where `place` has its items now; `None` if one of them is gone.
    pub fn moved(mut self, place: impl Fn(usize) -> Option<usize>) -> Option<Self> {
        for row in [&mut self.anchor.row, &mut self.head.row, &mut self.cell.0] {
            row.0 = place(row.0)?;
        }
        Some(self)
    }

    /// The first and the last row.
    pub fn rows(&self) -> (Row, Row) {
        (self.anchor.row.min(self.head.row), self.anchor.row.max(self.head.row))
    }

    /// True if it begins with the first cell of its row.
    pub fn is_from_margin(&self) -> bool {
        self.anchor.min(self.head).from == 0
    }

    /// The selected bytes of a line.
    fn bytes(&self, row: Row, line: &Line) -> std::ops::Range<usize> {
        let (first, last) = (self.anchor.min(self.head), self.anchor.max(self.head));
        let (start, end) = self.rows();
        if !self.is_shown || !(start..=end).contains(&row) {
            return 0..0;
        }
        let from = if row == first.row { first.from } else { 0 };
        let to = match row == end {
            // A word may reach further than what is selected after it.
            true if start == end => first.to.max(last.to),
            true => last.to,
            false => line.width(),
        };
        let from = line.byte_at(from);
        from..line.byte_at(to).max(from)
    }

    /// The selected text of a line.
    pub fn text<'a>(&self, row: Row, line: &'a Line) -> &'a str {
        line.text().get(self.bytes(row, line)).unwrap_or_default().trim_end()
    }

    /// The line with its selected part inverted.
    pub fn mark(&self, row: Row, line: Line) -> Line {
        let bytes = self.bytes(row, &line);
        line.inverted(bytes)
    }
}

/// A selection and what its text is read from, on another thread: it may be of any length.
pub struct Selected {
    pub selection: Selection,
    pub field: Field,
    pub is_busy: bool,
    /// Lines of items that are not final.
    pub open: HashMap<usize, Vec<Line>>,
    /// Cancelled when something else is selected.
    pub cancel: CancelToken,
}

impl Selected {
    /// The selected text; `None` if it is no longer wanted.
    pub fn text(mut self) -> Option<String> {
        let (first, last) = self.selection.rows();
        let look = self.field.look.look();
        let mut out: Vec<String> = Vec::new();
        for item in first.0..=last.0 {
            if self.cancel.is_cancelled() {
                return None;
            }
            let lines = self.open.remove(&item).unwrap_or_else(|| {
                let Field { conversation, control, .. } = &self.field;
                conversation.lines(item, control, &look, self.is_busy, &mut |_| None).0
            });
            let start = if item == first.0 { first.1 } else { 0 };
            let end = if item == last.0 { lines.len().min(last.1 + 1) } else { lines.len() };
            for (number, line) in lines.iter().enumerate().take(end).skip(start) {
                out.push(self.selection.text((item, number), line).to_owned());
            }
        }
        // Rows from their first cell on have the margin of messages.
        let margin = " ".repeat(look.pad);
        for row in out.iter_mut().skip(usize::from(!self.selection.is_from_margin())) {
            *row = row.strip_prefix(&margin).unwrap_or(row).to_owned();
        }
        Some(out.join("\n"))
    }
}

impl Part {
    fn at(row: Row, cell: usize, line: &Line, clicks: u8) -> Self {
        let mut parts = Vec::new();
        let mut at = 0;
        for (_, cluster, width) in clusters(line.text()) {
            parts.push((at, at + width, kind(cluster)));
            at += width;
        }
        let pressed = parts.iter().position(|(_, end, _)| cell < *end);
        let (from, to) = match (clicks, pressed.and_then(|index| Some((index, *parts.get(index)?)))) {
            (3, _) => (0, at),
            (_, None) => (cell.min(at), at),
            (2, Some((index, (_, _, kind)))) if kind != Kind::Sign => {
                let is_other = |part: &&(usize, usize, Kind)| part.2 != kind;
                let (before, after) = parts.split_at(index);
                let first = before.iter().rev().find(is_other).map_or(0, |part| part.1);
                (first, after.iter().find(is_other).map_or(at, |part| part.0))
            }
            (_, Some((_, (start, end, _)))) => (start, end),
        };
        Self { row, from, to }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Blank,
    Sign,
}

/// Paths and addresses are words.
fn kind(cluster: &str) -> Kind {
    match cluster.chars().next() {
        Some(letter) if letter.is_whitespace() => Kind::Blank,
        Some(letter) if letter.is_alphanumeric() || "_-./~:@%+#?&=".contains(letter) => Kind::Word,
        _ => Kind::Sign,
    }
}
