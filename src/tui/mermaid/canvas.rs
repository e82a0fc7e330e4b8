//! A grid of cells with texts and lines; lines that meet are joined.

use crate::tui::width::clusters;

/// A direction on the canvas; lines are sets of these bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Up = 1,
    Right = 2,
    Down = 4,
    Left = 8,
}

impl Side {
    pub fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Right => Self::Left,
            Self::Down => Self::Up,
            Self::Left => Self::Right,
        }
    }

    fn index(self) -> usize {
        (self as u8).trailing_zeros() as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    Dotted,
    Thick,
    /// Takes room, but is not drawn.
    Hidden,
}

/// The end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    None,
    Arrow,
    Open,
    Triangle,
    Diamond,
    HollowDiamond,
    Circle,
    Cross,
}

impl Head {
    /// The sign of a head that points to `side`.
    fn sign(self, side: Side, is_plain: bool) -> Option<char> {
        let (signs, plain) = match self {
            Self::None => return None,
            Self::Arrow => ("▲▶▼◀", "^>v<"),
            Self::Open => ("∧>∨<", "^>v<"),
            Self::Triangle => ("△▷▽◁", "^>v<"),
            Self::Diamond => ("◆◆◆◆", "****"),
            Self::HollowDiamond => ("◇◇◇◇", "oooo"),
            Self::Circle => ("○○○○", "oooo"),
            Self::Cross => ("××××", "xxxx"),
        };
        if is_plain { plain } else { signs }.chars().nth(side.index())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Empty,
    Line(u8, Stroke),
    Text(String),
    /// The second cell of a wide character.
    Wide,
}

pub struct Canvas {
    cells: Vec<Cell>,
    width: usize,
    height: usize,
    is_plain: bool,
}

impl Canvas {
    pub fn new(width: usize, height: usize, is_plain: bool) -> Self {
        Self { cells: vec![Cell::Empty; width * height], width, height, is_plain }
    }

    fn cell(&mut self, x: usize, y: usize) -> Option<&mut Cell> {
        if x >= self.width { None } else { self.cells.get_mut(y * self.width + x) }
    }

    pub fn text(&mut self, (x, y): (usize, usize), text: &str) {
        let mut at = x;
        for (_, cluster, cells) in clusters(text) {
            match (cells, self.cell(at, y)) {
                (_, None) => return,
                // What has no width belongs to the cell before.
                (0, _) => {}
                (_, Some(cell)) => *cell = Cell::Text(cluster.to_owned()),
            }
            if let (2, Some(cell)) = (cells, self.cell(at + 1, y)) {
                *cell = Cell::Wide;
            }
            at += cells;
        }
    }

    pub fn clear(&mut self, (x, y): (usize, usize), (width, height): (usize, usize)) {
        for y in y..y + height {
            for x in x..x + width {
                if let Some(cell) = self.cell(x, y) {
                    *cell = Cell::Empty;
                }
            }
        }
    }

    /// Adds the sides of a line to a cell; text is not overwritten.
    fn join(&mut self, (x, y): (usize, usize), sides: u8, stroke: Stroke) {
        match self.cell(x, y) {
            Some(Cell::Line(known, old)) => {
                *known |= sides;
                *old = if *old == stroke { stroke } else { Stroke::Solid };
            }
            Some(cell @ Cell::Empty) => *cell = Cell::Line(sides, stroke),
            _ => {}
        }
    }

    /// Draws a horizontal or vertical line between two cells, both included.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize), stroke: Stroke) {
        if stroke == Stroke::Hidden || from == to {
            return;
        }
        let (from, to) = (from.min(to), from.max(to));
        let (first, last) = match from.1 == to.1 {
            true => (Side::Right as u8, Side::Left as u8),
            false => (Side::Down as u8, Side::Up as u8),
        };
        for x in from.0..=to.0 {
            for y in from.1.min(to.1)..=from.1.max(to.1) {
                let sides = match (x, y) {
                    at if at == from => first,
                    at if at == to => last,
                    _ => first | last,
                };
                self.join((x, y), sides, stroke);
            }
        }
    }

    /// Draws the end of an edge that points to `side`.
    pub fn head(&mut self, at: (usize, usize), head: Head, side: Side) {
        if let Some(sign) = head.sign(side, self.is_plain) {
            self.text(at, sign.encode_utf8(&mut [0; 4]));
        }
    }

    pub fn frame(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), corners: Option<&str>) {
        let (right, bottom) = (x + width - 1, y + height - 1);
        let places = [(x, y), (right, y), (x, bottom), (right, bottom)];
        let [one, two, three, four] = places;
        for (from, to) in [(one, two), (three, four), (one, three), (two, four)] {
            self.line(from, to, Stroke::Solid);
        }
        for (place, corner) in places.into_iter().zip(corners.unwrap_or("").chars()) {
            self.text(place, corner.encode_utf8(&mut [0; 4]));
        }
    }

    pub fn rows(self) -> Vec<String> {
        let mut rows = Vec::with_capacity(self.height);
        for cells in self.cells.chunks(self.width.max(1)) {
            let mut row = String::new();
            for cell in cells {
                match cell {
                    Cell::Empty => row.push(' '),
                    Cell::Line(sides, stroke) => row.push(sign(*sides, *stroke, self.is_plain)),
                    Cell::Text(text) => row.push_str(text),
                    Cell::Wide => {}
                }
            }
            rows.push(row.trim_end().to_owned());
        }
        rows
    }
}

fn sign(sides: u8, stroke: Stroke, is_plain: bool) -> char {
    let table = match (is_plain, stroke) {
        (false, Stroke::Dotted) => " ┊╌└┊┊┌├╌┘╌┴┐┤┬┼",
        (false, Stroke::Thick) => " ┃━┗┃┃┏┣━┛━┻┓┫┳╋",
        (false, _) => " │─└││┌├─┘─┴┐┤┬┼",
        (true, Stroke::Dotted) => " :.+::++.+.+++++",
        (true, Stroke::Thick) => " |=+||++=+=+++++",
        (true, _) => " |-+||++-+-+++++",
    };
    table.chars().nth(sides.into()).unwrap_or(' ')
}
