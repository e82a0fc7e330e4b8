//! What is said on stderr: one line or a few, never a control sequence, and never a reason to fail.

use crate::runtime::plain_text;
use std::fmt::Display;
use std::io::{self, Write};

pub fn error(text: impl Display) {
    note(format_args!("Error: {text}"));
}

pub fn warning(text: impl Display) {
    note(format_args!("Warning: {text}"));
}

pub fn note(text: impl Display) {
    let text = plain_text(text.to_string().as_bytes());
    // A stderr that nobody reads is no reason to stop.
    let _ = writeln!(io::stderr(), "{text}");
}
