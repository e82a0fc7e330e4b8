//! Scales an image down: each new pixel is the mean of the area it covers.
//!
//! Source pixels may arrive in any order, a row or a part of one at a time. If they arrive from the top,
//! finished rows are written immediately, and memory holds two rows.

use super::png::{Rgba, Sink};

/// Sums of a new pixel: red, green and blue times opacity, and opacity.
type Sums = [f32; 4];

pub struct Scaler<'a> {
    width: u32,
    height: u32,
    /// For each source column the new column in which it begins, and its share there; the rest belongs to the
    /// next column. Scaled so that the shares of a new pixel add up to one.
    columns: Vec<Share>,
    rows: Vec<Share>,
    /// Sums of new rows, empty before their first pixel and after they are written.
    sums: Vec<Vec<Sums>>,
    /// Number of new rows that were written.
    done: usize,
    /// True if rows arrive complete and from the top.
    in_order: bool,
    out: &'a mut dyn FnMut(&[Rgba]),
}

#[derive(Clone, Copy)]
struct Share {
    at: usize,
    first: f32,
    second: f32,
}

impl<'a> Scaler<'a> {
    /// Scales from `(width, height)` to the size `to`, which is not larger on either side. New rows go to
    /// `out`.
    pub fn new(
        (width, height): (u32, u32),
        to: (u32, u32),
        in_order: bool,
        out: &'a mut dyn FnMut(&[Rgba]),
    ) -> Self {
        Self {
            width: to.0,
            height: to.1,
            columns: shares(width, to.0),
            rows: shares(height, to.1),
            sums: vec![Vec::new(); to.1 as usize],
            done: 0,
            in_order,
            out,
        }
    }

    /// Writes the remaining rows.
    pub fn finish(mut self) {
        self.leave(self.height as usize);
    }

    fn add(&mut self, row: usize, share: f32, x: u32, step: u32, pixels: &[Rgba]) {
        let Some(sums) = self.sums.get_mut(row).filter(|_| share > 0.0) else {
            return;
        };
        sums.resize(self.width as usize, [0.0; 4]);
        let columns = self.columns.iter().skip(x as usize).step_by(step as usize);
        for (&[r, g, b, a], column) in pixels.iter().zip(columns) {
            let opacity = f32::from(a) / 255.0;
            let [r, g, b] = [r, g, b].map(|sample| f32::from(sample) * opacity);
            for (at, part) in [(column.at, column.first), (column.at + 1, column.second)] {
                if let Some(sum) = sums.get_mut(at).filter(|_| part > 0.0) {
                    let part = part * share;
                    sum[0] += r * part;
                    sum[1] += g * part;
                    sum[2] += b * part;
                    sum[3] += opacity * part;
                }
            }
        }
    }

    /// Writes the rows before `end`.
    fn leave(&mut self, end: usize) {
        while self.done < end {
            let mut sums = self.sums.get_mut(self.done).map(std::mem::take).unwrap_or_default();
            sums.resize(self.width as usize, [0.0; 4]);
            let pixels: Vec<Rgba> = sums.iter().map(mean).collect();
            (self.out)(&pixels);
            self.done += 1;
        }
    }
}

impl Sink for Scaler<'_> {
    fn row(&mut self, y: u32, x: u32, step: u32, pixels: &[Rgba]) {
        let Some(&row) = self.rows.get(y as usize) else {
            return;
        };
        if self.in_order {
            self.leave(row.at);
        }
        self.add(row.at, row.first, x, step, pixels);
        self.add(row.at + 1, row.second, x, step, pixels);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // sides are below 2^18
fn shares(from: u32, to: u32) -> Vec<Share> {
    // Counted in units of 1/from of a new pixel, to stay exact: a source pixel covers `to` of them.
    let (from, to) = (u64::from(from), u64::from(to));
    (0..from)
        .map(|source| {
            let (start, end) = (source * to, (source + 1) * to);
            let at = start / from;
            let first = end.min((at + 1) * from) - start;
            Share {
                at: at as usize,
                first: first as f32 / from as f32,
                second: (to - first) as f32 / from as f32,
            }
        })
        .collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates as wanted
fn mean(&[r, g, b, opacity]: &Sums) -> Rgba {
    if opacity <= 0.0 {
        return [0; 4];
    }
    let [r, g, b] = [r, g, b].map(|sum| (sum / opacity).round() as u8);
    [r, g, b, (opacity * 255.0).round() as u8]
}
