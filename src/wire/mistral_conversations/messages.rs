//! The conversation in Mistral's form.

use crate::llm::context::Context;
use crate::llm::model::Model;
use crate::wire::hash;
use crate::wire::transcript;
use crate::wire::transcript::Transcript;
use crate::wire::transform::{Answer, CallResult, Part, Said, Turn, User, text_of, transform};
use serde::Serialize;
use std::borrow::Cow;

/// Said by nobody: a user's message right after a tool's result is refused.
const BRIDGE: &str = "I have processed the tool results.";
const SEE_IMAGE: &str = "(see attached image)";
const NO_OUTPUT: &str = "(no tool output)";
const TOOL_ERROR: &str = "[tool error] ";

/// Every id of a call has this many letters and digits, and nothing else.
const ID_LENGTH: usize = 9;

#[derive(Default, Serialize)]
pub struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    /// False: the answer is a whole one, not the beginning of the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: String },
    Thinking { thinking: [Thought<'a>; 1] },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thought<'a> {
    Text { text: &'a str },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
    index: u32,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    /// JSON, as text.
    arguments: String,
}

pub fn convert<'a>(model: &Model, context: &'a Context, transcript: &Transcript<'a>) -> Vec<WireMessage<'a>> {
    let turns = transform(context, &transcript.messages, model, &legal_id);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !transcript.prompt.is_empty() {
        let prompt = Cow::Owned(transcript.prompt.clone());
        messages.push(WireMessage::text("system", prompt));
    }
    for turn in turns {
        match turn {
            Turn::System(system) => {
                let text = transcript::update_text(system);
                if !text.is_empty() {
                    let message = WireMessage::text("system", Cow::Owned(text));
                    speak(&mut messages, message);
                }
            }
            Turn::User(user) => {
                if let Some(message) = user_message(user) {
                    speak(&mut messages, message);
                }
            }
            Turn::Assistant(answer) => messages.extend(assistant_message(answer)),
            Turn::Results(results) => messages.extend(results.into_iter().map(result_message)),
        }
    }
    messages
}

/// Adds what is not the model's to say.
fn speak<'a>(messages: &mut Vec<WireMessage<'a>>, message: WireMessage<'a>) {
    if messages.last().is_some_and(|last| last.role == "tool") {
        let bridge = WireMessage::text("assistant", Cow::Borrowed(BRIDGE));
        messages.push(bridge);
    }
    messages.push(message);
}

impl<'a> WireMessage<'a> {
    fn text(role: &'static str, text: Cow<'a, str>) -> Self {
        Self { role, content: Some(WireContent::Text(text)), ..Self::default() }
    }
}

impl<'a> WirePart<'a> {
    fn of(part: Part<'a>) -> Self {
        match part {
            Part::Text(text) => Self::Text { text: Cow::Borrowed(text) },
            Part::Image(image) => {
                Self::ImageUrl { image_url: format!("data:{};base64,{}", image.mime_type, image.data) }
            }
        }
    }
}

/// `None` for a message that says nothing.
fn user_message(user: User<'_>) -> Option<WireMessage<'_>> {
    let parts = user.parts.into_iter();
    let mut parts = parts.filter(|part| *part != Part::Text("")).peekable();
    let first = parts.peek()?;
    let content = match first {
        Part::Text(text) if user.plain => WireContent::Text(Cow::Borrowed(text)),
        _ => WireContent::Parts(parts.map(WirePart::of).collect()),
    };
    Some(WireMessage { role: "user", content: Some(content), ..WireMessage::default() })
}

/// `None` for an answer without text, thinking and calls.
fn assistant_message(answer: Answer<'_>) -> Option<WireMessage<'_>> {
    let mut parts = Vec::new();
    let mut tool_calls = Vec::new();
    for block in answer.blocks {
        match block {
            Said::Text { text, .. } | Said::Thinking { text, .. } if text.trim().is_empty() => {}
            Said::Text { text, .. } => parts.push(WirePart::of(Part::Text(text))),
            Said::Thinking { text, .. } => {
                parts.push(WirePart::Thinking { thinking: [Thought::Text { text }] })
            }
            Said::Call(call) => tool_calls.push(WireCall {
                id: call.id,
                r#type: "function",
                function: WireFunction {
                    name: call.name,
                    arguments: serde_json::to_string(call.arguments).unwrap_or_default(),
                },
                index: 0,
            }),
        }
    }
    if parts.is_empty() && tool_calls.is_empty() {
        return None;
    }
    Some(WireMessage {
        role: "assistant",
        prefix: Some(false),
        content: (!parts.is_empty()).then_some(WireContent::Parts(parts)),
        tool_calls,
        ..WireMessage::default()
    })
}

fn result_message(result: CallResult<'_>) -> WireMessage<'_> {
    let text = text_of(&result.parts);
    let images = result.parts.into_iter();
    let images = images.filter(|part| matches!(part, Part::Image(_)));
    let images: Vec<WirePart<'_>> = images.map(WirePart::of).collect();
    let text = match (text.trim(), images.is_empty()) {
        ("", true) => NO_OUTPUT,
        ("", false) => SEE_IMAGE,
        (text, _) => text,
    };
    let text = if result.is_error { format!("{TOOL_ERROR}{text}") } else { text.to_owned() };
    let text = WirePart::Text { text: Cow::Owned(text) };
    let parts = std::iter::once(text).chain(images);
    WireMessage {
        role: "tool",
        tool_call_id: Some(result.call_id),
        name: Some(result.name),
        content: Some(WireContent::Parts(parts.collect())),
        ..WireMessage::default()
    }
}

/// The id itself if it has the form, else one made from it.
pub fn legal_id(id: &str) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.len() == ID_LENGTH {
        return plain;
    }
    let seed = if plain.is_empty() { id } else { &plain };
    let hash = hash::short(seed);
    let digits = hash.chars().chain(std::iter::repeat('0'));
    digits.take(ID_LENGTH).collect()
}
