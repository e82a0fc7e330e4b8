//! The colours of the built-in themes on terminals with 256 or 16 colours.
//!
//! The nearest colour of the palette makes dark backgrounds one grey, and in 16 colours text that fades into
//! the background. These numbers keep states apart. Text in 16 colours stays the terminal's own.

use super::Role;
use crate::tui::style::{Color, Depth};

/// The colour of a role in the built-in theme for a dark or light background; `None` for the nearest one.
pub fn color(is_light: bool, role: Role, depth: Depth) -> Option<Color> {
    let [dark, light] = match depth {
        Depth::Indexed => indexed(role)?,
        Depth::Sixteen => return Some(sixteen(is_light, role)),
        Depth::None | Depth::True => return None,
    };
    Some(Color::Indexed(if is_light { light } else { dark }))
}

/// Numbers in the palette of 256, for a dark and a light background.
fn indexed(role: Role) -> Option<[u8; 2]> {
    Some(match role {
        Role::UserMessageBg => [236, 254],
        Role::CustomMessageBg => [53, 225],
        Role::ToolPendingBg => [235, 255],
        Role::ToolSuccessBg => [22, 194],
        Role::ToolErrorBg => [52, 224],
        Role::SelectedBg => [24, 153],
        Role::SearchMatchBg => [58, 222],
        _ => return None,
    })
}

fn sixteen(is_light: bool, role: Role) -> Color {
    const RED: u8 = 1;
    const GREEN: u8 = 2;
    const YELLOW: u8 = 3;
    const BLUE: u8 = 4;
    const MAGENTA: u8 = 5;
    const CYAN: u8 = 6;
    let grey = if is_light { 8 } else { 7 };
    Color::Indexed(match role {
        Role::Success | Role::BashMode | Role::ToolDiffAdded | Role::SyntaxString => GREEN,
        Role::Error | Role::ToolDiffRemoved | Role::ThinkingMax => RED,
        Role::Warning | Role::MdHeading | Role::SearchMatchBg => YELLOW,
        Role::Accent
        | Role::BorderAccent
        | Role::MdListBullet
        | Role::MdCode
        | Role::SyntaxType
        | Role::SyntaxNumber
        | Role::ThinkingMedium => CYAN,
        Role::Border
        | Role::MdLink
        | Role::SyntaxFunction
        | Role::SyntaxVariable
        | Role::ThinkingLow
        | Role::SelectedBg => BLUE,
        Role::CustomMessageLabel | Role::SyntaxKeyword | Role::ThinkingHigh | Role::ThinkingXhigh => MAGENTA,
        Role::SearchMatchText => 0,
        Role::Muted | Role::ThinkingText | Role::ToolOutput | Role::MdQuote | Role::ToolDiffContext => grey,
        Role::Dim
        | Role::BorderMuted
        | Role::ScrollbarTrack
        | Role::MdLinkUrl
        | Role::MdCodeBlockBorder
        | Role::MdQuoteBorder
        | Role::MdHr
        | Role::SyntaxComment
        | Role::ThinkingOff
        | Role::ThinkingMinimal => 8,
        Role::Text
        | Role::ScrollbarThumb
        | Role::UserMessageBg
        | Role::UserMessageText
        | Role::CustomMessageBg
        | Role::CustomMessageText
        | Role::ToolPendingBg
        | Role::ToolSuccessBg
        | Role::ToolErrorBg
        | Role::ToolTitle
        | Role::MdCodeBlock
        | Role::SyntaxOperator
        | Role::SyntaxPunctuation => return Color::Default,
    })
}
