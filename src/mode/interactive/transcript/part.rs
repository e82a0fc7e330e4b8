//! A part of the conversation that is not printed yet: what it holds, and its lines.

use super::super::card::{self, Call, Shell};
use super::super::drawings::LAST;
use super::super::look::{Layout, Look, padded};
use super::VIEW_ROWS;
use crate::runtime::AgentMessage;
use crate::tui::line::Line;
use crate::tui::markdown_view::Stream;
use crate::tui::theme::Role;
use serde_json::Value;
use std::cell::LazyCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub struct Part {
    /// Tells it apart from all others.
    id: u64,
    /// Block index in the streaming answer.
    pub index: Option<usize>,
    pub body: Body,
    /// True once the part is final.
    pub is_final: bool,
    /// True once the conversation holds the part's content.
    pub is_stored: bool,
    /// Final lines that wait for earlier parts.
    pub ready: Vec<Line>,
}

pub enum Body {
    /// Lines that are final from the start.
    Lines,
    /// Lines that others stand in place of when extensions have drawn their part of them.
    Held(Vec<Line>),
    Text {
        stream: Stream,
        is_thinking: bool,
        /// True once something other than line ends was received.
        has_begun: bool,
        has_lines: bool,
        /// The whole text, for views with another layout.
        source: String,
        view: Option<View>,
    },
    /// A text or thinking whose Markdown extensions change before it is shown.
    Changed {
        is_thinking: bool,
        source: String,
        /// Tells it apart from others that are still written; empty for one of the log.
        id: String,
        is_complete: bool,
    },
    Call(Call),
    Shell(Shell),
    /// A message and an entry that an extension draws.
    Message(AgentMessage),
    Entry(Value),
}

/// A text as laid out for a view of the whole conversation.
pub struct View {
    layout: Layout,
    stream: Stream,
    ready: Vec<Line>,
    has_lines: bool,
    /// Bytes of the source that were laid out.
    taken: usize,
}

/// A part that is not in the conversation yet: final lines, and those after them, laid out when they are read.
pub struct Live<'a> {
    /// The part, whatever stands before it.
    pub id: u64,
    pub ready: &'a [Line],
    pub open: LazyCell<Vec<Line>, Box<dyn FnOnce() -> Vec<Line> + 'a>>,
}

impl Part {
    pub fn new(body: Body) -> Self {
        static PARTS: AtomicU64 = AtomicU64::new(0);
        let id = PARTS.fetch_add(1, Ordering::Relaxed);
        Self { id, index: None, body, is_final: false, is_stored: false, ready: Vec::new() }
    }

    /// True if nothing of the part is shown so far.
    pub fn is_blank(&self) -> bool {
        self.ready.is_empty()
            && match &self.body {
                Body::Lines => true,
                Body::Text { has_begun, .. } => !has_begun,
                Body::Changed { source, .. } => source.trim().is_empty(),
                _ => false,
            }
    }

    /// True if the part may yet be summed up with calls before it.
    pub fn may_join(&self, look: &Look<'_>) -> bool {
        match &self.body {
            Body::Call(call) => call.may_be_summed(look),
            _ => false,
        }
    }

    pub fn lay_out(&mut self, look: &Look<'_>) {
        let Body::Text { source, is_thinking, view, .. } = &mut self.body else {
            return;
        };
        if *is_thinking && look.hides_thinking {
            *view = None;
            return;
        }
        if !view.as_ref().is_some_and(|view| view.layout.is_of(look)) {
            *view = None;
        }
        let view = view.get_or_insert_with(|| View {
            layout: Layout::of(look),
            stream: Stream::default(),
            ready: Vec::new(),
            has_lines: false,
            taken: 0,
        });
        let new = source.get(view.taken..).unwrap_or_default();
        view.taken = source.len();
        let lines = view.stream.push(new, &card::answer_look(*is_thinking, look));
        push_text(&mut view.ready, (&mut view.has_lines, *is_thinking), lines, look);
    }

    pub fn live<'a>(&'a self, look: Look<'a>, now: Instant) -> Live<'a> {
        let ready = match &self.body {
            Body::Text { view: Some(view), .. } => view.ready.as_slice(),
            _ => &[],
        };
        let open = Box::new(move || self.open(&look, now)) as Box<dyn FnOnce() -> Vec<Line>>;
        Live { id: self.id, ready, open: LazyCell::new(open) }
    }

    /// The lines of the part in a view that may still change.
    fn open(&self, look: &Look<'_>, now: Instant) -> Vec<Line> {
        match &self.body {
            Body::Lines => self.ready.clone(),
            Body::Held(lines) => lines.clone(),
            Body::Text { has_begun: false, .. } => Vec::new(),
            Body::Text { is_thinking, view: Some(view), .. } => {
                let mut open = Vec::new();
                let lines = view.stream.open(&card::answer_look(*is_thinking, look), usize::MAX);
                push_text(&mut open, (&mut view.has_lines.clone(), *is_thinking), lines, look);
                open
            }
            Body::Text { .. } => card::thinking_label(look),
            Body::Changed { .. } => self.lines(look, Some(now), None),
            Body::Call(call) => call.lines(look, Some(now), Some(VIEW_ROWS)),
            Body::Shell(shell) => shell.lines(look, Some(now), Some(VIEW_ROWS)),
            Body::Message(message) => card::message(message, look),
            Body::Entry(entry) => card::entry(entry, look),
        }
    }

    /// The current lines of the part; of the final ones, the last rows.
    pub fn lines(&self, look: &Look<'_>, now: Option<Instant>, rows: Option<usize>) -> Vec<Line> {
        let first = rows.map_or(0, |rows| self.ready.len().saturating_sub(rows));
        let mut out = self.ready.get(first..).unwrap_or_default().to_vec();
        match &self.body {
            Body::Lines => {}
            Body::Held(lines) => {
                let first = rows.map_or(0, |rows| lines.len().saturating_sub(rows));
                out.extend(lines.get(first..).unwrap_or_default().iter().cloned());
            }
            Body::Text { .. } if self.is_final => {}
            Body::Text { has_begun: false, .. } => {}
            Body::Text { stream, is_thinking, has_lines, .. } => {
                if *is_thinking && look.hides_thinking {
                    out.extend(card::thinking_label(look));
                } else {
                    let limit = rows.unwrap_or(usize::MAX);
                    let open = stream.open(&card::answer_look(*is_thinking, look), limit);
                    push_text(&mut out, (&mut has_lines.clone(), *is_thinking), open, look);
                }
            }
            Body::Changed { is_thinking, source, id, is_complete } => {
                let version = if *is_complete { LAST } else { source.len() as u64 };
                let growing = (!id.is_empty()).then_some((id.as_str(), version));
                let lines = card::changed(*is_thinking, source, growing, look);
                push_text(&mut out, (&mut false, *is_thinking), lines, look);
            }
            Body::Call(call) => out.extend(call.lines(look, now, rows)),
            Body::Shell(shell) => out.extend(shell.lines(look, now, rows)),
            Body::Message(message) => out.extend(card::message(message, look)),
            Body::Entry(entry) => out.extend(card::entry(entry, look)),
        }
        out
    }

    pub fn end(&mut self, look: &Look<'_>) {
        self.index = None;
        match &mut self.body {
            Body::Text { stream, is_thinking, has_begun, has_lines, .. } => {
                if !*has_begun {
                    // A block of nothing.
                } else if *is_thinking && look.hides_thinking {
                    self.ready.extend(card::thinking_label(look));
                } else {
                    let look_of = card::answer_look(*is_thinking, look);
                    let rest = std::mem::take(stream).finish(&look_of);
                    push_text(&mut self.ready, (has_lines, *is_thinking), rest, look);
                }
                self.is_final = true;
            }
            Body::Changed { is_complete, .. } => *is_complete = true,
            Body::Call(call) => call.written(),
            Body::Lines | Body::Held(_) | Body::Shell(_) | Body::Message(_) | Body::Entry(_) => {}
        }
    }
}

/// Appends lines of a text, with an empty row before the first.
pub fn push_text(
    out: &mut Vec<Line>,
    (has_lines, is_thinking): (&mut bool, bool),
    lines: Vec<Line>,
    look: &Look<'_>,
) {
    if !lines.is_empty() {
        if !std::mem::replace(has_lines, true) {
            out.push(Line::new());
            if look.is_plain {
                let label = if is_thinking { "Thinking:" } else { "Answer:" };
                out.extend(padded([Line::of(label, look.style(Role::Muted))], look.pad));
            }
        }
        out.extend(padded(lines, look.pad));
    }
}
