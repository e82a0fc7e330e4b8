//! Writes a PNG, a row at a time, 8 bits a sample.

use super::png::{Rgba, SIGNATURE, paeth};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Gray,
    Rgb,
    Rgba,
}

impl Color {
    fn code(self) -> u8 {
        match self {
            Self::Gray => 0,
            Self::Rgb => 2,
            Self::Rgba => 6,
        }
    }

    fn samples(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

pub struct Writer {
    color: Color,
    /// Signature, header, and the data written so far.
    file: Vec<u8>,
    data: ZlibEncoder<Vec<u8>>,
    row: Vec<u8>,
    above: Vec<u8>,
    /// The row as encoded by each filter.
    filtered: Vec<u8>,
    best: Vec<u8>,
}

impl Writer {
    pub fn new(width: u32, height: u32, color: Color) -> Self {
        let mut header = Vec::with_capacity(13);
        header.extend_from_slice(&width.to_be_bytes());
        header.extend_from_slice(&height.to_be_bytes());
        header.extend_from_slice(&[8, color.code(), 0, 0, 0]);
        let mut file = SIGNATURE.to_vec();
        push_chunk(&mut file, *b"IHDR", &header);
        Self {
            color,
            file,
            data: ZlibEncoder::new(Vec::new(), Compression::default()),
            row: Vec::new(),
            above: vec![0; width as usize * color.samples()],
            filtered: Vec::new(),
            best: Vec::new(),
        }
    }

    /// Appends the next row, from the top.
    pub fn row(&mut self, pixels: &[Rgba]) -> io::Result<()> {
        self.row.clear();
        match self.color {
            Color::Gray => self.row.extend(pixels.iter().map(|pixel| pixel[0])),
            Color::Rgb => self.row.extend(pixels.iter().flat_map(|&[r, g, b, _]| [r, g, b])),
            Color::Rgba => self.row.extend(pixels.as_flattened()),
        }
        // The filter whose result is nearest to zero packs best, as a rule.
        let mut least = u64::MAX;
        for filter in 0..=4 {
            self.filter(filter);
            let samples = self.filtered.iter().skip(1);
            let cost = samples.map(|&byte| u64::from(byte.cast_signed().unsigned_abs())).sum();
            if cost < least {
                least = cost;
                std::mem::swap(&mut self.filtered, &mut self.best);
            }
        }
        std::mem::swap(&mut self.row, &mut self.above);
        self.data.write_all(&self.best)
    }

    fn filter(&mut self, filter: u8) {
        let pixel = self.color.samples();
        self.filtered.clear();
        self.filtered.push(filter);
        let left = std::iter::repeat_n(&0, pixel).chain(&self.row);
        let corner = std::iter::repeat_n(&0, pixel).chain(&self.above);
        let near = self.above.iter().zip(left).zip(corner);
        let stored = self.row.iter().zip(near).map(|(&byte, ((&up, &left), &corner))| {
            byte.wrapping_sub(match filter {
                1 => left,
                2 => up,
                3 => u8::midpoint(left, up),
                4 => paeth(left, up, corner),
                _ => 0,
            })
        });
        self.filtered.extend(stored);
    }

    pub fn finish(self) -> io::Result<Vec<u8>> {
        let mut file = self.file;
        push_chunk(&mut file, *b"IDAT", &self.data.finish()?);
        push_chunk(&mut file, *b"IEND", b"");
        Ok(file)
    }
}

pub fn push_chunk(file: &mut Vec<u8>, kind: [u8; 4], body: &[u8]) {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(body);
    file.extend_from_slice(&length.to_be_bytes());
    file.extend_from_slice(&kind);
    file.extend_from_slice(body);
    file.extend_from_slice(&crc.sum().to_be_bytes());
}
