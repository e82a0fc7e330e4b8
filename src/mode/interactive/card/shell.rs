//! A command of the user, `!command` or `!!command`, with the end of its output.

use super::block::{duration, plain, spaced};
use super::rows::{Extent, rows};
use super::tail::Tail;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::{Look, indented};
use crate::runtime::BashExecution;
use crate::runtime::shell::ShellResult;
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::time::{Duration, Instant};

/// Output rows shown of a folded command.
const FOLDED: usize = 20;

pub struct Shell {
    command: String,
    /// True if the command is hidden from the model.
    is_hidden: bool,
    output: Tail,
    state: State,
}

enum State {
    Running { since: Instant },
    Done(Ended),
}

#[derive(Default)]
struct Ended {
    exit_code: Option<i64>,
    is_cancelled: bool,
    /// Path of the full output, if it was truncated.
    full: Option<String>,
    took: Option<Duration>,
    /// Why the command could not run.
    failure: Option<String>,
}

impl Shell {
    pub fn new(command: &str, is_hidden: bool, now: Instant) -> Self {
        Self {
            command: command.to_owned(),
            is_hidden,
            output: Tail::default(),
            state: State::Running { since: now },
        }
    }

    /// A command of an earlier run.
    pub fn of(bash: &BashExecution) -> Self {
        let mut output = Tail::default();
        output.push(&plain(&bash.output));
        let full = bash.full_output_path.clone().filter(|_| bash.truncated);
        Self {
            command: bash.command.clone(),
            is_hidden: bash.exclude_from_context == Some(true),
            output,
            state: State::Done(Ended {
                exit_code: bash.exit_code,
                is_cancelled: bash.cancelled,
                full,
                ..Ended::default()
            }),
        }
    }

    /// Appends output of the command.
    pub fn print(&mut self, text: &str) {
        self.output.push(text);
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    pub fn end(&mut self, result: &ShellResult, now: Instant) {
        self.output = Tail::default();
        self.output.push(&result.output);
        self.state = State::Done(Ended {
            exit_code: result.exit_code,
            is_cancelled: result.cancelled,
            full: result.full_output_path.clone().filter(|_| result.truncated),
            took: self.took(now),
            failure: None,
        });
    }

    /// Ends the command with the reason why it could not run.
    pub fn fail(&mut self, reason: &str, now: Instant) {
        self.state =
            State::Done(Ended { took: self.took(now), failure: Some(reason.to_owned()), ..Ended::default() });
    }

    fn took(&self, now: Instant) -> Option<Duration> {
        match &self.state {
            State::Running { since } => Some(now.saturating_duration_since(*since)),
            State::Done(ended) => ended.took,
        }
    }

    /// Lines of the command. `room`: rows that are visible.
    pub fn lines(&self, look: &Look<'_>, now: Option<Instant>, room: Option<usize>) -> Vec<Line> {
        let color = look.style(match self.is_hidden {
            true => Role::Dim,
            false => Role::BashMode,
        });
        let (muted, dim) = (look.style(Role::Muted), look.style(Role::Dim));
        let width = look.width.saturating_sub(2).max(1);
        let mut lines = Vec::new();
        for (at, text) in self.command.lines().enumerate() {
            let mark = if at == 0 { "$ " } else { "" };
            let line = Line::of(&format!("{mark}{text}"), color.with(Attributes::BOLD));
            lines.extend(wrap(&line, width));
        }
        if self.is_hidden {
            lines.extend(wrap(&Line::of("Not sent to the model", dim), width));
        }
        let extent = match (look.is_open, room) {
            (false, _) => Extent::Last(FOLDED),
            (true, Some(room)) => Extent::Last(room),
            (true, None) => Extent::All,
        };
        let output = rows(self.output.text().trim_end(), width, extent, &mut |line| Line::of(line, muted));
        if !output.shown.is_empty() {
            lines.push(Line::new());
            lines.extend(output.shown);
        }
        let mut states = Vec::new();
        let hidden = output.hidden + self.output.lost();
        if hidden > 0 {
            let mut line = Line::of(&format!("... {hidden} more lines"), muted);
            if let Some(key) = look.key(AppAction::TOOLS_EXPAND).filter(|_| !look.is_open) {
                line.push(" (", muted);
                line.push(&key, dim);
                line.push(" to expand)", muted);
            }
            states.push(line);
        }
        self.states(look, now, &mut states);
        if !states.is_empty() {
            lines.push(Line::new());
            lines.extend(states.iter().flat_map(|line| wrap(line, width)));
        }
        let mut out = vec![look.rule(color)];
        out.extend(indented(lines));
        out.push(look.rule(color));
        spaced(out)
    }

    fn states(&self, look: &Look<'_>, now: Option<Instant>, out: &mut Vec<Line>) {
        let muted = look.style(Role::Muted);
        let ended = match &self.state {
            State::Running { .. } => {
                let took = now.and_then(|now| self.took(now)).unwrap_or_default();
                let mut text = String::from("Running...");
                if let Some(key) = look.key(AppAction::INTERRUPT) {
                    text = format!("Running... ({key} to cancel)");
                }
                if !look.is_plain && took >= Duration::from_secs(1) {
                    text = format!("{text} {}", duration(took));
                }
                return out.push(Line::of(&text, muted));
            }
            State::Done(ended) => ended,
        };
        if let Some(failure) = &ended.failure {
            out.push(Line::of(failure, look.style(Role::Error)));
        } else if ended.is_cancelled {
            out.push(Line::of("(cancelled)", look.style(Role::Warning)));
        } else if let Some(code) = ended.exit_code.filter(|code| *code != 0) {
            out.push(Line::of(&format!("(exit {code})"), look.style(Role::Error)));
        }
        if let Some(path) = &ended.full {
            let (shown, link) = look.place(path);
            let mut line = Line::of("Output truncated. Full output: ", look.style(Role::Warning));
            line.push_link(&shown, look.style(Role::Warning), link.as_ref());
            out.push(line);
        }
        if let Some(took) = ended.took {
            out.push(Line::of(&format!("Took {}", duration(took)), muted));
        }
    }
}
