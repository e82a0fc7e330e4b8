//! Handlers that change what a run is made of: the headers of its requests, its prompt, its messages.

use super::{events, install};
use crate::server::Reply;
use crate::world;
use serde_json::json;

/// A key for every protocol: of Codex it has to name an account.
const TOKEN: &str = "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhIn19.x";

#[test]
fn handlers_change_the_headers_of_every_protocol() {
    let apis = [
        "openai-completions",
        "anthropic-messages",
        "openai-responses",
        "azure-openai-responses",
        "openai-codex-responses",
        "google-generative-ai",
        "mistral-conversations",
        "pi-messages",
        "bedrock-converse-stream",
    ];
    for api in apis {
        let (world, server) = world([Reply::error(400, "no"), Reply::error(400, "no")]);
        let arms = r#"    *'"type":"before_provider_headers"'*)
      ok '{"headers":{"X-Kept":"k","X-Given":"other","user-agent":null,"X-Secret-Key":"‹secret:models.p.x-secret-key›","X-New":"n"}}' ;;
"#;
        install(
            &world,
            "x",
            &json!({"events": ["before_provider_headers", "before_provider_request"]}),
            arms,
        );
        let headers = json!({"X-Kept": "k", "X-Given": "g", "X-Gone": "x", "X-Secret-Key": "a-secret-value"});
        let config = json!({"providers": {"p": {"baseUrl": server.url(), "api": api, "apiKey": TOKEN,
            "headers": headers, "models": [{"id": "m"}]}}});
        world.write_config("models.json", &config.to_string());
        world.write_config("settings.json", r#"{"retry":{"enabled":false}}"#);
        let aws =
            [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key"), ("AWS_REGION", "eu-west-1")];
        let pi =
            aws.iter().fold(world.pi().words("--model p/m -p hi"), |pi, (name, value)| pi.env(name, value));
        let ran = pi.run();
        let sent = server.requests();
        let sent = sent.first().unwrap_or_else(|| panic!("{api}: {}", ran.stderr));
        let rows = [
            ("x-kept", Some("k")),
            ("x-given", Some("other")),
            ("x-gone", None),
            ("x-secret-key", Some("a-secret-value")),
            ("x-new", Some("n")),
            ("user-agent", None),
        ];
        for (name, value) in rows {
            assert_eq!(sent.header(name), value, "{api} {name}");
        }
        let told = events(&world);
        let shown = json!({"X-Kept": "k", "X-Given": "g", "X-Gone": "x", "X-Secret-Key": "‹secret:models.p.x-secret-key›"});
        assert_eq!(told[0]["headers"], shown, "{api}");
        let kinds: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["before_provider_headers", "before_provider_request"], "{api}");
    }
}

#[test]
fn headers_that_are_none_are_reported() {
    for answer in [r#"{"headers":{"x":5}}"#, r#"{"headers":["x"]}"#] {
        let (world, server) = world([Reply::text("done")]);
        let arms = format!("    *'\"type\":\"before_provider_headers\"'*) ok '{answer}' ;;\n");
        install(&world, "x", &json!({"events": ["before_provider_headers"]}), &arms);
        let ran = world.pi().words("--model mock/m1 -p hi").run().success();
        assert!(ran.stderr.contains("\"headers\" must be an object of strings and nulls"), "{}", ran.stderr);
        assert_eq!(server.requests()[0].header("x"), None);
    }
    // One that no request can have is an error of the request.
    let (world, _server) = world([Reply::text("done")]);
    let arms = r#"    *'"type":"before_provider_headers"'*) ok '{"headers":{"x\ny":"a"}}' ;;
"#;
    install(&world, "x", &json!({"events": ["before_provider_headers"]}), arms);
    world.write_config("settings.json", r#"{"retry":{"enabled":false}}"#);
    let ran = world.pi().words("--model mock/m1 -p hi").run();
    assert_eq!(ran.code(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("header"), "{}", ran.stderr);
}
