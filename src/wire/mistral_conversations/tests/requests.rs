//! What is sent.

use super::*;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::wire::mistral_conversations::messages::legal_id;
use crate::wire::testing::{answer, body, call, header, options, result, tool};

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&MistralConversations, model, messages, options)
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

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "toolsAdded": [tool("ls")]},
        {"role": "user", "content": [text("hi"), image("AA=="), text("")]},
        answer(model, json!([
            {"type": "thinking", "thinking": "hm"}, {"type": "thinking", "thinking": " "}, text("a"), text(" "),
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
            {"role": "user", "content": [text("hi"), image_url("AA==")]},
            {"role": "assistant", "prefix": false, "content": [{"type": "thinking", "thinking": [text("hm")]}, text("a")], "tool_calls": [
                {"id": "abcDEF123", "type": "function", "function": function("{\"path\":\"é\"}"), "index": 0},
                {"id": "abcDEF124", "type": "function", "function": function("{}"), "index": 0},
            ]},
            {"role": "tool", "tool_call_id": "abcDEF123", "name": "ls", "content": [text("out")]},
            {"role": "tool", "tool_call_id": "abcDEF124", "name": "ls", "content": [text("[tool error] (see attached image)"), image_url("BB==")]},
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
        answer(&other, json!([text("t"), call("x|y", "ls", json!({}))])),
        result("x|y", "z"),
        answer(&m, json!([text("done")])),
        user("next"),
    ];
    messages.as_array_mut().unwrap().extend(more);
    testing::check_growth(&MistralConversations, &m, &messages, &|_| false);
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
        user(""), {"role": "user", "content": [text("")]}, answer(&m, json!([text("")])),
        user("q"), answer(&m, json!(calls)),
        empty("000000001", json!([])), empty("000000002", json!([text(" ")])), empty("000000003", json!([image("A")])),
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
            text("t"), call(id, "ls", json!({"path": "a"})), call("abc-DEF-123", "bad name é", json!({})), call("abc-DEF-123", "ls", json!({}))
        ]);
        let mut foreign = answer(&model(json!({"id": "zz"})), said);
        foreign["api"] = json!(api);
        let mut failed = answer(&m, json!([text("half"), call("lost", "ls", json!({}))]));
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
        assert_eq!(messages[2]["content"], json!([text("deep"), text("t")]), "{api}");
        assert_eq!(messages[2]["tool_calls"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn models_think_by_mode_or_by_effort() {
    use ThinkingLevel::{High, Low, Off};
    let map = json!({"low": "none", "medium": null});
    // model, map, level, effort, mode
    let cases = [
        ("magistral-small", Value::Null, Off, None, None),
        ("magistral-small", Value::Null, Low, None, Some("reasoning")),
        ("mistral-small-latest", Value::Null, Low, Some("high"), None),
        ("mistral-small-latest", map.clone(), Low, Some("none"), None),
        ("mistral-medium-3.5", map, High, Some("high"), None),
        ("mistral-medium-3.5", Value::Null, Off, None, None),
        ("zai-glm-5-2", Value::Null, High, Some("high"), None),
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
    let affinity =
        |options: &StreamOptions| header(&MistralConversations, &m, &messages, options, "x-affinity");
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
        let request = MistralConversations.request(&m, &testing::context(&messages), &options).unwrap();
        assert_eq!(request.url, "https://proxy.test/mistral/v1/chat/completions");
        let body = sent(&m, &messages, &options);
        assert_eq!(body["tool_choice"], word);
        assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.25), &json!(0.5)));
        assert_eq!(body["max_tokens"], 77);
        assert_eq!(body["tools"][0]["function"]["strict"], true);
        assert_eq!(body["tools"][0]["function"]["parameters"]["additionalProperties"], false);
    }
    let keyless = StreamOptions::default();
    let refused = MistralConversations.request(&model(json!({})), &testing::context(&messages), &keyless);
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
