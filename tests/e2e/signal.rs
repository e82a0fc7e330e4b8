//! Ending by a signal, at whatever moment.

use crate::agent::{World, wait_until};
use crate::server::{Reply, Step};
use crate::world;
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};

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
        .filter_map(|event| event["assistantMessageEvent"]["type"].as_str().map(str::to_owned))
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
fn nothing_is_left_in_the_temporary_folder() {
    for end in ["", "INT", "TERM", "HUP"] {
        let long = Reply::tool("t", "bash", &json!({"command": "seq 100000"}));
        let last = match end {
            "" => Reply::text("done"),
            _ => Reply::text("half an answer").then(Step::Stall),
        };
        let (world, _server) = world([long, last]);
        let running = world.pi().args(["--no-session"]).args(JSON).spawn();
        if end.is_empty() {
            running.wait().success();
        } else {
            running.wait_for("half an answer");
            running.signal(end);
            running.wait();
        }
        let left: Vec<_> =
            std::fs::read_dir(world.tmp()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(left.is_empty(), "{end}: {left:?}");
    }
}

#[test]
fn a_running_command_is_killed_with_all_it_started() {
    let tree =
        "trap '' TERM; (setsid sleep 300 &); nohup sleep 300 >/dev/null 2>&1 & echo up > started; sleep 300";
    let (world, _server) = world([Reply::tool("t", "bash", &json!({"command": tree}))]);
    let running = world.pi().args(JSON).spawn();
    running.wait_for("tool_execution_start");
    wait_until("the command has begun", || world.work().join("started").exists());
    running.signal("INT");
    running.wait().fails_with(130);
    assert_eq!(world.processes(), [0u32; 0]);
    let results: Vec<_> =
        world.session().into_iter().filter(|entry| entry["message"]["role"] == "toolResult").collect();
    assert_eq!(results.len(), 1, "the call has its result");
}

/// What outlives its shell, leaves its session, ignores signals, or has wiped its environment.
const TREE: &str = "trap '' TERM HUP; (setsid sleep 300 &); nohup sleep 300 >/dev/null 2>&1 & \
    sh -c 'sleep 300 & exec sleep 300' & env -i sleep 300 & (sleep 300 & kill -STOP $!) ; \
    echo up > started; sleep 300";

/// Waits until [`TREE`] is up and watched, kills pi, and waits until nothing is left.
#[track_caller]
fn kill_leaves_nothing(world: &World, pid: u32) {
    wait_until("the command has begun", || world.work().join("started").exists());
    world.wait_until_watched();
    let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
#[cfg_attr(not(feature = "sandbox"), ignore)]
fn a_pi_that_is_killed_leaves_nothing_of_a_tool_call() {
    for words in ["", "--sandbox workspace"] {
        let (world, _server) = world([Reply::tool("t", "bash", &json!({"command": TREE}))]);
        let running = world.pi().words(words).args(JSON).spawn();
        kill_leaves_nothing(&world, running.pid());
        running.wait().fails_with(137);
    }
}

#[test]
fn a_pi_that_is_killed_leaves_nothing_of_an_rpc_command() {
    let (world, _server) = world([]);
    let line = json!({"type": "bash", "command": TREE}).to_string() + "\n";
    let mut pi = world.pi().words("--mode rpc");
    pi.command().stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    kill_leaves_nothing(&world, child.id());
    child.wait().unwrap();
}

#[test]
fn a_pi_that_is_killed_takes_what_outlived_its_command_along_unless_that_is_kept() {
    for (keep, kept) in [(false, 0), (true, 1)] {
        let command = "sleep 300 >/dev/null 2>&1 &";
        let (world, server) = world([
            Reply::tool("t", "bash", &json!({"command": command})),
            Reply::tool("u", "bash", &json!({"command": "echo up > started; sleep 300"})),
        ]);
        let settings = json!({"bash": {"keepBackground": keep}});
        world.write_config("settings.json", &settings.to_string());
        let running = world.pi().args(JSON).spawn();
        server.wait_for(2);
        wait_until("the command has begun", || world.work().join("started").exists());
        running.signal("KILL");
        running.wait().fails_with(137);
        wait_until("what is not kept is gone", || world.processes().len() == kept);
        for pid in world.processes() {
            let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
            assert!(kill.unwrap().success());
        }
    }
}

#[test]
fn the_watcher_goes_before_pi_does() {
    let (world, _server) =
        world([Reply::tool("t", "bash", &json!({"command": "true"})), Reply::text("done")]);
    world.pi().args(JSON).run().success();
    assert_eq!(world.processes(), [0u32; 0]);
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
        Reply::tool("t", "bash", &json!({"command": "cat; read x; echo \"got [$x]\"; tty; true"})),
        Reply::text("ok"),
    ]);
    world.pi().args(JSON).run().success();
    assert!(
        server.requests()[1].last_text().contains("got []\nnot a tty"),
        "{}",
        server.requests()[1].last_text()
    );
}
