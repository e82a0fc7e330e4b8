//! The colours of the built-in themes.
//!
//! Each is a function over all roles, so that the compiler finds a missing one. Text keeps a contrast of at
//! least 4.5 to its background (3 for muted text), which a test checks.

use super::Role;
use crate::tui::style::Color;

const fn hex(rgb: u32) -> Color {
    let [_, red, green, blue] = rgb.to_be_bytes();
    Color::Rgb(red, green, blue)
}

/// Colours for a dark background.
pub fn dark(role: Role) -> Color {
    const INK: Color = hex(0xd8dee4);
    const ASH: Color = hex(0x9aa4af);
    const FADED: Color = hex(0x7d8894);
    const LINE: Color = hex(0x5c6773);
    const SEA: Color = hex(0x6cc7d9);
    const SKY: Color = hex(0x7aaef5);
    const LEAF: Color = hex(0x8fce7f);
    const ROSE: Color = hex(0xf0808a);
    const SAND: Color = hex(0xe6c07b);
    const PLUM: Color = hex(0xc79bf2);
    const RUST: Color = hex(0xe8a27c);
    match role {
        Role::Accent | Role::BorderAccent | Role::MdListBullet => SEA,
        Role::Border | Role::MdLink | Role::ThinkingLow => SKY,
        Role::BorderMuted | Role::ThinkingOff | Role::ScrollbarTrack => LINE,
        Role::Success | Role::BashMode | Role::ToolDiffAdded => LEAF,
        Role::Error | Role::ToolDiffRemoved => ROSE,
        Role::Warning | Role::MdHeading => SAND,
        Role::Muted | Role::ThinkingText | Role::ToolOutput | Role::MdQuote | Role::ToolDiffContext => ASH,
        Role::Dim
        | Role::MdLinkUrl
        | Role::MdCodeBlockBorder
        | Role::MdQuoteBorder
        | Role::MdHr
        | Role::ThinkingMinimal => FADED,
        Role::Text
        | Role::ScrollbarThumb
        | Role::UserMessageText
        | Role::CustomMessageText
        | Role::ToolTitle
        | Role::MdCodeBlock => INK,
        Role::SelectedBg => hex(0x33415a),
        Role::SearchMatchBg => hex(0x5a4a1c),
        Role::SearchMatchText => hex(0xffe9b0),
        Role::UserMessageBg => hex(0x2a303b),
        Role::CustomMessageBg => hex(0x302a3d),
        Role::CustomMessageLabel => PLUM,
        Role::ToolPendingBg => hex(0x23272f),
        Role::ToolSuccessBg => hex(0x1f2c24),
        Role::ToolErrorBg => hex(0x382428),
        Role::MdCode => RUST,
        Role::SyntaxComment => hex(0x85a08a),
        Role::SyntaxKeyword => PLUM,
        Role::SyntaxFunction => SKY,
        Role::SyntaxVariable => hex(0xb9d3ec),
        Role::SyntaxString => LEAF,
        Role::SyntaxNumber => RUST,
        Role::SyntaxType => SEA,
        Role::SyntaxOperator => hex(0xb8c2cc),
        Role::SyntaxPunctuation => ASH,
        Role::ThinkingMedium => SEA,
        Role::ThinkingHigh => PLUM,
        Role::ThinkingXhigh => hex(0xe58ae0),
        Role::ThinkingMax => hex(0xff6fb5),
    }
}

/// Colours for a light background.
pub fn light(role: Role) -> Color {
    const INK: Color = hex(0x1d232a);
    const ASH: Color = hex(0x57606a);
    const FADED: Color = hex(0x6a737d);
    const LINE: Color = hex(0x8c959f);
    const SEA: Color = hex(0x066a7c);
    const SKY: Color = hex(0x0b57c4);
    const LEAF: Color = hex(0x1b6b2b);
    const ROSE: Color = hex(0xb3202c);
    const SAND: Color = hex(0x7d5200);
    const PLUM: Color = hex(0x7434b8);
    const RUST: Color = hex(0x994011);
    match role {
        Role::Accent | Role::BorderAccent | Role::MdListBullet => SEA,
        Role::Border | Role::MdLink | Role::ThinkingLow => SKY,
        Role::BorderMuted | Role::ThinkingOff | Role::ScrollbarTrack => LINE,
        Role::Success | Role::BashMode | Role::ToolDiffAdded => LEAF,
        Role::Error | Role::ToolDiffRemoved => ROSE,
        Role::Warning | Role::MdHeading => SAND,
        Role::Muted | Role::ThinkingText | Role::ToolOutput | Role::MdQuote | Role::ToolDiffContext => ASH,
        Role::Dim
        | Role::MdLinkUrl
        | Role::MdCodeBlockBorder
        | Role::MdQuoteBorder
        | Role::MdHr
        | Role::ThinkingMinimal => FADED,
        Role::Text
        | Role::ScrollbarThumb
        | Role::UserMessageText
        | Role::CustomMessageText
        | Role::ToolTitle
        | Role::MdCodeBlock => INK,
        Role::SelectedBg => hex(0xd3e2f8),
        Role::SearchMatchBg => hex(0xffe08a),
        Role::SearchMatchText => INK,
        Role::UserMessageBg => hex(0xeceff3),
        Role::CustomMessageBg => hex(0xf1eafa),
        Role::CustomMessageLabel => PLUM,
        Role::ToolPendingBg => hex(0xf1f3f6),
        Role::ToolSuccessBg => hex(0xe8f5ea),
        Role::ToolErrorBg => hex(0xfbe9ea),
        Role::MdCode => RUST,
        Role::SyntaxComment => hex(0x50705a),
        Role::SyntaxKeyword => PLUM,
        Role::SyntaxFunction => SKY,
        Role::SyntaxVariable => hex(0x1b4a7d),
        Role::SyntaxString => LEAF,
        Role::SyntaxNumber => RUST,
        Role::SyntaxType => SEA,
        Role::SyntaxOperator => hex(0x3a434d),
        Role::SyntaxPunctuation => ASH,
        Role::ThinkingMedium => SEA,
        Role::ThinkingHigh => PLUM,
        Role::ThinkingXhigh => hex(0xa0209a),
        Role::ThinkingMax => hex(0xc2185b),
    }
}
