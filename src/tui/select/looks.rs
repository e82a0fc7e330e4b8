//! Styles of lists and dialogs.

use crate::tui::style::Style;

/// Styles of the parts of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    pub text: Style,
    pub selected: Style,
    pub accent: Style,
    pub muted: Style,
    /// True for states as words, without animation.
    pub is_plain: bool,
}
