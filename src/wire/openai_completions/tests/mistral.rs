//! Mistral's profile: requests compared field by field, and answers as Mistral sends them.

use super::super::mistral::{MISTRAL, legal_id};
use super::ChatCompletions;
use crate::llm::event::ErrorKind;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::{Decoder, Frame, Protocol};
use crate::wire::testing::{self, Decoded, answer, body, call, header, options, result, tool};
use serde_json::{Value, json};

const MISTRAL_API: ChatCompletions = ChatCompletions(&MISTRAL);

fn model(fields: Value) -> Model {
    let mut all = json!({"id": "devstral", "api": "mistral-conversations", "provider": "mistral", "baseUrl": "https://api.mistral.ai"});
    testing::merge(&mut all, fields);
    testing::model(all)
}

fn mistral() -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    MISTRAL_API.decoder(&model(json!({})), &testing::context(&messages), &options())
}

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&MISTRAL_API, model, messages, options)
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn image(data: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": "image/png"})
}

fn image_url(data: &str) -> Value {
    json!({"type": "image_url", "image_url": format!("data:image/png;base64,{data}")})
}

fn part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "toolsAdded": [tool("ls")]},
        {"role": "user", "content": [part("hi"), image("AA=="), part("")]},
        answer(model, json!([
            {"type": "thinking", "thinking": "hm"}, {"type": "thinking", "thinking": " "}, part("a"), part(" "),
            call("abcDEF123", "ls", json!({"path": "é"})), call("abcDEF124", "ls", json!({}))
        ])),
        result("abcDEF123", " out\n"),
        {"role": "toolResult", "toolCallId": "abcDEF124", "toolName": "ls", "isError": true, "content": [image("BB==")]},
        user("thanks"),
    ])
}

#[test]
fn a_conversation_in_the_protocol_s_form() {
    let m = model(json!({}));
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let function = |arguments: &str| json!({"name": "ls", "arguments": arguments});
    let expected = json!({
        "model": "devstral",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [part("hi"), image_url("AA==")]},
            {"role": "assistant", "prefix": false, "content": [{"type": "thinking", "thinking": [part("hm")]}, part("a")], "tool_calls": [
                {"id": "abcDEF123", "type": "function", "function": function("{\"path\":\"é\"}"), "index": 0},
                {"id": "abcDEF124", "type": "function", "function": function("{}"), "index": 0},
            ]},
            {"role": "tool", "tool_call_id": "abcDEF123", "name": "ls", "content": [part("out")]},
            {"role": "tool", "tool_call_id": "abcDEF124", "name": "ls", "content": [part("[tool error] (see attached image)"), image_url("BB==")]},
            {"role": "assistant", "content": "I have processed the tool results."},
            {"role": "user", "content": "thanks"},
        ],
        "stream": true,
        "tools": [{"type": "function", "function": {"name": "ls", "description": "ls it", "parameters": schema, "strict": false}}],
        "max_tokens": 8000,
    });
    let sent = sent(&m, &conversation(&m), &options());
    assert_eq!(sent.to_string(), expected.to_string());
}

#[test]
fn a_growing_conversation_keeps_its_beginning() {
    let m = model(json!({}));
    let mut messages = conversation(&m);
    let other = model(json!({"id": "other"}));
    let more = [
        answer(&other, json!([part("t"), call("x|y", "ls", json!({}))])),
        result("x|y", "z"),
        answer(&m, json!([part("done")])),
        user("next"),
    ];
    messages.as_array_mut().unwrap().extend(more);
    testing::check_growth(&MISTRAL_API, &m, &messages, &|_| false);
}

#[test]
fn nothing_empty_is_sent_and_results_say_something() {
    let m = model(json!({"input": ["text"]}));
    let empty = |id: &str, content: Value| json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": content, "isError": id == "000000002"});
    let calls = [
        call("000000001", "ls", json!({})),
        call("000000002", "ls", json!({})),
        call("000000003", "ls", json!({})),
    ];
    let messages = json!([
        user(""), {"role": "user", "content": [part("")]}, answer(&m, json!([part("")])),
        user("q"), answer(&m, json!(calls)),
        empty("000000001", json!([])), empty("000000002", json!([part(" ")])), empty("000000003", json!([image("A")])),
    ]);
    let sent = sent(&m, &messages, &options());
    let messages = sent["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool"]);
    assert!(messages[1].get("content").is_none());
    let texts: Vec<&str> =
        messages[2..].iter().filter_map(|message| message["content"][0]["text"].as_str()).collect();
    assert_eq!(
        texts,
        [
            "(no tool output)",
            "[tool error] (no tool output)",
            "(tool image omitted: model does not support images)"
        ]
    );
    assert!(sent.get("tools").is_none());
}

#[test]
fn ids_are_nine_letters_and_digits() {
    // What the reference makes of them, so that both send the same for a session.
    let cases = [
        ("abcDEF123", "abcDEF123"),
        ("abc-DEF-123", "abcDEF123"),
        ("call_abc|item_1", "i0ugzwoko"),
        ("", "k4n83c7h0"),
        ("___", "1l4g6yybx"),
        ("toolu_01ABCDEFGHIJKLMN", "1f4ehqr1e"),
    ];
    for (id, expected) in cases {
        assert_eq!(legal_id(id), expected, "{id:?}");
    }
}

#[test]
fn a_conversation_of_any_other_protocol_is_legal_here() {
    let long = format!("call_abc|item_{}+/=", "x".repeat(400));
    let others = [
        ("openai-responses", long.as_str()),
        ("anthropic-messages", "toolu_01"),
        ("openai-completions", ""),
        ("google-generative-ai", "ls_1700000000000_1"),
        ("mistral-conversations", "abcDEF123"),
    ];
    let m = model(json!({}));
    for (api, id) in others {
        let said = json!([
            {"type": "thinking", "thinking": "deep", "thinkingSignature": "s"}, {"type": "thinking", "thinking": "[r]", "thinkingSignature": "x", "redacted": true},
            part("t"), call(id, "ls", json!({"path": "a"})), call("abc-DEF-123", "bad name é", json!({})), call("abc-DEF-123", "ls", json!({}))
        ]);
        let mut foreign = answer(&model(json!({"id": "zz"})), said);
        foreign["api"] = json!(api);
        let mut failed = answer(&m, json!([part("half"), call("lost", "ls", json!({}))]));
        failed["stopReason"] = json!("error");
        let messages = json!([
            {"role": "system", "content": "s", "toolsAdded": [tool("ls")]},
            user("q"), foreign, result("abc-DEF-123", "2"), result(id, "1"), failed, user("next"), user("more"),
        ]);
        let sent = sent(&m, &messages, &options());
        let messages = sent["messages"].as_array().unwrap();
        let mut open: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut before = "";
        for message in messages {
            let role = message["role"].as_str().unwrap();
            if role == "tool" {
                let id = message["tool_call_id"].as_str().unwrap();
                let at = open.iter().position(|open| open == id);
                open.swap_remove(at.expect("answers a call"));
            } else {
                assert!(open.is_empty(), "unanswered: {open:?}");
            }
            assert!(before != "tool" || role != "user", "nobody speaks between");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let id = call["id"].as_str().unwrap();
                assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()));
                assert!(seen.insert(id.to_owned()), "{id} is there twice");
                open.push(id.to_owned());
            }
            let content = &message["content"];
            assert!(content.is_string() || content.as_array().is_some_and(|c| !c.is_empty()));
            before = role;
        }
        assert_eq!(messages[2]["content"], json!([part("t")]), "{api}");
        assert_eq!(messages[2]["tool_calls"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn models_think_by_mode_or_by_effort() {
    use ThinkingLevel::{High, Low, Off};
    let map = json!({"low": "none", "medium": null});
    let off = json!({"off": "none"});
    // model, map, level, effort, mode
    let cases = [
        ("magistral-small", Value::Null, Off, None, None),
        ("magistral-small", Value::Null, Low, None, Some("reasoning")),
        ("mistral-small-latest", Value::Null, Low, None, Some("reasoning")),
        ("mistral-small-latest", map.clone(), Low, Some("none"), None),
        ("mistral-medium-3.5", map, High, Some("high"), None),
        ("mistral-medium-3.5", off, Off, Some("none"), None),
    ];
    for (id, map, thinking, effort, mode) in cases {
        let m = model(json!({"id": id, "reasoning": true, "thinkingLevelMap": map}));
        let options = StreamOptions { thinking, ..options() };
        let body = sent(&m, &json!([user("q")]), &options);
        assert_eq!(body["reasoning_effort"].as_str(), effort, "{id}");
        assert_eq!(body["prompt_mode"].as_str(), mode, "{id}");
        let silent = model(json!({"id": id}));
        let body = sent(&silent, &json!([user("q")]), &options);
        assert!(body.get("reasoning_effort").is_none() && body.get("prompt_mode").is_none());
    }
}

#[test]
fn a_conversation_finds_its_cache_again() {
    let m = model(json!({}));
    let messages = json!([user("q")]);
    let of = |cache, headers: &[(&str, Option<&str>)]| StreamOptions {
        session_id: Some("s".repeat(70)),
        cache,
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect(),
        ..options()
    };
    let affinity = |options: &StreamOptions| header(&MISTRAL_API, &m, &messages, options, "x-affinity");
    let short = of(CacheRetention::Short, &[]);
    assert_eq!(affinity(&short), short.session_id);
    assert_eq!(sent(&m, &messages, &short)["prompt_cache_key"], "s".repeat(64));
    let none = of(CacheRetention::None, &[]);
    assert_eq!(affinity(&none), None);
    assert!(sent(&m, &messages, &none).get("prompt_cache_key").is_none());
    let own = of(CacheRetention::Short, &[("X-Affinity", Some("mine"))]);
    assert_eq!(affinity(&own).as_deref(), Some("mine"));
    assert_eq!(affinity(&of(CacheRetention::Short, &[("x-affinity", None)])), None);
}

#[test]
fn what_the_caller_asks_for() {
    let mut strict = tool("ls");
    strict["constrainedSampling"] = json!({"type": "json_schema", "strict": "prefer"});
    let messages = json!([{"role": "system", "toolsAdded": [strict]}, user("q")]);
    let m = model(json!({"baseUrl": "https://proxy.test/mistral/", "samplingParams": {"top_p": 0.5}}));
    for (choice, word) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::None, "none"), (ToolChoice::Required, "required")]
    {
        let options = StreamOptions {
            temperature: Some(0.25),
            max_tokens: Some(77),
            tool_choice: Some(choice),
            ..options()
        };
        let request = testing::ask(&MISTRAL_API, &m, &testing::context(&messages), &options).unwrap();
        assert_eq!(request.url, "https://proxy.test/mistral/v1/chat/completions");
        let body = sent(&m, &messages, &options);
        assert_eq!(body["tool_choice"], word);
        assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.25), &json!(0.5)));
        assert_eq!(body["max_tokens"], 77);
        assert_eq!(body["tools"][0]["function"]["strict"], true);
        assert_eq!(body["tools"][0]["function"]["parameters"]["additionalProperties"], false);
    }
    let keyless = StreamOptions::default();
    let refused = testing::ask(&MISTRAL_API, &model(json!({})), &testing::context(&messages), &keyless);
    assert_eq!(refused.unwrap_err().message, "No API key for provider: mistral");
}

#[test]
fn later_system_messages_stay_where_they_are_if_the_model_takes_them() {
    let messages = json!([
        {"role": "system", "content": "s"}, user("q"), answer(&model(json!({})), json!([call("abcDEF123", "ls", json!({}))])),
        result("abcDEF123", "r"), {"role": "system", "content": "later"}, user("next"),
    ]);
    let roles = |fields: Value| -> String {
        let sent = sent(&model(fields), &messages, &options());
        let messages = sent["messages"].as_array().unwrap();
        let roles = messages.iter().filter_map(|message| message["role"].as_str());
        roles.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(json!({})), "system user assistant tool assistant user");
    let takes = json!({"compat": {"supportsMidConvoSystemMessages": true}});
    assert_eq!(roles(takes), "system user assistant tool assistant system user");
}

#[track_caller]
fn check(chunks: &[Value], expected: &str) -> Decoded {
    let data: Vec<String> = chunks.iter().map(Value::to_string).collect();
    let mut frames: Vec<(&str, &str)> = data.iter().map(|data| ("", data.as_str())).collect();
    let decoded = testing::decode_and_torture(&mistral, &frames);
    assert_eq!(decoded.shown(), expected);
    frames.push(("", "[DONE]"));
    frames.push(("", "{\"choices\":[{\"delta\":{\"content\":\"late\"}}]}"));
    let frames: Vec<Frame<'_>> = frames.iter().map(|&(event, data)| Frame::Sse { event, data }).collect();
    assert_eq!(testing::decode(mistral(), &frames).shown(), expected);
    decoded
}

fn chunk(delta: Value) -> Value {
    json!({"id": "cmpl-1", "object": "chat.completion.chunk", "model": "devstral", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn said(content: Value) -> Value {
    chunk(json!({ "content": content }))
}

fn pieces(calls: Value) -> Value {
    chunk(json!({ "content": "", "tool_calls": calls }))
}

fn call_piece(index: u64, id: &str, name: &str, arguments: Value) -> Value {
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
            chunk(json!({"role": "assistant", "content": ""})),
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
            pieces(json!([
                call_piece(0, "abcDEF123", "ls", json!("{\"path\":\"é\"}")),
                call_piece(1, "abcDEF124", "rm", json!({"path": "b"}))
            ])),
            end("tool_calls"),
        ],
        r#"text "a"; call abcDEF123 ls {"path":"é"}; call abcDEF124 rm {"path":"b"}; tooluse"#,
    );
    check(
        &[
            pieces(json!([call_piece(0, "abcDEF123", "ls", json!("{\"pa"))])),
            pieces(json!([call_piece(1, "abcDEF124", "rm", json!(""))])),
            pieces(json!([{"index": 0, "id": "null", "function": {"name": "", "arguments": "th\":1}"}}])),
            pieces(json!([{"index": 1, "id": "null", "function": {"name": "", "arguments": "{}"}}])),
            end("tool_calls"),
        ],
        r#"call abcDEF123 ls {"path":1}; call abcDEF124 rm {}; tooluse"#,
    );
    // All with one index, as older models send them; and text after a call.
    check(
        &[
            pieces(json!([
                call_piece(0, "abcDEF123", "ls", json!("{}")),
                call_piece(0, "abcDEF124", "ls", json!("{}"))
            ])),
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
            pieces(json!([call_piece(0, "null", "ls", json!("{}")), call_piece(1, "", "ls", json!("{}"))])),
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
        ("error", "error Provider stopped with: error (server error)"),
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
        let decoded = testing::decode(mistral(), &[frame]);
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
        "message": {"role": "assistant", "content": "a", "tool_calls": [call_piece(0, "abcDEF123", "ls", json!("{}"))]}}]});
    let body = answer.to_string();
    let decoded = testing::decode(mistral(), &[Frame::Body(&body)]);
    assert_eq!(decoded.shown(), r#"text "a"; call abcDEF123 ls {}; tooluse"#);
    assert_eq!(decoded.message.response_model.as_deref(), Some("devstral-2"));
    let body = "{\"message\":\"no\"}";
    let refused = testing::decode(mistral(), &[Frame::Body(body)]);
    assert_eq!(refused.shown(), "error no");
}
