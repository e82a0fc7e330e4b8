//! Converts chunks of bytes to inputs, with the two decisions that depend on time.
//!
//! A lone Escape is the key if no bytes follow for some time: the loop waits until [`Inputs::deadline`]. A
//! paste without marks, from a terminal that does not mark pastes, is many lines faster than anyone types: it
//! must not be sent at its first line end.

use crate::tui::decode::Decoder;
use crate::tui::key::{Code, Input, Key, Reply};
use std::time::{Duration, Instant};

const USUAL: Duration = Duration::from_millis(10);
/// Escape timeout over a network, which may delay the rest of a sequence.
const REMOTE: Duration = Duration::from_millis(100);
/// Maximum Escape timeout.
const LONGEST: Duration = Duration::from_secs(10);

/// Maximum time between chunks of a paste without marks.
const BURST: Duration = Duration::from_millis(50);

/// How long to wait after an Escape byte for the rest of a key sequence.
pub(super) fn escape_timeout(variable: impl Fn(&str) -> Option<String>) -> Duration {
    let given = variable("PI_TUI_ESC_TIMEOUT").and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(millis) = given.filter(|millis| *millis > 0.0 && millis.is_finite()) {
        return Duration::try_from_secs_f64(millis / 1000.0).map_or(LONGEST, |time| time.min(LONGEST));
    }
    if is_remote(&variable) { REMOTE } else { USUAL }
}

fn is_set(variable: impl Fn(&str) -> Option<String>, name: &str) -> bool {
    variable(name).is_some_and(|value| !value.is_empty())
}

fn is_remote(variable: impl Fn(&str) -> Option<String>) -> bool {
    ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"].iter().any(|name| is_set(&variable, name))
}

/// Queries the cursor position.
pub const ASK_POSITION: &str = "\x1b[6n";

#[derive(Debug)]
pub struct Inputs {
    decoder: Decoder,
    timeout: Duration,
    /// Time at which an incomplete sequence is decoded as it is.
    deadline: Option<Instant>,
    /// True if the terminal is known to mark pastes.
    marks_pastes: bool,
    burst_until: Option<Instant>,
}

impl Inputs {
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_windows_terminal = is_set(&variable, "WT_SESSION") && !is_remote(&variable);
        Self {
            decoder: Decoder::new(is_windows_terminal),
            timeout: escape_timeout(variable),
            deadline: None,
            marks_pastes: false,
            burst_until: None,
        }
    }

    /// Decodes a chunk that was received at `now`.
    pub fn push(&mut self, bytes: &[u8], now: Instant) -> Vec<Input> {
        let mut inputs = Vec::new();
        self.decoder.push(bytes, &mut inputs);
        self.deadline = self.decoder.is_waiting().then(|| now + self.timeout);
        self.marks_pastes |= inputs.iter().any(|input| match input {
            Input::Paste(_) => true,
            Input::Reply(Reply::Keyboard(flags)) => *flags != 0,
            _ => false,
        });
        if !self.marks_pastes
            && let Some(text) = self.burst(&inputs, now)
        {
            self.burst_until = Some(now + BURST);
            return vec![Input::Paste(text)];
        }
        inputs
    }

    /// Records that the cursor position was queried with [`ASK_POSITION`].
    pub fn await_position(&mut self) {
        self.decoder.await_position();
    }

    /// Time until which to wait for bytes before [`Self::expire`].
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Handles a passed deadline.
    pub fn expire(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        self.deadline = None;
        self.decoder.time_out(&mut inputs);
        inputs
    }

    /// The text of a chunk that was probably pasted: only text, with more after a line end.
    fn burst(&self, inputs: &[Input], now: Instant) -> Option<String> {
        let mut text = String::with_capacity(inputs.len());
        for input in inputs {
            let Input::Key(key) = input else { return None };
            text.push(match key.code {
                Code::Enter if *key == Key::plain(Code::Enter) => '\n',
                Code::Tab if *key == Key::plain(Code::Tab) => '\t',
                Code::Char('j') if key.typed().is_none() && key.to_string() == "ctrl+j" => '\n',
                _ => key.typed()?,
            });
        }
        let goes_on = self.burst_until.is_some_and(|until| now <= until);
        let has_lines = text.trim_end_matches('\n').contains('\n');
        (has_lines || (goes_on && !text.is_empty())).then_some(text)
    }
}
