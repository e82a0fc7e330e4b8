//! Virtual models: an extension chooses the model of each request.

use super::{install, log};
use crate::agent::{World, wait_until};
use crate::server::{PATIENCE, Reply, Server};
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Chooses `big` for messages of the user and `small` for all else, and counts in its state.
const ROUTES: &str = r#"
    *'"method":"model.route"'*'"reason":"user"'*) ok '{"model":{"provider":"mock","id":"big"},"thinkingLevel":"medium","state":{"n":1}}' ;;
    *'"method":"model.route"'*) ok '{"model":{"provider":"mock","id":"small"},"thinkingLevel":"off"}' ;;
"#;

fn world(replies: impl IntoIterator<Item = Reply>, arms: &str) -> (World, Server) {
    let (world, server) = (World::new(), Server::start(replies));
    let model = |id: &str, window: u64| {
        json!({"id": id, "reasoning": true, "input": ["text"], "contextWindow": window, "maxTokens": 1000,
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}})
    };
    let models = json!([model("big", 100_000), model("small", 50_000)]);
    let mock = json!({"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions", "models": models});
    world.write_config("models.json", &json!({"providers": {"mock": mock}}).to_string());
    world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 1}}"#);
    let auto = json!({"virtualModels": [{"provider": "router", "id": "auto", "name": "Auto",
        "thinkingLevels": ["low", "high"], "contextWindow": 9000, "maxTokens": 500}]});
    install(&world, "router", &auto, arms);
    (world, server)
}

fn routes(world: &World) -> Vec<Value> {
    let asked = log(world).into_iter().filter(|message| message["method"] == "model.route");
    asked.map(|mut message| message["params"].take()).collect()
}

fn models(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| request.body["model"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn requests_go_to_the_chosen_models_and_the_session_names_both() {
    let call = Reply::tool("t1", "bash", &json!({"command": "echo x"}));
    let (world, server) = world([call, Reply::text("one"), Reply::text("two")], ROUTES);
    let first = world.pi().words("--model router/auto:high --json hi").run().success();
    assert_eq!(models(&server), ["big", "small"]);
    assert_eq!(server.requests()[0].body["reasoning_effort"], "medium");
    let appended = first.events().into_iter().find(|event| event["type"] == "entry_appended").unwrap();
    let state = json!({"provider": "router", "modelId": "auto", "state": {"n": 1}});
    assert_eq!(
        (&appended["entry"]["customType"], &appended["entry"]["data"]),
        (&json!("pi.virtual-model-state"), &state)
    );
    let asked = routes(&world);
    assert_eq!((&asked[0]["reason"], &asked[0]["model"]["api"]), (&json!("user"), &json!("pi-virtual")));
    assert_eq!((&asked[0]["thinkingLevel"], asked[0].get("previous")), (&json!("high"), None));
    assert_eq!((&asked[1]["reason"], &asked[1]["state"]), (&json!("continuation"), &json!({"n": 1})));
    assert_eq!(asked[1]["previous"]["model"]["id"], "big");
    assert_eq!(asked[1]["messages"].as_array().unwrap().last().unwrap()["role"], "toolResult");
    // The choice of the user holds in a session that goes on.
    world.pi().words("--continue --json again").run().success();
    assert_eq!(models(&server), ["big", "small", "big"]);
    let entries = world.session();
    let of = |kind: &str| entries.iter().filter(|entry| entry["type"] == kind).cloned().collect::<Vec<_>>();
    let changes = of("model_change");
    assert_eq!((changes.len(), &changes[0]["modelId"]), (1, &json!("auto")));
    assert_eq!(of("thinking_level_change")[0]["thinkingLevel"], "high");
    let answers: Vec<Value> = of("message")
        .into_iter()
        .map(|mut entry| entry["message"].take())
        .filter(|m| m["role"] == "assistant")
        .collect();
    let named: Vec<(&Value, &Value)> =
        answers.iter().map(|answer| (&answer["model"], &answer["thinkingLevel"])).collect();
    let (big, small) = ((&json!("big"), &json!("medium")), (&json!("small"), &json!("off")));
    assert_eq!(named, [big, small, big]);
}

#[test]
fn another_choice_than_a_virtual_model_is_recorded() {
    let replies = ["one", "two", "three"].map(Reply::text);
    let (world, server) = world(replies, ROUTES);
    world.pi().words("--model router/auto -p hi").run().success();
    world.pi().words("--continue --model mock/small -p again").run().success();
    world.pi().words("--continue -p again").run().success();
    assert_eq!(models(&server), ["big", "small", "small"]);
    let changes = world.session().into_iter().filter(|entry| entry["type"] == "model_change");
    let changes: Vec<Value> = changes.map(|mut entry| entry["modelId"].take()).collect();
    assert_eq!(changes, ["auto", "small"]);
}

#[test]
fn a_virtual_model_is_found_by_scopes_and_by_its_id_alone() {
    for (words, settings) in [
        ("--models router/auto -p hi", "{}"),
        ("-p hi", r#"{"enabledModels": ["router/auto"]}"#),
        // The catalogue has one of this id, for which there is no key.
        ("--model auto -p hi", "{}"),
    ] {
        let (world, server) = world([Reply::text("one")], ROUTES);
        world.write_config("settings.json", settings);
        let ran = world.pi().words(words).run().success().stdout_is("one\n");
        assert_eq!(
            (models(&server), ran.stderr.contains("No models match")),
            (vec!["big".to_owned()], false)
        );
    }
}

#[test]
fn a_virtual_model_stands_among_the_models_of_a_provider() {
    let (world, server) = world([Reply::text("one")], ROUTES);
    let auto = json!({"virtualModels": [{"provider": "mock", "id": "auto", "name": "Auto"}]});
    install(&world, "router", &auto, ROUTES);
    world.pi().words("--model mock/auto -p hi").run().success().stdout_is("one\n");
    assert_eq!(models(&server), ["big"]);
}

#[test]
fn without_its_extension_the_model_that_answered_last_goes_on() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")], ROUTES);
    world.pi().words("--model router/auto -p hi").run().success().stdout_is("one\n");
    fs::remove_file(world.agent_dir().join("extensions/router")).unwrap();
    world.pi().words("--continue -p again").run().success().stdout_is("two\n");
    assert_eq!(models(&server), ["big", "big"]);
}

#[test]
fn a_model_that_goes_with_its_extension_is_named() {
    let (world, _server) = world([], ROUTES);
    let mut pi = world.pi().words("--mode rpc --model router/auto");
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).unwrap();
    client.set_patience(PATIENCE);
    client.request("get_state", json!({})).unwrap();
    fs::remove_file(world.agent_dir().join("extensions/router")).unwrap();
    client.request("reload", json!({})).unwrap();
    let refused = client.prompt("hi").unwrap_err().to_string();
    assert!(refused.contains("The virtual model router/auto is not registered"), "{refused}");
    client.close().unwrap();
}

#[test]
fn a_failed_request_is_routed_again_with_what_failed() {
    let (world, server) = world([Reply::error(503, "overloaded"), Reply::text("one")], ROUTES);
    world.pi().words("--model router/auto -p hi").run().success().stdout_is("one\n");
    assert_eq!(models(&server), ["big", "small"]);
    let asked = &routes(&world)[1];
    assert_eq!((&asked["reason"], &asked["failed"]["model"]["id"]), (&json!("retry"), &json!("big")));
    assert!(asked["failed"]["message"]["errorMessage"].as_str().unwrap().contains("overloaded"), "{asked}");
}

#[test]
fn a_route_that_leads_nowhere_is_a_failed_answer() {
    let rows = [
        ("fail 'no luck'", "no luck"),
        (
            "ok '{\"model\":{\"provider\":\"router\",\"id\":\"auto\"},\"thinkingLevel\":\"low\"}'",
            "router/auto chose router/auto",
        ),
        (
            "ok '{\"model\":{\"provider\":\"mock\",\"id\":\"none\"},\"thinkingLevel\":\"low\"}'",
            "chose mock/none",
        ),
        (
            "ok '{\"model\":{\"provider\":\"anthropic\",\"id\":\"claude-opus-4-8\"},\"thinkingLevel\":\"low\"}'",
            "no key",
        ),
        ("exit 3", "has ended with exit code 3"),
    ];
    for (answer, part) in rows {
        let (world, server) = world([], &format!("    *'\"method\":\"model.route\"'*) {answer} ;;\n"));
        let ran = world.pi().words("--model router/auto -p hi").run();
        assert!(ran.code() != 0 && ran.stderr.contains(part), "{part}: {}", ran.stderr);
        assert_eq!(server.requests().len(), 0);
        let failed = world.session().pop().unwrap()["message"].take();
        assert_eq!((&failed["api"], &failed["model"]), (&json!("pi-virtual"), &json!("auto")), "{part}");
        assert_eq!(failed.get("durationMs"), None, "{part}");
    }
}

#[test]
fn a_route_without_a_known_thinking_level_is_taken_without_thinking() {
    for level in ["", ",\"thinkingLevel\":\"deep\""] {
        let arm = format!("ok '{{\"model\":{{\"provider\":\"mock\",\"id\":\"big\"}}{level}}}'");
        let arm = format!("    *'\"method\":\"model.route\"'*) {arm} ;;\n");
        let (world, server) = world([Reply::text("one")], &arm);
        world.pi().words("--model router/auto:high -p hi").run().success().stdout_is("one\n");
        assert_eq!(server.requests()[0].body.get("reasoning_effort"), None, "{level}");
        assert_eq!(world.session().pop().unwrap()["message"]["thinkingLevel"], "off");
    }
}

#[test]
fn a_route_sees_the_conversation_as_it_is_and_the_request_what_handlers_made_of_it() {
    let arms = format!(
        "{ROUTES}{}",
        r#"    *'"type":"context"'*) ok '{"messages":[]}' ;;
"#
    );
    let (world, server) = world([Reply::text("one")], &arms);
    let auto = json!({"events": ["context"], "virtualModels": [{"provider": "router", "id": "auto", "name": "Auto"}]});
    install(&world, "router", &auto, &arms);
    world.pi().words("--model router/auto -p hi").run().success().stdout_is("one\n");
    let asked = &routes(&world)[0];
    assert_eq!(
        (&asked["reason"], &asked["messages"].as_array().unwrap().last().unwrap()["role"]),
        (&json!("user"), &json!("user"))
    );
    let sent = server.requests()[0].body["messages"].as_array().unwrap().clone();
    assert!(sent.iter().all(|message| message["role"] != "user"), "{sent:?}");
}

#[test]
fn a_name_that_a_model_has_is_refused() {
    let (world, _server) = world([Reply::text("one")], "");
    let taken = json!({"virtualModels": [{"provider": "mock", "id": "big", "name": "Taken"}]});
    install(&world, "taken", &taken, "");
    world.pi().words("--model mock/big -p hi").run().success().stdout_is("one\n").stderr_has("mock/big");
}

#[test]
fn a_conversation_that_is_too_large_for_the_chosen_model_is_compacted_first() {
    let call = Reply::tool("t1", "bash", &json!({"command": "echo x"})).with_prompt_tokens(60_000);
    let (world, server) = world([call, Reply::text("the summary"), Reply::text("done")], ROUTES);
    world.write_config("settings.json", r#"{"compaction": {"keepRecentTokens": 1}}"#);
    let ran = world.pi().words("--model router/auto --json hi").run().success();
    assert!(ran.event_types().contains(&"compaction_end".to_owned()), "{:?}", ran.event_types());
    // The summary is asked for beside the conversation, whose request then goes where it was to go.
    let reasons: Vec<Value> = routes(&world).into_iter().map(|mut asked| asked["reason"].take()).collect();
    assert_eq!(reasons, ["user", "continuation", "direct"]);
    assert_eq!(models(&server), ["big", "small", "small"]);
}

#[test]
fn an_abort_ends_a_route_that_never_comes() {
    let (world, server) = world([], "    *'\"method\":\"model.route\"'*) ;;\n");
    let mut pi = world.pi().words("--mode rpc --model router/auto");
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client.prompt("hi").unwrap();
    wait_until("the model is asked for", || !routes(&world).is_empty());
    client.request("abort", json!({})).unwrap();
    client.wait_until_settled().unwrap();
    let state = client.state().unwrap();
    client.close().unwrap();
    assert_eq!(state.model["id"], "auto");
    let last = world.session().pop().unwrap()["message"].take();
    assert_eq!((&last["stopReason"], server.requests().len()), (&json!("aborted"), 0));
    let cancelled = log(&world).into_iter().any(|message| message["method"] == "$/cancelRequest");
    assert!(cancelled && world.processes_left().is_empty());
}
