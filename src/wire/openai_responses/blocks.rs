//! The blocks of an answer of Responses, put together from the items of the wire.
//!
//! The server numbers its items and names them, begins each, adds to it in pieces and says it whole at its
//! end. Servers leave out any of this: numbers (the name counts), names (the last item counts), the
//! beginning (the first piece begins it), the pieces (the end tells what is missing). Some change an
//! item's name on the way, so the number comes first.

use super::call_id;
use super::items::TextSignature;
use crate::llm::event::{BlockInfo, Info};
use crate::wire::answer::{Answer, Kind};
use crate::wire::grammar;
use serde_json::Value;
use std::collections::HashMap;

/// Where an event belongs: the item's number and name, as far as they are said.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub output: Option<u64>,
    pub item: &'a str,
}

pub struct Blocks {
    /// What is known of each block of the answer.
    items: Vec<Item>,
    by_output: HashMap<u64, usize>,
    by_item: HashMap<String, usize>,
    /// The argument that the input of a custom tool stands for, by the tool's name.
    grammar: HashMap<String, String>,
}

#[derive(Default)]
struct Item {
    id: String,
    /// All pieces so far.
    said: String,
    /// A paragraph of thinking has ended.
    paragraph: bool,
    /// Arguments that came with the beginning: used if no others follow.
    early: String,
    /// The input of a custom tool is plain text: the value of this argument.
    input_of: Option<String>,
    /// The record of a thought that came without its content.
    unsealed: Option<Value>,
}

impl Blocks {
    pub fn new(grammar: HashMap<String, String>) -> Self {
        Self { items: Vec::new(), by_output: HashMap::new(), by_item: HashMap::new(), grammar }
    }

    /// An item begins.
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

    /// A piece of an item.
    pub fn piece(&mut self, kind: Kind, place: Place<'_>, piece: &str, answer: &mut Answer) {
        if piece.is_empty() {
            return;
        }
        let at = match self.find(kind, place, answer) {
            Some(at) => at,
            // A call cannot begin without a name: its end will tell all of it.
            None if kind == Kind::Call => return,
            None => self.add(kind, place, &Value::Null, answer),
        };
        if let Some(item) = self.items.get_mut(at).filter(|_| answer.is_open(at)) {
            item.say(at, piece, answer);
        }
    }

    /// A paragraph of thinking has ended; others may follow.
    pub fn end_paragraph(&mut self, place: Place<'_>, answer: &Answer) {
        let at = self.find(Kind::Thinking, place, answer);
        if let Some(item) = at.and_then(|at| self.items.get_mut(at)) {
            item.paragraph = true;
        }
    }

    /// The whole arguments or input of a call.
    pub fn complete(&mut self, place: Place<'_>, whole: &str, answer: &mut Answer) {
        if let Some(at) = self.find(Kind::Call, place, answer)
            && let Some(item) = self.items.get_mut(at).filter(|_| answer.is_open(at))
        {
            item.complete(at, whole, answer);
        }
    }

    /// An item ends, and is told whole.
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

    /// An item of the finished answer, which may say more than the events did.
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

    /// A call that the server began and did not end. What came of it may be cut or mixed up.
    pub fn open_call(&self, answer: &Answer) -> Option<usize> {
        (0..self.items.len()).find(|at| answer.is_open(*at) && answer.kind(*at) == Some(Kind::Call))
    }

    /// Ends what the server did not.
    pub fn end_all(&mut self, answer: &mut Answer) {
        for at in 0..self.items.len() {
            if answer.is_open(at) {
                self.end_block(at, &Value::Null, answer);
            }
        }
    }

    /// The block for a place; the last one where nothing is said.
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

    /// Ends an open block. `item` is `null` where the server did not say it whole.
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

    /// Says what of the whole was not said in pieces. Where the pieces said something else, they stand.
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
        // An id that came with the end only, and is nobody else's.
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

/// The arguments or the input of a call. Some servers send the arguments as JSON instead of text.
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

/// The texts of a list of parts.
fn parts(list: &Value, separator: &str) -> String {
    let parts = list.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    texts.collect::<Vec<_>>().join(separator)
}
