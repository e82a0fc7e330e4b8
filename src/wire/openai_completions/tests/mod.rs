//! Requests compared field by field, and recorded answers decoded.

mod habits;
mod mistral;
mod requests;
mod streams;

use super::{ChatCompletions, OPENAI};
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Protocol};
use crate::wire::testing;
use crate::wire::testing::Decoded;
use serde_json::{Value, json};

const OPENAI_API: ChatCompletions = ChatCompletions(&OPENAI);

fn model(fields: Value) -> Model {
    testing::model(fields)
}

fn decoder(model: &Model) -> Box<dyn Decoder> {
    let messages = json!([
        {"role": "system", "content": "s", "toolsAdded": [testing::tool("ls"), testing::tool("write")]},
        {"role": "user", "content": "q", "timestamp": 5},
    ]);
    OPENAI_API.decoder(model, &testing::context(&messages), &testing::options())
}

/// Decodes chunks in every way, and compares the answer.
#[track_caller]
fn check(model: &Model, chunks: &[Value], expected: &str) -> Decoded {
    let mut data: Vec<String> = chunks.iter().map(Value::to_string).collect();
    data.push("[DONE]".to_owned());
    check_raw(model, &data, expected)
}

#[track_caller]
fn check_raw(model: &Model, data: &[String], expected: &str) -> Decoded {
    let frames: Vec<(&str, &str)> = data.iter().map(|data| ("", data.as_str())).collect();
    let decoded = testing::decode_and_torture(&|| decoder(model), &frames);
    assert_eq!(decoded.shown(), expected);
    decoded
}

/// A chunk with this delta.
fn delta(delta: Value) -> Value {
    json!({"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn text(text: &str) -> Value {
    delta(json!({"content": text}))
}

/// A chunk with pieces of calls.
fn calls(pieces: Value) -> Value {
    delta(json!({"tool_calls": pieces}))
}

fn finish(reason: &str) -> Value {
    json!({"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}
