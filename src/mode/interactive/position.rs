//! Where on the terminal the live part of the screen is. Only the terminal knows: it is asked after the first
//! frame, and again when its size has changed, since it has then moved what was printed.
//!
//! A terminal that does not answer is not waited for again: after a change of size everything it shows is then
//! drawn anew.

use std::time::{Duration, Instant};

/// An answer over a slow line takes so long.
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Position {
    /// Whether the terminal answers; not known before it was asked.
    answers: Option<bool>,
    is_known: bool,
    asked: Option<Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    until: Instant,
    /// The size has changed: nothing is drawn before the answer.
    is_resize: bool,
    /// Nothing was drawn since.
    is_still: bool,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Here is the cursor of the last frame.
    Place,
    /// Here is the cursor since the size has changed.
    Resize,
    /// It is not known what has been drawn since.
    Nothing,
}

impl Position {
    /// For a terminal that may not be asked.
    pub fn unknown() -> Self {
        Self {
            answers: Some(false),
            ..Self::default()
        }
    }

    /// The size has changed; true if the terminal is to be asked.
    pub fn resized(&mut self, now: Instant) -> bool {
        if self.answers != Some(true) || !self.is_known {
            return false;
        }
        self.ask(now, true);
        true
    }

    /// A frame was drawn; true if the terminal is to be asked.
    pub fn drawn(&mut self, now: Instant) -> bool {
        match &mut self.asked {
            Some(asked) => asked.is_still = false,
            None if !self.is_known && self.answers != Some(false) => {
                self.ask(now, false);
                return true;
            }
            None => {}
        }
        false
    }

    fn ask(&mut self, now: Instant, is_resize: bool) {
        self.asked = Some(Asked {
            until: now + PATIENCE,
            is_resize,
            is_still: true,
        });
    }

    /// Others have drawn: nothing is known any more.
    pub fn forget(&mut self) {
        (self.is_known, self.asked) = (false, None);
    }

    /// Nothing may be drawn just now.
    pub fn holds(&self) -> bool {
        self.asked.is_some_and(|asked| asked.is_resize)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.asked.map(|asked| asked.until)
    }

    pub fn answered(&mut self) -> Meaning {
        self.answers = Some(true);
        match self.asked.take() {
            Some(asked) if asked.is_resize => Meaning::Resize,
            Some(asked) if asked.is_still => {
                self.is_known = true;
                Meaning::Place
            }
            _ => Meaning::Nothing,
        }
    }

    /// The deadline has passed; true if a change of size waits.
    pub fn expired(&mut self, now: Instant) -> bool {
        let Some(asked) = self.asked.filter(|asked| asked.until <= now) else {
            return false;
        };
        self.asked = None;
        self.is_known = false;
        if !asked.is_resize {
            self.answers = Some(false);
        }
        asked.is_resize
    }
}

/// Whether the terminal lays long rows out anew when its width changes, where that is known.
pub fn reflows(variable: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    if is_set("TMUX") || is_set("VTE_VERSION") || is_set("KITTY_WINDOW_ID") {
        return Some(true);
    }
    if is_set("XTERM_VERSION") || term == "linux" || (is_set("STY") && term.starts_with("screen")) {
        return Some(false);
    }
    None
}
