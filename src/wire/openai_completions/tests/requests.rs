//! What is sent.

use super::*;
use crate::llm::message::StopReason;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::wire::testing::{answer, body, call, header, options, result, tool};

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&OPENAI_API, model, messages, options)
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": [tool("ls")]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        answer(model, json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"},
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            call("c1", "ls", json!({"path": "é"})), call("c2", "ls", json!({}))
        ])),
        result("c1", "out"),
        {"role": "toolResult", "toolCallId": "c2", "toolName": "ls", "isError": true, "content": [{"type": "image", "data": "BB==", "mimeType": "image/png"}]},
        {"role": "user", "content": "thanks"},
    ])
}

#[test]
fn a_conversation_in_the_protocol_s_form() {
    let m = model(json!({}));
    let expected = json!({
        "model": "m1",
        "messages": [
            {"role": "system", "content": "Be brief.\n\nIn /a"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            {"role": "assistant", "content": "ab", "reasoning_content": "hm", "tool_calls": [
                {"type": "function", "id": "c1", "function": {"name": "ls", "arguments": "{\"path\":\"é\"}"}},
                {"type": "function", "id": "c2", "function": {"name": "ls", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "out", "tool_call_id": "c1"},
            {"role": "tool", "content": "(see attached image)", "tool_call_id": "c2"},
            {"role": "user", "content": [{"type": "text", "text": "Attached image(s) from tool result:"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}]},
            {"role": "user", "content": "thanks"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "store": false,
        "max_completion_tokens": 8000,
        "tools": [{"type": "function", "function": {"name": "ls", "description": "ls it", "parameters":
            {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}],
    });
    let sent = sent(&m, &conversation(&m), &options());
    assert_eq!(sent.to_string(), expected.to_string());
}

#[test]
fn messages_that_say_nothing_are_not_sent() {
    let m = model(json!({}));
    let messages = json!([
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        answer(&m, json!([{"type": "text", "text": " "}, {"type": "thinking", "thinking": "only"}])),
        {"role": "user", "content": "q"},
    ]);
    let sent = sent(&m, &messages, &options());
    assert_eq!(sent["messages"], json!([{"role": "user", "content": "q"}]));
}

#[test]
fn switches_of_the_conversation() {
    #[rustfmt::skip]
    let cases = [
        (json!({"supportsDeveloperRole": true}), "/messages/0/role", json!("developer")),
        (json!({"supportsDeveloperRole": false}), "/messages/0/role", json!("system")),
        (json!({"requiresToolResultName": true}), "/messages/3/name", json!("ls")),
        (json!({"requiresAssistantAfterToolResult": true}), "/messages/5/content", json!("I have processed the tool results.")),
        (json!({"requiresThinkingAsText": true}), "/messages/2/content", json!([{"type": "text", "text": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
        (json!({"maxTokensField": "max_tokens"}), "/max_tokens", json!(8000)),
        (json!({"supportsStore": false}), "/store", Value::Null),
        (json!({"supportsUsageInStreaming": false}), "/stream_options", Value::Null),
        (json!({"supportsStrictMode": true}), "/tools/0/function/strict", json!(false)),
        (json!({"zaiToolStream": true}), "/tool_stream", json!(true)),
        (json!({"promptProgress": true}), "/return_progress", json!(true)),
        (json!({}), "/return_progress", Value::Null),
        (json!({"vllmPriority": -5}), "/priority", json!(-5)),
        (json!({"openRouterRouting": {"only": ["a"]}}), "/provider", json!({"only": ["a"]})),
        (json!({"vercelGatewayRouting": {"order": ["a"], "x": 1}}), "/providerOptions", json!({"gateway": {"order": ["a"]}})),
        (json!({"cacheControlFormat": "anthropic"}), "/messages/0/content/0/cache_control", json!({"type": "ephemeral"})),
        (json!({"cacheControlFormat": "anthropic"}), "/messages/6/content/0/cache_control", json!({"type": "ephemeral"})),
        (json!({"cacheControlFormat": "anthropic"}), "/tools/0/cache_control", json!({"type": "ephemeral"})),
    ];
    for (compat, pointer, expected) in cases {
        let m = model(json!({"reasoning": true, "compat": compat}));
        let sent = sent(&m, &conversation(&m), &options());
        let found = sent.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{compat} {pointer}");
    }
    let m = model(json!({"provider": "deepseek", "reasoning": true}));
    let mut messages = conversation(&m);
    messages[2]["content"].as_array_mut().unwrap().remove(0);
    assert_eq!(sent(&m, &messages, &options())["messages"][2]["reasoning_content"], "");
}

#[test]
fn an_empty_list_of_tools_is_sent_only_where_it_is_wanted() {
    for (compat, expected) in
        [(json!({}), None), (json!({"requiresToolsWithToolHistory": true}), Some(json!([])))]
    {
        let m = model(json!({"compat": compat}));
        let mut messages = conversation(&m);
        messages[0].as_object_mut().unwrap().remove("toolsAdded");
        assert_eq!(sent(&m, &messages, &options()).get("tools"), expected.as_ref(), "{compat}");
    }
}

/// The fields by which a model with this format is asked to think.
fn asked(format: &str, map: Value, level: ThinkingLevel) -> Value {
    let m = model(json!({"reasoning": true, "thinkingLevelMap": map, "compat": {
        "thinkingFormat": format, "supportsStore": false, "supportsUsageInStreaming": false,
        "chatTemplateKwargs": {"on": {"$var": "thinking.enabled"}, "effort": {"$var": "thinking.effort", "omitWhenOff": true}, "budget": {"$var": "thinking.budget"}, "plain": 1},
        "chatTemplateArgs": {"on": {"$var": "thinking.enabled"}},
    }}));
    let options = StreamOptions { thinking: level, ..options() };
    let mut sent = sent(&m, &json!([{"role": "user", "content": "q"}]), &options);
    let fields = sent.as_object_mut().unwrap();
    for name in ["model", "messages", "stream", "max_completion_tokens"] {
        fields.remove(name);
    }
    sent
}

#[test]
fn every_way_to_ask_for_thinking() {
    use ThinkingLevel::{High, Low, Off};
    let no_off = json!({"off": null});
    #[rustfmt::skip]
    let cases = [
        ("openai", json!({}), Low, json!({"reasoning_effort": "low"})),
        ("openai", json!({"low": "tiny"}), Low, json!({"reasoning_effort": "tiny"})),
        ("openai", json!({}), Off, json!({})),
        ("openai", json!({"off": "none"}), Off, json!({"reasoning_effort": "none"})),
        ("openrouter", json!({}), High, json!({"reasoning": {"effort": "high"}})),
        ("openrouter", json!({}), Off, json!({"reasoning": {"effort": "none"}})),
        ("openrouter", no_off.clone(), Off, json!({})),
        ("deepseek", json!({}), High, json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"})),
        ("deepseek", json!({}), Off, json!({"thinking": {"type": "disabled"}})),
        ("deepseek", no_off.clone(), Off, json!({})),
        ("together", json!({}), High, json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"})),
        ("together", json!({}), Off, json!({"reasoning": {"enabled": false}})),
        ("zai", json!({}), High, json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "high"})),
        ("zai", json!({}), Off, json!({"thinking": {"type": "disabled"}})),
        ("qwen", json!({}), High, json!({"enable_thinking": true, "reasoning_effort": "high"})),
        ("qwen", json!({}), Off, json!({"enable_thinking": false})),
        ("qwen-chat-template", json!({}), High, json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}})),
        ("chat-template", json!({}), Low, json!({"chat_template_kwargs": {"on": true, "effort": "low", "budget": 2048, "plain": 1}})),
        ("chat-template", json!({}), Off, json!({"chat_template_kwargs": {"on": false, "plain": 1}})),
        ("baseten", json!({}), Low, json!({"chat_template_args": {"on": true}, "reasoning_effort": "low"})),
        ("string-thinking", json!({}), High, json!({"thinking": "high"})),
        ("string-thinking", json!({}), Off, json!({"thinking": "none"})),
        ("ant-ling", json!({"low": "l"}), Low, json!({"reasoning": {"effort": "l"}})),
        ("ant-ling", json!({}), Low, json!({})),
        ("unheard of", json!({}), Low, json!({"reasoning_effort": "low"})),
    ];
    for (format, map, level, expected) in cases {
        let found = asked(format, map.clone(), level);
        assert_eq!(found, expected, "{format} {map} {level:?}");
    }
}

#[test]
fn a_thinking_budget_leaves_room_for_the_answer() {
    let m = model(
        json!({"reasoning": true, "maxTokens": 4000, "compat": {"thinkingTokenBudgetField": "thinking_budget"}}),
    );
    let mut options = StreamOptions { thinking: ThinkingLevel::High, ..options() };
    let messages = json!([{"role": "user", "content": "q"}]);
    assert_eq!(sent(&m, &messages, &options)["thinking_budget"], 2976);
    options.thinking = ThinkingLevel::Minimal;
    assert_eq!(sent(&m, &messages, &options)["thinking_budget"], 1024);
    options.thinking = ThinkingLevel::Off;
    assert_eq!(sent(&m, &messages, &options).get("thinking_budget"), None);
}

#[test]
fn sampling_parameters_come_last_and_win() {
    let m = model(json!({"samplingParams": {"top_p": 0.5, "min_p": 0.1}}));
    let mut options = options();
    options.temperature = Some(0.7);
    options.tool_choice = Some(ToolChoice::Required);
    options.sampling_params = json!({"top_p": 0.9, "temperature": 0.25}).as_object().cloned().unwrap();
    let sent = sent(&m, &json!([{"role": "user", "content": "q"}]), &options);
    assert_eq!((&sent["top_p"], &sent["min_p"]), (&json!(0.9), &json!(0.1)));
    assert_eq!((&sent["temperature"], &sent["tool_choice"]), (&json!(0.25), &json!("required")));
}

#[test]
fn the_cache_key_goes_where_it_is_understood() {
    let messages = json!([{"role": "user", "content": "q"}]);
    let openai = model(json!({"baseUrl": "https://api.openai.com/v1"}));
    let other = model(json!({}));
    let mut options = options();
    options.session_id = Some("s".repeat(70));
    let key = Value::from("s".repeat(64));
    assert_eq!(sent(&openai, &messages, &options)["prompt_cache_key"], key);
    assert_eq!(sent(&other, &messages, &options).get("prompt_cache_key"), None);
    options.cache = CacheRetention::Long;
    let long = sent(&other, &messages, &options);
    assert_eq!((&long["prompt_cache_key"], &long["prompt_cache_retention"]), (&key, &json!("24h")));
    options.cache = CacheRetention::None;
    assert_eq!(sent(&openai, &messages, &options).get("prompt_cache_key"), None);
}

#[test]
fn headers_carry_the_key_and_the_session() {
    let messages = json!([{"role": "user", "content": "q"}]);
    let find = |model: &Model, options: &StreamOptions, name: &str| {
        header(&OPENAI_API, model, &messages, options, name)
    };
    let mut options = options();
    options.session_id = Some("sid".into());
    let plain = model(json!({}));
    assert_eq!(find(&plain, &options, "authorization").as_deref(), Some("Bearer key"));
    assert_eq!(find(&plain, &options, "x-session-affinity"), None);
    let affine = model(json!({"compat": {"sendSessionAffinityHeaders": true}}));
    for name in ["session_id", "x-client-request-id", "x-session-affinity"] {
        assert_eq!(find(&affine, &options, name).as_deref(), Some("sid"));
    }
    let openrouter = model(json!({"provider": "openrouter"}));
    assert_eq!(find(&openrouter, &options, "x-session-id").as_deref(), Some("sid"));
    let copilot = model(json!({"provider": "github-copilot"}));
    assert_eq!(find(&copilot, &options, "x-initiator").as_deref(), Some("user"));
    let own = model(json!({"headers": {"Authorization": "Basic x"}}));
    assert_eq!(find(&own, &options, "authorization").as_deref(), Some("Basic x"));

    options.api_key = None;
    let far = testing::ask(&OPENAI_API, &plain, &testing::context(&messages), &options);
    assert_eq!(far.unwrap_err().message, "No API key for provider: acme");
    let near = model(json!({"baseUrl": "http://localhost:1234/v1/"}));
    let near = testing::ask(&OPENAI_API, &near, &testing::context(&messages), &options);
    assert_eq!(near.unwrap().url, "http://localhost:1234/v1/chat/completions");
}

#[test]
fn ids_of_other_protocols_are_cut_to_size_and_stay_apart() {
    let m = model(json!({"provider": "openai"}));
    let mut other = m.clone();
    other.id = "other".into();
    let long = format!("call_abc|{}+/=", "x".repeat(60));
    let ids = [long.as_str(), "call_abc|item_2", "short|", &"c".repeat(50)];
    let blocks: Vec<Value> = ids.iter().map(|id| call(id, "ls", json!({}))).collect();
    let results = ids.iter().map(|id| result(id, "x"));
    let messages: Vec<Value> = std::iter::once(answer(&other, blocks.into())).chain(results).collect();
    let sent = sent(&m, &messages.into(), &options());
    let calls = sent["messages"][0]["tool_calls"].as_array().unwrap();
    let found: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(found[1..], ["call_abc_item_2", "short", &"c".repeat(40)]);
    assert!(found[0].starts_with("call_abc_") && found[0].len() <= 40);
    for (at, id) in found.iter().enumerate() {
        assert_eq!(sent["messages"][at + 1]["tool_call_id"], *id);
    }
}

#[test]
fn later_system_messages_stay_in_place_where_the_model_takes_them() {
    let messages = json!([
        {"role": "system", "content": "base", "toolsAdded": [tool("ls")]},
        {"role": "user", "content": "q"},
        {"role": "system", "content": "more", "toolsAdded": [tool("write")]},
        {"role": "user", "content": "r"},
    ]);
    let roles = |compat: Value| {
        let m = model(json!({"compat": compat}));
        let sent = sent(&m, &messages, &options());
        let roles: Vec<String> = sent["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| {
                format!(
                    "{}{}",
                    message["role"].as_str().unwrap(),
                    if message.get("tools").is_some() { "+" } else { "" }
                )
            })
            .collect();
        (roles.join(" "), sent["tools"].as_array().unwrap().len())
    };
    assert_eq!(roles(json!({})), ("system user user".into(), 2));
    let in_place = json!({"supportsMidConvoSystemMessages": true});
    assert_eq!(roles(in_place), ("system user system user".into(), 2));
    let with_tools = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true});
    assert_eq!(roles(with_tools), ("system user system+ system user".into(), 1));
}

#[test]
fn a_grammar_tool_is_sent_as_a_custom_one() {
    let m = model(json!({"compat": {"supportsOpenAIGrammarTools": true}}));
    let tool = json!({"name": "patch", "description": "d", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]},
        "constrainedSampling": {"type": "grammar", "variants": {"openai_regex": "x+"}}});
    let messages = json!([
        {"role": "system", "toolsAdded": [tool]},
        answer(&m, json!([call("1", "patch", json!({"p": "xx"})), call("2", "patch", json!({"q": 1}))])),
        result("1", "ok"), result("2", "ok"),
    ]);
    let sent = sent(&m, &messages, &options());
    assert_eq!(
        sent["tools"][0]["custom"]["format"],
        json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "x+"}})
    );
    let calls = &sent["messages"][0]["tool_calls"];
    assert_eq!(calls[0], json!({"type": "custom", "id": "1", "custom": {"name": "patch", "input": "xx"}}));
    assert_eq!(calls[1]["custom"]["input"], "{\"q\":1}");
}

#[test]
fn each_request_begins_with_the_one_before() {
    let mut messages = Vec::new();
    for compat in [
        json!({}),
        json!({"cacheControlFormat": "anthropic"}),
        json!({"requiresThinkingAsText": true, "requiresAssistantAfterToolResult": true}),
    ] {
        let m = model(json!({"reasoning": true, "compat": compat}));
        let mut failed = answer(&m, json!([{"type": "text", "text": "half"}, call("0", "ls", json!({}))]));
        failed["stopReason"] = serde_json::to_value(StopReason::Error).unwrap();
        let mut other =
            answer(&m, json!([{"type": "thinking", "thinking": "t"}, call("0", "ls", json!({}))]));
        other["model"] = json!("other");
        for _ in 0..3 {
            messages.extend(
                conversation(&m).as_array().unwrap()[usize::from(!messages.is_empty())..].iter().cloned(),
            );
            messages.extend([
                failed.clone(),
                json!({"role": "user", "content": "again"}),
                other.clone(),
                result("0", "x"),
            ]);
        }
        testing::check_growth(&OPENAI_API, &m, &Value::from(std::mem::take(&mut messages)), &|_| false);
    }
}

/// What the reference sends for a model's own switches.
#[test]
fn switches_of_models_json_are_sent() {
    let messages = json!([
        {"role":"user","content":"hi","timestamp":1},
        {"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}],
         "api":"openai-completions","provider":"mock","model":"m","stopReason":"toolUse","timestamp":2,
         "usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,
                  "cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}},
        {"role":"toolResult","toolCallId":"c","toolName":"ls","content":[{"type":"text","text":"x"}],
         "isError":false,"timestamp":3}]);
    let rows = [
        (json!({}), "/messages/1/content", Some(Value::Null)),
        (json!({"requiresNonNullAssistantContent": true}), "/messages/1/content", Some(json!(""))),
        (json!({}), "/tools", None),
        (json!({"requiresToolsWithToolHistory": true}), "/tools", Some(json!([]))),
        (json!({}), "/prompt_cache_key", None),
        (json!({"promptCacheKeyMode": "enabled"}), "/prompt_cache_key", Some(json!("session"))),
        (json!({"promptCacheKeyMode": "auto"}), "/prompt_cache_key", None),
    ];
    let options = StreamOptions { session_id: Some("session".into()), ..options() };
    for (compat, place, expected) in rows {
        let body = sent(&model(json!({"compat": compat})), &messages, &options);
        assert_eq!(body.pointer(place), expected.as_ref(), "{compat} {place}");
    }
    let openai =
        json!({"baseUrl": "https://api.openai.com/v1", "compat": {"promptCacheKeyMode": "disabled"}});
    assert_eq!(sent(&model(openai), &messages, &options).get("prompt_cache_key"), None);
}

#[test]
fn sampling_parameters_of_the_thinking_level_go_over_those_of_the_model() {
    let m = model(json!({"reasoning": true, "samplingParams": {"top_p": 0.5, "min_p": 0.1},
        "samplingParamsByThinkingLevel": {"off": {"top_p": 0.1}, "high": {"top_p": 0.9}}}));
    let messages = json!([{"role":"user","content":"hi","timestamp":1}]);
    for (thinking, expected) in
        [(ThinkingLevel::Off, 0.1), (ThinkingLevel::High, 0.9), (ThinkingLevel::Low, 0.5)]
    {
        let options = StreamOptions { thinking, ..options() };
        let body = sent(&m, &messages, &options);
        assert_eq!((&body["top_p"], &body["min_p"]), (&json!(expected), &json!(0.1)), "{thinking:?}");
    }
}
