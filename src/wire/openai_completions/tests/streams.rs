//! Answers of servers that keep to the protocol, or leave out what others send.

use super::*;
use crate::llm::event::{AssistantEvent, ErrorKind};
use crate::llm::message::Usage;
use crate::llm::protocol::Frame;

#[test]
fn text_thinking_and_calls() {
    let m = model(json!({}));
    check(
        &m,
        &[delta(json!({"role": "assistant", "content": ""})), text("Hel"), text("lo 😀"), finish("stop")],
        r#"text "Hello 😀"; stop"#,
    );
    check(
        &m,
        &[
            delta(json!({"reasoning_content": "th", "reasoning": "th"})),
            delta(json!({"reasoning_content": "ink"})),
            text("A"),
            delta(json!({"reasoning_content": "!"})),
            text("B"),
            finish("stop"),
        ],
        r#"think "think!" reasoning_content; text "AB"; stop"#,
    );
    check(
        &m,
        &[
            text("Let"),
            calls(
                json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}]),
            ),
            calls(json!([{"index": 0, "function": {"arguments": "{\"path\""}}])),
            calls(json!([{"index": 1, "id": "b", "function": {"name": "write", "arguments": "{}"}}])),
            calls(json!([{"index": 0, "function": {"arguments": ":\".\"}"}}])),
            finish("tool_calls"),
        ],
        r#"text "Let"; call a ls {"path":"."}; call b write {}; tooluse"#,
    );
}

#[test]
fn blocks_end_with_the_answer_in_their_order() {
    let chunks = [
        text("a"),
        delta(json!({"reasoning": "b"})),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}])),
        text("c"),
        finish("tool_calls"),
    ];
    let decoded =
        check(&model(json!({})), &chunks, r#"text "ac"; think "b" reasoning; call a ls {}; tooluse"#);
    let order = decoded.events.iter().filter_map(|event| match event {
        AssistantEvent::TextEnd { index, .. }
        | AssistantEvent::ThinkingEnd { index, .. }
        | AssistantEvent::ToolCallEnd { index, .. } => Some(*index),
        AssistantEvent::TextDelta { .. } => Some(9),
        _ => None,
    });
    assert_eq!(order.collect::<Vec<_>>(), [9, 9, 0, 1, 2]);
}

#[test]
fn every_way_to_end() {
    let m = model(json!({}));
    let ends = [
        ("stop", "stop"),
        ("end", "stop"),
        ("length", "length"),
        ("tool_calls", "tooluse"),
        ("function_call", "tooluse"),
        ("content_filter", "error Provider finish_reason: content_filter"),
        ("network_error", "error Provider finish_reason: network_error"),
        ("banana", "error Provider finish_reason: banana"),
    ];
    for (reason, expected) in ends {
        let decoded = check(&m, &[text("x"), finish(reason)], &format!("text \"x\"; {expected}"));
        assert_eq!(decoded.message.raw_stop_reason.as_deref(), Some(reason));
    }
    let cut = "text \"x\"; error Stream ended without finish_reason";
    check(&m, &[text("x")], cut);
    check_raw(&m, &[text("x").to_string()], cut);
    check_raw(&m, &[], "error Stream ended without finish_reason");
    // Not everyone says `[DONE]`, and some go on after it.
    check_raw(&m, &[text("x").to_string(), finish("stop").to_string()], "text \"x\"; stop");
    let after = [text("x"), finish("stop")].map(|chunk| chunk.to_string());
    let after = [&after[..], &["[DONE] bye".into(), "garbage".into()]].concat();
    check_raw(&m, &after, "text \"x\"; stop");
}

#[test]
fn without_finish_reasons_the_end_of_the_stream_is_the_end() {
    let m = model(json!({"compat": {"supportsFinishReason": false}}));
    let call = json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}]);
    for (chunk, expected) in [(text("x"), "text \"x\"; stop"), (calls(call), "call a ls {}; tooluse")] {
        let data = chunk.to_string();
        let frame = Frame::Sse { event: "", data: &data };
        assert_eq!(testing::decode(decoder(&m), &[frame]).shown(), expected);
    }
}

#[test]
fn errors_inside_the_stream() {
    let m = model(json!({}));
    let cases = [
        (json!({"error": {"message": "boom", "code": 502}}), "boom", Some(502)),
        (json!({"error": "boom"}), "boom", None),
        (json!({"error": {"message": "a", "metadata": {"raw": "b"}}}), "a\nb", None),
    ];
    for (chunk, message, status) in cases {
        let decoded = check(&m, &[text("x"), chunk], &format!("text \"x\"; error {message}"));
        let error = decoded.error.unwrap();
        assert_eq!((error.kind, error.status), (ErrorKind::Provider, status));
    }
    for nothing in [json!(null), json!({}), json!(false), json!("")] {
        let mut chunk = text("x");
        chunk["error"] = nothing;
        check(&m, &[chunk, finish("stop")], "text \"x\"; stop");
    }
    let named = [Frame::Sse { event: "error", data: r#"{"message":"boom"}"# }];
    assert_eq!(testing::decode(decoder(&m), &named).shown(), "error boom");
    let broken = testing::decode(decoder(&m), &[Frame::Sse { event: "", data: "{\"a\":" }]);
    assert_eq!(broken.error.unwrap().kind, ErrorKind::Protocol);
}

#[test]
fn usage_is_read_wherever_it_stands() {
    let cases = [
        (
            json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 7}}),
            [65, 20, 30, 5, 7, 120],
        ),
        (
            json!({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}),
            [1, 2, 4, 0, 0, 7],
        ),
        (json!({"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": 3}), [2, 2, 3, 0, 0, 7]),
        (json!({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}), [0, 0, 9, 0, 0, 9]),
        (json!({}), [0; 6]),
    ];
    let m = model(json!({}));
    for (usage, expected) in cases {
        let own = json!({"choices": [], "usage": usage});
        let in_choice = json!({"choices": [{"delta": {}, "usage": usage}]});
        for chunk in [own, in_choice] {
            let decoded = check(&m, &[text("x"), finish("stop"), chunk], "text \"x\"; stop");
            let found: Usage = decoded.message.usage;
            let reasoning = found.reasoning.unwrap();
            let counts = [
                found.input,
                found.output,
                found.cache_read,
                found.cache_write,
                reasoning,
                found.total_tokens,
            ];
            assert_eq!(counts, expected, "{usage}");
            #[allow(clippy::cast_precision_loss)]
            let cost = (expected[0] as f64
                + 2.0 * expected[1] as f64
                + 0.5 * expected[2] as f64
                + 1.5 * expected[3] as f64)
                / 1e6;
            assert!((found.cost.total - cost).abs() < 1e-12);
        }
    }
}

#[test]
fn how_much_of_the_prompt_was_read_is_told_and_no_part_of_the_answer() {
    let m = model(json!({}));
    let read = |progress: Value| json!({"choices": [{"delta": {"role": "assistant", "content": null}}], "prompt_progress": progress});
    let chunks = [
        read(json!({"total": 300, "cache": 0, "processed": 128, "time_ms": 5})),
        read(json!("much")),
        read(json!({"total": 300})),
        text("x"),
        finish("stop"),
    ];
    let decoded = check(&m, &chunks, "text \"x\"; stop");
    let told = decoded.events.iter().filter_map(|event| match event {
        AssistantEvent::Info(info) => info.prompt_progress,
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(128, 300)]);
}

#[test]
fn the_answer_s_id_and_model_are_told_once() {
    let mut first = text("x");
    first["model"] = json!("m1-0613");
    let decoded = check(&model(json!({})), &[first, text("y"), finish("stop")], "text \"xy\"; stop");
    assert_eq!(decoded.message.response_id.as_deref(), Some("r1"));
    assert_eq!(decoded.message.response_model.as_deref(), Some("m1-0613"));
}

#[test]
fn a_record_of_thinking_becomes_the_signature() {
    let details = |list: Value| delta(json!({"reasoning_details": list}));
    let mut first = details(json!([{"type": "reasoning.text", "text": "a", "index": 0}]));
    first["choices"][0]["delta"]["reasoning"] = json!("a");
    check(
        &model(json!({})),
        &[
            first,
            details(json!([{"type": "reasoning.text", "text": "b", "signature": "s"}])),
            details(json!([{"type": "reasoning.encrypted", "data": "z"}, {"type": "other"}])),
            text("x"),
            finish("stop"),
        ],
        r#"think "a" [{"type":"reasoning.text","text":"ab","index":0,"signature":"s"},{"type":"reasoning.encrypted","data":"z"}]; text "x"; stop"#,
    );
}

#[test]
fn custom_tools_give_their_input_as_an_argument() {
    let piece = |custom: Value| calls(json!([{"index": 0, "id": "a", "type": "custom", "custom": custom}]));
    check(
        &model(json!({})),
        &[
            piece(json!({"name": "p", "input": ""})),
            piece(json!({"input": "a\n\""})),
            piece(json!({"input": "é"})),
            finish("tool_calls"),
        ],
        r#"call a p {"input":"a\n\"é"}; tooluse"#,
    );
    check(
        &model(json!({})),
        &[piece(json!({"name": "p"})), finish("tool_calls")],
        r#"call a p {"input":""}; tooluse"#,
    );
}

#[test]
fn a_whole_body_is_an_answer_too() {
    let m = model(json!({}));
    let whole = |body: &str| testing::decode(decoder(&m), &[Frame::Body(body)]).shown();
    let message = json!({"content": "x", "reasoning_content": "t", "tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}]});
    let body = json!({"id": "r", "object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}});
    let expected = r#"think "t" reasoning_content; text "x"; call a ls {}; tooluse"#;
    assert_eq!(whole(&body.to_string()), expected);
    // One event that holds all.
    check(&m, &[body], expected);
    assert_eq!(whole(r#"{"choices":[{"message":{"content":"x"}}]}"#), "text \"x\"; stop");
    assert_eq!(whole(r#"{"error":{"message":"boom"}}"#), "error boom");
    assert_eq!(whole(r#"{"object":"error","message":"boom","code":400}"#), "error boom");
    assert_eq!(
        whole(r#"{"detail":"Not Found"}"#),
        r#"error Could not understand the server's answer: {"detail":"Not Found"}"#
    );
    assert!(whole("<html>").starts_with("error Could not understand"));
    assert!(whole("[]").starts_with("error"));
}
