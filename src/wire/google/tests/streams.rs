//! Answers, as Google and its gateways send them.

use super::*;
use crate::llm::event::{AssistantEvent, ErrorKind};
use crate::llm::protocol::Frame;
use crate::llm::sse::{SseDecoder, TooLarge};
use crate::wire::testing::Decoded;

/// Decodes chunks in every way, and compares the answer.
#[track_caller]
fn check(chunks: &[Value], expected: &str) -> Decoded {
    let data: Vec<String> = chunks.iter().map(Value::to_string).collect();
    let frames: Vec<(&str, &str)> = data.iter().map(|data| ("", data.as_str())).collect();
    let new = || decoder(Google::GenerativeAi);
    let decoded = testing::decode_and_torture(&new, &frames);
    assert_eq!(decoded.shown(), expected);
    // As a list, which is how the server streams when it is not asked for events.
    let list = Value::from(chunks).to_string();
    let listed = testing::decode(new(), &[Frame::Body(&list)]);
    if !chunks.is_empty() {
        assert_eq!(listed.shown(), expected);
    }
    decoded
}

fn said(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "gemini-2.5-flash", "responseId": "r1"})
}

fn end(parts: Value, reason: &str) -> Value {
    let mut chunk = said(parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk["usageMetadata"] = json!({"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 7, "totalTokenCount": 157});
    chunk
}

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn call(name: &str, id: Option<&str>) -> Value {
    let mut part = json!({"functionCall": {"name": name, "args": {"path": "é"}}});
    if let Some(id) = id {
        part["functionCall"]["id"] = json!(id);
    }
    part
}

fn signed(mut part: Value, signature: &str) -> Value {
    part["thoughtSignature"] = json!(signature);
    part
}

#[test]
fn text_thinking_and_calls_in_their_order() {
    let decoded = check(
        &[
            said(json!([thought("h")])),
            said(json!([signed(thought("m"), "s1"), text("Hel")])),
            said(json!([text("lo é")])),
            end(json!([signed(text(""), "s2")]), "STOP"),
        ],
        r#"think "hm" s1; text "Hello é"; stop"#,
    );
    let answer = serde_json::to_value(&decoded.message).unwrap();
    assert_eq!(answer["content"][1]["textSignature"], "s2");
    assert_eq!(answer["responseId"], "r1");
    assert_eq!(answer["rawStopReason"], "STOP");
    check(
        &[
            said(json!([text("a")])),
            said(json!([signed(call("ls", Some("i1")), "s1"), call("ls", Some("i2"))])),
            end(json!([]), "STOP"),
        ],
        r#"text "a"; call i1 ls {"path":"é"}; call i2 ls {"path":"é"}; tooluse"#,
    );
    check(
        &[
            said(json!([text("a"), thought("b"), text("c"), call("ls", Some("i")), text("d")])),
            end(json!([text("e")]), "STOP"),
        ],
        r#"text "a"; think "b" -; text "c"; call i ls {"path":"é"}; text "de"; tooluse"#,
    );
}

#[test]
fn signatures_stay_with_the_part_they_came_with() {
    let decoded = check(
        &[
            said(json!([signed(thought("t"), "s1"), thought("u")])),
            said(json!([signed(text(""), "s2")])),
            said(json!([signed(call("ls", Some("i")), "s3")])),
            end(json!([]), "STOP"),
        ],
        r#"think "tu" s1; text ""; call i ls {"path":"é"}; tooluse"#,
    );
    let answer = serde_json::to_value(&decoded.message).unwrap();
    assert_eq!(answer["content"][1]["textSignature"], "s2");
    assert_eq!(answer["content"][2]["thoughtSignature"], "s3");
}

#[test]
fn calls_get_ids_of_their_own_where_the_server_gives_none() {
    let decoded = check(
        &[
            said(json!([call("ls", None), call("ls", Some("a")), call("ls", Some("a"))])),
            end(json!([{"functionCall": {}}, {"functionCall": {"name": "ls", "args": "x"}}]), "STOP"),
        ],
        "call call_5_1_0 ls {\"path\":\"é\"}; call a ls {\"path\":\"é\"}; call call_5_1_2 ls {\"path\":\"é\"}; \
         call call_5_1_3 unknown {}; call call_5_1_4 ls {} invalid; tooluse",
    );
    assert!(decoded.error.is_none());
}

#[test]
fn empty_parts_make_no_block() {
    check(
        &[
            json!({}),
            said(json!([text("")])),
            said(json!([thought(""), {"executableCode": {}}, {}])),
            json!({"candidates": []}),
            end(json!([text("a")]), "STOP"),
        ],
        r#"text "a"; stop"#,
    );
    check(&[end(json!([]), "STOP")], "stop");
}

#[test]
fn how_an_answer_ends() {
    let cases = [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "error Provider stopped with: SAFETY"),
        ("RECITATION", "error Provider stopped with: RECITATION"),
        ("MALFORMED_FUNCTION_CALL", "error Provider stopped with: MALFORMED_FUNCTION_CALL"),
        ("SOMETHING_NEW", "error Provider stopped with: SOMETHING_NEW"),
    ];
    for (reason, expected) in cases {
        let decoded =
            check(&[said(json!([text("a")])), end(json!([]), reason)], &format!("text \"a\"; {expected}"));
        assert_eq!(decoded.message.raw_stop_reason.as_deref(), Some(reason));
    }
    // A call of an answer that was cut is told, and the answer's end with it.
    check(&[end(json!([call("ls", Some("i"))]), "MAX_TOKENS")], r#"call i ls {"path":"é"}; length"#);
    // As gateways end an answer with calls.
    check(&[end(json!([call("ls", Some("i"))]), "FUNCTION_CALL")], r#"call i ls {"path":"é"}; tooluse"#);
    let before = [said(json!([call("ls", Some("i"))])), end(json!([]), "FUNCTION_CALL")];
    check(&before, r#"call i ls {"path":"é"}; tooluse"#);
    let none = "error Provider stopped with: FUNCTION_CALL, but there is no call";
    check(&[end(json!([text("a")]), "FUNCTION_CALL")], &format!("text \"a\"; {none}"));
    let mut malformed = end(json!([]), "MALFORMED_FUNCTION_CALL");
    malformed["candidates"][0]["finishMessage"] = json!("Malformed function call: ls(");
    check(
        &[malformed],
        "error Provider stopped with: MALFORMED_FUNCTION_CALL (Malformed function call: ls()",
    );
}

#[test]
fn what_is_cut_short_or_blocked_is_an_error() {
    let cut =
        check(&[said(json!([text("a")]))], r#"text "a"; error Google stream ended without a finish reason"#);
    assert_eq!(cut.error.unwrap().kind, ErrorKind::Transport);
    let none = testing::decode(decoder(Google::Vertex), &[]);
    assert_eq!(none.shown(), "error Google Vertex stream ended without a finish reason");
    let blocked = check(
        &[
            json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "no"}, "usageMetadata": {"promptTokenCount": 9}}),
        ],
        "error Provider blocked the prompt: PROHIBITED_CONTENT (no)",
    );
    assert_eq!(blocked.message.usage.input, 9);
    assert_eq!(blocked.error.unwrap().kind, ErrorKind::Provider);
}

#[test]
fn errors_inside_the_stream_keep_their_facts() {
    let quota = json!({"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": [
        {"@type": "type.googleapis.com/google.rpc.Help"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}]}});
    let decoded =
        check(&[said(json!([text("a")])), quota], r#"text "a"; error Slow down. (RESOURCE_EXHAUSTED)"#);
    let error = decoded.error.unwrap();
    assert_eq!(
        (error.kind, error.status, error.retry_after_ms),
        (ErrorKind::Provider, Some(429), Some(37_500))
    );
    for data in ["<html>", "{", "1", "null", "\"x\""] {
        let frame = Frame::Sse { event: "", data };
        let decoded = testing::decode(decoder(Google::GenerativeAi), &[frame]);
        assert_eq!(decoded.error.unwrap().kind, ErrorKind::Protocol, "{data}");
    }
}

#[test]
fn usage_counts_each_token_once() {
    let early = json!({"usageMetadata": {"trafficType": "ON_DEMAND"}});
    let decoded = check(&[end(json!([text("a")]), "STOP"), early], r#"text "a"; stop"#);
    let usage = &decoded.message.usage;
    assert_eq!((usage.input, usage.cache_read), (67, 40));
    assert_eq!((usage.output, usage.reasoning), (50, Some(30)));
    assert_eq!(usage.total_tokens, 157);
    // A dollar a million in, two out, half of one from the cache.
    assert!((usage.cost.total - 0.000_187).abs() < 1e-9);
}

#[test]
fn the_model_that_answered_is_told_where_it_is_another() {
    let mut chunk = end(json!([text("a")]), "STOP");
    chunk["modelVersion"] = json!("gemini-2.5-flash-002");
    let decoded = check(&[chunk], r#"text "a"; stop"#);
    let model = decoded.message.response_model.as_deref();
    assert_eq!(model, Some("gemini-2.5-flash-002"));
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let chunks = [
        said(json!([thought("é"), signed(text("😀"), "s")])),
        said(json!([call("ls", Some("i"))])),
        end(json!([text("b")]), "STOP"),
    ];
    let bytes: String = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    let decode = |at: usize| {
        let mut sse = SseDecoder::new();
        let mut decoder = decoder(Google::GenerativeAi);
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
