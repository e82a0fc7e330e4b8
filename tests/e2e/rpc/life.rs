//! The ways in which the program ends.

use super::{client, start, until_text};
use crate::server::{Reply, Step};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn a_closed_stdin_ends_the_run_and_stores_the_answer_so_far() {
    let (world, _server, mut client) = start([Reply::text("half").then(Step::Stall)]);
    client.prompt("go").unwrap();
    until_text(&mut client);
    client
        .send("bash", json!({"command": "sleep 300"}))
        .unwrap();
    assert!(client.close().unwrap().success());
    let session = world.session();
    let last = session
        .iter()
        .rfind(|entry| entry["message"]["role"] == "assistant")
        .unwrap();
    assert_eq!(last["message"]["content"][0]["text"], json!("half"));
}

#[test]
fn commands_before_the_end_of_stdin_are_answered() {
    let (world, _server) = crate::world([]);
    let outcome = world
        .pi()
        .words("--mode rpc")
        .stdin(
            "{\"id\":\"1\",\"type\":\"ping\"}\n{\"id\":\"2\",\"type\":\"get_last_assistant_text\"}",
        )
        .run()
        .success();
    let answers = outcome.events();
    assert_eq!(
        answers[0],
        json!({"id": "1", "type": "response", "command": "ping", "success": true})
    );
    assert_eq!(answers[1]["data"], json!({"text": null}));
    assert_eq!(outcome.stderr, "");
    assert_eq!(world.session_files().len(), 0);
}

#[test]
fn a_signal_ends_it_in_order() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let (world, _server) =
            crate::world([Reply::tool("t", "bash", &json!({"command": "sleep 300"}))]);
        let mut pi = world.pi().words("--mode rpc");
        pi.command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = pi.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n")
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("tool_execution_start") {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
        }
        Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status()
            .unwrap();
        std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        let session = world.session();
        let has = |role: &str| session.iter().any(|entry| entry["message"]["role"] == role);
        assert!(has("assistant") && has("toolResult"), "{signal}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_it_quietly() {
    let (world, _server) = crate::world([Reply::text("one ").then(Step::Stall)]);
    let mut pi = world.pi().words("--mode rpc");
    pi.command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n")
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("text_delta") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
    }
    drop(stdout);
    stdin.write_all(b"{\"type\":\"ping\"}\n").unwrap();
    let outcome = child.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "");
    drop(stdin);
    let session = world.session();
    let last = session
        .iter()
        .rfind(|entry| entry["message"]["role"] == "assistant")
        .unwrap();
    assert_eq!(last["message"]["stopReason"], json!("aborted"));
}

#[test]
fn a_client_that_is_dropped_leaves_nothing_behind() {
    let (world, _server) = crate::world([
        Reply::tool("t", "bash", &json!({"command": "true"})),
        Reply::stream().then(Step::Stall),
    ]);
    let mut client = client(&world, "");
    client.prompt("go").unwrap();
    client.events_until("turn_end").unwrap();
    let state = client.request("get_state", Value::Null).unwrap();
    assert_eq!(state["isStreaming"], json!(true));
    drop(client);
    assert_eq!(world.processes(), [0u32; 0]);
}
