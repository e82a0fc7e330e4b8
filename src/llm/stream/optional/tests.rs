//! What is left out of a request, and what is said of it.

use super::*;
use crate::llm::event::ErrorKind;
use crate::llm::options::ToolChoice;
use serde_json::{Value, json};

struct Case {
    model: Model,
    options: StreamOptions,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A request to an address that no other test uses.
fn request(url: &str, api: &str, body: &str) -> Case {
    Case {
        model: Model { id: "m1".into(), api: api.into(), ..Model::default() },
        options: StreamOptions::default(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

impl Case {
    /// Sends the request to a server that refuses `names`, one after another, in Anthropic's form. Gives
    /// the body that went through, or the error, and the notice.
    fn send(&self, names: &[&str]) -> (Result<String, String>, Option<String>) {
        let mut headers = self.headers.clone();
        let mut body: Body<'_> = serde_json::from_slice(&self.body).unwrap();
        let mut fitting = Fitting::new(&self.model, &self.options, &self.url, &mut headers, &mut body);
        for name in names {
            let message = format!("{name}: Extra inputs are not permitted");
            let said = json!({"error": {"message": message}}).to_string();
            let mut error =
                StreamError { status: Some(400), ..StreamError::new(ErrorKind::Provider, "400 no") };
            if !fitting.adapt(&mut error, &said, &mut headers, &mut body) {
                return (Err(error.message), None);
            }
        }
        (Ok(String::from_utf8(body.to_bytes().unwrap()).unwrap()), fitting.settle())
    }
}

#[test]
fn a_refused_parameter_goes_and_the_rest_stays_as_it_was() {
    let body = r#"{"model":"m1","messages":[{"a":1.0e3}],"store":false,"stream_options":{"x":1}}"#;
    let case = request("http://one.test/a?key=k", "openai-completions", body);
    let left = r#"{"model":"m1","messages":[{"a":1.0e3}],"stream_options":{"x":1}}"#;
    assert_eq!(case.send(&["store"]), (Ok(left.to_owned()), None));
    // The next request goes without it from the start, to this address and model only.
    assert_eq!(case.send(&[]).0.unwrap(), left);
    let other = request("http://one.test/b", "openai-completions", body);
    assert_eq!(other.send(&[]).0.unwrap(), body);
    let other = Case { model: Model { id: "m2".into(), ..case.model.clone() }, ..case };
    assert_eq!(other.send(&[]).0.unwrap(), body);
}

#[test]
fn where_parameters_stand() {
    let rows = [
        (
            "tools.0.function.strict",
            json!({"tools": [{"function": {"strict": true, "a": 1}}, {"b": 2}]}),
            json!({"tools": [{"function": {"a": 1}}, {"b": 2}]}),
        ),
        (
            "toolConfig.tools.0.toolSpec.strict",
            json!({"toolConfig": {"tools": [{"toolSpec": {"name": "a", "strict": true}}]}}),
            json!({"toolConfig": {"tools": [{"toolSpec": {"name": "a"}}]}}),
        ),
        ("tools.3.custom.strict", json!({"tools": [{"strict": true, "a": 1}]}), json!({"tools": [{"a": 1}]})),
        (
            "tools.0.custom.eager_input_streaming",
            json!({"tools": [{"eager_input_streaming": true}]}),
            json!({"tools": [{}]}),
        ),
        (
            "messages.0.content.0.text.cache_control.ttl",
            json!({"messages": [{"content": [{"cache_control": {"type": "e", "ttl": "1h"}}]}, {"content": "x"}]}),
            json!({"messages": [{"content": [{"cache_control": {"type": "e"}}]}, {"content": "x"}]}),
        ),
        (
            "system.0.cache_control",
            json!({"system": [{"cache_control": {}}], "tools": [{"cache_control": {}}]}),
            json!({"system": [{}], "tools": [{}]}),
        ),
        ("text.verbosity", json!({"text": {"verbosity": "low"}}), json!({})),
        (
            "reasoning.summary",
            json!({"reasoning": {"effort": "low", "summary": "auto"}}),
            json!({"reasoning": {"effort": "low"}}),
        ),
        ("reasoning.effort", json!({"reasoning": {"effort": "low", "summary": "auto"}}), json!({})),
        (
            "generation_config.thinking_config.thinking_level",
            json!({"generationConfig": {"a": 1, "thinkingConfig": {"thinkingLevel": "LOW"}}}),
            json!({"generationConfig": {"a": 1}}),
        ),
        (
            "max_completion_tokens",
            json!({"max_completion_tokens": 5, "z": 1}),
            json!({"max_tokens": 5, "z": 1}),
        ),
        ("max_tokens", json!({"max_tokens": 5}), json!({"max_completion_tokens": 5})),
        ("tool_choice", json!({"tool_choice": "auto"}), json!({})),
        ("toolChoice", json!({"tool_choice": {"type": "auto"}}), json!({})),
    ];
    for (number, (name, before, after)) in rows.iter().enumerate() {
        let url = format!("http://places.test/{number}");
        let case = request(&url, "openai-completions", &before.to_string());
        let left: Value = serde_json::from_str(&case.send(&[name]).0.expect(name)).unwrap();
        assert_eq!(left, *after, "{name}");
    }
}

#[test]
fn what_a_request_is_made_of_is_never_left_out() {
    let body = json!({"model": "m", "messages": [{"reasoning": 1}], "tools": [{"store": 1}], "stream": true,
        "max_tokens": 5, "tool_choice": "required", "reasoning": {}, "store": true, "provider": {}});
    for (api, name, is_advised) in [
        ("anthropic-messages", "model", false),
        ("anthropic-messages", "messages", false),
        ("anthropic-messages", "tools", false),
        ("anthropic-messages", "max_tokens", false),
        ("anthropic-messages", "tool_choice", true),
        ("anthropic-messages", "provider", true),
        ("anthropic-messages", "nothing_of_ours", false),
        ("openai-completions", "stream", false),
        ("openai-completions", "messages.0.reasoning", false),
        ("openai-completions", "tools.0.store", false),
        ("openai-responses", "store", true),
    ] {
        let case = request("https://api.openai.com/v1", api, &body.to_string());
        let mut expected = "400 no".to_owned();
        if is_advised {
            expected = format!("{expected} {ADVICE}");
        }
        assert_eq!(case.send(&[name]), (Err(expected), None), "{api} {name}");
    }
}

#[test]
fn the_limit_is_renamed_once_and_never_back() {
    let case = request("http://limit.test/", "openai-completions", r#"{"max_completion_tokens":5}"#);
    assert!(case.send(&["max_completion_tokens", "max_tokens"]).0.is_err());
    // A request that failed teaches nothing.
    assert_eq!(case.send(&[]).0.unwrap(), r#"{"max_completion_tokens":5}"#);
}

#[test]
fn a_server_that_refuses_the_same_thing_again_is_not_asked_for_ever() {
    let case = request("http://again.test/", "openai-completions", r#"{"store":false}"#);
    assert!(case.send(&["store", "store"]).0.is_err());
    let names: Vec<&Parameter> = PARAMETERS.iter().filter(|row| row.places[0].len() == 1).collect();
    let names: Vec<&str> = names.iter().map(|row| row.words[0]).take(ROUNDS_MAX + 1).collect();
    let body: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!("auto"))).collect();
    let case = request("http://again.test/", "openai-completions", &Value::from(body).to_string());
    assert!(case.send(&names[..ROUNDS_MAX]).0.is_ok());
    let case = Case { url: "http://again.test/b".into(), ..case };
    assert!(case.send(&names).0.is_err());
}

#[test]
fn only_what_the_user_chose_goes_with_a_notice_and_once() {
    let body = r#"{"reasoning_effort":"low","top_k":3,"seed":1}"#;
    let mut case = request("http://host.test:1/", "openai-completions", body);
    let own = json!({"topK": 3, "top_k": 3, "seed": 1});
    assert_eq!(case.send(&["reasoning_effort"]).1, None);
    // The parameter is known to be refused, and now it is missed.
    case.options.thinking = ThinkingLevel::High;
    let said = |names: &str| format!("host.test does not take {names}: requests to m1 go without it");
    assert_eq!(case.send(&[]), (Ok(r#"{"top_k":3,"seed":1}"#.into()), Some(said("reasoning_effort"))));
    assert_eq!(case.send(&[]).1, None);
    case.options.sampling_params = own.as_object().unwrap().clone();
    case.options.sampling_params.remove("topK");
    assert_eq!(case.send(&["top_k", "seed"]), (Ok("{}".into()), Some(said("top_k, seed"))));
    assert_eq!(case.send(&[]), (Ok("{}".into()), None));

    let mut case = request("http://host.test:2/", "openai-responses", r#"{"store":false}"#);
    assert_eq!(case.send(&["store"]).1, Some(said("store")));
    case.url = "http://host.test:3/".into();
    case.model.api = "openai-completions".into();
    assert_eq!(case.send(&["store"]).1, None);
    case.url = "http://host.test:4/".into();
    case.body = r#"{"temperature":1}"#.into();
    assert_eq!(case.send(&["temperature"]).1, Some(said("temperature")));
}

#[test]
fn thinking_is_known_by_the_name_that_a_gateway_gives_it() {
    let body = r#"{"a":1,"thinking":{"type":"enabled"},"output_config":{"effort":"low"}}"#;
    let mut sent = request("http://translated.test/", "anthropic-messages", body);
    sent.options.thinking = ThinkingLevel::Low;
    let (left, notice) = sent.send(&["reasoning.effort"]);
    assert_eq!(left.unwrap(), r#"{"a":1}"#);
    assert!(notice.unwrap().contains("thinking"));
}

#[test]
fn a_demand_for_a_call_is_kept_where_the_choice_is_refused() {
    let mut case = request("http://choice.test/", "openai-completions", r#"{"tool_choice":"auto"}"#);
    case.options.tool_choice = Some(ToolChoice::Auto);
    assert_eq!(case.send(&["tool_choice"]), (Ok("{}".into()), None));
    case.body = r#"{"tool_choice":"required"}"#.into();
    assert_eq!(case.send(&[]).0.unwrap(), r#"{"tool_choice":"required"}"#);
}

#[test]
fn betas_are_taken_out_of_their_header() {
    let (fine, tongue) = (BETAS[0], "oauth-2025-04-20");
    let headers = |value: &str| vec![("anthropic-beta".to_owned(), value.to_owned())];
    let case = request("http://beta.test/", "anthropic-messages", "{}");
    for (before, said, after) in [
        (format!("{tongue},{fine}"), "invalid beta flag".to_owned(), headers(tongue)),
        (
            fine.to_owned(),
            format!("Unexpected value(s) `{fine}` for the `anthropic-beta` header"),
            Vec::new(),
        ),
    ] {
        let (mut sent, mut body) = (headers(&before), Body::default());
        let mut error = StreamError { status: Some(400), ..StreamError::new(ErrorKind::Provider, "no") };
        let mut fitting = Fitting::new(&case.model, &case.options, &case.url, &mut sent, &mut body);
        assert!(fitting.adapt(&mut error, &said, &mut sent, &mut body));
        assert_eq!(sent, after);
        assert!(!fitting.adapt(&mut error, &said, &mut sent, &mut body));
    }
}
