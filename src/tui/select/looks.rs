//! How lists and dialogs are coloured.

use crate::tui::style::Style;

/// How the parts look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    pub text: Style,
    pub selected: Style,
    pub accent: Style,
    pub muted: Style,
    /// States are words, nothing moves.
    pub is_plain: bool,
}
