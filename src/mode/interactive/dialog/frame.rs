//! What dialogs have in common: a rule above and below, a title, a row that says what keys do.

use crate::mode::interactive::look::Look;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::hints;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

pub fn title(text: &str, look: &Look<'_>) -> Line {
    let style = look.style(Role::Accent).with(Attributes::BOLD);
    Line::of(&format!(" {text}"), style).cut(look.width)
}

/// Text in as many rows as it needs, with a margin.
pub fn text(text: &str, role: Role, look: &Look<'_>) -> Vec<Line> {
    let style = look.style(role);
    let lines = text.lines().map(|line| Line::of(line, style));
    let lines = lines.flat_map(|line| wrap(&line, look.width.saturating_sub(2).max(1)));
    crate::mode::interactive::look::indented(lines)
        .iter()
        .map(|line| line.cut(look.width))
        .collect()
}

/// What keys do.
pub fn keys(keys: &[(Action, &str)], look: &Look<'_>) -> Line {
    let mut line = Line::of(" ", look.style(Role::Dim));
    line.append(&hints(keys, look.keymap, &look.looks()));
    line.cut(look.width)
}

/// Between two rules, in no more than `rows` rows.
pub fn framed(mut body: Vec<Line>, look: &Look<'_>, rows: usize) -> Vec<Line> {
    let rule = look.rule(look.style(Role::Border));
    body.truncate(rows.saturating_sub(2).max(1));
    body.insert(0, rule.clone());
    body.push(rule);
    body
}

/// The same, with a margin.
pub fn indented(body: Vec<Line>, look: &Look<'_>, rows: usize) -> Vec<Line> {
    let body = crate::mode::interactive::look::indented(body);
    let body = body.iter().map(|line| line.cut(look.width));
    framed(body.collect(), look, rows)
}

/// Rows for a list, where so many others are drawn.
pub fn list_rows(rows: usize, others: usize, most: usize) -> usize {
    rows.saturating_sub(others).clamp(1, most)
}
