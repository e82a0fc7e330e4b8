//! Row of the live part of the screen. Only the terminal knows it: the cursor position is queried after the
//! first frame, and after a resize, which moves printed rows.
//!
//! A terminal that does not reply is not queried again: after a resize everything on it is then redrawn.

use std::time::{Duration, Instant};

/// Longest wait for a reply, if it is unknown whether one will come, or the screen waits for it.
const PATIENCE: Duration = Duration::from_millis(250);
/// Longest wait for a reply after a frame on a slow line.
const SLOW: Duration = Duration::from_secs(10);

/// Time without a resize after which the size counts as settled.
const STILL: Duration = Duration::from_millis(90);
/// Time without a resize inside a multiplexer. tmux lays its rows out anew at once, but tells of a further size
/// only 250 ms after the one before: what is drawn in between is drawn for a width that is no longer there.
const STILL_INSIDE: Duration = Duration::from_millis(280);

/// Number of unanswered queries after which no reply is expected.
const OPEN_MAX: usize = 2;

#[derive(Debug)]
pub struct Position {
    /// Whether the terminal replies; `None` before the first query.
    answers: Option<bool>,
    is_known: bool,
    asked: Option<Asked>,
    /// Unanswered queries; only the last one matters.
    open: usize,
    /// Time at which the size counts as settled, after a resize.
    still: Option<Instant>,
    /// Time without a resize after which the size counts as settled.
    patience: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    until: Instant,
    /// True for a query after a resize: nothing is drawn before the reply.
    is_resize: bool,
    /// True if nothing was drawn since the query.
    is_still: bool,
}

/// Meaning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Position of the cursor in the last frame.
    Place,
    /// Position of the cursor after a resize.
    Resize,
    /// Something may have been drawn since the query: the reply is ignored.
    Nothing,
}

impl Position {
    /// For the terminal that the variables name.
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let patience = if is_inside(variable) { STILL_INSIDE } else { STILL };
        Self { answers: None, is_known: false, asked: None, open: 0, still: None, patience }
    }

    /// Does not query the terminal, as one that has not replied before.
    pub fn silent(self) -> Self {
        Self { answers: Some(false), ..self }
    }

    /// Records a resize: nothing is drawn until the size has settled and the terminal has replied.
    pub fn resized(&mut self, now: Instant) {
        self.still = Some(now + self.patience);
    }

    /// True once if the size has settled.
    pub fn settles(&mut self, now: Instant) -> bool {
        self.still.take_if(|still| *still <= now).is_some()
    }

    /// Begins to wait for the position after a resize; true if a query should be sent.
    pub fn settled(&mut self, now: Instant) -> bool {
        let asks = self.answers != Some(false);
        if asks {
            self.ask(now, true);
        }
        asks
    }

    /// Records a frame; true if a query should be sent.
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

    /// Traces a frame to learn when it has arrived; true if a query should be sent.
    pub fn trace(&mut self, now: Instant) -> bool {
        // An answer that has been lost is not waited for with every frame.
        let asks = self.asked.is_none() && self.has_answered() && self.open < OPEN_MAX;
        if asks {
            self.ask(now, false);
        }
        asks
    }

    /// True if the terminal is known to reply.
    pub fn has_answered(&self) -> bool {
        self.answers == Some(true)
    }

    /// True if no query is unanswered.
    pub fn is_quiet(&self) -> bool {
        self.open == 0
    }

    fn ask(&mut self, now: Instant, is_resize: bool) {
        self.open += 1;
        let patience = match is_resize || !self.has_answered() {
            true => PATIENCE,
            false => SLOW,
        };
        self.asked = Some(Asked { until: now + patience, is_resize, is_still: true });
    }

    /// Forgets the position, since another program has drawn.
    pub fn forget(&mut self) {
        (self.is_known, self.asked, self.still) = (false, None, None);
    }

    /// True if nothing may be drawn at present.
    pub fn holds(&self) -> bool {
        self.still.is_some() || self.asked.is_some_and(|asked| asked.is_resize)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.still.into_iter().chain(self.asked.map(|asked| asked.until)).min()
    }

    pub fn answered(&mut self) -> Meaning {
        self.answers = Some(true);
        self.open = self.open.saturating_sub(1);
        if self.open > 0 {
            return Meaning::Nothing;
        }
        match self.asked.take() {
            // The size has changed again.
            _ if self.still.is_some() => Meaning::Nothing,
            Some(asked) if asked.is_resize => {
                self.is_known = true;
                Meaning::Resize
            }
            Some(asked) if asked.is_still => {
                self.is_known = true;
                Meaning::Place
            }
            _ => Meaning::Nothing,
        }
    }

    /// Handles an unanswered query; true if a resize waits for its answer.
    pub fn expired(&mut self, now: Instant) -> bool {
        let Some(asked) = self.asked.filter(|asked| asked.until <= now) else {
            return false;
        };
        self.asked = None;
        self.is_known &= !asked.is_resize;
        self.answers.get_or_insert(false);
        asked.is_resize && self.still.is_none()
    }
}

/// True inside tmux or screen.
fn is_inside(variable: impl Fn(&str) -> Option<String>) -> bool {
    let term = variable("TERM").unwrap_or_default();
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    is_set("TMUX") || is_set("STY") || term.starts_with("tmux") || term.starts_with("screen")
}

/// Whether the terminal rewraps long rows when its width changes, if known.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::line::Line;
    use crate::tui::screen::Size;
    use crate::tui::screen::emulator::{Terminal, narrowed, plain};

    fn outside() -> Position {
        Position::new(|_| None)
    }

    fn later(now: Instant) -> Instant {
        now + PATIENCE
    }

    #[test]
    fn the_terminal_is_asked_once_and_again_for_a_size() {
        let now = Instant::now();
        let mut position = outside();
        assert!(position.drawn(now));
        assert!(!position.holds());
        assert_eq!(position.answered(), Meaning::Place);
        assert!(!position.drawn(now));
        position.resized(now);
        assert!(position.holds());
        assert!(!position.settles(now));
        position.resized(now + STILL / 2);
        assert!(!position.settles(now + STILL));
        let still = now + STILL * 2;
        assert!(position.settles(still));
        assert!(position.settled(still));
        // A second change before the answer: only the answer to the last question counts.
        position.resized(still);
        assert_eq!(position.answered(), Meaning::Nothing);
        let still = still + STILL;
        assert!(position.holds() && position.settles(still) && position.settled(still));
        assert!(position.holds());
        assert_eq!(position.answered(), Meaning::Resize);
        assert!(!position.holds());
    }

    #[test]
    fn an_answer_that_comes_behind_another_frame_says_nothing() {
        let now = Instant::now();
        let mut position = outside();
        assert!(position.drawn(now));
        assert!(!position.drawn(now));
        assert_eq!(position.answered(), Meaning::Nothing);
        assert!(position.drawn(now));
        assert_eq!(position.answered(), Meaning::Place);
    }

    #[test]
    fn a_terminal_that_does_not_answer_is_not_waited_for_again() {
        let now = Instant::now();
        let mut position = outside();
        assert!(position.drawn(now));
        assert!(!position.expired(now));
        assert!(!position.expired(later(now)));
        assert!(!position.drawn(now));
        assert!(!position.settled(now));
        let mut slow = outside();
        assert!(slow.settled(now));
        assert!(slow.expired(later(now)));
        assert!(!slow.settled(now));
        // It comes late, and then it is known that it does.
        assert_eq!(slow.answered(), Meaning::Nothing);
        assert!(slow.settled(now));
        assert!(!outside().silent().drawn(now));
    }

    #[test]
    fn how_some_terminals_lay_rows_out_is_known() {
        for (name, value, expected) in [
            ("TMUX", "/tmp/x", Some(true)),
            ("VTE_VERSION", "7000", Some(true)),
            ("XTERM_VERSION", "XTerm(390)", Some(false)),
            ("TERM", "linux", Some(false)),
            ("TERM", "xterm-256color", None),
        ] {
            let found = reflows(|asked| (asked == name).then(|| value.to_owned()));
            assert_eq!(found, expected, "{name}");
        }
    }

    /// What streams, and the editor, in a pane of tmux that is made narrower by a column every `pace`
    /// milliseconds. tmux tells of the first size at once, and of further ones 250 ms after the one before.
    fn drag(pace: u64) {
        const ROWS: usize = 24;
        const TOLD_MS: u64 = 250;
        let text = |paragraph: u64, words: u64| {
            (0..words).map(|word| format!("p{paragraph}w{word} ")).collect::<String>()
        };
        let live = |paragraph: u64, words: u64, columns: usize| -> Vec<Line> {
            let rule = plain(&"-".repeat(columns));
            let mut lines = crate::tui::wrap::wrap(&plain(text(paragraph, words).trim_end()), columns);
            let mut typed = plain("typed");
            typed.cursor = Some(5);
            lines.extend([rule.clone(), typed, rule, plain("status")]);
            lines
        };
        let (start, mut grid, mut known, mut told) = (Instant::now(), 60, 60, None);
        let mut terminal = Terminal::new(grid, ROWS);
        let inside = |name: &str| (name == "TMUX").then(|| "/tmp/x".to_owned());
        let mut position = Position::new(inside);
        position.drawn(start);
        position.answered();
        terminal.draw(&[], &live(0, 0, known));
        terminal.screen.locate(usize::from(terminal.cursor().0));
        let (mut paragraph, mut words) = (0, 0);
        for ms in (0..).step_by(4) {
            let now = start + Duration::from_millis(ms);
            if ms % pace < 4 && ms > 1000 && grid > 40 {
                grid -= 1;
                terminal.parser = narrowed(&mut terminal, grid);
            }
            if told.is_none_or(|told| told + TOLD_MS <= ms) && grid != known {
                (told, known) = (Some(ms), grid);
                position.resized(now);
            }
            let size = Size { columns: known, rows: ROWS };
            if position.settles(now) && position.settled(now) && position.answered() == Meaning::Resize {
                let at = usize::from(terminal.cursor().0);
                let out = terminal.screen.resize_at(size, at, Some(true), &live(paragraph, words, known));
                terminal.parser.process(out.expect("a known place").as_bytes());
            }
            if !position.holds() && ms % 16 == 0 {
                words += 1;
                let is_done = words == 20;
                let above = text(paragraph, 20);
                if is_done {
                    (paragraph, words) = (paragraph + 1, 0);
                }
                let above: &[&str] = if is_done { &[above.trim_end()] } else { &[] };
                terminal.draw(above, &live(paragraph, words, known));
            }
            if grid == 40 && known == 40 && !position.holds() && words == 0 {
                break;
            }
        }
        let words: Vec<String> = (0..paragraph).map(|number| text(number, 20)).collect();
        let all = terminal.everything().join(" ");
        let expected = format!("{} {rule} typed {rule} status", words.join(" "), rule = "-".repeat(40));
        let flat = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(flat(&all), flat(&expected), "{pace} ms");
    }

    #[test]
    fn a_pane_that_is_dragged_while_an_answer_streams_doubles_no_row() {
        for pace in [20, 100, 200, 240, 300, 1000] {
            drag(pace);
        }
    }
}
