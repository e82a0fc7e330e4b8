//! Answers, as Anthropic and others send them.

use super::*;
use crate::llm::event::ErrorKind;
use crate::llm::model::ThinkingLevel;
use crate::llm::protocol::Frame;
use crate::wire::testing::Decoded;

#[track_caller]
fn check(events: &[Value], expected: &str) -> Decoded {
    check_model(&model(json!({})), events, expected)
}

/// Decodes events in every way, and compares the answer.
#[track_caller]
fn check_model(model: &Model, events: &[Value], expected: &str) -> Decoded {
    let data: Vec<String> = events.iter().map(Value::to_string).collect();
    let names = events.iter().map(|event| event["type"].as_str().unwrap_or_default());
    let frames: Vec<(&str, &str)> = names.zip(data.iter().map(String::as_str)).collect();
    let new = || decoder(model, &testing::options());
    let decoded = testing::decode_and_torture(&new, &frames);
    assert_eq!(decoded.shown(), expected);
    // Without the events' names.
    let nameless: Vec<Frame<'_>> = data.iter().map(|data| Frame::Sse { event: "", data }).collect();
    assert_eq!(testing::decode(new(), &nameless).shown(), expected);
    decoded
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 3}}}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// A whole block of text.
fn text(index: u64, text: &str) -> Vec<Value> {
    vec![
        block(index, json!({"type": "text", "text": ""})),
        delta(index, json!({"type": "text_delta", "text": text})),
        stop(index),
    ]
}

/// The two events at the end.
fn end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}}),
        json!({"type": "message_stop"}),
    ]
}

fn stream(parts: &[Vec<Value>]) -> Vec<Value> {
    [vec![start()], parts.concat()].concat()
}

#[test]
fn text_thinking_and_calls() {
    check(&stream(&[text(0, "Hi é"), end("end_turn")]), r#"text "Hi é"; stop"#);
    let thinking = vec![
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "s1"})),
        delta(0, json!({"type": "signature_delta", "signature": "s2"})),
        stop(0),
    ];
    check(&stream(&[thinking, text(1, "x"), end("end_turn")]), r#"think "hm" s1s2; text "x"; stop"#);
    let redacted = vec![block(0, json!({"type": "redacted_thinking", "data": "enc"})), stop(0)];
    let decoded = check(
        &stream(&[redacted, text(1, "x"), end("end_turn")]),
        r#"think "[Reasoning redacted]" enc; text "x"; stop"#,
    );
    let first = serde_json::to_value(&decoded.message.content[0]).unwrap();
    assert_eq!(first["redacted"], true);
    let calls = vec![
        block(1, json!({"type": "tool_use", "id": "a", "name": "ls", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"path\":"})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "\"x\"}"})),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "b", "name": "write", "input": {}})),
        stop(2),
    ];
    check(
        &stream(&[text(0, "Let"), calls, end("tool_use")]),
        r#"text "Let"; call a ls {"path":"x"}; call b write {}; tooluse"#,
    );
}

#[test]
fn every_way_to_end() {
    let ends = [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tooluse"),
        ("refusal", "error The model refused to complete the request"),
        ("sensitive", "error Provider stopped with: sensitive"),
        ("model_context_window_exceeded", "error Unhandled stop reason: model_context_window_exceeded"),
        ("banana", "error Unhandled stop reason: banana"),
    ];
    for (reason, expected) in ends {
        let decoded = check(&stream(&[text(0, "x"), end(reason)]), &format!("text \"x\"; {expected}"));
        assert_eq!(decoded.message.raw_stop_reason.as_deref(), Some(reason));
        assert_eq!(decoded.message.usage.output, 9);
    }
    let mut refusal = end("refusal");
    refusal[0]["delta"]["stop_details"] = json!({"explanation": "No."});
    check(&stream(&[refusal]), "error No.");
}

#[test]
fn a_stream_without_its_end_is_an_error() {
    let cut = stream(&[text(0, "x"), end("end_turn")[..1].to_vec()]);
    check(&cut, "text \"x\"; error Anthropic stream ended before message_stop");
    let no_reason = stream(&[text(0, "x"), vec![json!({"type": "message_stop"})]]);
    check(&no_reason, "text \"x\"; error Anthropic stream ended without a stop reason");
    check(&[], "error Anthropic stream ended without a stop reason");
}

#[test]
fn usage_is_taken_from_both_ends() {
    let usage = |last: Value| {
        let mut ending = end("end_turn");
        ending[0]["usage"] = last;
        check(&stream(&[text(0, "x"), ending]), "text \"x\"; stop").message.usage
    };
    let small = usage(json!({"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}));
    let counts = [small.input, small.output, small.cache_read, small.cache_write, small.total_tokens];
    assert_eq!(counts, [10, 9, 5, 7, 31]);
    assert_eq!((small.cache_write_1h, small.reasoning), (Some(3), Some(4)));
    // 10 in, 9 out, 5 read, 4 written for minutes, 3 for an hour at twice the input's price.
    assert!((small.cost.total - (10.0 + 18.0 + 2.5 + 6.0 + 6.0) / 1e6).abs() < 1e-12);
    let other = usage(
        json!({"input_tokens": 100, "cache_read_input_tokens": null, "cache_creation_input_tokens": 0}),
    );
    let counts = [other.input, other.output, other.cache_read, other.cache_write];
    assert_eq!(counts, [100, 1, 5, 0]);
    assert_eq!(usage(json!(null)).total_tokens, 23);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let unknown = vec![
        block(0, json!({"type": "server_tool_use", "id": "q", "name": "web"})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(0),
        json!({"type": "hologram", "index": 0}),
        delta(1, json!({"type": "text_delta", "text": "before its block"})),
    ];
    let mut citing = text(1, "x");
    citing.insert(1, delta(1, json!({"type": "citations_delta", "citation": {}})));
    check(
        &stream(&[unknown, citing, end("end_turn")]),
        // Text whose beginning was not told is text too.
        "text \"before its block\"; text \"x\"; stop",
    );
}

#[test]
fn blocks_that_say_more_or_less_than_they_should() {
    // Text and input that come with the beginning.
    let early = vec![
        block(0, json!({"type": "text", "text": "a"})),
        delta(0, json!({"type": "text_delta", "text": "b"})),
        stop(0),
    ];
    let whole =
        vec![block(1, json!({"type": "tool_use", "id": "a", "name": "ls", "input": {"path": "x"}})), stop(1)];
    check(&stream(&[early, whole, end("end_turn")]), r#"text "ab"; call a ls {"path":"x"}; tooluse"#);
    // Neither id nor name; one id twice.
    let nameless = vec![
        block(0, json!({"type": "tool_use"})),
        stop(0),
        block(1, json!({"type": "tool_use", "id": "a", "name": "ls"})),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "a", "name": "ls"})),
    ];
    check(
        &stream(&[nameless, end("tool_use")]),
        "call call_5_1_0 unknown {}; call a ls {}; call call_5_1_2 ls {}; tooluse",
    );
}

#[test]
fn errors_inside_the_stream() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let decoded =
        check(&stream(&[text(0, "x"), vec![error]]), "text \"x\"; error overloaded_error: Overloaded");
    let error = decoded.error.unwrap();
    assert_eq!((error.kind, error.status), (ErrorKind::Provider, Some(529)));
    let broken = [Frame::Sse { event: "message_start", data: "{\"type\":" }];
    let broken = testing::decode(decoder(&model(json!({})), &testing::options()), &broken);
    assert_eq!(broken.error.unwrap().kind, ErrorKind::Protocol);
    // Raw control characters are made good.
    let raw = "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\tb\"}}";
    let mut data: Vec<String> =
        stream(&[text(0, "x"), end("end_turn")]).iter().map(Value::to_string).collect();
    data.insert(3, raw.to_owned());
    let frames: Vec<Frame<'_>> = data.iter().map(|data| Frame::Sse { event: "", data }).collect();
    let mended = testing::decode(decoder(&model(json!({})), &testing::options()), &frames);
    assert_eq!(mended.shown(), r#"text "xa\tb"; stop"#);
}

#[test]
fn another_model_that_answers_is_named_and_priced() {
    let m = model(
        json!({"compat": {"allowedFallbackModels": [{"provider": "anthropic", "model": "other", "cost": {"input": 7, "output": 8}}]}}),
    );
    let mut events =
        stream(&[vec![block(0, json!({"type": "fallback"})), stop(0)], text(1, "x"), end("end_turn")]);
    events[0]["message"]["model"] = json!("other");
    let decoded = check_model(&m, &events, "text \"x\"; stop");
    assert_eq!(decoded.message.response_model.as_deref(), Some("other"));
    assert!((decoded.message.usage.cost.input - 70.0 / 1e6).abs() < 1e-12);
    let late = stream(&[text(0, "x"), vec![block(1, json!({"type": "fallback"}))]]);
    check(&late, "text \"x\"; error Anthropic performed an unsupported mid-output model fallback");
}

#[test]
fn the_effort_and_changes_to_the_request_are_kept_with_the_answer() {
    let m = model(
        json!({"reasoning": true, "compat": {"supportsMidConvoEffort": true, "forceAdaptiveThinking": true}}),
    );
    let mut events = stream(&[text(0, "x"), end("end_turn")]);
    events[4]["input_transformations"] = json!([{"type": "t", "path": "p", "reason": null, "z": 1}]);
    let data: Vec<String> = events.iter().map(Value::to_string).collect();
    let frames: Vec<Frame<'_>> = data.iter().map(|data| Frame::Sse { event: "", data }).collect();
    let options = StreamOptions { thinking: ThinkingLevel::Low, ..testing::options() };
    let decoded = testing::decode(decoder(&m, &options), &frames);
    assert_eq!(decoded.message.provider_thinking_level.as_deref(), Some("low"));
    let message = serde_json::to_value(&decoded.message).unwrap();
    assert_eq!(
        message["diagnostics"][0]["details"],
        json!({"transformations": [{"type": "t", "path": "p"}]})
    );
}

#[test]
fn a_whole_body_is_an_answer_too() {
    let whole = |body: Value| {
        let body = body.to_string();
        testing::decode(decoder(&model(json!({})), &testing::options()), &[Frame::Body(&body)])
    };
    let content = json!([
        {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "x"}, null,
        {"type": "tool_use", "id": "a", "name": "ls", "input": {"path": "."}}
    ]);
    let decoded = whole(
        json!({"type": "message", "id": "m", "model": "claude", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}),
    );
    assert_eq!(decoded.shown(), r#"think "t" s; text "x"; call a ls {"path":"."}; tooluse"#);
    assert_eq!(decoded.message.usage.input, 3);
    let error = whole(json!({"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}));
    assert_eq!(error.shown(), "error not_found_error: model: x");
}
