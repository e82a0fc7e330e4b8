//! What one chooses with: lists, settings, a line of text, yes or no. And what one waits with.
//!
//! Each takes keys and tells what came of them, and gives lines for a width. In plain mode, for screen readers and
//! for those whom moving things disturb, states are words and nothing moves.

mod confirm;
mod list;
mod settings;
mod text;
mod wait;

pub use confirm::Confirm;
pub use list::{Item, List, Picked};
pub use settings::{Changed, Setting, Settings};
pub use text::{Entered, TextInput};
pub use wait::{elapsed, hints, loader, loader_changes_in};

use super::style::Style;

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

#[cfg(test)]
mod tests;
