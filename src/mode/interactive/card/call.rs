//! A tool call, from the first byte of its arguments to its result.

use super::super::look::{Look, boxed};
use crate::runtime::shell::ShellResult;
use crate::runtime::{Block, PartialJson, ToolOutput};
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Its arguments are still coming.
    Writing,
    /// Its turn has not come.
    Waiting,
    Running {
        since: Instant,
    },
    Done {
        is_error: bool,
        /// Not known for a call of an earlier time.
        took: Option<Duration>,
    },
}

pub struct Call {
    pub id: String,
    pub name: String,
    arguments: Map<String, Value>,
    /// While the arguments come.
    json: Option<PartialJson>,
    pub state: State,
    /// The last that is known of it.
    pub output: Option<ToolOutput>,
}

impl Call {
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Map::new(),
            json: None,
            state: State::Writing,
            output: None,
        }
    }

    /// The arguments, as far as they are known.
    pub fn arguments(&self) -> &Map<String, Value> {
        match &self.json {
            Some(json) => json.object(),
            None => &self.arguments,
        }
    }

    pub fn set_arguments(&mut self, arguments: Map<String, Value>) {
        self.arguments = arguments;
        self.json = None;
    }

    /// More of the arguments' JSON text.
    pub fn write(&mut self, piece: &str) {
        self.json.get_or_insert_with(PartialJson::new).push(piece);
    }

    /// There is no more of the arguments.
    pub fn written(&mut self) {
        if self.state == State::Writing {
            self.state = State::Waiting;
        }
    }

    pub fn end(&mut self, is_error: bool, now: Instant) {
        let took = match self.state {
            State::Running { since } => Some(now.saturating_duration_since(since)),
            _ => None,
        };
        self.state = State::Done { is_error, took };
    }

    /// More of what it prints.
    pub fn print(&mut self, text: &str) {
        let output = self.output.get_or_insert_with(ToolOutput::default);
        match output.content.first_mut() {
            Some(Block::Text(block)) => block.text.push_str(text),
            _ => output.content.push(Block::text(text)),
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    /// A command of the user has ended.
    pub fn end_shell(&mut self, result: &ShellResult, now: Instant) {
        let mut text = result.output.clone();
        if result.cancelled {
            text.push_str("\n(cancelled)");
        }
        self.output = Some(ToolOutput::text(text));
        self.end(result.cancelled || result.exit_code != Some(0), now);
    }

    pub fn lines(&self, look: &Look<'_>, now: Instant) -> Vec<Line> {
        let background = look.style(match self.state {
            State::Done { is_error: true, .. } => Role::ToolErrorBg,
            State::Done { .. } => Role::ToolSuccessBg,
            _ => Role::ToolPendingBg,
        });
        let mut lines = vec![Line::of(
            &format!("{} {}", self.name, Value::Object(self.arguments().clone())),
            look.style(Role::ToolTitle).with(Attributes::BOLD),
        )];
        if let Some(output) = &self.output {
            for block in &output.content {
                for text in block.as_text().unwrap_or_default().lines() {
                    lines.push(Line::of(text, look.style(Role::ToolOutput)).cut(look.width - 2));
                }
            }
        }
        if let State::Running { since } = self.state {
            let _ = now.saturating_duration_since(since);
        }
        let mut out = vec![Line::new()];
        out.extend(boxed(&lines, look, background));
        out
    }
}
