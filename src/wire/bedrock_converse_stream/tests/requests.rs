//! What is sent.

use super::*;
use crate::llm::body::Payload;
use crate::llm::event::ErrorKind;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{Access, Keys};
use crate::llm::options::{CacheRetention, ToolChoice};
use crate::wire::testing::{answer, body, call, check_growth, options, result, tool};
use std::sync::Arc;

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&BedrockConverseStream, model, messages, options)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn image(data: &str, kind: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": kind})
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "toolsAdded": [tool("ls")]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, image("AAEC", "image/png")]},
        answer(model, json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "[r]", "thinkingSignature": "AAEC", "redacted": true},
            {"type": "thinking", "thinking": "[r]", "thinkingSignature": "no base64!", "redacted": true},
            {"type": "thinking", "thinking": "unsigned"},
            {"type": "text", "text": "a"}, {"type": "text", "text": " "},
            call("c1", "ls", json!({"path": "é", "": 1, "x": [{"": 2, "y": 3}]})), call("c2", "ls", json!({}))
        ])),
        result("c1", "out"),
        {"role": "toolResult", "toolCallId": "c2", "toolName": "ls", "isError": true, "content": [image("BB==", "image/jpg")]},
        {"role": "user", "content": "thanks"},
    ])
}

#[test]
fn a_conversation_in_the_protocol_s_form() {
    let m = model(json!({"reasoning": true}));
    let options = StreamOptions { thinking: ThinkingLevel::High, ..options() };
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let mark = json!({"cachePoint": {"type": "default"}});
    let picture = |data: &str, format: &str| json!({"image": {"format": format, "source": {"bytes": data}}});
    let expected = json!({
        "messages": [
            {"role": "user", "content": [{"text": "hi"}, picture("AAEC", "png")]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                {"reasoningContent": {"redactedContent": "AAEC"}},
                {"text": "unsigned"},
                {"text": "a"},
                {"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "é", "x": [{"y": 3}]}}},
                {"toolUse": {"toolUseId": "c2", "name": "ls", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "out"}], "status": "success"}},
                {"toolResult": {"toolUseId": "c2", "content": [{"text": "(image attached after the tool results)"}], "status": "error"}},
                {"text": "Images of the failed call c2 (ls):"},
                picture("BB==", "jpeg"),
                {"text": "thanks"},
                mark,
            ]},
        ],
        "system": [{"text": "Be brief."}, mark],
        "inferenceConfig": {"maxTokens": 8000},
        "toolConfig": {"tools": [{"toolSpec": {"name": "ls", "inputSchema": {"json": schema}, "description": "ls it"}}]},
        "additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
    });
    let sent = sent(&m, &conversation(&m), &options);
    assert_eq!(sent.to_string(), expected.to_string());
}

#[test]
fn what_is_empty_says_so_or_is_left_out() {
    let m = model(json!({"name": "x", "id": "amazon.nova"}));
    let messages = json!([
        {"role": "user", "content": " "},
        user(""),
        answer(&m, json!([{"type": "text", "text": " "}, {"type": "thinking", "thinking": " "}])),
        answer(&m, json!([call("c1", "ls", json!({}))])),
        result("c1", "\n"),
    ]);
    let empty = json!([{"text": "<empty>"}]);
    let expected = json!([
        {"role": "user", "content": empty},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": empty, "status": "success"}}]},
    ]);
    let sent = sent(&m, &messages, &options());
    assert_eq!(sent["messages"], expected);
    assert!(sent.get("system").is_none() && sent.get("toolConfig").is_none());
}

#[test]
fn only_claude_s_thoughts_are_signed() {
    let m = model(json!({"id": "openai.gpt-oss-120b-1:0", "name": "gpt-oss"}));
    let said = json!([
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": "unsigned"},
    ]);
    let messages = json!([user("q"), answer(&m, said), user("r")]);
    let sent = sent(&m, &messages, &options());
    let expected = json!([
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
    ]);
    assert_eq!(sent["messages"][1]["content"], expected);
}

#[test]
#[rustfmt::skip]
fn models_are_asked_to_think_in_their_own_way() {
    use ThinkingLevel::{High, Low, Max, Minimal, Off, Xhigh};
    let adaptive = |effort: &str| json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}});
    let bound = |effort: &str| {
        let mut fields = adaptive(effort);
        fields["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        fields["anthropic_beta"] = json!(["thinking-binding-controls-2026-08-01"]);
        fields
    };
    let budget = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens, "display": "summarized"},
        "anthropic_beta": ["interleaved-thinking-2025-05-14"]});
    let sonnet = "anthropic.claude-sonnet-4-5-v1:0";
    let profile = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x";
    let levels = json!({"xhigh": "x", "max": "max"});
    let cases = [
        // id, name, level, largest answer, fields, maxTokens
        (CLAUDE, "", Minimal, 8000, adaptive("low"), 8000),
        (CLAUDE, "", Xhigh, 8000, adaptive("x"), 8000),
        (CLAUDE, "", Max, 8000, adaptive("max"), 8000),
        ("anthropic.claude-opus-4-7", "", Xhigh, 8000, bound("xhigh"), 8000),
        ("anthropic.claude-haiku-5-5", "", Low, 8000, bound("low"), 8000),
        ("openai.gpt-oss-120b", "", Xhigh, 8000, json!({"reasoning_effort": "high"}), 8000),
        ("openai.gpt-6", "", Minimal, 8000, json!({"reasoning": {"effort": "low"}}), 8000),
        (profile, "My Claude Sonnet 4.6", High, 8000, adaptive("high"), 8000),
        (profile, "Mine", High, 8000, Value::Null, 8000),
        (CLAUDE, "", Off, 8000, Value::Null, 8000),
        (sonnet, "", Low, 64_000, budget(2048), 64_000),
        (sonnet, "", Max, 64_000, budget(16_384), 64_000),
        (sonnet, "", High, 8000, budget(6976), 8000),
        (sonnet, "", High, 1000, Value::Null, 1000),
        ("amazon.nova-pro-v1:0", "", High, 8000, Value::Null, 8000),
    ];
    for (id, name, thinking, max_tokens, fields, limit) in cases {
        let m = model(json!({"id": id, "name": name, "reasoning": true, "maxTokens": max_tokens, "thinkingLevelMap": levels}));
        let options = StreamOptions { thinking, temperature: Some(0.5), ..options() };
        let sent = sent(&m, &json!([user("q")]), &options);
        let found = sent.get("additionalModelRequestFields").cloned().unwrap_or_default();
        assert_eq!(found, fields, "{id} {name} {thinking:?}");
        assert_eq!(sent["inferenceConfig"]["maxTokens"], limit, "{id} {name} {thinking:?}");
        let thinks_alone = fields.is_null() || id.starts_with("openai.");
        assert_eq!(sent["inferenceConfig"].get("temperature").is_some(), thinks_alone, "{id}");
    }
    for (id, region) in [("us-gov.anthropic.claude-opus-4-6", ""), (CLAUDE, "us-gov-west-1")] {
        let m = model(json!({"id": id, "reasoning": true}));
        let options = StreamOptions { thinking: High, env: vec![("AWS_REGION".into(), region.into())], ..options() };
        let sent = sent(&m, &json!([user("q")]), &options);
        assert_eq!(sent["additionalModelRequestFields"]["thinking"], json!({"type": "adaptive"}));
    }
}

#[test]
fn the_cache_is_marked_where_the_model_knows_marks() {
    let point = |ttl: Option<&str>| match ttl {
        Some(ttl) => json!({"cachePoint": {"type": "default", "ttl": ttl}}),
        None => json!({"cachePoint": {"type": "default"}}),
    };
    let none = Value::Null;
    let force = Some("1");
    let cases = [
        (CLAUDE, CacheRetention::Short, None, point(None)),
        (CLAUDE, CacheRetention::Long, None, point(Some("1h"))),
        (CLAUDE, CacheRetention::None, None, none.clone()),
        ("anthropic.claude-3-5-haiku-x", CacheRetention::Short, None, point(None)),
        ("anthropic.claude-3-5-sonnet-x", CacheRetention::Short, force, none.clone()),
        ("amazon.nova-pro", CacheRetention::Short, None, none),
        ("arn:aws:bedrock:x:1:y/z", CacheRetention::Short, force, point(None)),
    ];
    for (id, cache, force, expected) in cases {
        let m = model(json!({"id": id, "name": ""}));
        let force = force.map(|value| ("AWS_BEDROCK_FORCE_CACHE".to_owned(), value.to_owned()));
        let options = StreamOptions { cache, env: force.into_iter().collect(), ..options() };
        let sent = sent(&m, &conversation(&m), &options);
        let system = sent["system"].get(1).cloned().unwrap_or_default();
        let last = sent["messages"][2]["content"].as_array().unwrap().last().cloned();
        let last = last.filter(|block| block.get("cachePoint").is_some());
        assert_eq!((system, last.unwrap_or_default()), (expected.clone(), expected), "{id}");
    }
}

#[test]
fn tools_are_chosen_as_asked() {
    let cases = [
        (None, json!(null)),
        (Some(ToolChoice::Auto), json!({"auto": {}})),
        (Some(ToolChoice::Required), json!({"any": {}})),
    ];
    let m = model(json!({}));
    for (tool_choice, expected) in cases {
        let options = StreamOptions { tool_choice, ..options() };
        let sent = sent(&m, &conversation(&m), &options);
        assert_eq!(sent["toolConfig"]["toolChoice"], expected);
    }
    let options = StreamOptions { tool_choice: Some(ToolChoice::None), ..options() };
    assert!(sent(&m, &conversation(&m), &options).get("toolConfig").is_none());
}

#[test]
fn an_image_that_bedrock_does_not_know_is_named() {
    let m = model(json!({}));
    let messages = json!([{"role": "user", "content": [image("AA==", "image/bmp")]}]);
    let context = testing::context(&messages);
    let error = testing::ask(&BedrockConverseStream, &m, &context, &options()).unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Request, "Unknown image type: image/bmp"));
}

#[test]
fn ids_are_one_part_of_the_path() {
    let rows = [
        (CLAUDE, Some("us.anthropic.claude-opus-4-6-v1%3A0")),
        ("arn:aws:bedrock:x:1:y/z(1)", Some("arn%3Aaws%3Abedrock%3Ax%3A1%3Ay%2Fz%281%29")),
        ("", None),
        ("..", None),
    ];
    for (id, expected) in rows {
        let m = model(json!({"id": id}));
        let request = testing::ask(&BedrockConverseStream, &m, &testing::context(&json!([])), &options());
        let root = "https://bedrock-runtime.us-east-1.amazonaws.com/model";
        let expected = expected.map(|id| format!("{root}/{id}/converse-stream"));
        assert_eq!(request.ok().map(|request| request.url), expected, "{id}");
    }
}

#[test]
fn each_request_extends_the_one_before() {
    let m = model(json!({"name": "x", "id": "amazon.nova"}));
    let mut messages = conversation(&m);
    // Two messages of the user in a row are one: the second would go into the first.
    let said = answer(&m, json!([{"type": "text", "text": "done"}]));
    messages.as_array_mut().unwrap().insert(5, said);
    check_growth(&BedrockConverseStream, &m, &messages, &|_| false);
}

/// The headers that a request goes out with, and the error.
fn signed(options: &StreamOptions, headers: &[(&str, &str)]) -> Result<Vec<String>, ErrorKind> {
    let headers = headers.iter();
    let mut headers: Vec<_> =
        headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let url = "http://127.0.0.1:1/model/m/converse-stream";
    let body = Payload::Whole(b"{}".to_vec());
    BedrockConverseStream.sign(url, &mut headers, &body, options, 0).map_err(|error| error.kind)?;
    let lines = headers.iter().map(|(name, value)| {
        let value = value.split(',').next().unwrap_or_default();
        format!("{name}: {value}")
    });
    Ok(lines.collect())
}

#[test]
fn signatures_come_before_keys_and_the_caller_s_own_proofs_are_left_out() {
    let own = [("X-Amz-Date", "x"), ("Authorization", "x"), ("host", "x"), ("x-team", "a")];
    let bearer = signed(&options(), &own);
    assert_eq!(bearer.unwrap(), ["x-team: a", "authorization: Bearer key"]);
    let access = Access {
        keys: Some(Keys::new("AKID", "secret", None)),
        region: "eu-west-1".into(),
        endpoint: String::new(),
    };
    let options = StreamOptions { aws: Some(Arc::new(access)), ..options() };
    let lines = signed(&options, &own).unwrap();
    assert_eq!(lines[1], "x-amz-date: 19700101T000000Z");
    let place = "AWS4-HMAC-SHA256 Credential=AKID/19700101/eu-west-1/bedrock/aws4_request";
    assert_eq!(lines[4], format!("authorization: {place}"));
    assert_eq!(lines.len(), 5);
    assert_eq!(signed(&StreamOptions::default(), &[]), Err(ErrorKind::Auth));
}
