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
    Rows::new(table, look).lines(&table.align, &table.rows, usize::MAX, look, out);
}

/// The rows of a growing table before they are wrapped.
#[derive(Clone, Debug)]
pub struct Rows {
    head: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    head_widths: Widths,
    widths: Widths,
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
        Self { head, rows: Vec::new(), head_widths, widths: Widths::new(columns) }
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
        let row = |at: usize| self.rows.get(at).or_else(|| more.get(at.checked_sub(self.rows.len())?));
        let count = self.rows.len() + more.len();
        let Some(fitted) = fitted(&self.head_widths, &widths, look.width).filter(|_| !look.is_plain) else {
            return last(count, limit, out, |at, out| match at {
                None => raw_head(&self.head, look, out),
                Some(at) => raw(row(at).map_or(&[], Vec::as_slice), look, out),
            });
        };
        let drawer = Drawer { align, widths: &fitted, border: look.style(Role::MdHr), base: look.base };
        // Lines between the rows only where it could be unclear what belongs together.
        let divided = widths.has_breaks || widths.natural.iter().zip(&fitted).any(|(all, width)| all > width);
        last(count, limit, out, |at, out| match at {
            None => {
                drawer.rule('┌', '┬', '┐', out);
                drawer.row(&self.head, out);
                drawer.rule('├', '┼', '┤', out);
            }
            Some(at) => {
                if divided && at > 0 {
                    drawer.rule('├', '┼', '┤', out);
                }
                drawer.row(row(at).map_or(&[], Vec::as_slice), out);
            }
        });
        drawer.rule('└', '┴', '┘', out);
    }
}

/// Draws the head (`None`) and `count` rows, of which only those that the last `limit` lines are of.
fn last(
    count: usize,
    limit: usize,
    out: &mut Vec<Line>,
    mut draw: impl FnMut(Option<usize>, &mut Vec<Line>),
) {
    let (mut parts, mut lines) = (Vec::new(), 0);
    for at in (0..=count).rev() {
        if lines >= limit {
            break;
        }
        let mut part = Vec::new();
        draw(at.checked_sub(1), &mut part);
        lines += part.len();
        parts.push(part);
    }
    out.extend(parts.into_iter().rev().flatten());
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

    fn row(&self, row: &[Cell], out: &mut Vec<Line>) {
        let cells = row.iter().zip(self.widths);
        let wrapped = |(cell, width): (&Cell, &usize)| -> Vec<Line> {
            cell.iter().flat_map(|line| wrap(line, *width)).collect()
        };
        let cells: Vec<Vec<Line>> = cells.map(wrapped).collect();
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

/// Writes a row as in its source.
fn raw(cells: &[Cell], look: &Look<'_>, out: &mut Vec<Line>) {
    let border = look.style(Role::MdHr);
    let mut line = Line::of("|", border);
    for cell in cells {
        for part in cell {
            line.push(" ", look.base);
            line.append(part);
        }
        line.push(" |", border);
    }
    out.extend(wrap(&line, look.width));
}

fn raw_head(head: &[Cell], look: &Look<'_>, out: &mut Vec<Line>) {
    raw(head, look, out);
    raw(&vec![vec![Line::of("---", look.style(Role::MdHr))]; head.len()], look, out);
}
