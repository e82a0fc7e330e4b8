//! Terminal state outside the screen: title, progress, notification.

use super::config::{flag, is_dumb, name_of};
use crate::runtime::{Settings, plain_text};
use std::path::Path;
use std::time::{Duration, Instant};

/// Shorter runs need no notification.
const LONG: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Title {
    shown: String,
    has_progress: bool,
    busy_since: Option<Instant>,
}

impl Title {
    /// Sequences that restore the terminal's own title and progress.
    pub fn end(&mut self) -> String {
        let ending = self.ending();
        (self.shown, self.has_progress) = Default::default();
        ending
    }

    /// The sequences that [`Self::end`] would return now.
    pub fn ending(&self) -> String {
        let title = if self.shown.is_empty() { "" } else { "\x1b]0;\x07" };
        let progress = if self.has_progress { PROGRESS_OFF } else { "" };
        format!("{title}{progress}")
    }
}

/// Progress of unknown length.
const PROGRESS_ON: &str = "\x1b]9;4;3;\x07";
const PROGRESS_OFF: &str = "\x1b]9;4;0;\x07";

impl Title {
    /// Sequences for the changes of title, progress and notification.
    pub fn update(&mut self, state: &State<'_>, now: Instant) -> String {
        let mut out = String::new();
        if is_dumb() {
            return out;
        }
        let folder = name_of(state.cwd);
        let title = match (state.given, state.name) {
            (Some(title), _) => title.to_owned(),
            (None, Some(name)) => format!("π - {name} - {folder}"),
            (None, None) => format!("π - {folder}"),
        };
        if title != self.shown {
            let text = plain_text(title.as_bytes()).replace('\n', " ");
            out.push_str(&format!("\x1b]0;{text}\x07"));
            self.shown = title;
        }
        let is_busy = state.is_busy;
        let shows = flag(state.settings, "terminal.showTerminalProgress").unwrap_or(false);
        if self.has_progress != (is_busy && shows) {
            self.has_progress = is_busy && shows;
            out.push_str(if self.has_progress { PROGRESS_ON } else { PROGRESS_OFF });
        }
        match (self.busy_since, is_busy) {
            (None, true) => self.busy_since = Some(now),
            (Some(since), false) => {
                self.busy_since = None;
                let is_long = now.saturating_duration_since(since) >= LONG;
                let wanted = flag(state.settings, "terminal.notify").unwrap_or(false);
                if is_long && wanted && !state.is_focused {
                    out.push_str("\x1b]9;pi has finished\x07");
                }
            }
            _ => {}
        }
        out
    }
}

/// Inputs of a title.
pub struct State<'a> {
    pub cwd: &'a Path,
    /// The title that an extension has set.
    pub given: Option<&'a str>,
    /// The name of the session.
    pub name: Option<&'a str>,
    pub is_busy: bool,
    pub is_focused: bool,
    pub settings: &'a Settings,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::TempDir;

    #[test]
    fn progress_is_shown_as_long_as_a_run_goes_on_and_the_setting_says_so() {
        let (mut title, now) = (Title::default(), Instant::now());
        let (on, off) = (TempDir::create(), Settings::default());
        on.write("settings.json", r#"{"terminal": {"showTerminalProgress": true}}"#);
        let (on, _) = Settings::load(on.path());
        let expected = |on, off| if is_dumb() { (false, false) } else { (on, off) };
        for (is_busy, settings, shown, hidden) in [
            (false, &on, false, false),
            (true, &on, true, false),
            (true, &off, false, true),
            (true, &on, true, false),
            (false, &on, false, true),
        ] {
            let state =
                State { cwd: Path::new("/x"), given: None, name: None, is_busy, is_focused: true, settings };
            let text = title.update(&state, now);
            assert_eq!((text.contains(PROGRESS_ON), text.contains(PROGRESS_OFF)), expected(shown, hidden));
        }
    }
}
