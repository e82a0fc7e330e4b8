//! Common parts of lists: a title, a row of key hints, and a limit of rows.

use crate::mode::interactive::look::{self, Look};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::hints;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

/// Cells between the margins.
pub fn inside(look: &Look<'_>) -> usize {
    look.width.saturating_sub(2).max(1)
}

pub fn title(text: &str, look: &Look<'_>) -> Line {
    Line::of(text, look.style(Role::Accent).with(Attributes::BOLD))
}

/// Text wrapped into as many rows as it needs.
pub fn text(text: &str, role: Role, look: &Look<'_>) -> Vec<Line> {
    let style = look.style(role);
    let lines = text.lines().map(|line| Line::of(line, style));
    lines.flat_map(|line| wrap(&line, inside(look))).collect()
}

/// A line of key hints.
pub fn keys(keys: &[(Action, &str)], look: &Look<'_>) -> Line {
    hints(keys, look.keymap, &look.looks())
}

/// `body` between two rules, with a margin, in at most `rows` rows.
pub fn indented(mut body: Vec<Line>, look: &Look<'_>, rows: usize) -> Vec<Line> {
    body.truncate(rows.saturating_sub(2).max(1));
    let rule = look.rule(look.style(Role::BorderAccent));
    let mut lines = vec![rule.clone()];
    lines.extend(look::indented(body));
    lines.push(rule);
    lines.iter().map(|line| line.cut(look.width)).collect()
}
