//! Separate blocks of lines: notices, boxes, times.

use crate::mode::interactive::look::{Look, padded};
use crate::tui::line::Line;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::borrow::Cow;
use std::time::Duration;

/// Severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Info,
    Warning,
    Error,
}

/// A notice of the program.
pub fn notice(weight: Weight, text: &str, look: &Look<'_>) -> Vec<Line> {
    let style = look.style(match weight {
        Weight::Info => Role::Dim,
        Weight::Warning => Role::Warning,
        Weight::Error => Role::Error,
    });
    let width = look.width.saturating_sub(2 * look.pad).max(1);
    let lines = text.lines().flat_map(|line| wrap(&Line::of(line, style), width));
    spaced(padded(lines, look.pad))
}

/// Lines with an empty row above.
pub fn spaced(lines: Vec<Line>) -> Vec<Line> {
    if lines.is_empty() {
        return lines;
    }
    let mut out = vec![Line::new()];
    out.extend(lines);
    out
}

/// Text of a tool without escape sequences.
pub fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(['\x1b', '\r', '\x08']) {
        true => crate::runtime::plain_text(text.as_bytes()).into(),
        false => text.into(),
    }
}

/// A duration as `3.2s`, `1m 5s`, `1h 2m 3s`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1}s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h {minutes}m {seconds}s"),
    }
}
