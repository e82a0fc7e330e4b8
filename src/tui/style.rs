//! Colours and attributes of text, and their escape sequences.

use std::fmt::Write;

/// Colours and attributes of text. The default is the terminal's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    pub foreground: Color,
    pub background: Color,
    pub attributes: Attributes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// The terminal's default.
    #[default]
    Default,
    /// A colour of the 256-colour palette; the user defines the first 16.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// A set of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(u8);

impl Attributes {
    pub const BOLD: Self = Self(1);
    pub const DIM: Self = Self(2);
    pub const ITALIC: Self = Self(4);
    pub const UNDERLINE: Self = Self(8);
    pub const INVERSE: Self = Self(16);
    pub const STRIKE: Self = Self(32);

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Attributes with their numbers in `CSI m`.
const NUMBERS: [(Attributes, u8); 6] = [
    (Attributes::BOLD, 1),
    (Attributes::DIM, 2),
    (Attributes::ITALIC, 3),
    (Attributes::UNDERLINE, 4),
    (Attributes::INVERSE, 7),
    (Attributes::STRIKE, 9),
];

/// The colours that a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Attributes only, no colours.
    None,
    Sixteen,
    Indexed,
    #[default]
    True,
}

impl Style {
    pub const PLAIN: Self =
        Self { foreground: Color::Default, background: Color::Default, attributes: Attributes(0) };

    pub fn foreground(color: Color) -> Self {
        Self { foreground: color, ..Self::PLAIN }
    }

    pub fn background(color: Color) -> Self {
        Self { background: color, ..Self::PLAIN }
    }

    /// Adds attributes.
    pub fn with(self, attributes: Attributes) -> Self {
        Self { attributes: self.attributes | attributes, ..self }
    }

    /// This style on top of `below`: colours that are not set show what is below.
    pub fn over(self, below: Self) -> Self {
        let pick = |own, other| if own == Color::Default { other } else { own };
        Self {
            foreground: pick(self.foreground, below.foreground),
            background: pick(self.background, below.background),
            attributes: self.attributes | below.attributes,
        }
    }

    /// Writes the sequence that sets this style, whatever was set before.
    pub fn write(self, depth: Depth, out: &mut String) {
        out.push_str("\x1b[0");
        for (attribute, number) in NUMBERS {
            if self.attributes.has(attribute) {
                let _ = write!(out, ";{number}");
            }
        }
        self.foreground.write(depth, 30, out);
        self.background.write(depth, 40, out);
        out.push('m');
    }
}

impl Color {
    /// Writes the colour's parameters. `base`: 30 for text, 40 for background.
    fn write(self, depth: Depth, base: u8, out: &mut String) {
        let _ = match self.within(depth) {
            Self::Default => Ok(()),
            Self::Indexed(color @ 0..=7) => write!(out, ";{}", base + color),
            Self::Indexed(color @ 8..=15) => write!(out, ";{}", base + 52 + color),
            Self::Indexed(color) => write!(out, ";{};5;{color}", base + 8),
            Self::Rgb(red, green, blue) => write!(out, ";{};2;{red};{green};{blue}", base + 8),
        };
    }

    /// The nearest colour that the terminal supports.
    pub fn within(self, depth: Depth) -> Self {
        match (self, depth) {
            (_, Depth::None) => Self::Default,
            (Self::Rgb(red, green, blue), Depth::Indexed) => {
                Self::Indexed(nearest([red, green, blue], 16, 255))
            }
            (Self::Rgb(red, green, blue), Depth::Sixteen) => {
                Self::Indexed(nearest([red, green, blue], 0, 15))
            }
            (Self::Indexed(color @ 16..), Depth::Sixteen) => Self::Indexed(nearest(palette(color), 0, 15)),
            (color, _) => color,
        }
    }
}

/// RGB value of a colour in xterm's palette.
pub fn palette(color: u8) -> [u8; 3] {
    const FIRST: [[u8; 3]; 16] = [
        [0, 0, 0],
        [205, 0, 0],
        [0, 205, 0],
        [205, 205, 0],
        [0, 0, 238],
        [205, 0, 205],
        [0, 205, 205],
        [229, 229, 229],
        [127, 127, 127],
        [255, 0, 0],
        [0, 255, 0],
        [255, 255, 0],
        [92, 92, 255],
        [255, 0, 255],
        [0, 255, 255],
        [255, 255, 255],
    ];
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |index: u8| STEPS.get(usize::from(index)).copied().unwrap_or(255);
    match color {
        0..=15 => FIRST.get(usize::from(color)).copied().unwrap_or_default(),
        16..=231 => {
            let color = color - 16;
            [step(color / 36), step(color / 6 % 6), step(color % 6)]
        }
        232.. => [8 + 10 * (color - 232); 3],
    }
}

fn nearest(wanted: [u8; 3], first: u8, last: u8) -> u8 {
    let distance = |color: &u8| -> u32 {
        let channels = palette(*color).into_iter().zip(wanted);
        // The eye tells greens apart best, then reds.
        let weighted = channels.zip([3, 4, 2]);
        weighted.map(|((a, b), weight)| weight * u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    (first..=last).min_by_key(distance).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(style: Style, depth: Depth, expected: &str) {
        let mut out = String::new();
        style.write(depth, &mut out);
        assert_eq!(out, format!("\x1b[{expected}m"));
    }

    #[test]
    fn styles_become_sequences() {
        let red = Color::Rgb(255, 0, 0);
        check(Style::PLAIN, Depth::True, "0");
        check(Style::foreground(red), Depth::True, "0;38;2;255;0;0");
        check(Style::background(red), Depth::Indexed, "0;48;5;196");
        check(Style::foreground(red), Depth::Sixteen, "0;91");
        check(Style::background(red), Depth::Sixteen, "0;101");
        check(Style::foreground(red).with(Attributes::BOLD), Depth::None, "0;1");
        check(Style::foreground(Color::Indexed(3)), Depth::True, "0;33");
        check(Style::background(Color::Indexed(244)), Depth::True, "0;48;5;244");
        check(Style::PLAIN.with(Attributes::DIM | Attributes::STRIKE), Depth::True, "0;2;9");
    }

    #[test]
    fn a_colour_of_the_palette_is_its_own_nearest() {
        for color in 16..=255 {
            let [red, green, blue] = palette(color);
            let found = Color::Rgb(red, green, blue).within(Depth::Indexed);
            let Color::Indexed(found) = found else { panic!("{color}") };
            assert_eq!(palette(found), palette(color));
        }
    }

    #[test]
    fn a_style_shows_what_is_below_where_it_says_nothing() {
        let below = Style { foreground: Color::Indexed(1), ..Style::background(Color::Indexed(2)) };
        let above = Style::foreground(Color::Indexed(3)).with(Attributes::BOLD);
        let both = above.over(below);
        assert_eq!(both.foreground, Color::Indexed(3));
        assert_eq!(both.background, Color::Indexed(2));
        assert!(both.attributes.has(Attributes::BOLD));
    }
}
