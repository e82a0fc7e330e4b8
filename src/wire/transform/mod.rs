//! Converts a conversation for a target model, regardless of the models that wrote it.
//!
//! The result is valid for every provider: each tool call has a unique id, a name and exactly one result, and
//! results come directly after their calls. Calls without a result get an error result; results without a
//! call, failed answers, and thinking of other models are left out. The stored conversation is not changed,
//! and only changed parts are copied.
//!
//! Each step depends only on earlier messages: a longer conversation begins with equal bytes.

use crate::llm::context::Context;
use crate::llm::message::{
    AssistantMessage, Block, Content, ImageContent, Message, SystemMessage, ToolCall, ToolResultMessage,
};
use crate::llm::model::{Model, provider_id};
use crate::wire::ids::{self, NO_NAME};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

const NO_IMAGE: &str = "(image omitted: model does not support images)";
const NO_TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";
const NO_RESULT: &str = "No result provided";

/// Maximum length of a tool name that every provider accepts, in characters.
const NAME_LIMIT: usize = 64;

#[derive(Debug)]
pub enum Turn<'a> {
    /// Occurs only if the transcript keeps system messages in place.
    System(&'a SystemMessage),
    User(User<'a>),
    Assistant(Assistant<'a>),
    /// One result for each call of the preceding answer.
    Results(Vec<CallResult<'a>>),
}

#[derive(Debug)]
pub struct User<'a> {
    pub parts: Vec<Part<'a>>,
    /// True if the content was plain text, not blocks.
    pub plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    Text(&'a str),
    Image(&'a ImageContent),
}

#[derive(Debug)]
pub struct Assistant<'a> {
    pub message: &'a AssistantMessage,
    /// True if the target model wrote the answer, so that signatures are valid.
    pub same_model: bool,
    pub blocks: Vec<AssistantBlock<'a>>,
}

#[derive(Debug)]
pub enum AssistantBlock<'a> {
    Text {
        text: &'a str,
        signature: Option<&'a str>,
    },
    /// Thinking of the target model; that of other models is left out.
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
        redacted: bool,
    },
    Call(Call<'a>),
}

#[derive(Debug)]
pub struct Call<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub arguments: &'a Map<String, Value>,
    pub thought_signature: Option<&'a str>,
    pub namespace: Option<&'a str>,
}

#[derive(Debug)]
pub struct CallResult<'a> {
    pub call_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub parts: Vec<Part<'a>>,
    pub is_error: bool,
}

/// Converts `messages`, which are those of `context` that the transcript keeps in the conversation. `call_id`
/// converts a call id of another model to one that the target accepts.
pub fn transform<'t, 'a>(
    context: &'a Context,
    messages: &'t [&'a Message],
    model: &'t Model,
    call_id: &'t dyn Fn(&str) -> String,
) -> impl Iterator<Item = Turn<'a>> + use<'t, 'a> {
    Transform {
        messages: messages.iter(),
        model,
        call_id,
        declared: declared_names(context),
        ids: HashSet::new(),
        calls: 0,
        turns: VecDeque::new(),
        batch: None,
    }
}

struct Transform<'t, 'a> {
    messages: std::slice::Iter<'t, &'a Message>,
    model: &'t Model,
    call_id: &'t dyn Fn(&str) -> String,
    declared: HashSet<&'a str>,
    /// All ids used so far.
    ids: HashSet<String>,
    /// Number of calls so far.
    calls: usize,
    /// Converted turns that were not taken yet.
    turns: VecDeque<Turn<'a>>,
    batch: Option<Batch<'a>>,
}

impl<'a> Iterator for Transform<'_, 'a> {
    type Item = Turn<'a>;

    fn next(&mut self) -> Option<Turn<'a>> {
        while self.turns.is_empty() {
            match self.messages.next() {
                Some(message) => self.take(message),
                None if self.batch.is_some() => self.close_batch(),
                None => break,
            }
        }
        self.turns.pop_front()
    }
}

/// The calls of the last answer, until the next user message or answer.
struct Batch<'a> {
    calls: Vec<Pending<'a>>,
    results: Vec<CallResult<'a>>,
    /// System messages between the calls and their results.
    held: Vec<&'a SystemMessage>,
}

struct Pending<'a> {
    /// The stored id.
    original: &'a str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    answered: bool,
}

impl<'a> Transform<'_, 'a> {
    fn take(&mut self, message: &'a Message) {
        match message {
            Message::System(system) => match &mut self.batch {
                Some(batch) => batch.held.push(system),
                None => self.turns.push_back(Turn::System(system)),
            },
            Message::User(user) => {
                self.close_batch();
                let turn = match &user.content {
                    Content::Text(text) => User { parts: vec![Part::Text(text)], plain: true },
                    Content::Blocks(blocks) => User { parts: self.parts(blocks, NO_IMAGE), plain: false },
                };
                self.turns.push_back(Turn::User(turn));
            }
            Message::Assistant(answer) => {
                self.close_batch();
                if !answer.is_failed() {
                    self.answer(answer);
                }
            }
            Message::ToolResult(result) => self.result(result),
        }
    }

    fn answer(&mut self, message: &'a AssistantMessage) {
        let model = self.model;
        let same_model = provider_id(&message.provider) == model.provider
            && message.api == model.api
            && message.model == model.id;
        let mut calls = Vec::new();
        let mut blocks = Vec::with_capacity(message.content.len());
        for block in &message.content {
            match block {
                Block::Text(block) => blocks.push(AssistantBlock::Text {
                    text: &block.text,
                    signature: block.text_signature.as_deref().filter(|_| same_model),
                }),
                Block::Thinking(block) => {
                    let redacted = block.redacted == Some(true);
                    let signature = block.thinking_signature.as_deref();
                    let signed = signature.is_some_and(|signature| !signature.is_empty());
                    let blank = block.thinking.trim().is_empty();
                    if same_model && (redacted || signed || !blank) {
                        blocks.push(AssistantBlock::Thinking { text: &block.thinking, signature, redacted });
                    }
                }
                Block::ToolCall(call) => {
                    let (call, pending) = self.call(call, same_model);
                    blocks.push(AssistantBlock::Call(call));
                    calls.push(pending);
                }
                Block::Image(_) | Block::Other(_) => {}
            }
        }
        self.turns.push_back(Turn::Assistant(Assistant { message, same_model, blocks }));
        if !calls.is_empty() {
            self.batch = Some(Batch { calls, results: Vec::new(), held: Vec::new() });
        }
    }

    fn call(&mut self, call: &'a ToolCall, same_model: bool) -> (Call<'a>, Pending<'a>) {
        let id = self.unique_id(&call.id, same_model);
        let name = self.legal_name(&call.name);
        let thought_signature = call.thought_signature.as_deref();
        let sent = Call {
            id: id.clone(),
            name: name.clone(),
            arguments: &call.arguments,
            thought_signature: thought_signature.filter(|_| same_model),
            namespace: call.namespace.as_deref(),
        };
        let pending = Pending { original: &call.id, id, name, answered: false };
        (sent, pending)
    }

    /// The id itself if it is unused, otherwise a unique one that the target accepts.
    fn unique_id(&mut self, original: &'a str, same_model: bool) -> Cow<'a, str> {
        self.calls += 1;
        let mut id = if same_model {
            Cow::Borrowed(original)
        } else {
            match (self.call_id)(original) {
                id if id == original => Cow::Borrowed(original),
                id => Cow::Owned(id),
            }
        };
        let mut number = self.calls;
        while id.is_empty() || self.ids.contains(id.as_ref()) {
            // The number comes first, so that a length limit cannot cut it off.
            let candidate = match original {
                "" => format!("call_{number}"),
                _ => format!("call{number}_{original}"),
            };
            id = Cow::Owned((self.call_id)(&candidate));
            number += 1;
        }
        self.ids.insert(id.clone().into_owned());
        id
    }

    /// The name of a declared tool is unchanged. A name that a model made up may contain any characters, and
    /// would cause a rejection of every later request, so it is cleaned.
    fn legal_name(&self, name: &'a str) -> Cow<'a, str> {
        match name {
            "" => Cow::Borrowed(NO_NAME),
            name if self.declared.contains(name) => Cow::Borrowed(name),
            name => match ids::plain(name, NAME_LIMIT) {
                plain if plain == name => Cow::Borrowed(name),
                plain => Cow::Owned(plain),
            },
        }
    }

    fn result(&mut self, result: &'a ToolResultMessage) {
        let parts = self.parts(&result.content, NO_TOOL_IMAGE);
        let Some(batch) = &mut self.batch else {
            return;
        };
        let mut calls = batch.calls.iter_mut();
        let asked = calls.find(|call| !call.answered && call.original == result.tool_call_id);
        let Some(call) = asked else {
            return;
        };
        call.answered = true;
        batch.results.push(CallResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            parts,
            is_error: result.is_error,
        });
    }

    /// Adds error results for calls without a result, and releases the held system messages.
    fn close_batch(&mut self) {
        let Some(mut batch) = self.batch.take() else {
            return;
        };
        let open = batch.calls.into_iter().filter(|call| !call.answered);
        batch.results.extend(open.map(|call| CallResult {
            call_id: call.id,
            name: call.name,
            parts: vec![Part::Text(NO_RESULT)],
            is_error: true,
        }));
        self.turns.push_back(Turn::Results(batch.results));
        self.turns.extend(batch.held.into_iter().map(Turn::System));
    }

    /// Text and images; adjacent images that the model cannot see become one note.
    fn parts(&self, blocks: &'a [Block], note: &'static str) -> Vec<Part<'a>> {
        let sees = self.model.takes_images();
        let mut parts: Vec<Part<'a>> = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                Block::Text(block) => parts.push(Part::Text(&block.text)),
                Block::Image(image) if sees => parts.push(Part::Image(image)),
                Block::Image(_) if parts.last() != Some(&Part::Text(note)) => {
                    parts.push(Part::Text(note));
                }
                _ => {}
            }
        }
        parts
    }
}

const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

impl<'a> CallResult<'a> {
    /// Removes the images from the result of a failed call, for models that accept only text there. Returns a
    /// title and the images.
    pub fn take_error_images(&mut self) -> Option<(String, Vec<&'a ImageContent>)> {
        if !self.is_error {
            return None;
        }
        let mut images = Vec::new();
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            match part {
                Part::Image(image) => {
                    images.push(*image);
                    if parts.last() != Some(&Part::Text(IMAGE_FOLLOWS)) {
                        parts.push(Part::Text(IMAGE_FOLLOWS));
                    }
                }
                part => parts.push(*part),
            }
        }
        self.parts = parts;
        let title = format!("Images of the failed call {} ({}):", self.call_id, self.name);
        (!images.is_empty()).then_some((title, images))
    }
}

fn declared_names(context: &Context) -> HashSet<&str> {
    let tools = context.declared_tools();
    tools.map(|tool| tool.name.as_str()).collect()
}

/// The text of all parts, joined by newlines.
pub fn text_of(parts: &[Part<'_>]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(*text),
        Part::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
