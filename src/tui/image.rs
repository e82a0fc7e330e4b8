//! Images in the terminal.
//!
//! A terminal that supports images gets the file's bytes in an escape sequence, which is a [`Raw`], since a
//! line holds no sequences. In other terminals, and for formats that the terminal cannot decode, a box shows
//! the image's name. The data is only sent if it is valid base64, so that it cannot end the sequence and
//! control the terminal.

use super::ability::Protocol;
use super::line::Line;
use super::screen::Raw;
use super::style::Style;
use super::theme::{Role, Theme};
use super::wrap::wrap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// Maximum payload of one Kitty sequence.
const CHUNK_BYTES_MAX: usize = 4096;
/// Width in cells below which a box is empty.
const BOX_MIN: usize = 12;

#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// Name of the image's file; may be empty.
    pub name: &'a str,
    pub mime: &'a str,
    pub base64: &'a str,
    pub pixels: Pixels,
}

/// The size of an image, or of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
}

impl Pixels {
    /// Cell size assumed for a terminal that does not report it.
    pub const CELL: Self = Self { width: 9, height: 18 };
}

/// Position and size limits of an image.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub protocol: Option<Protocol>,
    pub cell: Pixels,
    /// Maximum width in cells.
    pub columns: usize,
    pub rows: usize,
    /// Id of the image, unique on the terminal.
    pub id: u32,
}

/// Ids for images, unlikely to equal those of another program.
#[derive(Clone, Debug)]
pub struct Ids(u32);

impl Ids {
    /// `seed` should differ between processes.
    pub fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b1))
    }

    pub fn take(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(1).max(1);
        self.0
    }
}

/// The cells that an image fills: as wide as allowed, in its proportions, at least one.
pub fn cells(pixels: Pixels, cell: Pixels, columns: usize, rows: usize) -> (usize, usize) {
    let float = |cells: usize| cells.max(1) as f64;
    let [width, height] = [pixels.width, pixels.height].map(|side| f64::from(side.max(1)));
    let [cell_width, cell_height] = [cell.width, cell.height].map(|side| f64::from(side.max(1)));
    let scale = (float(columns) * cell_width / width).min(float(rows) * cell_height / height);
    let fill =
        |side: f64, cell: f64, most: usize| ((side * scale / cell).ceil() as usize).clamp(1, most.max(1));
    (fill(width, cell_width, columns), fill(height, cell_height, rows))
}

/// The sequence for an image; `None` if only its box can be shown.
pub fn raw(picture: &Picture<'_>, place: &Place, theme: &Theme) -> Option<Raw> {
    let protocol = place.protocol?;
    let (columns, rows) = cells(picture.pixels, place.cell, place.columns, place.rows);
    if !is_base64(picture.base64) {
        return None;
    }
    let (sequence, erase) = match protocol {
        Protocol::Kitty if picture.mime != "image/png" => return None,
        Protocol::Kitty => (
            kitty(picture.base64, columns, rows, place.id),
            format!("\x1b_Ga=d,d=I,i={},q=2\x1b\\", place.id),
        ),
        Protocol::ITerm2 => (iterm2(picture, columns, rows), String::new()),
    };
    Some(Raw { rows, sequence, erase, instead: named_box(picture, theme, place.columns) })
}

fn is_base64(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !text.is_empty() && text.bytes().all(is_digit)
}

/// Stores and shows the image in one step; the cursor does not move.
fn kitty(base64: &str, columns: usize, rows: usize, id: u32) -> String {
    let mut out = String::with_capacity(base64.len() + base64.len() / 256 + 64);
    let mut rest = base64;
    let mut head = format!("a=T,f=100,q=2,C=1,c={columns},r={rows},i={id},");
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at_checked(CHUNK_BYTES_MAX).unwrap_or((rest, ""));
        let more = u8::from(!after.is_empty());
        let _ = write!(out, "\x1b_G{head}m={more};{chunk}\x1b\\");
        head.clear();
        rest = after;
    }
    out
}

fn iterm2(picture: &Picture<'_>, columns: usize, rows: usize) -> String {
    let base64 = picture.base64;
    let size = base64.trim_end_matches('=').len() * 3 / 4;
    let name = match picture.name {
        "" => String::new(),
        name => format!("name={};", STANDARD.encode(name)),
    };
    format!("\x1b]1337;File={name}inline=1;size={size};width={columns};height={rows}:{base64}\x07")
}

/// A box in place of an image that cannot be shown.
pub fn named_box(picture: &Picture<'_>, theme: &Theme, width: usize) -> Vec<Line> {
    let border = theme.style(Role::BorderMuted);
    let mut words = Line::of(picture.name, theme.style(Role::Text));
    if !words.is_empty() {
        words.push(" ", Style::PLAIN);
    }
    words.push(picture.mime, theme.style(Role::Muted));
    let Pixels { width: across, height: down } = picture.pixels;
    if across > 0 && down > 0 {
        words.push(&format!(" {across}×{down}"), theme.style(Role::Muted));
    }
    if width < BOX_MIN {
        return wrap(&words, width);
    }
    let rows = wrap(&words, width - 4);
    let inner = rows.iter().map(Line::width).max().unwrap_or(0);
    let rule = "─".repeat(inner + 2);
    let mut lines = vec![Line::of(&format!("┌{rule}┐"), border)];
    for row in rows {
        let mut line = Line::of("│ ", border);
        line.append(&row);
        line.pad_to(inner + 2, Style::PLAIN);
        line.push(" │", border);
        lines.push(line);
    }
    lines.push(Line::of(&format!("└{rule}┘"), border));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(base64: &str) -> Picture<'_> {
        Picture { name: "a.png", mime: "image/png", base64, pixels: Pixels { width: 90, height: 36 } }
    }

    fn place(protocol: Protocol) -> Place {
        Place { protocol: Some(protocol), cell: Pixels::CELL, columns: 60, rows: 24, id: 7 }
    }

    #[test]
    fn an_image_fills_its_cells_in_its_own_proportions() {
        for (pixels, most, expected) in [
            ((90, 36), (60, 24), (60, 12)),
            ((36, 90), (60, 24), (20, 24)),
            ((1, 1000), (60, 24), (1, 24)),
            ((1000, 1), (60, 24), (60, 1)),
            ((0, 0), (60, 24), (48, 24)),
            ((90, 36), (0, 0), (1, 1)),
        ] {
            let (width, height) = pixels;
            let found = cells(Pixels { width, height }, Pixels::CELL, most.0, most.1);
            assert_eq!(found, expected, "{pixels:?} in {most:?}");
        }
    }

    #[test]
    fn kitty_gets_the_data_in_chunks() {
        let theme = Theme::dark();
        let small = raw(&picture("QUJD"), &place(Protocol::Kitty), &theme).unwrap();
        assert_eq!(small.sequence, "\x1b_Ga=T,f=100,q=2,C=1,c=60,r=12,i=7,m=0;QUJD\x1b\\");
        assert_eq!(small.erase, "\x1b_Ga=d,d=I,i=7,q=2\x1b\\");
        assert_eq!(small.rows, 12);
        for length in [4096, 4097, 8192, 10_000] {
            let data = "A".repeat(length);
            let large = raw(&picture(&data), &place(Protocol::Kitty), &theme).unwrap();
            let chunks: Vec<(&str, &str)> = large
                .sequence
                .split_terminator("\x1b\\")
                .map(|chunk| chunk.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap())
                .collect();
            assert_eq!(chunks.len(), length.div_ceil(4096));
            assert_eq!(chunks.iter().map(|(_, data)| *data).collect::<String>(), data);
            for (at, (head, data)) in chunks.iter().enumerate() {
                assert!(data.len() <= 4096);
                assert!(head.ends_with(if at + 1 < chunks.len() { "m=1" } else { "m=0" }));
                assert_eq!(head.contains("i=7"), at == 0);
            }
        }
    }

    #[test]
    fn iterm2_gets_the_file() {
        let shown = raw(&picture("QUI="), &place(Protocol::ITerm2), &Theme::dark()).unwrap();
        assert_eq!(
            shown.sequence,
            "\x1b]1337;File=name=YS5wbmc=;inline=1;size=2;width=60;height=12:QUI=\x07"
        );
    }

    #[test]
    fn what_cannot_be_shown_is_a_box() {
        let theme = Theme::dark();
        let none = Place { protocol: None, ..place(Protocol::Kitty) };
        let jpeg = Picture { mime: "image/jpeg", ..picture("QUJD") };
        assert!(raw(&picture("QUJD"), &none, &theme).is_none());
        assert!(raw(&jpeg, &place(Protocol::Kitty), &theme).is_none());
        assert!(raw(&jpeg, &place(Protocol::ITerm2), &theme).is_some());
        for bad in ["", "QUJD\x1b\\", "QU\nJD", "ü"] {
            assert!(raw(&picture(bad), &place(Protocol::Kitty), &theme).is_none(), "{bad:?}");
        }
        let lines = named_box(&picture(""), &theme, 40);
        let texts: Vec<&str> = lines.iter().map(Line::text).collect();
        assert_eq!(
            texts,
            ["┌───────────────────────┐", "│ a.png image/png 90×36 │", "└───────────────────────┘"]
        );
        for width in 2..30 {
            for line in named_box(&picture(""), &theme, width) {
                assert!(line.width() <= width);
            }
        }
    }

    #[test]
    fn numbers_are_never_nought() {
        let mut ids = Ids(u32::MAX - 1);
        assert_eq!([ids.take(), ids.take(), ids.take()], [u32::MAX, 1, 2]);
    }
}
