//! What is sent.

use super::*;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{StreamOptions, ToolChoice};
use crate::wire::testing::{answer, body, call, options, result, tool};

/// Legal signatures.
const S1: &str = "c2ln";
const S2: &str = "c2lnbmF0dXJlMQ==";

fn sent(model: &Model, messages: &Value, options: &StreamOptions) -> Value {
    body(&Google::GenerativeAi, model, messages, options)
}

fn image(data: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": "image/png"})
}

fn inline(data: &str) -> Value {
    json!({"inlineData": {"mimeType": "image/png", "data": data}})
}

fn signed(mut block: Value, signature: &str) -> Value {
    let field = match block["type"].as_str().unwrap() {
        "text" => "textSignature",
        "thinking" => "thinkingSignature",
        _ => "thoughtSignature",
    };
    block[field] = json!(signature);
    block
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text})
}

fn conversation(model: &Model) -> Value {
    json!([
        {"role": "system", "content": "Be brief.", "sections": {"cwd": "In /a"}, "toolsAdded": [tool("ls"), tool("write")]},
        {"role": "user", "content": [text("hi"), image("AA=="), text("")]},
        answer(model, json!([
            signed(thinking("hm"), S1), thinking(" "), signed(text(""), S2), text("a"), text(" "),
            signed(call("c1", "ls", json!({"path": "é"})), S1), call("c2", "ls", json!({}))
        ])),
        result("c1", "out"),
        {"role": "toolResult", "toolCallId": "c2", "toolName": "ls", "isError": true, "content": [image("BB=="), image("CC==")]},
        {"role": "user", "content": "thanks"},
    ])
}

#[test]
fn a_conversation_in_the_protocol_s_form() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let answered = |ids: bool| {
        let mut parts = json!([
            {"thought": true, "text": "hm", "thoughtSignature": S1},
            {"text": "", "thoughtSignature": S2},
            {"text": "a"},
            {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "é"}}, "thoughtSignature": S1},
            {"functionCall": {"id": "c2", "name": "ls", "args": {}}},
        ]);
        for part in parts.as_array_mut().unwrap().iter_mut().skip(3) {
            let call = part["functionCall"].as_object_mut().unwrap();
            if !ids {
                call.shift_remove("id");
            }
        }
        json!({"role": "model", "parts": parts})
    };
    let user = json!({"role": "user", "parts": [{"text": "hi"}, inline("AA==")]});
    let thanks = json!({"role": "user", "parts": [{"text": "thanks"}]});
    // Newer models take images inside results, older ones after them.
    let newer = json!([user, answered(true), {"role": "user", "parts": [
        {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "out"}}},
        {"functionResponse": {"id": "c2", "name": "ls", "response": {"error": "(see attached image)"}, "parts": [inline("BB=="), inline("CC==")]}},
    ]}, thanks]);
    let older = json!([user, answered(false), {"role": "user", "parts": [
        {"functionResponse": {"name": "ls", "response": {"output": "out"}}},
        {"functionResponse": {"name": "ls", "response": {"error": "(see attached image)"}}},
    ]}, {"role": "user", "parts": [{"text": "Tool result image:"}, inline("BB=="), inline("CC==")]}, thanks]);
    for (id, contents) in [("gemini-3-pro", newer), ("gemini-2.5-pro", older)] {
        let m = model(id);
        let expected = json!({
            "systemInstruction": {"role": "user", "parts": [{"text": "Be brief.\n\nIn /a"}]},
            "tools": [{"functionDeclarations": [
                {"name": "ls", "description": "ls it", "parametersJsonSchema": schema},
                {"name": "write", "description": "write it", "parametersJsonSchema": schema},
            ]}],
            "contents": contents,
            "generationConfig": {"maxOutputTokens": 8000},
        });
        let sent = sent(&m, &conversation(&m), &options());
        assert_eq!(sent.to_string(), expected.to_string(), "{id}");
    }
}

#[test]
fn a_growing_conversation_keeps_its_beginning() {
    for id in ["gemini-3-pro", "gemini-2.5-pro"] {
        let m = model(id);
        let mut messages = conversation(&m);
        let other = model("other");
        let more = [
            answer(&other, json!([thinking("t"), call("x|y", "ls", json!({}))])),
            result("x|y", "z"),
            answer(&m, json!([text("done")])),
            json!({"role": "user", "content": "next"}),
        ];
        messages.as_array_mut().unwrap().extend(more);
        testing::check_growth(&Google::GenerativeAi, &m, &messages, &|_| false);
    }
}

#[test]
fn nothing_empty_is_sent_and_turns_of_the_model_do_not_follow_each_other() {
    let m = model("gemini-3-pro");
    let messages = json!([
        {"role": "user", "content": ""},
        {"role": "user", "content": [text("")]},
        {"role": "user", "content": "q"},
        answer(&m, json!([])),
        answer(&m, json!([text("a")])),
        answer(&m, json!([text(" "), call("1", "ls", json!({}))])),
        {"role": "toolResult", "toolCallId": "1", "toolName": "ls", "content": [], "isError": false},
    ]);
    let sent = sent(&m, &messages, &options());
    let expected = json!([
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"text": "a"}, {"functionCall": {"id": "1", "name": "ls", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "ls", "response": {"output": ""}}}]},
    ]);
    assert_eq!(sent["contents"].to_string(), expected.to_string());
    assert!(sent.get("systemInstruction").is_none() && sent.get("tools").is_none());
}

#[test]
fn signatures_go_back_only_to_the_model_that_made_them_and_only_if_legal() {
    // id, who said it, the signature, whether it is sent
    let cases = [
        ("gemini-2.5-pro", "gemini-2.5-pro", S1, true),
        ("gemini-2.5-pro", "gemini-2.5-pro", S2, true),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c2l=", true),
        ("gemini-2.5-pro", "gemini-2.5-flash", S1, false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "====", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c===", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c2lné", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c2l", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c2_-", false),
        ("gemini-2.5-pro", "gemini-2.5-pro", "c2=n", false),
    ];
    for (id, by, signature, kept) in cases {
        let said = json!([
            signed(thinking("t"), signature),
            signed(text("x"), signature),
            signed(call("1", "ls", json!({})), signature)
        ]);
        let messages = json!([{"role": "user", "content": "q"}, answer(&model(by), said)]);
        let sent = sent(&model(id), &messages, &options());
        for part in sent["contents"][1]["parts"].as_array().unwrap() {
            let found = part["thoughtSignature"].as_str();
            assert_eq!(found, kept.then_some(signature), "{by} {signature:?}");
            assert_eq!(part["thought"] == true, part["text"] == "t" && by == id);
        }
    }
}

#[test]
fn gemini_3_gets_a_mark_in_place_of_a_signature_that_is_not_there() {
    let mark = "skip_thought_signature_validator";
    let encoded = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";
    let cases = [
        (Google::GenerativeAi, "gemini-3-pro", Some(mark)),
        (Google::GenerativeAi, "gemini-flash-latest", Some(mark)),
        (Google::Vertex, "gemini-3-pro", Some(encoded)),
        (Google::GenerativeAi, "gemini-2.5-pro", None),
        (Google::Vertex, "gemini-2.5-pro", None),
    ];
    for (api, id, expected) in cases {
        let calls = json!([signed(call("1", "ls", json!({})), S1), call("2", "ls", json!({}))]);
        let messages = json!([{"role": "user", "content": "q"}, answer(&model("other"), calls.clone())]);
        let foreign = body(&api, &model(id), &messages, &options());
        let parts = &foreign["contents"][1]["parts"];
        assert_eq!(parts[0]["thoughtSignature"].as_str(), expected, "{id}");
        assert!(parts[1].get("thoughtSignature").is_none(), "{id}");
        // The model's own are left as they are.
        let messages = json!([{"role": "user", "content": "q"}, answer(&model(id), calls)]);
        let own = body(&api, &model(id), &messages, &options());
        let parts = &own["contents"][1]["parts"];
        assert_eq!(parts[0]["thoughtSignature"], S1);
        assert!(parts[1].get("thoughtSignature").is_none(), "{id}");
    }
}

#[test]
fn a_conversation_of_any_other_protocol_is_legal_here() {
    let long = format!("call_abc|item_{}+/=", "x".repeat(400));
    let others = [
        ("openai-responses", long.as_str(), "{\"type\":\"reasoning\"}"),
        ("anthropic-messages", "toolu_01", "EqQB+/=="),
        ("openai-completions", "", "reasoning_content"),
        ("mistral-conversations", "abcDEF123", ""),
        ("bedrock-converse-stream", "tooluse_a.b", "sig"),
        ("google-vertex", "ls_1700000000000_1", S1),
    ];
    for (api, id, signature) in others {
        let said = json!([
            signed(thinking("deep"), signature), {"type": "thinking", "thinking": "[r]", "thinkingSignature": "x", "redacted": true},
            signed(text("t"), signature), signed(call(id, "ls", json!({"path": "a"})), signature), call("other id!", "bad name é", json!({}))
        ]);
        let mut foreign = answer(&model("zz"), said);
        foreign["api"] = json!(api);
        let mut failed = answer(&model("zz"), json!([text("half"), call("lost", "ls", json!({}))]));
        failed["stopReason"] = json!("aborted");
        let messages = json!([
            {"role": "system", "content": "s", "toolsAdded": [tool("ls")]},
            {"role": "user", "content": "q"}, foreign, result("other id!", "2"), result(id, "1"),
            failed, {"role": "user", "content": [image("AA=="), text("next")]},
        ]);
        for target in ["gemini-3-pro", "gemini-2.5-pro"] {
            let body = sent(&model(target), &messages, &options());
            check_rules(&body, target == "gemini-3-pro");
            let parts = &body["contents"][1]["parts"];
            assert_eq!(parts[0], json!({"text": "t"}), "{api}");
            assert_eq!(parts.as_array().unwrap().len(), 3, "{api}");
        }
    }
}

/// What Google refuses a request for.
fn check_rules(body: &Value, ids: bool) {
    let contents = body["contents"].as_array().unwrap();
    let mut open: Vec<(Value, Value)> = Vec::new();
    let mut before = "";
    for content in contents {
        let role = content["role"].as_str().unwrap();
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty() && ["user", "model"].contains(&role));
        assert!(role == "user" || before == "user", "turns alternate");
        let results = parts.iter().filter(|part| !part["functionResponse"].is_null());
        assert_eq!(results.count(), open.len(), "all results stand together");
        for part in parts {
            let object = part.as_object().unwrap();
            let kinds = ["text", "inlineData", "functionCall", "functionResponse"];
            let held = kinds.iter().filter(|kind| object.contains_key(**kind));
            assert_eq!(held.count(), 1, "a part is one thing: {part}");
            let named = |field: &str| {
                let name = part[field]["name"].as_str().unwrap();
                let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                assert!(!name.is_empty() && name.chars().all(legal), "{name}");
                let id = &part[field]["id"];
                assert_eq!(id.is_string(), ids, "{part}");
                let text = id.as_str().unwrap_or("x");
                assert!(!text.is_empty() && text.len() <= 64 && text.chars().all(legal));
                (part[field]["name"].clone(), id.clone())
            };
            if object.contains_key("functionCall") {
                assert_eq!(role, "model");
                open.push(named("functionCall"));
            } else if object.contains_key("functionResponse") {
                let answered = named("functionResponse");
                let at = open.iter().position(|call| *call == answered);
                open.swap_remove(at.expect("answers a call"));
            }
        }
        before = role;
    }
    assert!(open.is_empty(), "unanswered: {open:?}");
    assert_eq!(before, "user");
}

#[test]
fn thinking_by_level_or_by_tokens() {
    use ThinkingLevel::{High, Low, Max, Minimal, Off};
    let tokens = |id: &str| Model { reasoning: true, max_tokens: 65536, ..model(id) };
    let gemma = Model {
        thinking_level_map:
            json!({"off": null, "minimal": "MINIMAL", "low": null, "medium": null, "high": "HIGH"})
                .as_object()
                .cloned(),
        ..with_levels("gemma-4-31b-it")
    };
    let can_stop = Model { thinking_level_map: None, ..with_levels("gemini-3-flash") };
    let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    let level = |level: &str| json!({"includeThoughts": true, "thinkingLevel": level});
    let cases = [
        (model("gemini-2.5-pro"), High, Value::Null),
        (tokens("gemini-2.5-pro"), High, budget(32768)),
        (tokens("gemini-2.5-pro"), Minimal, budget(128)),
        (tokens("gemini-2.5-pro"), Off, json!({"thinkingBudget": 128})),
        (tokens("gemini-2.5-flash"), High, budget(24576)),
        (tokens("gemini-2.5-flash"), Max, budget(24576)),
        (tokens("gemini-2.5-flash"), Off, json!({"thinkingBudget": 0})),
        (tokens("gemini-2.5-flash-lite"), Minimal, budget(512)),
        (tokens("gemini-2.5-flash"), Low, budget(777)),
        (tokens("deep-research-preview"), Minimal, budget(-1)),
        (with_levels("gemini-3-pro"), High, level("HIGH")),
        (with_levels("gemini-3-pro"), Max, level("HIGH")),
        (with_levels("gemini-3-pro"), Off, json!({"thinkingLevel": "MINIMAL"})),
        (gemma.clone(), Low, level("HIGH")),
        (gemma, Off, json!({"thinkingLevel": "MINIMAL"})),
        (can_stop, Off, json!({"thinkingBudget": 0})),
        // An answer needs its room too, and a model its least.
        (model_of_limit(4000), High, budget(2976)),
        (model_of_limit(1000), High, budget(128)),
    ];
    for (model, thinking, expected) in cases {
        let options = StreamOptions { thinking, thinking_budgets: vec![(Low, 777)], ..options() };
        let sent = sent(&model, &json!([{"role": "user", "content": "q"}]), &options);
        let found = &sent["generationConfig"]["thinkingConfig"];
        assert_eq!(*found, expected, "{} {thinking:?}", model.id);
    }
}

fn model_of_limit(max_tokens: u64) -> Model {
    Model { reasoning: true, max_tokens, ..model("gemini-2.5-pro") }
}

#[test]
fn a_level_that_google_does_not_know_is_refused_with_its_name() {
    let mut m = with_levels("gemini-3-pro");
    m.thinking_level_map = json!({"high": "ultra"}).as_object().cloned();
    let options = StreamOptions { thinking: ThinkingLevel::High, ..options() };
    let context = testing::context(&json!([{"role": "user", "content": "q"}]));
    let error = testing::ask(&Google::GenerativeAi, &m, &context, &options).unwrap_err();
    assert!(error.message.contains("google/gemini-3-pro: high -> ultra"));
}

#[test]
fn how_tools_may_be_called() {
    use ToolChoice::{Auto, None as Never, Required};
    let mut strict = tool("ls");
    strict["constrainedSampling"] = json!({"type": "json_schema", "strict": "prefer"});
    // model, tool, choice, mode, whether the schema is closed
    let cases = [
        ("gemini-3-pro", tool("ls"), None, Value::Null, false),
        ("gemini-3-pro", tool("ls"), Some(Auto), json!("AUTO"), false),
        ("gemini-3-pro", tool("ls"), Some(Never), json!("NONE"), false),
        ("gemini-3-pro", tool("ls"), Some(Required), json!("ANY"), false),
        ("gemini-3-pro", strict.clone(), None, json!("VALIDATED"), true),
        ("gemini-3-pro", strict.clone(), Some(Auto), json!("VALIDATED"), true),
        ("gemini-3-pro", strict.clone(), Some(Never), json!("NONE"), true),
        ("gemini-2.5-pro", strict.clone(), None, Value::Null, false),
    ];
    for (id, tool, tool_choice, expected, closed) in cases {
        let messages = json!([{"role": "system", "toolsAdded": [tool]}, {"role": "user", "content": "q"}]);
        let options =
            StreamOptions { tool_choice, temperature: Some(0.5), max_tokens: Some(77), ..options() };
        let sent = sent(&model(id), &messages, &options);
        let mode = sent.pointer("/toolConfig/functionCallingConfig/mode");
        assert_eq!(mode.cloned().unwrap_or_default(), expected, "{id}");
        let schema = &sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
        assert_eq!(schema["additionalProperties"] == false, closed, "{id}");
        assert_eq!(sent["generationConfig"], json!({"temperature": 0.5, "maxOutputTokens": 77}));
    }
    strict["constrainedSampling"]["strict"] = json!("require");
    let messages = json!([{"role": "system", "toolsAdded": [strict]}, {"role": "user", "content": "q"}]);
    let context = testing::context(&messages);
    let refused = testing::ask(&Google::GenerativeAi, &model("gemini-2.5-pro"), &context, &options());
    assert!(refused.unwrap_err().message.contains("\"ls\" requires"));
}
