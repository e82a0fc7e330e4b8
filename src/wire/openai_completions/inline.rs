//! What local models write into plain text: thinking between tags, and tool calls.
//!
//! A server whose template knows the model takes these out; one that does not passes them on. Text goes
//! through as it comes; only what may be the beginning of a mark is held back until it is told apart.
//! A call counts as one when it is whole and names a tool that was offered, else it stays text.

use super::inline_call::{Capture, Captured, Left};
use memchr::memchr2;
use serde_json::{Map, Value};
use std::collections::HashMap;

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
const CALL_END: &str = "</tool_call>";

/// The marks that a call may begin with.
const CALLS: [&str; 3] = ["<tool_call>", "<function=", "[TOOL_CALLS]"];

/// More blank text than this at the start is passed on.
const BLANK_LIMIT: usize = 256;

/// Tools by name, with the schemas of their arguments.
pub type Tools = HashMap<String, Value>;

#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// All text before this was thinking: the template had opened the tag.
    WasThinking,
    Call {
        name: String,
        arguments: Map<String, Value>,
    },
}

pub struct Inline {
    think_tags: bool,
    /// Empty: no calls are looked for.
    tools: Tools,
    state: State,
    /// The beginning of what may be a mark, or blank text before one.
    held: String,
    /// Blank text is dropped until something else comes.
    skip_blanks: bool,
    /// No text has been passed on.
    fresh: bool,
    /// The last text that was passed on ended in a newline.
    at_line_start: bool,
    /// A closing tag was seen; later ones mean nothing.
    thought: bool,
    /// The last thing was a call, and its closing tag may follow.
    after_call: bool,
}

enum State {
    Text,
    Thinking,
    Call(Box<Capture>),
}

/// What a look at the beginning of a text finds.
enum Look {
    Mark(&'static str),
    /// More is needed to tell.
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

    /// No more text comes: what was held back is what it looks like.
    pub fn end(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Text) {
            // Blank text that was held back for what may follow it says nothing.
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
                            // Only a capture that began before this text leaves such: not again in there.
                            Left::Earlier(text) => return self.run(&text, sink),
                        }
                    }
                },
            };
        }
    }

    /// Passes text on up to the next mark, and gives what is left to do.
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

/// Every mark begins with one of two characters, both a single byte.
fn find_mark_start(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    memchr2(b'<', b'[', rest).map(|at| from + at)
}
