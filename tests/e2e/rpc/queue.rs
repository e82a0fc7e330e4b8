//! Prompts that come during a run, and the end of a run on demand.

use super::{client, conversation, refusal, start, types, until_text};
use crate::server::{Reply, Step, gate};
use serde_json::{Value, json};

#[test]
fn a_prompt_during_a_run_says_where_it_goes() {
    let (open, held) = gate();
    let (_world, _server, mut client) = start([
        Reply::text("one ").then_wait(held).then_text("two"),
        Reply::text("steered"),
        Reply::text("steered again"),
        Reply::text("followed"),
    ]);
    client.prompt("go").unwrap();
    until_text(&mut client);
    assert_eq!(
        refusal(&mut client, "prompt", json!({"message": "no"})),
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    client.request("prompt", json!({"message": "f", "streamingBehavior": "followUp"})).unwrap();
    client.request("prompt", json!({"message": "s1", "streamingBehavior": "steer"})).unwrap();
    client.steer("s2").unwrap();
    assert_eq!(client.state().unwrap().pending_message_count, 3);
    open.send(()).unwrap();
    let events = client.wait_until_settled().unwrap();
    assert_eq!(
        conversation(&mut client),
        [
            "user: go",
            "assistant: one two",
            "user: s1",
            "assistant: steered",
            "user: s2",
            "assistant: steered again",
            "user: f",
            "assistant: followed",
        ]
    );
    // A message leaves its queue when it enters the conversation, and not before.
    let queues: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "queue_update")
        .map(|event| json!([event["steering"], event["followUp"]]))
        .collect();
    assert_eq!(
        queues,
        [
            json!([[], ["f"]]),
            json!([["s1"], ["f"]]),
            json!([["s1", "s2"], ["f"]]),
            json!([["s2"], ["f"]]),
            json!([[], ["f"]]),
            json!([[], []]),
        ]
    );
    let mut kinds = types(&events);
    assert_eq!(kinds.pop(), Some("agent_settled"));
    assert!(!kinds.contains(&"agent_settled"));
    let leaving = kinds.iter().rposition(|kind| *kind == "queue_update").unwrap();
    assert_eq!(kinds[leaving - 1..=leaving + 1], ["turn_start", "queue_update", "message_start"]);
}

#[test]
fn both_queues_can_be_taken_whole() {
    let (_world, server, mut client) = start([Reply::text("a"), Reply::text("b")]);
    client.request("set_steering_mode", json!({"mode": "all"})).unwrap();
    client.request("set_follow_up_mode", json!({"mode": "all"})).unwrap();
    for text in ["1", "2"] {
        client.steer(text).unwrap();
        client.follow_up(text).unwrap();
    }
    // What is queued while nothing runs waits for the next prompt.
    assert_eq!(server.requests().len(), 0);
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(
        conversation(&mut client),
        ["user: go", "user: 1", "user: 2", "assistant: a", "user: 1", "user: 2", "assistant: b"]
    );
}

#[test]
fn an_abort_keeps_the_answer_so_far_and_what_is_queued() {
    let (_world, _server, mut client) =
        start([Reply::text("half").then(Step::Stall), Reply::text("whole"), Reply::text("later")]);
    client.prompt("go").unwrap();
    client.follow_up("after").unwrap();
    until_text(&mut client);
    let id = client.send("abort", Value::Null).unwrap();
    let events = client.wait_until_settled().unwrap();
    // The answer to the abort follows the last event of the run.
    assert_eq!(client.answer(id).unwrap()["success"], json!(true));
    let ended = events.iter().rfind(|event| event["type"] == "message_end").unwrap();
    assert_eq!(ended["message"]["stopReason"], json!("aborted"));
    assert_eq!(conversation(&mut client), ["user: go", "assistant: half"]);
    assert_eq!(client.state().unwrap().pending_message_count, 1);
    client.prompt("again").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(
        conversation(&mut client)[2..],
        ["user: again", "assistant: whole", "user: after", "assistant: later"]
    );
    // Nothing is under way: answered at once.
    client.abort().unwrap();
}

#[test]
fn an_emptied_queue_is_not_looked_at() {
    let (open, held) = gate();
    let (_world, _server, mut client) = start([Reply::text("x").then_wait(held)]);
    client.prompt("go").unwrap();
    until_text(&mut client);
    client.steer("a").unwrap();
    client.follow_up("b").unwrap();
    let cleared = client.request("clear_queue", Value::Null).unwrap();
    assert_eq!(cleared, json!({"steering": ["a"], "followUp": ["b"]}));
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(conversation(&mut client), ["user: go", "assistant: x"]);
}

#[test]
fn abort_and_prompt_is_one_step() {
    let (_world, _server, mut client) = start([Reply::text("half").then(Step::Stall), Reply::text("new")]);
    client.prompt("old").unwrap();
    until_text(&mut client);
    client.request("abort_and_prompt", json!({"message": "other"})).unwrap();
    client.wait_until_settled().unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(conversation(&mut client), ["user: old", "assistant: half", "user: other", "assistant: new"]);
}

#[test]
fn an_immediate_message_skips_the_tools_that_have_not_begun() {
    let (world, _server) = crate::world([
        Reply::stream()
            .then_tool(
                0,
                "t1",
                "bash",
                &json!({"command": "touch one; while [ ! -e go ]; do sleep 0.01; done"}),
            )
            .then_tool(1, "t2", "bash", &json!({"command": "touch two"})),
        Reply::text("ok"),
    ]);
    let mut client = client(&world, "");
    client.request("set_interrupt_mode", json!({"mode": "immediate"})).unwrap();
    client.prompt("go").unwrap();
    client.events_until("tool_execution_start").unwrap();
    client.steer("stop").unwrap();
    world.write("go", "");
    let events = client.wait_until_settled().unwrap();
    let ends: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_execution_end").collect();
    assert_eq!(ends.len(), 2);
    assert_eq!((&ends[0]["isError"], &ends[1]["isError"]), (&json!(false), &json!(true)));
    let text = ends[1]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Skipped: "), "{text}");
    assert!(world.work().join("one").exists() && !world.work().join("two").exists());
    assert_eq!(
        conversation(&mut client)[3..],
        ["toolResult: ".to_owned() + text, "user: stop".into(), "assistant: ok".into()]
    );
}

#[test]
fn a_wait_before_a_retry_ends_on_demand() {
    for (command, last) in [("abort_retry", "Retry cancelled"), ("abort", "Retry cancelled")] {
        let (world, _server) = crate::world([Reply::error(503, "busy"), Reply::text("again")]);
        world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 60000}}"#);
        let mut client = client(&world, "");
        client.prompt("go").unwrap();
        client.events_until("auto_retry_start").unwrap();
        client.request(command, Value::Null).unwrap();
        let events = client.wait_until_settled().unwrap();
        let end = events.iter().find(|event| event["type"] == "auto_retry_end").unwrap();
        assert_eq!((&end["success"], &end["finalError"]), (&json!(false), &json!(last)));
        client.prompt("once more").unwrap();
        client.wait_until_settled().unwrap();
    }
}

#[test]
fn retries_can_be_switched_on() {
    let (world, _server) = crate::world([Reply::error(503, "busy"), Reply::text("again")]);
    world.write_config("settings.json", r#"{"retry": {"enabled": false, "baseDelayMs": 1}}"#);
    let mut client = client(&world, "");
    client.request("set_auto_retry", json!({"enabled": true})).unwrap();
    client.prompt("go").unwrap();
    let events = client.wait_until_settled().unwrap();
    assert!(types(&events).contains(&"auto_retry_start"));
    assert_eq!(client.last_text().unwrap().as_deref(), Some("again"));
}

#[test]
fn a_prompt_without_a_key_is_refused_before_anything_is_stored() {
    let world = crate::agent::World::new();
    world.write_config(
        "models.json",
        r#"{"providers": {"mock": {"baseUrl": "http://127.0.0.1:1/v1",
        "apiKey": "$NO_SUCH_KEY", "api": "openai-completions", "models": [{"id": "m1"}]}}}"#,
    );
    let mut client = client(&world, "--model mock/m1");
    let error = refusal(&mut client, "prompt", json!({"message": "go"}));
    assert_ne!(error, "");
    let state = client.state().unwrap();
    assert!(!state.is_streaming);
    assert_eq!(state.message_count, 0);
    // An answer of the same kind, and no event between.
    assert_eq!(refusal(&mut client, "prompt", json!({"message": "go"})), error);
    assert!(client.close().unwrap().success());
    assert_eq!(world.session_files().len(), 0);
}
