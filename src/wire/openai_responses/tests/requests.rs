//! What is sent beside the conversation.

use super::conversation::{image, sent};
use super::*;
use crate::llm::event::ErrorKind;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{CacheRetention, ToolChoice};
use crate::wire::testing::{context, tool};

#[test]
fn codex_takes_no_request_without_instructions() {
    let codex = model(Variant::Codex, json!({}));
    let messages = json!([{"role": "user", "content": "q"}]);
    let found = sent(Variant::Codex, &codex, &messages, &options());
    assert!(found["instructions"].as_str().is_some_and(|text| !text.is_empty()));
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
        let options = StreamOptions { thinking: level, ..options() };
        let found = sent(variant, &m, &messages, &options);
        let found = (&found["reasoning"], &found["include"]);
        assert_eq!(found, (&reasoning, include), "{variant:?} {provider} {map} {level:?}");
    }
    let plain = model(Variant::OpenAi, json!({}));
    let options = StreamOptions { thinking: High, ..options() };
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
        let m = model(variant, json!({"compat": compat, "baseUrl": "https://x.example"}));
        let options = StreamOptions { cache, session_id: Some("é".repeat(70)), ..options() };
        let found = sent(variant, &m, &json!([{"role": "user", "content": "q"}]), &options);
        let fields = ["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"];
        let found: Value = fields.iter().map(|name| found[*name].clone()).collect();
        assert_eq!(found, expected, "{variant:?} {compat} {cache:?}");
    }
}

#[test]
fn limits_choices_and_what_the_user_names_outright() {
    let m = model(Variant::OpenAi, json!({"samplingParams": {"top_p": 0.5, "store": true}}));
    let mut options = StreamOptions {
        max_tokens: Some(3),
        temperature: Some(0.25),
        tool_choice: Some(ToolChoice::Required),
        ..options()
    };
    let params = json!({"top_p": 0.9, "service_tier": "flex"});
    options.sampling_params = params.as_object().cloned().unwrap();
    let found = sent(Variant::OpenAi, &m, &json!([{"role": "user", "content": "q"}]), &options);
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

    let unlimited = model(Variant::OpenAi, json!({"compat": {"supportsMaxOutputTokens": false}}));
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
        let m = model(variant, json!({"compat": compat, "baseUrl": "https://x.example"}));
        let found = sent(variant, &m, &messages, &options());
        let strict = |at: usize| found["tools"][at].get("strict").cloned();
        assert_eq!((strict(0), strict(1)), (first, second), "{variant:?} {compat}");
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
                let deferred = if tool["defer_loading"] == true { "?" } else { "" };
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
    assert_eq!(shown(json!({}), Variant::OpenAi), place("developer, user, message, user", "ls cat patch"));
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
            "additional_tools ls, user, message, developer, additional_tools cat patch, developer, user",
            ""
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
fn tools_that_go_are_said_to_be_gone() {
    let compat = json!({"supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true});
    let m = model(Variant::OpenAi, json!({"reasoning": true, "compat": compat}));
    let messages = json!([
        {"role": "system", "content": "s", "toolsAdded": [tool("ls"), tool("rm")]},
        {"role": "user", "content": "q"},
        {"role": "system", "content": "", "toolsRemoved": [{"name": "rm"}, {"name": "ls"}], "toolsAdded": [tool("ls")]},
        {"role": "system", "content": "", "toolsAdded": [tool("cat")]},
        {"role": "system", "content": "", "toolsAdded": [tool("rm")]},
    ]);
    let body = sent(Variant::OpenAi, &m, &messages, &options());
    let items = body["input"].as_array().unwrap().iter().map(|item| match item["tools"].as_array() {
        Some(tools) => tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>().join(" "),
        None => item["content"].as_str().unwrap_or("user").lines().last().unwrap().to_owned(),
    });
    let items: Vec<String> = items.collect();
    let more = "More tools follow.";
    assert!(body.get("tools").is_none());
    assert_eq!(
        [&items[..3], &items[4..6], &items[7..8], &items[9..]].concat(),
        ["ls rm", "s", "user", "ls", "- rm", "cat", "rm"]
    );
    assert_eq!(items[6], "Still gone: rm.");
    assert!(items[3].starts_with(more) && items[8].starts_with(more), "{items:?}");
}

#[test]
fn the_level_is_said_in_place_where_the_model_takes_it() {
    let compat = json!({"supportsMidConvoEffort": true});
    let m = model(
        Variant::OpenAi,
        json!({"reasoning": true, "compat": compat, "baseUrl": "https://api.openai.com/v1"}),
    );
    let mut past = json!({"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": m.api, "provider": m.provider,
        "model": m.id, "stopReason": "stop", "providerThinkingLevel": "low"});
    let update = |effort: &str| json!({"type": "configuration_update", "reasoning": {"effort": effort}});
    let said = |past: &Value, thinking, key: &str| {
        let options = StreamOptions { thinking, api_key: Some(Secret::new(key)), ..options() };
        let messages = json!([{"role": "user", "content": "q"}, past, {"role": "user", "content": "r"}]);
        let body = sent(Variant::OpenAi, &m, &messages, &options);
        let updates = body["input"].as_array().unwrap().iter().enumerate();
        let updates = updates.filter(|(_, item)| item["type"] == "configuration_update");
        let updates: Vec<(usize, Value)> = updates.map(|(at, item)| (at, item.clone())).collect();
        (updates, body["reasoning"]["effort"].as_str().unwrap_or_default().to_owned())
    };
    let both = vec![(1, update("low")), (4, update("high"))];
    assert_eq!(said(&past, ThinkingLevel::High, "sk-1"), (both, "medium".to_owned()));
    // The token of a subscription takes no updates.
    assert_eq!(said(&past, ThinkingLevel::High, "token"), (vec![], "high".to_owned()));
    assert_eq!(said(&past, ThinkingLevel::Off, "sk-1").0, vec![]);
    past["model"] = json!("other");
    assert_eq!(said(&past, ThinkingLevel::High, "sk-1").0, vec![(3, update("high"))]);
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
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("session-id", "s"), ("x-client-request-id", "s"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, router), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-session-id", "s"),
            ("x-openrouter-title", "pi"), ("x-openrouter-categories", "cli-agent"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, json!({"compat": {"sessionAffinityFormat": "openai-nosession"}})), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-client-request-id", "s"), ("x-a", "b")]),
        (Variant::OpenAi, m(Variant::OpenAi, copilot), vec![
            ("content-type", json_), ("accept", json_), ("authorization", &bearer), ("x-own", "1"), ("x-initiator", "user"), ("openai-intent", "conversation-edits"),
            ("copilot-vision-request", "true"), ("session-id", "s"), ("x-client-request-id", "s"), ("x-a", "b")]),
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
        let request = testing::ask(&protocol, &model, &context(&messages), &options).unwrap();
        let found = request.headers.iter();
        let found: Vec<(&str, &str)> = found.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, expected, "{variant:?} {}", model.provider);

        let uncached = StreamOptions { cache: CacheRetention::None, ..options };
        let request = testing::ask(&protocol, &model, &context(&messages), &uncached).unwrap();
        let leads = |(name, _): &(String, String)| name.contains("session") || name.contains("request-id");
        assert!(!request.headers.iter().any(leads), "{variant:?}");
    }
}

#[test]
fn addresses_of_each_variant() {
    let cases = [
        (Variant::OpenAi, "https://api.openai.com/v1/", "https://api.openai.com/v1/responses"),
        (Variant::OpenAi, "https://g/{CLOUDFLARE_ACCOUNT_ID}/openai", "https://g/a1/openai/responses"),
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
        let options = StreamOptions { env: vec![("CLOUDFLARE_ACCOUNT_ID".into(), "a1".into())], ..options() };
        let messages = context(&json!([{"role": "user", "content": "q"}]));
        let request = testing::ask(&OpenAiResponses(variant), &m, &messages, &options).unwrap();
        assert_eq!(request.url, url);
    }
}

#[test]
fn without_a_key_nothing_is_sent_to_the_internet() {
    for variant in VARIANTS {
        let m = model(variant, json!({"baseUrl": "https://x.example"}));
        let mut options = StreamOptions::default();
        let messages = context(&json!([{"role": "user", "content": "q"}]));
        let request = |m: &Model, o: &StreamOptions| testing::ask(&OpenAiResponses(variant), m, &messages, o);
        let error = request(&m, &options).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{variant:?}");
        assert!(error.message.contains(&m.provider));

        let nearby = model(variant, json!({"baseUrl": "http://127.0.0.1:1"}));
        assert!(request(&nearby, &options).is_ok(), "{variant:?}");

        options.headers = vec![("cf-aig-authorization".into(), Some("Bearer x".into()))];
        assert!(request(&m, &options).is_ok(), "{variant:?}");
    }
    let codex = model(Variant::Codex, json!({}));
    let options = StreamOptions { api_key: Some(Secret::new("no-token")), ..StreamOptions::default() };
    let messages = context(&json!([{"role": "user", "content": "q"}]));
    let error = testing::ask(&OpenAiResponses(Variant::Codex), &codex, &messages, &options);
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(!error.message.contains("no-token"));
}

#[test]
fn sampling_parameters_of_the_thinking_level_go_over_those_of_the_model() {
    let fields = json!({"reasoning": true, "samplingParams": {"top_p": 0.5, "min_p": 0.1},
        "samplingParamsByThinkingLevel": {"off": {"top_p": 0.1}, "high": {"top_p": 0.9}}});
    let m = model(Variant::OpenAi, fields);
    for (thinking, expected) in
        [(ThinkingLevel::Off, 0.1), (ThinkingLevel::High, 0.9), (ThinkingLevel::Low, 0.5)]
    {
        let options = StreamOptions { thinking, ..options() };
        let body = sent(Variant::OpenAi, &m, &json!([{"role": "user", "content": "q"}]), &options);
        assert_eq!((&body["top_p"], &body["min_p"]), (&json!(expected), &json!(0.1)), "{thinking:?}");
    }
}
