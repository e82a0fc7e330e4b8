//! Requests compared field by field, and recorded answers decoded.

use super::PiMessages;
use crate::llm::event::{AssistantEvent, ErrorKind};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::{Decoder, Frame, Protocol};
use crate::llm::sse::{SseDecoder, TooLarge};
use crate::wire::testing;
use crate::wire::testing::{Decoded, answer, body, call, header, options, tool};
use serde_json::{Value, json};

fn model() -> Model {
    let map = json!({"off": null, "medium": null, "high": "high"});
    testing::model(
        json!({"id": "balanced", "api": "pi-messages", "provider": "radius", "baseUrl": "https://radius.test/v1/",
        "reasoning": true, "thinkingLevelMap": map}),
    )
}

fn decoder() -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    PiMessages.decoder(&model(), &testing::context(&messages), &options())
}

fn conversation() -> Value {
    let mut failed = answer(&model(), json!([{"type": "text", "text": "half"}]));
    failed["stopReason"] = json!("error");
    failed["errorMessage"] = json!("boom");
    json!([
        {"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": [tool("ls")], "timestamp": 1},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}], "timestamp": 2},
        answer(&model(), json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, call("c1", "ls", json!({"path": "é"}))])),
        {"role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": [{"type": "text", "text": "out"}], "details": {"private": 1}, "isError": false, "timestamp": 3, "later": 1},
        failed,
        {"role": "user", "content": "thanks", "timestamp": 4},
    ])
}

#[test]
fn a_conversation_goes_as_it_is_stored() {
    let options = StreamOptions {
        thinking: ThinkingLevel::Medium,
        temperature: Some(0.5),
        max_tokens: Some(9),
        cache: CacheRetention::Long,
        session_id: Some("s1".into()),
        tool_choice: Some(ToolChoice::Required),
        ..options()
    };
    let sent = body(&PiMessages, &model(), &conversation(), &options);
    assert_eq!(sent["model"], "balanced");
    let wanted = json!({"temperature": 0.5, "maxTokens": 9, "reasoning": "high", "cacheRetention": "long", "sessionId": "s1", "toolChoice": "required"});
    assert_eq!(sent["options"], wanted);
    let stored = conversation();
    let messages = sent["context"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), stored.as_array().unwrap().len());
    for (sent, stored) in messages.iter().zip(stored.as_array().unwrap()) {
        for (name, value) in stored.as_object().unwrap() {
            if name == "details" {
                assert!(sent.get(name).is_none(), "details stay here");
            } else {
                assert_eq!(&sent[name], value, "{name}");
            }
        }
    }
    let bare = body(&PiMessages, &model(), &conversation(), &testing::options());
    assert_eq!(bare["options"], json!({}));
    let request = testing::ask(&PiMessages, &model(), &testing::context(&stored), &options);
    assert_eq!(request.unwrap().url, "https://radius.test/v1/messages");
    let key = header(&PiMessages, &model(), &stored, &options, "authorization");
    assert_eq!(key.as_deref(), Some("Bearer key"));
    let keyless = testing::ask(&PiMessages, &model(), &testing::context(&stored), &StreamOptions::default());
    assert_eq!(keyless.unwrap_err().kind, ErrorKind::Auth);
}

#[test]
fn a_growing_conversation_keeps_its_beginning() {
    testing::check_growth(&PiMessages, &model(), &conversation(), &|_| false);
}

#[track_caller]
fn check(events: &[Value], expected: &str) -> Decoded {
    let data: Vec<String> = events.iter().map(Value::to_string).collect();
    let frames: Vec<(&str, &str)> = data.iter().map(|data| ("", data.as_str())).collect();
    let decoded = testing::decode_and_torture(&decoder, &frames);
    assert_eq!(decoded.shown(), expected);
    decoded
}

fn event(kind: &str, index: u64, fields: Value) -> Value {
    let mut event = json!({"type": kind, "contentIndex": index});
    testing::merge(&mut event, fields);
    event
}

fn text(index: u64, text: &str) -> [Value; 3] {
    [
        event("text_start", index, json!({})),
        event("text_delta", index, json!({"delta": text})),
        event("text_end", index, json!({"content": text})),
    ]
}

fn done(reason: &str) -> Value {
    json!({"type": "done", "reason": reason, "responseId": "r1", "providerThinkingLevel": "high",
        "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10, "cost": {"input": 0.5, "output": 1, "cacheRead": 0, "cacheWrite": 0, "total": 1.5}}})
}

#[test]
fn text_thinking_and_calls() {
    let mut last = done("toolUse");
    last["rewrite"] = json!({"policyId": "p", "changed": true});
    let mut events = vec![json!({"type": "start"})];
    events.extend([
        event("thinking_start", 0, json!({})),
        event("thinking_delta", 0, json!({"delta": "h"})),
        event("thinking_delta", 0, json!({"delta": "m"})),
        event("thinking_end", 0, json!({"content": "hm", "contentSignature": "sig"})),
    ]);
    events.extend(text(1, "é"));
    events.extend([
        event("toolcall_start", 2, json!({"id": "c1", "toolName": "ls"})),
        event("toolcall_delta", 2, json!({"delta": "{\"path\":"})),
        event("toolcall_delta", 2, json!({"delta": "\"a\"}"})),
        event("toolcall_end", 2, json!({"toolCall": {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "a"}, "thoughtSignature": "ts"}})),
        last,
    ]);
    let decoded = check(&events, r#"think "hm" sig; text "é"; call c1 ls {"path":"a"}; tooluse"#);
    let message = serde_json::to_value(&decoded.message).unwrap();
    assert_eq!(message["content"][2]["thoughtSignature"], "ts");
    assert_eq!(message["responseId"], "r1");
    assert_eq!(message["providerThinkingLevel"], "high");
    assert_eq!(message["usage"]["cost"]["total"], 1.5);
    assert_eq!(message["diagnostics"][0]["type"], "pi_messages_rewrite");
    assert_eq!(message["diagnostics"][0]["details"]["policyId"], "p");
    let redacted =
        event("thinking_end", 0, json!({"content": "[r]", "contentSignature": "enc", "redacted": true}));
    let decoded = check(&[redacted, done("length")], r#"think "[r]" enc; length"#);
    let message = serde_json::to_value(&decoded.message).unwrap();
    assert_eq!(message["content"][0]["redacted"], true);
}

#[test]
fn blocks_that_are_not_in_order_are_put_in_order() {
    // Places with gaps, and without a start.
    check(
        &[
            event("text_delta", 7, json!({"delta": "a"})),
            event("toolcall_delta", 3, json!({"delta": "{}"})),
            event("text_delta", 7, json!({"delta": "b"})),
            event("toolcall_end", 3, json!({"toolCall": {"id": "c1", "name": "ls", "arguments": {}}})),
            done("stop"),
        ],
        r#"text "ab"; call c1 ls {}; tooluse"#,
    );
    // What only the ends say.
    check(
        &[
            event("text_start", 0, json!({})),
            event("text_delta", 0, json!({"delta": "he"})),
            event("text_end", 0, json!({"content": "hello"})),
            event("text_end", 0, json!({"content": "hello"})),
            event("text_end", 1, json!({"content": "again"})),
            event(
                "toolcall_end",
                2,
                json!({"toolCall": {"id": "c1", "name": "ls", "arguments": {"path": "a"}}}),
            ),
            event(
                "toolcall_end",
                2,
                json!({"toolCall": {"id": "c1", "name": "ls", "arguments": {"path": "a"}}}),
            ),
            done("toolUse"),
        ],
        r#"text "hello"; text "again"; call c1 ls {"path":"a"}; tooluse"#,
    );
    // A place that is used again, a call without a name, and an id that is taken.
    check(
        &[
            event("text_start", 0, json!({})),
            event("text_delta", 0, json!({"delta": "a"})),
            event("thinking_start", 0, json!({})),
            event("thinking_delta", 0, json!({"delta": "b"})),
            event("toolcall_start", 1, json!({"id": "c1", "toolName": "ls"})),
            event("toolcall_start", 2, json!({"id": "c1"})),
            json!({"type": "a_later_kind"}),
            done("toolUse"),
        ],
        r#"text "a"; think "b" -; call c1 ls {}; call call_5_1_3 unknown {}; tooluse"#,
    );
}

#[test]
fn how_an_answer_ends() {
    for (reason, expected) in [
        ("stop", "stop"),
        ("length", "length"),
        ("toolUse", "tooluse"),
        ("error", "error Provider stopped with: error"),
        ("", "error Provider stopped with: "),
    ] {
        check(&[done(reason)], expected);
    }
    let mut events = text(0, "a").to_vec();
    let cut = check(&events, r#"text "a"; error radius stream ended without a terminal event"#);
    assert_eq!(cut.error.unwrap().kind, ErrorKind::Transport);
    events.push(
        json!({"type": "error", "reason": "error", "errorMessage": "529 overloaded", "usage": {"input": 5}}),
    );
    let failed = check(&events, r#"text "a"; error 529 overloaded"#);
    assert_eq!(failed.message.usage.input, 5);
    assert!(failed.message.usage.cost.total > 0.0, "priced here where it is not there");
    assert_eq!(failed.error.unwrap().kind, ErrorKind::Provider);
    let aborted =
        check(&[json!({"type": "error", "reason": "aborted"})], "error The server aborted the answer");
    assert_eq!(aborted.error.unwrap().kind, ErrorKind::Provider);
}

#[test]
fn what_is_no_event_is_an_error() {
    let cases = [
        ("{\"error\":{\"message\":\"no\",\"code\":429}}", ErrorKind::Provider),
        ("{\"type\":\"x\",\"error\":{\"message\":\"no\"}}", ErrorKind::Provider),
        ("{}", ErrorKind::Protocol),
        ("<html>", ErrorKind::Protocol),
        ("[]", ErrorKind::Protocol),
        ("{\"type\":", ErrorKind::Protocol),
    ];
    for (data, kind) in cases {
        for frame in [Frame::Sse { event: "", data }, Frame::Body(data)] {
            let decoded = testing::decode(decoder(), &[frame]);
            assert_eq!(decoded.error.unwrap().kind, kind, "{data}");
        }
    }
    let quiet = [Frame::Sse { event: "", data: "[DONE]" }];
    let decoded = testing::decode(decoder(), &quiet);
    assert_eq!(decoded.error.unwrap().kind, ErrorKind::Transport);
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let mut events = text(0, "é😀").to_vec();
    events.push(event("toolcall_start", 1, json!({"id": "c1", "toolName": "ls"})));
    events.push(event("toolcall_delta", 1, json!({"delta": "{\"path\":\"é\"}"})));
    events.push(done("toolUse"));
    let bytes: String = events.iter().map(|event| format!("event: message\ndata: {event}\n\n")).collect();
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
