//! Themes: the colours of the parts of the screen, in the JSON format of the reference.
//!
//! A part is a [`Role`]; a theme has a colour for every role, so none can be missing while drawing. A file
//! may omit five, which then use another role's colour; all other errors are reported together on reading,
//! with the names of the keys.
//!
//! Not here: where theme files lie, and reading them again when they change.

mod built_in;
mod file;
mod limited;
mod oklab;
pub mod palettes;
pub mod schema;
pub mod system;

use super::style::{Color, Depth, Style, palette};

/// Separator of a pair in the setting `theme`; no name contains it.
pub const PAIR: char = '/';

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    pub name: String,
    colors: [Color; Role::ALL.len()],
}

macro_rules! roles {
    ($($role:ident $name:literal,)*) => {
        /// The use of a colour.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Role {
            $($role,)*
        }

        impl Role {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$role),*];

            /// Key of the role in a theme file.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$role => $name,)*
                }
            }
        }
    };
}

roles! {
    Accent "accent",
    Border "border",
    BorderAccent "borderAccent",
    BorderMuted "borderMuted",
    Success "success",
    Error "error",
    Warning "warning",
    Muted "muted",
    Dim "dim",
    Text "text",
    ThinkingText "thinkingText",
    ScrollbarTrack "scrollbarTrack",
    ScrollbarThumb "scrollbarThumb",
    SelectedBg "selectedBg",
    SearchMatchBg "searchMatchBg",
    SearchMatchText "searchMatchText",
    UserMessageBg "userMessageBg",
    UserMessageText "userMessageText",
    CustomMessageBg "customMessageBg",
    CustomMessageText "customMessageText",
    CustomMessageLabel "customMessageLabel",
    ToolPendingBg "toolPendingBg",
    ToolSuccessBg "toolSuccessBg",
    ToolErrorBg "toolErrorBg",
    ToolTitle "toolTitle",
    ToolOutput "toolOutput",
    MdHeading "mdHeading",
    MdLink "mdLink",
    MdLinkUrl "mdLinkUrl",
    MdCode "mdCode",
    MdCodeBlock "mdCodeBlock",
    MdCodeBlockBorder "mdCodeBlockBorder",
    MdQuote "mdQuote",
    MdQuoteBorder "mdQuoteBorder",
    MdHr "mdHr",
    MdListBullet "mdListBullet",
    ToolDiffAdded "toolDiffAdded",
    ToolDiffRemoved "toolDiffRemoved",
    ToolDiffContext "toolDiffContext",
    SyntaxComment "syntaxComment",
    SyntaxKeyword "syntaxKeyword",
    SyntaxFunction "syntaxFunction",
    SyntaxVariable "syntaxVariable",
    SyntaxString "syntaxString",
    SyntaxNumber "syntaxNumber",
    SyntaxType "syntaxType",
    SyntaxOperator "syntaxOperator",
    SyntaxPunctuation "syntaxPunctuation",
    ThinkingOff "thinkingOff",
    ThinkingMinimal "thinkingMinimal",
    ThinkingLow "thinkingLow",
    ThinkingMedium "thinkingMedium",
    ThinkingHigh "thinkingHigh",
    ThinkingXhigh "thinkingXhigh",
    ThinkingMax "thinkingMax",
    BashMode "bashMode",
}

impl Role {
    /// True if the role is a background.
    pub fn is_background(self) -> bool {
        self.name().ends_with("Bg")
    }

    /// The role whose colour is used if a theme omits this one.
    pub fn fallback(self) -> Option<Self> {
        Some(match self {
            Self::ScrollbarTrack => Self::Muted,
            Self::ScrollbarThumb | Self::SearchMatchText => Self::Text,
            Self::SearchMatchBg => Self::SelectedBg,
            Self::ThinkingMax => Self::ThinkingXhigh,
            _ => return None,
        })
    }
}

impl Theme {
    pub fn dark() -> Self {
        Self::built("dark", built_in::dark)
    }

    pub fn light() -> Self {
        Self::built("light", built_in::light)
    }

    /// A built-in theme.
    pub fn built_in(name: &str) -> Option<Self> {
        match name {
            "dark" => Some(Self::dark()),
            "light" => Some(Self::light()),
            _ => None,
        }
    }

    fn built(name: &str, color: fn(Role) -> Color) -> Self {
        Self { name: name.to_owned(), colors: Role::ALL.map(color) }
    }

    /// The theme on a terminal with these colours: the built-in ones have numbers of their own in palettes.
    pub fn within(mut self, depth: Depth) -> Self {
        let built_in = [("dark", built_in::dark as fn(Role) -> Color), ("light", built_in::light)];
        let is_own = |(name, color): &(&str, fn(Role) -> Color)| {
            self.name == *name && Role::ALL.iter().all(|role| self.color(*role) == color(*role))
        };
        let own = built_in.iter().find(|theme| is_own(theme)).map(|(name, _)| *name == "light");
        let is_light = match self.color(Role::UserMessageBg) {
            // It has blocks if the terminal has told its background.
            Color::Rgb(red, green, blue) if self.name == SYSTEM => {
                Some(Backdrop::of(red, green, blue) == Backdrop::Light)
            }
            _ => own,
        };
        if let Some(is_light) = is_light {
            for (color, role) in self.colors.iter_mut().zip(Role::ALL) {
                *color = limited::color(is_light, role, depth).unwrap_or(*color);
            }
        }
        self
    }

    /// Parses a theme file; `label` names the file in the error.
    pub fn parse(label: &str, text: &str) -> Result<Self, String> {
        file::parse(label, text)
    }

    pub fn color(&self, role: Role) -> Color {
        self.colors.get(role as usize).copied().unwrap_or_default()
    }

    /// Style for text in the role's colour, or on its background.
    pub fn style(&self, role: Role) -> Style {
        match role.is_background() {
            true => Style::background(self.color(role)),
            false => Style::foreground(self.color(role)),
        }
    }
}

/// Background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backdrop {
    Dark,
    Light,
}

impl Backdrop {
    /// Classifies a colour reported by the terminal as dark or light.
    pub fn of(red: u8, green: u8, blue: u8) -> Self {
        match luminance([red, green, blue]) >= 0.5 {
            true => Self::Light,
            false => Self::Dark,
        }
    }

    /// Reads `COLORFGBG`, which some terminals set; its last number is the background.
    pub fn of_variable(value: &str) -> Option<Self> {
        let numbers = value.rsplit(';').map(|part| part.trim().parse::<u8>());
        let [red, green, blue] = match numbers.flatten().next()? {
            // The grey that most terminals have there is lighter than xterm's palette says of white text.
            7 => [192; 3],
            color => palette(color),
        };
        Some(Self::of(red, green, blue))
    }
}

/// Relative luminance of a colour, from 0 to 1, as WCAG has it.
fn luminance(color: [u8; 3]) -> f64 {
    let [red, green, blue] = color.map(|channel| {
        let value = f64::from(channel) / 255.0;
        match value <= 0.039_28 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The name of the theme that is made of the terminal's colours. No theme file has it.
pub const SYSTEM: &str = "system";

/// The theme name of the setting `theme` for a background; `None` if it is neither a name nor a pair.
pub fn choose(setting: &str, backdrop: Backdrop) -> Option<&str> {
    let Some((light, dark)) = setting.split_once(PAIR) else {
        return Some(setting);
    };
    let (light, dark) = (light.trim(), dark.trim());
    if light.is_empty() || dark.is_empty() || dark.contains(PAIR) {
        return None;
    }
    Some(match backdrop {
        Backdrop::Dark => dark,
        Backdrop::Light => light,
    })
}

#[cfg(test)]
mod tests;
