//! Lines for a change of a file, from the numbered diff of the edit tool.
//!
//! Each line of the diff has a sign (`-`, `+` or a space), a number and the text; ` ...` marks omitted lines.
//! If as many lines were removed as were added, the words that differ are highlighted in each pair. Lines in
//! any other form are shown unchanged.

mod words;

use super::line::Line;
use super::style::{Attributes, Style};
use super::theme::{Role, Theme};
use super::wrap::wrap;
use std::ops::Range;

/// Minimum cells for the text beside the numbers.
const TEXT_MIN: usize = 8;

/// The lines of `diff` for a width.
pub fn lines(diff: &str, theme: &Theme, width: usize) -> Vec<Line> {
    let rows: Vec<Row<'_>> = diff.lines().map(Row::parse).collect();
    let numbers = rows.iter().map(|row| row.number.len()).max().unwrap_or(0);
    let mut view = View { theme, width, numbers, out: Vec::new() };
    let mut rest = rows.as_slice();
    while let Some((row, after)) = rest.split_first() {
        if row.kind == Kind::Removed {
            rest = view.changed(rest);
        } else {
            view.row(row, &[]);
            rest = after;
        }
    }
    view.out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Removed,
    Added,
    /// Omitted lines.
    Fold,
    /// A line in another form.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Row<'a> {
    kind: Kind,
    /// The line number's digits.
    number: &'a str,
    text: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Self {
        let other = Self { kind: Kind::Other, number: "", text: line };
        let kind = match line.as_bytes().first() {
            Some(b' ') => Kind::Same,
            Some(b'-') => Kind::Removed,
            Some(b'+') => Kind::Added,
            _ => return other,
        };
        let rest = line.get(1..).unwrap_or_default().trim_start_matches(' ');
        if kind == Kind::Same && rest == "..." {
            return Self { kind: Kind::Fold, ..other };
        }
        let text = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let (number, _) = rest.split_at_checked(rest.len() - text.len()).unwrap_or_default();
        let text = text.strip_prefix(' ').or(text.is_empty().then_some(""));
        match text.filter(|_| !number.is_empty()) {
            Some(text) => Self { kind, number, text },
            None => other,
        }
    }
}

struct View<'a> {
    theme: &'a Theme,
    width: usize,
    /// Digits of the longest number.
    numbers: usize,
    out: Vec<Line>,
}

impl View<'_> {
    /// Draws the removed lines at the start of `rows`, and the added ones that follow; returns the rest.
    fn changed<'r>(&mut self, rows: &'r [Row<'r>]) -> &'r [Row<'r>] {
        let run = |rows: &[Row<'_>], kind| rows.iter().take_while(|row| row.kind == kind).count();
        let (removed, rest) = rows.split_at(run(rows, Kind::Removed));
        let (added, rest) = rest.split_at(run(rest, Kind::Added));
        let marks: Vec<words::Marks> = match removed.len() == added.len() {
            true => {
                let pairs = removed.iter().zip(added);
                pairs.map(|(old, new)| words::compare(old.text, new.text)).collect()
            }
            false => Vec::new(),
        };
        for (at, row) in removed.iter().enumerate() {
            self.row(row, marks.get(at).map_or(&[], |marks| marks.old.as_slice()));
        }
        for (at, row) in added.iter().enumerate() {
            self.row(row, marks.get(at).map_or(&[], |marks| marks.new.as_slice()));
        }
        rest
    }

    /// Draws a row; the bytes of its text in `marks` are highlighted.
    fn row(&mut self, row: &Row<'_>, marks: &[Range<usize>]) {
        let (sign, role) = match row.kind {
            Kind::Removed => ('-', Role::ToolDiffRemoved),
            Kind::Added => ('+', Role::ToolDiffAdded),
            Kind::Same | Kind::Other => (' ', Role::ToolDiffContext),
            Kind::Fold => return self.fold(),
        };
        let style = self.theme.style(role);
        if row.kind == Kind::Other {
            let line = Line::of(row.text, style);
            return self.out.extend(wrap(&line, self.width));
        }
        let mut gutter = Line::of(&format!("{sign}{:>1$} ", row.number, self.numbers), style);
        if gutter.width() + TEXT_MIN > self.width {
            gutter = Line::of(&sign.to_string(), style).cut(self.width.saturating_sub(2));
        }
        let indent = gutter.width();
        for part in wrap(&marked(row.text, style, marks), self.width.saturating_sub(indent)) {
            gutter.append(&part);
            self.out.push(std::mem::take(&mut gutter));
            gutter.pad_to(indent, style);
        }
    }

    fn fold(&mut self) {
        let mut line = Line::new();
        line.pad_to(self.numbers + 2, Style::PLAIN);
        line.push("⋯", self.theme.style(Role::Dim));
        self.out.push(line.cut(self.width));
    }
}

fn marked(text: &str, style: Style, marks: &[Range<usize>]) -> Line {
    let mut line = Line::new();
    let mut at = 0;
    for mark in marks {
        line.push(text.get(at..mark.start).unwrap_or_default(), style);
        let strong = style.with(Attributes::INVERSE);
        line.push(text.get(mark.clone()).unwrap_or_default(), strong);
        at = mark.end;
    }
    line.push(text.get(at..).unwrap_or_default(), style);
    line
}

#[cfg(test)]
mod tests;
