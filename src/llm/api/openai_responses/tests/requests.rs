//! What is sent.

use super::*;
use crate::llm::api::Protocol;
use crate::llm::api::hash;
use crate::llm::api::testing::{answer, body, call, check_growth_with, context, result, tool};
use crate::llm::event::ErrorKind;
use crate::llm::model::ThinkingLevel;
use crate::llm::stream::{CacheRetention, ToolChoice};
use std::collections::HashMap;

fn sent(variant: Variant, model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    let body = body(&OpenAiResponses(variant), model, messages, options);
    check_items(&body["input"]);
    body
}

/// Checks what the provider would refuse.
#[track_caller]
fn check_items(items: &Value) {
    let items = items.as_array().unwrap();
    let mut open: HashMap<String, bool> = HashMap::new();
    let mut calls = std::collections::HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or_default();
        let prefix = match kind {
            "function_call" => "fc_",
            "custom_tool_call" => "ctc_",
            "message" => "msg_",
            _ => "",
        };
        if let Some(id) = item.get("id") {
            let id = id.as_str().unwrap();
            assert!(id.starts_with(prefix) && id.len() <= 64, "{item}");
        }
        let custom = kind.starts_with("custom");
        match kind {
            "function_call" | "custom_tool_call" => {
                let call_id = item["call_id"].as_str().unwrap().to_owned();
                assert!(!call_id.is_empty() && item["name"] != "", "{item}");
                assert!(
                    calls.insert(call_id.clone()),
                    "ids of calls are unique: {item}"
                );
                open.insert(call_id, custom);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let asked = open.remove(item["call_id"].as_str().unwrap());
                assert_eq!(asked, Some(custom), "answers a call of its kind: {item}");
                assert_ne!(item["output"], json!(""));
                assert_ne!(item["output"], json!([]));
            }
            "reasoning" => {
                let next = items.get(at + 1).map(|next| next["type"].as_str());
                let followed = ["message", "function_call", "custom_tool_call", "reasoning"];
                assert!(
                    next.flatten().is_some_and(|next| followed.contains(&next)),
                    "nothing follows {item}"
                );
            }
            _ => {}
        }
        if item.get("role").is_some() && kind != "additional_tools" {
            assert!(open.is_empty(), "calls are answered first: {item}");
            assert_ne!(item["content"], json!(""));
            assert_ne!(item["content"], json!([]));
        }
    }
    assert!(open.is_empty(), "no result for {open:?}");
}

fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "enc="})
}

fn signed(item: &Value) -> Value {
    json!({"type": "thinking", "thinking": "hm", "thinkingSignature": item.to_string()})
}

fn said(text: &str, signature: Value) -> Value {
    json!({"type": "text", "text": text, "textSignature": signature.to_string()})
}

const IMAGE: &str = "data:image/png;base64,AA==";

fn image() -> Value {
    json!({"type": "image", "data": "AA==", "mimeType": "image/png"})
}

fn tool_result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "isError": false, "content": content})
}

/// A conversation with `by`, with everything in it.
fn conversation(by: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": [tool("ls"), patch()]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}, image()]},
        answer(by, json!([
            signed(&thought()),
            said("on it", json!({"v": 1, "id": "msg_1", "phase": "commentary"})),
            call("call_1|fc_1", "ls", json!({"path": "é"})),
            call("call_2|ctc_2", "patch", json!({"text": "a\nb"})),
        ])),
        tool_result("call_2|ctc_2", json!([image()])),
        tool_result("call_1|fc_1", json!([{"type": "text", "text": "a"}, image(), {"type": "text", "text": "b"}])),
        answer(by, json!([{"type": "text", "text": "done", "textSignature": "msg_old"}, {"type": "text", "text": "more"}, {"type": "text", "text": " "}])),
        {"role": "user", "content": "thanks"},
    ])
}

/// The items of [`conversation`] after the prompt, for its own model.
fn own_items(patch_as_custom: bool) -> Vec<Value> {
    let patch_call = match patch_as_custom {
        true => {
            json!({"type": "custom_tool_call", "id": "ctc_2", "call_id": "call_2", "name": "patch", "input": "a\nb"})
        }
        false => {
            json!({"type": "function_call", "call_id": "call_2", "name": "patch", "arguments": "{\"text\":\"a\\nb\"}"})
        }
    };
    let patch_output = match patch_as_custom {
        true => "custom_tool_call_output",
        false => "function_call_output",
    };
    let text = |id: &str, text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}], "status": "completed", "id": id});
    let mut commentary = text("msg_1", "on it");
    commentary["phase"] = json!("commentary");
    vec![
        json!({"role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "detail": "auto", "image_url": IMAGE}]}),
        thought(),
        commentary,
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "ls", "arguments": "{\"path\":\"é\"}"}),
        patch_call,
        json!({"type": patch_output, "call_id": "call_2", "output": [{"type": "input_image", "detail": "auto", "image_url": IMAGE}]}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "a\nb"}, {"type": "input_image", "detail": "auto", "image_url": IMAGE}]}),
        text("msg_old", "done"),
        text("msg_pi_4_1", "more"),
        json!({"role": "user", "content": [{"type": "input_text", "text": "thanks"}]}),
    ]
}

#[test]
fn a_conversation_in_each_variant() {
    let prompt = |role: &str| json!({"role": role, "content": "Be brief.\n\nIn /a"});
    let ls = |strict: Option<Value>| {
        let mut tool = json!({"type": "function", "name": "ls", "description": "ls it", "parameters":
            {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}});
        if let Some(strict) = strict {
            tool["strict"] = strict;
        }
        tool
    };
    let custom = json!({"type": "custom", "name": "patch", "description": "patch it", "format":
        {"type": "grammar", "syntax": "lark", "definition": "start: x"}});
    let function = |strict: Option<Value>| {
        let mut tool = ls(strict);
        tool["name"] = json!("patch");
        tool["description"] = json!("patch it");
        tool["parameters"] = patch()["parameters"].clone();
        tool
    };
    let with_prompt =
        |role: &str, items: Vec<Value>| Value::from([vec![prompt(role)], items].concat());

    let plain = model(Variant::OpenAi, json!({}));
    let expected = json!({
        "model": "m1",
        "input": with_prompt("system", own_items(false)),
        "stream": true,
        "store": false,
        "max_output_tokens": 8000,
        "tools": [ls(None), function(None)],
    });
    let found = sent(Variant::OpenAi, &plain, &conversation(&plain), &options());
    assert_eq!(found.to_string(), expected.to_string());

    let azure = model(
        Variant::Azure,
        json!({"reasoning": true, "baseUrl": "https://r.openai.azure.com", "compat": {"supportsOpenAIGrammarTools": true}}),
    );
    let expected = json!({
        "model": "m1",
        "input": with_prompt("developer", own_items(true)),
        "stream": true,
        "store": false,
        "max_output_tokens": 8000,
        "tools": [ls(Some(json!(false))), custom],
        "reasoning": {"effort": "none"},
    });
    let found = sent(Variant::Azure, &azure, &conversation(&azure), &options());
    assert_eq!(found.to_string(), expected.to_string());

    let codex = model(
        Variant::Codex,
        json!({"reasoning": true, "compat": {"supportsOpenAIGrammarTools": true}}),
    );
    let expected = json!({
        "model": "m1",
        "instructions": "Be brief.\n\nIn /a",
        "input": own_items(true),
        "stream": true,
        "store": false,
        "tools": [ls(Some(Value::Null)), custom],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "none"},
        "include": ["reasoning.encrypted_content"],
    });
    let found = sent(Variant::Codex, &codex, &conversation(&codex), &options());
    assert_eq!(found.to_string(), expected.to_string());
}

#[test]
fn codex_takes_no_request_without_instructions() {
    let codex = model(Variant::Codex, json!({}));
    let messages = json!([{"role": "user", "content": "q"}]);
    let found = sent(Variant::Codex, &codex, &messages, &options());
    assert!(
        found["instructions"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
}

/// The items of a conversation that others began, each by its type, ids and text.
#[track_caller]
fn check_handoff(target: &Model, variant: Variant, by: &Model, expected: &[Value]) {
    let found = sent(variant, target, &conversation(by), &options());
    let items = found["input"].as_array().unwrap().iter();
    let items = items.filter(|item| item.get("type").is_some());
    let shown = items.map(|item| {
        let text = item.pointer("/content/0/text").cloned();
        json!([item["type"], item["id"], item["call_id"], text])
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{variant:?}");
}

#[test]
fn a_conversation_that_others_began() {
    let others = testing::model(json!({"api": "anthropic-messages", "provider": "anthropic"}));
    let grammar = json!({"compat": {"supportsOpenAIGrammarTools": true}});
    for variant in VARIANTS {
        let mut own = grammar.clone();
        testing::merge(&mut own, json!({"baseUrl": "https://r.openai.azure.com"}));
        let target = model(variant, own);
        // The ids look like ours, but are another's: calls get names that belong to nothing.
        let expected = [
            json!(["message", "msg_pi_1", null, "hm"]),
            json!(["message", "msg_pi_1_1", null, "on it"]),
            json!([
                "function_call",
                format!("fc_{}", hash::short("fc_1")),
                "call_1",
                null
            ]),
            json!(["custom_tool_call", null, "call_2", null]),
            json!(["custom_tool_call_output", null, "call_2", null]),
            json!(["function_call_output", null, "call_1", null]),
            json!(["message", "msg_pi_4", null, "done"]),
            json!(["message", "msg_pi_4_1", null, "more"]),
        ];
        check_handoff(&target, variant, &others, &expected);

        let sibling = Model {
            id: "m0".into(),
            ..target.clone()
        };
        let mut expected = expected.to_vec();
        expected[2] = json!(["function_call", null, "call_1", null]);
        check_handoff(&target, variant, &sibling, &expected);
    }
    let xai = testing::model(json!({"api": "openai-responses", "provider": "xai"}));
    let expected = [
        json!(["message", "msg_pi_1", null, "hm"]),
        json!(["message", "msg_pi_1_1", null, "on it"]),
        json!(["function_call", null, "call_1_fc_1", null]),
        json!(["function_call", null, "call_2_ctc_2", null]),
        json!(["function_call_output", null, "call_2_ctc_2", null]),
        json!(["function_call_output", null, "call_1_fc_1", null]),
        json!(["message", "msg_pi_4", null, "done"]),
        json!(["message", "msg_pi_4_1", null, "more"]),
    ];
    check_handoff(&xai, Variant::OpenAi, &others, &expected);
}

#[test]
fn ids_of_any_kind_become_legal_with_their_results() {
    let target = model(Variant::OpenAi, json!({}));
    let others = testing::model(json!({"api": "openai-completions", "provider": "groq"}));
    let long = "x".repeat(500);
    let ids = [
        "",
        "toolu_01.é",
        "a|b",
        "a|c",
        "|",
        &long,
        &format!("{long}y"),
        "call_1|fc_1",
        "a",
    ];
    for by in [&others, &target] {
        let mut messages = vec![json!({"role": "user", "content": "q"})];
        for round in 0..2 {
            let calls: Vec<Value> = ids.iter().map(|id| call(id, "ls", json!({}))).collect();
            messages.push(answer(by, Value::from(calls)));
            let results = ids.iter().rev();
            messages.extend(results.map(|id| result(id, &format!("{round} {id}"))));
        }
        let found = sent(Variant::OpenAi, &target, &Value::from(messages), &options());
        let items = found["input"].as_array().unwrap();
        assert_eq!(items.len(), 1 + 4 * ids.len());
    }
}

#[test]
fn thoughts_go_back_only_where_they_are_whole() {
    let m = model(Variant::OpenAi, json!({"reasoning": true}));
    let open = json!({"type": "reasoning", "id": "rs_2", "content": [{"type": "reasoning_text", "text": "hm"}]});
    let mut open_sent = open.clone();
    open_sent["summary"] = json!([]);
    let unsealed = json!({"type": "reasoning", "id": "rs_3", "summary": []});
    let text = said("x", json!({"v": 1, "id": "msg_1"}));
    let ls = call("call_1|fc_1", "ls", json!({}));
    #[rustfmt::skip]
    let cases = [
        (json!([signed(&thought()), text, ls]), json!([thought(), "msg_1", "fc_1"])),
        (json!([signed(&open), text, ls]), json!([open_sent, "msg_1", "fc_1"])),
        // Nobody could find it again: what follows must not be missed with it.
        (json!([signed(&unsealed), text, ls]), json!(["msg_pi_1", null])),
        (json!([{"type": "thinking", "thinking": "t", "thinkingSignature": "reasoning_content"}, text, ls]), json!(["msg_pi_1", null])),
        (json!([signed(&json!({"type": "message", "encrypted_content": "x"})), text, ls]), json!(["msg_pi_1", null])),
        // Nothing follows.
        (json!([text, signed(&thought()), signed(&thought())]), json!(["msg_1"])),
        (json!([signed(&thought())]), json!([])),
        (json!([signed(&thought()), {"type": "text", "text": ""}]), json!([])),
    ];
    for (blocks, expected) in cases {
        let mut messages = vec![json!({"role": "user", "content": "q"}), answer(&m, blocks)];
        messages.push(result("call_1|fc_1", "r"));
        messages.push(json!({"role": "user", "content": "go on"}));
        let found = sent(Variant::OpenAi, &m, &Value::from(messages), &options());
        let items = found["input"].as_array().unwrap().iter();
        let said =
            items.filter(|item| item["role"] != "user" && item["type"] != "function_call_output");
        let shown = said.map(|item| match item["type"] == "reasoning" {
            true => item.clone(),
            false => item["id"].clone(),
        });
        assert_eq!(shown.collect::<Value>(), expected);
    }
}

#[test]
fn what_stands_inside_a_text_s_signature() {
    let m = model(Variant::OpenAi, json!({}));
    let long = "m".repeat(65);
    #[rustfmt::skip]
    let cases = [
        (r#"{"v":1,"id":"msg_a","phase":"final_answer"}"#.to_owned(), "msg_a".to_owned(), json!("final_answer")),
        (r#"{"v":1,"id":"msg_a","phase":"other"}"#.to_owned(), "msg_a".to_owned(), Value::Null),
        (format!(r#"{{"v":1,"id":"{long}"}}"#), format!("msg_{}", hash::short(&long)), Value::Null),
        ("msg_plain".to_owned(), "msg_plain".to_owned(), Value::Null),
        (String::new(), "msg_pi_0".to_owned(), Value::Null),
    ];
    for (signature, id, phase) in cases {
        let block = json!({"type": "text", "text": "x", "textSignature": signature});
        let messages = json!([answer(&m, json!([block]))]);
        let found = sent(Variant::OpenAi, &m, &messages, &options());
        let item = &found["input"][0];
        assert_eq!(
            (&item["id"], &item["phase"]),
            (&json!(id), &phase),
            "{signature}"
        );
    }
}

#[test]
fn thinking_is_asked_for_by_each_model_s_words() {
    use ThinkingLevel::{High, Low, Max, Minimal, Off};
    let map = json!({"off": null, "minimal": "low", "xhigh": "xhigh"});
    let none = json!({"off": "none"});
    let null = Value::Null;
    let sealed = json!(["reasoning.encrypted_content"]);
    let with = |effort: &str| json!({"effort": effort, "summary": "auto"});
    let off = |effort: &str| json!({ "effort": effort });
    #[rustfmt::skip]
    let cases = [
        (Variant::OpenAi, "openai", &null, Off, off("none"), &null),
        (Variant::OpenAi, "openai", &null, Low, with("low"), &sealed),
        (Variant::OpenAi, "openai", &null, Max, with("high"), &sealed),
        (Variant::OpenAi, "openai", &map, Off, Value::Null, &null),
        (Variant::OpenAi, "openai", &map, Minimal, with("low"), &sealed),
        (Variant::OpenAi, "openai", &map, Max, with("xhigh"), &sealed),
        (Variant::OpenAi, "openai", &none, Off, off("none"), &null),
        (Variant::OpenAi, "github-copilot", &null, Off, Value::Null, &null),
        (Variant::OpenAi, "xai", &map, Off, Value::Null, &sealed),
        (Variant::Azure, "azure-openai-responses", &null, Off, off("none"), &null),
        (Variant::Azure, "azure-openai-responses", &null, High, with("high"), &sealed),
        (Variant::Codex, "openai-codex", &map, Off, Value::Null, &sealed),
        (Variant::Codex, "openai-codex", &none, High, with("high"), &sealed),
    ];
    let messages = json!([{"role": "user", "content": "q"}]);
    for (variant, provider, map, level, reasoning, include) in cases {
        let m = model(
            variant,
            json!({"provider": provider, "reasoning": true, "thinkingLevelMap": map, "baseUrl": "https://x.example"}),
        );
        let options = StreamOptions {
            thinking: level,
            ..options()
        };
        let found = sent(variant, &m, &messages, &options);
        let found = (&found["reasoning"], &found["include"]);
        assert_eq!(
            found,
            (&reasoning, include),
            "{variant:?} {provider} {map} {level:?}"
        );
    }
    let plain = model(Variant::OpenAi, json!({}));
    let options = StreamOptions {
        thinking: High,
        ..options()
    };
    let found = sent(Variant::OpenAi, &plain, &messages, &options);
    assert!(found.get("reasoning").is_none() && found.get("include").is_none());
}

#[test]
fn the_cache_is_asked_for_as_long_as_wanted() {
    use CacheRetention::{Long, None, Short};
    let null = Value::Null;
    let key = "é".repeat(64);
    let explicit = json!({"supportsExplicitPromptCacheMode": true});
    let short_only = json!({"supportsLongCacheRetention": false});
    #[rustfmt::skip]
    let cases = [
        (Variant::OpenAi, &null, None, json!([null, null, null])),
        (Variant::OpenAi, &null, Short, json!([key, null, null])),
        (Variant::OpenAi, &null, Long, json!([key, "24h", null])),
        (Variant::OpenAi, &short_only, Long, json!([key, null, null])),
        (Variant::OpenAi, &explicit, None, json!([null, null, {"mode": "explicit"}])),
        (Variant::OpenAi, &explicit, Short, json!([key, null, null])),
        (Variant::OpenAi, &explicit, Long, json!([key, null, {"ttl": "30m"}])),
        (Variant::Azure, &null, Long, json!([key, null, null])),
        (Variant::Azure, &null, None, json!([null, null, null])),
        (Variant::Codex, &null, Long, json!([key, null, null])),
    ];
    for (variant, compat, cache, expected) in cases {
        let m = model(
            variant,
            json!({"compat": compat, "baseUrl": "https://x.example"}),
        );
        let options = StreamOptions {
            cache,
            session_id: Some("é".repeat(70)),
            ..options()
        };
        let found = sent(
            variant,
            &m,
            &json!([{"role": "user", "content": "q"}]),
            &options,
        );
        let fields = [
            "prompt_cache_key",
            "prompt_cache_retention",
            "prompt_cache_options",
        ];
        let found: Value = fields.iter().map(|name| found[*name].clone()).collect();
        assert_eq!(found, expected, "{variant:?} {compat} {cache:?}");
    }
}

#[test]
fn limits_choices_and_what_the_user_names_outright() {
    let m = model(
        Variant::OpenAi,
        json!({"samplingParams": {"top_p": 0.5, "store": true}}),
    );
    let mut options = StreamOptions {
        max_tokens: Some(3),
        temperature: Some(0.25),
        tool_choice: Some(ToolChoice::Required),
        ..options()
    };
    let params = json!({"top_p": 0.9, "service_tier": "flex"});
    options.sampling_params = params.as_object().cloned().unwrap();
    let found = sent(
        Variant::OpenAi,
        &m,
        &json!([{"role": "user", "content": "q"}]),
        &options,
    );
    let expected = json!({
        "model": "m1",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}],
        "stream": true,
        "store": true,
        "max_output_tokens": 16,
        "temperature": 0.25,
        "tool_choice": "required",
        "top_p": 0.9,
        "service_tier": "flex",
    });
    assert_eq!(found.to_string(), expected.to_string());

    let unlimited = model(
        Variant::OpenAi,
        json!({"compat": {"supportsMaxOutputTokens": false}}),
    );
    let messages = json!([{"role": "user", "content": "q"}]);
    let found = sent(Variant::OpenAi, &unlimited, &messages, &options);
    assert!(found.get("max_output_tokens").is_none());
}

#[test]
fn strict_tools_where_they_are_taken() {
    let mut strict = tool("ls");
    strict["constrainedSampling"] = json!({"type": "json_schema", "strict": "prefer"});
    let messages = json!([{"role": "system", "content": "s", "toolsAdded": [strict, tool("cat")]}, {"role": "user", "content": "q"}]);
    let on = json!({"supportsStrictMode": true});
    let off = json!({"supportsStrictMode": false});
    let null = Value::Null;
    let (t, f) = (Some(json!(true)), Some(json!(false)));
    let cases = [
        (Variant::OpenAi, &null, None, None),
        (Variant::OpenAi, &on, t.clone(), f.clone()),
        (Variant::Azure, &null, t.clone(), f),
        (Variant::Codex, &null, t, Some(Value::Null)),
        (Variant::Codex, &off, None, None),
    ];
    for (variant, compat, first, second) in cases {
        let m = model(
            variant,
            json!({"compat": compat, "baseUrl": "https://x.example"}),
        );
        let found = sent(variant, &m, &messages, &options());
        let strict = |at: usize| found["tools"][at].get("strict").cloned();
        assert_eq!(
            (strict(0), strict(1)),
            (first, second),
            "{variant:?} {compat}"
        );
    }
}

#[test]
fn later_prompts_and_tools_stand_where_they_were_said() {
    let messages = json!([
        {"role": "system", "content": "s", "toolsAdded": [tool("ls")]},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "x", "provider": "x", "model": "x", "stopReason": "stop"},
        {"role": "system", "content": "more", "toolsAdded": [tool("cat"), patch()]},
        {"role": "user", "content": "go"},
    ]);
    let shown = |compat: Value, variant: Variant| {
        let m = model(variant, json!({"reasoning": true, "compat": compat}));
        let body = sent(variant, &m, &messages, &options());
        let tools = |list: &Value| -> Vec<String> {
            let list = list.as_array().into_iter().flatten();
            let names = list.map(|tool| {
                let deferred = if tool["defer_loading"] == true {
                    "?"
                } else {
                    ""
                };
                format!("{}{deferred}", tool["name"].as_str().unwrap())
            });
            names.collect()
        };
        let items = body["input"].as_array().unwrap().iter().map(|item| {
            let kind = item["type"].as_str().or(item["role"].as_str()).unwrap();
            match tools(&item["tools"]) {
                names if names.is_empty() => kind.to_owned(),
                names => format!("{kind} {}", names.join(" ")),
            }
        });
        let items: Vec<String> = items.collect();
        (items.join(", "), tools(&body["tools"]).join(" "))
    };
    let place = |items: &str, tools: &str| (items.to_owned(), tools.to_owned());
    assert_eq!(
        shown(json!({}), Variant::OpenAi),
        place("developer, user, message, user", "ls cat patch")
    );
    assert_eq!(
        shown(
            json!({"supportsMidConvoSystemMessages": true, "supportsDeveloperRole": false}),
            Variant::OpenAi
        ),
        place("system, user, message, system, user", "ls cat patch")
    );
    assert_eq!(
        shown(
            json!({"supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true, "supportsToolSearch": true}),
            Variant::Codex
        ),
        place(
            "user, message, additional_tools cat patch, developer, user",
            "ls"
        )
    );
    assert_eq!(
        shown(
            json!({"supportsMidConvoSystemMessages": true, "supportsToolSearch": true, "supportsOpenAIGrammarTools": true}),
            Variant::OpenAi
        ),
        place(
            "developer, user, message, tool_search_call, tool_search_output cat? patch?, developer, user",
            "ls"
        )
    );
}

#[test]
fn headers_of_each_variant() {
    let m = |variant, fields| model(variant, fields);
    let azure = json!({"baseUrl": "https://r.openai.azure.com"});
    let copilot = json!({"provider": "github-copilot", "headers": {"X-Own": "1"}});
    let router = json!({"provider": "openrouter"});
    let key = options().api_key.unwrap();
    let bearer = format!("Bearer {}", key.expose());
    let json_ = "application/json";
    #[rustfmt::skip]
    let cases = [
        (Variant::OpenAi, m(Variant::OpenAi, json!({})), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("session_id", "s"), ("x-client-request-id", "s"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, router), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-session-id", "s"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, json!({"compat": {"sessionAffinityFormat": "openai-nosession"}})), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-client-request-id", "s"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, copilot), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-own", "1"), ("x-initiator", "user"), ("openai-intent", "conversation-edits"),
            ("copilot-vision-request", "true"), ("session_id", "s"), ("x-client-request-id", "s"), ("x-a", "b")]),
        (Variant::Azure, m(Variant::Azure, azure), vec![
            ("content-type", json_), ("accept", json_), ("api-key", key.expose()), ("x-a", "b")]),
        (Variant::Codex, m(Variant::Codex, json!({})), vec![
            ("content-type", json_), ("accept", "text/event-stream"), ("authorization", &bearer), ("openai-beta", "responses=experimental"), ("originator", "pi"),
            ("chatgpt-account-id", "acc"), ("session-id", "s"), ("x-client-request-id", "s"), ("x-a", "b")]),
    ];
    let messages = json!([{"role": "user", "content": [image()]}]);
    for (variant, model, expected) in cases {
        let options = StreamOptions {
            session_id: Some("s".into()),
            headers: vec![("X-A".into(), Some("b".into())), ("x-none".into(), None)],
            ..options()
        };
        let protocol = OpenAiResponses(variant);
        let request = protocol
            .request(&model, &context(&messages), &options)
            .unwrap();
        let found = request.headers.iter();
        let found: Vec<(&str, &str)> = found.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, expected, "{variant:?} {}", model.provider);

        let uncached = StreamOptions {
            cache: CacheRetention::None,
            ..options
        };
        let request = protocol
            .request(&model, &context(&messages), &uncached)
            .unwrap();
        let leads =
            |(name, _): &(String, String)| name.contains("session") || name.contains("request-id");
        assert!(!request.headers.iter().any(leads), "{variant:?}");
    }
}

#[test]
fn addresses_of_each_variant() {
    let cases = [
        (
            Variant::OpenAi,
            "https://api.openai.com/v1/",
            "https://api.openai.com/v1/responses",
        ),
        (
            Variant::OpenAi,
            "https://g/{CLOUDFLARE_ACCOUNT_ID}/openai",
            "https://g/a1/openai/responses",
        ),
        (
            Variant::Azure,
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            Variant::Codex,
            "https://chatgpt.com/backend-api",
            "https://chatgpt.com/backend-api/codex/responses",
        ),
    ];
    for (variant, base_url, url) in cases {
        let m = model(variant, json!({"baseUrl": base_url}));
        let options = StreamOptions {
            env: vec![("CLOUDFLARE_ACCOUNT_ID".into(), "a1".into())],
            ..options()
        };
        let messages = context(&json!([{"role": "user", "content": "q"}]));
        let request = OpenAiResponses(variant)
            .request(&m, &messages, &options)
            .unwrap();
        assert_eq!(request.url, url);
    }
}

#[test]
fn without_a_key_nothing_is_sent_to_the_internet() {
    for variant in VARIANTS {
        let m = model(variant, json!({"baseUrl": "https://x.example"}));
        let mut options = StreamOptions::default();
        let messages = context(&json!([{"role": "user", "content": "q"}]));
        let request =
            |m: &Model, o: &StreamOptions| OpenAiResponses(variant).request(m, &messages, o);
        let error = request(&m, &options).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{variant:?}");
        assert!(error.message.contains(&m.provider));

        let nearby = model(variant, json!({"baseUrl": "http://127.0.0.1:1"}));
        assert!(request(&nearby, &options).is_ok(), "{variant:?}");

        options.headers = vec![("cf-aig-authorization".into(), Some("Bearer x".into()))];
        assert!(request(&m, &options).is_ok(), "{variant:?}");
    }
    let codex = model(Variant::Codex, json!({}));
    let options = StreamOptions {
        api_key: Some(Secret::new("no-token")),
        ..StreamOptions::default()
    };
    let messages = context(&json!([{"role": "user", "content": "q"}]));
    let error = OpenAiResponses(Variant::Codex).request(&codex, &messages, &options);
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(!error.message.contains("no-token"));
}

#[test]
fn each_request_begins_with_the_one_before() {
    let others = testing::model(json!({"api": "anthropic-messages", "provider": "anthropic"}));
    for variant in VARIANTS {
        let compat = json!({"supportsOpenAIGrammarTools": true, "supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true});
        let m = model(
            variant,
            json!({"reasoning": true, "compat": compat, "baseUrl": "https://x.example"}),
        );
        let mut messages = conversation(&others);
        let list = messages.as_array_mut().unwrap();
        list.push(answer(&m, json!([signed(&thought())])));
        list.push(json!({"role": "user", "content": "go on"}));
        list.push(json!({"role": "system", "content": "more", "toolsAdded": [tool("cat")]}));
        let Value::Array(own) = conversation(&m) else {
            unreachable!()
        };
        list.extend(own.into_iter().skip(1));
        list.push(answer(&m, json!([call("call_1|fc_9", "ls", json!({}))])));
        list.push(json!({"role": "user", "content": "never mind"}));
        check_growth_with(
            &OpenAiResponses(variant),
            &m,
            &messages,
            &|_| false,
            &options(),
        );
    }
}
