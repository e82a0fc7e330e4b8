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
        let ending = self.ending();
        (self.shown, self.has_progress) = Default::default();
        ending
    }

    /// What [`Self::end`] would give now.
    pub fn ending(&self) -> String {
        let title = if self.shown.is_empty() { "" } else { "\x1b]0;\x07" };
        let progress = if self.has_progress { PROGRESS_OFF } else { "" };
        format!("{title}{progress}")
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
        let config = self.control.config();
        let shows = flag(&config.settings, "terminal.showTerminalProgress").unwrap_or(false);
        if self.title.has_progress != (is_busy && shows) {
            self.title.has_progress = is_busy && shows;
            self.sequences.push_str(match self.title.has_progress {
                true => PROGRESS_ON,
                false => PROGRESS_OFF,
            });
        }
        match (self.title.busy_since, is_busy) {
            (None, true) => self.title.busy_since = Some(now),
            (Some(since), false) => {
                self.title.busy_since = None;
                let is_long = now.saturating_duration_since(since) >= LONG;
                let wanted = flag(&config.settings, "terminal.notify").unwrap_or(false);
                if is_long && wanted && !self.is_focused {
                    self.sequences.push_str("\x1b]9;pi has finished\x07");
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::feed::News;
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn progress_is_shown_as_long_as_a_run_goes_on_and_the_setting_says_so() {
        let mut bench = Bench::new();
        let app = &mut bench.app;
        let now = Instant::now();
        let said = |app: &mut App, news: Option<News>, shows: bool| {
            app.set("terminal.showTerminalProgress", shows.into());
            news.into_iter().for_each(|news| app.take(news, now));
            app.tell_terminal(now);
            let said = std::mem::take(&mut app.sequences);
            (said.contains(PROGRESS_ON), said.contains(PROGRESS_OFF))
        };
        let expected = |on, off| if is_dumb() { (false, false) } else { (on, off) };
        for (news, shows, on, off) in [
            (None, true, false, false),
            (Some(News::RunStarted), true, true, false),
            (None, false, false, true),
            (None, true, true, false),
            (Some(News::Settled), true, false, true),
        ] {
            assert_eq!(said(app, news, shows), expected(on, off));
        }
    }
}
