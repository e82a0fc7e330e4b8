//! Prepares images for a model.
//!
//! A provider rejects a whole conversation because of one unreadable or too large image, again on every later
//! turn. So an image is identified by its first bytes, never by its name; its file is checked to the end; and
//! an image over the model's limits is scaled down or left out with the reason. PNG and BMP are scaled here,
//! other formats by an installed program.

mod bmp;
mod header;
mod png;
mod png_writer;
mod program;
mod scale;

use super::sandbox::Sandbox;
use super::truncate;
use crate::agent::CancelToken;
use crate::llm::model::Model;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use header::{Size, be32, le16, le32};
use png::{Png, Rgba, Sink};
use png_writer::{Color, Writer};
use scale::Scaler;

/// Bytes at the start of a file that identify its format.
pub const SNIFF_BYTES: usize = 4100;
/// Maximum size of an image file, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
}

impl Kind {
    /// The image format of a file with this start. Animated PNG and lossless JPEG are excluded, since
    /// providers reject them.
    pub fn sniff(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\xff\xd8\xff") {
            return (head.get(3) != Some(&0xf7)).then_some(Self::Jpeg);
        }
        if head.starts_with(png::SIGNATURE) {
            let begins_well = head.get(8..16) == Some(b"\0\0\0\x0dIHDR");
            return (begins_well && !png::is_animated(head)).then_some(Self::Png);
        }
        if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
            return Some(Self::Gif);
        }
        if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
            return Some(Self::Webp);
        }
        (head.starts_with(b"BM") && is_bmp(head) == Some(true)).then_some(Self::Bmp)
    }

    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Bmp => "image/bmp",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Gif => "gif",
            Self::Webp => "webp",
            Self::Bmp => "bmp",
        }
    }
}

/// Checks the whole header, since many texts also begin with `BM`.
fn is_bmp(head: &[u8]) -> Option<bool> {
    let (file, pixels, header) = (le32(head, 2)?, le32(head, 10)?, le32(head, 14)?);
    let (planes, bits) = match header {
        12 => (le16(head, 22)?, le16(head, 24)?),
        40..=124 => (le16(head, 26)?, le16(head, 28)?),
        _ => return None,
    };
    Some(
        (file == 0 || (file >= 26 && pixels < file))
            && pixels >= 14 + header
            && planes == 1
            && matches!(bits, 1 | 4 | 8 | 16 | 24 | 32),
    )
}

/// A model's limits for images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest width, in pixels.
    pub width: u32,
    pub height: u32,
    /// Limit that the length of the base64 text must stay below.
    pub bytes: u64,
    /// True to scale images down to the limits; otherwise they are left out, and the limit on pixels is that
    /// of providers.
    pub resize: bool,
}

impl Limits {
    /// The limits of `model`; if unknown, limits that every provider accepts.
    pub fn of(model: &Model, resize: bool) -> Self {
        let images = model.input_limits.as_ref().and_then(|limits| limits.images.as_ref());
        let own = images.and_then(|images| images.resize.as_ref());
        let side = if resize { 2000 } else { 8000 };
        Self {
            width: own.and_then(|own| own.max_width).unwrap_or(side).max(1),
            height: own.and_then(|own| own.max_height).unwrap_or(side).max(1),
            bytes: own.and_then(|own| own.max_bytes).unwrap_or(4_718_592),
            resize,
        }
    }

    fn allow(&self, size: Size, file: &[u8]) -> bool {
        size.width <= self.width && size.height <= self.height && self.allow_bytes(file)
    }

    fn allow_bytes(&self, file: &[u8]) -> bool {
        (file.len() as u64).div_ceil(3) * 4 < self.bytes
    }

    /// The largest size within the limits, with the proportions of `size`.
    fn fit(&self, size: Size) -> Size {
        let scale = |side: u32, to: u32, of: u32| {
            let (side, to, of) = (u64::from(side), u64::from(to), u64::from(of));
            u32::try_from((side * to + of / 2) / of).unwrap_or(u32::MAX).max(1)
        };
        let Size { mut width, mut height } = size;
        if width > self.width {
            (width, height) = (self.width, scale(height, self.width, width));
        }
        if height > self.height {
            (width, height) = (scale(width, self.height, height), self.height);
        }
        Size { width, height }
    }
}

/// An image ready for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The file as base64.
    pub data: String,
    pub mime_type: &'static str,
    /// Lines about changes of the image, for the text beside it.
    pub hints: Vec<String>,
}

/// Prepares an image for a model; helper programs run in `sandbox`. The error is a note in brackets that
/// replaces the image.
pub fn prepare(
    file: &[u8],
    kind: Kind,
    limits: &Limits,
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> Result<Prepared, String> {
    let damaged = |why: &str| damaged(kind, why);
    let size = measure(file, kind).map_err(damaged)?;
    let (image, new_kind) = if kind != Kind::Bmp && limits.allow(size, file) {
        if kind == Kind::Png {
            Png::parse(file).and_then(|png| png.decode(None, cancel)).map_err(damaged)?;
        }
        (None, kind)
    } else if limits.resize || (kind == Kind::Bmp && limits.allow(size, b"")) {
        let (image, kind) = shrink(file, kind, size, limits, sandbox, cancel)?;
        (Some(image), kind)
    } else {
        return Err(format!(
            "[Image omitted: {}x{} pixels and {} are over the limit, and scaling is switched off (images.autoResize).]",
            size.width,
            size.height,
            truncate::size(file.len() as u64),
        ));
    };
    let image = image.as_deref().unwrap_or(file);
    let new_size = measure(image, new_kind).map_err(damaged)?;
    let mut hints = Vec::new();
    if new_kind != kind {
        let (from, to) = (kind.mime_type(), new_kind.mime_type());
        hints.push(format!("[Image converted from {from} to {to}.]"));
    }
    if new_size != size {
        let scale = f64::from(size.width) / f64::from(new_size.width);
        hints.push(format!(
            "[Image: original {}x{}, displayed at {}x{}. Multiply coordinates by {scale:.2} to map to original image.]",
            size.width, size.height, new_size.width, new_size.height
        ));
    }
    Ok(Prepared { data: BASE64_STANDARD.encode(image), mime_type: new_kind.mime_type(), hints })
}

fn damaged(kind: Kind, why: &str) -> String {
    let kind = kind.name().to_uppercase();
    format!("[Image omitted: this {kind} file cannot be used, since {why}.]")
}

/// Width and height in pixels of an image in base64; `None` if it is not a complete image.
pub fn size_of(base64: &str) -> Option<(u32, u32)> {
    let decode = |text: &str| BASE64_STANDARD.decode(text).ok();
    let head = decode(base64.get(..base64.len().min(SNIFF_BYTES) / 4 * 4)?)?;
    let size = match Kind::sniff(&head)? {
        // It begins with its size.
        Kind::Png => Size { width: be32(&head, 16)?, height: be32(&head, 20)? },
        kind => measure(&decode(base64)?, kind).ok()?,
    };
    Some((size.width, size.height))
}

fn measure(file: &[u8], kind: Kind) -> Result<Size, &'static str> {
    match kind {
        Kind::Png => Png::parse(file).map(|png| Size { width: png.header.width, height: png.header.height }),
        Kind::Jpeg => header::jpeg(file),
        Kind::Gif => header::gif(file),
        Kind::Webp => header::webp(file),
        Kind::Bmp => header::bmp(file),
    }
}

/// Scales down until the image is within all limits.
fn shrink(
    file: &[u8],
    kind: Kind,
    size: Size,
    limits: &Limits,
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> Result<(Vec<u8>, Kind), String> {
    let own = Pixels::parse(file, kind).map_err(|why| damaged(kind, why))?;
    let mut target = limits.fit(size);
    loop {
        let (image, new_kind) = match &own {
            Some(pixels) => {
                let image = pixels.scale(target, cancel).map_err(|why| damaged(kind, why))?;
                (image, Kind::Png)
            }
            None => {
                let to = if kind == Kind::Jpeg { Kind::Jpeg } else { Kind::Png };
                let image = program::scale(file, kind, to, target, sandbox, cancel);
                (image.ok_or_else(|| no_program(file, kind, size))?, to)
            }
        };
        if limits.allow_bytes(&image) {
            return Ok((image, new_kind));
        }
        if target.width == 1 && target.height == 1 {
            return Err("[Image omitted: could not be resized below the inline image size limit.]".into());
        }
        let smaller = |side: u32| (side - side.div_ceil(4)).max(1);
        target = Size { width: smaller(target.width), height: smaller(target.height) };
    }
}

fn no_program(file: &[u8], kind: Kind, size: Size) -> String {
    let (name, bytes) = (kind.name().to_uppercase(), truncate::size(file.len() as u64));
    let Size { width, height } = size;
    format!(
        "[Image omitted: {width}x{height} pixels and {bytes} are too much for the model, and this machine has no program that could make a smaller one of a {name} file (magick, sips or ffmpeg). Make a smaller PNG of it first.]"
    )
}

/// An image in a format that is decoded here.
enum Pixels<'a> {
    Png(Png<'a>),
    Bmp(bmp::Bmp<'a>),
}

impl<'a> Pixels<'a> {
    /// `None` for other formats and variants.
    fn parse(file: &'a [u8], kind: Kind) -> Result<Option<Self>, &'static str> {
        match kind {
            Kind::Png => Png::parse(file).map(|png| Some(Self::Png(png))),
            Kind::Bmp => bmp::Bmp::parse(file).map(|bmp| bmp.map(Self::Bmp)),
            Kind::Jpeg | Kind::Gif | Kind::Webp => Ok(None),
        }
    }

    fn size(&self) -> (u32, u32) {
        match self {
            Self::Png(png) => (png.header.width, png.header.height),
            Self::Bmp(bmp) => (bmp.size.width, bmp.size.height),
        }
    }

    fn color(&self) -> Color {
        match self {
            Self::Png(png) if png.has_opacity() => Color::Rgba,
            Self::Png(png) if png.is_gray() => Color::Gray,
            Self::Bmp(bmp) if bmp.has_opacity() => Color::Rgba,
            _ => Color::Rgb,
        }
    }

    fn decode(&self, sink: &mut dyn Sink, cancel: &CancelToken) -> Result<(), &'static str> {
        match self {
            Self::Png(png) => png.decode(Some(sink), cancel),
            Self::Bmp(bmp) => bmp.decode(sink, cancel),
        }
    }

    /// The image as a PNG of the size `to`.
    fn scale(&self, to: Size, cancel: &CancelToken) -> Result<Vec<u8>, &'static str> {
        const UNWRITTEN: &str = "the new image could not be written";
        let mut writer = Writer::new(to.width, to.height, self.color());
        let mut written = Ok(());
        let mut out = |row: &[Rgba]| {
            if written.is_ok() {
                written = writer.row(row);
            }
        };
        let in_order = !matches!(self, Self::Png(png) if png.header.interlaced);
        let mut scaler = Scaler::new(self.size(), (to.width, to.height), in_order, &mut out);
        self.decode(&mut scaler, cancel)?;
        scaler.finish();
        written.map_err(|_| UNWRITTEN)?;
        writer.finish().map_err(|_| UNWRITTEN)
    }
}

#[cfg(test)]
mod tests;
