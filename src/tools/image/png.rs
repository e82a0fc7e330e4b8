//! Reads PNG files a row at a time.
//!
//! Reading checks everything that a strict reader would stumble over: chunk lengths, checksums, header,
//! palette, the compressed data to its end. A file that passes is one that a provider can decode. Memory
//! holds a few rows, whatever size the header claims.
//!
//! Writing is in [`super::png_writer`].

use crate::agent::CancelToken;
use flate2::Crc;
use flate2::read::ZlibDecoder;
use std::io::Read;

pub const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Maximum pixels of a side, and in all: a small file can claim any size.
const MAX_SIDE: u32 = 1 << 18;
const MAX_PIXELS: u64 = 1 << 28;

/// Red, green, blue, opacity.
pub type Rgba = [u8; 4];

/// Receives a row, or the part of a row in one pass of an interlaced image.
pub trait Sink {
    /// The first pixel is in column `x`, each further one `step` columns to the right.
    fn row(&mut self, y: u32, x: u32, step: u32, pixels: &[Rgba]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub width: u32,
    pub height: u32,
    pub interlaced: bool,
    /// Bits per sample.
    depth: usize,
    color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Color {
    Gray,
    Rgb,
    Palette,
    GrayAlpha,
    Rgba,
}

/// A file with valid chunks. The pixels are not checked yet.
pub struct Png<'a> {
    pub header: Header,
    palette: &'a [u8],
    /// Opacity of the palette, or the one transparent color.
    transparency: &'a [u8],
    data: Vec<&'a [u8]>,
}

impl Header {
    fn parse(body: &[u8]) -> Result<Self, &'static str> {
        const WRONG: &str = "its header is wrong";
        let &[a, b, c, d, e, f, g, h, depth, color, 0, 0, interlaced @ (0 | 1)] = body else {
            return Err(WRONG);
        };
        let color = match color {
            0 => Color::Gray,
            2 => Color::Rgb,
            3 => Color::Palette,
            4 => Color::GrayAlpha,
            6 => Color::Rgba,
            _ => return Err(WRONG),
        };
        let depths: &[u8] = match color {
            Color::Gray => &[1, 2, 4, 8, 16],
            Color::Palette => &[1, 2, 4, 8],
            Color::Rgb | Color::GrayAlpha | Color::Rgba => &[8, 16],
        };
        let (width, height) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        if width == 0 || height == 0 || !depths.contains(&depth) {
            return Err(WRONG);
        }
        let pixels = u64::from(width) * u64::from(height);
        if width > MAX_SIDE || height > MAX_SIDE || pixels > MAX_PIXELS {
            return Err("it has too many pixels to be decoded");
        }
        Ok(Self { width, height, interlaced: interlaced == 1, depth: depth.into(), color })
    }

    fn bits_of_a_pixel(&self) -> usize {
        let samples = match self.color {
            Color::Gray | Color::Palette => 1,
            Color::GrayAlpha => 2,
            Color::Rgb => 3,
            Color::Rgba => 4,
        };
        samples * self.depth
    }

    /// The passes over the image: one, or seven if interlaced.
    fn passes(&self) -> &'static [Pass] {
        const WHOLE: &[Pass] = &[Pass::new(0, 0, 1, 1)];
        const ADAM7: &[Pass] = &[
            Pass::new(0, 0, 8, 8),
            Pass::new(4, 0, 8, 8),
            Pass::new(0, 4, 4, 8),
            Pass::new(2, 0, 4, 4),
            Pass::new(0, 2, 2, 4),
            Pass::new(1, 0, 2, 2),
            Pass::new(0, 1, 1, 2),
        ];
        if self.interlaced { ADAM7 } else { WHOLE }
    }
}

struct Pass {
    x: u32,
    y: u32,
    x_step: u32,
    y_step: u32,
}

impl Pass {
    const fn new(x: u32, y: u32, x_step: u32, y_step: u32) -> Self {
        Self { x, y, x_step, y_step }
    }
}

impl<'a> Png<'a> {
    /// The error describes the fault of the file.
    pub fn parse(file: &'a [u8]) -> Result<Self, &'static str> {
        let rest = file.strip_prefix(SIGNATURE);
        let (first, mut rest) = chunk(rest.ok_or("it has no PNG signature")?)?;
        if first.kind != *b"IHDR" {
            return Err("it does not begin with its header");
        }
        let mut png =
            Self { header: Header::parse(first.body)?, palette: b"", transparency: b"", data: Vec::new() };
        loop {
            let (chunk, after) = chunk(rest)?;
            rest = after;
            match &chunk.kind {
                b"PLTE" => png.palette = chunk.body,
                b"tRNS" => png.transparency = chunk.body,
                b"IDAT" => png.data.push(chunk.body),
                b"IEND" => break,
                [b'A'..=b'Z', ..] => return Err("it has a chunk of a kind that is not known"),
                _ => {}
            }
        }
        if png.header.color == Color::Palette && png.palette.len() < 3 {
            return Err("it has no palette");
        }
        Ok(png)
    }

    /// True if pixels may be transparent.
    pub fn has_opacity(&self) -> bool {
        matches!(self.header.color, Color::GrayAlpha | Color::Rgba) || !self.transparency.is_empty()
    }

    pub fn is_gray(&self) -> bool {
        matches!(self.header.color, Color::Gray | Color::GrayAlpha)
    }

    /// Decodes all pixels, and passes them to `sink` if given. Ends early when cancelled.
    pub fn decode(&self, mut sink: Option<&mut dyn Sink>, cancel: &CancelToken) -> Result<(), &'static str> {
        const TRUNCATED: &str = "its pixels are cut short or damaged";
        let header = &self.header;
        let bits = header.bits_of_a_pixel();
        let mut data = ZlibDecoder::new(Slices::new(&self.data));
        let mut pixels = Vec::new();
        for pass in header.passes() {
            let columns = header.width.saturating_sub(pass.x).div_ceil(pass.x_step);
            if columns == 0 {
                continue;
            }
            let length = (columns as usize * bits).div_ceil(8);
            // A filter byte stands before each row.
            let (mut row, mut above) = (vec![0; length + 1], vec![0; length + 1]);
            for y in (pass.y..header.height).step_by(pass.y_step as usize) {
                if cancel.is_cancelled() {
                    return Err("it was not read to its end");
                }
                data.read_exact(&mut row).map_err(|_| TRUNCATED)?;
                let (filter, samples) = row.split_first_mut().ok_or(TRUNCATED)?;
                let above_samples = above.get(1..).unwrap_or_default();
                unfilter(*filter, samples, above_samples, bits.div_ceil(8))?;
                if let Some(sink) = sink.as_deref_mut() {
                    pixels.clear();
                    self.convert(samples, columns as usize, &mut pixels);
                    sink.row(y, pass.x, pass.x_step, &pixels);
                }
                std::mem::swap(&mut row, &mut above);
            }
        }
        // The checksum of the data comes after its end.
        let rest = std::io::copy(&mut data.take(1), &mut std::io::sink());
        rest.map(drop).map_err(|_| TRUNCATED)
    }

    /// Converts a row of samples into pixels.
    fn convert(&self, row: &[u8], columns: usize, out: &mut Vec<Rgba>) {
        let depth = self.header.depth;
        let sample = |at: usize| -> u16 {
            let byte = |at: usize| row.get(at).copied().unwrap_or_default();
            match depth {
                16 => u16::from_be_bytes([byte(2 * at), byte(2 * at + 1)]),
                8 => byte(at).into(),
                _ => {
                    let shift = 8 - depth - at * depth % 8;
                    u16::from(byte(at * depth / 8) >> shift) & ((1 << depth) - 1)
                }
            }
        };
        #[allow(clippy::cast_possible_truncation)] // at most 255 each
        let scale = |sample: u16| match depth {
            16 => (sample >> 8) as u8,
            8 => sample as u8,
            _ => (sample * 255 / ((1 << depth) - 1)) as u8,
        };
        let key = |at: usize| match self.transparency.get(2 * at..2 * at + 2) {
            Some(&[high, low]) => Some(u16::from_be_bytes([high, low])),
            _ => None,
        };
        match self.header.color {
            Color::Gray => {
                let key = key(0);
                out.extend((0..columns).map(|at| {
                    let value = sample(at);
                    let gray = scale(value);
                    [gray, gray, gray, if key == Some(value) { 0 } else { 255 }]
                }));
            }
            Color::Rgb => {
                let key = [key(0), key(1), key(2)];
                out.extend((0..columns).map(|at| {
                    let rgb = [sample(3 * at), sample(3 * at + 1), sample(3 * at + 2)];
                    let [r, g, b] = rgb.map(scale);
                    [r, g, b, if key == rgb.map(Some) { 0 } else { 255 }]
                }));
            }
            Color::Palette => out.extend((0..columns).map(|at| {
                let index = usize::from(sample(at));
                let opacity = self.transparency.get(index).copied().unwrap_or(255);
                match self.palette.get(3 * index..3 * index + 3) {
                    Some(&[r, g, b]) => [r, g, b, opacity],
                    _ => [0, 0, 0, 255],
                }
            })),
            Color::GrayAlpha => out.extend((0..columns).map(|at| {
                let gray = scale(sample(2 * at));
                [gray, gray, gray, scale(sample(2 * at + 1))]
            })),
            Color::Rgba => {
                out.extend((0..columns).map(|at| [0, 1, 2, 3].map(|s| scale(sample(4 * at + s)))));
            }
        }
    }
}

/// True if the start of a PNG file declares an animation.
pub fn is_animated(head: &[u8]) -> bool {
    let mut at = SIGNATURE.len();
    while let Some(chunk) = head.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let &[a, b, c, d, ref kind @ ..] = chunk;
        match kind {
            b"acTL" => return true,
            b"IDAT" => return false,
            _ => {}
        }
        at = at.saturating_add(u32::from_be_bytes([a, b, c, d]) as usize + 12);
    }
    false
}

struct Chunk<'a> {
    kind: [u8; 4],
    body: &'a [u8],
}

/// The next chunk, and the data after it.
fn chunk(file: &[u8]) -> Result<(Chunk<'_>, &[u8]), &'static str> {
    const CUT: &str = "it is cut short";
    let (length, rest) = file.split_first_chunk::<4>().ok_or(CUT)?;
    let length = u32::from_be_bytes(*length) as usize;
    let (checked, rest) = rest.split_at_checked(length.saturating_add(4)).ok_or(CUT)?;
    let (sum, rest) = rest.split_first_chunk::<4>().ok_or(CUT)?;
    let (kind, body) = checked.split_first_chunk::<4>().ok_or(CUT)?;
    let mut crc = Crc::new();
    crc.update(checked);
    if crc.sum() != u32::from_be_bytes(*sum) {
        return Err("a checksum in it is wrong");
    }
    Ok((Chunk { kind: *kind, body }, rest))
}

/// Reverses the filter of a row: each byte was stored as the difference from a prediction made of the bytes
/// to the left, above, and above left.
fn unfilter(filter: u8, row: &mut [u8], above: &[u8], pixel: usize) -> Result<(), &'static str> {
    for at in 0..row.len() {
        let left_at = at.checked_sub(pixel);
        let left = left_at.map_or(0, |left| row[left]);
        let up = above[at];
        let guess = match filter {
            0 => return Ok(()),
            1 => left,
            2 => up,
            3 => u8::midpoint(left, up),
            4 => paeth(left, up, left_at.map_or(0, |left| above[left])),
            _ => return Err("a row of it has an unknown filter"),
        };
        row[at] = row[at].wrapping_add(guess);
    }
    Ok(())
}

/// PNG's Paeth predictor: the neighbour nearest to `left + up - up_left`.
pub fn paeth(left: u8, up: u8, up_left: u8) -> u8 {
    let [a, b, c] = [left, up, up_left].map(i16::from);
    let (by_left, by_up, by_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if by_left <= by_up && by_left <= by_corner {
        left
    } else if by_up <= by_corner {
        up
    } else {
        up_left
    }
}

/// Reads slices one after another.
struct Slices<'a> {
    current: &'a [u8],
    rest: &'a [&'a [u8]],
}

impl<'a> Slices<'a> {
    fn new(slices: &'a [&'a [u8]]) -> Self {
        Self { current: b"", rest: slices }
    }
}

impl Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() {
            let Some((first, rest)) = self.rest.split_first() else {
                return Ok(0);
            };
            (self.current, self.rest) = (first, rest);
        }
        self.current.read(buffer)
    }
}
