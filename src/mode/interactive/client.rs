//! Implements the loop's client for the conversation.

use super::app::App;
use super::event_loop::Client;
use super::feed::{Feed, News};
use super::screen::{Frame, Screen};
use super::title::State;
use super::transcript::Printed;
use super::{command, keys, news, paint};
use crate::tui::key::Input;
use crate::tui::line::Line;
use crate::tui::screen::{Abilities, Size};
use crate::tui::terminal::Modes;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Frame for App {
    fn abilities(&self) -> Abilities {
        self.config.abilities()
    }

    fn set_size(&mut self, size: Size) {
        self.config.size = size;
        self.status.line.changed();
    }

    fn live(&mut self, now: Instant) -> Vec<Line> {
        paint::live(self, now)
    }

    fn printed(&mut self, now: Instant) -> Vec<Printed> {
        paint::settled(self, now)
    }

    fn tail(&self, rows: usize) -> Vec<Line> {
        self.view.tail(rows)
    }

    fn overlay(&self) -> usize {
        self.composer.popup_rows
    }

    fn is_full(&mut self, room: usize, now: Instant) -> bool {
        paint::is_full(self, room, now)
    }

    fn whole(&mut self, now: Instant) -> Vec<Line> {
        paint::whole(self, now)
    }

    fn other_modes(&self) -> Modes {
        match self.config.is_fullscreen {
            true => Modes::ALTERNATE | Modes::MOUSE,
            false => Modes::ALTERNATE,
        }
    }

    fn sequences(&mut self, now: Instant) -> (String, String) {
        let config = self.control.config();
        let state = State {
            cwd: &self.config.places.cwd,
            given: self.added.title.as_deref(),
            name: self.status.footer.name.as_deref(),
            is_busy: self.status.activity.is_busy(),
            is_asking: self.dialogs.asks(),
            is_focused: self.status.is_focused,
            settings: &config.settings,
        };
        let (is_busy, name) = (state.is_busy, state.name);
        let title = self.status.title.update(&state, now);
        let blocked = self.dialogs.blocked().or_else(|| self.added.overlays.blocked());
        let report = self.status.program.update(is_busy, blocked, name);
        let ending = self.status.title.ending() + &self.status.program.ending();
        (std::mem::take(&mut self.requests.sequences) + &title + &report, ending)
    }

    fn redraws(&mut self) -> bool {
        std::mem::take(&mut self.requests.redraws)
    }
}

impl Client for App {
    fn feed(&self) -> Arc<Feed> {
        self.threads.feed.clone()
    }

    fn input(&mut self, input: Input, now: Instant) {
        keys::input(self, input, now);
        self.note_unsent(now);
        self.update_status_line(now);
    }

    fn take(&mut self, news: News, now: Instant) {
        news::take(self, news, now);
        self.note_unsent(now);
        self.update_status_line(now);
    }

    fn first_queries(&mut self) -> String {
        match self.config.themes.is_system() && self.requests.begin.is_some() {
            true => std::mem::take(&mut self.requests.sequences),
            false => String::new(),
        }
    }

    fn begin(&mut self) {
        if let Some(begin) = self.requests.begin.take() {
            begin(self);
        }
    }

    fn timed(&mut self, now: Instant) {
        keys::drag_on(self, now);
        self.keep_due(now);
        self.update_status_line(now);
    }

    fn signal(&mut self, _: i32) {
        // Who watches for signals cancels the token.
    }

    fn is_over(&self) -> bool {
        self.requests.ends
    }

    fn suspends(&mut self) -> bool {
        std::mem::take(&mut self.requests.suspends)
    }

    fn editor(&mut self) -> Option<String> {
        self.requests.editor.take()
    }

    fn edit(&mut self, command: &str) {
        command::editor::run(self, command);
    }

    fn changes_in(&self, now: Instant) -> Option<Duration> {
        let times = [
            paint::changes_in(self, now),
            self.keeps_in(now),
            self.status.line.due_in(now),
            self.view.drags_in(now),
        ];
        times.into_iter().flatten().min()
    }

    fn end(&mut self, screen: &mut Screen<'_>, now: Instant) -> io::Result<()> {
        news::dismiss(self, now);
        self.view.close_viewer();
        screen.leave_full(self, now)?;
        self.leave_fullscreen(true);
        let mut printed = paint::settled(self, now);
        printed.push(Printed::Lines(self.view.live(&self.config.look(), now, usize::MAX)));
        let farewell = self.status.title.end() + &self.status.program.ending();
        screen.end(self, printed, &farewell, now)
    }
}
