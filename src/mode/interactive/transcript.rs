//! The part of the conversation that is not finished yet, and what of it can be printed for good.
//!
//! What is printed scrolls away with the terminal and is never drawn again, so a part is printed when nothing
//! of it can change and everything before it is printed: text line by line while it streams, a call when it
//! has ended and all calls before it have too.

use super::card::{self, Call, State, Weight};
use super::feed::{Kind, News};
use super::look::{Look, indented};
use crate::runtime::{AgentMessage, StopReason};
use crate::tui::line::Line;
use crate::tui::markdown_view::Stream;
use std::collections::VecDeque;
use std::time::Instant;

#[derive(Default)]
pub struct Transcript {
    parts: VecDeque<Part>,
    /// What was printed last, for a screen that is drawn again.
    printed: VecDeque<Line>,
}

/// Rows that are kept of what was printed.
const PRINTED_MAX: usize = 500;

struct Part {
    /// The block of the answer that streams.
    index: Option<usize>,
    body: Body,
    /// Nothing of it changes any more.
    is_final: bool,
    /// Lines that are final, in wait for the parts before.
    ready: Vec<Line>,
}

enum Body {
    /// All of it is in `ready`.
    Lines,
    Text {
        stream: Stream,
        is_thinking: bool,
        /// Something but line ends came.
        has_begun: bool,
        has_lines: bool,
    },
    Call(Call),
    /// A command of the user: it and the end of what it printed.
    Shell(Call),
}

impl Part {
    fn new(body: Body) -> Self {
        Self {
            index: None,
            body,
            is_final: false,
            ready: Vec::new(),
        }
    }
}

impl Transcript {
    /// Adds lines below everything else.
    pub fn add(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            let mut part = Part::new(Body::Lines);
            (part.ready, part.is_final) = (lines, true);
            self.parts.push_back(part);
        }
    }

    pub fn say(&mut self, weight: Weight, text: &str, look: &Look<'_>) {
        self.add(card::notice(weight, text, look));
    }

    /// Whether there is something that folding changes.
    pub fn has_calls(&self) -> bool {
        let is_call = |part: &Part| matches!(part.body, Body::Call(_) | Body::Shell(_));
        self.parts.iter().any(is_call)
    }

    /// Something in it shows how long it runs.
    pub fn is_running(&self) -> bool {
        self.parts.iter().any(|part| match &part.body {
            Body::Call(call) | Body::Shell(call) => {
                matches!(call.state, State::Running { .. })
            }
            _ => false,
        })
    }

    /// Takes in what happened, as far as it belongs here.
    pub fn take(&mut self, news: &mut News, look: &Look<'_>, now: Instant) {
        match news {
            News::MessageStarted(AgentMessage::Assistant(_)) => {}
            News::MessageStarted(message) => self.add(card::message(message, look)),
            News::MessageEnded(AgentMessage::Assistant(answer)) => {
                self.end_answer(look);
                // An aborted answer may hold calls that nobody will run.
                if matches!(answer.stop_reason, StopReason::Aborted | StopReason::Error) {
                    self.end_calls(now);
                }
                self.add(card::ending(answer, look));
            }
            News::BlockStarted {
                index,
                kind,
                id,
                name,
            } => self.begin(*index, *kind, id, name),
            News::Piece { index, text, .. } => self.grow(*index, text, look),
            News::BlockEnded { index } => self.end_block(*index, look),
            News::ToolStarted {
                id,
                name,
                arguments,
            } => {
                let call = self.call(id, name);
                call.set_arguments(std::mem::take(arguments));
                call.state = State::Running { since: now };
            }
            News::ToolUpdated { id, output } => {
                self.call(id, "").output = Some(std::mem::take(output));
            }
            News::ToolEnded {
                id,
                output,
                is_error,
            } => {
                let call = self.call(id, "");
                call.output = Some(std::mem::take(output));
                call.end(*is_error, now);
            }
            News::Settled => {
                self.end_answer(look);
                self.end_calls(now);
            }
            _ => {}
        }
    }

    /// A command of the user begins.
    pub fn begin_shell(&mut self, call: Call) {
        self.parts.push_back(Part::new(Body::Shell(call)));
    }

    /// The command of the user that runs.
    pub fn shell(&mut self) -> Option<&mut Call> {
        self.parts
            .iter_mut()
            .rev()
            .find_map(|part| match &mut part.body {
                Body::Shell(call) if !call.is_done() => Some(call),
                _ => None,
            })
    }

    fn begin(&mut self, index: usize, kind: Kind, id: &str, name: &str) {
        let mut part = Part::new(match kind {
            Kind::Arguments => Body::Call(Call::new(id, name)),
            kind => Body::Text {
                stream: Stream::default(),
                is_thinking: kind == Kind::Thinking,
                has_begun: false,
                has_lines: false,
            },
        });
        part.index = Some(index);
        self.parts.push_back(part);
    }

    /// The block of the answer that streams; the last one where an index came twice.
    fn open(&mut self, index: usize) -> Option<&mut Part> {
        let mut parts = self.parts.iter_mut().rev();
        parts.find(|part| part.index == Some(index))
    }

    fn grow(&mut self, index: usize, text: &str, look: &Look<'_>) {
        let Some(part) = self.open(index) else {
            return;
        };
        match &mut part.body {
            Body::Text {
                stream,
                is_thinking,
                has_begun,
                has_lines,
            } => {
                // Models begin answers with line ends; they are no part of it.
                let text = match *has_begun {
                    true => text,
                    false => text.trim_start_matches(['\n', '\r']),
                };
                if text.is_empty() {
                    return;
                }
                *has_begun = true;
                // What is hidden is not held either: it can be read in the viewer.
                if !*is_thinking || !look.hides_thinking {
                    let lines = stream.push(text, &text_look(*is_thinking, look));
                    push_text(&mut part.ready, has_lines, lines);
                }
            }
            Body::Call(call) => call.write(text),
            _ => {}
        }
    }

    fn end_block(&mut self, index: usize, look: &Look<'_>) {
        if let Some(part) = self.open(index) {
            part.end(look);
        }
    }

    /// The answer that streamed is whole, or there is no more of it.
    fn end_answer(&mut self, look: &Look<'_>) {
        for part in &mut self.parts {
            if part.index.is_some() {
                part.end(look);
            }
        }
    }

    /// Calls that have not ended never will.
    fn end_calls(&mut self, now: Instant) {
        for part in &mut self.parts {
            if let Body::Call(call) = &mut part.body
                && !call.is_done()
            {
                call.end(true, now);
            }
        }
    }

    fn call(&mut self, id: &str, name: &str) -> &mut Call {
        let known = self.parts.iter().rposition(
            |part| matches!(&part.body, Body::Call(call) if call.id == id && !call.is_done()),
        );
        let at = known.unwrap_or_else(|| {
            self.parts
                .push_back(Part::new(Body::Call(Call::new(id, name))));
            self.parts.len() - 1
        });
        match self.parts.get_mut(at).map(|part| &mut part.body) {
            Some(Body::Call(call)) => call,
            // It was found, or put there, just now.
            _ => unreachable!("the part is a call"),
        }
    }

    /// What can be printed for good, as lines; they are not held any more.
    pub fn settle(&mut self, look: &Look<'_>, now: Instant) -> Vec<Line> {
        let mut out = Vec::new();
        while let Some(part) = self.parts.front_mut() {
            out.append(&mut part.ready);
            match &part.body {
                Body::Call(call) | Body::Shell(call) if call.is_done() => {
                    out.extend(call.lines(look, now));
                }
                _ if part.is_final => {}
                _ => break,
            }
            self.parts.pop_front();
        }
        self.remember(&out);
        out
    }

    fn remember(&mut self, lines: &[Line]) {
        self.printed.extend(lines.iter().cloned());
        let surplus = self.printed.len().saturating_sub(PRINTED_MAX);
        self.printed.drain(..surplus);
    }

    /// The end of what was printed.
    pub fn tail(&self, rows: usize) -> Vec<Line> {
        let first = self.printed.len().saturating_sub(rows);
        self.printed.range(first..).cloned().collect()
    }

    /// What is not printed yet.
    pub fn live(&self, look: &Look<'_>, now: Instant) -> Vec<Line> {
        let mut out = Vec::new();
        for part in &self.parts {
            out.extend(part.ready.iter().cloned());
            match &part.body {
                Body::Lines => {}
                Body::Text { .. } if part.is_final => {}
                Body::Text {
                    stream,
                    is_thinking,
                    has_begun,
                    has_lines,
                } => {
                    if !has_begun {
                        continue;
                    }
                    if *is_thinking && look.hides_thinking {
                        out.extend(card::thinking("", look));
                    } else {
                        let open = stream.open(&text_look(*is_thinking, look));
                        push_text(&mut out, &mut has_lines.clone(), open);
                    }
                }
                Body::Call(call) | Body::Shell(call) => out.extend(call.lines(look, now)),
            }
        }
        out
    }

    /// Forgets everything: another conversation begins.
    pub fn clear(&mut self) {
        self.parts.clear();
    }
}

impl Part {
    fn end(&mut self, look: &Look<'_>) {
        self.index = None;
        match &mut self.body {
            Body::Text {
                stream,
                is_thinking,
                has_begun,
                has_lines,
            } => {
                if !*has_begun {
                    // A block of nothing.
                } else if *is_thinking && look.hides_thinking {
                    self.ready.extend(card::thinking("", look));
                } else {
                    let rest = std::mem::take(stream).finish(&text_look(*is_thinking, look));
                    push_text(&mut self.ready, has_lines, rest);
                }
                self.is_final = true;
            }
            Body::Call(call) => call.written(),
            Body::Lines | Body::Shell(_) => {}
        }
    }
}

/// The first lines of a text come behind an empty row.
fn push_text(out: &mut Vec<Line>, has_lines: &mut bool, lines: Vec<Line>) {
    if !lines.is_empty() {
        if !std::mem::replace(has_lines, true) {
            out.push(Line::new());
        }
        out.extend(indented(lines));
    }
}

fn text_look<'a>(is_thinking: bool, look: &Look<'a>) -> crate::tui::markdown_view::Look<'a> {
    let base = match is_thinking {
        true => card::thinking_style(look),
        false => look.style(crate::tui::theme::Role::Text),
    };
    look.markdown(look.width.saturating_sub(2), base)
}
