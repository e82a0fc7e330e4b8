//! Every command: its answer when it is right, when it is wrong, and in each state of the session.

use super::{client, refusal, start, types};
use crate::agent::World;
use crate::server::{Reply, gate};
use pi::client::Client;
use serde_json::{Value, json};

/// A command, fields that are right, the keys of its data, and fields that are wrong.
type Row = (&'static str, Value, &'static [&'static str], Option<Value>);

/// The commands that leave the conversation as it is.
fn rows() -> Vec<Row> {
    vec![
        ("ping", json!({}), &[], None),
        (
            "get_state",
            json!({}),
            &[
                "model",
                "thinkingLevel",
                "isStreaming",
                "isCompacting",
                "steeringMode",
                "followUpMode",
                "sessionFile",
                "sessionId",
                "autoCompactionEnabled",
                "messageCount",
                "pendingMessageCount",
                "interruptMode",
                "autoRetryEnabled",
                "activeTools",
                "cwd",
                "protocolVersion",
                "referenceVersion",
                "capabilities",
            ],
            None,
        ),
        ("get_messages", json!({}), &["messages"], None),
        (
            "get_messages",
            json!({"offset": 0, "limit": 1}),
            &["messages", "total", "nextOffset"],
            Some(json!({"limit": "x"})),
        ),
        ("get_entries", json!({}), &["entries", "leafId"], Some(json!({"since": "nope"}))),
        (
            "get_session_stats",
            json!({}),
            &[
                "sessionFile",
                "sessionId",
                "userMessages",
                "assistantMessages",
                "toolCalls",
                "toolResults",
                "totalMessages",
                "tokens",
                "cost",
            ],
            None,
        ),
        ("get_fork_messages", json!({}), &["messages"], None),
        ("get_branch_messages", json!({}), &["messages"], None),
        ("get_last_assistant_text", json!({}), &["text"], None),
        ("get_available_models", json!({}), &["models"], None),
        ("get_available_thinking_levels", json!({}), &["levels"], None),
        ("get_commands", json!({}), &["commands"], None),
        ("get_tools", json!({}), &["tools"], None),
        (
            "set_active_tools",
            json!({"toolNames": ["read", "bash", "edit", "write"]}),
            &["toolNames"],
            Some(json!({"toolNames": "read"})),
        ),
        (
            "set_model",
            json!({"provider": "mock", "modelId": "m1"}),
            &["id", "provider", "api", "baseUrl"],
            Some(json!({"provider": "mock", "modelId": "none"})),
        ),
        ("cycle_model", json!({}), &[], None),
        ("set_thinking_level", json!({"level": "high"}), &[], Some(json!({"level": "deep"}))),
        ("cycle_thinking_level", json!({}), &[], None),
        ("set_steering_mode", json!({"mode": "one-at-a-time"}), &[], Some(json!({"mode": "none"}))),
        ("set_follow_up_mode", json!({"mode": "one-at-a-time"}), &[], Some(json!({"mode": 1}))),
        ("set_interrupt_mode", json!({"mode": "wait"}), &[], Some(json!({"mode": "never"}))),
        ("set_auto_compaction", json!({"enabled": true}), &[], Some(json!({"enabled": 1}))),
        ("set_auto_retry", json!({"enabled": false}), &[], Some(json!({}))),
        ("set_cumulative_events", json!({"enabled": false}), &[], Some(json!({"enabled": null}))),
        ("set_session_name", json!({"name": "n"}), &[], Some(json!({"name": "  "}))),
        ("steer", json!({"message": "s"}), &["disposition"], Some(json!({"message": ["s"]}))),
        ("follow_up", json!({"message": "f"}), &["disposition"], Some(json!({}))),
        ("clear_queue", json!({}), &["steering", "followUp"], None),
        (
            "bash",
            json!({"command": "true"}),
            &["output", "exitCode", "cancelled", "truncated"],
            Some(json!({"command": true})),
        ),
        ("abort_bash", json!({}), &[], None),
        ("abort_retry", json!({}), &[], None),
    ]
}

#[track_caller]
fn check_all(client: &mut Client) {
    for (name, fields, keys, wrong) in rows() {
        let data = client.request(name, fields).unwrap_or_else(|error| panic!("{name}: {error}"));
        for key in keys {
            assert!(data.get(key).is_some(), "{name} has no {key}: {data}");
        }
        if keys.is_empty() {
            assert_eq!(data, Value::Null, "{name}");
        }
        if let Some(wrong) = wrong {
            assert_ne!(refusal(client, name, wrong), "", "{name}");
        }
    }
}

#[test]
fn commands_are_answered_in_every_state() {
    let (open, held) = gate();
    let (_world, _server, mut client) = start([
        Reply::text("one ").then_wait(held).then_text("two"),
        Reply::stream().then(crate::server::Step::Stall),
    ]);
    check_all(&mut client);
    assert!(!client.state().unwrap().is_streaming);

    client.prompt("go").unwrap();
    assert!(client.state().unwrap().is_streaming);
    check_all(&mut client);
    assert!(client.state().unwrap().is_streaming);
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    check_all(&mut client);

    client.prompt("stall").unwrap();
    client.abort().unwrap();
    assert!(!client.state().unwrap().is_streaming);
    check_all(&mut client);
    assert!(client.close().unwrap().success());
}

#[test]
fn events_of_a_prompt_come_in_the_documented_order() {
    let call = json!({"command": "echo x"});
    let (_world, _server, mut client) = start([Reply::tool("t1", "bash", &call), Reply::text("done")]);
    let id = client.send("prompt", json!({"message": "go"})).unwrap();
    // The answer stands before the first event.
    assert_eq!(client.answer(id).unwrap()["success"], json!(true));
    let events = client.wait_until_settled().unwrap();
    let mut types = types(&events);
    types.retain(|kind| *kind != "tool_execution_update");
    assert_eq!(
        types,
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end", // system
            "message_start",
            "message_end", // user
            "message_start",
            "message_update",
            "message_end",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end", // tool result
            "turn_end",
            "turn_start",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    assert_eq!(client.last_text().unwrap().as_deref(), Some("done"));
    let stats = client.request("get_session_stats", Value::Null).unwrap();
    let count = |key: &str| stats[key].as_u64().unwrap();
    assert_eq!(
        ["userMessages", "assistantMessages", "toolCalls", "toolResults", "totalMessages"].map(count),
        [1, 2, 1, 1, 5]
    );
    assert_eq!(stats["tokens"]["total"], json!(214));
}

#[test]
fn bad_lines_are_answered_and_cost_nothing_else() {
    let (_world, _server, mut client) = start([]);
    let rows: [(&[u8], Value); 8] = [
        (b"nonsense", json!("parse")),
        (b"{\"type\":\"ping\"", json!("parse")),
        (b"{\"type\":\"\xff\"}", json!("\u{fffd}")),
        (b"\x00\x01", json!("parse")),
        (b"null", Value::Null),
        (b"[1]", Value::Null),
        (b"{}", Value::Null),
        (b"{\"type\":\"fly\"}", json!("fly")),
    ];
    for (line, command) in rows {
        client.send_line(line).unwrap();
        let answer = client.next_event().unwrap();
        assert_eq!(answer["type"], json!("response"));
        assert_eq!(answer["success"], json!(false));
        assert_eq!(answer["command"], command, "{answer}");
        if command == json!("parse") {
            let error = answer["error"].as_str().unwrap();
            assert!(error.starts_with("Failed to parse command: "), "{error}");
        }
    }
    // Blank lines and answers to nobody are passed over; CR is cut off; ids come back as they are.
    client.send_line(b"\r\n\n  \n{\"type\":\"extension_ui_response\",\"id\":\"x\"}").unwrap();
    client.send_line(b"{\"id\":{\"a\":[1]},\"type\":\"nope\"}\r").unwrap();
    let answer = client.next_event().unwrap();
    assert_eq!(
        answer,
        json!({"id": {"a": [1]}, "type": "response", "command": "nope", "success": false,
            "error": "Unknown command: nope"})
    );
    client
        .send_line("{\"id\":\"n\",\"type\":\"set_session_name\",\"name\":\"a\u{2028}b\"}".as_bytes())
        .unwrap();
    let event = client.next_event().unwrap();
    assert_eq!(event["name"], json!("a\u{2028}b"));
}

#[test]
fn models_and_thinking_levels_follow_the_model() {
    let (world, server) = crate::world([]);
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m1", "reasoning": true}, {"id": "m2", "reasoning": true, "thinkingLevelMap": {"xhigh": "x"}},
                   {"id": "m3"}]}}});
    world.write_config("models.json", &models.to_string());
    let mut client = client(&world, "--model mock/m1");
    let level = |client: &mut Client, command: &str, fields: Value| {
        client.request(command, fields).unwrap();
        client.state().unwrap().thinking_level
    };
    assert_eq!(level(&mut client, "set_thinking_level", json!({"level": "xhigh"})), "high");
    assert_eq!(client.next_event().unwrap(), json!({"type": "thinking_level_changed", "level": "high"}));
    assert_eq!(level(&mut client, "cycle_thinking_level", Value::Null), "off");
    let cycled = client.request("cycle_model", Value::Null).unwrap();
    assert_eq!((&cycled["model"]["id"], &cycled["isScoped"]), (&json!("m2"), &json!(false)));
    assert_eq!(level(&mut client, "set_thinking_level", json!({"level": "xhigh"})), "xhigh");
    assert_eq!(level(&mut client, "set_model", json!({"provider": "mock", "modelId": "m3"})), "off");
    assert_eq!(client.request("cycle_thinking_level", Value::Null).unwrap(), Value::Null);
    assert_eq!(
        refusal(&mut client, "set_model", json!({"provider": "openai", "modelId": "gpt-4o"})),
        "Model not found: openai/gpt-4o"
    );
    drop(client);
    let mut scoped = super::client(&world, "--models mock/m1:low,mock/m3");
    let ids: Vec<Value> = (0..3)
        .map(|_| scoped.request("cycle_model", Value::Null).unwrap())
        .map(|cycled| json!([cycled["model"]["id"], cycled["thinkingLevel"], cycled["isScoped"]]))
        .collect();
    assert_eq!(ids, [json!(["m3", "off", true]), json!(["m1", "low", true]), json!(["m3", "off", true])]);
}

#[test]
fn active_tools_change_what_the_model_is_told() {
    let (_world, server, mut client) = start([Reply::text("a"), Reply::text("b")]);
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    let active = client
        .request("set_active_tools", json!({"toolNames": ["grep", "read", "teleport", "grep"]}))
        .unwrap();
    assert_eq!(active, json!({"toolNames": ["grep", "read"]}));
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();
    let tools = |request: &crate::server::Request| -> Vec<String> {
        let tools = request.body["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    let requests = server.requests();
    assert_eq!(tools(&requests[0]), ["read", "bash", "edit", "write"]);
    let mut second = tools(&requests[1]);
    second.sort();
    assert_eq!(second, ["grep", "read"]);
    let all = client.request("get_tools", Value::Null).unwrap();
    let known = all["tools"].as_array().unwrap().iter();
    let active: Vec<&Value> =
        known.filter(|tool| tool["active"] == json!(true)).map(|tool| &tool["name"]).collect();
    assert_eq!(active.len(), 2);
}

#[test]
fn images_and_documents_reach_the_model() {
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let (_world, server, mut client) = start([Reply::text("seen"), Reply::text("seen")]);
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    client.request("prompt", json!({"message": "look", "images": [image]})).unwrap();
    client.wait_until_settled().unwrap();
    let broken = json!({"type": "image", "data": "?", "mimeType": "image/png"});
    let document = json!({"id": "1", "type": "document", "fileName": "a.txt", "mimeType": "text/plain", "size": 1,
        "content": "YQ==", "extractedText": "the words"});
    client
        .request("prompt", json!({"message": "read", "images": [broken], "attachments": [document]}))
        .unwrap();
    client.wait_until_settled().unwrap();
    let requests = server.requests();
    let content = &requests[0].messages().last().unwrap()["content"];
    assert_eq!(content[0]["text"], json!("look"));
    assert_eq!(content[1]["image_url"]["url"], json!(format!("data:image/png;base64,{PNG}")));
    let text = requests[1].last_text();
    assert!(text.starts_with("read\n\n[Document: a.txt]\nthe words\n\n[Image omitted: "), "{text}");
}

#[test]
fn the_older_form_is_spoken_on_request() {
    let (world, _server) = crate::world([Reply::text("hi"), Reply::text("there")]);
    let mut client = client(&world, "--cumulative-events --ready");
    let ready = client.next_event().unwrap();
    assert_eq!((&ready["type"], &ready["protocolVersion"]), (&json!("ready"), &json!(1)));
    client.send_line(br#"{"type":"message","content":"one"}"#).unwrap();
    let events = client.wait_until_settled().unwrap();
    let update = events.iter().find(|event| event["type"] == "message_update").unwrap();
    assert_eq!(update["message"]["role"], json!("assistant"));
    assert!(update["assistantMessageEvent"]["partial"].is_object());
    client.request("bash", json!({"command": "echo x"})).unwrap();
    let events = client.events_until("bash_end").unwrap();
    assert_eq!(events.last().unwrap()["message"]["output"], json!("x\n"));
    client.send_line(b"x").unwrap();
    assert_eq!(client.next_event().unwrap()["type"], json!("error"));
    assert_eq!(client.next_event().unwrap()["type"], json!("response"));

    client.request("set_cumulative_events", json!({"enabled": false})).unwrap();
    client.prompt("two").unwrap();
    let events = client.wait_until_settled().unwrap();
    assert!(events.iter().all(|event| event["assistantMessageEvent"].get("partial").is_none()));
    client.send_line(br#"{"type":"interrupt"}"#).unwrap();
    assert_eq!(client.next_event().unwrap(), json!({"type": "interrupted"}));
}

#[test]
fn files_on_the_command_line_are_refused() {
    let world = World::new();
    let outcome = world.pi().words("--mode rpc @x").run().fails_with(1);
    assert_eq!(outcome.stderr, "Error: @file arguments are not supported in RPC mode\n");
    assert_eq!(outcome.stdout, "");
}
