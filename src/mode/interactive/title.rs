//! What the terminal shows around the screen: its title, its progress, a notification.

use super::app::App;
use super::stage::{flag, is_dumb, name_of};
use crate::runtime::plain_text;
use std::time::{Duration, Instant};

/// A run that took less needs no notification.
const LONG: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Title {
    shown: String,
    has_progress: bool,
    busy_since: Option<Instant>,
}

impl Title {
    /// What gives the terminal its own title and progress back.
    pub fn end(&mut self) -> String {
        let mut out = String::new();
        if !std::mem::take(&mut self.shown).is_empty() {
            out.push_str("\x1b]0;\x07");
        }
        if std::mem::take(&mut self.has_progress) {
            out.push_str(PROGRESS_OFF);
        }
        out
    }
}

/// Of unknown length.
const PROGRESS_ON: &str = "\x1b]9;4;3;\x07";
const PROGRESS_OFF: &str = "\x1b]9;4;0;\x07";

impl App {
    /// Says what has changed around the screen.
    pub fn tell_terminal(&mut self, now: Instant) {
        if is_dumb() {
            return;
        }
        let folder = name_of(&self.stage.cwd);
        let title = match &self.footer.name {
            Some(name) => format!("π - {name} - {folder}"),
            None => format!("π - {folder}"),
        };
        if title != self.title.shown {
            let text = plain_text(title.as_bytes()).replace('\n', " ");
            self.sequences.push_str(&format!("\x1b]0;{text}\x07"));
            self.title.shown = title;
        }
        let is_busy = self.activity.is_busy();
        let ground = self.control.ground();
        let shows = flag(&ground.settings, "terminal.showTerminalProgress").unwrap_or(false);
        if self.title.has_progress != (is_busy && shows) {
            self.title.has_progress = is_busy && shows;
            let sequence = if is_busy { PROGRESS_ON } else { PROGRESS_OFF };
            self.sequences.push_str(sequence);
        }
        match (self.title.busy_since, is_busy) {
            (None, true) => self.title.busy_since = Some(now),
            (Some(since), false) => {
                self.title.busy_since = None;
                let is_long = now.saturating_duration_since(since) >= LONG;
                let wanted = flag(&ground.settings, "terminal.notify").unwrap_or(false);
                if is_long && wanted && !self.is_focused {
                    self.sequences.push_str("\x1b]9;pi has finished\x07");
                }
            }
            _ => {}
        }
    }
}
