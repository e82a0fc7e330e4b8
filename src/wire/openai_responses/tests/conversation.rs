//! The conversation as it is sent, whoever began it.

use super::*;
use crate::wire::hash;
use crate::wire::testing::{answer, body, call, check_growth_with, result, tool};
use std::collections::{HashMap, HashSet};

pub fn sent(variant: Variant, model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    let body = body(&OpenAiResponses(variant), model, messages, options);
    check_items(&body["input"]);
    body
}

/// Checks what the provider would refuse.
#[track_caller]
fn check_items(items: &Value) {
    let items = items.as_array().unwrap();
    let mut open: HashMap<String, bool> = HashMap::new();
    let mut calls = HashSet::new();
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
                assert!(calls.insert(call_id.clone()), "ids of calls are unique: {item}");
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

pub fn image() -> Value {
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
    let with_prompt = |role: &str, items: Vec<Value>| Value::from([vec![prompt(role)], items].concat());

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

    let codex =
        model(Variant::Codex, json!({"reasoning": true, "compat": {"supportsOpenAIGrammarTools": true}}));
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
            json!(["message", "msg_pi_1", null, "on it"]),
            json!(["function_call", format!("fc_{}", hash::short("fc_1")), "call_1", null]),
            json!(["custom_tool_call", null, "call_2", null]),
            json!(["custom_tool_call_output", null, "call_2", null]),
            json!(["function_call_output", null, "call_1", null]),
            json!(["message", "msg_pi_4", null, "done"]),
            json!(["message", "msg_pi_4_1", null, "more"]),
        ];
        check_handoff(&target, variant, &others, &expected);

        let sibling = Model { id: "m0".into(), ..target.clone() };
        let mut expected = expected.to_vec();
        expected[1] = json!(["function_call", null, "call_1", null]);
        check_handoff(&target, variant, &sibling, &expected);
    }
    let xai = testing::model(json!({"api": "openai-responses", "provider": "xai"}));
    let expected = [
        json!(["message", "msg_pi_1", null, "on it"]),
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
    let ids = ["", "toolu_01.é", "a|b", "a|c", "|", &long, &format!("{long}y"), "call_1|fc_1", "a"];
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
    let open =
        json!({"type": "reasoning", "id": "rs_2", "content": [{"type": "reasoning_text", "text": "hm"}]});
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
        let said = items.filter(|item| item["role"] != "user" && item["type"] != "function_call_output");
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
        assert_eq!((&item["id"], &item["phase"]), (&json!(id), &phase), "{signature}");
    }
}

#[test]
fn each_request_begins_with_the_one_before() {
    let others = testing::model(json!({"api": "anthropic-messages", "provider": "anthropic"}));
    for variant in VARIANTS {
        let compat = json!({"supportsOpenAIGrammarTools": true, "supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true});
        let m = model(variant, json!({"reasoning": true, "compat": compat, "baseUrl": "https://x.example"}));
        let mut messages = conversation(&others);
        let list = messages.as_array_mut().unwrap();
        list.push(answer(&m, json!([signed(&thought())])));
        list.push(json!({"role": "user", "content": "go on"}));
        list.push(json!({"role": "system", "content": "more", "toolsAdded": [tool("cat")]}));
        let Value::Array(own) = conversation(&m) else { unreachable!() };
        list.extend(own.into_iter().skip(1));
        list.push(answer(&m, json!([call("call_1|fc_9", "ls", json!({}))])));
        list.push(json!({"role": "user", "content": "never mind"}));
        check_growth_with(&OpenAiResponses(variant), &m, &messages, &|_| false, &options());
    }
}
