//! `--mode json`: every event, one line each.

use crate::server::{Reply, gate};
use crate::world;
use serde_json::{Value, json};

const JSON: [&str; 4] = ["--model", "mock/m1", "--mode", "json"];

#[test]
fn a_plain_run_has_the_documented_order() {
    let (world, _server) = world([Reply::text("Hello")]);
    let outcome = world.pi().args(JSON).args(["hi"]).run().success();
    assert_eq!(
        outcome.event_types(),
        [
            "session",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    let events = outcome.events();
    assert_eq!(events[0]["version"], 3);
    assert_eq!(events[0]["cwd"], world.work().to_str().unwrap());
    let roles: Vec<&Value> =
        events.iter().filter(|e| e["type"] == "message_end").map(|e| &e["message"]["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    let started = events.iter().filter(|e| e["type"] == "message_start").nth(2).unwrap();
    assert_eq!(started["message"]["stopReason"], "pending");
    let ended = events.iter().rfind(|e| e["type"] == "message_end").unwrap();
    assert_eq!(ended["message"]["stopReason"], "stop");
    assert_eq!(ended["message"]["usage"]["totalTokens"], 107);
    assert_eq!(events.iter().find(|e| e["type"] == "agent_end").unwrap()["willRetry"], false);
}

#[test]
fn updates_are_linear() {
    let (world, _server) = world([Reply::text("Hel").then_text("lo")]);
    let events = world.pi().args(JSON).args(["hi"]).run().success().events();
    let updates: Vec<&Value> = events.iter().filter(|e| e["type"] == "message_update").collect();
    let steps: Vec<&Value> = updates.iter().map(|e| &e["assistantMessageEvent"]).collect();
    assert_eq!(steps[0], &json!({"type": "text_start", "contentIndex": 0}));
    assert_eq!(steps[1], &json!({"type": "text_delta", "contentIndex": 0, "delta": "Hel"}));
    assert_eq!(steps.last().unwrap(), &&json!({"type": "text_end", "contentIndex": 0, "content": "Hello"}));
    assert!(updates.iter().all(|e| e.get("message").is_none() && e["usage"].is_object()));
}

#[test]
fn cumulative_events_carry_the_message_so_far() {
    let (world, _server) = world([
        Reply::text("Hel").then_text("lo").then_tool(0, "t", "read", &json!({"path": "x"})),
        Reply::text("done"),
    ]);
    let events = world.pi().args(JSON).args(["--cumulative-events"]).args(["hi"]).run().success().events();
    let texts: Vec<&str> = events
        .iter()
        .filter(|e| e["assistantMessageEvent"]["type"] == "text_delta")
        .filter_map(|e| e["message"]["content"][0]["text"].as_str())
        .collect();
    assert_eq!(texts, ["Hel", "Hello", "done"]);
    for event in events.iter().filter(|e| e["type"] == "message_update") {
        assert_eq!(event["message"], event["assistantMessageEvent"]["partial"]);
    }
}

#[test]
fn tool_calls_start_in_order_and_their_results_follow_in_order() {
    let (world, server) = world([
        Reply::tool("slow", "bash", &json!({"command": "until [ -e go ]; do sleep 0.02; done; echo A"}))
            .then_tool(1, "fast", "bash", &json!({"command": "touch go; echo B"})),
        Reply::text("done"),
    ]);
    let events = world.pi().args(JSON).args(["go"]).run().success().events();
    let ids = |kind: &str| -> Vec<&str> {
        events.iter().filter(|e| e["type"] == kind).filter_map(|e| e["toolCallId"].as_str()).collect()
    };
    // The first call ends only because the second runs beside it.
    assert_eq!(ids("tool_execution_start"), ["slow", "fast"]);
    let mut ends = ids("tool_execution_end");
    ends.sort_unstable();
    assert_eq!(ends, ["fast", "slow"]);
    let results: Vec<(&str, &str)> = events
        .iter()
        .filter(|e| e["type"] == "message_end" && e["message"]["role"] == "toolResult")
        .map(|e| {
            (
                e["message"]["toolCallId"].as_str().unwrap(),
                e["message"]["content"][0]["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(results, [("slow", "A\n"), ("fast", "B\n")]);
    let turn = events.iter().find(|e| e["type"] == "turn_end").unwrap();
    assert_eq!(turn["toolResults"].as_array().unwrap().len(), 2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn events_come_before_the_answer_is_complete() {
    let (open, held) = gate();
    let (world, _server) = world([Reply::text("first ").then_wait(held).then_text("second")]);
    let running = world.pi().args(JSON).args(["x"]).spawn();
    running.wait_for(r#""delta":"first ""#);
    open.send(()).unwrap();
    running.wait().success();
}

#[test]
fn a_failed_answer_is_an_event_and_an_exit_code() {
    let (world, _server) = world([Reply::error(400, "no such thing")]);
    let outcome = world.pi().args(JSON).args(["x"]).run().fails_with(1);
    let events = outcome.events();
    let ended = events.iter().rfind(|e| e["type"] == "message_end").unwrap();
    assert_eq!(ended["message"]["stopReason"], "error");
    assert!(ended["message"]["errorMessage"].as_str().unwrap().contains("no such thing"));
    let turn = events.iter().find(|e| e["type"] == "turn_end").unwrap();
    assert_eq!(turn["toolResults"], json!([]));
    assert_eq!(events.last().unwrap()["type"], "agent_settled");
}

#[test]
fn separators_inside_strings_are_data() {
    let (world, _server) = world([Reply::text("a\u{2028}b\u{2029}c\u{85}d")]);
    let outcome = world.pi().args(JSON).args(["x\u{2028}y"]).run().success();
    for line in outcome.stdout.split_terminator('\n') {
        serde_json::from_str::<Value>(line).unwrap();
    }
}
