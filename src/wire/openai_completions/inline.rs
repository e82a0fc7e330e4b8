//! Finds thinking between tags and tool calls in the plain text of local models.
//!
//! A server whose template fits the model extracts them; others leave them in the text. Text is passed on as
//! it arrives; only a possible start of a tag is held back until the tag is recognized. A call counts only if
//! it is complete and names an offered tool; otherwise it remains text.

use super::inline_call::{Capture, Captured, Left};
use memchr::memchr2;
use serde_json::{Map, Value};
use std::collections::HashMap;

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
const CALL_END: &str = "</tool_call>";

/// The tags that a call may begin with.
const CALLS: [&str; 3] = ["<tool_call>", "<function=", "[TOOL_CALLS]"];

/// Maximum length of blank text that is held back at the start, in bytes.
const BLANK_LIMIT: usize = 256;

/// The schemas of tools' arguments, by tool name.
pub type Tools = HashMap<String, Value>;

#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// All earlier text was thinking: the template had opened the tag.
    WasThinking,
    Call {
        name: String,
        arguments: Map<String, Value>,
    },
}

pub struct Inline {
    think_tags: bool,
    /// The offered tools; empty if tool calls are not searched for.
    tools: Tools,
    state: State,
    /// A possible start of a tag, or blank text before one.
    held: String,
    /// True while blank text is dropped.
    skip_blanks: bool,
    /// True until text is passed on.
    fresh: bool,
    /// True if the last text that was passed on ended in a newline.
    at_line_start: bool,
    /// True after a closing thinking tag; further ones are text.
    thought: bool,
    /// True directly after a call, whose closing tag may follow.
    after_call: bool,
}

enum State {
    Text,
    Thinking,
    Call(Box<Capture>),
}

/// The result of searching for a tag at the start of a text.
enum Look {
    Mark(&'static str),
    /// More text is needed to decide.
    Perhaps,
    Nothing,
}

impl Inline {
    pub fn new(think_tags: bool, tools: Tools) -> Self {
        Self {
            think_tags,
            tools,
            state: State::Text,
            held: String::new(),
            skip_blanks: false,
            fresh: true,
            at_line_start: true,
            thought: false,
            after_call: false,
        }
    }

    pub fn feed(&mut self, text: &str, sink: &mut impl FnMut(Piece<'_>)) {
        if self.held.is_empty() {
            return self.run(text, sink);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.push_str(text);
        self.run(&joined, sink);
    }

    /// Passes on the text that was held back, at the end of the answer.
    pub fn end(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Text) {
            // Blank text that was held back is dropped.
            State::Text if held.trim().is_empty() => {}
            State::Text => self.pass(&held, sink),
            State::Thinking => self.think(&held, sink),
            State::Call(capture) => self.pass(&capture.into_text(), sink),
        }
    }

    fn run(&mut self, text: &str, sink: &mut impl FnMut(Piece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = match &mut self.state {
                State::Text => self.run_text(rest, sink),
                State::Thinking => self.run_thinking(rest, sink),
                State::Call(capture) => match capture.feed(rest, &self.tools) {
                    None => "",
                    Some((captured, left)) => {
                        self.state = State::Text;
                        self.take_call(captured, sink);
                        match left {
                            Left::OfMore(used) => rest.get(used..).unwrap_or_default(),
                            // Only a capture that began before this text leaves earlier text, so the
                            // recursion ends.
                            Left::Earlier(text) => return self.run(&text, sink),
                        }
                    }
                },
            };
        }
    }

    /// Passes text on up to the next tag, and returns the rest.
    fn run_text<'t>(&mut self, text: &'t str, sink: &mut impl FnMut(Piece<'_>)) -> &'t str {
        let text = if self.skip_blanks { text.trim_start() } else { text };
        if text.is_empty() {
            return text;
        }
        if self.fresh && text.trim_start().is_empty() && text.len() <= BLANK_LIMIT {
            self.held.push_str(text);
            return "";
        }
        let mut from = 0;
        while let Some(found) = find_mark_start(text, from) {
            let (before, rest) = text.split_at(found);
            match self.look(before, rest) {
                Look::Nothing => from = found + 1,
                Look::Perhaps => {
                    if self.fresh && before.trim().is_empty() {
                        self.held.push_str(text);
                    } else {
                        self.pass(before, sink);
                        self.held.push_str(rest);
                    }
                    return "";
                }
                Look::Mark(mark) => {
                    let blank = before.trim().is_empty();
                    if !(blank && (self.fresh || self.after_call)) {
                        self.pass(before, sink);
                    }
                    self.enter(mark, sink);
                    return rest.strip_prefix(mark).unwrap_or_default();
                }
            }
        }
        self.pass(text, sink);
        ""
    }

    fn run_thinking<'t>(&mut self, text: &'t str, sink: &mut impl FnMut(Piece<'_>)) -> &'t str {
        let text = if self.skip_blanks { text.trim_start() } else { text };
        let mut from = 0;
        while let Some(found) = find_mark_start(text, from) {
            let (before, rest) = text.split_at(found);
            if let Some(rest) = rest.strip_prefix(THINK_END) {
                self.think(before, sink);
                self.close_thinking();
                return rest;
            }
            if THINK_END.starts_with(rest) {
                self.think(before, sink);
                self.held.push_str(rest);
                return "";
            }
            from = found + 1;
        }
        self.think(text, sink);
        ""
    }

    fn think(&mut self, text: &str, sink: &mut impl FnMut(Piece<'_>)) {
        if !text.is_empty() {
            self.skip_blanks = false;
            sink(Piece::Thinking(text));
        }
    }

    fn pass(&mut self, text: &str, sink: &mut impl FnMut(Piece<'_>)) {
        if text.is_empty() {
            return;
        }
        self.fresh = false;
        self.skip_blanks = false;
        self.after_call = false;
        self.at_line_start = text.ends_with('\n');
        sink(Piece::Text(text));
    }

    fn look(&self, before: &str, rest: &str) -> Look {
        let at_start = self.fresh && before.trim().is_empty();
        let line_start = if before.is_empty() { self.at_line_start } else { before.ends_with('\n') };
        let calls = if self.tools.is_empty() { &[][..] } else { &CALLS };
        let marks = [
            (THINK, self.think_tags && at_start),
            (THINK_END, self.think_tags && !self.thought && line_start),
            (CALL_END, self.after_call && before.trim().is_empty()),
        ];
        let marks = marks.into_iter().filter(|(_, here)| *here).map(|(mark, _)| mark);
        let mut perhaps = false;
        for mark in marks.chain(calls.iter().copied()) {
            if rest.starts_with(mark) {
                return Look::Mark(mark);
            }
            perhaps |= mark.starts_with(rest);
        }
        if perhaps { Look::Perhaps } else { Look::Nothing }
    }

    fn enter(&mut self, mark: &'static str, sink: &mut impl FnMut(Piece<'_>)) {
        match mark {
            THINK => {
                self.state = State::Thinking;
                self.skip_blanks = true;
            }
            THINK_END => {
                if !self.fresh {
                    sink(Piece::WasThinking);
                }
                self.close_thinking();
            }
            CALL_END => self.skip_blanks = true,
            mark => self.state = State::Call(Box::new(Capture::new(mark))),
        }
    }

    fn close_thinking(&mut self) {
        self.state = State::Text;
        self.thought = true;
        self.skip_blanks = true;
        self.at_line_start = true;
    }

    fn take_call(&mut self, captured: Captured, sink: &mut impl FnMut(Piece<'_>)) {
        match captured {
            Captured::Calls(calls) => {
                for (name, arguments) in calls {
                    sink(Piece::Call { name, arguments });
                }
                self.fresh = false;
                self.after_call = true;
                self.skip_blanks = true;
            }
            Captured::Text(text) => self.pass(&text, sink),
        }
    }
}

/// The position of a possible tag: every tag begins with one of two bytes.
fn find_mark_start(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    memchr2(b'<', b'[', rest).map(|at| from + at)
}
