//! Entries of the tree as rows.
//!
//! In a deep tree all rows are scrolled sideways together, so that the text of the selected row stays
//! visible.

use super::shape::Shape;
use crate::mode::interactive::look::Look;
use crate::runtime::local_time;
use crate::runtime::outline::Preview;
use crate::tui::line::Line;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use std::ops::Range;

/// Minimum cells of text that stay visible after the connector lines.
const TEXT_CELLS: Range<usize> = 4..21;
/// Cells of connector lines that stay visible before the text.
const LINES_CELLS: Range<usize> = 2..13;

struct Drawn {
    body: Line,
    /// Column at which the text begins.
    anchor: usize,
    is_selected: bool,
}

pub fn rows(
    shape: &Shape,
    window: Range<usize>,
    selected: usize,
    shows_times: bool,
    look: &Look<'_>,
) -> Vec<Line> {
    let drawn: Vec<Drawn> =
        window.map(|index| draw(shape, index, index == selected, shows_times, look)).collect();
    let accent = look.style(Role::Accent);
    let room = look.width.saturating_sub(2);
    let shift = shift(&drawn, room);
    let lines = drawn.into_iter().map(|row| {
        let mark = match (row.is_selected, look.is_plain) {
            (true, false) => "› ",
            (true, true) => "* ",
            (false, _) => "  ",
        };
        let mut line = Line::of(mark, accent);
        let from = row.body.byte_at(shift);
        line.append(&row.body.slice(from..row.body.text().len()));
        let mut line = line.cut(look.width);
        if row.is_selected {
            let background = look.style(Role::SelectedBg);
            line.pad_to(look.width, background);
            line.over(background);
        }
        line
    });
    lines.collect()
}

/// Number of cells hidden at the left.
fn shift(drawn: &[Drawn], room: usize) -> usize {
    let widest = drawn.iter().map(|row| row.body.width()).max().unwrap_or(0);
    let most = widest.saturating_sub(room);
    let selected = drawn.iter().find(|row| row.is_selected);
    let Some(anchor) = selected.map(|row| row.anchor).filter(|_| most > 0) else {
        return 0;
    };
    let text = (room / 3).clamp(TEXT_CELLS.start, TEXT_CELLS.end - 1);
    if anchor + text <= room {
        return 0;
    }
    let lines = (room / 4).clamp(LINES_CELLS.start, LINES_CELLS.end - 1);
    anchor.saturating_sub(lines).min(most)
}

fn draw(shape: &Shape, index: usize, is_selected: bool, shows_times: bool, look: &Look<'_>) -> Drawn {
    let accent = look.style(Role::Accent);
    let mut body = Line::of(&shape.lines_before(index, look.is_plain), look.style(Role::Dim));
    let row = shape.rows.get(index);
    let item = row.and_then(|row| Some((row, shape.item(row.item)?)));
    let Some((row, item)) = item else {
        return Drawn { body, anchor: 0, is_selected };
    };
    let mark = if look.is_plain { "folded: " } else { "⊞ " };
    if shape.is_folded(row.item) && (!row.is_branch || look.is_plain) {
        body.push(mark, accent);
    }
    if shape.is_on_path(row.item) {
        body.push(if look.is_plain { "* " } else { "• " }, accent);
    }
    let anchor = body.width();
    if let Some(bookmark) = &item.bookmark {
        body.push(&format!("[{}] ", bookmark.label), look.style(Role::Warning));
        if shows_times && let Some(time) = local_time(&bookmark.timestamp) {
            body.push(&format!("{time} "), look.style(Role::Muted));
        }
    }
    let bold = |style: Style| match is_selected {
        true => style.with(Attributes::BOLD),
        false => style,
    };
    let text = bold(look.style(Role::Text));
    let role = |role: Role| bold(look.style(role));
    let (head, head_style, rest, rest_style) = match &item.preview {
        Preview::User(said) => ("user: ".into(), role(Role::Accent), said.clone(), text),
        Preview::Answer(said) => ("assistant: ".into(), role(Role::Success), said.clone(), text),
        Preview::Aborted => {
            ("assistant: ".into(), role(Role::Success), "(aborted)".into(), role(Role::Muted))
        }
        Preview::Failed(error) => {
            ("assistant: ".into(), role(Role::Success), error.clone(), role(Role::Error))
        }
        Preview::Silent => {
            ("assistant: ".into(), role(Role::Success), "(no content)".into(), role(Role::Muted))
        }
        Preview::Tool(asked) => (format!("[{asked}]"), role(Role::Muted), String::new(), text),
        Preview::Shell(command) => (format!("[bash]: {command}"), role(Role::Dim), String::new(), text),
        Preview::Message(name) | Preview::Setting(name) => {
            (format!("[{name}]"), role(Role::Dim), String::new(), text)
        }
        Preview::Custom { kind, text: said } => {
            (format!("[{kind}]: "), role(Role::CustomMessageLabel), said.clone(), text)
        }
        Preview::Compaction { tokens } => (
            format!("[compaction: {}k tokens]", tokens.saturating_add(500) / 1000),
            role(Role::BorderAccent),
            String::new(),
            text,
        ),
        Preview::Summary(summary) => {
            ("[branch summary]: ".into(), role(Role::Warning), summary.clone(), text)
        }
        Preview::Usage | Preview::Unknown => (String::new(), text, String::new(), text),
    };
    body.push(&head, head_style);
    body.push(&rest, rest_style);
    Drawn { body, anchor, is_selected }
}
