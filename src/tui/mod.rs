//! The terminal: what is on it, what is typed on it. Knows nothing of agents.
//!
//! A component gives [`line::Line`]s for a width; a frame is a list of them. Below this room are bytes,
//! above it (`mode::interactive`) is the conversation.

pub mod ability;
pub mod complete;
pub mod decode;
pub mod diff_view;
pub mod editor;
pub mod fuzzy;
pub mod highlight;
pub mod image;
pub mod key;
pub mod keymap;
pub mod line;
pub mod markdown_view;
pub mod math;
pub mod screen;
pub mod select;
pub mod style;
pub mod terminal;
pub mod theme;
pub mod width;
pub mod wrap;
