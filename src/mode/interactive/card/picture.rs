//! Images in results, on terminals that can draw them.

use super::call::Call;
use crate::mode::interactive::look::Look;
use crate::tui::ability::Protocol;
use crate::tui::image::{self, Ids, Picture, Pixels, Place};
use crate::tui::screen::Raw;

/// How images are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Pictures {
    pub protocol: Protocol,
    pub cell: Pixels,
    /// Maximum width in cells.
    pub columns: usize,
    pub rows: usize,
}

impl Call {
    /// The call's images as the terminal draws them; a box for an image that it cannot draw.
    pub fn draw_images(&self, how: &Pictures, ids: &mut Ids, look: &Look<'_>) -> Vec<Raw> {
        let draw = |picture: Picture<'_>| {
            let place = Place {
                protocol: Some(how.protocol),
                cell: how.cell,
                columns: how.columns.min(look.width).max(1),
                rows: how.rows.max(1),
                id: ids.take(),
            };
            // One without rows is always shown by its box.
            image::raw(&picture, &place, look.theme).unwrap_or_else(|| Raw {
                rows: 0,
                sequence: String::new(),
                erase: String::new(),
                instead: image::named_box(&picture, look.theme, look.width),
            })
        };
        self.pictures().map(draw).collect()
    }
}
