//! The unfinished part of the conversation, and which of it can be printed.
//!
//! Printed lines scroll away with the terminal and are never redrawn, so a part is printed once it is final
//! and everything before it is printed: text line by line while streaming, a call when it and all calls
//! before it have ended.

mod part;
mod replay;

pub use part::Live;
pub use replay::stored_lines;

use super::card::{self, Call, Pictures, Shell, State, Summary, Weight};
use super::feed::{Kind, News};
use super::look::{Look, padded};
use crate::runtime::{AgentMessage, Describer, StopReason, call};
use crate::tui::image::Ids;
use crate::tui::line::Line;
use crate::tui::markdown_view::Stream;
use crate::tui::screen::Raw;
use crate::tui::wrap::wrap;
use part::{Body, Part, push_text};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub struct Transcript {
    parts: VecDeque<Part>,
    /// Printed parts of an answer that has not ended, and so is not in the log.
    printed_parts: Vec<Part>,
    /// Last printed lines, for redrawing the screen.
    printed: VecDeque<Line>,
    images: Ids,
    /// Why the last answer failed, until it is known whether it is asked for again.
    failure: Vec<Line>,
    /// True if nothing can follow that a call would be summed up with.
    is_settled: bool,
    /// True if its messages are those of the log.
    is_replay: bool,
}

/// Maximum printed rows that are kept.
const PRINTED_MAX: usize = 500;

/// Rows of a running card in a view with expanded output.
const VIEW_ROWS: usize = 400;

/// Content to print into the scrollback.
#[derive(Debug)]
pub enum Printed {
    Lines(Vec<Line>),
    Image(Raw),
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            parts: VecDeque::new(),
            printed_parts: Vec::new(),
            printed: VecDeque::new(),
            images: Ids::new(std::process::id()),
            failure: Vec::new(),
            is_settled: true,
            is_replay: false,
        }
    }
}

impl Transcript {
    /// Adds lines below everything else.
    pub fn add(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            let mut part = Part::new(Body::Lines);
            (part.ready, part.is_final, part.is_stored) = (lines, true, true);
            self.parts.push_back(part);
        }
    }

    /// Adds lines that hold back all below them until [`Self::release`], or gives those that are held a new form.
    pub fn hold(&mut self, lines: Vec<Line>) {
        match self.held() {
            Some(part) => part.body = Body::Held(lines),
            None => self.await_drawing(Body::Held(lines)),
        }
    }

    /// Puts lines in place of those that are held, or below everything else.
    pub fn release(&mut self, lines: Vec<Line>) {
        match self.held() {
            Some(part) => (part.body, part.ready, part.is_final) = (Body::Lines, lines, true),
            None => self.add(lines),
        }
    }

    fn held(&mut self) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| matches!(part.body, Body::Held(_)))
    }

    /// Adds a part that is printed when an extension has drawn it.
    fn await_drawing(&mut self, body: Body) {
        let mut part = Part::new(body);
        part.is_stored = true;
        self.parts.push_back(part);
    }

    pub fn say(&mut self, weight: Weight, text: &str, look: &Look<'_>) {
        self.add(card::notice(weight, text, look));
    }

    /// True if folding changes something in it.
    pub fn has_calls(&self) -> bool {
        let is_call = |part: &Part| matches!(part.body, Body::Call(_) | Body::Shell(_));
        self.parts.iter().any(is_call)
    }

    /// True if a running time is shown.
    pub fn is_running(&self) -> bool {
        self.parts.iter().any(|part| match &part.body {
            Body::Call(call) => matches!(call.state, State::Running { .. }),
            Body::Shell(shell) => !shell.is_done(),
            _ => false,
        })
    }

    /// Handles news that concerns the transcript.
    pub fn take(&mut self, news: &mut News, look: &Look<'_>, now: Instant) {
        match news {
            News::RunStarted => self.is_settled = false,
            // It is shown while it lasts, and summed up when it has ended.
            News::RetryStarted { .. } => self.failure.clear(),
            News::RetriesFailed { is_cancelled, .. } => {
                let failure = std::mem::take(&mut self.failure);
                self.add(if *is_cancelled { Vec::new() } else { failure });
            }
            News::MessageStarted(AgentMessage::Assistant(_)) => {}
            News::MessageStarted(message) if card::is_awaited(message, look) => {
                self.await_drawing(Body::Message(message.clone()));
            }
            News::MessageStarted(message) => self.add(card::message(message, look)),
            News::EntryAppended(entry) if card::is_entry_awaited(entry, look) => {
                self.await_drawing(Body::Entry(std::mem::take(entry)));
            }
            News::MessageEnded(AgentMessage::Assistant(answer)) => {
                self.end_answer(look);
                self.store();
                // It may hold calls that nobody will run.
                if matches!(answer.stop_reason, StopReason::Aborted | StopReason::Error) {
                    self.end_calls(&card::reason(answer), now);
                }
                self.tell_failure();
                match answer.stop_reason {
                    StopReason::Error => self.failure = card::ending(answer, look),
                    _ => self.add(card::ending(answer, look)),
                }
            }
            News::MessageEnded(AgentMessage::ToolResult(result)) => {
                // Calls that were skipped have a result without having run.
                if let Some(call) = self.open_call(&result.tool_call_id) {
                    call.finish(result, Some(now));
                }
                for part in &mut self.parts {
                    if let Body::Call(call) = &mut part.body {
                        call.is_recorded |= call.id == result.tool_call_id;
                    }
                }
            }
            News::BlockStarted { index, kind, id, name } => self.begin(*index, *kind, id, name, look),
            News::Piece { index, text, .. } => self.grow(*index, text, look),
            News::BlockEnded { index } => self.end_block(*index, look),
            News::ToolWritten { id, name, arguments } => {
                let call = self.call(id, name);
                call.set_arguments(std::mem::take(arguments));
                call.written();
            }
            News::ToolStarted { id, name, arguments } => {
                let call = self.call(id, name);
                call.set_arguments(std::mem::take(arguments));
                call.state = State::Running { since: now };
            }
            News::ToolUpdated { id, output } => {
                self.call(id, "").set_output(std::mem::take(output));
            }
            News::ToolEnded { id, output, is_error } => {
                let call = self.call(id, "");
                call.set_output(std::mem::take(output));
                call.end(*is_error, Some(now));
            }
            News::Settled => {
                self.is_settled = true;
                self.tell_failure();
                self.end_answer(look);
                self.end_calls("Not run", now);
                self.store();
                self.store_shells();
            }
            _ => {}
        }
    }

    /// Shows why the last answer failed.
    fn tell_failure(&mut self) {
        let failure = std::mem::take(&mut self.failure);
        self.add(failure);
    }

    /// Adds a user's command that begins.
    pub fn begin_shell(&mut self, shell: Shell) {
        self.parts.push_back(Part::new(Body::Shell(shell)));
    }

    /// The running command of the user.
    pub fn shell(&mut self) -> Option<&mut Shell> {
        self.parts.iter_mut().rev().find_map(|part| match &mut part.body {
            Body::Shell(shell) if !shell.is_done() => Some(shell),
            _ => None,
        })
    }

    fn begin(&mut self, index: usize, kind: Kind, id: &str, name: &str, look: &Look<'_>) {
        static TEXTS: AtomicU64 = AtomicU64::new(0);
        let is_thinking = kind == Kind::Thinking;
        let mut part = Part::new(match kind {
            Kind::Arguments => Body::Call(Call::new(id, name)),
            _ if look.drawings.draws("markdown", card::surface(is_thinking)) => Body::Changed {
                is_thinking,
                source: String::new(),
                id: match self.is_replay {
                    true => String::new(),
                    false => format!("text {}", TEXTS.fetch_add(1, Ordering::Relaxed)),
                },
                is_complete: false,
            },
            _ => Body::Text {
                stream: Stream::default(),
                is_thinking,
                has_begun: false,
                has_lines: false,
                source: String::new(),
                view: None,
            },
        });
        part.index = Some(index);
        self.parts.push_back(part);
    }

    /// The part of a block of the streaming answer; the last one if an index was repeated.
    fn open(&mut self, index: usize) -> Option<&mut Part> {
        let mut parts = self.parts.iter_mut().rev();
        parts.find(|part| part.index == Some(index))
    }

    fn grow(&mut self, index: usize, text: &str, look: &Look<'_>) {
        let Some(part) = self.open(index) else {
            return;
        };
        match &mut part.body {
            Body::Text { stream, is_thinking, has_begun, has_lines, source, .. } => {
                // Models begin answers with line ends; they are no part of it.
                let text = match *has_begun {
                    true => text,
                    false => text.trim_start_matches(['\n', '\r']),
                };
                if text.is_empty() {
                    return;
                }
                *has_begun = true;
                source.push_str(text);
                if !*is_thinking || !look.hides_thinking {
                    let lines = stream.push(text, &card::answer_look(*is_thinking, look));
                    push_text(&mut part.ready, (has_lines, *is_thinking), lines, look);
                }
            }
            Body::Changed { source, .. } => source.push_str(text),
            Body::Call(call) => call.write(text),
            _ => {}
        }
    }

    fn end_block(&mut self, index: usize, look: &Look<'_>) {
        if let Some(part) = self.open(index) {
            part.end(look);
        }
    }

    /// Ends the streaming answer, complete or not.
    fn end_answer(&mut self, look: &Look<'_>) {
        for part in &mut self.parts {
            if part.index.is_some() {
                part.end(look);
            }
        }
    }

    /// Ends calls that will not end any more.
    fn end_calls(&mut self, reason: &str, now: Instant) {
        for part in &mut self.parts {
            if let Body::Call(call) = &mut part.body {
                if !call.is_done() {
                    call.fail(reason, Some(now));
                }
                call.is_recorded = true;
            }
        }
    }

    /// The unfinished call with this id.
    pub fn open_call(&mut self, id: &str) -> Option<&mut Call> {
        let mut parts = self.parts.iter_mut().rev();
        parts.find_map(|part| match &mut part.body {
            Body::Call(call) if call.id == id && !call.is_done() => Some(call),
            _ => None,
        })
    }

    /// The unfinished card of the call with this id, created if missing.
    fn call(&mut self, id: &str, name: &str) -> &mut Call {
        let known = self
            .parts
            .iter()
            .rposition(|part| matches!(&part.body, Body::Call(call) if call.id == id && !call.is_done()));
        let at = known.unwrap_or_else(|| {
            self.parts.push_back(Part::new(Body::Call(Call::new(id, name))));
            self.parts.len() - 1
        });
        match self.parts.get_mut(at).map(|part| &mut part.body) {
            Some(Body::Call(call)) => call,
            // It was found, or put there, just now.
            _ => unreachable!("the part is a call"),
        }
    }

    /// Id and arguments of a call that can be previewed before it runs.
    pub fn edit_to_preview(&self, describer: &Describer) -> Option<(String, Map<String, Value>)> {
        let mut parts = self.parts.iter().rev();
        parts.find_map(|part| match &part.body {
            Body::Call(call)
                if call.state == State::Waiting
                    && call.preview.is_none()
                    && matches!(call.info(describer).body, call::Body::Edits(_)) =>
            {
                Some((call.id.clone(), call.arguments().clone()))
            }
            _ => None,
        })
    }

    /// Takes the lines that can be printed. Images are drawn as `pictures` says.
    pub fn take_finished(
        &mut self,
        look: &Look<'_>,
        now: Instant,
        pictures: Option<&Pictures>,
    ) -> Vec<Printed> {
        let mut out = Vec::new();
        let mut lines = Vec::new();
        while !self.parts.is_empty() {
            let (count, summaries, is_open) = self.summaries(0, look);
            if count > 0 {
                if is_open && !self.is_settled {
                    break;
                }
                lines.extend(match (summaries.as_slice(), self.parts.front()) {
                    ([_], Some(only)) => only.lines(look, Some(now), None),
                    _ => sum_up(&summaries, look),
                });
                let printed = self.parts.drain(..count);
                self.printed_parts.extend(printed.filter(|part| !part.is_stored));
                continue;
            }
            let Some(part) = self.parts.front_mut() else { break };
            lines.append(&mut part.ready);
            match &part.body {
                Body::Message(message) if card::is_awaited(message, look) => break,
                Body::Message(message) => lines.extend(card::message(message, look)),
                Body::Entry(entry) if card::is_entry_awaited(entry, look) => break,
                Body::Entry(entry) => lines.extend(card::entry(entry, look)),
                Body::Changed { is_complete: true, .. } => {
                    let awaited = look.drawings.awaited();
                    let own = part.lines(look, Some(now), None);
                    if look.drawings.awaited() > awaited {
                        break;
                    }
                    lines.extend(own);
                }
                Body::Call(call) if call.is_done() && call.is_awaited(look) => break,
                Body::Call(call) if call.is_done() => match pictures {
                    Some(how) if call.pictures().next().is_some() => {
                        lines.extend(call.lines_without_images(look, Some(now)));
                        for raw in call.draw_images(how, &mut self.images, look) {
                            lines.push(Line::new());
                            out.push(Printed::Lines(std::mem::take(&mut lines)));
                            out.push(Printed::Image(raw));
                        }
                    }
                    _ => lines.extend(call.lines(look, Some(now), None)),
                },
                Body::Shell(shell) if shell.is_done() => {
                    lines.extend(shell.lines(look, Some(now), None));
                }
                _ if part.is_final => {}
                _ => break,
            }
            let printed = self.parts.pop_front();
            self.printed_parts.extend(printed.filter(|part| !part.is_stored));
        }
        if !lines.is_empty() {
            out.push(Printed::Lines(lines));
        }
        for printed in &out {
            let lines = match printed {
                Printed::Lines(lines) => lines,
                Printed::Image(raw) => &raw.instead,
            };
            let seen = lines.len().saturating_sub(PRINTED_MAX);
            self.printed.extend(lines.iter().skip(seen).cloned());
        }
        let surplus = self.printed.len().saturating_sub(PRINTED_MAX);
        self.printed.drain(..surplus);
        out
    }

    /// The last `rows` printed lines.
    pub fn tail(&self, rows: usize) -> Vec<Line> {
        let first = self.printed.len().saturating_sub(rows);
        self.printed.range(first..).cloned().collect()
    }

    /// The end of the unprinted part: `rows` lines, or slightly more.
    pub fn live(&self, look: &Look<'_>, now: Instant, rows: usize) -> Vec<Line> {
        self.lines(look, rows, &mut |part| part.lines(look, Some(now), Some(rows)))
    }

    /// The last `rows` lines of all parts, or slightly more. `draw` draws a part that is not summed up.
    fn lines(&self, look: &Look<'_>, rows: usize, draw: &mut dyn FnMut(&Part) -> Vec<Line>) -> Vec<Line> {
        let mut groups = Vec::new();
        let mut at = 0;
        while at < self.parts.len() {
            let (count, summaries, _) = self.summaries(at, look);
            groups.push((at, summaries));
            at += count.max(1);
        }
        let mut blocks = Vec::new();
        let mut count = 0;
        for (at, summaries) in groups.into_iter().rev() {
            let block = match (summaries.as_slice(), self.parts.get(at)) {
                ([] | [_], Some(part)) => draw(part),
                _ => sum_up(&summaries, look),
            };
            count += block.len();
            blocks.push(block);
            if count >= rows {
                break;
            }
        }
        blocks.into_iter().rev().flatten().collect()
    }

    /// The calls from part `from` on that are summed up in one row: the number of their parts, their summaries,
    /// and whether another call may yet join them. Parts without lines between them do not count.
    fn summaries(&self, from: usize, look: &Look<'_>) -> (usize, Vec<Summary>, bool) {
        let mut summaries = Vec::new();
        let mut count = 0;
        for (at, part) in self.parts.iter().enumerate().skip(from) {
            let summary = match &part.body {
                Body::Call(call) => call.summary(look),
                _ => None,
            };
            match summary {
                Some(summary) => {
                    summaries.push(summary);
                    count = at + 1 - from;
                }
                None if summaries.is_empty() => break,
                None if part.is_blank() => {}
                None => return (count, summaries, part.may_join(look)),
            }
        }
        (count, summaries, true)
    }

    /// Clears everything for another conversation.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.printed_parts.clear();
    }

    /// Marks the streaming answer as held by the conversation.
    fn store(&mut self) {
        self.printed_parts.clear();
        for part in &mut self.parts {
            part.is_stored |= matches!(part.body, Body::Text { .. } | Body::Changed { .. } | Body::Call(_));
        }
    }

    /// Marks finished user commands as held by the conversation.
    pub fn store_shells(&mut self) {
        for part in &mut self.parts {
            part.is_stored |= matches!(&part.body, Body::Shell(shell) if shell.is_done());
        }
    }

    /// Drops parts that a view of the whole conversation shows anyway, in which nothing is printed.
    pub fn drop_stored(&mut self) {
        let is_open = |part: &Part| match &part.body {
            // A result comes into the conversation when those of all calls are there.
            Body::Call(call) => !call.is_recorded,
            _ => !part.is_stored,
        };
        self.parts.retain(is_open);
    }

    /// Lays out for a view the parts that are not in the conversation yet.
    pub fn lay_out(&mut self, look: &Look<'_>) {
        let parts = self.printed_parts.iter_mut().chain(&mut self.parts);
        parts.filter(|part| !part.is_stored).for_each(|part| part.lay_out(look));
    }

    /// The parts that are not in the conversation yet, as laid out.
    pub fn live_parts<'a>(&'a self, look: Look<'a>, now: Instant) -> Vec<Live<'a>> {
        let parts = self.printed_parts.iter().chain(&self.parts);
        parts.filter(|part| !part.is_stored).map(|part| part.live(look, now)).collect()
    }

    /// The lines of a call whose result is not in the conversation.
    pub fn call_lines(&self, id: &str, look: &Look<'_>, now: Instant) -> Option<Vec<Line>> {
        self.parts.iter().rev().find_map(|part| match &part.body {
            Body::Call(call) if call.id == id => Some(call.lines(look, Some(now), Some(VIEW_ROWS))),
            _ => None,
        })
    }
}

/// One row for calls that went well, with an empty row above.
fn sum_up(summaries: &[Summary], look: &Look<'_>) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    let width = look.width.saturating_sub(2).max(1);
    lines.extend(padded(wrap(&card::summed(summaries, look), width), 1));
    lines
}
