//! What one chooses with: lists, a line of text. And what one waits with.
//!
//! Each takes keys and tells what came of them, and gives lines for a width. In plain mode, for screen readers and
//! for those whom moving things disturb, states are words and nothing moves.

mod list;
mod looks;
mod text;
mod wait;

pub use list::{Item, List, Picked};
pub use looks::Looks;
pub use text::{Entered, TextInput};
pub use wait::{hints, loader, loader_changes_in};

#[cfg(test)]
mod tests;
