//! Which model is asked, what a request may hold, and catalogs that are fetched.

use crate::agent::World;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x04\0\0\0\xb5\x1c\x0c\x02\0\0\0\x0bIDATx\xdacd\xf8\x0f\0\x01\x05\x01\x01'\x18\xe3f\0\0\0\0IEND\xaeB`\x82";

fn with_limits(limits: &Value) -> (World, Server) {
    let (world, server) = world([Reply::text("never")]);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "test-key", "api": "openai-completions",
        "models": [{"id": "m1", "input": ["text", "image"], "inputLimits": limits}]}}});
    world.write_config("models.json", &config.to_string());
    (world, server)
}

#[test]
fn a_request_over_the_limits_is_not_sent() {
    let (world, server) = with_limits(&json!({"maxRequestBytes": 2000}));
    let long = "x".repeat(3000);
    let outcome = world.pi().args(["--model", "mock/m1", "-p", &long]).run();
    outcome.fails_with(1).stderr_has("Not sent: the request has 0.1 MB, and mock/m1 takes at most 0.1 MB");
    assert_eq!(server.connections(), 0);

    let (world, server) = with_limits(&json!({"images": {"maxPerMessage": 1}}));
    world.write("a.png", PNG);
    let args = ["--model", "mock/m1", "-p", "@a.png", "@a.png", "two"];
    let outcome = world.pi().args(args).run();
    outcome.fails_with(1).stderr_has("one message has 2 images");
    assert_eq!(server.connections(), 0);
}

/// Two providers behind one server, which tells what it was asked for.
fn two_providers(settings: &Value) -> (World, Server) {
    let world = World::new();
    let server = Server::start((0..4).map(|_| Reply::text("ok")));
    let models = json!([{"id": "big-1", "reasoning": true}, {"id": "big-2", "reasoning": true, "thinkingLevelMap": {"low": null, "medium": "mid", "xhigh": "very"}}, {"id": "small"}]);
    let provider =
        json!({"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions", "models": models});
    let config = json!({"providers": {"one": provider, "two": provider}});
    world.write_config("models.json", &config.to_string());
    world.write_config("settings.json", &settings.to_string());
    (world, server)
}

#[test]
fn lists_settings_and_levels_decide_on_the_model() {
    // Settings, arguments; provider and model of the session, its level, the word that was sent.
    let none = json!({});
    let rows = [
        (&none, "--models two/big*,small", "two/big-1", "medium", json!("medium")),
        (&none, "--models two/*-2:high", "two/big-2", "high", json!("high")),
        (&none, "--models nothing,small --provider two --model small", "two/small", "off", Value::Null),
        // A model of several providers counts for each of them.
        (&none, "--models big-2,,", "one/big-2", "medium", json!("mid")),
        (&none, "--model two/big-2:low", "two/big-2", "medium", json!("mid")),
        (&none, "--model two/big-2:max", "two/big-2", "xhigh", json!("very")),
        (&none, "--model one/big-1:xhigh", "one/big-1", "high", json!("high")),
        (&none, "--model one/big-1 --thinking off", "one/big-1", "off", Value::Null),
        (&json!({"enabledModels": ["two/small"]}), "", "two/small", "off", Value::Null),
        (
            &json!({"enabledModels": ["one/*"], "defaultProvider": "one", "defaultModel": "small"}),
            "",
            "one/small",
            "off",
            Value::Null,
        ),
        (
            &json!({"defaultProvider": "two", "defaultModel": "big-1", "defaultThinkingLevel": "minimal"}),
            "",
            "two/big-1",
            "minimal",
            json!("minimal"),
        ),
        (
            &json!({"defaultThinkingLevel": "minimal", "modelThinkingLevels": {"two/big-1": "high"}}),
            "--model two/big-1",
            "two/big-1",
            "high",
            json!("high"),
        ),
        (&json!({"defaultThinkingLevel": "low"}), "--model two/big-1", "two/big-1", "low", json!("low")),
    ];
    for (settings, words, model, level, sent) in rows {
        let (world, server) = two_providers(settings);
        world.pi().words(words).args(["-p", "hi"]).run().success();
        let session = world.session();
        let find = |kind: &str| session.iter().find(|entry| entry["type"] == kind).unwrap();
        let change = find("model_change");
        let found =
            format!("{}/{}", change["provider"].as_str().unwrap(), change["modelId"].as_str().unwrap());
        assert_eq!(found, model, "{settings} {words}");
        assert_eq!(find("thinking_level_change")["thinkingLevel"], level, "{settings} {words}");
        assert_eq!(server.requests()[0].body["reasoning_effort"], sent, "{settings} {words}");
    }
}

/// A catalog server for one provider.
fn catalog(body: &str, modified: &str) -> Reply {
    Reply::raw(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: \"v1\"\r\nlast-modified: {modified}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

fn update<'w>(world: &'w World, server: &Server) -> crate::agent::Pi<'w> {
    let base = server.url();
    let base = base.strip_suffix("/v1").unwrap().to_owned();
    world.pi().words("update --models").env("PI_CATALOG_URL", base).env("ZAI_API_KEY", "k-secret")
}

const LATER: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

fn zai(id: &str, base_url: &str) -> Value {
    json!({"id": id, "name": "New", "api": "openai-completions", "provider": "x", "baseUrl": base_url, "reasoning": false,
        "input": ["text"], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 5000, "maxTokens": 500})
}

#[test]
fn catalogs_are_fetched_when_asked_for_and_cannot_move_a_provider() {
    let body = json!({"models": [zai("glm-next", "https://api.z.ai/api/v5"), zai("glm-4.7", "https://evil.test/v1")]});
    let world = World::new();
    let server = Server::start([catalog(&body.to_string(), LATER), Reply::status(304, "text/plain", "")]);
    let outcome = update(&world, &server).run().success();
    let outcome = outcome.stdout_is("Model catalogs refreshed\n").stderr_has("zai: 1 models of the catalog");
    assert!(!outcome.stderr.contains("k-secret"));
    let asked = &server.requests()[0];
    assert_eq!(asked.path, "/api/models/providers/zai");
    assert_eq!(asked.header("authorization"), None);
    let file = world.agent_dir().join("models-store.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let list = || world.pi().words("--list-models glm-").env("ZAI_API_KEY", "k").run().success().stdout;
    assert!(list().contains("glm-next"), "{}", list());
    assert!(list().contains("glm-4.7"), "the built-in one stays");

    // The second time the server is told what is known, and says that it is still so.
    update(&world, &server).run().success();
    assert_eq!(server.requests()[1].header("if-none-match"), Some("\"v1\""));
    assert!(list().contains("glm-next"));

    // A model that a hand put into the file moves nothing either.
    let mut stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    stored["zai"]["models"] = json!([zai("glm-moved", "https://evil.test/v1")]);
    fs::write(&file, stored.to_string()).unwrap();
    assert!(!list().contains("glm-moved"));
    fs::write(&file, "{").unwrap();
    let broken = world.pi().words("--list-models glm-4.7").env("ZAI_API_KEY", "k").run().success();
    assert!(broken.stdout.contains("glm-4.7"));
    broken.stderr_has("models-store.json");
}

#[test]
fn of_openrouter_only_the_models_of_the_key_are_listed() {
    let listed = json!({"data": [
        {"id": "openai/gpt-4o", "context_length": 5000, "pricing": {"prompt": "0.000001"}},
        {"id": "nobody/knows"},
    ]});
    let listed = || Reply::status(200, "application/json", &listed.to_string());
    let missing = || Reply::status(404, "text/plain", "");
    let world = World::new();
    let server = Server::start([
        missing(),
        listed(),
        missing(),
        Reply::status(500, "text/plain", "no"),
        missing(),
        Reply::status(403, "text/plain", ""),
        missing(),
        listed(),
        missing(),
        listed(),
    ]);
    let proxy = json!({"providers": {"openrouter": {"baseUrl": server.url()}}});
    world.write_config("models.json", &proxy.to_string());
    let env = "OPENROUTER_API_KEY";
    let refresh = || {
        let base = format!("http://127.0.0.1:{}", server.port());
        world.pi().words("update --models").env("PI_CATALOG_URL", base).env(env, "k-secret").run()
    };
    let list = || world.pi().words("--list-models openrouter").env(env, "k").run().success().stdout;
    let everything = list();

    refresh().success();
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(requests[1].path, "/v1/models/user");
    assert_eq!(requests[1].header("authorization"), Some("Bearer k-secret"));
    let mine = list();
    assert_eq!(mine.lines().count(), 2, "{mine}");
    assert!(mine.contains("openai/gpt-4o") && mine.contains("5K"), "{mine}");

    // A failure leaves the list as it is; a server without a list brings the catalogue back.
    refresh().fails_with(1).stderr_has("openrouter: OpenRouter model list request failed: 500");
    assert_eq!(list(), mine);
    refresh().success();
    assert_eq!(list(), everything);

    // The list belongs to a key, and goes with it.
    for change in ["auth login openrouter --stdin", "auth logout openrouter"] {
        refresh().success();
        assert_eq!(list(), mine, "{change}");
        world.pi().words(change).stdin("another-key-of-mine").run().success();
        assert_eq!(list(), everything, "{change}");
    }
}

#[test]
fn catalogs_are_not_fetched_offline_nor_left_half_done() {
    let world = World::new();
    let server = Server::start([
        Reply::status(500, "text/plain", "no"),
        Reply::status(500, "text/plain", "no"),
        Reply::status(500, "text/plain", "no"),
        catalog("{\"models\": 3", LATER),
    ]);
    let offline = update(&world, &server).env("PI_OFFLINE", "1").run();
    offline.fails_with(1).stderr_has("PI_OFFLINE allows no network");
    let offline = update(&world, &server).words("--offline").run();
    offline.fails_with(1).stderr_has("--offline allows no network");
    assert_eq!(server.connections(), 0);

    let failed = update(&world, &server).run().fails_with(1);
    failed.stderr_has(
        "Error: Could not refresh model catalogs: zai: Model catalog request failed for zai: 500",
    );
    let broken = update(&world, &server).run().fails_with(1);
    broken.stderr_has("Invalid model catalog for provider \"zai\"");
    let names: Vec<_> = fs::read_dir(world.agent_dir()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains(".tmp")), "{names:?}");
    // Without a key there is nobody's catalog to fetch.
    world.pi().words("update --models").run().success().stdout_is("Model catalogs refreshed\n");
    world.pi().words("update").run().fails_with(1).stderr_has("pi does not replace itself");
    world
        .pi()
        .words("update --models x")
        .run()
        .fails_with(1)
        .stderr_has("--models cannot be combined with a positional source");
}

#[test]
fn a_base_url_of_the_command_line_comes_before_every_other() {
    for (model, key, others) in [
        ("azure-openai-responses/gpt-5.4", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL"),
        ("llama.cpp/x", "LLAMA_API_KEY", "LLAMA_BASE_URL"),
    ] {
        let world = World::new();
        let server = Server::start([Reply::error(400, "reached")]);
        let config = json!({"providers": {"llama.cpp": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "models": [{"id": "x"}]}}});
        world.write_config("models.json", &config.to_string());
        let outcome = world
            .pi()
            .args(["--model", model, "--base-url", &server.url(), "-p", "hi"])
            .env(key, "k")
            .env(others, "http://127.0.0.1:1/elsewhere")
            .run();
        outcome.fails_with(1).stderr_has("reached");
    }
}

#[test]
fn a_router_is_told_who_asks_unless_it_may_not_be() {
    for (settings, telemetry, title) in [
        ("{}", None, Some("pi")),
        ("{}", Some("0"), None),
        (r#"{"enableInstallTelemetry": false}"#, None, None),
        (r#"{"enableInstallTelemetry": false}"#, Some("1"), Some("pi")),
    ] {
        let world = World::new();
        let server = Server::start([Reply::text("ok")]);
        world.write_config("settings.json", settings);
        let mut pi = world
            .pi()
            .args(["--model", "openrouter/openai/gpt-5.5", "--base-url", &server.url(), "-p", "hi"])
            .env("OPENROUTER_API_KEY", "k");
        if let Some(value) = telemetry {
            pi = pi.env("PI_TELEMETRY", value);
        }
        pi.run().success();
        let asked = &server.requests()[0];
        assert_eq!(asked.header("x-openrouter-title"), title, "{settings} {telemetry:?}");
        assert_eq!(asked.header("http-referer"), None);
    }
}

#[test]
fn a_sign_in_offers_the_models_of_the_account() {
    let world = World::new();
    let entry = json!({"github-copilot": {"type": "oauth", "access": "at", "refresh": "rt", "expires": 99_999_999_999_999_u64,
        "availableModelIds": ["gpt-5.4-nano", "gpt-6-sol"]}});
    let listed = |args: &str| {
        let list = world.pi().words(args).run().success().stdout;
        list.lines()
            .skip(1)
            .filter_map(|line| Some(line.split_whitespace().nth(1)?.to_owned()))
            .collect::<Vec<_>>()
    };
    world.write_config("auth.json", &entry.to_string());
    assert_eq!(listed("--list-models github-copilot"), ["gpt-5.4-nano", "gpt-6-sol"]);
    // What is no list of ids says nothing.
    let all = entry.to_string().replace("\"gpt-6-sol\"", "1");
    world.write_config("auth.json", &all);
    assert!(listed("--list-models github-copilot").len() > 5);
}
