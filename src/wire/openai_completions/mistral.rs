//! Mistral's chat completions: the profile of the api `mistral-conversations`.
//!
//! Answers are decoded as OpenAI's. Requests differ: call ids have nine letters and digits, thinking is a
//! content part, a user message must not follow a tool result directly, and thinking is requested by a mode
//! or an effort.

use super::decoder::Reading;
use super::messages::{BRIDGE, NO_OUTPUT, SEE_IMAGE};
use super::{Profile, tools};
use crate::llm::body::{Body, Items};
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::http::fault;
use crate::llm::limits;
use crate::llm::message::StopReason;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint::{self, Headers};
use crate::wire::hash;
use crate::wire::transcript::{self, Transcript};
use crate::wire::transform::{Assistant, AssistantBlock, CallResult, Part, Turn, User, text_of, transform};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

pub static MISTRAL: Profile = Profile { request, reading: |_| READING, closes_when_aborted: false };

const READING: Reading = Reading {
    stop_reason,
    no_reason: Some("Mistral stream ended without a finish reason"),
    id_form: legal_id,
    in_order: true,
    is_strict: true,
    counts_thinking: false,
    grammar_tools: false,
    think_tags: false,
    text_tool_calls: false,
    cumulative_arguments: false,
};

/// The effort if the model's map has no name for a level.
const EFFORT: &str = "high";

const TOOL_ERROR: &str = "[tool error] ";

/// Required length of a call id, in letters and digits.
const ID_LENGTH: usize = 9;

fn stop_reason(reason: &str) -> Result<StopReason, StreamError> {
    match reason {
        "stop" => Ok(StopReason::Stop),
        "length" | "model_length" => Ok(StopReason::Length),
        "tool_calls" => Ok(StopReason::ToolUse),
        // A failure of the server, which may be temporary.
        "error" => Err(fault::stopped("Provider stopped with: error (server error)".to_owned())),
        other => Err(fault::stopped(format!("Provider stopped with: {other}"))),
    }
}

fn request<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    let mut headers = Headers::json("text/event-stream");
    headers.set_bearer(options);
    if let Some(session) = limits::cache_session(options) {
        headers.set("x-affinity", session);
    }
    headers.merge_model(model.headers.as_ref());
    Ok(HttpRequest {
        url: endpoint::url(model, options, "/v1/chat/completions")?,
        headers: headers.finish(model, options, &["authorization"])?,
        body: body(model, context, options)?,
    })
}

fn body<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<Body<'a>, StreamError> {
    let in_place = model.compat.as_ref().and_then(|compat| compat.get("supportsMidConvoSystemMessages"));
    let transcript = Arc::new(Transcript::new(context, in_place == Some(&Value::Bool(true))));
    let tools = tools::functions(&transcript.current_tools)?;

    let mut body = Body::default();
    body.set("model", &model.id);
    let said = transcript.clone();
    body.list("messages", move |items| {
        convert(model, &said, items);
        Ok(())
    });
    body.set("stream", &true);
    if !tools.is_empty() {
        body.set("tools", &tools);
    }
    body.set_some("temperature", options.temperature.as_ref());
    body.set_some("max_tokens", limits::output_tokens(model, context, options).as_ref());
    body.set_some("tool_choice", options.tool_choice.map(ToolChoice::name));
    // A model with a level map takes an effort, other models a mode.
    let level = limits::thinking_level(model, options).filter(|_| model.reasoning);
    match (level, model.thinking_level_map.as_ref().filter(|_| model.reasoning)) {
        (Some(level), Some(_)) => {
            body.set("reasoning_effort", model.thinking_word(level).unwrap_or(EFFORT));
        }
        (Some(_), None) => body.set("prompt_mode", "reasoning"),
        (None, Some(_)) => body.set_some("reasoning_effort", model.thinking_word(ThinkingLevel::Off)),
        (None, None) => {}
    }
    body.set_some("prompt_cache_key", limits::cache_key(options).as_ref());
    // Last, so that the user's parameters override all others.
    body.merge(limits::sampling_params(model, options));
    Ok(body)
}

#[derive(Default, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    /// False if the answer is complete, not the beginning of the next one.
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
    /// JSON as text.
    arguments: String,
}

fn convert<'a>(model: &Model, transcript: &Transcript<'a>, items: &mut Items<'_>) {
    let mut messages = Vec::new();
    if !transcript.prompt.is_empty() {
        let prompt = Cow::Owned(transcript.prompt.clone());
        messages.push(WireMessage::text("system", prompt));
    }
    for turn in transform(transcript.context, &transcript.messages, model, &legal_id) {
        // What follows depends on the last one.
        items.extend(messages.drain(..messages.len().saturating_sub(1)));
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
    items.extend(messages);
}

/// Appends a user or system message, with a bridging assistant message after a tool result.
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
            Part::Image(image) => Self::ImageUrl { image_url: image.data_url() },
        }
    }
}

/// Converts a user message; `None` if it is empty.
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

/// Converts an answer; `None` if it has no text, thinking or calls.
fn assistant_message(answer: Assistant<'_>) -> Option<WireMessage<'_>> {
    let mut parts = Vec::new();
    let mut tool_calls = Vec::new();
    for block in answer.blocks {
        match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Thinking { text, .. }
                if text.trim().is_empty() => {}
            AssistantBlock::Text { text, .. } => parts.push(WirePart::of(Part::Text(text))),
            AssistantBlock::Thinking { text, .. } => {
                parts.push(WirePart::Thinking { thinking: [Thought::Text { text }] })
            }
            AssistantBlock::Call(call) => tool_calls.push(WireCall {
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

/// The id itself if it has the required form, otherwise one derived from it.
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
