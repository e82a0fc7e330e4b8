//! Messages and tool calls as blocks of lines. Each begins with an empty row and ends without one.
//!
//! Cards that can still change are drawn with every frame, so a card reads no more of a text than it shows.

mod block;
mod call;
mod message;
mod picture;
mod rows;
mod shell;
mod tail;
#[cfg(test)]
mod tests;
mod tool;

pub use block::{Weight, notice};
pub use call::{Call, State};
pub use message::{
    answer_look, changed, compaction, ending, entry, grouped, is_awaited, is_entry_awaited, message, reason,
    surface, text, thinking_label,
};
pub use picture::Pictures;
pub use shell::Shell;
pub use tool::{Summary, summed};
