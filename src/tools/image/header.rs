//! Checks the size and the completeness of an image file, without decoding it.
//!
//! For the formats that are not decoded here ([`super::png`] decodes PNG). A file that is truncated or has
//! inconsistent parts is rejected, so that it is never sent.

/// Size in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

impl Size {
    fn new(width: u32, height: u32) -> Result<Self, &'static str> {
        if width == 0 || height == 0 {
            return Err("its header says that it is empty");
        }
        Ok(Self { width, height })
    }
}

const CUT: &str = "it is cut short";
const WRONG: &str = "its parts are not where they should be";

/// The displayed size, after the rotation that a camera noted in the file.
pub fn jpeg(file: &[u8]) -> Result<Size, &'static str> {
    let mut rest = file.get(2..).ok_or(CUT)?;
    let mut size = None;
    let mut turned = false;
    loop {
        let marker = match rest {
            // Fill bytes may stand before a marker, and some markers have no body.
            [0xff, 0xff, ..] => {
                rest = &rest[1..];
                continue;
            }
            [0xff, 0x01 | 0xd0..=0xd7, after @ ..] => {
                rest = after;
                continue;
            }
            &[0xff, marker, ref after @ ..] => {
                rest = after;
                marker
            }
            [] | [_] => return Err(CUT),
            _ => return Err(WRONG),
        };
        let length = be16(rest, 0).ok_or(CUT)?;
        let body = rest.get(2..usize::from(length)).ok_or(CUT)?;
        match marker {
            // Starts of frames; the three left out are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let (height, width) = (be16(body, 1), be16(body, 3));
                size = Some((width.ok_or(CUT)?, height.ok_or(CUT)?));
            }
            0xe1 => turned |= body.strip_prefix(b"Exif\0\0").is_some_and(is_turned),
            0xda => break,
            _ => {}
        }
        rest = rest.get(usize::from(length)..).unwrap_or_default();
    }
    // The end of the image comes last, but for what cameras append.
    if memchr::memmem::rfind(rest, b"\xff\xd9").is_none() {
        return Err(CUT);
    }
    let (width, height) = size.ok_or(WRONG)?;
    let (width, height) = if turned { (height, width) } else { (width, height) };
    Size::new(width.into(), height.into())
}

/// True if a TIFF directory says that the image is rotated by 90 degrees.
fn is_turned(tiff: &[u8]) -> bool {
    let read: fn(&[u8], usize) -> Option<u16> = match tiff.get(..2) {
        Some(b"II") => le16,
        Some(b"MM") => be16,
        _ => return false,
    };
    let long = |at: usize| {
        let (first, second) = (u32::from(read(tiff, at)?), u32::from(read(tiff, at + 2)?));
        Some(if tiff.starts_with(b"II") { second << 16 | first } else { first << 16 | second })
    };
    let orientation = || {
        let directory = long(4)? as usize;
        let count = usize::from(read(tiff, directory)?);
        let mut entries = (0..count).map(|entry| directory + 2 + entry * 12);
        let entry = entries.find(|&entry| read(tiff, entry) == Some(0x0112))?;
        read(tiff, entry + 8)
    };
    matches!(orientation(), Some(5..=8))
}

pub fn gif(file: &[u8]) -> Result<Size, &'static str> {
    let (width, height) = (le16(file, 6).ok_or(CUT)?, le16(file, 8).ok_or(CUT)?);
    let table = |flags: u8| {
        if flags & 0x80 != 0 { 3 << ((flags & 7) + 1) } else { 0 }
    };
    let flags = *file.get(10).ok_or(CUT)?;
    let mut rest = file.get(13 + table(flags)..).ok_or(CUT)?;
    let mut images = 0;
    loop {
        rest = match rest {
            // The trailer may be missing, as it often is.
            [] | [0x3b, ..] if images > 0 => break,
            [] => return Err(CUT),
            [0x21, _, blocks @ ..] => skip_blocks(blocks)?,
            [0x2c, ..] => {
                let flags = *rest.get(9).ok_or(CUT)?;
                images += 1;
                // After the table comes one byte, then the pixels.
                skip_blocks(rest.get(11 + table(flags)..).ok_or(CUT)?)?
            }
            _ => return Err(WRONG),
        };
    }
    Size::new(width.into(), height.into())
}

/// The data after a list of length-prefixed blocks that ends with an empty one.
fn skip_blocks(mut rest: &[u8]) -> Result<&[u8], &'static str> {
    loop {
        let (&length, after) = rest.split_first().ok_or(CUT)?;
        rest = after.get(usize::from(length)..).ok_or(CUT)?;
        if length == 0 {
            return Ok(rest);
        }
    }
}

pub fn webp(file: &[u8]) -> Result<Size, &'static str> {
    let length = le32(file, 4).ok_or(CUT)? as usize;
    let mut rest = file.get(12..length.saturating_add(8)).ok_or(CUT)?;
    let mut size = None;
    let mut has_pixels = false;
    while !rest.is_empty() {
        let length = le32(rest, 4).ok_or(CUT)? as usize;
        let body = rest.get(8..length.saturating_add(8)).ok_or(CUT)?;
        let own = match rest.get(..4) {
            Some(b"VP8X") => {
                let side = |at: usize| Some(u32::from(le16(body, at)?) | u32::from(*body.get(at + 2)?) << 16);
                Some((side(4).ok_or(CUT)? + 1, side(7).ok_or(CUT)? + 1))
            }
            Some(b"VP8 ") => {
                has_pixels = true;
                if body.get(3..6) != Some(b"\x9d\x01\x2a") {
                    return Err(WRONG);
                }
                let side = |at: usize| Some(u32::from(le16(body, at)? & 0x3fff));
                Some((side(6).ok_or(CUT)?, side(8).ok_or(CUT)?))
            }
            Some(b"VP8L") => {
                has_pixels = true;
                if body.first() != Some(&0x2f) {
                    return Err(WRONG);
                }
                let bits = le32(body, 1).ok_or(CUT)?;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            Some(b"ANMF") => {
                has_pixels = true;
                None
            }
            _ => None,
        };
        // The first chunk that gives a size gives that of the canvas.
        size = size.or(own);
        let padded = length.saturating_add(8 + length % 2);
        rest = rest.get(padded..).unwrap_or_default();
    }
    let (width, height) = size.filter(|_| has_pixels).ok_or(WRONG)?;
    Size::new(width, height)
}

pub fn bmp(file: &[u8]) -> Result<Size, &'static str> {
    let (width, height) = match le32(file, 14).ok_or(CUT)? {
        12 => (le16(file, 18).map(u32::from), le16(file, 20).map(u32::from)),
        // A negative height says that the rows begin at the top.
        _ => (le32(file, 18), le32(file, 22).map(|height| height.cast_signed().unsigned_abs())),
    };
    let start = le32(file, 10).ok_or(CUT)? as usize;
    if start >= file.len() {
        return Err(CUT);
    }
    Size::new(width.ok_or(CUT)?, height.ok_or(CUT)?)
}

pub fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

pub fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}
