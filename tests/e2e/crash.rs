//! Killed, or out of disk, at every step of writing a session: what was told is kept, what is opened
//! afterwards is whole, and the next request is one that a provider takes.

use crate::server::{Reply, Request, Server};
use crate::world;
use serde_json::{Value, json};

/// A turn with two calls, then the answer.
fn script() -> [Reply; 2] {
    [
        Reply::tool("a", "bash", &json!({"command": "echo A"})).then_tool(
            1,
            "b",
            "bash",
            &json!({"command": "echo B"}),
        ),
        Reply::text("done"),
    ]
}

/// Every call answered once, right after it was made.
#[track_caller]
pub fn assert_legal(request: &Request) {
    let mut open: Vec<String> = Vec::new();
    for message in request.messages() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at =
                open.iter().position(|call| call == id).unwrap_or_else(|| panic!("no call {id}: {message}"));
            open.remove(at);
        } else {
            assert!(open.is_empty(), "calls without results {open:?} before {message}");
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

/// Runs with the failpoint `point` at its k-th passage, for every k until it is not reached any more.
#[track_caller]
fn every_passage(point: &str, action: &str) {
    for k in 1.. {
        let (world, server) = world(script());
        let fail = format!("{point}:{k}:{action}");
        let outcome = world
            .pi()
            .args(["--model", "mock/m1", "--mode", "json", "remember me"])
            .env("PI_FAIL", &fail)
            .run();
        let told: Vec<Value> = outcome
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|event: &Value| event["type"] == "message_end")
            .map(|event| event["message"].clone())
            .collect();
        let untouched = outcome.code() == 0 && outcome.stderr.is_empty();
        match action {
            // Whatever did not work is said, and the exit code is right: a notice, or an error.
            "err" if !untouched => {
                assert!(outcome.stderr.contains("session"), "{fail}: {outcome:?}")
            }
            "panic" if !untouched => assert_eq!(world.processes(), [0u32; 0], "{fail}"),
            _ => {}
        }
        check_files(&world, &told, &fail);
        go_on(&world, server, &fail);
        if untouched {
            assert!(k > 1, "{point} is never passed");
            return;
        }
        assert!(k < 40, "{point} does not end");
    }
}

/// What was told is in a file, and every line but a torn last one is JSON.
#[track_caller]
fn check_files(world: &crate::agent::World, told: &[Value], fail: &str) {
    let mut entries: Vec<Value> = Vec::new();
    for file in world.session_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let sound: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(text.lines().count() - sound.len() <= 1, "{fail}: {text}");
        entries.extend(sound);
    }
    // That the log could not be written is told as a failed answer, which no log holds.
    for message in told.iter().filter(|message| message["stopReason"] != "error") {
        let stored = entries.iter().any(|entry| &entry["message"] == message);
        assert!(stored, "{fail}: told but not stored: {message}\n{entries:#?}");
    }
}

/// The session can be opened again, and the request that follows is legal.
#[track_caller]
fn go_on(world: &crate::agent::World, first: Server, fail: &str) {
    drop(first);
    let server = Server::start([Reply::text("again")]);
    world.use_server(&server);
    let file = world.session_files().into_iter().next_back();
    let mut pi = world.pi().args(["--model", "mock/m1", "-p", "more"]);
    if let Some(file) = &file {
        pi = pi.args([std::ffi::OsStr::new("--session"), file.as_os_str()]);
    }
    let outcome = pi.run();
    assert_eq!(outcome.code(), 0, "{fail}: {outcome:?}");
    let requests = server.requests();
    assert_legal(&requests[0]);
    assert_eq!(requests[0].last_text(), "more");
}

#[test]
fn killed_before_any_write() {
    every_passage("session.write", "abort");
}

#[test]
fn killed_in_the_middle_of_any_write() {
    every_passage("session.torn", "abort");
}

#[test]
fn killed_before_the_draft_gets_its_name() {
    every_passage("session.rename", "abort");
}

#[test]
fn killed_before_any_sync() {
    every_passage("session.sync", "abort");
}

#[test]
fn a_full_disk_at_any_write() {
    every_passage("session.write", "err");
}

#[test]
fn a_disk_that_fills_in_the_middle_of_any_write() {
    every_passage("session.torn", "err");
}

#[test]
fn a_disk_that_cannot_be_synced() {
    every_passage("session.sync", "err");
}

#[test]
fn a_draft_that_cannot_get_its_name() {
    every_passage("session.rename", "err");
}

#[test]
fn a_fault_of_our_own_at_any_write() {
    every_passage("session.write", "panic");
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_before_the_request() {
    let (world, server) = world(script());
    let pi = world.pi().args(["--model", "mock/m1", "-p", "hi"]).env("PI_FAIL", "session.create:1:err");
    pi.run().fails_with(1).stderr_has("session");
    assert!(server.requests().is_empty());
}

/// How often the session is handed to the disk in a run of two turns: as often as that can fail.
fn syncs(mode: &str) -> usize {
    let passed = |k: usize| {
        let (world, _server) = world(script());
        let settings = json!({"session": {"sync": mode}, "retry": {"enabled": false}});
        world.write_config("settings.json", &settings.to_string());
        let pi = world.pi().args(["--model", "mock/m1", "-p", "hi"]);
        let outcome = pi.env("PI_FAIL", format!("session.sync:{k}:abort")).run();
        assert!([0, 134].contains(&outcome.code()), "{outcome:?}");
        outcome.code() != 0
    };
    (1..).take_while(|k| passed(*k)).count()
}

#[test]
fn the_setting_says_when_the_disk_is_waited_for() {
    // Nine entries: model, level, system, prompt, two calls in one answer, two results, answer.
    let (always, turn, never) = (syncs("always"), syncs("turn"), syncs("never"));
    assert_eq!((turn, never), (2, 0));
    assert!(always > turn, "{always}");
}
