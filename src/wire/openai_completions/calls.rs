//! Assembles tool calls from their pieces.
//!
//! By the protocol the first piece of a call has its index, id and name, and later pieces have the index and
//! more arguments. Servers omit any of these, repeat the name or all arguments, give all calls one index, or
//! one id. The rules here find the call of each piece; a call is reported once its name is known, and always
//! has a unique id.

use super::chunk::{CallDelta, CustomDelta};
use crate::wire::answer::Answer;
use crate::wire::balance::Balance;
use crate::wire::grammar;
use crate::wire::ids::NO_NAME;
use serde_json::Value;
use std::collections::HashMap;

/// A value that some servers send for a missing id.
const NO_ID: &str = "null";

/// Empty arguments that servers send until the real ones arrive.
const PLACEHOLDER: &str = "{}";

pub struct Calls {
    calls: Vec<Call>,
    /// The argument that becomes the input of each custom tool, by the tool's name.
    grammar: HashMap<String, String>,
    /// True if each piece of arguments repeats all earlier ones.
    cumulative: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    /// The server's id; empty until received.
    id: String,
    name: String,
    /// The call's block, once reported.
    known: Option<usize>,
    /// All arguments so far.
    text: String,
    balance: Balance,
    /// The part of the arguments that was not reported yet.
    waiting: String,
    /// For a custom tool: the argument that holds its plain-text input.
    input_of: Option<String>,
}

impl Calls {
    pub fn new(grammar: HashMap<String, String>, cumulative: bool) -> Self {
        Self { calls: Vec::new(), grammar, cumulative }
    }

    /// Processes one piece.
    pub fn take(&mut self, piece: &CallDelta<'_>, answer: &mut Answer) {
        if answer.has_too_many_calls() {
            return;
        }
        let function = piece.function.0.as_ref();
        let custom = piece.custom.0.as_ref().filter(|_| function.is_none());
        let custom = custom.filter(|custom| custom.name.0.is_some() || custom.input.0.is_some());
        let id = piece.id.as_str().filter(|id| *id != NO_ID).unwrap_or_default();
        let name = function
            .and_then(|function| function.name.as_str())
            .or_else(|| custom?.name.as_str())
            .unwrap_or_default();
        let arguments = function.and_then(|function| function.arguments.0.as_deref()).unwrap_or_default();
        let Some(at) = self.find(piece.index.0, id, name, arguments, custom.is_some()) else {
            return;
        };
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        call.index = call.index.or(piece.index.0);
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        match custom {
            Some(custom) => call.take_input(custom, &self.grammar),
            None => call.take_arguments(arguments, self.cumulative),
        }
        let starts = call.known.is_none() && !call.name.is_empty();
        if starts {
            call.start(answer);
        }
        call.tell(false, answer);
        if starts && let Some(before) = at.checked_sub(1).and_then(|at| self.calls.get_mut(at)) {
            before.tell(true, answer);
        }
    }

    /// Reports all waiting arguments when no more pieces are expected.
    pub fn settle(&mut self, answer: &mut Answer) {
        for call in &mut self.calls {
            call.tell(true, answer);
        }
    }

    /// Adds a complete call that has neither index nor id.
    pub fn take_whole(&mut self, name: &str, arguments: String, answer: &mut Answer) {
        if answer.has_too_many_calls() {
            return;
        }
        let mut call = Call { name: name.to_owned(), waiting: arguments, ..Call::default() };
        call.start(answer);
        call.tell(true, answer);
        self.calls.push(call);
    }

    /// Reports calls that never got a name.
    pub fn start_nameless(&mut self, answer: &mut Answer) {
        for call in self.calls.iter_mut().filter(|call| call.known.is_none()) {
            NO_NAME.clone_into(&mut call.name);
            call.start(answer);
        }
    }

    /// Ends the call with this block index.
    pub fn end(&mut self, block: usize, answer: &mut Answer) {
        let mut calls = self.calls.iter_mut();
        let Some(call) = calls.find(|call| call.known == Some(block)) else {
            return;
        };
        call.close_input();
        answer.tell(block, &std::mem::take(&mut call.waiting));
        // The id if it arrived after the call was reported, and is unique.
        let late_id = Some(call.id.clone()).filter(|id| answer.claim_id(id));
        answer.end_call(block, late_id, None);
    }

    /// Finds the call of a piece, or adds a new call. `None` for an empty piece.
    fn find(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        arguments: &str,
        custom: bool,
    ) -> Option<usize> {
        let by_index = index.and_then(|number| {
            let same = |call: &Call| call.index == Some(number);
            let at = self.calls.iter().rposition(same)?;
            let call = self.calls.get(at)?;
            Some((at, call.is_followed_by(index, id, name, arguments)))
        });
        let by_id = || {
            let same = |call: &Call| call.id == id && (index.is_none() || call.index.is_none());
            self.calls.iter().rposition(same).filter(|_| !id.is_empty())
        };
        let found = match by_index {
            Some((at, false)) => Some(at),
            Some((_, true)) => None,
            None => by_id().or_else(|| {
                let last = self.calls.len().checked_sub(1)?;
                let call = self.calls.get(last)?;
                let nameless = index.is_none() && id.is_empty();
                (nameless && !call.is_followed_by(index, id, name, arguments)).then_some(last)
            }),
        };
        if found.is_some() {
            return found;
        }
        if id.is_empty() && name.is_empty() && arguments.is_empty() && !custom {
            return None;
        }
        self.calls.push(Call::default());
        Some(self.calls.len() - 1)
    }
}

impl Call {
    fn start(&mut self, answer: &mut Answer) {
        self.known = Some(answer.begin_call(None, &self.id, &self.name));
    }

    /// Reports waiting arguments if the call was reported. A placeholder waits until `settled`, since other
    /// arguments may replace it.
    fn tell(&mut self, settled: bool, answer: &mut Answer) {
        if let Some(index) = self.known
            && (settled || self.waiting != PLACEHOLDER)
        {
            answer.tell(index, &std::mem::take(&mut self.waiting));
        }
    }

    /// True if a piece with this call's index, or without an index, begins another call. Only a piece with a
    /// name can, and only if this call's arguments are missing or complete.
    fn is_followed_by(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> bool {
        let same_id = !id.is_empty() && id == self.id;
        if name.is_empty() || self.name.is_empty() || same_id {
            return false;
        }
        let other_id = !id.is_empty() && !self.id.is_empty();
        if self.text.is_empty() {
            return other_id || (name != self.name && index.is_none());
        }
        let other_arguments =
            !arguments.is_empty() && self.waiting != PLACEHOLDER && !self.repeats(arguments);
        self.balance.is_complete() && (other_id || name != self.name || other_arguments)
    }

    fn take_arguments(&mut self, piece: &str, cumulative: bool) {
        if piece.is_empty() || self.input_of.is_some() {
            return;
        }
        let mut piece = piece;
        if cumulative && let Some(rest) = piece.strip_prefix(self.text.as_str()) {
            piece = rest;
        } else if self.balance.is_complete() {
            if piece.trim().is_empty() || self.repeats(piece) {
                return;
            }
            if self.waiting == PLACEHOLDER && piece.trim_start().starts_with('{') {
                self.text.clear();
                self.waiting.clear();
                self.balance = Balance::default();
            }
        }
        self.balance.feed(piece);
        self.text.push_str(piece);
        self.waiting.push_str(piece);
    }

    /// True if `piece` repeats all arguments, possibly with other white space.
    fn repeats(&self, piece: &str) -> bool {
        if piece.trim() == self.text.trim() {
            return true;
        }
        // A piece much shorter than the arguments cannot repeat them, so parsing is avoided.
        if piece.len().saturating_mul(8) < self.text.len() {
            return false;
        }
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        parse(piece).is_some_and(|again| again.is_object() && parse(&self.text) == Some(again))
    }

    fn take_input(&mut self, custom: &CustomDelta<'_>, properties: &HashMap<String, String>) {
        if self.input_of.is_none() {
            if !self.text.is_empty() {
                return;
            }
            let property = properties.get(&self.name);
            let property = property.map_or(grammar::DEFAULT_PROPERTY, String::as_str);
            self.input_of = Some(property.to_owned());
        }
        if let Some(input) = custom.input.as_str() {
            self.open_input();
            self.text.push_str(input);
            self.waiting.push_str(&grammar::escape(input));
        }
    }

    fn open_input(&mut self) {
        if let Some(property) = self.input_of.as_ref().filter(|_| self.text.is_empty()) {
            self.waiting.push_str(&grammar::open(property));
        }
    }

    fn close_input(&mut self) {
        if self.input_of.is_some() {
            self.open_input();
            self.waiting.push_str(grammar::CLOSE);
        }
    }
}
