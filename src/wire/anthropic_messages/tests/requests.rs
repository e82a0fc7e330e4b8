//! What is sent.

use super::*;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{CacheRetention, ToolChoice};
use crate::llm::secret::Secret;
use crate::wire::testing::{answer, body, call, header, options, result, tool};

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&AnthropicMessages, model, messages, options)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn image(data: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": "image/png"})
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": [tool("ls"), tool("write")]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, image("AA==")]},
        answer(model, json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "[r]", "thinkingSignature": "enc", "redacted": true},
            {"type": "thinking", "thinking": "unsigned"},
            {"type": "text", "text": "a"}, {"type": "text", "text": " "},
            call("c1", "ls", json!({"path": "é"})), call("c2", "ls", json!({}))
        ])),
        result("c1", "out"),
        {"role": "toolResult", "toolCallId": "c2", "toolName": "ls", "isError": true, "content": [image("BB==")]},
        user("thanks"),
    ])
}

#[test]
fn a_conversation_in_the_protocol_s_form() {
    let m = model(json!({}));
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let mark = json!({"type": "ephemeral"});
    let source = |data: &str| json!({"type": "base64", "media_type": "image/png", "data": data});
    let expected = json!({
        "model": "claude",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": source("AA==")}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "enc"},
                {"type": "text", "text": "unsigned"},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "é"}},
                {"type": "tool_use", "id": "c2", "name": "ls", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "out", "is_error": false},
                {"type": "tool_result", "tool_use_id": "c2", "content": "(image attached after the tool results)", "is_error": true},
                {"type": "text", "text": "Images of the failed call c2 (ls):"},
                {"type": "image", "source": source("BB==")},
            ]},
            {"role": "user", "content": [{"type": "text", "text": "thanks", "cache_control": mark}]},
        ],
        "max_tokens": 8000,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.\n\nIn /a", "cache_control": mark}],
        "tools": [
            {"name": "ls", "description": "ls it", "eager_input_streaming": true, "input_schema": schema},
            {"name": "write", "description": "write it", "eager_input_streaming": true, "input_schema": schema, "cache_control": mark},
        ],
    });
    let sent = sent(&m, &conversation(&m), &options());
    assert_eq!(sent.to_string(), expected.to_string());
}

#[test]
fn messages_that_say_nothing_are_not_sent() {
    let m = model(json!({}));
    let messages = json!([
        {"role": "user", "content": " "},
        user(""),
        answer(&m, json!([{"type": "text", "text": " "}, {"type": "thinking", "thinking": ""}])),
        {"role": "user", "content": "q"},
    ]);
    let sent = sent(&m, &messages, &options());
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    assert_eq!(sent["messages"][0]["content"][0]["text"], "q");
    assert!(sent.get("system").is_none() && sent.get("tools").is_none());
}

#[test]
fn switches() {
    #[rustfmt::skip]
    let cases = [
        (json!({"supportsEagerToolInputStreaming": false}), "/tools/0/eager_input_streaming", Value::Null),
        (json!({"supportsCacheControlOnTools": false}), "/tools/1/cache_control", Value::Null),
        (json!({"allowEmptySignature": true}), "/messages/1/content/2", json!({"type": "thinking", "thinking": "unsigned", "signature": ""})),
        (json!({}), "/temperature", json!(0.5)),
        (json!({"supportsTemperature": false}), "/temperature", Value::Null),
        (json!({"supportsMidConvoEffort": true}), "/temperature", Value::Null),
        (json!({"allowedFallbackModels": [{"model": "b"}]}), "/fallbacks", json!([{"model": "b"}])),
        (json!({}), "/system/0/cache_control/ttl", json!("1h")),
        (json!({"supportsLongCacheRetention": false}), "/system/0/cache_control/ttl", Value::Null),
        (json!({}), "/tool_choice", json!({"type": "any"})),
    ];
    for (compat, pointer, expected) in cases {
        let m = model(json!({"compat": compat}));
        let options = StreamOptions {
            temperature: Some(0.5),
            cache: CacheRetention::Long,
            tool_choice: Some(ToolChoice::Required),
            ..options()
        };
        let sent = sent(&m, &conversation(&m), &options);
        let found = sent.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{compat} {pointer}");
    }
    let m = model(json!({}));
    let uncached = StreamOptions { cache: CacheRetention::None, ..options() };
    assert!(!sent(&m, &conversation(&m), &uncached).to_string().contains("cache_control"));
}

#[test]
fn thinking_by_budget_and_by_effort() {
    use ThinkingLevel::{High, Low, Minimal, Off, Xhigh};
    let adaptive = json!({"forceAdaptiveThinking": true});
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"});
    let by_effort = json!({"type": "adaptive", "display": "summarized"});
    #[rustfmt::skip]
    let cases = [
        (json!({}), json!({}), Off, json!({"type": "disabled"}), None, 8000),
        (json!({}), json!({"off": null}), Off, Value::Null, None, 8000),
        (json!({}), json!({}), Minimal, budget(1024), None, 8000),
        (json!({}), json!({}), High, budget(6976), None, 8000),
        (adaptive.clone(), json!({}), Off, json!({"type": "disabled"}), None, 8000),
        (adaptive.clone(), json!({}), Minimal, by_effort.clone(), Some("low"), 8000),
        (adaptive.clone(), json!({"low": "tiny"}), Low, by_effort.clone(), Some("tiny"), 8000),
        (adaptive.clone(), json!({"xhigh": "xhigh"}), Xhigh, by_effort.clone(), Some("xhigh"), 8000),
    ];
    for (compat, map, level, thinking, effort, max_tokens) in cases {
        let m = model(json!({"reasoning": true, "compat": compat, "thinkingLevelMap": map}));
        let options = StreamOptions { thinking: level, ..options() };
        let sent = sent(&m, &json!([user("q")]), &options);
        assert_eq!(sent["thinking"], thinking, "{compat} {level:?}");
        assert_eq!(sent["output_config"]["effort"].as_str(), effort);
        assert_eq!(sent["max_tokens"], max_tokens);
    }
    let m = model(json!({"reasoning": true}));
    let mut options = StreamOptions { thinking: Low, max_tokens: Some(500), ..options() };
    let asked = sent(&m, &json!([user("q")]), &options);
    assert_eq!((&asked["thinking"], &asked["max_tokens"]), (&budget(1524), &json!(2548)));
    options.thinking_budgets = vec![(Low, 10)];
    let asked = sent(&m, &json!([user("q")]), &options);
    assert_eq!(asked["thinking"], json!({"type": "disabled"}), "no room to think");
    let plain = model(json!({"reasoning": false}));
    assert!(sent(&plain, &json!([user("q")]), &options).get("thinking").is_none());
}

#[test]
fn the_effort_is_said_in_place_where_the_model_takes_it() {
    let m = model(
        json!({"reasoning": true, "compat": {"supportsMidConvoEffort": true, "forceAdaptiveThinking": true}}),
    );
    let mut past = answer(&m, json!([{"type": "text", "text": "a"}]));
    past["providerThinkingLevel"] = json!("low");
    let messages = json!([user("q"), past, user("r")]);
    let options = StreamOptions { thinking: ThinkingLevel::Medium, ..options() };
    let sent = sent(&m, &messages, &options);
    let effort = |effort: &str| json!({"role": "system", "content": [], "output_config": {"effort": effort}});
    assert_eq!((&sent["messages"][1], &sent["messages"][4]), (&effort("low"), &effort("medium")));
    assert!(sent["messages"][3]["content"][0].get("cache_control").is_some());
    assert_eq!(sent["output_config"]["effort"], "low");
    assert_eq!(sent["thinking"]["block_binding"]["prefix_mismatch_behavior"], "drop_block");
    let off = StreamOptions { thinking: ThinkingLevel::Off, ..options };
    let silent = testing::body(&AnthropicMessages, &m, &messages, &off);
    assert_eq!(silent["thinking"], json!({"type": "disabled"}));
    assert!(!silent.to_string().contains("effort"), "{silent}");
}

#[test]
fn headers_carry_the_key_the_session_and_the_features() {
    let messages = json!([user("q")]);
    let with_tools = json!([{"role": "system", "toolsAdded": [tool("ls")]}, user("q")]);
    let find = |model: &Model, messages: &Value, options: &StreamOptions, name: &str| {
        header(&AnthropicMessages, model, messages, options, name)
    };
    let plain = model(json!({"compat": {"supportsMessageThreads": false}}));
    let mut options = options();
    options.session_id = Some("sid".into());
    let of_plain = |options: &StreamOptions, name: &str| find(&plain, &messages, options, name);
    assert_eq!(of_plain(&options, "x-api-key").as_deref(), Some("key"));
    assert_eq!(of_plain(&options, "anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(of_plain(&options, "anthropic-beta"), None);
    assert_eq!(of_plain(&options, "x-session-affinity"), None);

    let url = testing::ask(&AnthropicMessages, &plain, &testing::context(&messages), &options).unwrap().url;
    assert_eq!(url, "https://api.anthropic.com/v1/messages?beta=true");

    let affine = model(json!({"compat": {"sendSessionAffinityHeaders": true}}));
    assert_eq!(find(&affine, &messages, &options, "x-session-affinity").as_deref(), Some("sid"));
    let lazy = model(
        json!({"baseUrl": "https://gateway.test", "compat": {"supportsEagerToolInputStreaming": false}}),
    );
    let beta = find(&lazy, &with_tools, &options, "anthropic-beta");
    assert_eq!(beta.as_deref(), Some("fine-grained-tool-streaming-2025-05-14"));
    let thinker = model(json!({"reasoning": true, "baseUrl": "https://gateway.test"}));
    options.thinking = ThinkingLevel::Low;
    let beta = find(&thinker, &messages, &options, "anthropic-beta");
    assert_eq!(beta.as_deref(), Some("interleaved-thinking-2025-05-14"));
    let own = model(json!({"reasoning": true, "headers": {"Anthropic-Beta": "mine"}}));
    assert_eq!(find(&own, &messages, &options, "anthropic-beta").as_deref(), Some("mine"));
    let copilot = model(json!({"provider": "github-copilot"}));
    assert_eq!(find(&copilot, &messages, &options, "authorization").as_deref(), Some("Bearer key"));

    options.api_key = None;
    let none = testing::ask(&AnthropicMessages, &plain, &testing::context(&messages), &options);
    assert_eq!(none.unwrap_err().message, "No API key for provider: anthropic");
    options.headers = vec![("Authorization".into(), Some("Bearer t".into()))];
    assert_eq!(of_plain(&options, "authorization").as_deref(), Some("Bearer t"));
    options.thinking = ThinkingLevel::Off;
    assert_eq!(of_plain(&options, "anthropic-beta"), None);
    options.env = vec![("ANTHROPIC_FEDERATION_RULE_ID".into(), "r".into())];
    assert_eq!(of_plain(&options, "anthropic-beta").as_deref(), Some("oauth-2025-04-20"));
}

#[test]
fn a_subscription_s_token_is_sent_as_what_it_is() {
    let m = model(json!({}));
    let options = StreamOptions { api_key: Some(Secret::new("sk-ant-oat01-x")), ..options() };
    let request =
        testing::ask(&AnthropicMessages, &m, &testing::context(&conversation(&m)), &options).unwrap();
    let header = |name: &str| {
        let mut headers = request.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(header("authorization"), Some("Bearer sk-ant-oat01-x"));
    assert_eq!(header("anthropic-beta"), Some("oauth-2025-04-20"));
    assert_eq!(header("x-api-key"), None);
    let body = String::from_utf8(request.body).unwrap();
    assert!(!body.contains("Claude Code") && body.contains(r#""name":"ls""#));
}

#[test]
fn later_system_messages_and_tools_stay_in_place_where_the_model_takes_them() {
    let messages = json!([
        {"role": "system", "content": "base", "toolsAdded": [tool("ls")]},
        user("q"),
        {"role": "system", "content": "more", "toolsAdded": [tool("write")], "toolsRemoved": [{"name": "ls"}]},
        user("r"),
    ]);
    let plain = sent(&model(json!({})), &messages, &options());
    assert_eq!(plain["system"][0]["text"], "base\n\nmore");
    assert_eq!(plain["messages"].as_array().unwrap().len(), 2);
    assert_eq!(plain["tools"].as_array().unwrap().len(), 1);

    let m = model(
        json!({"compat": {"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}}),
    );
    let in_place = sent(&m, &messages, &options());
    assert_eq!(in_place["system"][0]["text"], "base");
    // It waits for the next answer, and the mark is on what comes last.
    assert_eq!(
        in_place["messages"][2],
        json!({"role": "system", "content": [
            {"type": "text", "text": "more"},
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "ls"}},
            {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {
                "name": "write", "description": "write it", "eager_input_streaming": true,
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            }}, "cache_control": {"type": "ephemeral"}},
        ]})
    );
    let tools = in_place["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ls", "__pi_deferred_placeholder__"]);
    let deferred: Vec<bool> = tools.iter().map(|tool| tool["defer_loading"] == true).collect();
    assert_eq!(deferred, [false, true]);
}

#[test]
fn ids_of_other_models_are_made_legal() {
    let m = model(json!({}));
    let mut other = m.clone();
    other.id = "other".into();
    let long = "x".repeat(80);
    let messages = json!([
        answer(&other, json!([call("call|a+/=", "ls", json!({})), call(&long, "ls", json!({}))])),
        result("call|a+/=", "1"),
        result(&long, "2"),
    ]);
    let sent = sent(&m, &messages, &options());
    let ids = [json!("call_a___"), json!("x".repeat(64))];
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(sent["messages"][0]["content"][at]["id"], *id);
        assert_eq!(sent["messages"][1]["content"][at]["tool_use_id"], *id);
    }
}

#[test]
fn a_strict_tool_is_declared_so() {
    let m = model(json!({"compat": {"supportsStrictTools": true}}));
    let mut strict = tool("ls");
    strict["constrainedSampling"] = json!({"type": "json_schema", "strict": "prefer"});
    let messages = json!([{"role": "system", "toolsAdded": [strict, tool("write")]}, user("q")]);
    let sent = sent(&m, &messages, &options());
    assert_eq!(sent["tools"][0]["strict"], true);
    assert_eq!(sent["tools"][0]["input_schema"]["additionalProperties"], false);
    assert_eq!(sent["tools"][1].get("strict"), None);
}

#[test]
fn each_request_begins_with_the_one_before() {
    let compats = [
        json!({}),
        json!({"supportsMidConvoEffort": true, "forceAdaptiveThinking": true}),
        json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}),
    ];
    for compat in compats {
        let in_place = compat.get("supportsMidConvoSystemMessages").is_some();
        let m = model(json!({"reasoning": true, "compat": compat}));
        let mut failed = answer(&m, json!([{"type": "text", "text": "half"}, call("0", "ls", json!({}))]));
        failed["stopReason"] = json!("aborted");
        let mut said = conversation(&m);
        said[2]["providerThinkingLevel"] = json!("high");
        let said = said.as_array().unwrap();
        let mut messages = vec![said[0].clone()];
        for turn in 0..4 {
            messages.extend(said[1..].iter().cloned());
            messages.extend([failed.clone(), json!({"role": "user", "content": "again"})]);
            let mut last = answer(&m, json!([{"type": "text", "text": "ok"}]));
            last["providerThinkingLevel"] = json!("high");
            messages.push(last);
            if in_place {
                messages.push(json!({"role": "system", "content": format!("note {turn}")}));
            }
        }
        // The effort asked for stands at the end until there is an answer to it.
        let moving = |message: &Value| message.get("output_config").is_some();
        testing::check_growth(&AnthropicMessages, &m, &Value::from(messages), &moving);
    }
}
