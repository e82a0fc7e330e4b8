//! What the keys do that are not the editor's, and what becomes of what was typed.

use super::app::App;
use super::card::Weight;
use super::complete::Completed;
use super::dialog::Viewer;
use super::{command, shell, stage};
use crate::mode::interactive::keymap as app_keys;
use crate::mode::interactive::keymap::AppAction;
use crate::runtime::Fatal;
use crate::runtime::control::Streaming;
use crate::tui::editor::Outcome;
use crate::tui::image::Pixels;
use crate::tui::key::{Action as Event, Input, Key, Mouse, MouseKind, Reply};
use crate::tui::keymap::Action;
use crate::tui::theme::Backdrop;
use std::time::{Duration, Instant};

/// Lines that a step of the mouse's wheel scrolls.
const WHEEL: isize = 3;

/// Two presses within this are a double one.
const DOUBLE: Duration = Duration::from_millis(500);

impl App {
    pub fn input(&mut self, input: Input, now: Instant) {
        self.look_at_theme(now);
        match input {
            Input::Key(key) if key.action == Event::Release => {}
            Input::Key(key) if self.has_dialog() => self.dialog_key(&key),
            Input::Key(key) => self.key(&key, now),
            Input::Paste(text) if self.has_dialog() => self.dialog_paste(&text),
            Input::Paste(text) => {
                self.editor.paste(&text);
                self.offer(false);
            }
            Input::Focus(focused) => self.is_focused = focused,
            Input::Reply(reply) => self.reply(&reply),
            Input::Mouse(mouse) if self.stage.is_fullscreen => self.mouse(mouse, now),
            Input::Mouse(_) => {}
        }
    }

    fn reply(&mut self, reply: &Reply) {
        let backdrop = match *reply {
            Reply::Background(red, green, blue) => Backdrop::of(red, green, blue),
            Reply::Scheme { dark: true } => Backdrop::Dark,
            Reply::Scheme { dark: false } => Backdrop::Light,
            Reply::Cell { width, height } if width > 0 && height > 0 => {
                self.stage.cell = Pixels { width, height };
                return;
            }
            _ => return,
        };
        if backdrop != self.stage.backdrop {
            self.stage.backdrop = backdrop;
            if self.stage.themes.follows() {
                // What is wrong with the setting was said at the start.
                let _ = self.stage.choose_theme();
            }
        }
    }

    fn key(&mut self, key: &Key, now: Instant) {
        let is_escape = self.stage.keymap.is(key, AppAction::INTERRUPT);
        if !is_escape {
            self.last_escape = None;
        }
        match self.complete_key(key) {
            Completed::Ignored => {}
            Completed::Handled => return,
            Completed::Send => return self.edit(key, now),
        }
        if self.stage.is_fullscreen && self.window_key(key, now) {
            return;
        }
        // Before the editor, which deletes with the same key.
        if self.editor.is_empty() && self.stage.keymap.is(key, AppAction::EXIT) {
            self.is_over = true;
            return;
        }
        self.edit(key, now);
    }

    /// A key for the window on the conversation, in fullscreen mode.
    fn window_key(&mut self, key: &Key, now: Instant) -> bool {
        let mut scroll = std::mem::take(&mut self.scroll);
        let (is_open, width) = (self.stage.is_open, self.stage.window_width());
        let is_done = self.view_key(&mut scroll, key, is_open, width, now);
        self.scroll = scroll;
        is_done
    }

    fn mouse(&mut self, mouse: Mouse, now: Instant) {
        let by = match mouse.kind {
            MouseKind::ScrollUp => -WHEEL,
            MouseKind::ScrollDown => WHEEL,
            _ => return,
        };
        let mut scroll = std::mem::take(&mut self.scroll);
        let (is_open, width) = (self.stage.is_open, self.stage.window_width());
        self.with_pages(&mut scroll, is_open, width, now, |scroll, pages| {
            scroll.scroll(by, pages);
        });
        self.scroll = scroll;
    }

    fn edit(&mut self, key: &Key, now: Instant) {
        match self.editor.handle(key, &self.stage.keymap) {
            Outcome::Handled => self.completion.close(),
            Outcome::Edited => self.offer(false),
            Outcome::Complete => self.offer(true),
            Outcome::Submit(text) => {
                self.completion.close();
                self.submit(text, Streaming::Steer);
            }
            Outcome::Ignored => {
                if let Some(action) = self.stage.keymap.action(key, app_keys::MAIN) {
                    self.act(action, now);
                }
            }
        }
    }

    /// Takes what was typed and sent.
    pub fn submit(&mut self, text: String, streaming: Streaming) {
        if text.is_empty() {
            return;
        }
        self.editor.remember(&text);
        if command::run(self, &text) {
            return;
        }
        match text.strip_prefix('!') {
            Some(command) => shell::run(self, command),
            None => self.prompt(text, streaming),
        }
    }

    pub fn act(&mut self, action: Action, now: Instant) {
        match action {
            AppAction::INTERRUPT => self.interrupt(now),
            AppAction::CLEAR => self.clear(now),
            AppAction::EXIT if self.editor.is_empty() => self.is_over = true,
            AppAction::SUSPEND => self.suspends = true,
            AppAction::EXTERNAL_EDITOR => self.edit_elsewhere(),
            AppAction::MESSAGE_FOLLOW_UP => {
                let text = self.editor.expanded().trim().to_owned();
                self.editor.set_text("");
                self.completion.close();
                self.submit(text, Streaming::FollowUp);
            }
            AppAction::MESSAGE_DEQUEUE => match self.take_back() {
                0 => self.say(Weight::Info, "No queued messages to restore"),
                _ => self.completion.close(),
            },
            AppAction::TOOLS_EXPAND => self.open_or_fold(),
            AppAction::THINKING_TOGGLE => {
                self.stage.hides_thinking = !self.stage.hides_thinking;
                let state = if self.stage.hides_thinking { "hidden" } else { "shown" };
                self.set("hideThinkingBlock", self.stage.hides_thinking.into());
                self.say(Weight::Info, &format!("Thinking blocks: {state}"));
            }
            AppAction::THINKING_CYCLE => {
                let feed = self.feed.clone();
                let cycled = self.control.cycle_thinking(&mut |event| feed.event(event));
                match cycled {
                    Ok(Some(level)) => self.say(Weight::Info, &format!("Thinking level: {}", level.name())),
                    Ok(None) => self.say(Weight::Info, "Current model does not support thinking"),
                    Err(Fatal(reason)) => self.say(Weight::Error, &reason),
                }
                self.refresh();
            }
            AppAction::MODEL_CYCLE_FORWARD => self.cycle_model(true),
            AppAction::MODEL_CYCLE_BACKWARD => self.cycle_model(false),
            AppAction::SESSION_NEW => self.call("/new"),
            AppAction::SESSION_TREE => self.call("/tree"),
            AppAction::SESSION_FORK => self.call("/fork"),
            AppAction::SESSION_RESUME => self.call("/resume"),
            AppAction::MODEL_SELECT => self.call("/model"),
            AppAction::MESSAGE_COPY => self.call("/copy"),
            AppAction::PASTE_IMAGE => self.paste_image(),
            _ => {}
        }
    }

    /// Does what a slash command does.
    pub fn call(&mut self, line: &str) {
        command::run(self, line);
    }

    fn cycle_model(&mut self, is_forward: bool) {
        let feed = self.feed.clone();
        match self.control.cycle_model(is_forward, &mut |event| feed.event(event)) {
            Ok(Some(cycled)) => {
                let text = format!("Switched to {}", cycled.model.name);
                self.say(Weight::Info, &text);
            }
            Ok(None) => self.say(Weight::Info, "Only one model available"),
            Err(Fatal(reason)) => self.say(Weight::Error, &reason),
        }
        self.refresh();
    }

    /// Escape: ends what runs; in an empty editor, twice, what the settings say.
    fn interrupt(&mut self, now: Instant) {
        if self.activity.is_busy() || !self.control.is_idle() {
            self.take_back();
            self.control.abort();
            return;
        }
        if self.transcript.shell().is_some() {
            self.control.abort_shells();
            return;
        }
        if !self.editor.is_empty() {
            if self.editor.text().starts_with('!') {
                self.editor.set_text("");
            }
            return;
        }
        let is_double = self.last_escape.is_some_and(|last| now.saturating_duration_since(last) < DOUBLE);
        self.last_escape = (!is_double).then_some(now);
        if is_double {
            let ground = self.control.ground();
            match ground.settings.get("doubleEscapeAction").and_then(serde_json::Value::as_str) {
                Some("fork") => self.call("/fork"),
                Some("none") => {}
                _ => self.call("/tree"),
            }
        }
    }

    /// Ctrl+C: empties the editor; twice, the end.
    fn clear(&mut self, now: Instant) {
        let is_double = self.last_clear.is_some_and(|last| now.saturating_duration_since(last) < DOUBLE);
        if is_double {
            self.is_over = true;
            return;
        }
        self.last_clear = Some(now);
        self.completion.close();
        self.editor.set_text("");
    }

    /// Opens what is folded: in place what still is there, else in the viewer.
    fn open_or_fold(&mut self) {
        if self.stage.is_fullscreen || self.transcript.has_calls() || stage::is_dumb() {
            self.stage.is_open = !self.stage.is_open;
        } else {
            self.open(Viewer::new());
        }
    }
}
