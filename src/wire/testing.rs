//! For tests of protocols: a request's parts, and an answer decoded with the rules that every stream of
//! events keeps.

use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, Fold, StreamError};
use crate::llm::message::{AssistantMessage, Block, StopReason};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, Frame, HttpRequest, Protocol};
use crate::llm::secret::Secret;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// A model with `fields` over what every test needs.
pub fn model(fields: Value) -> Model {
    let mut model = json!({
        "id": "m1", "name": "M", "api": "test", "provider": "acme", "baseUrl": "https://api.acme.test/v1",
        "reasoning": false, "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 8000,
        "cost": {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 1.5},
    });
    merge(&mut model, fields);
    serde_json::from_value(model).unwrap()
}

pub fn merge(into: &mut Value, fields: Value) {
    let fields: Map<String, Value> = serde_json::from_value(fields).unwrap();
    into.as_object_mut().unwrap().extend(fields);
}

pub fn context(messages: &Value) -> Context {
    Context { messages: serde_json::from_value(messages.clone()).unwrap() }
}

pub fn options() -> StreamOptions {
    StreamOptions { api_key: Some(Secret::new("key")), ..StreamOptions::default() }
}

/// An answer of `model` with these blocks.
pub fn answer(model: &Model, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": model.api, "provider": model.provider,
        "model": model.id, "stopReason": "stop", "timestamp": 1})
}

pub fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

pub fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "isError": false,
        "content": [{"type": "text", "text": text}]})
}

/// A tool with one argument, `path`.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("{name} it"), "parameters":
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}})
}

/// What became of an answer.
#[derive(Debug)]
pub struct Decoded {
    pub events: Vec<AssistantEvent>,
    pub message: AssistantMessage,
    pub error: Option<StreamError>,
}

/// Decodes `frames` and checks what holds for every stream.
pub fn decode(mut decoder: Box<dyn Decoder>, frames: &[Frame<'_>]) -> Decoded {
    let mut events = Vec::new();
    let mut error = None;
    for frame in frames {
        error = decoder.frame(*frame, &mut events).err();
        if error.is_some() || decoder.is_done() {
            break;
        }
    }
    if error.is_none() {
        error = decoder.end(&mut events).err();
    }
    let mut fold = Fold::new(AssistantMessage::default());
    for event in &events {
        fold.apply(event);
    }
    if let Some(error) = &error {
        fold.apply(&AssistantEvent::Error(error.clone()));
    }
    let decoded = Decoded { events, message: fold.into_message(), error };
    decoded.check();
    decoded
}

impl Decoded {
    fn check(&self) {
        let mut open = HashSet::new();
        let mut begun = HashSet::new();
        let mut text_of_calls = std::collections::HashMap::<usize, String>::new();
        for (at, event) in self.events.iter().enumerate() {
            use AssistantEvent as E;
            match event {
                E::TextStart { index } | E::ThinkingStart { index } | E::ToolCallStart { index, .. } => {
                    assert!(*index <= begun.len(), "no gaps: {event:?}");
                    begun.insert(*index);
                    assert!(open.insert(*index), "begins once: {event:?}");
                }
                E::TextDelta { index, delta } | E::ThinkingDelta { index, delta } => {
                    assert!(open.contains(index) && !delta.is_empty(), "{event:?}");
                }
                E::ToolCallDelta { index, delta } => {
                    assert!(open.contains(index) && !delta.is_empty(), "{event:?}");
                    text_of_calls.entry(*index).or_default().push_str(delta);
                }
                E::TextEnd { index, .. } | E::ThinkingEnd { index, .. } | E::ToolCallEnd { index, .. } => {
                    assert!(open.remove(index), "ends once: {event:?}");
                }
                E::Info(_) => {}
                E::Done { .. } => {
                    assert!(open.is_empty() && at + 1 == self.events.len(), "the end is last");
                }
                E::Start | E::Error(_) => panic!("not a decoder's to tell: {event:?}"),
            }
        }
        let done = matches!(self.events.last(), Some(AssistantEvent::Done { .. }));
        assert_eq!(done, self.error.is_none(), "either done or an error");
        let mut ids = HashSet::new();
        for (index, block) in self.message.content.iter().enumerate() {
            let Block::ToolCall(call) = block else {
                continue;
            };
            assert!(!call.id.is_empty() && !call.name.is_empty(), "{call:?}");
            assert!(ids.insert(&call.id), "ids are unique: {call:?}");
            let text = text_of_calls.remove(&index).unwrap_or_default();
            match serde_json::from_str::<Value>(&text) {
                Ok(Value::Object(arguments)) => {
                    assert_eq!((&call.arguments, &call.arguments_error), (&arguments, &None));
                }
                // Whatever is made of broken arguments, a call that runs has an object.
                _ if text.trim().is_empty() => assert!(call.arguments.is_empty()),
                _ => {}
            }
        }
    }

    /// The answer on one line: its blocks, then how it ended.
    pub fn shown(&self) -> String {
        let blocks = self.message.content.iter().map(|block| match block {
            Block::Text(block) => format!("text {:?}", block.text),
            Block::Thinking(block) => {
                let signature = block.thinking_signature.as_deref().unwrap_or("-");
                format!("think {:?} {signature}", block.thinking)
            }
            Block::ToolCall(call) => {
                let arguments = Value::from(call.arguments.clone());
                let invalid = if call.arguments_error.is_some() { " invalid" } else { "" };
                format!("call {} {} {arguments}{invalid}", call.id, call.name)
            }
            other => format!("{other:?}"),
        });
        let mut parts: Vec<String> = blocks.collect();
        parts.push(match (&self.error, self.message.stop_reason) {
            (Some(error), _) => format!("error {}", error.message),
            (None, StopReason::Stop) => "stop".to_owned(),
            (None, reason) => format!("{reason:?}").to_lowercase(),
        });
        parts.join("; ")
    }
}

/// Decodes a stream whole, and cut after each frame: a part is never taken for the whole. Then with each
/// field of each frame left out, null, of another kind and doubled: whatever comes out, it keeps the rules.
pub fn decode_and_torture(new: &dyn Fn() -> Box<dyn Decoder>, frames: &[(&str, &str)]) -> Decoded {
    let as_frames = |frames: &[(&str, &str)]| -> Vec<Decoded> {
        let frames: Vec<Frame<'_>> = frames.iter().map(|&(event, data)| Frame::Sse { event, data }).collect();
        vec![decode(new(), &frames)]
    };
    let whole = as_frames(frames).remove(0);
    for cut in 0..frames.len() {
        let part = as_frames(&frames[..cut]).remove(0);
        if part.error.is_none() {
            assert_eq!(part.message.stop_reason, whole.message.stop_reason);
            assert_eq!(part.message.content, whole.message.content, "cut at {cut}");
        }
    }
    for at in 0..frames.len() {
        for mutated in mutations(frames[at].1) {
            let mut frames = frames.to_vec();
            frames[at].1 = &mutated;
            as_frames(&frames);
        }
    }
    whole
}

/// `json` with each of its fields and items changed in each way.
fn mutations(json: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return vec![String::new(), "null".into(), "{".into()];
    };
    let others = ["null", "true", "-1", "1e300", "\"x\"", "\"\"", "[]", "{}", "[{}]", "[null]"];
    let mut found: Vec<String> = others.iter().map(|other| (*other).to_owned()).collect();
    mutate(&value, &mut |mutated| found.push(mutated), &others);
    found
}

fn mutate(value: &Value, emit: &mut dyn FnMut(String), others: &[&str]) {
    let field = |name: &str, value: &str| format!("{}:{value}", Value::from(name));
    match value {
        Value::Object(object) => {
            let fields: Vec<String> =
                object.iter().map(|(name, value)| field(name, &value.to_string())).collect();
            for (at, (name, value)) in object.iter().enumerate() {
                let mut with = |replaced: &[String]| {
                    let parts = [&fields[..at], replaced, &fields[at + 1..]].concat();
                    emit(format!("{{{}}}", parts.join(",")));
                };
                with(&[]);
                with(&[fields[at].clone(), fields[at].clone()]);
                for other in others {
                    with(&[field(name, other)]);
                }
                mutate(value, &mut |inner| with(&[field(name, &inner)]), others);
            }
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(Value::to_string).collect();
            for (at, item) in items.iter().enumerate() {
                let mut with = |replaced: &[String]| {
                    let parts = [&texts[..at], replaced, &texts[at + 1..]].concat();
                    emit(format!("[{}]", parts.join(",")));
                };
                with(&[]);
                with(&[texts[at].clone(), texts[at].clone()]);
                for other in others {
                    with(&[(*other).to_owned()]);
                }
                mutate(item, &mut |inner| with(&[inner]), others);
            }
        }
        _ => {}
    }
}

/// A request as it is sent.
#[derive(Debug)]
pub struct Asked {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The request for a conversation, or why it is refused.
pub fn ask(
    protocol: &dyn Protocol,
    model: &Model,
    context: &Context,
    options: &StreamOptions,
) -> Result<Asked, StreamError> {
    let HttpRequest { url, headers, body } = protocol.request(model, context, options)?;
    Ok(Asked { url, headers, body: body.to_bytes()? })
}

/// The parsed body of a request.
pub fn body(protocol: &dyn Protocol, model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    let request = ask(protocol, model, &context(messages), options).unwrap();
    serde_json::from_slice(&request.body).unwrap()
}

/// A header of a request.
pub fn header(
    protocol: &dyn Protocol,
    model: &Model,
    messages: &Value,
    options: &StreamOptions,
    name: &str,
) -> Option<String> {
    let request = ask(protocol, model, &context(messages), options).unwrap();
    let mut headers = request.headers.into_iter();
    headers.find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Checks that each request of a growing conversation begins with the messages of the one before, byte
/// for byte but for the marks of the prompt cache, which move on; and that the rest before the messages
/// and the tools stay as they are.
pub fn check_growth(
    protocol: &dyn Protocol,
    model: &Model,
    messages: &Value,
    moving: &dyn Fn(&Value) -> bool,
) {
    check_growth_with(protocol, model, messages, moving, &options());
}

pub fn check_growth_with(
    protocol: &dyn Protocol,
    model: &Model,
    messages: &Value,
    moving: &dyn Fn(&Value) -> bool,
    options: &StreamOptions,
) {
    let mut earlier: Option<(Vec<String>, String)> = None;
    let all = messages.as_array().unwrap();
    for end in 1..=all.len() {
        let said = &all[..end];
        // A request is made when the user or a tool has spoken.
        let last = said.last().unwrap();
        let waits = all.get(end).is_some_and(|next| next["role"] == "toolResult");
        if last["role"] == "assistant" || last["role"] == "system" || waits {
            continue;
        }
        let mut body = body(protocol, model, &Value::from(said), options);
        let places = ["/messages", "/contents", "/input", "/context/messages"];
        let place = places.into_iter().find(|place| body.pointer(place).is_some());
        let list = body.pointer_mut(place.unwrap()).unwrap().take();
        let sent: Vec<String> = list
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| !moving(message))
            .map(|message| unmarked(message).to_string())
            .collect();
        for limit in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
            body[limit].take();
        }
        if let Some(limit) = body.pointer_mut("/generationConfig/maxOutputTokens") {
            limit.take();
        }
        let rest = unmarked(&body).to_string();
        if let Some((before, rest_before)) = &earlier {
            assert!(sent.starts_with(before), "\n{before:#?}\nis no beginning of\n{sent:#?}");
            assert_eq!(&rest, rest_before);
        }
        earlier = Some((sent, rest));
    }
    assert!(earlier.is_some());
}

fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields = object.iter().filter(|(name, _)| *name != "cache_control");
            fields.map(|(name, value)| (name.clone(), unmarked(value))).collect()
        }
        Value::Array(items) => items.iter().map(unmarked).collect(),
        other => other.clone(),
    }
}
