//! What is made of an answer.

use super::*;
use crate::llm::event::{AssistantEvent, ErrorKind};
use crate::llm::message::Block;
use crate::llm::protocol::{Decoder, Frame, Protocol};
use crate::llm::sse::{SseDecoder, TooLarge};
use crate::wire::testing::{Decoded, context, decode, decode_and_torture, tool};
use std::fmt::Write as _;

fn decoder(variant: Variant) -> Box<dyn Decoder> {
    let fields = json!({"baseUrl": "https://x.example", "compat": {"supportsOpenAIGrammarTools": true}});
    let messages = json!([
        {"role": "system", "content": "s", "toolsAdded": [tool("ls"), patch()]},
        {"role": "user", "content": "q", "timestamp": 5},
    ]);
    let model = model(variant, fields);
    OpenAiResponses(variant).decoder(&model, &context(&messages), &options())
}

/// Decodes events in every way, by every variant, and compares the answer.
#[track_caller]
fn check(events: &[Value], expected: &str) -> Decoded {
    for variant in [Variant::Azure, Variant::Codex] {
        assert_eq!(quick(variant, events).shown(), expected, "{variant:?}");
    }
    let texts: Vec<(String, String)> = texts(events);
    let frames: Vec<(&str, &str)> = texts.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
    let decoded = decode_and_torture(&|| decoder(Variant::OpenAi), &frames);
    assert_eq!(decoded.shown(), expected);
    decoded
}

#[track_caller]
fn quick(variant: Variant, events: &[Value]) -> Decoded {
    let texts = texts(events);
    let frames: Vec<Frame<'_>> = texts.iter().map(|(event, data)| Frame::Sse { event, data }).collect();
    decode(decoder(variant), &frames)
}

fn texts(events: &[Value]) -> Vec<(String, String)> {
    let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| (name(event), event.to_string())).collect()
}

fn response(fields: Value) -> Value {
    let mut response = json!({"id": "resp_1", "object": "response", "model": "m1", "status": "completed", "output": [],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120}});
    testing::merge(&mut response, fields);
    response
}

fn created() -> Value {
    json!({"type": "response.created", "response": response(json!({"status": "in_progress", "usage": null}))})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": response(json!({}))})
}

fn incomplete(reason: Value) -> Value {
    json!({"type": "response.incomplete", "response": response(json!({"status": "incomplete", "incomplete_details": {"reason": reason}}))})
}

fn added(at: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": at, "item": item})
}

fn done(at: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": at, "item": item})
}

fn piece(kind: &str, at: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": at, "delta": delta})
}

fn message(text: &str) -> Value {
    let content = match text {
        "" => json!([]),
        text => json!([{"type": "output_text", "text": text, "annotations": []}]),
    };
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content})
}

fn function(call_id: &str, arguments: &str) -> Value {
    json!({"id": format!("fc_{call_id}"), "type": "function_call", "call_id": call_id, "name": "ls", "arguments": arguments})
}

fn reasoning(summary: &[&str], sealed: &str) -> Value {
    let summary = summary.iter().map(|text| json!({"type": "summary_text", "text": text}));
    let mut item = json!({"id": "rs_1", "type": "reasoning", "summary": summary.collect::<Value>()});
    if !sealed.is_empty() {
        item["encrypted_content"] = json!(sealed);
    }
    item
}

/// Thinking, text and two kinds of calls, as OpenAI sends them.
fn rich() -> Vec<Value> {
    let custom = |input: &str| json!({"id": "ctc_1", "type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": input});
    let mut text = message("Hello 😀");
    text["phase"] = json!("commentary");
    vec![
        created(),
        json!({"type": "response.in_progress", "response": {}}),
        added(0, reasoning(&[], "")),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, "part": {}}),
        piece("reasoning_summary_text", 0, "one"),
        json!({"type": "response.reasoning_summary_text.done", "output_index": 0, "text": "one"}),
        json!({"type": "response.reasoning_summary_part.done", "output_index": 0, "summary_index": 0, "part": {}}),
        piece("reasoning_summary_text", 0, "two"),
        json!({"type": "response.reasoning_summary_part.done", "output_index": 0, "summary_index": 1, "part": {}}),
        done(0, reasoning(&["one", "two"], "enc")),
        added(1, message("")),
        json!({"type": "response.content_part.added", "output_index": 1, "content_index": 0, "part": {"type": "output_text", "text": ""}}),
        piece("output_text", 1, "Hel"),
        piece("output_text", 1, "lo 😀"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Hello 😀"}),
        json!({"type": "response.content_part.done", "output_index": 1, "part": {"type": "output_text", "text": "Hello 😀"}}),
        done(1, text),
        added(2, function("c1", "")),
        added(3, custom("")),
        piece("function_call_arguments", 2, "{\"path\""),
        piece("custom_tool_call_input", 3, "a\"\n"),
        piece("function_call_arguments", 2, ":\".\"}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"path\":\".\"}"}),
        done(2, function("c1", "{\"path\":\".\"}")),
        piece("custom_tool_call_input", 3, "b"),
        json!({"type": "response.custom_tool_call_input.done", "output_index": 3, "input": "a\"\nb"}),
        done(3, custom("a\"\nb")),
        completed(),
    ]
}

const RICH: &str = concat!(
    r#"think "one\n\ntwo" {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"enc"}; "#,
    r#"text "Hello 😀"; call c1|fc_c1 ls {"path":"."}; call c2|ctc_1 patch {"text":"a\"\nb"}; tooluse"#
);

#[test]
fn every_kind_of_item() {
    let decoded = check(&rich(), RICH);
    let answer = &decoded.message;
    assert_eq!(answer.response_id.as_deref(), Some("resp_1"));
    assert_eq!(answer.response_model, None);
    assert_eq!(answer.raw_stop_reason.as_deref(), Some("completed"));
    let usage = &answer.usage;
    let counts = [usage.input, usage.output, usage.cache_read, usage.total_tokens];
    assert_eq!((counts, usage.reasoning), ([40, 20, 60, 120], Some(5)));
    assert!((usage.cost.total - (40.0 + 2.0 * 20.0 + 0.5 * 60.0) / 1e6).abs() < 1e-12);
    let Some(Block::Text(text)) = answer.content.get(1) else { panic!("{answer:?}") };
    let signature = r#"{"v":1,"id":"msg_1","phase":"commentary"}"#;
    assert_eq!(text.text_signature.as_deref(), Some(signature));
}

#[test]
fn a_stream_cut_into_reads_at_any_byte_is_the_same() {
    let mut bytes = String::new();
    for (event, data) in texts(&rich()) {
        write!(bytes, "event: {event}\r\ndata: {data}\r\n\r\n").unwrap();
    }
    let (bytes, whole) = (bytes.as_bytes(), texts(&rich()));
    for cut in 0..=bytes.len() {
        let mut sse = SseDecoder::new();
        let mut seen = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            let taken: Result<(), TooLarge> = sse.feed(part, |event, data| {
                seen.push((event.to_owned(), data.to_owned()));
                Ok(())
            });
            assert!(taken.is_ok());
        }
        assert!(seen == whole, "cut at {cut}");
    }
}

#[test]
fn how_an_answer_ends() {
    let text = [created(), added(0, message("")), piece("output_text", 0, "x"), done(0, message("x"))];
    let ended = |event: Value| [&text[..], &[event]].concat();
    let failed = |error: Value| json!({"type": "response.failed", "response": response(json!({"status": "failed", "error": error}))});
    let status =
        |status: &str| json!({"type": "response.completed", "response": response(json!({"status": status}))});
    #[rustfmt::skip]
    let cases = [
        (completed(), "stop"),
        (status("queued"), "stop"),
        (status("from the future"), "stop"),
        (json!({"type": "response.done", "response": {}}), "stop"),
        (status("cancelled"), "error The server cancelled the response"),
        (incomplete(json!("max_output_tokens")), "length"),
        (incomplete(json!("content_filter")), "error Response incomplete: content_filter"),
        (incomplete(Value::Null), "length"),
        (failed(json!({"code": "server_error", "message": "oops"})), "error server_error: oops"),
        (failed(Value::Null), "error The response failed, and the server did not say why"),
        (json!({"type": "response.failed", "response": {"incomplete_details": {"reason": "x"}}}), "error incomplete: x"),
    ];
    for (event, ending) in cases {
        let raw = event.to_string();
        for variant in VARIANTS {
            let decoded = quick(variant, &ended(event.clone()));
            assert_eq!(decoded.shown(), format!(r#"text "x"; {ending}"#), "{raw}");
            assert!(decoded.message.raw_stop_reason.is_some(), "{raw}");
        }
    }
    let calls = [created(), done(0, function("c1", "{}")), incomplete(json!("max_output_tokens"))];
    check(&calls, "call c1|fc_c1 ls {}; length");
}

#[test]
fn errors_inside_the_stream() {
    #[rustfmt::skip]
    let cases = [
        (json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": null}), "rate_limit_exceeded: slow", Some(429)),
        (json!({"type": "error", "error": {"type": "server_error", "code": null, "message": "boom"}}), "server_error: boom", Some(500)),
        (json!({"type": "error", "message": "plain"}), "plain", None),
        (json!({"error": {"message": "bare", "code": 503}}), "bare", Some(503)),
        (json!({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "too long"}}}), "context_length_exceeded: too long", Some(400)),
    ];
    for (event, message, status) in cases {
        let events = [created(), added(0, message_begun()), event];
        for variant in VARIANTS {
            let error = quick(variant, &events).error.unwrap();
            assert_eq!((error.message.as_str(), error.status), (message, status));
            assert_eq!(error.kind, ErrorKind::Provider);
        }
    }
    let limit = json!({"type": "error", "error": {"type": "usage_limit_reached", "message": "m", "plan_type": "plus", "resets_at": 4e9}});
    let error = quick(Variant::Codex, std::slice::from_ref(&limit)).error.unwrap();
    assert!(error.message.contains("(plus plan)") && error.retry_after_ms.is_some());
    let error = quick(Variant::OpenAi, &[limit]).error.unwrap();
    assert_eq!(error.message, "usage_limit_reached: m");
}

fn message_begun() -> Value {
    message("")
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    for events in [vec![], vec![created()], rich()[..rich().len() - 1].to_vec()] {
        let decoded = quick(Variant::OpenAi, &events);
        let error = decoded.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Transport);
        assert!(error.message.contains("ended before a terminal response event"));
    }
    let frames = [("", created().to_string()), ("", "[DONE]".to_owned())];
    let frames = frames.iter().map(|(event, data)| Frame::Sse { event, data });
    let decoded = decode(decoder(Variant::OpenAi), &frames.collect::<Vec<_>>());
    assert!(decoded.error.is_some());
    for data in ["{oops", "<html>", "{\"type\":"] {
        let frames = [Frame::Sse { event: "", data }];
        let error = decode(decoder(Variant::OpenAi), &frames).error.unwrap();
        assert_eq!(error.kind, ErrorKind::Protocol, "{data}");
    }
}

#[test]
fn a_seal_that_comes_with_the_end_is_put_on_its_thought() {
    let late = |output: Value| json!({"type": "response.completed", "response": response(json!({ "output": output }))});
    let begin = [
        added(0, reasoning(&[], "")),
        piece("reasoning_summary_text", 0, "hm"),
        done(0, reasoning(&["hm"], "")),
        done(1, message("x")),
    ];
    let mut other = reasoning(&["hm"], "late");
    other["id"] = json!("rs_other");
    #[rustfmt::skip]
    let cases = [
        (json!([reasoning(&["hm"], "late"), message("x")]), r#","encrypted_content":"late""#),
        (json!([]), ""),
        (json!([other]), ""),
        (json!([reasoning(&["hm"], "")]), ""),
    ];
    for (output, seal) in cases {
        let events = [&begin[..], &[late(output)]].concat();
        let record = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]"#;
        check(&events, &format!(r#"think "hm" {record}{seal}}}; text "x"; stop"#));
    }
}

#[test]
fn refusals_and_open_thinking_are_shown() {
    let refusal =
        json!({"id": "msg_1", "type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    check(
        &[added(0, message("")), piece("refusal", 0, "No."), done(0, refusal), completed()],
        r#"text "No."; stop"#,
    );
    let open = json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "a"}, {"type": "reasoning_text", "text": "b"}]});
    let shown = format!(r#"think "a\n\nb" {open}; stop"#);
    check(
        &[
            added(0, reasoning(&[], "")),
            piece("reasoning_text", 0, "a"),
            json!({"type": "response.content_part.done", "output_index": 0}),
            piece("reasoning_text", 0, "b"),
            done(0, open),
            completed(),
        ],
        &shown,
    );
}

#[test]
fn servers_leave_things_out() {
    let text = |id: Value| json!({"type": "response.output_text.delta", "item_id": id, "delta": "x"});
    let no_index = |mut event: Value| {
        event.as_object_mut().unwrap().shift_remove("output_index");
        event
    };
    let mut nameless = function("c1", "{}");
    nameless.as_object_mut().unwrap().shift_remove("id");
    let mut unnamed = function("", "");
    unnamed["name"] = json!("");
    let object = json!({"type": "function_call", "call_id": "c1", "name": "ls", "arguments": {"path": "."}});
    #[rustfmt::skip]
    let cases = [
        // The beginning, of text and of a call.
        (vec![piece("output_text", 0, "x"), completed()], r#"text "x"; stop"#),
        (vec![piece("reasoning_text", 7, "x"), completed()], r#"think "x" -; stop"#),
        (vec![piece("function_call_arguments", 0, "{}"), done(0, function("c1", "{}")), completed()], "call c1|fc_c1 ls {}; tooluse"),
        // The pieces.
        (vec![added(0, message("")), done(0, message("whole")), completed()], r#"text "whole"; stop"#),
        (vec![added(0, function("c1", "")), done(0, function("c1", "{\"path\":\".\"}")), completed()], r#"call c1|fc_c1 ls {"path":"."}; tooluse"#),
        (vec![added(0, function("c1", "{\"path\":\".\"}")), completed()], r#"call c1|fc_c1 ls {"path":"."}; error OpenAI Responses stream completed with an unfinished tool call"#),
        (vec![added(0, function("c1", "{}")), piece("function_call_arguments", 0, "{\"path\":\".\"}"), done(0, function("c1", "")), completed()], r#"call c1|fc_c1 ls {"path":"."}; tooluse"#),
        // The rest of the pieces.
        (vec![added(0, message("")), piece("output_text", 0, "who"), done(0, message("whole")), completed()], r#"text "whole"; stop"#),
        // The end.
        (vec![added(0, message("")), piece("output_text", 0, "x"), completed()], r#"text "x"; stop"#),
        // The number, with a name and without.
        (vec![no_index(added(0, message(""))), text(json!("msg_1")), text(json!("msg_1")), no_index(done(0, message("xx"))), completed()], r#"text "xx"; stop"#),
        (vec![no_index(added(0, function("c1", ""))), no_index(added(0, function("c2", ""))),
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc_c1", "delta": "{}"}),
            no_index(done(0, function("c1", "{}"))), no_index(done(0, function("c2", "{}"))), completed()],
            "call c1|fc_c1 ls {}; call c2|fc_c2 ls {}; tooluse"),
        (vec![text(Value::Null), text(Value::Null), completed()], r#"text "xx"; stop"#),
        // Names of items, of calls, of tools.
        (vec![done(0, nameless), completed()], "call c1 ls {}; tooluse"),
        (vec![added(0, unnamed), done(0, function("c1", "{}")), completed()], "call c1|fc_ ls {}; tooluse"),
        (vec![done(0, object), completed()], r#"call c1 ls {"path":"."}; tooluse"#),
        // All but the end.
        (vec![json!({"type": "response.completed", "response": response(json!({"output": [reasoning(&["t"], "e"), message("x"), function("c1", "{}")]}))})],
            r#"think "t" {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}; text "x"; call c1|fc_c1 ls {}; tooluse"#),
        // What is not known.
        (vec![json!({"type": "response.web_search_call.searching", "output_index": 0}), done(0, json!({"type": "web_search_call", "id": "ws"})), completed()], "stop"),
        (vec![added(0, message("")), done(0, message("")), completed()], r#"text ""; stop"#),
    ];
    for (events, expected) in cases {
        check(&events, expected);
    }
}

#[test]
fn servers_get_things_wrong() {
    let renamed = |id: &str| {
        let mut item = function("c1", "{}");
        item["id"] = json!(id);
        item
    };
    let mut spaced = function("c1", "{}");
    spaced["namespace"] = json!("ns");
    #[rustfmt::skip]
    let cases = [
        // An item's name changes on the way.
        (vec![added(0, renamed("fc_a")), piece("function_call_arguments", 0, "{}"), done(0, renamed("fc_b")), completed()], "call c1|fc_a ls {}; tooluse"),
        // Every item has number 0.
        (vec![added(0, message("")), added(0, function("c1", "")), added(0, function("c2", "")),
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "x"}),
            done(0, function("c2", "{}")), completed()],
            r#"text "x"; call c1|fc_c1 ls {}; call c2|fc_c2 ls {}; error OpenAI Responses stream completed with an unfinished tool call"#),
        (vec![done(0, function("c1", "{}")), done(0, function("c2", "{}")), completed()], "call c1|fc_c1 ls {}; call c2|fc_c2 ls {}; tooluse"),
        // Things are said twice.
        (vec![created(), created(), added(0, message("")), added(0, message("")), piece("output_text", 0, "x"), done(0, message("x")), done(0, message("x")), completed(), completed()], r#"text "x"; stop"#),
        (vec![done(0, function("c1", "{}")), piece("function_call_arguments", 0, "{}"), completed()], "call c1|fc_c1 ls {}; tooluse"),
        // Two calls have one id.
        (vec![done(0, function("c1", "{}")), done(1, renamed("fc_2")), completed()], "call c1|fc_c1 ls {}; call call_5_2_1|fc_2 ls {}; tooluse"),
        // The whole is not what the pieces said.
        (vec![added(0, message("")), piece("output_text", 0, "abc"), done(0, message("xyz")), completed()], r#"text "abc"; stop"#),
        (vec![added(0, function("c1", "")), piece("function_call_arguments", 0, "{\"path"), done(0, function("c1", "{}")), completed()], "call c1|fc_c1 ls {} invalid; tooluse"),
        (vec![added(0, spaced.clone()), done(0, spaced), completed()], "call c1|fc_c1 ls {}; tooluse"),
    ];
    for (events, expected) in cases {
        check(&events, expected);
    }
}

#[test]
fn a_namespace_and_the_model_that_answered_are_kept() {
    let mut item = function("c1", "{}");
    item["namespace"] = json!("ns");
    let mut end = completed();
    end["response"]["model"] = json!("m1-2026-01-01");
    end["response"]["end_turn"] = json!(false);
    let answer = check(&[created(), done(0, item), end], "call c1|fc_c1 ls {}; tooluse").message;
    let namespaces: Vec<_> = answer.tool_calls().map(|call| call.namespace.as_deref()).collect();
    assert_eq!(namespaces, [Some("ns")]);
    assert_eq!(answer.response_model.as_deref(), Some("m1-2026-01-01"));
    assert_eq!(answer.end_turn, Some(false));
}

#[test]
fn events_come_in_the_order_of_the_wire() {
    use AssistantEvent as E;
    let decoded = quick(Variant::OpenAi, &rich());
    let kinds = decoded.events.iter().filter_map(|event| {
        Some(match event {
            E::ThinkingStart { .. } => "think<".to_owned(),
            E::ThinkingDelta { delta, .. } => format!("{delta:?}"),
            E::ThinkingEnd { .. } | E::TextEnd { .. } => ">".to_owned(),
            E::TextStart { .. } => "text<".to_owned(),
            E::TextDelta { delta, .. } => delta.clone(),
            E::ToolCallStart { index, .. } => format!("{index}<"),
            E::ToolCallDelta { index, delta } => format!("{index}:{delta}"),
            E::ToolCallEnd { index, .. } => format!("{index}>"),
            E::Done { .. } => "done".to_owned(),
            _ => return None,
        })
    });
    let kinds: Vec<String> = kinds.collect();
    assert_eq!(
        kinds.join(" "),
        r#"think< "one" "\n\ntwo" > text< Hel lo 😀 > 2< 3< 2:{"path" 3:{"text":"a\"\n 2::"."} 2> 3:b 3:"} 3> done"#
    );
}

#[test]
fn a_whole_answer_in_one_body() {
    let body = |value: Value| {
        let text = value.to_string();
        decode(decoder(Variant::OpenAi), &[Frame::Body(&text)])
    };
    let whole = response(json!({"output": [message("x"), function("c1", "{}")]}));
    assert_eq!(body(whole).shown(), r#"text "x"; call c1|fc_c1 ls {}; tooluse"#);
    let error =
        json!({"error": {"message": "bad key", "type": "invalid_request_error", "code": "invalid_api_key"}});
    assert_eq!(body(error).shown(), "error invalid_api_key: bad key");
    assert!(body(json!({})).error.is_some() && body(json!([1])).error.is_some());
}

#[test]
fn text_that_is_not_quite_json_is_mended() {
    let frames = [
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"\ud83d x \q"}"#.to_owned(),
        done(0, message("")).to_string().replace("[]", r#"[{"text":"\udc00"}]"#),
        completed().to_string(),
    ];
    let frames = frames.iter().map(|data| Frame::Sse { event: "", data });
    let decoded = decode(decoder(Variant::OpenAi), &frames.collect::<Vec<_>>());
    assert_eq!(decoded.shown(), "text \"\u{fffd} x \\\\q\"; stop");
}
