//! Ending by a signal, at whatever moment.

use crate::server::{Reply, Step};
use crate::world;
use serde_json::json;

const JSON: [&str; 5] = ["--model", "mock/m1", "--mode", "json", "hi"];

#[track_caller]
fn ends_by(signal: &str, code: i32) {
    // While the answer streams.
    let (world, _server) = world([Reply::text("half an answer").then(Step::Stall)]);
    let running = world.pi().args(JSON).spawn();
    running.wait_for("half an answer");
    running.signal(signal);
    let ended = running.wait().fails_with(code);
    let updates: Vec<_> = ended
        .events()
        .into_iter()
        .filter_map(|event| {
            event["assistantMessageEvent"]["type"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(updates, ["text_start", "text_delta", "text_end"]);
    let session = world.session();
    let last = &session.last().unwrap()["message"];
    assert_eq!(
        (&last["stopReason"], &last["content"][0]["text"]),
        (&json!("aborted"), &json!("half an answer"))
    );
}

#[test]
fn the_exit_code_names_the_signal_and_the_half_answer_is_kept() {
    ends_by("INT", 130);
    ends_by("TERM", 143);
    ends_by("HUP", 129);
}

#[test]
fn a_running_command_is_killed_with_all_it_started() {
    let tree = "trap '' TERM; (setsid sleep 300 &); nohup sleep 300 >/dev/null 2>&1 & echo up > started; sleep 300";
    let (world, _server) = world([Reply::tool("t", "bash", &json!({"command": tree}))]);
    let running = world.pi().args(JSON).spawn();
    running.wait_for("tool_execution_start");
    while !world.work().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal("INT");
    running.wait().fails_with(130);
    assert_eq!(world.processes(), [0u32; 0]);
    let results: Vec<_> = world
        .session()
        .into_iter()
        .filter(|entry| entry["message"]["role"] == "toolResult")
        .collect();
    assert_eq!(results.len(), 1, "the call has its result");
}

#[test]
fn a_server_that_says_nothing_is_left_at_once() {
    let (world, server) = world([Reply::raw("").then(Step::Stall)]);
    let running = world.pi().args(JSON).spawn();
    server.wait_for(1);
    running.signal("INT");
    running.wait().fails_with(130);
}

#[test]
fn a_command_waits_for_no_input_and_has_no_terminal() {
    let (world, server) = world([
        Reply::tool(
            "t",
            "bash",
            &json!({"command": "cat; read x; echo \"got [$x]\"; tty; true"}),
        ),
        Reply::text("ok"),
    ]);
    world.pi().args(JSON).run().success();
    assert!(
        server.requests()[1]
            .last_text()
            .contains("got []\nnot a tty"),
        "{}",
        server.requests()[1].last_text()
    );
}
