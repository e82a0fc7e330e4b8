//! Tables, fitted to the width.
//!
//! Narrow columns keep their width, the others share the rest. Words stay whole if possible. If there are not
//! even a few cells for each column, rows are written as in the source.

use super::{Look, inline};
use crate::base::order::Order;
use crate::markdown::{Align, Inline, Table};
use crate::tui::line::Line;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::cell::RefCell;
use std::ops::Range;

/// Minimum width of a readable column, in cells.
const COLUMN_MIN: usize = 3;
/// Longer words are broken.
const WORD_MAX: usize = 30;

/// The lines of a cell before they are wrapped.
type Cell = Vec<Line>;

pub fn lines(table: &Table, look: &Look<'_>, out: &mut Vec<Line>) {
    Rows::new(table, look).lines(&table.align, &table.rows, usize::MAX, look, out);
}

/// The rows of a growing table.
#[derive(Clone, Debug)]
pub struct Rows {
    head: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    head_widths: Widths,
    widths: Widths,
    drawn: RefCell<Drawn>,
}

/// The lines of the last rows, as drawn last: most rows are no wider than those before them.
#[derive(Clone, Debug, Default)]
struct Drawn {
    form: Form,
    /// The rows; the head is drawn with the first.
    rows: Range<usize>,
    lines: Vec<Line>,
}

/// How a table is drawn; `None` if rows are written as in the source.
type Form = Option<Fitted>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fitted {
    /// Width of each column without border, in cells.
    widths: Vec<usize>,
    /// True if there are lines between the rows.
    is_divided: bool,
}

/// What the cells of each column need.
#[derive(Clone, Debug)]
struct Widths {
    /// Width without wrapped lines.
    natural: Vec<usize>,
    /// Width of the longest word.
    words: Vec<usize>,
    /// True if a cell has several lines.
    has_breaks: bool,
}

impl Rows {
    /// A table without its rows.
    pub fn new(table: &Table, look: &Look<'_>) -> Self {
        let columns = table.align.len();
        let head = cells(&table.head, columns, look, look.base.with(Attributes::BOLD));
        let mut head_widths = Widths::new(columns);
        head_widths.add(&head);
        Self { head, rows: Vec::new(), head_widths, widths: Widths::new(columns), drawn: RefCell::default() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn push(&mut self, row: &[Vec<Inline>], look: &Look<'_>) {
        let row = cells(row, self.head.len(), look, look.base);
        self.widths.add(&row);
        self.rows.push(row);
    }

    /// The last `limit` lines of the table, or slightly more, with the rows `more` at its end.
    pub fn lines(
        &self,
        align: &[Align],
        more: &[Vec<Vec<Inline>>],
        limit: usize,
        look: &Look<'_>,
        out: &mut Vec<Line>,
    ) {
        let more: Vec<_> = more.iter().map(|row| cells(row, self.head.len(), look, look.base)).collect();
        let mut widths = self.widths.clone();
        more.iter().for_each(|row| widths.add(row));
        let fitted = fitted(&self.head_widths, &widths, look.width).filter(|_| !look.is_plain);
        let form = fitted.map(|fitted| {
            // Lines between the rows only where it could be unclear what belongs together.
            let is_wrapped = widths.natural.iter().zip(&fitted).any(|(all, width)| all > width);
            Fitted { is_divided: widths.has_breaks || is_wrapped, widths: fitted }
        });
        let drawer = Drawer { align, form: form.as_ref(), look };
        let mut drawn = self.drawn.borrow_mut();
        let lacks_lines = drawn.rows.start > 0 && drawn.lines.len() < limit;
        if drawn.lines.is_empty() || drawn.form != form || lacks_lines {
            let first = self.rows.len().saturating_sub(limit);
            *drawn = Drawn { form: form.clone(), rows: first..first, lines: Vec::new() };
            if first == 0 {
                drawer.head(&self.head, &mut drawn.lines);
            }
        }
        for (at, row) in self.rows.iter().enumerate().skip(drawn.rows.end) {
            drawer.row(at, row, &mut drawn.lines);
        }
        drawn.rows.end = self.rows.len();
        let first = drawn.lines.len().saturating_sub(limit);
        out.extend_from_slice(drawn.lines.get(first..).unwrap_or_default());
        for (at, row) in (self.rows.len()..).zip(&more) {
            drawer.row(at, row, out);
        }
        drawer.end(out);
    }
}

impl Widths {
    fn new(columns: usize) -> Self {
        Self { natural: vec![1; columns], words: vec![1; columns], has_breaks: false }
    }

    fn add(&mut self, row: &[Cell]) {
        for ((cell, natural), word) in row.iter().zip(&mut self.natural).zip(&mut self.words) {
            self.has_breaks |= cell.len() > 1;
            for line in cell {
                *natural = line.width().max(*natural);
                let parts = line.text().split(' ').map(crate::tui::width::width);
                *word = parts.max().unwrap_or(0).min(WORD_MAX).max(*word);
            }
        }
    }
}

/// The cells of a row; missing ones are empty.
fn cells(row: &[Vec<Inline>], columns: usize, look: &Look<'_>, style: Style) -> Vec<Cell> {
    let cell = |at: usize| match row.get(at) {
        Some(cell) => inline::lines(cell, look, style),
        None => vec![Line::new()],
    };
    (0..columns).map(cell).collect()
}

/// Width of each column without border, in cells; `None` if there is too little room.
fn fitted(head: &Widths, rows: &Widths, width: usize) -> Option<Vec<usize>> {
    let room = width.checked_sub(3 * head.natural.len() + 1)?;
    let both = |a: &[usize], b: &[usize]| -> Vec<usize> { a.iter().zip(b).map(|(a, b)| *a.max(b)).collect() };
    let (natural, words) = (both(&head.natural, &rows.natural), both(&head.words, &rows.words));
    let least: usize = natural.iter().map(|cells| COLUMN_MIN.min(*cells)).sum();
    if least > room {
        return None;
    }
    let whole_words: usize = words.iter().sum();
    let Some(left) = room.checked_sub(whole_words) else {
        return Some(share(&words, room));
    };
    let more: Vec<usize> = natural.iter().zip(&words).map(|(all, word)| all - word).collect();
    let more = share(&more, left);
    Some(words.iter().zip(more).map(|(word, more)| word + more).collect())
}

/// Distributes `room`: small requests are met, the others get equal shares.
fn share(wants: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.order_by_key(|at| wants.get(*at));
    let mut given = vec![0; wants.len()];
    let (mut room, mut left) = (room, wants.len());
    for at in order {
        if let (Some(want), Some(given)) = (wants.get(at), given.get_mut(at)) {
            *given = (*want).min(room / left);
            room -= *given;
            left -= 1;
        }
    }
    given
}

struct Drawer<'a> {
    align: &'a [Align],
    form: Option<&'a Fitted>,
    look: &'a Look<'a>,
}

impl Drawer<'_> {
    fn head(&self, head: &[Cell], out: &mut Vec<Line>) {
        match self.form {
            Some(Fitted { widths, .. }) => {
                self.rule(widths, ['┌', '┬', '┐'], out);
                self.cells(widths, head, out);
                self.rule(widths, ['├', '┼', '┤'], out);
            }
            None => {
                self.raw(head, out);
                self.raw(&vec![vec![Line::of("---", self.border())]; head.len()], out);
            }
        }
    }

    fn row(&self, at: usize, row: &[Cell], out: &mut Vec<Line>) {
        match self.form {
            Some(Fitted { widths, is_divided }) => {
                if *is_divided && at > 0 {
                    self.rule(widths, ['├', '┼', '┤'], out);
                }
                self.cells(widths, row, out);
            }
            None => self.raw(row, out),
        }
    }

    fn end(&self, out: &mut Vec<Line>) {
        if let Some(Fitted { widths, .. }) = self.form {
            self.rule(widths, ['└', '┴', '┘'], out);
        }
    }

    fn border(&self) -> Style {
        self.look.style(Role::MdHr)
    }

    fn rule(&self, widths: &[usize], [left, middle, right]: [char; 3], out: &mut Vec<Line>) {
        let mut text = String::from(left);
        for (at, width) in widths.iter().enumerate() {
            if at > 0 {
                text.push(middle);
            }
            text.extend(std::iter::repeat_n('─', width + 2));
        }
        text.push(right);
        out.push(Line::of(&text, self.border()));
    }

    fn cells(&self, widths: &[usize], row: &[Cell], out: &mut Vec<Line>) {
        let (base, border) = (self.look.base, self.border());
        let cells = row.iter().zip(widths);
        let wrapped = |(cell, width): (&Cell, &usize)| -> Vec<Line> {
            cell.iter().flat_map(|line| wrap(line, *width)).collect()
        };
        let cells: Vec<Vec<Line>> = cells.map(wrapped).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = Line::of("│", border);
            for ((cell, width), align) in cells.iter().zip(widths).zip(self.align) {
                line.push(" ", base);
                let start = line.width();
                if let Some(part) = cell.get(at) {
                    let free = width.saturating_sub(part.width());
                    let before = match align {
                        Align::None | Align::Left => 0,
                        Align::Center => free / 2,
                        Align::Right => free,
                    };
                    line.pad_to(start + before, base);
                    line.append(part);
                }
                line.pad_to(start + width, base);
                line.push(" ", base);
                line.push("│", border);
            }
            out.push(line);
        }
    }

    /// Writes a row as in its source.
    fn raw(&self, cells: &[Cell], out: &mut Vec<Line>) {
        let (base, border) = (self.look.base, self.border());
        let mut line = Line::of("|", border);
        for cell in cells {
            for part in cell {
                line.push(" ", base);
                line.append(part);
            }
            line.push(" |", border);
        }
        out.extend(wrap(&line, self.look.width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::{self, Block};
    use crate::tui::markdown_view::tests::look;

    #[test]
    fn rows_of_a_growing_table_are_drawn_once_for_each_width() {
        let look = look(40);
        let source = format!("| A | B |\n|-|-|\n{}", "| a | b |\n".repeat(50));
        let Some(Block::Table(table)) = markdown::parse(&source).pop() else { panic!("no table") };
        let mut rows = Rows::new(&table, &look);
        for limit in [5, 20, usize::MAX] {
            let mut before = Vec::new();
            for row in table.rows.iter().skip(rows.len()).take(15) {
                rows.push(row, &look);
                let mut out = Vec::new();
                rows.lines(&table.align, &[], limit, &look, &mut out);
                let drawn = rows.drawn.borrow();
                let places: Vec<_> = drawn.lines.iter().map(|line| line.text().as_ptr()).collect();
                assert!(places.starts_with(&before), "drawn again at {limit}");
                before = places;
            }
            assert!(before.len() >= 15.min(limit));
        }
    }
}
