//! Builds one frame: the unfinished part of the conversation, queued messages, the editor or a dialog, the
//! footer.

use super::app::App;
use super::config::is_dumb;
use super::keymap::AppAction;
use super::look::{Look, indented};
use super::surface;
use super::transcript::Printed;
use crate::tui::line::Line;
use crate::tui::select::loader_changes_in;
use crate::tui::style::Style;
use crate::tui::theme::Role;
use std::time::{Duration, Instant};

/// Lines to print into the scrollback, which are not drawn again.
pub fn settled(app: &mut App, now: Instant) -> Vec<Printed> {
    surface::follow_theme(app);
    let pictures = app.config.pictures();
    app.view.take_finished(&app.config.look(), now, pictures.as_ref())
}

/// Everything that may still change, from top to bottom.
pub fn live(app: &mut App, now: Instant) -> Vec<Line> {
    let rows = app.config.size.rows;
    if is_dumb() {
        return live_plainly(app, now);
    }
    let mut lines = app.view.live(&app.config.look(), now, rows);
    lines.extend(dock(app, now));
    lines
}

/// Screens with no more rows have no footer below a dialog.
const LOW: usize = 12;

/// The row that is typed, or the dialog: a terminal that knows no sequences cannot take back what is printed.
fn live_plainly(app: &mut App, now: Instant) -> Vec<Line> {
    const DIALOG_ROWS: usize = 12;
    let look = app.config.look();
    let rows = app.config.size.rows;
    if let Some(dialog) = app.dialogs.lines(&look, rows.min(DIALOG_ROWS)) {
        return dialog;
    }
    let status = (&app.status.activity, app.status.footer.thinking);
    let lines = app.composer.lines(&look, rows, app.config.options.padding, status, now);
    lines.into_iter().filter(|line| line.cursor.is_some()).collect()
}

/// The part below the conversation.
fn dock(app: &mut App, now: Instant) -> Vec<Line> {
    let rows = app.config.size.rows;
    let look = app.config.look();
    let mut lines = app.composer.waiting(&look);
    // In the row above the editor, which is there anyway.
    let mut note = Line::of(&app.status.note, look.style(Role::Dim)).cut(look.short().saturating_sub(1));
    lines.extend(indented([std::mem::take(&mut note)]));
    lines.extend(app.added.above(&look));
    let own = app.status.line.line(&app.status.footer.fields(&look), &look);
    let own = own.map_or_else(|| app.status.footer.lines(&look), |line| vec![line]);
    let mut footer = app.added.footer(own, &look);
    if rows <= LOW && !app.dialogs.is_empty() {
        footer.clear();
    }
    let room = rows.saturating_sub(footer.len() + 1).max(1);
    app.composer.popup_rows = 0;
    let dialog = app.dialogs.lines(&look, room);
    lines.extend(dialog.unwrap_or_else(|| {
        let status = (&app.status.activity, app.status.footer.thinking);
        let own = app.composer.lines(&look, rows, app.config.options.padding, status, now);
        match &mut app.added.editor {
            Some(editor) => editor.lines(own, &look, rows),
            None => own,
        }
    }));
    lines.extend(app.added.below(&look));
    lines.extend(footer);
    // Of what has no room the end is shown: what is typed must be in it.
    if let Some(typed) = lines.iter().position(|line| line.cursor.is_some()) {
        lines.truncate(typed + rows.max(1));
    }
    lines
}

/// True if the alternate screen is used: in fullscreen mode, for the viewer, and for a dialog that has not had
/// room on the normal screen without scrolling printed lines away.
pub fn is_full(app: &mut App, room: usize, now: Instant) -> bool {
    if is_dumb() || app.config.is_fullscreen || app.added.overlays.are_seen() {
        return !is_dumb();
    }
    if app.dialogs.is_empty() {
        return app.view.has_viewer();
    }
    if !app.dialogs.is_full {
        app.dialogs.is_full = live(app, now).len() > room;
    }
    app.dialogs.is_full
}

/// The content of the alternate screen.
pub fn whole(app: &mut App, now: Instant) -> Vec<Line> {
    let mut lines = match app.view.has_viewer() && app.dialogs.is_empty() {
        false => fullscreen(app, now),
        true => app.view.viewer_lines(app.config.look(), app.config.size.rows, now, &app.threads.feed),
    };
    app.added.overlays.draw_over(&mut lines, &app.config.look(), app.config.size);
    lines
}

/// The screen in fullscreen mode: the scrolled conversation, and the dock below.
fn fullscreen(app: &mut App, now: Instant) -> Vec<Line> {
    if app.config.is_fullscreen {
        app.view.drop_stored();
    }
    let size = app.config.size;
    let mut dock = dock(app, now);
    if let Some(search) = app.view.search_line(&app.config.look()) {
        // It is typed into, not the editor.
        dock.iter_mut().for_each(|line| line.cursor = None);
        dock.insert(0, search);
    }
    let surplus = (dock.len() + 1).saturating_sub(size.rows);
    dock.drain(..surplus.min(dock.len()));
    let rows = size.rows.saturating_sub(dock.len()).max(1);
    let look = app.config.window_look();
    let (mut lines, percent, is_at_end) = app.view.with_window(look, now, |window, pages| {
        window.look_for(pages, &app.threads.feed);
        let lines = window.frame(pages, rows);
        (lines, window.percent(pages), window.is_at_end())
    });
    lines.resize_with(rows, Line::new);
    if !is_at_end && let Some(last) = lines.last_mut() {
        *last = to_latest(&look);
    }
    if app.config.scrollbar_width() > 0 && (app.config.options.scrollbar == "always" || !is_at_end) {
        let thumb = percent * rows.saturating_sub(1) / 100;
        for (row, line) in lines.iter_mut().enumerate() {
            let (mark, role) = match row == thumb {
                true => ("┃", Role::ScrollbarThumb),
                false => ("│", Role::ScrollbarTrack),
            };
            line.pad_to(look.width, Style::PLAIN);
            line.push(mark, look.style(role));
        }
    }
    lines.extend(dock);
    lines
}

/// Time until the frame changes by itself, such as a clock or an animation.
pub fn changes_in(app: &App, now: Instant) -> Option<Duration> {
    let looks = app.config.look().looks();
    let shows_time = app.view.is_running();
    match app.status.activity.label(now) {
        Some(label) if app.dialogs.is_empty() && !app.view.has_viewer() => match &label.indicator {
            Some(indicator) if looks.is_plain || indicator.frames.len() < 2 => {
                label.shows_time.then_some(Duration::from_secs(1))
            }
            Some(indicator) => Some(left_of_frame(label.running, indicator.interval)),
            None => loader_changes_in(label.running, &looks),
        },
        _ if shows_time && !looks.is_plain => Some(Duration::from_millis(100)),
        _ => None,
    }
}

/// Time until the next frame of an indicator.
fn left_of_frame(running: Duration, frame: Duration) -> Duration {
    let since = running.as_nanos() % frame.as_nanos().max(1);
    frame.saturating_sub(Duration::from_nanos(u64::try_from(since).unwrap_or(0)))
}

/// A hint that the conversation continues below.
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
