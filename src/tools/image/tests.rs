//! Tests of images, with generated PNGs in every form.

use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use png_writer::push_chunk;
use proptest::prelude::*;
use std::io::Write;

/// A form of PNG, with samples derived from `seed`.
#[derive(Clone, Debug)]
struct Form {
    width: u32,
    height: u32,
    color: u8,
    depth: u8,
    interlaced: bool,
    transparency: bool,
    seed: u64,
}

/// Every color type with each of its depths.
const FORMS: &[(u8, u8)] = &[
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 1),
    (3, 2),
    (3, 4),
    (3, 8),
    (4, 8),
    (4, 16),
    (6, 8),
    (6, 16),
];

impl Form {
    fn samples(&self) -> u32 {
        [1, 0, 3, 1, 2, 0, 4][usize::from(self.color)]
    }

    /// The sample as stored.
    fn sample(&self, x: u32, y: u32, sample: u32) -> u16 {
        let at = u64::from(x) << 40 | u64::from(y) << 16 | u64::from(sample);
        let mixed = (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as u16 & (u32::MAX >> (32 - u32::from(self.depth))) as u16
    }

    fn palette(&self) -> Vec<u8> {
        (0..1 << self.depth)
            .flat_map(|index: u32| [index, index * 7, 255 - index].map(|sample| sample as u8))
            .collect()
    }

    /// The pixel that a reader should return.
    fn pixel(&self, x: u32, y: u32) -> Rgba {
        let value = |sample| self.sample(x, y, sample);
        let scale = |value: u16| match self.depth {
            16 => (value >> 8) as u8,
            depth => (u32::from(value) * 255 / ((1 << depth) - 1)) as u8,
        };
        let opaque = |hidden: bool| if hidden && self.transparency { 0 } else { 255 };
        match self.color {
            0 => [scale(value(0)); 3]
                .iter()
                .copied()
                .chain([opaque(value(0) == 1)])
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
            2 => [
                scale(value(0)),
                scale(value(1)),
                scale(value(2)),
                opaque([value(0), value(1), value(2)] == [1, 2, 3]),
            ],
            3 => {
                let index = usize::from(value(0));
                let palette = self.palette();
                let opacity = if self.transparency && index == 0 { 99 } else { 255 };
                [palette[3 * index], palette[3 * index + 1], palette[3 * index + 2], opacity]
            }
            4 => [scale(value(0)), scale(value(0)), scale(value(0)), scale(value(1))],
            _ => [scale(value(0)), scale(value(1)), scale(value(2)), scale(value(3))],
        }
    }

    fn row(&self, y: u32, x_start: u32, step: u32) -> Vec<u8> {
        let samples = (x_start..self.width)
            .step_by(step as usize)
            .flat_map(|x| (0..self.samples()).map(move |sample| (x, sample)));
        let mut row = Vec::new();
        let mut bits = 0;
        for (x, sample) in samples {
            let value = self.sample(x, y, sample);
            match self.depth {
                16 => row.extend(value.to_be_bytes()),
                depth => {
                    if bits % 8 == 0 {
                        row.push(0);
                    }
                    *row.last_mut().unwrap() |= (value as u8) << (8 - depth - bits % 8);
                    bits = (bits + depth) % 8;
                }
            }
        }
        row
    }

    fn file(&self) -> Vec<u8> {
        let passes: &[(u32, u32, u32, u32)] = match self.interlaced {
            false => &[(0, 0, 1, 1)],
            true => &[
                (0, 0, 8, 8),
                (4, 0, 8, 8),
                (0, 4, 4, 8),
                (2, 0, 4, 4),
                (0, 2, 2, 4),
                (1, 0, 2, 2),
                (0, 1, 1, 2),
            ],
        };
        let mut data = ZlibEncoder::new(Vec::new(), Compression::fast());
        for &(x, y, x_step, y_step) in passes {
            let mut above: Vec<u8> = Vec::new();
            for y in (y..self.height).step_by(y_step as usize) {
                let row = self.row(y, x, x_step);
                if row.is_empty() {
                    continue;
                }
                above.resize(row.len(), 0);
                let filter = (y % 5) as u8;
                let pixel = (self.samples() * u32::from(self.depth)).div_ceil(8) as usize;
                let at = |row: &[u8], at: Option<usize>| at.map_or(0, |at| row[at]);
                let filtered = (0..row.len()).map(|index| {
                    let left = index.checked_sub(pixel);
                    row[index].wrapping_sub(match filter {
                        0 => 0,
                        1 => at(&row, left),
                        2 => above[index],
                        3 => u8::midpoint(at(&row, left), above[index]),
                        _ => png::paeth(at(&row, left), above[index], at(&above, left)),
                    })
                });
                data.write_all(&[filter]).unwrap();
                data.write_all(&filtered.collect::<Vec<u8>>()).unwrap();
                above = row;
            }
        }
        let mut file = png::SIGNATURE.to_vec();
        let size = [self.width.to_be_bytes(), self.height.to_be_bytes()].concat();
        let header = [size, vec![self.depth, self.color, 0, 0, self.interlaced.into()]].concat();
        push_chunk(&mut file, *b"IHDR", &header);
        if self.color == 3 {
            push_chunk(&mut file, *b"PLTE", &self.palette());
        }
        if self.transparency {
            let body: &[u8] = match self.color {
                0 => &[0, 1],
                2 => &[0, 1, 0, 2, 0, 3],
                _ => &[99],
            };
            push_chunk(&mut file, *b"tRNS", body);
        }
        // Several chunks, cut anywhere.
        let data = data.finish().unwrap();
        let (one, two) = data.split_at(data.len() / 3);
        push_chunk(&mut file, *b"IDAT", one);
        push_chunk(&mut file, *b"IDAT", two);
        push_chunk(&mut file, *b"IEND", b"");
        file
    }
}

#[derive(Default)]
struct Canvas(std::collections::BTreeMap<(u32, u32), Rgba>);

impl Sink for Canvas {
    fn row(&mut self, y: u32, x: u32, step: u32, pixels: &[Rgba]) {
        for (x, pixel) in (x..).step_by(step as usize).zip(pixels) {
            assert!(self.0.insert((y, x), *pixel).is_none(), "a pixel came twice");
        }
    }
}

fn pixels(file: &[u8]) -> Vec<Rgba> {
    let mut canvas = Canvas::default();
    let png = Png::parse(file).unwrap();
    png.decode(Some(&mut canvas), &CancelToken::new()).unwrap();
    assert_eq!(canvas.0.len() as u32, png.header.width * png.header.height);
    canvas.0.into_values().collect()
}

/// Reference implementation: the mean of the area that each new pixel covers.
fn scaled(form: &Form, to: Size) -> Vec<Rgba> {
    let overlap = |source: u32, from: u32, new: u32, to: u32| {
        let (source, new) = (f64::from(source), f64::from(new));
        let ratio = f64::from(from) / f64::from(to);
        ((source + 1.0).min((new + 1.0) * ratio) - source.max(new * ratio)).max(0.0)
    };
    let mut out = Vec::new();
    for (new_y, new_x) in (0..to.height).flat_map(|y| (0..to.width).map(move |x| (y, x))) {
        let (mut sums, mut area) = ([0.0; 4], 0.0);
        for (y, x) in (0..form.height).flat_map(|y| (0..form.width).map(move |x| (y, x))) {
            let share = overlap(x, form.width, new_x, to.width) * overlap(y, form.height, new_y, to.height);
            if share == 0.0 {
                continue;
            }
            let [r, g, b, a] = form.pixel(x, y).map(f64::from);
            for (sum, value) in sums.iter_mut().zip([r * a, g * a, b * a, a]) {
                *sum += value * share;
            }
            area += share;
        }
        let [r, g, b, a] = sums;
        out.push([r / a, g / a, b / a, a / area].map(|value| value.round() as u8));
    }
    out
}

fn form() -> impl Strategy<Value = Form> {
    let kind = prop::sample::select(FORMS);
    (kind, 1..20_u32, 1..20_u32, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
        |((color, depth), width, height, interlaced, transparency, seed)| Form {
            width,
            height,
            color,
            depth,
            interlaced,
            transparency: transparency && color < 4,
            seed,
        },
    )
}

/// The first bytes of files of each format.
const STARTS: &[&[u8]] = &[
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
    b"\xff\xd8\xff\xe1\0\x20Exif\0\0II\x2a\0\x08\0\0\0\x01\0",
    b"GIF89a",
    b"RIFF\x20\0\0\0WEBPVP8X",
    b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0",
];

proptest! {
    #[test]
    fn every_form_of_png_is_read(form in form()) {
        let expected: Vec<Rgba> = (0..form.height).flat_map(|y| (0..form.width).map(move |x| (x, y)))
            .map(|(x, y)| form.pixel(x, y)).collect();
        prop_assert_eq!(pixels(&form.file()), expected);
    }

    #[test]
    fn a_damaged_png_is_refused(form in form(), at: prop::sample::Index, bit in 0..8_u32) {
        let mut file = form.file();
        let cut = at.index(file.len());
        let check = |file: &[u8]| prepare(file, Kind::Png, &Limits::of(&Model::default(), true), None, &CancelToken::new());
        prop_assert!(check(&file).is_ok());
        prop_assert!(check(&file[..cut]).is_err());
        file[cut] ^= 1_u8 << bit;
        prop_assert!(check(&file).is_err());
    }

    #[test]
    fn any_bytes_can_be_measured(mut bytes: Vec<u8>, start in prop::sample::select(STARTS)) {
        bytes.splice(0..0, start.iter().copied());
        if let Some(kind) = Kind::sniff(&bytes) {
            let _ = measure(&bytes, kind);
            let pixels = Pixels::parse(&bytes, kind).ok().flatten();
            let _ = pixels.map(|pixels| pixels.scale(Size { width: 1, height: 1 }, &CancelToken::new()));
        }
    }
}

proptest! {
    // The plain way to scale is slow.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_form_of_png_is_scaled(form in form(), width in 1..13_u32, height in 1..13_u32) {
        let to = Size { width: width.min(form.width), height: height.min(form.height) };
        let file = form.file();
        let image = Pixels::parse(&file, Kind::Png).unwrap().unwrap().scale(to, &CancelToken::new()).unwrap();
        let near = |a: &Rgba, b: &Rgba| a[3] == 0 || a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= 1);
        let (scaled, image) = (scaled(&form, to), pixels(&image));
        prop_assert_eq!(scaled.len(), image.len());
        for (expected, pixel) in scaled.iter().zip(&image) {
            prop_assert!(near(expected, pixel), "{:?} {:?}", expected, pixel);
        }
    }
}

fn plain(width: u32, height: u32) -> Form {
    Form { width, height, color: 2, depth: 8, interlaced: false, transparency: false, seed: 1 }
}

fn limits(width: u32, height: u32, bytes: u64) -> Limits {
    Limits { width, height, bytes, resize: true }
}

fn decoded(prepared: &Prepared) -> Vec<u8> {
    BASE64_STANDARD.decode(&prepared.data).unwrap()
}

#[test]
fn an_image_within_the_limits_goes_as_it_is() {
    let file = plain(30, 20).file();
    let prepared = prepare(&file, Kind::Png, &limits(30, 20, 1 << 20), None, &CancelToken::new()).unwrap();
    assert_eq!(decoded(&prepared), file);
    assert_eq!((prepared.mime_type, prepared.hints.len()), ("image/png", 0));
}

#[test]
fn an_image_over_the_limits_is_scaled_down() {
    let file = plain(60, 30).file();
    let prepared = prepare(&file, Kind::Png, &limits(40, 40, 1 << 20), None, &CancelToken::new()).unwrap();
    assert_eq!(
        prepared.hints,
        [
            "[Image: original 60x30, displayed at 40x20. Multiply coordinates by 1.50 to map to original image.]"
        ]
    );
    assert_eq!(measure(&decoded(&prepared), Kind::Png), Ok(Size { width: 40, height: 20 }));
    // Noise does not pack: only a smaller image has fewer bytes.
    let prepared = prepare(&file, Kind::Png, &limits(100, 100, 4000), None, &CancelToken::new()).unwrap();
    assert!(prepared.data.len() < 4000);
    assert!(
        prepared.hints[0].starts_with("[Image: original 60x30, displayed at 45x22."),
        "{:?}",
        prepared.hints
    );
    let tiny = prepare(&file, Kind::Png, &limits(100, 100, 50), None, &CancelToken::new());
    assert_eq!(tiny.unwrap_err(), "[Image omitted: could not be resized below the inline image size limit.]");
}

#[test]
fn without_scaling_large_images_are_left_out() {
    let file = plain(60, 30).file();
    let mut limits = limits(40, 40, 1 << 20);
    limits.resize = false;
    let error = prepare(&file, Kind::Png, &limits, None, &CancelToken::new()).unwrap_err();
    assert!(error.starts_with("[Image omitted: 60x30 pixels and 5."), "{error}");
}

#[test]
fn the_limits_are_those_of_the_model() {
    let model: Model = serde_json::from_str(
        r#"{"id":"m","name":"m","api":"a","provider":"p","baseUrl":"","inputLimits":{"images":{"resize":{"maxWidth":100,"maxBytes":5}}}}"#,
    )
    .unwrap();
    assert_eq!(Limits::of(&model, true), limits(100, 2000, 5));
    assert_eq!(Limits::of(&Model::default(), true), limits(2000, 2000, 4_718_592));
    let fit = |width, height| {
        let Size { width, height } = limits(2000, 2000, 1).fit(Size { width, height });
        (width, height)
    };
    assert_eq!(fit(4000, 3000), (2000, 1500));
    assert_eq!(fit(3000, 4000), (1500, 2000));
    assert_eq!(fit(2001, 3), (2000, 3));
    assert_eq!(fit(100_000, 1), (2000, 1));
    assert_eq!(fit(10, 10), (10, 10));
}

#[test]
fn a_bmp_becomes_a_png() {
    let words = |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let longs = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let file = |header: &[u32], bits: u16, rest: &[u8], masks: &[u32], pixels: &[u8]| {
        let start = 14 + 40 + 4 * masks.len() as u32;
        let length = start + pixels.len() as u32;
        let compression = u32::from(masks.len() >= 3 && bits > 8) * 3;
        [
            b"BM".to_vec(),
            longs(&[length, 0, start, 40]),
            longs(header),
            words(&[1, bits]),
            longs(&[compression, 0, 0, 0, 0, 0]),
            longs(masks),
            rest.to_vec(),
            pixels.to_vec(),
        ]
        .concat()
    };
    let (red, green, blue) = ([255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255]);
    for (file, expected) in [
        // 24 bits, from the bottom; rows are padded to four bytes.
        (file(&[1, 2], 24, b"", &[], &[255, 0, 0, 0, 0, 255, 0, 0]), vec![green, blue]),
        // From the top.
        (file(&[1, -2_i32 as u32], 24, b"", &[], &[255, 0, 0, 0, 0, 255, 0, 0]), vec![blue, green]),
        // A palette of two colors.
        (file(&[3, 1], 1, b"", &[0x00ff_0000, 0x0000_ff00], &[0b0100_0000, 0, 0, 0]), vec![red, green, red]),
        (file(&[2, 1], 16, b"", &[], &words(&[0x7c00, 0x001f])), vec![red, blue]),
        (file(&[1, 1], 32, b"", &[0xff, 0xff00, 0x00ff_0000], &[255, 0, 0, 0]), vec![red]),
    ] {
        assert_eq!(Kind::sniff(&file), Some(Kind::Bmp));
        let prepared = prepare(&file, Kind::Bmp, &limits(9, 9, 1 << 20), None, &CancelToken::new()).unwrap();
        assert_eq!(prepared.mime_type, "image/png");
        assert_eq!(prepared.hints, ["[Image converted from image/bmp to image/png.]"]);
        assert_eq!(pixels(&decoded(&prepared)), expected);
        assert!(
            prepare(&file[..file.len() - 1], Kind::Bmp, &limits(9, 9, 1 << 20), None, &CancelToken::new())
                .is_err()
        );
    }
}

#[test]
fn the_other_kinds_are_measured() {
    let jpeg = |parts: &[&[u8]]| [b"\xff\xd8", parts.concat().as_slice()].concat();
    let frame = b"\xff\xc0\0\x11\x08\0\x14\0\x1e\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";
    let turned = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let scan = b"\xff\xda\0\x02pixels\xff\xd9";
    let webp = |kind: &[u8], body: &[u8]| {
        let length = |length: usize| (length as u32).to_le_bytes();
        [b"RIFF", &length(body.len() + 12)[..], b"WEBP", kind, &length(body.len()), body].concat()
    };
    let gif = b"GIF89a\x1e\0\x14\0\x80\0\0rgbrgb\x21\xf9\x01x\0\x2c\0\0\0\0\x1e\0\x14\0\0\x02\x02ab\0\x3b";
    for (kind, file, expected) in [
        (Kind::Jpeg, jpeg(&[frame, scan]), (30, 20)),
        (Kind::Jpeg, jpeg(&[b"\xff\xff", &turned[1..], frame, scan]), (20, 30)),
        (Kind::Gif, gif.to_vec(), (30, 20)),
        (Kind::Webp, webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x1e\0\x14\0"), (30, 20)),
        (Kind::Webp, webp(b"VP8L", b"\x2f\x1d\xc0\x04\0\0"), (30, 20)),
    ] {
        let size = Size { width: expected.0, height: expected.1 };
        assert_eq!(measure(&file, kind), Ok(size), "{kind:?}");
        for cut in 0..file.len() {
            // A GIF without its trailer is one that all readers take.
            let whole = kind == Kind::Gif && cut == file.len() - 1;
            assert_eq!(measure(&file[..cut], kind).is_ok(), whole, "{kind:?} cut at {cut}");
        }
    }
}

#[test]
fn the_first_bytes_tell_the_kind() {
    let animated = [&plain(1, 1).file()[..33], b"\0\0\0\x08acTL"].concat();
    for (head, expected) in [
        (&plain(1, 1).file()[..], Some(Kind::Png)),
        (&animated, None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"\xff\xd8\xff\xe0", Some(Kind::Jpeg)),
        (b"\xff\xd8\xff\xf7", None),
        (b"GIF87a", Some(Kind::Gif)),
        (b"RIFF\0\0\0\0WEBP", Some(Kind::Webp)),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"BM is how this text begins, and it goes on", None),
        (b"<html></html>", None),
        (b"", None),
    ] {
        assert_eq!(Kind::sniff(head), expected);
    }
}
