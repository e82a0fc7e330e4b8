//! Selection lists, text inputs and wait indicators.
//!
//! Each takes keys and returns results, and returns lines for a width. In plain mode, for screen readers and
//! users whom motion disturbs, states are words and nothing is animated.

mod list;
mod looks;
mod text;
mod wait;

pub use list::{Item, List, Picked};
pub use looks::Looks;
pub use text::{Entered, TextInput};
pub use wait::{elapsed, hints, loader, loader_changes_in};

#[cfg(test)]
mod tests;
