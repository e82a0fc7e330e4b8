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

/// Minimum width of a readable column, in cells.
const COLUMN_MIN: usize = 3;
/// Longer words are broken.
const WORD_MAX: usize = 30;

/// The lines of a cell before they are wrapped.
type Cell = Vec<Line>;

pub fn lines(table: &Table, look: &Look<'_>, out: &mut Vec<Line>) {
    let columns = table.align.len();
    let head = cells(&table.head, columns, look, look.base.with(Attributes::BOLD));
    let rows = table.rows.iter();
    let rows: Vec<Vec<Cell>> = rows.map(|row| cells(row, columns, look, look.base)).collect();
    let Some(widths) = widths(&head, &rows, look.width).filter(|_| !look.is_plain) else {
        return raw(&head, &rows, look, out);
    };
    let drawer =
        Drawer { align: &table.align, widths: &widths, border: look.style(Role::MdHr), base: look.base };
    let wrapped = rows.iter().map(|row| drawer.wrap(row));
    let wrapped: Vec<Vec<Vec<Line>>> = wrapped.collect();
    let is_tall = |row: &Vec<Vec<Line>>| row.iter().any(|cell| cell.len() > 1);
    // Lines between the rows only where it could be unclear what belongs together.
    let divided = wrapped.iter().any(is_tall);
    drawer.rule('┌', '┬', '┐', out);
    drawer.row(&drawer.wrap(&head), out);
    drawer.rule('├', '┼', '┤', out);
    for (at, row) in wrapped.iter().enumerate() {
        if divided && at > 0 {
            drawer.rule('├', '┼', '┤', out);
        }
        drawer.row(row, out);
    }
    drawer.rule('└', '┴', '┘', out);
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
fn widths(head: &[Cell], rows: &[Vec<Cell>], width: usize) -> Option<Vec<usize>> {
    let room = width.checked_sub(3 * head.len() + 1)?;
    let mut natural = vec![1; head.len()];
    let mut words = vec![1; head.len()];
    for row in std::iter::once(head).chain(rows.iter().map(Vec::as_slice)) {
        for ((cell, natural), word) in row.iter().zip(&mut natural).zip(&mut words) {
            for line in cell {
                *natural = line.width().max(*natural);
                let parts = line.text().split(' ').map(crate::tui::width::width);
                *word = parts.max().unwrap_or(0).min(WORD_MAX).max(*word);
            }
        }
    }
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
    widths: &'a [usize],
    border: Style,
    base: Style,
}

impl Drawer<'_> {
    fn rule(&self, left: char, middle: char, right: char, out: &mut Vec<Line>) {
        let mut text = String::from(left);
        for (at, width) in self.widths.iter().enumerate() {
            if at > 0 {
                text.push(middle);
            }
            text.extend(std::iter::repeat_n('─', width + 2));
        }
        text.push(right);
        out.push(Line::of(&text, self.border));
    }

    fn wrap(&self, row: &[Cell]) -> Vec<Vec<Line>> {
        let cells = row.iter().zip(self.widths);
        cells.map(|(cell, width)| cell.iter().flat_map(|line| wrap(line, *width)).collect()).collect()
    }

    fn row(&self, cells: &[Vec<Line>], out: &mut Vec<Line>) {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = Line::of("│", self.border);
            for ((cell, width), align) in cells.iter().zip(self.widths).zip(self.align) {
                line.push(" ", self.base);
                let start = line.width();
                if let Some(part) = cell.get(at) {
                    let free = width.saturating_sub(part.width());
                    let before = match align {
                        Align::None | Align::Left => 0,
                        Align::Center => free / 2,
                        Align::Right => free,
                    };
                    line.pad_to(start + before, self.base);
                    line.append(part);
                }
                line.pad_to(start + width, self.base);
                line.push(" ", self.base);
                line.push("│", self.border);
            }
            out.push(line);
        }
    }
}

/// Writes the table as in its source.
fn raw(head: &[Cell], rows: &[Vec<Cell>], look: &Look<'_>, out: &mut Vec<Line>) {
    let border = look.style(Role::MdHr);
    let mut row = |cells: &[Cell]| {
        let mut line = Line::of("|", border);
        for cell in cells {
            for part in cell {
                line.push(" ", look.base);
                line.append(part);
            }
            line.push(" |", border);
        }
        out.extend(wrap(&line, look.width));
    };
    row(head);
    row(&vec![vec![Line::of("---", border)]; head.len()]);
    for cells in rows {
        row(cells);
    }
}
