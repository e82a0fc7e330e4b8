//! One frame: the unfinished part of the conversation, what waits, the editor or a dialog, the footer.

use super::app::App;
use super::look::Look;
use super::transcript::Printed;
use crate::runtime::ThinkingLevel;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{loader, loader_changes_in};
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use std::time::{Duration, Instant};

/// Rows of the editor, at least.
const EDITOR_ROWS_MIN: usize = 5;

impl App {
    /// What is to be printed for good.
    pub fn settle(&mut self, now: Instant) -> Vec<Printed> {
        let pictures = self.stage.pictures();
        let look = self.stage.look();
        self.transcript.settle(&look, now, pictures.as_ref())
    }

    /// Everything that may still change, from top to bottom.
    pub fn live(&mut self, now: Instant) -> Vec<Line> {
        let rows = self.stage.size.rows;
        let mut lines = self.transcript.live(&self.stage.look(), now, rows);
        lines.extend(self.waiting());
        lines.push(Line::new());
        let footer = self.footer.lines(&self.stage.look());
        let room = rows.saturating_sub(footer.len() + 1).max(1);
        let (dialog, stage) = self.dialog_and_stage();
        match dialog {
            Some(dialog) => lines.extend(dialog.lines(&stage.look(), room)),
            None => lines.extend(self.editor_lines(rows, now)),
        }
        lines.extend(footer);
        lines
    }

    /// When the frame looks different without anything having happened.
    pub fn changes_in(&self, now: Instant) -> Option<Duration> {
        let looks = self.stage.look().looks();
        let shows_time = self.transcript.is_running();
        match self.activity.label(now) {
            Some((_, running)) if !self.has_dialog() => loader_changes_in(running, &looks),
            _ if shows_time && !looks.is_plain => Some(Duration::from_millis(100)),
            _ => None,
        }
    }

    /// What is queued, and how to take it back.
    fn waiting(&self) -> Vec<Line> {
        let look = self.stage.look();
        let dim = look.style(Role::Dim);
        let row = |mark: &str, text: &str| {
            let first = text.lines().next().unwrap_or_default();
            Line::of(&format!(" {mark}: {first}"), dim).cut(look.width)
        };
        let (steering, follow_up) = &self.queues;
        let mut lines: Vec<Line> = steering.iter().map(|text| row("Steering", text)).collect();
        lines.extend(follow_up.iter().map(|text| row("Follow-up", text)));
        lines.extend(self.held.iter().map(|(text, _)| row("Queued", text)));
        if !lines.is_empty() {
            lines.insert(0, Line::new());
            if let Some(key) = self.stage.keymap.shown(Action::MessageDequeue) {
                lines.push(Line::of(
                    &format!(" ↳ {key} to edit all queued messages"),
                    dim,
                ));
            }
        }
        lines
    }

    fn editor_lines(&mut self, rows: usize, now: Instant) -> Vec<Line> {
        let is_shell = self.editor.text().starts_with('!');
        let look = self.stage.look();
        let border = look.style(match is_shell {
            true => Role::BashMode,
            false => of_level(self.footer.thinking),
        });
        let activity = self.activity.label(now);
        let padding = self.stage.padding.min(look.width / 4);
        let width = look.width.saturating_sub(2 * padding).max(1);
        let rows_max = (rows * 3 / 10).max(EDITOR_ROWS_MIN);
        let marker = look.style(Role::Accent);
        let view = self
            .editor
            .render(width, rows_max, look.style(Role::Text), marker);
        let top = match activity {
            Some((label, running)) => {
                let label = loader(&label, running, &look.looks());
                border_with(&label, view.above, &look, border)
            }
            None => border_with(&Line::new(), view.above, &look, border),
        };
        let mut lines = vec![top];
        lines.extend(view.lines.into_iter().map(|line| match padding {
            0 => line,
            padding => {
                let mut row = Line::of(&" ".repeat(padding), Style::PLAIN);
                row.append(&line);
                row
            }
        }));
        lines.push(border_with(&Line::new(), view.below, &look, border));
        let looks = look.looks();
        lines.extend(self.completion.lines(self.stage.size.columns, &looks));
        lines
    }
}

/// A rule with a label in it, and how many rows are not shown.
fn border_with(label: &Line, hidden: usize, look: &Look<'_>, style: Style) -> Line {
    let mark = if look.is_plain { "-" } else { "─" };
    let mut line = Line::new();
    if !label.is_empty() {
        line.push(&format!("{} ", mark.repeat(2)), style);
        line.append(&label.cut(look.width.saturating_sub(8)));
        line.push(" ", style);
    }
    if hidden > 0 {
        line.push(
            &format!("{} {hidden} more ", mark.repeat(2)),
            style.with(Attributes::DIM),
        );
    }
    let left = look.width.saturating_sub(line.width());
    line.push(&mark.repeat(left), style);
    line.cut(look.width)
}

/// The border's colour says how much the model thinks.
fn of_level(level: ThinkingLevel) -> Role {
    match level {
        ThinkingLevel::Off => Role::ThinkingOff,
        ThinkingLevel::Minimal => Role::ThinkingMinimal,
        ThinkingLevel::Low => Role::ThinkingLow,
        ThinkingLevel::Medium => Role::ThinkingMedium,
        ThinkingLevel::High => Role::ThinkingHigh,
        ThinkingLevel::Xhigh => Role::ThinkingXhigh,
        ThinkingLevel::Max => Role::ThinkingMax,
    }
}
