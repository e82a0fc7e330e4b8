//! Layout of the rows of environments, below or after each other.

use super::row::{BLANK, DRAWING, without_marks};
use crate::tui::width::width;

/// Layout of an environment.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Formulas below each other, aligned at the first sign of the second cell.
    Lines,
    Cases,
    Matrix(Brackets),
}

/// Brackets of a matrix: for one row, and for the first, middle and last of several rows.
#[derive(Clone, Copy)]
pub(super) struct Brackets {
    single: [&'static str; 2],
    left: [&'static str; 3],
    right: [&'static str; 3],
}

impl Shape {
    pub(super) fn of(environment: &str) -> Option<Self> {
        let matrix = |single, left, right| Self::Matrix(Brackets { single, left, right });
        let bars = |bar, tall| matrix([bar; 2], [tall; 3], [tall; 3]);
        Some(match environment.strip_suffix('*').unwrap_or(environment) {
            "equation" | "displaymath" | "align" | "aligned" | "alignat" | "alignedat" | "eqnarray"
            | "gather" | "gathered" | "multline" | "split" => Self::Lines,
            "cases" | "dcases" => Self::Cases,
            "matrix" | "smallmatrix" | "array" => matrix([""; 2], [""; 3], [""; 3]),
            "pmatrix" => matrix(["(", ")"], ["⎛", "⎜", "⎝"], ["⎞", "⎟", "⎠"]),
            "bmatrix" => matrix(["[", "]"], ["⎡", "⎢", "⎣"], ["⎤", "⎥", "⎦"]),
            "Bmatrix" => matrix(["{", "}"], ["⎧", "⎨", "⎩"], ["⎫", "⎬", "⎭"]),
            "vmatrix" => bars("|", "│"),
            "Vmatrix" => bars("‖", "║"),
            _ => return None,
        })
    }

    pub(super) fn in_one_row(self, rows: &[Vec<String>]) -> String {
        let has_blanks = rows.iter().flatten().any(|cell| cell.contains(' '));
        let between = match self {
            Self::Lines => " ",
            Self::Matrix(_) if !has_blanks => " ",
            Self::Cases | Self::Matrix(_) => ", ",
        };
        let row = |row: &Vec<String>| {
            let cells = row.iter().map(|cell| self.cell(cell)).filter(|cell| !cell.is_empty());
            cells.collect::<Vec<_>>().join(between)
        };
        let text = rows.iter().map(row).collect::<Vec<_>>().join("; ");
        match self {
            Self::Lines => text,
            Self::Cases => format!("{{{BLANK}{text}"),
            Self::Matrix(Brackets { single: [left, right], .. }) => format!("{left}{text}{right}"),
        }
    }

    /// Draws two or more rows below each other.
    pub(super) fn drawn(self, rows: &[Vec<String>]) -> Vec<String> {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell =
            |row: &Vec<String>, column: usize| row.get(column).map_or("", |cell| self.cell(cell)).to_owned();
        let widest = |column| rows.iter().map(|row| width(&cell(row, column))).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let last = rows.len().saturating_sub(1);
        let draw = |(index, row): (usize, &Vec<String>)| {
            let mut text = String::new();
            for (column, cells) in widths.iter().enumerate() {
                let cell = cell(row, column);
                let gap = " ".repeat(cells - width(&cell).min(*cells));
                let (is_right, before) = match self {
                    Self::Lines => {
                        (column % 2 == 0 && columns > 1, if column % 2 == 0 { "   " } else { " " })
                    }
                    Self::Cases => (false, "  "),
                    Self::Matrix(_) => (true, "  "),
                };
                text.push_str(if column == 0 { "" } else { before });
                text.push_str(&if is_right { gap + &cell } else { cell + &gap });
            }
            let place = match index {
                0 => 0,
                _ if index == last => 2,
                _ => 1,
            };
            match self {
                Self::Lines => text,
                Self::Cases => {
                    let brace = match place {
                        0 => "⎧",
                        2 => "⎩",
                        _ if index == rows.len() / 2 => "⎨",
                        _ => "⎪",
                    };
                    format!("{brace} {text}")
                }
                Self::Matrix(Brackets { left, right, .. }) => {
                    let side = |signs: [&'static str; 3]| signs.get(place).copied().unwrap_or_default();
                    format!("{}{text}{}", side(left), side(right))
                }
            }
        };
        rows.iter().enumerate().map(draw).collect()
    }

    /// A cell without the comma before the condition of a case.
    fn cell(self, cell: &str) -> &str {
        match self {
            Self::Cases => cell.strip_suffix(',').unwrap_or(cell),
            _ => cell,
        }
    }
}

/// Inserts drawings at their marks in a row; the result is as high as the highest of them.
pub(super) fn beside(row: &str, drawings: Vec<Vec<String>>) -> Vec<String> {
    let height = drawings.iter().map(Vec::len).max().unwrap_or(1);
    let middle = height.saturating_sub(1) / 2;
    let mut rows = vec![String::new(); height];
    let mut drawings = drawings.into_iter();
    for text in row.split(DRAWING) {
        let text = without_marks(text);
        let drawing = drawings.next().unwrap_or_default();
        let above = middle - drawing.len().saturating_sub(1) / 2;
        let cells = drawing.iter().map(|line| width(line)).max().unwrap_or(0);
        let blank = " ".repeat(width(&text));
        for (at, row) in rows.iter_mut().enumerate() {
            row.push_str(if at == middle { &text } else { &blank });
            let line = at.checked_sub(above).and_then(|at| drawing.get(at)).map_or("", String::as_str);
            row.push_str(line);
            row.push_str(&" ".repeat(cells - width(line).min(cells)));
        }
    }
    rows.iter_mut().for_each(|row| row.truncate(row.trim_end().len()));
    if let [only] = rows.as_mut_slice() {
        *only = only.trim_start().to_owned();
    }
    rows
}
