//! Assembles the blocks of a Responses answer from its items.
//!
//! The server numbers and names its items, sends a start event, pieces, and the complete item at the end.
//! Servers omit any of these: without a number the name counts, without a name the last item; without a start
//! event the first piece begins the item; missing pieces are taken from the end. Some change an item's name,
//! so the number takes precedence.

use super::call_id;
use super::items::TextSignature;
use crate::llm::event::{BlockInfo, Info};
use crate::wire::answer::{Answer, Kind};
use crate::wire::grammar;
use serde_json::Value;
use std::collections::HashMap;

/// The position of an event: the item's number and id, as far as known.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub output: Option<u64>,
    pub item: &'a str,
}

pub struct Blocks {
    /// The item of each block, by block index.
    items: Vec<Item>,
    by_output: HashMap<u64, usize>,
    by_item: HashMap<String, usize>,
    /// The argument that becomes the input of each custom tool, by the tool's name.
    grammar: HashMap<String, String>,
}

#[derive(Default)]
struct Item {
    id: String,
    /// All pieces so far.
    said: String,
    /// True after the end of a thinking paragraph.
    paragraph: bool,
    /// Arguments in the start event, used if no others follow.
    early: String,
    /// For a custom tool: the argument that holds its plain-text input.
    input_of: Option<String>,
    /// The record of thinking that arrived without its encrypted content.
    unsealed: Option<Value>,
}

impl Blocks {
    pub fn new(grammar: HashMap<String, String>) -> Self {
        Self { items: Vec::new(), by_output: HashMap::new(), by_item: HashMap::new(), grammar }
    }

    /// Begins an item. A repeated start event is ignored.
    pub fn begin(&mut self, place: Place<'_>, item: &Value, answer: &mut Answer) {
        let Some(kind) = kind_of(item) else {
            return;
        };
        let id = text(item, "id");
        let known = self.find(kind, place, answer).filter(|at| answer.is_open(*at));
        let again = known.and_then(|at| self.items.get(at)).is_some_and(|known| known.id == id);
        if id.is_empty() || !again {
            self.add(kind, place, item, answer);
        }
    }

    /// Adds a piece to an item. A missing item is begun first, unless it is a call.
    pub fn piece(&mut self, kind: Kind, place: Place<'_>, piece: &str, answer: &mut Answer) {
        if piece.is_empty() {
            return;
        }
        let at = match self.find(kind, place, answer) {
            Some(at) => at,
            // A call cannot begin without a name: the end event has its complete content.
            None if kind == Kind::Call => return,
            None => self.add(kind, place, &Value::Null, answer),
        };
        if let Some(item) = self.items.get_mut(at).filter(|_| answer.is_open(at)) {
            item.say(at, piece, answer);
        }
    }

    /// Ends a paragraph of thinking; others may follow.
    pub fn end_paragraph(&mut self, place: Place<'_>, answer: &Answer) {
        let at = self.find(Kind::Thinking, place, answer);
        if let Some(item) = at.and_then(|at| self.items.get_mut(at)) {
            item.paragraph = true;
        }
    }

    /// Sets the complete arguments or input of a call.
    pub fn complete(&mut self, place: Place<'_>, whole: &str, answer: &mut Answer) {
        if let Some(at) = self.find(Kind::Call, place, answer)
            && let Some(item) = self.items.get_mut(at).filter(|_| answer.is_open(at))
        {
            item.complete(at, whole, answer);
        }
    }

    /// Ends an item with its complete content.
    pub fn end(&mut self, place: Place<'_>, item: &Value, answer: &mut Answer) {
        let Some(kind) = kind_of(item) else {
            return;
        };
        let found = self.find(kind, place, answer);
        let known = found.and_then(|at| Some((at, self.items.get(at)?)));
        let id = text(item, "id");
        let at = match known {
            Some((at, _)) if answer.is_open(at) => at,
            Some((_, known)) if id.is_empty() || id == known.id => return,
            _ => self.add(kind, place, item, answer),
        };
        self.end_block(at, item, answer);
    }

    /// Processes an item of the finished response, which may contain more than the events.
    pub fn finished(&mut self, place: Place<'_>, item: &Value, answer: &mut Answer) {
        let Some(at) = kind_of(item).and_then(|kind| self.find(kind, place, answer)) else {
            return;
        };
        if answer.is_open(at) {
            self.end_block(at, item, answer);
            return;
        }
        let content = text(item, "encrypted_content");
        let known = self.items.get_mut(at).filter(|known| known.id == text(item, "id"));
        if let Some(known) = known.filter(|_| !content.is_empty())
            && let Some(mut record) = known.unsealed.take()
        {
            record["encrypted_content"] = Value::from(content);
            let thinking_signature = Some(record.to_string());
            let block = BlockInfo { index: at, thinking_signature, namespace: None };
            answer.info(Info { blocks: vec![block], ..Info::default() });
        }
    }

    /// True if a tool call is open that the server did not end: its arguments may be incomplete.
    pub fn has_open_call(&self, answer: &Answer) -> bool {
        (0..self.items.len()).any(|at| answer.is_open(at) && answer.kind(at) == Some(Kind::Call))
    }

    /// Ends all blocks that the server left open.
    pub fn end_all(&mut self, answer: &mut Answer) {
        for at in 0..self.items.len() {
            if answer.is_open(at) {
                self.end_block(at, &Value::Null, answer);
            }
        }
    }

    /// The block at a position; the last block if the position is empty.
    fn find(&self, kind: Kind, place: Place<'_>, answer: &Answer) -> Option<usize> {
        let fits = |at: &usize| answer.kind(*at) == Some(kind);
        if place.output.is_none() && place.item.is_empty() {
            let last = self.items.len().checked_sub(1)?;
            return Some(last).filter(|at| answer.is_open(*at) && fits(at));
        }
        let by_output = place.output.and_then(|number| self.by_output.get(&number));
        let by_item = || self.by_item.get(place.item);
        let at = by_output.filter(|at| fits(at)).or_else(by_item);
        at.copied().filter(fits)
    }

    fn add(&mut self, kind: Kind, place: Place<'_>, item: &Value, answer: &mut Answer) -> usize {
        let id = match text(item, "id") {
            "" => place.item,
            id => id,
        };
        let mut known = Item { id: id.to_owned(), ..Item::default() };
        let index = match kind {
            Kind::Text | Kind::Thinking => answer.begin(kind, None),
            Kind::Call => {
                let name = text(item, "name");
                if item["type"] == "custom_tool_call" {
                    let property = self.grammar.get(name).map(String::as_str);
                    let property = property.unwrap_or(grammar::DEFAULT_PROPERTY);
                    known.input_of = Some(property.to_owned());
                }
                known.early = whole_input(item);
                let call = answer.take_id(text(item, "call_id"));
                answer.begin_call_as(None, call_id::join(&call, id), name)
            }
        };
        if let Some(number) = place.output {
            self.by_output.insert(number, index);
        }
        if !id.is_empty() {
            self.by_item.insert(id.to_owned(), index);
        }
        self.items.push(known);
        index
    }

    /// Ends an open block. `item` is the complete item, or `null` if the server sent none.
    fn end_block(&mut self, at: usize, item: &Value, answer: &mut Answer) {
        let Some(known) = self.items.get_mut(at) else {
            return;
        };
        match answer.kind(at) {
            Some(Kind::Call) => known.end_call(at, item, answer),
            Some(Kind::Thinking) => {
                let summary = parts(&item["summary"], "\n\n");
                let whole = match summary.is_empty() {
                    true => parts(&item["content"], "\n\n"),
                    false => summary,
                };
                known.complete(at, &whole, answer);
                if item.is_object() && text(item, "encrypted_content").is_empty() {
                    known.unsealed = Some(item.clone());
                }
                answer.set_signature(at, item.is_object().then(|| item.to_string()));
                answer.end(at);
            }
            _ => {
                known.complete(at, &parts(&item["content"], ""), answer);
                let own = |name| Some(text(item, name)).filter(|text| !text.is_empty());
                let signature =
                    TextSignature { id: own("id").map(Into::into), phase: own("phase").map(Into::into) };
                answer.set_signature(at, signature.encode());
                answer.end(at);
            }
        }
    }
}

impl Item {
    fn say(&mut self, index: usize, piece: &str, answer: &mut Answer) {
        let mut delta = String::new();
        if self.paragraph && !self.said.is_empty() {
            delta.push_str("\n\n");
            self.said.push_str("\n\n");
        }
        self.paragraph = false;
        match &self.input_of {
            Some(property) => {
                if self.said.is_empty() {
                    delta.push_str(&grammar::open(property));
                }
                delta.push_str(&grammar::escape(piece));
            }
            None => delta.push_str(piece),
        }
        self.said.push_str(piece);
        answer.tell(index, &delta);
    }

    /// Reports the part of `whole` that did not arrive in pieces. If the pieces differ, they are kept.
    fn complete(&mut self, index: usize, whole: &str, answer: &mut Answer) {
        if let Some(rest) = whole.strip_prefix(self.said.as_str())
            && !rest.is_empty()
        {
            self.paragraph = false;
            self.say(index, rest, answer);
        }
    }

    fn end_call(&mut self, at: usize, item: &Value, answer: &mut Answer) {
        self.complete(at, &whole_input(item), answer);
        if self.said.is_empty() {
            let early = std::mem::take(&mut self.early);
            self.complete(at, &early, answer);
        }
        if let Some(property) = &self.input_of {
            if self.said.is_empty() {
                answer.tell(at, &(grammar::open(property) + grammar::CLOSE));
            } else {
                answer.tell(at, grammar::CLOSE);
            }
        }
        if let Some(namespace) = item["namespace"].as_str() {
            let namespace = Some(namespace.to_owned());
            let block = BlockInfo { index: at, thinking_signature: None, namespace };
            answer.info(Info { blocks: vec![block], ..Info::default() });
        }
        // The id, if it arrived only at the end and is unique.
        let call = text(item, "call_id");
        let id = answer.claim_id(call).then(|| call_id::join(call, &self.id));
        let name = Some(text(item, "name")).filter(|name| !name.is_empty());
        answer.end_call(at, id, name.map(str::to_owned));
    }
}

fn kind_of(item: &Value) -> Option<Kind> {
    match item["type"].as_str()? {
        "message" => Some(Kind::Text),
        "reasoning" => Some(Kind::Thinking),
        "function_call" | "custom_tool_call" => Some(Kind::Call),
        _ => None,
    }
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or_default()
}

/// The arguments or the input of a call. Some servers send the arguments as a JSON object instead of text.
fn whole_input(item: &Value) -> String {
    let name = match item["type"].as_str() {
        Some("custom_tool_call") => "input",
        _ => "arguments",
    };
    match &item[name] {
        Value::String(text) => text.clone(),
        Value::Object(object) => serde_json::to_string(object).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The texts of a list of parts, joined by `separator`.
fn parts(list: &Value, separator: &str) -> String {
    let parts = list.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    texts.collect::<Vec<_>>().join(separator)
}
