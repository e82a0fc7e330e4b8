//! Converts the conversation to the format of chat completions.

use super::compat::Compat;
use super::reasoning;
use super::tools::{self, WireTool};
use crate::llm::body::{CacheControl, Items};
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::wire::transcript;
use crate::wire::transcript::Transcript;
use crate::wire::transform::{Assistant, AssistantBlock, CallResult, Part, Turn, User, text_of, transform};
use crate::wire::{grammar, hash, ids};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// An assistant message between a tool result and a user message, which some servers reject directly after
/// one another.
pub const BRIDGE: &str = "I have processed the tool results.";
pub const SEE_IMAGE: &str = "(see attached image)";
pub const NO_OUTPUT: &str = "(no tool output)";
const IMAGES_FOLLOW: &str = "Attached image(s) from tool result:";

/// Maximum length of a call id at OpenAI, in characters.
const ID_LIMIT: usize = 40;

#[derive(Default, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Box<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum WireCall<'a> {
    Function { id: Cow<'a, str>, function: WireFunction<'a> },
    Custom { id: Cow<'a, str>, custom: WireCustom<'a> },
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    /// JSON as text.
    arguments: String,
}

#[derive(Serialize)]
struct WireCustom<'a> {
    name: Cow<'a, str>,
    input: Cow<'a, str>,
}

/// Writes all messages of the request. `told`: number of system messages whose tools are in the request's tool
/// list; later ones declare their tools in place. `mark` is set on the prompt and on the last message with text.
pub fn convert<'a>(
    model: &'a Model,
    transcript: &Transcript<'a>,
    compat: &Compat<'_>,
    told: usize,
    mark: Option<CacheControl>,
    items: &mut Items<'_>,
) -> Result<(), StreamError> {
    let grammar = grammar::properties(transcript.context, compat.supports_grammar_tools)?;
    let call_id = |id: &str| legal_id(&model.provider, id);
    let instructions = if model.reasoning && compat.supports_developer_role { "developer" } else { "system" };
    let mut messages = Vec::new();
    let mut marks = mark.map(Marks::new);
    if !transcript.prompt.is_empty() {
        let prompt = Cow::Owned(transcript.prompt.clone());
        messages.push(WireMessage::text(instructions, prompt));
    }
    let mut after_results = false;
    let mut systems = 0;
    for turn in transform(transcript.context, &transcript.messages, model, &call_id) {
        match &mut marks {
            None => items.extend(messages.drain(..)),
            Some(marks) => marks.pass(&mut messages, items),
        }
        let mut follows_results = false;
        match turn {
            Turn::System(system) => {
                systems += 1;
                if systems > told && !system.tools_added.is_empty() {
                    messages.push(WireMessage {
                        role: "system",
                        tools: tools::convert(&system.tools_added, compat)?,
                        ..WireMessage::default()
                    });
                }
                let text = transcript::update_text(system);
                if !text.is_empty() {
                    messages.push(WireMessage::text(instructions, Cow::Owned(text)));
                }
            }
            Turn::User(user) => {
                if after_results && compat.assistant_after_tool_result {
                    messages.push(WireMessage::text("assistant", Cow::Borrowed(BRIDGE)));
                }
                messages.extend(user_message(user));
            }
            Turn::Assistant(answer) => {
                messages.extend(assistant_message(answer, model, compat, &grammar));
            }
            Turn::Results(results) => {
                let images = result_images(&results);
                let results = results.into_iter();
                messages.extend(results.map(|result| result_message(result, compat)));
                follows_results = images.is_empty();
                if !images.is_empty() {
                    if compat.assistant_after_tool_result {
                        messages.push(WireMessage::text("assistant", Cow::Borrowed(BRIDGE)));
                    }
                    messages.push(WireMessage::parts("user", images));
                }
            }
        }
        after_results = follows_results;
    }
    match marks {
        None => items.extend(messages),
        Some(marks) => marks.end(messages, items),
    }
    Ok(())
}

impl<'a> WireMessage<'a> {
    fn text(role: &'static str, text: Cow<'a, str>) -> Self {
        Self { role, content: Some(WireContent::Text(text)), ..Self::default() }
    }

    fn parts(role: &'static str, parts: Vec<WirePart<'a>>) -> Self {
        Self { role, content: Some(WireContent::Parts(parts)), ..Self::default() }
    }

    fn is_instruction(&self) -> bool {
        self.role == "system" || self.role == "developer"
    }

    /// Converts text to a list of one part, the only form that can carry a cache mark.
    fn split(&mut self) {
        let parts = match self.content.take() {
            Some(WireContent::Text(text)) if !text.is_empty() => {
                WireContent::Parts(vec![WirePart::text(text)])
            }
            Some(other) => other,
            None => return,
        };
        self.content = Some(parts);
    }

    /// The mark of the last text part; `None` without text.
    fn mark(&mut self) -> Option<&mut Option<CacheControl>> {
        let Some(WireContent::Parts(parts)) = &mut self.content else {
            return None;
        };
        parts.iter_mut().rev().find_map(|part| match part {
            WirePart::Text { cache_control, .. } => Some(cache_control),
            WirePart::ImageUrl { .. } => None,
        })
    }
}

impl<'a> WirePart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    fn of(part: Part<'a>) -> Self {
        match part {
            Part::Text(text) => Self::text(text),
            Part::Image(image) => Self::ImageUrl { image_url: ImageUrl { url: image.data_url() } },
        }
    }
}

/// Marks the prompt and the last message with text for caching. The text of every message becomes a list of
/// parts, so that a message keeps its form when the mark moves on.
struct Marks<'a> {
    mark: CacheControl,
    /// True after the prompt was marked.
    has_prompt: bool,
    /// The last message with text outside the instructions, and those after it.
    held: Vec<WireMessage<'a>>,
}

impl<'a> Marks<'a> {
    fn new(mark: CacheControl) -> Self {
        Self { mark, has_prompt: false, held: Vec::new() }
    }

    /// Writes the messages that the mark has moved past.
    fn pass(&mut self, messages: &mut Vec<WireMessage<'a>>, items: &mut Items<'_>) {
        for mut message in messages.drain(..) {
            message.split();
            if message.is_instruction() {
                if !self.has_prompt
                    && let Some(slot) = message.mark()
                {
                    *slot = Some(self.mark);
                }
                self.has_prompt = true;
            } else if message.mark().is_some() {
                items.extend(self.held.drain(..));
            }
            self.held.push(message);
        }
    }

    fn end(mut self, mut messages: Vec<WireMessage<'a>>, items: &mut Items<'_>) {
        self.pass(&mut messages, items);
        let last = self.held.iter_mut().filter(|message| !message.is_instruction());
        if let Some(slot) = last.filter_map(WireMessage::mark).next() {
            *slot = Some(self.mark);
        }
        items.extend(self.held);
    }
}

fn user_message(user: User<'_>) -> Option<WireMessage<'_>> {
    let parts = user.parts.into_iter();
    let mut parts = parts.filter(|part| *part != Part::Text("")).peekable();
    parts.peek()?;
    if user.plain
        && let Some(Part::Text(text)) = parts.peek()
    {
        return Some(WireMessage::text("user", Cow::Borrowed(text)));
    }
    Some(WireMessage::parts("user", parts.map(WirePart::of).collect()))
}

/// Converts an answer; `None` if it has neither text nor calls.
fn assistant_message<'a>(
    answer: Assistant<'a>,
    model: &Model,
    compat: &Compat<'_>,
    grammar: &HashMap<&str, &str>,
) -> Option<WireMessage<'a>> {
    let mut message = WireMessage { role: "assistant", ..WireMessage::default() };
    let mut texts: Vec<&str> = Vec::new();
    let mut thoughts: Vec<(&str, Option<&str>)> = Vec::new();
    let mut signed_details = None;
    let mut legacy_details = Vec::new();
    for block in answer.blocks {
        match block {
            AssistantBlock::Text { text, .. } if !text.trim().is_empty() => texts.push(text),
            AssistantBlock::Text { .. } => {}
            AssistantBlock::Thinking { text, signature, .. } => {
                if signed_details.is_none() {
                    signed_details = reasoning::parse_details(signature);
                }
                if !text.trim().is_empty() {
                    thoughts.push((text, signature));
                }
            }
            AssistantBlock::Call(call) => {
                legacy_details.extend(reasoning::parse_legacy_detail(call.thought_signature));
                message.tool_calls.push(match grammar.get(&*call.name) {
                    Some(property) => WireCall::Custom {
                        custom: WireCustom { input: grammar::input(&call, property), name: call.name },
                        id: call.id,
                    },
                    None => WireCall::Function {
                        id: call.id,
                        function: WireFunction {
                            name: call.name,
                            arguments: serde_json::to_string(call.arguments).unwrap_or_default(),
                        },
                    },
                });
            }
        }
    }
    let details =
        signed_details.or_else(|| (!legacy_details.is_empty()).then_some(Value::Array(legacy_details)));
    message.reasoning_details = details.map(Box::new);

    let joined = |lines: &[(&str, Option<&str>)], separator: &str| {
        let texts: Vec<&str> = lines.iter().map(|(text, _)| *text).collect();
        texts.join(separator)
    };
    message.content = match (thoughts.first(), compat.thinking_as_text) {
        (Some(_), true) => {
            let thinking = WirePart::text(joined(&thoughts, "\n\n"));
            let texts = texts.into_iter().map(WirePart::text);
            Some(WireContent::Parts(std::iter::once(thinking).chain(texts).collect()))
        }
        // Plain text instead of parts: some models copy the format of parts into their answers.
        _ => match texts.as_slice() {
            [] if compat.assistant_after_tool_result || compat.text_beside_calls => {
                Some(WireContent::Text("".into()))
            }
            [] => Some(WireContent::Null),
            [text] => Some(WireContent::Text(Cow::Borrowed(text))),
            texts => Some(WireContent::Text(Cow::Owned(texts.concat()))),
        },
    };
    if let Some((_, Some(field))) = thoughts.first()
        && !compat.thinking_as_text
        && message.reasoning_details.is_none()
    {
        let thinking = || Some(joined(&thoughts, "\n"));
        match reasoning::field(&model.provider, field) {
            Some("reasoning") => message.reasoning = thinking(),
            Some("reasoning_content") => message.reasoning_content = thinking(),
            Some(_) => message.reasoning_text = thinking(),
            None => {}
        }
    }
    if compat.empty_reasoning_content && model.reasoning && message.reasoning_content.is_none() {
        message.reasoning_content = Some(String::new());
    }
    let says_something = match &message.content {
        Some(WireContent::Text(text)) => !text.is_empty(),
        Some(WireContent::Parts(parts)) => !parts.is_empty(),
        _ => false,
    };
    (says_something || !message.tool_calls.is_empty()).then_some(message)
}

fn result_message<'a>(result: CallResult<'a>, compat: &Compat<'_>) -> WireMessage<'a> {
    let text = text_of(&result.parts);
    let has_image = result.parts.iter().any(|p| matches!(p, Part::Image(_)));
    let text = match (text.trim().is_empty(), has_image) {
        (false, _) => Cow::Owned(text),
        (true, true) => Cow::Borrowed(SEE_IMAGE),
        (true, false) => Cow::Borrowed(NO_OUTPUT),
    };
    WireMessage {
        tool_call_id: Some(result.call_id),
        name: compat.tool_result_name.then_some(result.name),
        ..WireMessage::text("tool", text)
    }
}

/// The images of all results after a line of text, for a separate message: results cannot contain images.
fn result_images<'a>(results: &[CallResult<'a>]) -> Vec<WirePart<'a>> {
    let parts = results.iter().flat_map(|result| &result.parts);
    let images = parts.filter(|part| matches!(part, Part::Image(_)));
    let mut images: Vec<WirePart<'a>> = images.map(|part| WirePart::of(*part)).collect();
    if !images.is_empty() {
        images.insert(0, WirePart::text(IMAGES_FOLLOW));
    }
    images
}

/// Converts an id of another protocol. An id of the Responses API has two parts joined by `|`, the second
/// with up to some 400 characters; both are needed to distinguish the calls of one turn.
fn legal_id(provider: &str, id: &str) -> String {
    let Some((call, item)) = id.split_once('|') else {
        let limit = if provider == "openai" { ID_LIMIT } else { usize::MAX };
        return id.chars().take(limit).collect();
    };
    let (call, item) = (ids::plain(call, usize::MAX), ids::plain(item, usize::MAX));
    let both = if item.is_empty() { call.clone() } else { format!("{call}_{item}") };
    if both.len() <= ID_LIMIT {
        return both;
    }
    let hash: String = hash::short(id).chars().take(8).collect();
    let call: String = call.chars().take(ID_LIMIT - hash.len() - 1).collect();
    format!("{call}_{hash}")
}
