//! The terminal: drawing and input. Knows nothing of agents.
//!
//! A component returns [`line::Line`]s for a width; a frame is a list of lines. Above this room is the
//! conversation (`mode::interactive`).

pub mod ability;
pub mod bidi;
pub mod complete;
pub mod decode;
pub mod diff_view;
pub mod editor;
pub mod encode;
pub mod fuzzy;
pub mod highlight;
pub mod image;
pub mod key;
pub mod keymap;
pub mod line;
pub mod markdown_view;
pub mod math;
pub mod mermaid;
pub mod screen;
pub mod select;
pub mod sgr;
pub mod style;
pub mod terminal;
pub mod theme;
pub mod width;
pub mod wrap;
