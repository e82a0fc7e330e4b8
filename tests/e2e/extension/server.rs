//! MCP servers that extensions bring.

use super::rpc::client;
use super::{events, install, log};
use crate::agent::{World, wait_until};
use crate::mcp::{SCRIPT, configure};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;

/// An entry that starts a server in `sh` with the tools `echo` and `shout`, which mark their answers with `word`.
fn entry(world: &World, word: &str) -> Value {
    let script = world.home().join("server.sh");
    fs::write(&script, SCRIPT).unwrap();
    json!({"command": "sh", "args": [script.to_string_lossy(), format!("say {word}")], "exposure": "direct"})
}

fn declared(server: &Server, request: usize) -> Vec<String> {
    let body = &server.wait_for(request + 1)[request].body;
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.into_iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("mcp__")).collect()
}

const BOTH: [&str; 2] = ["mcp__near__echo", "mcp__near__shout"];

#[test]
fn a_server_of_an_extension_is_connected_when_the_session_starts() {
    let (world, server) = world([Reply::tool("t1", BOTH[0], &json!({"text": "x"})), Reply::text("done")]);
    let servers = json!({"mcpServers": [{"name": "near", "config": entry(&world, "yes")}]});
    install(&world, "brings", &servers, "");
    world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("done\n");
    assert_eq!(declared(&server, 0), BOTH);
    assert_eq!(server.requests()[1].last_text(), "yes");
    assert!(world.processes_left().is_empty());
}

#[test]
fn a_server_of_the_file_comes_first_and_a_wrong_one_costs_itself() {
    let (world, server) = world([Reply::tool("t1", BOTH[0], &json!({"text": "x"})), Reply::text("done")]);
    configure(&world, "near", "say file", &json!({"exposure": "direct"}));
    let servers = json!({"mcpServers": [{"name": "near", "config": entry(&world, "extension")},
        {"name": "wrong", "config": {"timeout": 3}}]});
    install(&world, "brings", &servers, "");
    let ran = world.pi().words("--model mock/m1 -p hi").run().success();
    for part in ["\"near\" of", "mcp.json is used in its place", "MCP server \"wrong\" of"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert_eq!(server.requests()[1].last_text(), "file");
}

#[test]
fn servers_come_and_go_while_the_session_lives() {
    let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let near = json!({"mcpServers": [{"name": "near", "config": entry(&world, "yes")}]});
    let arms = format!(
        r#"
    *'"method":"command.run"'*'"name":"bring"'*) saved=$id; call b register '{near}' ;;
    *'"method":"command.run"'*'"name":"wrong"'*) saved=$id; call w register '{{"mcpServers":[{{"name":"a b","config":{{"command":"x"}}}}]}}' ;;
    *'"method":"command.run"'*'"name":"take"'*) saved=$id; call t unregister '{{"mcpServers":["near"]}}' ;;
    *'"id":"b"'*) call l mcp.servers '{{}}' ;;
    *'"id":"l"'*|*'"id":"w"'*|*'"id":"t"'*) ok null "$saved" ;;
"#
    );
    let commands = json!([{"name": "bring"}, {"name": "wrong"}, {"name": "take"}]);
    install(
        &world,
        "brings",
        &json!({"commands": commands, "events": ["session_start", "mcp_servers_change"]}),
        &arms,
    );
    // A name belongs to the extension that has it.
    install(
        &world,
        "other",
        &json!({"commands": [{"name": "rob"}], "events": ["session_start"]}),
        &arms.replace("bring\"'*)", "rob\"'*)"),
    );
    let mut client = client(&world);
    let count = |kind: &str| events(&world).into_iter().filter(|event| event["type"] == kind).count();
    wait_until("both programs take part", || count("session_start") == 2);
    let mut run = |text: &str| drop(client.request("prompt", json!({"message": text})).unwrap());
    run("/bring");
    run("/wrong");
    run("/rob");
    let answer = |id: &str| log(&world).into_iter().rev().find(|message| message["id"] == id).unwrap();
    assert!(answer("w")["error"]["message"].as_str().unwrap().contains("\"a b\""), "{}", answer("w"));
    assert!(
        answer("b")["error"]["message"].as_str().unwrap().contains("extensions/brings"),
        "{}",
        answer("b")
    );
    let listed = &answer("l")["result"]["servers"][0];
    assert_eq!((&listed["name"], &listed["config"]), (&json!("near"), &near["mcpServers"][0]["config"]));
    assert!(listed["extensionPath"].as_str().unwrap().ends_with("extensions/brings"), "{listed}");
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(declared(&server, 0), BOTH);
    client.request("prompt", json!({"message": "/take"})).unwrap();
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(declared(&server, 1), [""; 0]);
    client.request("prompt", json!({"message": "/bring"})).unwrap();
    // With its extension the server goes.
    fs::remove_file(world.agent_dir().join("extensions/brings")).unwrap();
    client.request("reload", json!({})).unwrap();
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(declared(&server, 2), [""; 0]);
    client.close().unwrap();
    let seen = events(&world);
    let counts: Vec<usize> = seen
        .iter()
        .filter(|event| event["type"] == "mcp_servers_change")
        .map(|event| event["servers"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts, [1, 0, 1]);
}

#[test]
fn what_the_user_changes_holds_and_servers_end_with_their_program() {
    let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let entry = entry(&world, "yes");
    let far = json!({"mcpServers": [{"name": "far", "config": entry}]});
    let arms = format!(
        r#"
    *'"method":"command.run"'*'"name":"bring"'*) saved=$id; call b register '{far}' ;;
    *'"id":"b"'*) ok null "$saved" ;;
    *'"method":"command.run"'*'"name":"die"'*) exit 3 ;;
"#
    );
    let fields = json!({"commands": [{"name": "bring"}, {"name": "die"}],
        "mcpServers": [{"name": "near", "config": entry}]});
    install(&world, "brings", &fields, &arms);
    let mut client = client(&world);
    let mut declared_after = |line: &str, request: usize| {
        client.request("prompt", json!({"message": line})).unwrap();
        client.prompt("hi").unwrap();
        client.wait_until_settled().unwrap();
        declared(&server, request)
    };
    assert_eq!(declared_after("/mcp disable near", 0), [""; 0]);
    assert_eq!(declared_after("/bring", 1), ["mcp__far__echo", "mcp__far__shout"]);
    assert_eq!(declared_after("/die", 2), [""; 0]);
    client.close().unwrap();
}

#[test]
fn without_mcp_a_server_is_reported() {
    let (world, server) = world([Reply::text("done")]);
    let servers = json!({"mcpServers": [{"name": "near", "config": entry(&world, "yes")}]});
    install(&world, "brings", &servers, "");
    let ran = world.pi().words("--model mock/m1 --no-mcp -p hi").run().success();
    assert!(ran.stderr.contains("\"near\" is not connected"), "{}", ran.stderr);
    assert_eq!(declared(&server, 0), [""; 0]);
}
