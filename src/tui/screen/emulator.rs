//! A screen in front of a terminal emulator, for tests.

use super::{Abilities, Screen, Size};
use crate::tui::line::Line;
use crate::tui::style::Style;
use std::num::NonZero;

pub fn cells(count: usize) -> NonZero<u16> {
    NonZero::new(u16::try_from(count).unwrap()).unwrap()
}

pub struct Terminal {
    pub screen: Screen,
    pub parser: vt100::Parser,
    pub written: usize,
}

impl Terminal {
    pub fn new(columns: usize, rows: usize) -> Self {
        let abilities = Abilities { synchronized: true, ..Abilities::default() };
        let parser = vt100::Parser::new(cells(rows), cells(columns), 1000);
        Self { screen: Screen::new(Size { columns, rows }, abilities), parser, written: 0 }
    }

    pub fn draw(&mut self, above: &[&str], live: &[Line]) {
        let above: Vec<Line> = above.iter().map(|text| plain(text)).collect();
        let out = self.screen.draw(&above, live);
        self.written = out.len();
        self.parser.process(out.as_bytes());
    }

    /// The rows on screen, without empty ones at the end.
    pub fn rows(&self) -> Vec<String> {
        let columns = self.parser.screen().size().1.get();
        let mut rows: Vec<String> = self.parser.screen().rows(0, columns).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// All printed lines and the live region.
    pub fn everything(&mut self) -> Vec<String> {
        self.all_rows().into_iter().map(|(row, _)| row).collect()
    }

    /// All rows, and whether each continues in the next one.
    fn all_rows(&mut self) -> Vec<(String, bool)> {
        let (rows, columns) = self.parser.screen().size();
        let visible = |screen: &vt100::Screen, count: usize| -> Vec<(String, bool)> {
            let wrapped = (0..rows.get()).map(|row| screen.row_wrapped(row));
            screen.rows(0, columns.get()).zip(wrapped).take(count).collect()
        };
        let mut all = Vec::new();
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let mut back = self.parser.screen().scrollback();
        while back > 0 {
            self.parser.screen_mut().set_scrollback(back);
            let count = back.min(usize::from(rows.get()));
            all.extend(visible(self.parser.screen(), count));
            back -= count;
        }
        self.parser.screen_mut().set_scrollback(0);
        all.extend(visible(self.parser.screen(), self.rows().len()));
        all
    }

    pub fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }
}

pub fn plain(text: &str) -> Line {
    Line::of(text, Style::PLAIN)
}

/// A terminal in fewer columns that moves rows into the scrollback for those that it wraps, as tmux does, though
/// rows are free below the cursor.
pub fn narrowed(old: &mut Terminal, columns: usize) -> vt100::Parser {
    let (rows, before) = old.parser.screen().size();
    let (rows, before) = (usize::from(rows.get()), usize::from(before.get()));
    let (cursor, column) = old.cursor();
    let seen = old.rows().len();
    let mut all = old.all_rows();
    let back = all.len() - seen;
    all.resize(back + rows, (String::new(), false));
    let (mut text, mut line, mut count) = (String::new(), String::new(), 0);
    let mut place = (0, 0);
    let last = all.len() - 1;
    for (row, (part, goes_on)) in all.into_iter().enumerate() {
        if row == back + usize::from(cursor) {
            let at = line.chars().count() + usize::from(column);
            place = (count + at / columns, at % columns);
        }
        if goes_on {
            line.push_str(&format!("{part:before$}"));
            continue;
        }
        line.push_str(&part);
        count += line.chars().count().div_ceil(columns).max(1);
        text.push_str(&std::mem::take(&mut line));
        text.push_str(if row < last { "\r\n" } else { "" });
    }
    let mut new = vt100::Parser::new(cells(rows), cells(columns), 1000);
    new.process(text.as_bytes());
    let row = (place.0 + rows).saturating_sub(count) + 1;
    new.process(format!("\x1b[{row};{}H", place.1 + 1).as_bytes());
    new
}
