//! Where an overlay stands on the screen.

use serde::Deserialize;

/// Cells that an overlay is wide when nothing is said.
const WIDTH: usize = 80;

/// The wishes of an overlay, in the form of the reference's `OverlayOptions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overlay {
    width: Option<Extent>,
    min_width: Option<f64>,
    max_height: Option<Extent>,
    anchor: Option<String>,
    offset_x: Option<f64>,
    offset_y: Option<f64>,
    row: Option<Extent>,
    col: Option<Extent>,
    margin: Margin,
    /// True if it does not take the focus when it is shown.
    pub non_capturing: bool,
}

/// Cells, or a part of the screen as `50%`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Extent {
    Cells(f64),
    Part(String),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Margin {
    All(f64),
    Sides {
        #[serde(default)]
        top: f64,
        #[serde(default)]
        right: f64,
        #[serde(default)]
        bottom: f64,
        #[serde(default)]
        left: f64,
    },
}

impl Default for Margin {
    fn default() -> Self {
        Self::All(0.0)
    }
}

/// A rectangle of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub row: usize,
    pub column: usize,
    pub width: usize,
    pub height: usize,
}

/// Numbers of cells that others give may be anything.
fn cells(number: f64) -> usize {
    // A float is cut to the range of the integer; NaN is 0.
    number.clamp(0.0, 10_000.0) as usize
}

impl Extent {
    /// The share of `whole`; none for a text that is no percentage.
    fn part(&self, whole: usize) -> Option<usize> {
        match self {
            Self::Cells(number) => Some(cells(*number)),
            Self::Part(text) => {
                let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
                Some(cells(whole as f64 * percent / 100.0))
            }
        }
    }
}

/// The part of a screen dimension that an overlay may use.
struct Span {
    before: usize,
    after: usize,
    whole: usize,
}

impl Span {
    fn free(&self) -> usize {
        self.whole.saturating_sub(self.before + self.after).max(1)
    }

    /// Where something of `size` begins: at a wished place, otherwise as the anchor says, moved by `offset`.
    fn place(&self, wish: Option<&Extent>, side: Side, offset: Option<f64>, size: usize) -> usize {
        let room = self.free().saturating_sub(size);
        let anchored = |side| match side {
            Side::Begin => 0,
            Side::Middle => room / 2,
            Side::End => room,
        };
        let at = match wish {
            Some(Extent::Cells(number)) => cells(*number),
            Some(part) => self.before + part.part(room).unwrap_or(anchored(Side::Middle)),
            None => self.before + anchored(side),
        };
        let at = (at as f64 + offset.unwrap_or(0.0)).max(self.before as f64);
        cells(at).min(self.whole.saturating_sub(self.after + size).max(self.before))
    }
}

#[derive(Clone, Copy)]
enum Side {
    Begin,
    Middle,
    End,
}

fn side(anchor: &str, begin: &str, end: &str) -> Side {
    match () {
        () if anchor.split('-').any(|word| word == begin) => Side::Begin,
        () if anchor.split('-').any(|word| word == end) => Side::End,
        () => Side::Middle,
    }
}

impl Overlay {
    /// Cells of its lines on a screen of `columns`.
    pub fn width(&self, columns: usize) -> usize {
        let span = self.across(columns);
        let wish = self.width.as_ref().and_then(|width| width.part(columns));
        let wish = wish.unwrap_or(WIDTH).max(self.min_width.map_or(0, cells));
        wish.clamp(1, span.free())
    }

    /// The place of `lines` lines on a screen of `columns` and `rows`.
    pub fn area(&self, lines: usize, columns: usize, rows: usize) -> Area {
        let (across, down) = (self.across(columns), self.down(rows));
        let limit = self.max_height.as_ref().and_then(|height| height.part(rows));
        let height = lines.min(limit.map_or(rows, |limit| limit.clamp(1, down.free()))).min(rows);
        let width = self.width(columns);
        let anchor = self.anchor.as_deref().unwrap_or("center");
        Area {
            row: down.place(self.row.as_ref(), side(anchor, "top", "bottom"), self.offset_y, height),
            column: across.place(self.col.as_ref(), side(anchor, "left", "right"), self.offset_x, width),
            width,
            height,
        }
    }

    fn across(&self, columns: usize) -> Span {
        let (before, after) = match self.margin {
            Margin::All(all) => (all, all),
            Margin::Sides { left, right, .. } => (left, right),
        };
        Span { before: cells(before), after: cells(after), whole: columns }
    }

    fn down(&self, rows: usize) -> Span {
        let (before, after) = match self.margin {
            Margin::All(all) => (all, all),
            Margin::Sides { top, bottom, .. } => (top, bottom),
        };
        Span { before: cells(before), after: cells(after), whole: rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use proptest::prelude::*;

    #[test]
    fn an_overlay_stands_where_it_wishes() {
        for (options, expected) in [
            (json!({}), (10, 10, 80)),
            (json!({"width": 40}), (10, 30, 40)),
            (json!({"width": "50%", "anchor": "top-left"}), (0, 0, 50)),
            (json!({"width": 20, "anchor": "bottom-right", "margin": 2}), (18, 78, 20)),
            (json!({"width": 20, "anchor": "right-center", "offsetX": -3, "offsetY": 1}), (11, 77, 20)),
            (json!({"width": 20, "row": "100%", "col": "0%"}), (20, 0, 20)),
            (json!({"width": 20, "row": 3, "col": 7}), (3, 7, 20)),
            (json!({"width": 20, "row": 99, "col": 500}), (20, 80, 20)),
            (json!({"width": 5, "minWidth": 30, "anchor": "top-center", "margin": {"top": 4}}), (4, 35, 30)),
            (json!({"width": "x", "row": "x"}), (10, 10, 80)),
        ] {
            let overlay: Overlay = serde_json::from_value(options.clone()).unwrap();
            let area = overlay.area(5, 100, 25);
            assert_eq!((area.row, area.column, area.width), expected, "{options}");
            assert_eq!(area.height, 5);
        }
        let low: Overlay = serde_json::from_value(json!({"maxHeight": "20%"})).unwrap();
        assert_eq!(low.area(50, 100, 25).height, 5);
    }

    proptest! {
        #[test]
        fn an_overlay_never_leaves_the_screen(
            width in prop::option::of(-10f64..300.0), row in prop::option::of(-10f64..300.0),
            offset in prop::option::of(-300f64..300.0), margin in -3f64..60.0,
            lines in 0usize..80, columns in 1usize..120, rows in 1usize..60,
        ) {
            let overlay = Overlay {
                width: width.map(Extent::Cells), row: row.map(Extent::Cells), offset_x: offset, offset_y: offset,
                margin: Margin::All(margin), ..Overlay::default()
            };
            let area = overlay.area(lines, columns, rows);
            prop_assert!(area.width >= 1 && area.width <= columns);
            prop_assert!(area.height <= rows);
        }
    }
}
