//! Converts the conversation to a list of input items.
//!
//! An answer is a sequence of items: the provider's records of its thinking, texts, calls. The model's own
//! items are sent back with their ids, and the provider checks that they belong together: it rejects an item
//! without the thinking before it, and thinking without an item after it. If thinking cannot be sent back,
//! the items after it are sent without ids, and thinking at the end is left out.

use super::call_id::{self, Sent};
use super::compat::{Compat, ToolsInPlace};
use super::tools::{self, WireTool};
use crate::base::json::json;
use crate::llm::body::Items;
use crate::llm::event::StreamError;
use crate::llm::message::{SystemMessage, ToolSpec};
use crate::llm::model::Model;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::parse;
use crate::wire::transcript;
use crate::wire::transcript::Transcript;
use crate::wire::transform::{Assistant, AssistantBlock, Call, CallResult, Part, Turn, text_of, transform};
use crate::wire::{grammar, hash};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

const NO_OUTPUT: &str = "(no tool output)";

/// Text before tools that are declared later than the first ones.
const MORE_TOOLS: &str = "More tools follow. Those declared before stay, unless they were said to be gone. A tool that is declared once more is there again, as it is declared now.";
const REMOVED: &str = "These tools are gone. Do not call them:";

/// Maximum length of an item id, in characters.
const ID_LIMIT: usize = 64;

#[derive(Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    Speech {
        role: &'static str,
        content: Content<'a>,
    },
    Typed(TypedItem<'a>),
    /// The provider's own record, unchanged.
    Thought(Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TypedItem<'a> {
    Message {
        role: &'static str,
        content: [OutputText<'a>; 1],
        status: &'static str,
        id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Cow<'a, str>>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: Cow<'a, str>,
        /// JSON as text.
        arguments: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: Cow<'a, str>,
        input: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    CustomToolCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    ConfigurationUpdate {
        reasoning: Effort<'a>,
    },
    AdditionalTools {
        role: &'static str,
        tools: Value,
    },
    ToolSearchCall {
        call_id: String,
        execution: &'static str,
        status: &'static str,
        arguments: Search,
    },
    ToolSearchOutput {
        call_id: String,
        execution: &'static str,
        status: &'static str,
        tools: Vec<WireTool<'a>>,
    },
}

#[derive(Serialize)]
pub struct Effort<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(String),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { detail: &'static str, image_url: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "output_text")]
pub struct OutputText<'a> {
    text: &'a str,
    annotations: [(); 0],
}

#[derive(Serialize)]
pub struct Search {
    query: String,
    limit: usize,
}

/// Writes all items of the request; the prompt is first unless it is sent elsewhere. `told`: number of system
/// messages whose tools are in the request's tool list. `effort`: the effort to send inside the conversation.
pub fn convert<'a>(
    variant: Variant,
    model: &'a Model,
    transcript: &Transcript<'a>,
    compat: &Compat,
    told: usize,
    effort: Option<&'a str>,
    out: &mut Items<'_>,
) -> Result<(), StreamError> {
    let call_id = |id: &str| call_id::legal(model, id);
    let mut conversion = Conversion {
        variant,
        model,
        compat,
        told,
        systems: 0,
        effort,
        declares: false,
        unavailable: Vec::new(),
        grammar: grammar::properties(transcript.context, compat.supports_grammar_tools)?,
        sent: Sent::default(),
        position: 0,
        items: Vec::new(),
    };
    if compat.tools_in_place == Some(ToolsInPlace::Item) {
        conversion.declare(transcript.initial_tools.clone())?;
    }
    if variant != Variant::Codex && !transcript.prompt.is_empty() {
        conversion.instruct(transcript.prompt.clone());
    }
    for turn in transform(transcript.context, &transcript.messages, model, &call_id) {
        conversion.take(turn)?;
        out.extend(conversion.items.drain(..));
    }
    out.extend(conversion.items);
    out.extend(effort.map(Item::effort));
    Ok(())
}

impl<'a> Item<'a> {
    fn effort(effort: &'a str) -> Self {
        Self::Typed(TypedItem::ConfigurationUpdate { reasoning: Effort { effort } })
    }
}

struct Conversion<'m, 'a> {
    variant: Variant,
    model: &'m Model,
    compat: &'m Compat,
    /// Number of system messages whose tools are in the request's tool list, and number of system messages so
    /// far.
    told: usize,
    systems: usize,
    effort: Option<&'a str>,
    /// True after tools were declared in place.
    declares: bool,
    /// Removed tools, in the order of their removal.
    unavailable: Vec<&'a str>,
    grammar: HashMap<&'a str, &'a str>,
    sent: Sent,
    /// Number of messages so far, used in generated ids.
    position: usize,
    items: Vec<Item<'a>>,
}

impl<'a> Conversion<'_, 'a> {
    fn take(&mut self, turn: Turn<'a>) -> Result<(), StreamError> {
        match turn {
            Turn::System(system) => {
                self.system(system)?;
                self.position += 1;
            }
            Turn::User(user) => {
                let parts = user.parts.into_iter();
                let parts: Vec<_> = parts.filter_map(InputPart::of).collect();
                if !parts.is_empty() {
                    self.items.push(Item::Speech { role: "user", content: Content::Parts(parts) });
                    self.position += 1;
                }
            }
            Turn::Assistant(answer) => {
                let message = answer.message;
                let effort = message.provider_thinking_level.as_deref();
                let effort = effort.filter(|_| self.effort.is_some() && answer.same_model);
                let items = self.answer(answer);
                if !items.is_empty() {
                    self.items.extend(effort.map(Item::effort));
                    self.items.extend(items);
                    self.position += 1;
                }
            }
            Turn::Results(results) => {
                self.position += results.len();
                for result in results {
                    let item = self.result(result);
                    self.items.push(item);
                }
            }
        }
        Ok(())
    }

    fn instruct(&mut self, text: String) {
        self.items.push(Item::Speech { role: self.compat.instruction_role, content: Content::Text(text) });
    }

    fn system(&mut self, system: &'a SystemMessage) -> Result<(), StreamError> {
        self.systems += 1;
        let mut text = transcript::update_text(system);
        if self.systems > self.told {
            if !system.tools_added.is_empty() {
                self.add_tools(&system.tools_added)?;
            }
            let added = |name: &str| system.tools_added.iter().any(|tool| tool.name == name);
            let removed = system.tools_removed.iter().map(|tool| tool.name.as_str());
            let removed: Vec<&str> = removed.filter(|name| !added(name)).collect();
            if !removed.is_empty() {
                let gap = if text.is_empty() { "" } else { "\n\n" };
                text = format!("{text}{gap}{REMOVED}\n- {}", removed.join("\n- "));
                self.unavailable.extend(removed);
            }
        }
        if !text.is_empty() {
            self.instruct(text);
        }
        Ok(())
    }

    /// Declares tools in a separate item. Without a note about earlier items, models take the last item for
    /// the complete list.
    fn declare(&mut self, tools: Vec<ToolSpec>) -> Result<(), StreamError> {
        if tools.is_empty() {
            return Ok(());
        }
        self.unavailable.retain(|name| tools.iter().all(|tool| tool.name != *name));
        if self.declares {
            let gone = match self.unavailable.as_slice() {
                [] => String::new(),
                names => format!("\nStill gone: {}.", names.join(", ")),
            };
            self.instruct(format!("{MORE_TOOLS}{gone}"));
        }
        self.declares = true;
        let tools = tools::convert(&tools, self.variant, self.compat, false)?;
        let tools = serde_json::to_value(tools).unwrap_or_default();
        self.items.push(Item::Typed(TypedItem::AdditionalTools { role: "developer", tools }));
        Ok(())
    }

    fn add_tools(&mut self, added: &'a [ToolSpec]) -> Result<(), StreamError> {
        match self.compat.tools_in_place {
            None => {}
            Some(ToolsInPlace::Item) => self.declare(added.to_vec())?,
            Some(ToolsInPlace::Search) => {
                let tools = tools::convert(added, self.variant, self.compat, true)?;
                let names: Vec<&str> = added.iter().map(|tool| tool.name.as_str()).collect();
                let seed = format!("system:{}:{}", self.position, names.join(","));
                let call_id = format!("pi_tool_load_{}", hash::short(&seed));
                let (execution, status) = ("client", "completed");
                self.items.push(Item::Typed(TypedItem::ToolSearchCall {
                    call_id: call_id.clone(),
                    execution,
                    status,
                    arguments: Search { query: names.join(" "), limit: names.len() },
                }));
                self.items.push(Item::Typed(TypedItem::ToolSearchOutput {
                    call_id,
                    execution,
                    status,
                    tools,
                }));
            }
        }
        Ok(())
    }

    fn answer(&mut self, answer: Assistant<'a>) -> Vec<Item<'a>> {
        let message = answer.message;
        let sibling =
            !answer.same_model && message.provider == self.model.provider && message.api == self.model.api;
        // True while all thinking is sent back, so that later items can have ids.
        let mut whole = answer.same_model;
        let mut texts = 0;
        let mut items: Vec<Item<'a>> = Vec::with_capacity(answer.blocks.len());
        for block in answer.blocks {
            match block {
                AssistantBlock::Thinking { signature, .. } => match signature.and_then(thought) {
                    Some(thought) => items.push(Item::Thought(thought)),
                    None => whole = false,
                },
                AssistantBlock::Text { text, .. } if text.trim().is_empty() => {}
                AssistantBlock::Text { text, signature } => {
                    let signature = signature.and_then(TextSignature::parse).unwrap_or_default();
                    let id = signature.id.filter(|_| whole);
                    let id = id.map_or_else(|| self.message_id(texts).into(), short_id);
                    texts += 1;
                    items.push(Item::Typed(TypedItem::Message {
                        role: "assistant",
                        content: [OutputText { text, annotations: [] }],
                        status: "completed",
                        id,
                        phase: signature.phase,
                    }));
                }
                AssistantBlock::Call(call) => {
                    let named = whole || (!answer.same_model && !sibling);
                    let same_model = answer.same_model;
                    items.push(Item::Typed(self.call(call, named, same_model)));
                }
            }
        }
        while matches!(items.last(), Some(Item::Thought(_))) {
            items.pop();
        }
        items
    }

    /// A call as an item. `named`: send the item's id, if it fits this kind of item.
    fn call(&mut self, call: Call<'a>, named: bool, same_model: bool) -> TypedItem<'a> {
        let property = self.grammar.get(&*call.name).copied();
        let call_id = self.sent.call(&call.id, property.is_some());
        let (_, item) = call_id::split(&call.id);
        let id = |prefix: &str| (named && item.starts_with(prefix)).then(|| item.to_owned());
        let namespace = call.namespace.filter(|_| same_model);
        match property {
            Some(property) => TypedItem::CustomToolCall {
                id: id("ctc_"),
                call_id,
                input: grammar::input(&call, property),
                name: call.name,
                namespace,
            },
            None => TypedItem::FunctionCall {
                id: id("fc_"),
                call_id,
                arguments: serde_json::to_string(call.arguments).unwrap_or_default(),
                name: call.name,
                namespace,
            },
        }
    }

    fn result(&self, result: CallResult<'a>) -> Item<'a> {
        let sent = self.sent.answered(&result.call_id);
        let call_id = sent.call_id;
        let output = output(&result.parts);
        Item::Typed(if sent.custom {
            TypedItem::CustomToolCallOutput { call_id, output }
        } else {
            TypedItem::FunctionCallOutput { call_id, output }
        })
    }

    fn message_id(&self, text: usize) -> String {
        match text {
            0 => format!("msg_pi_{}", self.position),
            _ => format!("msg_pi_{}_{text}", self.position),
        }
    }
}

impl<'a> InputPart<'a> {
    /// `None` for empty text.
    fn of(part: Part<'a>) -> Option<Self> {
        match part {
            Part::Text("") => None,
            Part::Text(text) => Some(Self::text(text)),
            Part::Image(image) => Some(Self::InputImage { detail: "auto", image_url: image.data_url() }),
        }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::InputText { text: text.into() }
    }
}

/// The output of a tool: text alone is sent as a string, text with images as parts.
fn output<'a>(parts: &[Part<'a>]) -> Output<'a> {
    let text = match parts {
        [Part::Text(text)] => Cow::Borrowed(*text),
        parts => Cow::Owned(text_of(parts)),
    };
    let images = parts.iter().filter(|part| matches!(part, Part::Image(_)));
    let mut images = images.filter_map(|part| InputPart::of(*part)).peekable();
    match (images.peek().is_some(), text.trim().is_empty()) {
        (false, true) => Output::Text(NO_OUTPUT.into()),
        (false, false) => Output::Text(text),
        (true, true) => Output::Parts(images.collect()),
        (true, false) => {
            let text = std::iter::once(InputPart::text(text));
            Output::Parts(text.chain(images).collect())
        }
    }
}

/// The provider's own item in the signature of a thinking block; `None` if the provider could not use it. The
/// provider stores nothing, so the item must contain the thinking: encrypted, or as text from servers of open
/// models.
fn thought(signature: &str) -> Option<Value> {
    let mut item = parse::value(signature).ok()?;
    let sealed = item["encrypted_content"].as_str();
    let open = item["content"].as_array();
    let holds_thought =
        sealed.is_some_and(|sealed| !sealed.is_empty()) || open.is_some_and(|parts| !parts.is_empty());
    if item["type"] != "reasoning" || !holds_thought {
        return None;
    }
    let fields = item.as_object_mut()?;
    fields.entry("summary").or_insert_with(|| json!([]));
    Some(item)
}

/// The signature of a text block: its item's id, and the phase of the answer.
#[derive(Default)]
pub struct TextSignature<'a> {
    pub id: Option<Cow<'a, str>>,
    pub phase: Option<Cow<'a, str>>,
}

#[derive(Default, Serialize, Deserialize)]
struct TextSignatureV1<'a> {
    v: u32,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, str>>,
}

impl<'a> TextSignature<'a> {
    /// Parses a signature; in older sessions it is only the id.
    fn parse(signature: &'a str) -> Option<Self> {
        if let Ok(parsed) = serde_json::from_str::<TextSignatureV1<'a>>(signature)
            && parsed.v == 1
        {
            let known = |phase: &Cow<'_, str>| phase == "commentary" || phase == "final_answer";
            return Some(Self { id: Some(parsed.id), phase: parsed.phase.filter(known) });
        }
        (!signature.is_empty()).then_some(Self { id: Some(Cow::Borrowed(signature)), phase: None })
    }

    /// `None` for a text without an id.
    pub fn encode(self) -> Option<String> {
        let signature = TextSignatureV1 { v: 1, id: self.id?, phase: self.phase };
        serde_json::to_string(&signature).ok()
    }
}

fn short_id(id: Cow<'_, str>) -> Cow<'_, str> {
    if id.chars().count() > ID_LIMIT {
        return format!("msg_{}", hash::short(&id)).into();
    }
    id
}
