//! The theme `system`: the terminal's own colours.
//!
//! A terminal that tells its colours gets text that contrasts with its background, on blocks that are a shade of it.
//! Without an answer the colours are numbers of the terminal's palette, which the user has chosen to be readable.

use super::{Role, SYSTEM, Theme, luminance};
use crate::tui::key::Reply;
use crate::tui::style::Color;

/// Contrast of text with its background that is aimed at, as WCAG counts it.
const CONTRAST: f64 = 4.5;

/// Asks for foreground, background and the sixteen colours of the palette.
pub fn queries() -> String {
    let palette = (0..16).map(|number| format!("\x1b]4;{number};?\x07"));
    palette.chain(["\x1b]10;?\x07".to_owned(), "\x1b]11;?\x07".to_owned()]).collect()
}

type Rgb = [u8; 3];

/// Colours that the terminal has told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Colors {
    foreground: Option<Rgb>,
    background: Option<Rgb>,
    palette: [Option<Rgb>; 16],
}

impl Colors {
    pub(super) fn new(foreground: Rgb, background: Rgb, palette: [Rgb; 16]) -> Self {
        Self { foreground: Some(foreground), background: Some(background), palette: palette.map(Some) }
    }

    /// Takes a reply of the terminal; false if it says nothing new about colours.
    pub fn take(&mut self, reply: &Reply) -> bool {
        let (place, color) = match *reply {
            Reply::Foreground(red, green, blue) => (&mut self.foreground, [red, green, blue]),
            Reply::Background(red, green, blue) => (&mut self.background, [red, green, blue]),
            Reply::Palette(number, red, green, blue) => match self.palette.get_mut(usize::from(number)) {
                Some(place) => (place, [red, green, blue]),
                None => return false,
            },
            _ => return false,
        };
        place.replace(color) != Some(color)
    }

    pub fn theme(&self) -> Theme {
        Theme { name: SYSTEM.to_owned(), colors: Role::ALL.map(|role| self.color(role)) }
    }

    fn color(&self, role: Role) -> Color {
        match paint_of(role) {
            Paint::Text => self.text(0),
            Paint::Faint => self.text(FAINT),
            Paint::Line => match self.background {
                Some(ground) => rgb(mix(self.front(ground), ground, LINE)),
                None => Color::Indexed(GREY),
            },
            Paint::Hue(number) => self.hue(number),
            Paint::Block(None) => match self.background {
                Some(ground) => rgb(self.block(ground)),
                None => Color::Default,
            },
            Paint::Block(Some(number)) => {
                match (self.background, self.palette.get(usize::from(number)).copied().flatten()) {
                    (Some(ground), Some(hue)) => rgb(mix(ground, hue, BLOCK)),
                    (Some(ground), None) => rgb(self.block(ground)),
                    (None, _) => Color::Default,
                }
            }
            Paint::Match => Color::Indexed(YELLOW),
            Paint::OnMatch => match self.palette[usize::from(YELLOW)] {
                Some(ground) if luminance(ground) < MIDDLE => rgb([255; 3]),
                _ => rgb([0; 3]),
            },
        }
    }

    /// Colour of text that is mixed with the background by `percent`.
    fn text(&self, percent: u32) -> Color {
        let Some(ground) = self.background else {
            return if percent == 0 { Color::Default } else { Color::Indexed(GREY) };
        };
        let front = self.front(ground);
        let wanted = mix(front, ground, percent);
        match self.readable(wanted, ground) {
            found if found == front => Color::Default,
            found => rgb(found),
        }
    }

    /// A colour of the palette, or one like it that can be read.
    fn hue(&self, number: u8) -> Color {
        let told = self.palette.get(usize::from(number)).copied().flatten();
        match (told, self.background) {
            (Some(hue), Some(ground)) => match self.readable(hue, ground) {
                found if found == hue => Color::Indexed(number),
                found => rgb(found),
            },
            _ => Color::Indexed(number),
        }
    }

    /// The colour of usual text, guessed if the terminal has not told it.
    fn front(&self, ground: Rgb) -> Rgb {
        self.foreground.unwrap_or_else(|| opposite(ground))
    }

    /// The background of a block.
    fn block(&self, ground: Rgb) -> Rgb {
        mix(ground, self.front(ground), BLOCK)
    }

    /// The colour, moved away from the background until text in it can be read, on blocks, too.
    fn readable(&self, color: Rgb, ground: Rgb) -> Rgb {
        let hues = self.palette.iter().flatten().map(|hue| mix(ground, *hue, BLOCK));
        let grounds: Vec<Rgb> = [ground, self.block(ground)].into_iter().chain(hues).collect();
        let can_be_read = |color: &Rgb| grounds.iter().all(|ground| contrast(*color, *ground) >= CONTRAST);
        let target = opposite(ground);
        let mut steps = (0..=100).step_by(5).map(|percent| mix(color, target, percent));
        steps.find(can_be_read).unwrap_or(target)
    }
}

const GREY: u8 = 8;
const YELLOW: u8 = 3;

/// Percent of the background in faint text, and in lines.
const FAINT: u32 = 35;
const LINE: u32 = 65;
/// Percent of the other colour in the background of a block.
const BLOCK: u32 = 8;

/// The luminance from which on black contrasts more than white.
const MIDDLE: f64 = 0.179;

/// What a role is painted with.
enum Paint {
    Text,
    Faint,
    /// Borders, rules: need not be read.
    Line,
    /// A colour of the palette.
    Hue(u8),
    /// A shade of the background, with a colour of the palette or without.
    Block(Option<u8>),
    Match,
    OnMatch,
}

fn paint_of(role: Role) -> Paint {
    use Paint::{Block, Faint, Hue, Line, Match, OnMatch, Text};
    let [red, green, yellow, blue, magenta, cyan] = [1, 2, YELLOW, 4, 5, 6];
    match role {
        Role::Text
        | Role::UserMessageText
        | Role::CustomMessageText
        | Role::ToolTitle
        | Role::SyntaxVariable
        | Role::SyntaxOperator => Text,
        Role::Muted
        | Role::Dim
        | Role::ThinkingText
        | Role::ToolOutput
        | Role::MdLinkUrl
        | Role::MdQuote
        | Role::ToolDiffContext
        | Role::SyntaxComment
        | Role::SyntaxPunctuation => Faint,
        Role::BorderMuted
        | Role::ScrollbarTrack
        | Role::MdCodeBlockBorder
        | Role::MdQuoteBorder
        | Role::MdHr
        | Role::ThinkingOff
        | Role::ThinkingMinimal => Line,
        Role::ScrollbarThumb => Faint,
        Role::Border | Role::MdLink | Role::SyntaxFunction | Role::ThinkingLow => Hue(blue),
        Role::Accent
        | Role::BorderAccent
        | Role::MdCode
        | Role::MdListBullet
        | Role::SyntaxType
        | Role::ThinkingMedium => Hue(cyan),
        Role::Success | Role::ToolDiffAdded | Role::MdCodeBlock | Role::SyntaxString | Role::BashMode => {
            Hue(green)
        }
        Role::Error | Role::ToolDiffRemoved | Role::ThinkingXhigh | Role::ThinkingMax => Hue(red),
        Role::Warning | Role::MdHeading | Role::SyntaxNumber => Hue(yellow),
        Role::CustomMessageLabel | Role::SyntaxKeyword | Role::ThinkingHigh => Hue(magenta),
        Role::SelectedBg | Role::UserMessageBg | Role::ToolPendingBg => Block(None),
        Role::CustomMessageBg => Block(Some(magenta)),
        Role::ToolSuccessBg => Block(Some(green)),
        Role::ToolErrorBg => Block(Some(red)),
        Role::SearchMatchBg => Match,
        Role::SearchMatchText => OnMatch,
    }
}

pub(super) fn rgb([red, green, blue]: Rgb) -> Color {
    Color::Rgb(red, green, blue)
}

/// `color` with `percent` of `other`.
fn mix(color: Rgb, other: Rgb, percent: u32) -> Rgb {
    let channel = |index: usize| {
        let sum = u32::from(color[index]) * (100 - percent) + u32::from(other[index]) * percent;
        u8::try_from(sum / 100).unwrap_or(u8::MAX)
    };
    [channel(0), channel(1), channel(2)]
}

/// Black or white, whichever can be read on the colour.
fn opposite(ground: Rgb) -> Rgb {
    if luminance(ground) < MIDDLE { [255; 3] } else { [0; 3] }
}

fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::style::palette;

    fn told(foreground: Rgb, background: Rgb, palette: impl Fn(u8) -> Rgb) -> Colors {
        let mut colors = Colors::default();
        let [r, g, b] = foreground;
        assert!(colors.take(&Reply::Foreground(r, g, b)));
        let [r, g, b] = background;
        assert!(colors.take(&Reply::Background(r, g, b)));
        for number in 0..16 {
            let [r, g, b] = palette(number);
            assert!(colors.take(&Reply::Palette(number, r, g, b)));
        }
        colors
    }

    /// The colour as the terminal shows it.
    fn shown(colors: &Colors, color: Color) -> Rgb {
        match color {
            Color::Default => colors.foreground.unwrap(),
            Color::Indexed(number) => colors.palette[usize::from(number)].unwrap(),
            Color::Rgb(red, green, blue) => [red, green, blue],
        }
    }

    #[test]
    fn text_can_be_read_on_any_background() {
        let solarized = |number: u8| {
            let all =
                [[7, 54, 66], [220, 50, 47], [133, 153, 0], [181, 137, 0], [38, 139, 210], [211, 54, 130]];
            all.get(usize::from(number)).copied().unwrap_or([0, 43, 54])
        };
        let terminals = [
            told([255; 3], [0; 3], palette),
            told([0; 3], [255; 3], palette),
            told([131, 148, 150], [0, 43, 54], solarized),
            told([101, 123, 131], [253, 246, 227], solarized),
            told([60; 3], [50; 3], palette),
            told([200; 3], [118; 3], |_| [118; 3]),
            told([200; 3], [120; 3], |number| [number * 16, 200, 90]),
        ];
        for colors in terminals {
            let ground = colors.background.unwrap();
            for role in Role::ALL.into_iter().filter(|role| !role.is_background()) {
                if matches!(paint_of(role), Paint::Line | Paint::OnMatch) {
                    continue;
                }
                let shown = shown(&colors, colors.color(role));
                // On a middle grey no colour has more contrast than black or white.
                let most = contrast(opposite(ground), ground);
                let found = contrast(shown, ground);
                assert!(found >= CONTRAST.min(most) - 0.001, "{role:?} {shown:?} on {ground:?}: {found}");
            }
        }
    }

    #[test]
    fn without_answers_the_palette_decides() {
        let theme = Colors::default().theme();
        assert_eq!(theme.name, "system");
        for role in Role::ALL {
            let color = theme.color(role);
            let is_own = matches!(color, Color::Default | Color::Indexed(0..16));
            assert!(is_own || role == Role::SearchMatchText, "{role:?} {color:?}");
        }
    }

    #[test]
    fn what_can_be_read_stays_the_terminals_own() {
        let colors = told([255; 3], [0; 3], |_| [240; 3]);
        assert_eq!(colors.color(Role::Text), Color::Default);
        assert_eq!(colors.color(Role::Error), Color::Indexed(1));
        let mut again = colors.clone();
        assert!(!again.take(&Reply::Background(0, 0, 0)) && !again.take(&Reply::Palette(99, 1, 1, 1)));
    }
}
