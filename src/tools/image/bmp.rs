//! BMP without compression, read a row at a time from the top.

use super::header::{self, Size, le16, le32};
use super::png::{Rgba, Sink};
use crate::agent::CancelToken;

const CUT: &str = "it is cut short";

pub struct Bmp<'a> {
    pub size: Size,
    bits: usize,
    top_down: bool,
    /// Palette with four bytes a color (three in the oldest form): blue, green, red.
    palette: &'a [u8],
    palette_entry: usize,
    /// Bit masks of red, green, blue and opacity in a pixel.
    masks: [u32; 4],
    /// Bytes of a row, including padding.
    stride: usize,
    rows: &'a [u8],
}

impl<'a> Bmp<'a> {
    /// `None` for compressed forms. The error describes the fault of the file.
    pub fn parse(file: &'a [u8]) -> Result<Option<Self>, &'static str> {
        let size = header::bmp(file)?;
        let header_length = le32(file, 14).ok_or(CUT)? as usize;
        let old = header_length == 12;
        let bits = le16(file, if old { 24 } else { 28 }).ok_or(CUT)?.into();
        let compression = if old { 0 } else { le32(file, 30).ok_or(CUT)? };
        let mask = |at: usize| le32(file, at).ok_or(CUT);
        let masks = match (compression, bits) {
            (0, 1 | 4 | 8 | 24) => [0; 4],
            (0, 16) => [0x7c00, 0x03e0, 0x001f, 0],
            (0, 32) => [0x00ff_0000, 0x0000_ff00, 0x0000_00ff, 0],
            (3 | 6, 16 | 32) => {
                let opacity = if header_length >= 56 { mask(66)? } else { 0 };
                [mask(54)?, mask(58)?, mask(62)?, opacity]
            }
            _ => return Ok(None),
        };
        let stride = (size.width as usize * bits).div_ceil(32) * 4;
        let start = le32(file, 10).ok_or(CUT)? as usize;
        let length = stride.checked_mul(size.height as usize).ok_or(CUT)?;
        let rows = file.get(start..start.saturating_add(length)).ok_or(CUT)?;
        Ok(Some(Self {
            size,
            bits,
            top_down: !old && le32(file, 22).is_some_and(|height| height.cast_signed() < 0),
            palette: file.get(14 + header_length..start).unwrap_or_default(),
            palette_entry: if old { 3 } else { 4 },
            masks,
            stride,
            rows,
        }))
    }

    pub fn has_opacity(&self) -> bool {
        self.masks[3] != 0
    }

    pub fn decode(&self, sink: &mut dyn Sink, cancel: &CancelToken) -> Result<(), &'static str> {
        let rows = self.rows.chunks_exact(self.stride);
        let rows: Box<dyn Iterator<Item = &[u8]>> = match self.top_down {
            true => Box::new(rows),
            false => Box::new(rows.rev()),
        };
        for (row, y) in rows.zip(0..) {
            if cancel.is_cancelled() {
                return Err("it was not read to its end");
            }
            let pixels: Vec<Rgba> =
                (0..self.size.width as usize).map(|x| self.pixel(row, x).unwrap_or([0, 0, 0, 255])).collect();
            sink.row(y, 0, 1, &pixels);
        }
        Ok(())
    }

    fn pixel(&self, row: &[u8], x: usize) -> Option<Rgba> {
        match self.bits {
            16 => Some(self.masked(le16(row, 2 * x)?.into())),
            24 => row.get(3 * x..)?.first_chunk().map(|&[b, g, r]| [r, g, b, 255]),
            32 => Some(self.masked(le32(row, 4 * x)?)),
            bits => {
                let shift = 8 - bits - x * bits % 8;
                let index = usize::from(row.get(x * bits / 8)? >> shift) & ((1 << bits) - 1);
                let entry = self.palette.get(index * self.palette_entry..)?;
                entry.first_chunk().map(|&[b, g, r]| [r, g, b, 255])
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // at most 255
    fn masked(&self, pixel: u32) -> Rgba {
        let mut rgba = self.masks.map(|mask| {
            let shift = mask.trailing_zeros() & 31;
            let (value, most) = (u64::from((pixel & mask) >> shift), u64::from(mask >> shift));
            (value * 255).checked_div(most).unwrap_or(0).min(255) as u8
        });
        if !self.has_opacity() {
            rgba[3] = 255;
        }
        rgba
    }
}
