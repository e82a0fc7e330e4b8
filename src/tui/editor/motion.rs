//! Movements of the cursor.

use super::buffer::Position;
use super::history::Direction;
use super::{Editor, Jump, unit};
use crate::tui::width::clusters;

impl Editor {
    fn line(&self) -> &str {
        self.buffer.line(self.cursor.line)
    }

    fn at(&self, byte: usize) -> Position {
        Position { byte, ..self.cursor }
    }

    /// The end of the previous line; in the first line the cursor's own position.
    fn line_before(&self) -> Position {
        match self.cursor.line.checked_sub(1) {
            Some(line) => Position { line, byte: self.buffer.line(line).len() },
            None => self.cursor,
        }
    }

    fn line_behind(&self) -> Position {
        match self.cursor.line + 1 {
            line if line < self.buffer.lines() => Position { line, byte: 0 },
            _ => self.cursor,
        }
    }

    pub(super) fn left(&self) -> Position {
        match self.cursor.byte {
            0 => self.line_before(),
            byte => self.at(unit::before(self.line(), byte, &self.pastes)),
        }
    }

    pub(super) fn right(&self) -> Position {
        match self.cursor.byte {
            byte if byte >= self.line().len() => self.line_behind(),
            byte => self.at(unit::behind(self.line(), byte, &self.pastes)),
        }
    }

    pub(super) fn word_left(&self) -> Position {
        match self.cursor.byte {
            0 => self.line_before(),
            byte => self.at(unit::word_before(self.line(), byte, &self.pastes)),
        }
    }

    pub(super) fn word_right(&self) -> Position {
        match self.cursor.byte {
            byte if byte >= self.line().len() => self.line_behind(),
            byte => self.at(unit::word_behind(self.line(), byte, &self.pastes)),
        }
    }

    pub(super) fn line_start(&self) -> Position {
        self.at(0)
    }

    pub(super) fn line_end(&self) -> Position {
        self.at(self.line().len())
    }

    /// The target of deleting to the start of the line; at the start, the end of the previous line.
    pub(super) fn to_line_start(&self) -> Position {
        match self.cursor.byte {
            0 => self.line_before(),
            _ => self.line_start(),
        }
    }

    pub(super) fn to_line_end(&self) -> Position {
        match self.cursor.byte {
            byte if byte >= self.line().len() => self.line_behind(),
            _ => self.line_end(),
        }
    }

    pub(super) fn go(&mut self, place: fn(&Self) -> Position) {
        self.settle();
        self.cursor = place(self);
    }

    pub(super) fn jump_to(&mut self, letter: char, jump: Jump) {
        let own = self.line();
        let found = match jump {
            Jump::Forward => {
                let from = unit::behind(own, self.cursor.byte, &self.pastes);
                let here = own.get(from..).and_then(|text| text.find(letter));
                here.map(|found| self.at(from + found)).or_else(|| {
                    (self.cursor.line + 1..self.buffer.lines()).find_map(|line| {
                        let byte = self.buffer.line(line).find(letter)?;
                        Some(Position { line, byte })
                    })
                })
            }
            Jump::Backward => {
                let here = own.get(..self.cursor.byte).and_then(|text| text.rfind(letter));
                here.map(|byte| self.at(byte)).or_else(|| {
                    (0..self.cursor.line).rev().find_map(|line| {
                        let byte = self.buffer.line(line).rfind(letter)?;
                        Some(Position { line, byte })
                    })
                })
            }
        };
        if let Some(place) = found {
            // Inside of a marker or a cluster: to its beginning.
            let line = self.buffer.line(place.line);
            let end = unit::snap(line, place.byte, &self.pastes);
            self.cursor = match end == place.byte {
                true => place,
                false => Position { byte: unit::before(line, end, &self.pastes), ..place },
            };
        }
    }

    /// The row of the cursor within its line, and the number of rows of the line.
    fn row(&mut self) -> (usize, usize) {
        let cells = self.view.cells();
        let rows = self.buffer.rows(self.cursor.line, cells, &self.pastes);
        let row = rows.partition_point(|row| row.start <= self.cursor.byte);
        (row.saturating_sub(1), rows.len())
    }

    pub(super) fn up(&mut self) {
        let (row, _) = self.row();
        if row > 0 || self.cursor.line > 0 {
            return self.by_rows(-1);
        }
        match self.is_empty() || self.recall.is_browsing() || self.cursor.byte == 0 {
            true => self.browse(Direction::Older, false),
            false => self.go(Self::line_start),
        }
    }

    pub(super) fn down(&mut self) {
        let (row, rows) = self.row();
        if row + 1 < rows || self.cursor.line + 1 < self.buffer.lines() {
            return self.by_rows(1);
        }
        match self.recall.is_browsing() {
            true => self.browse(Direction::Newer, false),
            false => self.go(Self::line_end),
        }
    }

    pub(super) fn page(&mut self, direction: Direction) {
        let rows = isize::try_from(self.view.rows()).unwrap_or(1);
        self.by_rows(match direction {
            Direction::Older => -rows,
            Direction::Newer => rows,
        });
    }

    /// Moves up or down by at most `rows` rows, keeping the column of the first such move.
    fn by_rows(&mut self, rows: isize) {
        let cells = self.view.cells();
        let (row, _) = self.row();
        let goal = match self.goal {
            Some(goal) => goal,
            None => self.cell(row),
        };
        self.settle();
        self.goal = Some(goal);

        let mut line = self.cursor.line;
        let mut count = self.buffer.rows(line, cells, &self.pastes).len();
        let mut row = row;
        for _ in 0..rows.unsigned_abs() {
            if rows < 0 {
                if row > 0 {
                    row -= 1;
                } else if line > 0 {
                    line -= 1;
                    count = self.buffer.rows(line, cells, &self.pastes).len();
                    row = count.saturating_sub(1);
                } else {
                    break;
                }
            } else if row + 1 < count {
                row += 1;
            } else if line + 1 < self.buffer.lines() {
                line += 1;
                count = self.buffer.rows(line, cells, &self.pastes).len();
                row = 0;
            } else {
                break;
            }
        }
        let found = self.buffer.rows(line, cells, &self.pastes).get(row).cloned();
        let Some(range) = found else { return };
        let text = self.buffer.line(line);
        let part = text.get(range.clone()).unwrap_or_default();
        // The end of a row that is not the last is where the next begins.
        let mut byte = if row + 1 == count { range.end } else { range.start };
        let mut cell = 0;
        for (start, _, width) in clusters(part) {
            if cell + width > goal {
                byte = range.start + start;
                break;
            }
            if row + 1 < count {
                byte = range.start + start;
            }
            cell += width;
        }
        // In a marker: to its beginning, or over it where that would be no move.
        let end = unit::snap(text, byte, &self.pastes);
        if end != byte {
            let start = unit::before(text, end, &self.pastes);
            let is_move = line != self.cursor.line || rows < 0 || start > self.cursor.byte;
            byte = if is_move { start } else { end };
        }
        self.cursor = Position { line, byte };
    }

    /// The column of the cursor in its row.
    pub(super) fn cell(&mut self, row: usize) -> usize {
        let cells = self.view.cells();
        let rows = self.buffer.rows(self.cursor.line, cells, &self.pastes);
        let start = rows.get(row).map_or(0, |row| row.start);
        let before = self.line().get(start..self.cursor.byte);
        before.map_or(0, crate::tui::width::width)
    }
}
