//! Answers, as Mistral sends them.

use super::*;
use crate::llm::event::{AssistantEvent, ErrorKind};
use crate::llm::protocol::Frame;
use crate::llm::sse::{SseDecoder, TooLarge};
use crate::wire::testing::Decoded;

#[track_caller]
fn check(chunks: &[Value], expected: &str) -> Decoded {
    let data: Vec<String> = chunks.iter().map(Value::to_string).collect();
    let mut frames: Vec<(&str, &str)> = data.iter().map(|data| ("", data.as_str())).collect();
    let decoded = testing::decode_and_torture(&decoder, &frames);
    assert_eq!(decoded.shown(), expected);
    frames.push(("", "[DONE]"));
    frames.push(("", "{\"choices\":[{\"delta\":{\"content\":\"late\"}}]}"));
    let frames: Vec<Frame<'_>> = frames.iter().map(|&(event, data)| Frame::Sse { event, data }).collect();
    assert_eq!(testing::decode(decoder(), &frames).shown(), expected);
    decoded
}

fn delta(delta: Value) -> Value {
    json!({"id": "cmpl-1", "object": "chat.completion.chunk", "model": "devstral", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn said(content: Value) -> Value {
    delta(json!({ "content": content }))
}

fn calls(calls: Value) -> Value {
    delta(json!({ "content": "", "tool_calls": calls }))
}

fn call(index: u64, id: &str, name: &str, arguments: Value) -> Value {
    json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
}

fn thinking(text: &str) -> Value {
    json!([{"type": "thinking", "thinking": [{"type": "text", "text": text}]}])
}

fn end(reason: &str) -> Value {
    json!({"id": "cmpl-1", "model": "devstral", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 40}}})
}

#[test]
fn text_and_thinking_in_their_order() {
    let decoded = check(
        &[
            delta(json!({"role": "assistant", "content": ""})),
            said(thinking("h")),
            said(thinking("m")),
            said(json!("Hel")),
            said(json!(["lo", {"type": "text", "text": " é"}, {"type": "reference", "reference_ids": [1]}])),
            said(thinking("again")),
            said(json!([{"type": "text", "text": "b"}])),
            end("stop"),
        ],
        r#"think "hm" -; text "Hello é"; think "again" -; text "b"; stop"#,
    );
    let message = &decoded.message;
    assert_eq!(message.response_id.as_deref(), Some("cmpl-1"));
    assert_eq!(message.response_model, None);
    assert_eq!(message.raw_stop_reason.as_deref(), Some("stop"));
}

#[test]
fn calls_whole_and_in_pieces() {
    check(
        &[
            said(json!("a")),
            calls(json!([
                call(0, "abcDEF123", "ls", json!("{\"path\":\"é\"}")),
                call(1, "abcDEF124", "rm", json!({"path": "b"}))
            ])),
            end("tool_calls"),
        ],
        r#"text "a"; call abcDEF123 ls {"path":"é"}; call abcDEF124 rm {"path":"b"}; tooluse"#,
    );
    check(
        &[
            calls(json!([call(0, "abcDEF123", "ls", json!("{\"pa"))])),
            calls(json!([call(1, "abcDEF124", "rm", json!(""))])),
            calls(json!([{"index": 0, "id": "null", "function": {"name": "", "arguments": "th\":1}"}}])),
            calls(json!([{"index": 1, "id": "null", "function": {"name": "", "arguments": "{}"}}])),
            end("tool_calls"),
        ],
        r#"call abcDEF123 ls {"path":1}; call abcDEF124 rm {}; tooluse"#,
    );
    // All with one index, as older models send them; and text after a call.
    check(
        &[
            calls(json!([call(0, "abcDEF123", "ls", json!("{}")), call(0, "abcDEF124", "ls", json!("{}"))])),
            said(json!("after")),
            end("stop"),
        ],
        r#"call abcDEF123 ls {}; call abcDEF124 ls {}; text "after"; tooluse"#,
    );
}

#[test]
fn calls_without_ids_get_ones_that_mistral_takes_back() {
    let decoded = check(
        &[
            calls(json!([call(0, "null", "ls", json!("{}")), call(1, "", "ls", json!("{}"))])),
            end("tool_calls"),
        ],
        "call 1dn5g5usi ls {}; call 1mccoaa1s ls {}; tooluse",
    );
    for call in decoded.message.tool_calls() {
        assert!(call.id.len() == 9 && call.id.chars().all(|c| c.is_ascii_alphanumeric()));
    }
}

#[test]
fn how_an_answer_ends() {
    for (reason, expected) in [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("error", "error Provider stopped with: error"),
        ("content_filter", "error Provider stopped with: content_filter"),
    ] {
        check(&[said(json!("a")), end(reason)], &format!("text \"a\"; {expected}"));
    }
    let cut = check(&[said(json!("a"))], r#"text "a"; error Mistral stream ended without a finish reason"#);
    assert_eq!(cut.error.unwrap().kind, ErrorKind::Transport);
    check(&[], "error Mistral stream ended without a finish reason");
}

#[test]
fn errors_inside_the_stream_keep_their_text() {
    let errors = [
        json!({"object": "error", "message": "Slow down.", "type": "rate_limit_error", "code": "1300"}),
        json!({"error": {"message": "Slow down.", "code": 429}}),
    ];
    for error in errors {
        let decoded = check(&[said(json!("a")), error], r#"text "a"; error Slow down."#);
        let error = decoded.error.unwrap();
        assert_eq!((error.kind, error.status), (ErrorKind::Provider, Some(429)));
    }
    for data in ["<html>", "{", "1", "null", "[]"] {
        let frame = Frame::Sse { event: "", data };
        let decoded = testing::decode(decoder(), &[frame]);
        assert_eq!(decoded.error.unwrap().kind, ErrorKind::Protocol, "{data}");
    }
}

#[test]
fn usage_counts_each_token_once() {
    let places = [
        json!({"prompt_tokens_details": {"cached_tokens": 40}}),
        json!({"prompt_token_details": {"cached_tokens": 40}}),
        json!({"num_cached_tokens": 40}),
    ];
    for place in places {
        let mut usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
        testing::merge(&mut usage, place);
        let mut last = end("stop");
        last["usage"] = usage;
        let decoded = check(&[last], "stop");
        let usage = &decoded.message.usage;
        assert_eq!((usage.input, usage.cache_read, usage.output), (60, 40, 20));
        assert_eq!((usage.total_tokens, usage.reasoning), (120, None));
        assert!((usage.cost.total - 0.000_12).abs() < 1e-9);
    }
}

#[test]
fn an_answer_may_come_whole() {
    let answer = json!({"id": "c", "object": "chat.completion", "model": "devstral-2", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": "a", "tool_calls": [call(0, "abcDEF123", "ls", json!("{}"))]}}]});
    let body = answer.to_string();
    let decoded = testing::decode(decoder(), &[Frame::Body(&body)]);
    assert_eq!(decoded.shown(), r#"text "a"; call abcDEF123 ls {}; tooluse"#);
    assert_eq!(decoded.message.response_model.as_deref(), Some("devstral-2"));
    let body = "{\"message\":\"no\"}";
    let refused = testing::decode(decoder(), &[Frame::Body(body)]);
    assert_eq!(refused.shown(), "error no");
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let chunks = [
        said(thinking("é😀")),
        calls(json!([call(0, "abcDEF123", "ls", json!("{\"path\":"))])),
        calls(json!([call(0, "null", "", json!("\"é\"}"))])),
        end("tool_calls"),
    ];
    let bytes: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let decode = |at: usize| {
        let mut sse = SseDecoder::new();
        let mut decoder = decoder();
        let mut events: Vec<AssistantEvent> = Vec::new();
        for piece in [&bytes.as_bytes()[..at], &bytes.as_bytes()[at..]] {
            let fed = sse.feed(piece, |event, data| {
                decoder.frame(Frame::Sse { event, data }, &mut events).unwrap();
                Ok::<(), TooLarge>(())
            });
            assert_eq!(fed, Ok(()));
        }
        decoder.end(&mut events).unwrap();
        events
    };
    let whole = decode(0);
    for at in 1..bytes.len() {
        assert_eq!(decode(at), whole, "cut at {at}");
    }
}
