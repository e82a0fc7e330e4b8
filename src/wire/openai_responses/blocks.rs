//! The blocks of an answer, put together from the items of the wire.
//!
//! The server numbers its items and names them, begins each, adds to it in pieces and says it whole at its
//! end. Servers leave out any of this: numbers (the name counts), names (the last item counts), the
//! beginning (the first piece begins it), the pieces (the end tells what is missing). Some change an
//! item's name on the way, so the number comes first.

use super::call_id;
use super::items::TextSignature;
use crate::llm::event::{AssistantEvent, BlockInfo, Info};
use crate::wire::grammar;
use crate::wire::ids::Ids;
use serde_json::Value;
use std::collections::HashMap;

const NO_NAME: &str = "unknown";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Thinking,
    Call,
}

/// Where an event belongs: the item's number and name, as far as they are said.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub output: Option<u64>,
    pub item: &'a str,
}

pub struct Blocks {
    blocks: Vec<Block>,
    by_output: HashMap<u64, usize>,
    by_item: HashMap<String, usize>,
    ids: Ids,
    /// The argument that the input of a custom tool stands for, by the tool's name.
    grammar: HashMap<String, String>,
}

struct Block {
    kind: Kind,
    item_id: String,
    ended: bool,
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
    pub fn new(ids: Ids, grammar: HashMap<String, String>) -> Self {
        Self { blocks: Vec::new(), by_output: HashMap::new(), by_item: HashMap::new(), ids, grammar }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| block.kind == Kind::Call)
    }

    /// An item begins.
    pub fn begin(&mut self, place: Place<'_>, item: &Value, out: &mut Vec<AssistantEvent>) {
        let Some(kind) = kind_of(item) else {
            return;
        };
        let known = self.find(kind, place).and_then(|at| self.blocks.get(at));
        let again = |block: &Block| !block.ended && block.item_id == text(item, "id");
        if text(item, "id").is_empty() || !known.is_some_and(again) {
            self.add(kind, place, item, out);
        }
    }

    /// A piece of an item.
    pub fn piece(&mut self, kind: Kind, place: Place<'_>, piece: &str, out: &mut Vec<AssistantEvent>) {
        if piece.is_empty() {
            return;
        }
        let found = self.find(kind, place);
        let at = match found {
            Some(at) => at,
            // A call cannot begin without a name: its end will tell all of it.
            None if kind == Kind::Call => return,
            None => self.add(kind, place, &Value::Null, out),
        };
        if let Some(block) = self.blocks.get_mut(at).filter(|block| !block.ended) {
            block.say(at, piece, out);
        }
    }

    /// A paragraph of thinking has ended; others may follow.
    pub fn end_paragraph(&mut self, place: Place<'_>) {
        let at = self.find(Kind::Thinking, place);
        if let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) {
            block.paragraph = true;
        }
    }

    /// The whole arguments or input of a call.
    pub fn complete(&mut self, place: Place<'_>, whole: &str, out: &mut Vec<AssistantEvent>) {
        let at = self.find(Kind::Call, place);
        if let Some(at) = at
            && let Some(block) = self.blocks.get_mut(at).filter(|block| !block.ended)
        {
            block.complete(at, whole, out);
        }
    }

    /// An item ends, and is told whole.
    pub fn end(&mut self, place: Place<'_>, item: &Value, out: &mut Vec<AssistantEvent>) {
        let Some(kind) = kind_of(item) else {
            return;
        };
        let found = self.find(kind, place);
        let known = found.and_then(|at| Some((at, self.blocks.get(at)?)));
        let id = text(item, "id");
        let at = match known {
            Some((at, block)) if !block.ended => at,
            Some((_, block)) if id.is_empty() || id == block.item_id => return,
            _ => self.add(kind, place, item, out),
        };
        self.end_block(at, Some(item), out);
    }

    /// An item of the finished answer, which may say more than the events did.
    pub fn finished(&mut self, place: Place<'_>, item: &Value, out: &mut Vec<AssistantEvent>) {
        let Some(kind) = kind_of(item) else {
            return;
        };
        let Some(at) = self.find(kind, place) else {
            return;
        };
        let Some(block) = self.blocks.get_mut(at) else {
            return;
        };
        if !block.ended {
            self.end_block(at, Some(item), out);
            return;
        }
        let content = text(item, "encrypted_content");
        if content.is_empty() || text(item, "id") != block.item_id {
            return;
        }
        if let Some(mut record) = block.unsealed.take() {
            record["encrypted_content"] = Value::from(content);
            out.push(AssistantEvent::info(Info {
                blocks: vec![BlockInfo {
                    index: at,
                    thinking_signature: Some(record.to_string()),
                    namespace: None,
                }],
                ..Info::default()
            }));
        }
    }

    /// Ends what the server did not.
    pub fn end_all(&mut self, out: &mut Vec<AssistantEvent>) {
        for at in 0..self.blocks.len() {
            if self.blocks.get(at).is_some_and(|block| !block.ended) {
                self.end_block(at, None, out);
            }
        }
    }

    /// The block for a place; the last one where nothing is said.
    fn find(&self, kind: Kind, place: Place<'_>) -> Option<usize> {
        let fits = |at: &usize| self.blocks.get(*at).is_some_and(|block| block.kind == kind);
        if place.output.is_none() && place.item.is_empty() {
            let last = self.blocks.len().checked_sub(1)?;
            let open = self.blocks.get(last).is_some_and(|block| !block.ended);
            return Some(last).filter(|at| open && fits(at));
        }
        let by_output = place.output.and_then(|number| self.by_output.get(&number));
        let by_item = || self.by_item.get(place.item);
        let at = by_output.filter(|at| fits(at)).or_else(by_item);
        at.copied().filter(fits)
    }

    fn add(&mut self, kind: Kind, place: Place<'_>, item: &Value, out: &mut Vec<AssistantEvent>) -> usize {
        let index = self.blocks.len();
        let id = match text(item, "id") {
            "" => place.item,
            id => id,
        };
        if let Some(number) = place.output {
            self.by_output.insert(number, index);
        }
        if !id.is_empty() {
            self.by_item.insert(id.to_owned(), index);
        }
        let mut block = Block {
            kind,
            item_id: id.to_owned(),
            ended: false,
            said: String::new(),
            paragraph: false,
            early: String::new(),
            input_of: None,
            unsealed: None,
        };
        out.push(match kind {
            Kind::Text => AssistantEvent::TextStart { index },
            Kind::Thinking => AssistantEvent::ThinkingStart { index },
            Kind::Call => {
                let name = match text(item, "name") {
                    "" => NO_NAME,
                    name => name,
                };
                if item["type"] == "custom_tool_call" {
                    let property = self.grammar.get(name).map(String::as_str);
                    let property = property.unwrap_or(grammar::DEFAULT_PROPERTY);
                    block.input_of = Some(property.to_owned());
                }
                block.early = whole_input(item);
                let call = self.ids.take(text(item, "call_id"), index);
                AssistantEvent::ToolCallStart { index, id: call_id::join(&call, id), name: name.to_owned() }
            }
        });
        self.blocks.push(block);
        index
    }

    fn end_block(&mut self, at: usize, item: Option<&Value>, out: &mut Vec<AssistantEvent>) {
        let Some(block) = self.blocks.get_mut(at) else {
            return;
        };
        block.ended = true;
        let item = item.unwrap_or(&Value::Null);
        match block.kind {
            Kind::Text => {
                block.complete(at, &parts(&item["content"], ""), out);
                let own = |name| Some(text(item, name)).filter(|text| !text.is_empty());
                let signature =
                    TextSignature { id: own("id").map(Into::into), phase: own("phase").map(Into::into) };
                out.push(AssistantEvent::TextEnd { index: at, signature: signature.encode() });
            }
            Kind::Thinking => {
                let summary = parts(&item["summary"], "\n\n");
                let whole = match summary.is_empty() {
                    true => parts(&item["content"], "\n\n"),
                    false => summary,
                };
                block.complete(at, &whole, out);
                if item.is_object() && text(item, "encrypted_content").is_empty() {
                    block.unsealed = Some(item.clone());
                }
                out.push(AssistantEvent::ThinkingEnd {
                    index: at,
                    signature: item.is_object().then(|| item.to_string()),
                    redacted: false,
                });
            }
            Kind::Call => self.end_call(at, item, out),
        }
    }

    fn end_call(&mut self, at: usize, item: &Value, out: &mut Vec<AssistantEvent>) {
        let Some(block) = self.blocks.get_mut(at) else {
            return;
        };
        block.complete(at, &whole_input(item), out);
        if block.said.is_empty() {
            let early = std::mem::take(&mut block.early);
            block.complete(at, &early, out);
        }
        block.close_input(at, out);
        if let Some(namespace) = item["namespace"].as_str() {
            out.push(AssistantEvent::info(Info {
                blocks: vec![BlockInfo {
                    index: at,
                    thinking_signature: None,
                    namespace: Some(namespace.to_owned()),
                }],
                ..Info::default()
            }));
        }
        // An id that came with the end only, and is nobody else's.
        let call = text(item, "call_id");
        let id = self.ids.claim(call).then(|| call_id::join(call, &block.item_id));
        let name = Some(text(item, "name")).filter(|name| !name.is_empty());
        out.push(AssistantEvent::ToolCallEnd {
            index: at,
            id,
            name: name.map(str::to_owned),
            thought_signature: None,
        });
    }
}

impl Block {
    fn say(&mut self, index: usize, piece: &str, out: &mut Vec<AssistantEvent>) {
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
        out.push(match self.kind {
            Kind::Text => AssistantEvent::TextDelta { index, delta },
            Kind::Thinking => AssistantEvent::ThinkingDelta { index, delta },
            Kind::Call => AssistantEvent::ToolCallDelta { index, delta },
        });
    }

    /// Says what of the whole was not said in pieces. Where the pieces said something else, they stand.
    fn complete(&mut self, index: usize, whole: &str, out: &mut Vec<AssistantEvent>) {
        if let Some(rest) = whole.strip_prefix(self.said.as_str())
            && !rest.is_empty()
        {
            self.paragraph = false;
            self.say(index, rest, out);
        }
    }

    fn close_input(&mut self, index: usize, out: &mut Vec<AssistantEvent>) {
        let Some(property) = &self.input_of else {
            return;
        };
        let mut delta = match self.said.is_empty() {
            true => grammar::open(property),
            false => String::new(),
        };
        delta.push_str(grammar::CLOSE);
        out.push(AssistantEvent::ToolCallDelta { index, delta });
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
