//! Handles keys that are not the editor's, and submitted text.

use super::added;
use super::app::App;
use super::card::grouped;
use super::command::{self, clipboard, editor, models, permissions, shell, thinking};
use super::complete;
use super::composer::Completed;
use super::config;
use super::keymap::{AppAction, MAIN};
use super::news::carry_out;
use super::scroll::{Pages, Scroll};
use super::surface;
use super::viewer::Asked;
use crate::runtime::control::Streaming;
use crate::tui::editor::{Mode, Outcome};
use crate::tui::image::Pixels;
use crate::tui::key::{Action as Event, Code, Input, Key, Modifiers, Mouse, MouseKind, Reply};
use crate::tui::keymap::Action;
use crate::tui::theme::Backdrop;
use std::time::Instant;

/// A step of the mouse wheel with Alt counts as so many.
const WHEEL_WITH_ALT: usize = 5;

pub fn input(app: &mut App, input: Input, now: Instant) {
    look_at_theme(app, now);
    if !surface::shown_to_others(app, &input) {
        handle(app, input, now);
    }
}

/// Handles an input that others have looked at.
pub fn handle(app: &mut App, input: Input, now: Instant) {
    match input {
        Input::Key(key) if key.action == Event::Release => {}
        Input::Key(key) if app.added.overlays.key(&key, &app.config, app.dialogs.count()) => {}
        Input::Key(key) if !app.dialogs.is_empty() => {
            for effect in app.dialogs.key(&key, &app.config) {
                carry_out(app, effect, now);
            }
        }
        Input::Key(key) if app.view.has_viewer() => viewer_key(app, &key, now),
        Input::Key(key) if added::editor_key(app, &key, now) => {}
        Input::Key(key) => prompt_key(app, &key, now),
        Input::Paste(text) if app.added.overlays.paste(&text, app.dialogs.count()) => {}
        Input::Paste(text) if !app.dialogs.is_empty() => app.dialogs.paste(&text),
        Input::Paste(text) if app.view.has_viewer() => app.view.paste_into_viewer(&text),
        Input::Paste(text) => match &app.added.editor {
            Some(editor) => editor.paste(&text),
            None => own_input(app, Input::Paste(text), now),
        },
        Input::Focus(focused) => app.status.is_focused = focused,
        Input::Reply(reply) => take_reply(app, &reply),
        Input::Mouse(mouse) if app.config.is_fullscreen => use_mouse(app, mouse, now),
        Input::Mouse(_) => {}
    }
}

/// Takes keys of an extension for pi's own editor.
pub fn type_in(app: &mut App, data: &str, now: Instant) {
    surface::decoded(data).into_iter().for_each(|input| own_input(app, input, now));
}

/// Handles a key or a paste for pi's own editor.
fn own_input(app: &mut App, input: Input, now: Instant) {
    match input {
        Input::Key(key) if key.action != Event::Release => prompt_key(app, &key, now),
        Input::Paste(text) => {
            app.composer.editor.paste(&text);
            complete::offer(app, false);
        }
        _ => {}
    }
}

/// Reloads the theme's file if it has changed.
fn look_at_theme(app: &mut App, now: Instant) {
    match app.config.themes.changed(now) {
        Some(Ok(theme)) => app.config.theme = theme,
        Some(Err(problem)) => app.warn(&format!("Warning: {problem}")),
        None => {}
    }
}

fn take_reply(app: &mut App, reply: &Reply) {
    if app.config.themes.learn(reply) {
        let _ = app.config.choose_theme();
    }
    if matches!(reply, Reply::Scheme { .. }) && app.config.themes.is_system() {
        app.ask_for_backdrop();
    }
    let backdrop = match *reply {
        Reply::Background(red, green, blue) => Backdrop::of(red, green, blue),
        Reply::Scheme { dark: true } => Backdrop::Dark,
        Reply::Scheme { dark: false } => Backdrop::Light,
        Reply::Cell { width, height } if width > 0 && height > 0 => {
            app.config.cell = Pixels { width, height };
            return;
        }
        Reply::ProgramStatus => return app.status.program.answered(),
        _ => return,
    };
    if backdrop != app.config.backdrop {
        app.config.backdrop = backdrop;
        if app.config.themes.follows() {
            // What is wrong with the setting was said at the start.
            let _ = app.config.choose_theme();
        }
    }
}

fn viewer_key(app: &mut App, key: &Key, now: Instant) {
    match app.view.viewer_key(key, &app.config.keymap, app.config.look(), now) {
        Asked::Nothing | Asked::Close => {}
        Asked::ToggleThinking => app.config.options.hides_thinking = !app.config.options.hides_thinking,
        Asked::Copy(text) => clipboard::copy(app, text, "Copied to clipboard"),
    }
}

fn prompt_key(app: &mut App, key: &Key, now: Instant) {
    let is_escape = app.config.keymap.is(key, AppAction::INTERRUPT);
    if !is_escape {
        app.composer.last_escape.forget();
    }
    if app.config.keymap.is(key, AppAction::CLEAR) {
        app.composer.close_completion();
    }
    match app.composer.complete_key(key, &app.config.keymap) {
        Completed::Ignored => {}
        Completed::Handled => return,
        // In a folder one goes on.
        Completed::Goes => return complete::offer(app, false),
        Completed::Send => return edit(app, key, now),
    }
    if added::press(app, key) {
        return;
    }
    let keymap = &app.config.keymap;
    if app.config.is_fullscreen {
        if is_escape && app.view.deselect() {
            return;
        }
        let look = app.config.window_look();
        if app.view.with_window(look, now, |window, pages| window.key(key, keymap, pages)) {
            return;
        }
    }
    // Before the editor, which deletes with the same key.
    if app.composer.editor.is_empty() && keymap.is(key, AppAction::EXIT) {
        app.requests.ends = true;
        return;
    }
    edit(app, key, now);
}

fn use_mouse(app: &mut App, mouse: Mouse, now: Instant) {
    let steps = if mouse.modifiers.has(Modifiers::ALT) { WHEEL_WITH_ALT } else { 1 };
    let lines = (app.config.options.wheel_lines * steps).cast_signed();
    let below = !app.dialogs.is_empty() && !app.view.has_window_at(mouse.row);
    let by = match mouse.kind {
        MouseKind::ScrollUp | MouseKind::ScrollDown if below => {
            let code = if mouse.kind == MouseKind::ScrollUp { Code::Up } else { Code::Down };
            for _ in 0..lines {
                handle(app, Input::Key(Key::plain(code)), now);
            }
            return;
        }
        MouseKind::ScrollUp => -lines,
        MouseKind::ScrollDown => lines,
        _ if app.view.has_viewer() => return,
        _ => {
            let select = |window: &mut Scroll, pages: &Pages<'_>| window.select(mouse, pages, now);
            if app.view.with_window(app.config.window_look(), now, select)
                && app.config.options.copies_selection
            {
                copy_selection(app, now);
            }
            return;
        }
    };
    app.view.with_window(app.config.window_look(), now, |window, pages| window.scroll(by, pages));
}

/// Goes on with a selection while the mouse stands still at the edge of the window.
pub fn drag_on(app: &mut App, now: Instant) {
    if app.view.drags_in(now).is_some_and(|left| left.is_zero()) {
        app.view.with_window(app.config.window_look(), now, |window, pages| window.drag_on(pages, now));
    }
}

/// Copies what is selected with the mouse. False if nothing is.
fn copy_selection(app: &mut App, now: Instant) -> bool {
    let look = app.config.window_look();
    let selected = app.view.with_window(look, now, |window, pages| window.selected(pages));
    let is_selected = selected.is_some();
    if let Some(selected) = selected {
        clipboard::copy_read(app, || {
            let text = selected.text()?;
            let count = grouped(text.chars().count() as u64);
            Some((text, format!("Copied {count} characters to clipboard")))
        });
    }
    is_selected
}

fn edit(app: &mut App, key: &Key, now: Instant) {
    if app.composer.can_go_on && app.composer.editor.is_empty() && app.config.keymap.is(key, Action::SUBMIT) {
        return app.go_on();
    }
    match app.composer.editor.handle(key, &app.config.keymap) {
        Outcome::Handled => app.composer.close_completion(),
        Outcome::Edited if app.composer.editor.mode().is_some_and(|(mode, _)| mode != Mode::Insert) => {
            app.composer.close_completion();
        }
        Outcome::Edited => complete::offer(app, false),
        Outcome::Complete => complete::offer(app, true),
        Outcome::Submit(text) => {
            app.composer.close_completion();
            submit(app, text, Streaming::Steer);
        }
        Outcome::Ignored => {
            if let Some(action) = app.config.keymap.action(key, MAIN) {
                act(app, action, now);
            }
        }
    }
}

/// Handles submitted text.
pub fn submit(app: &mut App, text: String, streaming: Streaming) {
    if text.is_empty() {
        return;
    }
    let is_sent_again = app.composer.refused.take().is_some_and(|refused| refused == text);
    if text == "?" {
        command::run(app, "/help");
        return;
    }
    app.remember(&text);
    if command::run(app, &text) {
        return;
    }
    if !is_sent_again && let Some((name, near)) = command::unknown(&app.control, &text) {
        let near = near.map_or_else(String::new, |near| format!(" (did you mean /{near}?)"));
        app.note(&format!("No command /{name}{near}. Enter again sends it"));
        app.composer.editor.set_text(&text);
        app.composer.refused = Some(text);
        return;
    }
    match text.strip_prefix('!') {
        Some(command) => shell::run(app, command),
        None => app.prompt(text, Vec::new(), streaming),
    }
}

fn act(app: &mut App, action: Action, now: Instant) {
    let call = match action {
        AppAction::INTERRUPT => return interrupt(app, now),
        AppAction::CLEAR => return clear(app, now),
        AppAction::EXIT => return app.requests.ends |= app.composer.editor.is_empty(),
        AppAction::SUSPEND => return app.requests.suspends = true,
        AppAction::EXTERNAL_EDITOR => return editor::ask(app),
        AppAction::MESSAGE_FOLLOW_UP => {
            let text = app.composer.take_text();
            return submit(app, text, Streaming::FollowUp);
        }
        AppAction::MESSAGE_DEQUEUE => {
            return match app.take_back() {
                0 => app.note("No queued messages to restore"),
                _ => app.composer.close_completion(),
            };
        }
        AppAction::TOOLS_EXPAND => return open_or_fold(app),
        AppAction::THINKING_TOGGLE => {
            let hides = !app.config.options.hides_thinking;
            app.config.options.hides_thinking = hides;
            app.set("hideThinkingBlock", hides.into());
            return app.note(&format!("Thinking blocks: {}", if hides { "hidden" } else { "shown" }));
        }
        AppAction::THINKING_CYCLE => return thinking::cycle(app),
        AppAction::PERMISSIONS_CYCLE => return permissions::cycle(app),
        AppAction::MODEL_CYCLE_FORWARD => return models::cycle(app, true),
        AppAction::MODEL_CYCLE_BACKWARD => return models::cycle(app, false),
        AppAction::PASTE_IMAGE => return clipboard::paste(app),
        AppAction::SESSION_NEW => "/new",
        AppAction::SESSION_TREE => "/tree",
        AppAction::SESSION_FORK => "/fork",
        AppAction::SESSION_RESUME => "/resume",
        AppAction::MODEL_SELECT => "/model",
        AppAction::MESSAGE_COPY if !app.config.options.copies_selection && copy_selection(app, now) => return,
        AppAction::MESSAGE_COPY => "/copy",
        _ => return,
    };
    command::run(app, call);
}

/// Escape: aborts the current work; pressed twice in an empty editor, the action of the settings.
fn interrupt(app: &mut App, now: Instant) {
    if !app.composer.held.is_empty() && !app.control.settling().is_empty() {
        // The prompts that wait for extensions are sent.
        app.control.abort();
        return;
    }
    if app.status.activity.is_busy() || !app.control.is_idle() || app.control.waits_for_handlers() {
        app.take_back();
        app.control.abort();
        return;
    }
    if app.view.shell().is_some() {
        app.control.abort_shells();
        return;
    }
    if !app.composer.editor.is_empty() {
        if app.composer.editor.text().starts_with('!') {
            app.composer.editor.set_text("");
        }
        return;
    }
    if app.composer.last_escape.is_double(now) {
        app.composer.last_escape.forget();
        let config = app.control.config();
        match config.settings.get("doubleEscapeAction").and_then(serde_json::Value::as_str) {
            Some("fork") => command::run(app, "/fork"),
            Some("rewind") => command::run(app, "/rewind"),
            Some("none") => false,
            _ => command::run(app, "/tree"),
        };
    }
}

/// Ctrl+C: empties the editor, whose text stays in the history; pressed twice, ends the program.
fn clear(app: &mut App, now: Instant) {
    if app.composer.last_clear.is_double(now) {
        app.requests.ends = true;
        return;
    }
    let text = app.composer.take_text();
    if !text.is_empty() {
        app.remember(&text);
    }
}

/// Expands folded parts: in place if still drawn, otherwise in the viewer.
fn open_or_fold(app: &mut App) {
    if app.config.is_fullscreen || app.view.has_calls() || config::is_dumb() {
        app.config.options.is_open = !app.config.options.is_open;
    } else {
        app.composer.close_completion();
        app.view.open_viewer();
    }
}
