//! One frame: the unfinished part of the conversation, what waits, the editor or a dialog, the footer.

use super::app::App;
use super::look::Look;
use super::transcript::Printed;
use crate::mode::interactive::keymap::AppAction;
use crate::runtime::ThinkingLevel;
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
        lines.extend(self.dock(now));
        lines
    }

    /// What is below the conversation.
    fn dock(&mut self, now: Instant) -> Vec<Line> {
        let rows = self.stage.size.rows;
        let mut lines = self.waiting();
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

    /// The whole screen in fullscreen mode: a window on the conversation, and below it what always is.
    pub fn fullscreen(&mut self, now: Instant) -> Vec<Line> {
        self.transcript.drop_stored();
        let size = self.stage.size;
        let mut dock = self.dock(now);
        let mut scroll = std::mem::take(&mut self.scroll);
        let width = self.stage.window_width();
        if let Some(search) = &mut scroll.search {
            // It is typed into, not the editor.
            dock.iter_mut().for_each(|line| line.cursor = None);
            dock.insert(0, search.line(&self.stage.look()));
        }
        let surplus = (dock.len() + 1).saturating_sub(size.rows);
        dock.drain(..surplus.min(dock.len()));
        let rows = size.rows.saturating_sub(dock.len()).max(1);
        let is_open = self.stage.is_open;
        self.search(&mut scroll, is_open, width);
        let (mut lines, percent) = self.with_pages(&mut scroll, is_open, width, now, |scroll, pages| {
            (scroll.frame(pages, rows), scroll.percent(pages))
        });
        lines.resize_with(rows, Line::new);
        let look = self.stage.look();
        if !scroll.is_at_end()
            && let Some(last) = lines.last_mut()
        {
            *last = to_latest(&look.within(width));
        }
        if self.stage.scrollbar_width() > 0 && (self.stage.scrollbar == "always" || !scroll.is_at_end()) {
            let thumb = percent * rows.saturating_sub(1) / 100;
            for (row, line) in lines.iter_mut().enumerate() {
                let (mark, role) = match row == thumb {
                    true => ("┃", Role::ScrollbarThumb),
                    false => ("│", Role::ScrollbarTrack),
                };
                line.pad_to(width, Style::PLAIN);
                line.push(mark, look.style(role));
            }
        }
        self.scroll = scroll;
        lines.extend(dock);
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
            if let Some(key) = self.stage.keymap.shown(AppAction::MESSAGE_DEQUEUE) {
                lines.push(Line::of(&format!(" ↳ {key} to edit all queued messages"), dim));
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
        let view = self.editor.render(width, rows_max, look.style(Role::Text), marker);
        let top = match activity {
            Some((label, running)) => {
                let mut label = loader(&label, running, &look.looks());
                let key = look.keymap.keys(AppAction::INTERRUPT).first();
                if let Some(key) = key.filter(|_| self.activity.names_escape()) {
                    label.push(&format!(" ({key} to cancel)"), look.style(Role::Muted));
                }
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

/// Says that the conversation goes on below.
fn to_latest(look: &Look<'_>) -> Line {
    let key = look.keymap.shown(AppAction::VIEW_BOTTOM);
    let key = key.map_or_else(String::new, |key| format!(" · {key}"));
    let style = look.style(Role::Text).over(look.style(Role::SelectedBg));
    let label = Line::of(&format!(" ↓ Jump to latest message{key} "), style).cut(look.width);
    let mut line = Line::new();
    line.pad_to(look.width.saturating_sub(label.width()) / 2, Style::PLAIN);
    line.append(&label);
    line
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
        line.push(&format!("{} {hidden} more ", mark.repeat(2)), style.with(Attributes::DIM));
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
