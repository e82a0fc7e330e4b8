//! Extensions between pi and providers: requests and answers that they see, models that they add.

use super::{events, install, log};
use crate::agent::World;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;

#[test]
fn requests_and_answers_are_seen_and_the_body_can_be_changed() {
    let (world, server) = world([Reply::text("done")]);
    let arms = r#"
    *'"type":"before_provider_request"'*)
      changed=$(printf '%s' "$line" | sed 's/.*"payload"://; s/}}}$//; s/"hi"/"changed"/'); ok "{\"payload\":$changed}" ;;
"#;
    let names =
        ["before_provider_request", "after_provider_response", "provider_stream_event", "session_shutdown"];
    install(&world, "tap", &json!({"events": names}), arms);
    let ran = world.pi().words("--model mock/m1 -p hi").run();
    let stderr = ran.stderr.clone();
    ran.success().stdout_is("done\n");
    assert_eq!(stderr, "");
    let seen = events(&world);
    let of = |kind: &str| -> Vec<&Value> { seen.iter().filter(|event| event["type"] == kind).collect() };
    assert_eq!(of("before_provider_request")[0]["payload"]["model"], "m1");
    assert_eq!(of("after_provider_response")[0]["status"], 200);
    assert!(of("after_provider_response")[0]["headers"]["content-type"].is_string());
    let pieces = of("provider_stream_event");
    assert_eq!((&pieces[0]["provider"], &pieces[0]["model"]), (&json!("mock"), &json!("m1")));
    assert!(
        pieces.iter().any(|event| event["data"]["choices"][0]["delta"]["content"] == "done"),
        "{pieces:?}"
    );
    // The body has no key.
    assert!(!log(&world).iter().any(|message| message.to_string().contains("test-key")));
    assert_eq!(server.requests()[0].last_text(), "changed");
}

#[test]
fn a_provider_of_an_extension_has_models_at_its_url() {
    let (world, server) = world([Reply::text("done")]);
    let fields = json!({"events": ["session_start"], "providers": [{"name": "mine", "displayName": "Mine", "baseUrl": server.url(),
        "apiKey": "sk-of-mine", "api": "openai-completions", "headers": {"X-Mine": "1"},
        "models": [{"id": "big", "name": "Big", "reasoning": false, "input": ["text"],
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 1000, "maxTokens": 100}]}]});
    install(&world, "mine", &fields, "");
    let listed = world.pi().words("--list-models mine").run().success();
    assert!(listed.stdout.contains("\nmine "), "{}", listed.stdout);
    // There is no session.
    assert!(events(&world).is_empty() && world.processes_left().is_empty());
    world.pi().words("--model mine/big -p hi").run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-of-mine"));
    assert_eq!((requests[0].header("x-mine"), &requests[0].body["model"]), (Some("1"), &json!("big")));
}

const STREAMS: &str = r#"
    *'"method":"provider.stream"'*)
      s=$(printf '%s' "$line" | sed 's/.*"stream":"\([a-z0-9]*\)".*/\1/')
      tell() { printf '{"jsonrpc":"2.0","method":"provider.event","params":{"stream":"%s","event":%s}}\n' "$s" "$1"; }
      tell '{"type":"text_start","contentIndex":0}'
      tell '{"type":"text_delta","contentIndex":0,"delta":"from "}'
      tell '{"type":"text_delta","contentIndex":0,"delta":"outside"}'
      tell '{"type":"text_end","contentIndex":0,"content":"from outside"}'
      ok '{"stopReason":"stop","usage":{"input":5,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":7}}' ;;
"#;

fn streams(world: &World, arms: &str) {
    let provider = json!({"providers": [{"name": "out", "streams": true, "baseUrl": "http://127.0.0.1:9",
        "apiKey": "$OUT_KEY", "api": "own-api", "models": [{"id": "m", "name": "M", "reasoning": false, "input": ["text"],
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 1000, "maxTokens": 100}]}]});
    install(world, "out", &provider, arms);
}

#[test]
fn an_extension_streams_the_answers_of_its_provider() {
    let world = World::new();
    streams(&world, STREAMS);
    let done = world.pi().words("--model out/m --json hi").env("OUT_KEY", "sk-out").run().success();
    let ended =
        done.events().into_iter().rfind(|event| event["type"] == "message_end").unwrap()["message"].take();
    assert_eq!(ended["content"][0]["text"], "from outside");
    assert_eq!((&ended["provider"], &ended["usage"]["output"]), (&json!("out"), &json!(2)));
    let asked = log(&world).into_iter().find(|message| message["method"] == "provider.stream").unwrap();
    let params = &asked["params"];
    assert_eq!((&params["apiKey"], &params["model"]["id"]), (&json!("sk-out"), &json!("m")));
    assert_eq!(params["messages"].as_array().unwrap().last().unwrap()["role"], "user");
    let stored = fs::read_to_string(&world.session_files()[0]).unwrap();
    assert!(!stored.contains("sk-out"));
}

#[test]
fn a_stream_that_fails_is_a_failed_answer() {
    let rows = [
        ("    *'\"method\":\"provider.stream\"'*) fail 'no luck' ;;\n", "no luck"),
        ("    *'\"method\":\"provider.stream\"'*) exit 3 ;;\n", "has ended with exit code 3"),
        (
            "    *'\"method\":\"provider.stream\"'*) ok '{\"stopReason\":\"error\",\"errorMessage\":\"broken inside\"}' ;;\n",
            "broken inside",
        ),
    ];
    for (arms, part) in rows {
        let world = World::new();
        world.write_config("settings.json", r#"{"retry": {"enabled": false}}"#);
        streams(&world, arms);
        let ran = world.pi().words("--model out/m -p hi").env("OUT_KEY", "k").run();
        assert!(ran.code() != 0 && ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn an_extension_names_further_skills_and_templates() {
    let (world, server) = world([Reply::text("done")]);
    world.write("more/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys it\n---\nText");
    world.write("more/greet.md", "---\ndescription: Greets\n---\nSay hello to $1");
    let arms = r#"
    *'"type":"resources_discover"'*) ok '{"skillPaths":["more/deploy"],"promptPaths":["more/greet.md"]}' ;;
"#;
    install(&world, "more", &json!({"events": ["resources_discover"]}), arms);
    world.pi().words("--model mock/m1 -p").args(["/greet Ada"]).run().success().stdout_is("done\n");
    let request = &server.requests()[0];
    assert_eq!(request.last_text(), "Say hello to Ada");
    assert!(request.messages()[0].to_string().contains("Deploys it"));
    assert_eq!(events(&world)[0]["reason"], "startup");
}

#[test]
fn a_known_provider_that_an_extension_moves_gets_nothing_at_its_old_address() {
    let (world, old) = world([]);
    let new = Server::start([Reply::text("one"), Reply::text("two")]);
    let moved = json!({"providers": [{"name": "mock", "baseUrl": new.url(), "apiKey": "sk-of-proxy"}]});
    install(&world, "proxy", &moved, "");
    world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("one\n");
    // Also while the session lives.
    install(
        &world,
        "proxy",
        &json!({"commands": [{"name": "move"}]}),
        &format!(
            "    *'\"method\":\"command.run\"'*) run=$id; call m register '{moved}' ;;\n    *'\"id\":\"m\"'*) ok null \"$run\" ;;\n"
        ),
    );
    let mut client = super::rpc::client(&world);
    client.request("prompt", json!({"message": "/move"})).unwrap();
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    assert!(client.close().unwrap().success());
    assert!(old.requests().is_empty());
    let keys: Vec<Option<String>> =
        new.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert_eq!(keys, vec![Some("Bearer sk-of-proxy".to_owned()); 2]);
}
