//! The colours `oklch(…)` and `okhsl(…)` of theme files, after Björn Ottosson's definitions of Oklab and Okhsl.
//!
//! The edge of what a screen can show is found by halving an interval, where the definitions have polynomials
//! that come near it.

use crate::tui::style::Color;

/// Halvings of an interval: more change no channel.
const STEPS: u32 = 40;

/// No colour of a screen is more saturated, nor has more chroma.
const MOST: f64 = 1.0;

/// A hue, as a direction in the plane of colours.
#[derive(Clone, Copy)]
struct Hue {
    a: f64,
    b: f64,
}

impl Hue {
    fn of(degrees: f64) -> Self {
        let (b, a) = degrees.to_radians().sin_cos();
        Self { a, b }
    }

    /// Red, green and blue before the curve of the screen.
    fn linear(self, lightness: f64, chroma: f64) -> [f64; 3] {
        let (a, b) = (self.a * chroma, self.b * chroma);
        let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
        let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
        let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
        [
            4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
            -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
            -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
        ]
    }

    /// The most chroma that a screen can show at a lightness.
    fn chroma_max(self, lightness: f64) -> f64 {
        let fits = |channel: &f64| (-1e-9..=1.0 + 1e-9).contains(channel);
        edge(|chroma| self.linear(lightness, chroma).iter().all(fits))
    }

    /// Lightness and chroma of the most colourful point.
    fn cusp(self) -> (f64, f64) {
        let saturation =
            edge(|saturation| self.linear(1.0, saturation).iter().all(|channel| *channel >= 0.0));
        let brightest = self.linear(1.0, saturation).into_iter().fold(f64::MIN, f64::max);
        let lightness = (1.0 / brightest).cbrt();
        (lightness, lightness * saturation)
    }

    /// The two slopes of the curve on which colours of all hues look equally colourful.
    fn middle(self) -> (f64, f64) {
        let Self { a, b } = self;
        let s = 4.698_910_13f64.mul_add(a, 5.387_708_19f64.mul_add(b, -4.248_945_61));
        let s = s.mul_add(a, (-10.023_010_43f64).mul_add(b, -2.137_049_48));
        let s = s.mul_add(a, 1.751_984_01f64.mul_add(b, -2.195_573_47));
        let s = s.mul_add(a, 4.159_012_40f64.mul_add(b, 7.447_789_70));
        let t = (-0.146_618_72f64).mul_add(a, (-0.453_995_68f64).mul_add(b, 0.002_992_15));
        let t = t.mul_add(a, 0.612_239_90f64.mul_add(b, -0.270_879_43));
        let t = t.mul_add(a, 0.901_481_23f64.mul_add(b, 0.403_706_12));
        let t = t.mul_add(a, (-0.681_243_79f64).mul_add(b, 1.613_203_20));
        (0.115_169_93 + 1.0 / s, 0.112_396_42 + 1.0 / t)
    }

    fn screen(self, lightness: f64, chroma: f64) -> Color {
        let [red, green, blue] = self.linear(lightness, chroma).map(byte);
        Color::Rgb(red, green, blue)
    }
}

/// The largest number below [`MOST`] of which `is_inside` holds, where it holds for all smaller ones.
fn edge(is_inside: impl Fn(f64) -> bool) -> f64 {
    let (mut inside, mut outside) = (0.0, MOST);
    for _ in 0..STEPS {
        let middle = f64::midpoint(inside, outside);
        match is_inside(middle) {
            true => inside = middle,
            false => outside = middle,
        }
    }
    inside
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and 255
fn byte(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let value = if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}

/// The colour of `oklch(62% 0.1 200)`: lightness and chroma from 0 to 1, hue in degrees. Chroma is cut to what a
/// screen can show.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> Color {
    let hue = Hue::of(hue);
    hue.screen(lightness, chroma.min(hue.chroma_max(lightness)))
}

/// The colour of `okhsl(250 60% 55%)`: hue in degrees, saturation and lightness from 0 to 1.
fn okhsl(hue: f64, saturation: f64, lightness: f64) -> Color {
    /// The saturation that colours of all hues reach with the same colourfulness.
    const MIDDLE: f64 = 0.8;
    if lightness <= 0.0 || lightness >= 1.0 {
        return Hue::of(hue).screen(lightness, 0.0);
    }
    let hue = Hue::of(hue);
    // From how light a colour looks to Oklab's lightness.
    let (k1, k2) = (0.206, 0.03);
    let k3 = (1.0 + k1) / (1.0 + k2);
    let lightness = (lightness * lightness + k1 * lightness) / (k3 * (lightness + k2));
    let dark = 1.0 - lightness;
    let (cusp_lightness, cusp_chroma) = hue.cusp();
    let (s_max, t_max) = (cusp_chroma / cusp_lightness, cusp_chroma / (1.0 - cusp_lightness));
    let most = hue.chroma_max(lightness);
    let (s, t) = hue.middle();
    let middle = {
        let (a, b) = (lightness * s, dark * t);
        let scale = most / (lightness * s_max).min(dark * t_max);
        0.9 * scale * (1.0 / (1.0 / a.powi(4) + 1.0 / b.powi(4))).powf(0.25)
    };
    let least = {
        let (a, b) = (lightness * 0.4, dark * 0.8);
        (1.0 / (1.0 / (a * a) + 1.0 / (b * b))).sqrt()
    };
    let chroma = if saturation < MIDDLE {
        let part = saturation / MIDDLE;
        let slope = MIDDLE * least;
        part * slope / (1.0 - (1.0 - slope / middle) * part)
    } else {
        let part = (saturation - MIDDLE) / (1.0 - MIDDLE);
        let slope = (1.0 - MIDDLE) * (middle / MIDDLE).powi(2) / least;
        middle + part * slope / (1.0 - (1.0 - slope / (most - middle)) * part)
    };
    hue.screen(lightness, chroma)
}

/// The colour that a function of a theme file means. None: `text` is no function.
pub fn parse(text: &str) -> Option<Result<Color, String>> {
    let (name, rest) = text.split_once('(')?;
    let parts = || {
        let parts: Vec<&str> = rest.strip_suffix(')')?.split_whitespace().collect();
        <[&str; 3]>::try_from(parts).ok()
    };
    let color = || match (&*name.to_ascii_lowercase(), parts()?) {
        ("oklch", [l, c, h]) => Some(oklch(share(l)?, number(c)?.clamp(0.0, 1.0), angle(h)?)),
        ("okhsl", [h, s, l]) => Some(okhsl(angle(h)?, share(s)?, share(l)?)),
        _ => None,
    };
    Some(color().ok_or_else(|| format!("Invalid color: {text}")))
}

fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+'));
    text.parse().ok().filter(|_| is_plain)
}

fn percent(text: &str) -> Option<f64> {
    let share = number(text.strip_suffix('%')?)? / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// A percentage, or a number from 0 to 1.
fn share(text: &str) -> Option<f64> {
    percent(text).or_else(|| number(text).filter(|share| (0.0..=1.0).contains(share)))
}

fn angle(text: &str) -> Option<f64> {
    number(text.strip_suffix("deg").unwrap_or(text)).map(|degrees| degrees.rem_euclid(360.0))
}
