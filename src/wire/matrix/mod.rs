//! Tests of every wire protocol, and of switching a conversation from each protocol to each other.
//!
//! A new protocol needs one row in `row.rs` and its rules in `rule.rs`.

mod dump;
mod row;
mod rule;

use super::testing::{self, Decoded, answer, context, result};
use super::{BUILTIN, find};
use crate::llm::classify::{Class, classify};
use crate::llm::event::{AssistantEvent, ErrorKind, Fold, StreamError};
use crate::llm::http::{Target, status_error};
use crate::llm::message::{AssistantMessage, Block, StopReason};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{StreamOptions, ToolChoice};
use crate::llm::protocol::{Api, Decoder, Frame, Protocol};
use crate::llm::sse::{SseDecoder, TooLarge};
use row::{ROWS, Row};
use serde_json::{Value, json};
use std::sync::Arc;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

fn protocol(row: &Row) -> Arc<dyn Protocol> {
    match find(row.api) {
        Some(Api::Wire(protocol)) => protocol,
        _ => panic!("{} is no wire protocol", row.api),
    }
}

fn decoder(row: &Row) -> Box<dyn Decoder> {
    let messages = json!([system(), {"role": "user", "content": "q", "timestamp": 5}]);
    protocol(row).decoder(&row.model(), &context(&messages), &row.options())
}

fn system() -> Value {
    let tools = ["read", "bash", "ls"].map(testing::tool);
    json!({"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": tools, "timestamp": 1})
}

/// The events of a stream that arrives in two parts.
fn events(stream: &[u8], cut: usize) -> Vec<(String, String)> {
    let mut sse = SseDecoder::new();
    let mut seen = Vec::new();
    let mut each = |event: &str, data: &str| -> Result<(), TooLarge> {
        seen.push((event.to_owned(), data.to_owned()));
        Ok(())
    };
    let (head, tail) = stream.split_at(cut);
    for part in [head, tail] {
        assert!(sse.feed(part, &mut each).is_ok());
    }
    assert!(sse.end(&mut each).is_ok());
    seen
}

fn frames(events: &[(String, String)]) -> Vec<Frame<'_>> {
    events.iter().map(|(event, data)| Frame::Sse { event, data }).collect()
}

fn decode(row: &Row, stream: &str) -> Decoded {
    let events = events(stream.as_bytes(), 0);
    testing::decode(decoder(row), &frames(&events))
}

#[test]
fn every_wire_protocol_has_a_row() {
    let wire = BUILTIN.iter().filter(|(_, make)| matches!(make(), Api::Wire(_)));
    let known: Vec<&str> = wire.map(|(name, _)| *name).collect();
    let rows: Vec<&str> = ROWS.iter().map(|row| row.api).collect();
    assert_eq!(rows, known);
}

#[test]
fn the_same_answer_comes_out_of_every_stream() {
    for row in ROWS {
        let decoded = decode(row, row.answer);
        let message = &decoded.message;
        assert_eq!(decoded.error, None, "{}", row.api);
        assert_eq!(message.stop_reason, StopReason::ToolUse, "{}", row.api);
        let [Block::Thinking(thought), Block::Text(text), Block::ToolCall(first), Block::ToolCall(second)] =
            message.content.as_slice()
        else {
            panic!("{}: {}", row.api, decoded.shown());
        };
        assert_eq!(thought.thinking, "Let me look.", "{}", row.api);
        let signed = thought.thinking_signature.as_deref().unwrap_or_default();
        // Some protocols store the name of the thinking field as the signature.
        assert_eq!(signed.len() > 20 || signed == "c2lnbmVk", row.signed, "{}: {signed:?}", row.api);
        assert_eq!(text.text, "I read é.", "{}", row.api);
        assert_eq!((first.name.as_str(), second.name.as_str()), ("read", "bash"));
        assert_eq!(Value::from(first.arguments.clone()), json!({"path": "a.txt"}));
        assert_eq!(Value::from(second.arguments.clone()), json!({"command": "echo hi"}));
        if let Some(ids) = row.ids {
            assert_eq!([&first.id, &second.id], ids, "{}", row.api);
        }
        let usage = &message.usage;
        let counts = [usage.input, usage.cache_read, usage.output, usage.total_tokens];
        assert_eq!(counts, [10, 5, 9, 24], "{}", row.api);
        if row.api != "pi-messages" {
            let cost = (10.0 + 0.5 * 5.0 + 2.0 * 9.0) / 1e6;
            assert!((usage.cost.total - cost).abs() < 1e-12, "{}", row.api);
        }
    }
}

#[test]
fn a_stream_cut_into_reads_at_any_byte_is_the_same() {
    let mut streams: Vec<&str> = ROWS.iter().map(|row| row.answer).collect();
    streams.sort_unstable();
    streams.dedup();
    for stream in streams {
        let lines = stream.replace('\n', "\r\n");
        let whole = events(stream.as_bytes(), 0);
        for cut in 0..=lines.len() {
            assert!(events(lines.as_bytes(), cut) == whole, "cut at {cut}:\n{stream}");
        }
    }
}

/// A truncated answer is an error, and every change of a field keeps the rules of a stream.
#[test]
fn a_stream_that_breaks_off_is_an_error() {
    for row in ROWS {
        let events = events(row.answer.as_bytes(), 0);
        let pairs: Vec<(&str, &str)> =
            events.iter().map(|(event, data)| (event.as_str(), data.as_str())).collect();
        testing::decode_and_torture(&|| decoder(row), &pairs);
        let half = &frames(&events)[..events.len() / 2];
        let decoded = testing::decode(decoder(row), half);
        assert!(decoded.error.is_some(), "{}", row.api);
    }
}

#[test]
fn text_begins_before_its_first_piece_whatever_the_wire_says() {
    for row in ROWS {
        let mut decoder = decoder(row);
        let mut out = Vec::new();
        for (event, data) in row.bare_text {
            let frame = Frame::Sse { event, data };
            assert_eq!(decoder.frame(frame, &mut out), Ok(()), "{}", row.api);
        }
        out.retain(|event| !matches!(event, AssistantEvent::Info(_)));
        let [
            AssistantEvent::TextStart { index: 0 },
            AssistantEvent::TextDelta { index: 0, delta: a },
            AssistantEvent::TextDelta { index: 0, delta: b },
        ] = out.as_slice()
        else {
            panic!("{}: {out:?}", row.api);
        };
        assert_eq!((a.as_str(), b.as_str()), ("a", "b"), "{}", row.api);
    }
}

/// After an abort the message has all received content, and the reported usage.
#[test]
fn an_abort_keeps_what_came_and_what_it_cost() {
    for row in ROWS {
        let events = events(row.answer.as_bytes(), 0);
        for cut in 0..events.len() {
            let mut decoder = decoder(row);
            let mut out = Vec::new();
            for frame in &frames(&events)[..cut] {
                decoder.frame(*frame, &mut out).unwrap();
            }
            let mut fold = Fold::new(AssistantMessage::default());
            out.iter().for_each(|event| fold.apply(event));
            let has_text = fold.message().content.iter().any(|b| matches!(b, Block::Text(_)));
            if out.iter().any(|event| matches!(event, AssistantEvent::Done { .. })) {
                continue;
            }
            fold.apply(&AssistantEvent::Error(StreamError::aborted()));
            let message = fold.into_message();
            assert_eq!(message.stop_reason, StopReason::Aborted, "{}", row.api);
            let usage = &message.usage;
            if has_text && row.early_usage {
                assert_eq!((usage.input, usage.cache_read), (10, 5), "{} at {cut}", row.api);
                assert!(usage.cost.total > 0.0, "{} at {cut}", row.api);
            }
            assert!(usage.total_tokens <= 24, "{} at {cut}", row.api);
        }
    }
}

#[test]
fn a_conversation_that_is_too_long_is_known_by_the_provider_s_words() {
    let target = Target {
        host: "api.acme.test".into(),
        port: 443,
        secure: true,
        url: "https://api.acme.test/v1".into(),
        proxy: None,
    };
    for row in ROWS {
        let (status, body) = row.overflow;
        let error = status_error(status, &[], body.as_bytes(), &target);
        assert_eq!(classify(&error), Class::Overflow, "{}: {}", row.api, error.message);
        assert!(error.message.starts_with(&status.to_string()), "{}", error.message);
    }
}

/// A conversation with every kind of content that a session can hold, begun by one model and continued by
/// another.
fn rich(source: &Row, target: &Row) -> Value {
    let by = |row: &Row| (row.model(), decode(row, row.answer).message.content);
    let (from, said) = by(source);
    let (to, own) = by(target);
    let said = serde_json::to_value(said).unwrap();
    // Ids of calls may repeat, those of a server's items must not.
    let own = serde_json::to_string(&own).unwrap();
    let own = own.replace("rs_1", "rs_2").replace("msg_1", "msg_2");
    let own: Value = serde_json::from_str(&own).unwrap();
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let ids = |content: &Value| -> Vec<String> {
        let calls = content.as_array().unwrap().iter().filter(|b| b["type"] == "toolCall");
        calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
    };
    let ended = |model: &Model, content: Value, reason: &str| {
        let mut message = answer(model, content);
        message["stopReason"] = json!(reason);
        message["errorMessage"] = json!("boom");
        message
    };
    let mut shown = result(&ids(&said)[0], "It says \u{0} \u{1b}[31m\u{fffd}.");
    shown["content"].as_array_mut().unwrap().push(image.clone());
    let mut empty = result(&ids(&own)[0], "");
    empty["content"] = json!([image.clone()]);
    let silent = json!({"role": "toolResult", "toolCallId": ids(&own)[1], "toolName": "bash", "isError": true, "content": []});
    let stranger = testing::model(json!({"id": "stranger"}));
    let long = "id with spaces, ünïcode | and bars|".repeat(10);
    json!([
        system(),
        {"role": "user", "content": [text("Look \u{7}"), image], "timestamp": 2},
        answer(&from, said.clone()),
        shown,
        // The second call has no result; this result has no call.
        result("nobody", "asked"),
        {"role": "user", "content": "go on", "timestamp": 3},
        ended(&from, said.clone(), "error"),
        ended(&from, json!([text("half")]), "aborted"),
        answer(&from, json!([])),
        answer(&from, json!([text(""), text("  ")])),
        {"role": "user", "content": "", "timestamp": 3},
        {"role": "user", "content": [text("")], "timestamp": 3},
        {"role": "user", "content": "more", "timestamp": 3},
        // Repeated ids, by the target model.
        answer(&to, own.clone()),
        empty,
        silent,
        answer(&from, json!([
            {"type": "thinking", "thinking": "[sealed]", "thinkingSignature": "c2VhbGVk", "redacted": true},
            text("And?"),
        ])),
        {"role": "user", "content": "and this", "timestamp": 9},
        answer(&stranger, json!([
            {"type": "thinking", "thinking": "aloud"},
            {"type": "thinking", "thinking": " "},
            text("Now this."),
            {"type": "toolCall", "id": long, "name": "no such tool!", "arguments": {"é": null}},
            {"type": "toolCall", "id": "", "name": "", "arguments": {}},
        ])),
        result(&long, "out"),
        {"role": "user", "content": [image, text("what is it?")], "timestamp": 9},
    ])
}

#[test]
fn a_conversation_goes_on_with_any_other_protocol() {
    for source in ROWS {
        for target in ROWS {
            for fields in [json!({}), json!({"input": ["text"]}), json!({"reasoning": false})] {
                let model = target.model_with(fields);
                let options =
                    StreamOptions { thinking: model.clamp_thinking(ThinkingLevel::High), ..target.options() };
                let messages = rich(source, target);
                let body = testing::body(&*protocol(target), &model, &messages, &options);
                let label = format!("{} to {}", source.api, target.api);
                if let Err(why) = (target.rule)(&body) {
                    panic!("{label}: {why}\n{body:#}");
                }
                let sent = body.to_string();
                for kept in ["I read é.", "Now this.", "what is it?", "It says"] {
                    assert!(sent.contains(kept), "{label}: {kept:?} is lost\n{body:#}");
                }
                if target.api == "pi-messages" {
                    continue; // sends what is stored
                }
                assert!(!sent.contains("aloud"), "{label}: what another model thought");
                assert!(!sent.contains("half"), "{label}: an aborted answer was sent");
                assert!(!sent.contains("asked"), "{label}: a result without a call was sent");
                assert_eq!(sent.contains(PNG), model.takes_images(), "{label}");
                if source.api != target.api {
                    assert!(!sent.contains("[sealed]"), "{label}: what another model sealed");
                }
            }
        }
    }
}

#[test]
fn a_request_with_nothing_to_say_is_refused_or_legal() {
    for row in ROWS {
        for said in [json!(""), json!([]), json!([{"type": "text", "text": ""}])] {
            let messages =
                json!([system(), {"role": "user", "content": "hi"}, {"role": "user", "content": said}]);
            let body = testing::body(&*protocol(row), &row.model(), &messages, &row.options());
            assert_eq!((row.rule)(&body), Ok(()), "{}: {body:#}", row.api);
        }
    }
}

#[test]
fn without_a_key_nothing_is_sent() {
    // Bedrock's requests are signed after they are built.
    let keyed = |row: &&Row| row.api != "bedrock-converse-stream";
    for row in ROWS.iter().filter(keyed) {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let options = StreamOptions::default();
        let asked = testing::ask(&*protocol(row), &row.model(), &context(&messages), &options);
        let error = asked.expect_err(row.api);
        assert_eq!(error.kind, ErrorKind::Auth, "{}: {}", row.api, error.message);
    }
}

#[test]
fn the_choice_of_a_tool_is_said_in_the_protocol_s_words() {
    for row in ROWS {
        let body = |choice| {
            let options = StreamOptions { tool_choice: choice, ..row.options() };
            let messages = json!([system(), {"role": "user", "content": "hi"}]);
            testing::body(&*protocol(row), &row.model(), &messages, &options).to_string()
        };
        let none = body(None);
        let choices = [ToolChoice::Required, ToolChoice::None].map(|choice| body(Some(choice)));
        for choice in &choices {
            assert_ne!(*choice, none, "{}", row.api);
        }
        assert_ne!(choices[0], choices[1], "{}", row.api);
    }
}
