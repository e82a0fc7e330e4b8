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
    progress: Option<&'static str>,
    busy_since: Option<Instant>,
    was_asking: bool,
    /// True if the last answer failed.
    pub has_failed: bool,
    /// How the last run ended, until the next prompt.
    outcome: Option<Activity>,
}

/// What pi does, for the title and the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Working,
    /// It waits for an answer of the user.
    Asking,
    Done,
    Failed,
}

impl Activity {
    fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Asking => "waits for you",
            Self::Done => "done",
            Self::Failed => "error",
        }
    }

    /// The sequence that shows it as progress.
    fn progress(self) -> Option<&'static str> {
        match self {
            Self::Working => Some(PROGRESS_ON),
            Self::Asking => Some("\x1b]9;4;4;100\x07"),
            Self::Failed => Some("\x1b]9;4;2;100\x07"),
            Self::Done => None,
        }
    }
}

impl Title {
    /// Sequences that restore the terminal's own title and progress.
    pub fn end(&mut self) -> String {
        let ending = self.ending();
        (self.shown, self.progress) = Default::default();
        ending
    }

    /// The sequences that [`Self::end`] would return now.
    pub fn ending(&self) -> String {
        let title = if self.shown.is_empty() { "" } else { "\x1b]0;\x07" };
        let progress = if self.progress.is_some() { PROGRESS_OFF } else { "" };
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
        let is_busy = state.is_busy;
        let is_asking = is_busy && state.is_asking;
        let was_busy = self.busy_since.is_some();
        match (was_busy, is_busy) {
            (false, true) => self.outcome = None,
            (true, false) => {
                self.outcome = Some(if self.has_failed { Activity::Failed } else { Activity::Done });
            }
            _ => {}
        }
        let activity = match (is_busy, is_asking) {
            (true, true) => Some(Activity::Asking),
            (true, false) => Some(Activity::Working),
            (false, _) => self.outcome,
        };
        let folder = name_of(state.cwd);
        let parts = [activity.map(Activity::word), state.name, Some(&folder)];
        let parts = parts.into_iter().flatten().map(|part| format!(" - {part}"));
        let title = state.given.map_or_else(|| format!("π{}", parts.collect::<String>()), str::to_owned);
        if title != self.shown {
            let text = plain_text(title.as_bytes()).replace('\n', " ");
            out.push_str(&format!("\x1b]0;{text}\x07"));
            self.shown = title;
        }
        let shows = flag(state.settings, "terminal.showTerminalProgress").unwrap_or(false);
        let progress = activity.filter(|_| shows).and_then(Activity::progress);
        if self.progress != progress {
            self.progress = progress;
            out.push_str(progress.unwrap_or(PROGRESS_OFF));
        }
        let was_asking = std::mem::replace(&mut self.was_asking, is_asking);
        let starts_asking = is_asking && !was_asking;
        let ended = match (self.busy_since, is_busy) {
            (None, true) => {
                self.busy_since = Some(now);
                None
            }
            (Some(since), false) => {
                self.busy_since = None;
                Some(now.saturating_duration_since(since) >= LONG)
            }
            _ => None,
        };
        if !state.is_focused && (starts_asking || ended.is_some()) {
            if flag(state.settings, "terminal.bell").unwrap_or(false) {
                out.push('\x07');
            }
            let notifies = flag(state.settings, "terminal.notify").unwrap_or(false);
            if notifies && (starts_asking || ended == Some(true)) {
                let what = if starts_asking { "pi waits for you" } else { "pi has finished" };
                out.push_str(&format!("\x1b]9;{what}\x07"));
            }
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
    /// True if a question to the user is open.
    pub is_asking: bool,
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
            let state = State {
                cwd: Path::new("/x"),
                given: None,
                name: None,
                is_busy,
                is_asking: false,
                is_focused: true,
                settings,
            };
            let text = title.update(&state, now);
            assert_eq!((text.contains(PROGRESS_ON), text.contains(PROGRESS_OFF)), expected(shown, hidden));
        }
    }

    #[test]
    fn the_title_says_what_is_done_and_who_looks_away_is_called() {
        if is_dumb() {
            return;
        }
        let dir = TempDir::create();
        dir.write(
            "settings.json",
            r#"{"terminal": {"showTerminalProgress": true, "bell": true, "notify": true}}"#,
        );
        let (settings, _) = Settings::load(dir.path());
        let (mut title, now) = (Title::default(), Instant::now());
        let mut update = |is_busy, is_asking, is_focused, has_failed, now| {
            title.has_failed = has_failed;
            let cwd = Path::new("/x");
            title.update(
                &State {
                    cwd,
                    given: None,
                    name: Some("s"),
                    is_busy,
                    is_asking,
                    is_focused,
                    settings: &settings,
                },
                now,
            )
        };
        assert_eq!(update(false, false, true, false, now), "\x1b]0;π - s - x\x07");
        assert_eq!(update(true, false, true, false, now), "\x1b]0;π - working - s - x\x07\x1b]9;4;3;\x07");
        let asks = "\x1b]0;π - waits for you - s - x\x07\x1b]9;4;4;100\x07";
        assert_eq!(update(true, true, true, false, now), asks);
        assert!(update(true, false, false, false, now).contains("working"));
        assert_eq!(update(true, true, false, false, now), format!("{asks}\x07\x1b]9;pi waits for you\x07"));
        assert_eq!(update(true, true, false, false, now), "");
        let done = "\x1b]0;π - done - s - x\x07\x1b]9;4;0;\x07\x07";
        assert_eq!(update(false, false, false, false, now), done);
        update(true, false, false, false, now);
        let failed = "\x1b]0;π - error - s - x\x07\x1b]9;4;2;100\x07\x07\x1b]9;pi has finished\x07";
        assert_eq!(update(false, false, false, true, now + LONG), failed);
    }
}
