//! The ways in which the program ends.

use super::{client, start, types, until_text};
use crate::server::{PATIENCE, Reply, Step};
use pi::client::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn a_closed_stdin_ends_the_run_and_stores_the_answer_so_far() {
    let (world, _server, mut client) = start([Reply::text("half").then(Step::Stall)]);
    client.prompt("go").unwrap();
    until_text(&mut client);
    client.send("bash", json!({"command": "sleep 300"})).unwrap();
    assert!(client.close().unwrap().success());
    let session = world.session();
    let last = session.iter().rfind(|entry| entry["message"]["role"] == "assistant").unwrap();
    assert_eq!(last["message"]["content"][0]["text"], json!("half"));
}

#[test]
fn commands_before_the_end_of_stdin_are_answered() {
    let (world, _server) = crate::world([]);
    let outcome = world
        .pi()
        .words("--mode rpc")
        .stdin("{\"id\":\"1\",\"type\":\"ping\"}\n{\"id\":\"2\",\"type\":\"get_last_assistant_text\"}")
        .run()
        .success();
    let answers = outcome.events();
    assert_eq!(answers[0], json!({"id": "1", "type": "response", "command": "ping", "success": true}));
    assert_eq!(answers[1]["data"], json!({"text": null}));
    assert_eq!(outcome.stderr, "");
    assert_eq!(world.session_files().len(), 0);
}

#[test]
fn a_signal_ends_it_in_order() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let (world, _server) = crate::world([Reply::tool("t", "bash", &json!({"command": "sleep 300"}))]);
        let mut pi = world.pi().words("--mode rpc");
        pi.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pi.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n").unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("tool_execution_start") {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
        }
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
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
    pi.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n").unwrap();
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
    let last = session.iter().rfind(|entry| entry["message"]["role"] == "assistant").unwrap();
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
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
fn a_reader_that_has_gone_takes_commands_along() {
    let tree = "(setsid sleep 300 &); nohup sleep 300 >/dev/null 2>&1 & echo up; sleep 300";
    let (world, _server) = crate::world([Reply::tool("t", "bash", &json!({"command": tree}))]);
    let mut pi = world.pi().words("--mode rpc");
    pi.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n").unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("tool_execution_update") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
    }
    drop(stdout);
    // Whoever writes next finds that out.
    stdin.write_all(b"{\"type\":\"ping\"}\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert_eq!(world.processes(), [0u32; 0]);
    let session = world.session();
    let results = session.iter();
    let results = results.filter(|entry| entry["message"]["role"] == "toolResult");
    assert_eq!(results.count(), 1);
}

#[test]
fn nothing_to_do_and_nobody_to_tell_are_no_errors() {
    let (world, _server) = crate::world([]);
    let outcome = world.pi().words("--mode rpc").stdin("").run().success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
    assert_eq!(world.session_files().len(), 0);
}

#[test]
fn what_cannot_begin_says_so_on_stderr_alone() {
    let (world, _server) = crate::world([]);
    world.write("schema.json", "{");
    for (words, code, part) in [
        ("--no-such-flag", 2, "--no-such-flag"),
        ("--model nothing/none", 1, "nothing"),
        ("--session nowhere", 1, "nowhere"),
        ("--output-schema schema.json", 1, "schema.json"),
        ("--cwd nowhere", 1, "nowhere"),
    ] {
        let run = world.pi().words("--mode rpc").words(words).stdin("").run();
        assert_eq!((run.code(), &*run.stdout), (code, ""), "{words}: {}", run.stderr);
        assert!(run.stderr.contains(part) && !run.stderr.is_empty(), "{words}: {}", run.stderr);
    }
}

#[test]
fn two_that_go_on_with_one_session_do_not_share_it() {
    let replies = ["one", "two", "three"].map(Reply::text);
    let (world, _server) = crate::world(replies);
    world.pi().words("--model mock/m1 -p first").run().success();
    let mut holder = client(&world, "--continue");
    let file = holder.state().unwrap().session_file;
    let mut other = client(&world, "--continue");
    let theirs = other.state().map(|state| state.session_file);
    holder.prompt("second").unwrap();
    holder.wait_until_settled().unwrap();
    if let Ok(theirs) = theirs {
        assert_ne!(theirs, file);
        other.prompt("third").unwrap();
        other.wait_until_settled().unwrap();
    }
    // The other one asks for the file itself, too.
    let path = json!({"sessionPath": file});
    if other.state().is_ok() {
        let id = other.send("switch_session", path).unwrap();
        let answer = other.answer(id).unwrap();
        assert_eq!(answer["success"], json!(false), "{answer}");
    }
    assert!(holder.close().unwrap().success());
    let stored = std::fs::read_to_string(file.unwrap()).unwrap();
    assert!(stored.contains("second") && !stored.contains("third"));
    for line in stored.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

/// Whatever step fails, the client sees a whole run that failed, the error, and then that all is settled.
#[test]
fn a_log_that_cannot_be_written_ends_the_run_in_order() {
    let mut failed = 0;
    for k in 1.. {
        let (world, _server) = crate::world([Reply::text("hi there")]);
        let mut pi =
            world.pi().words("--mode rpc --model mock/m1").env("PI_FAIL", format!("session.write:{k}:err"));
        let mut client = Client::spawn(pi.command().stderr(Stdio::null())).unwrap();
        client.set_patience(PATIENCE);
        client.prompt("go").unwrap();
        let events = client.wait_until_settled().unwrap();
        let kinds = types(&events);
        if !kinds.contains(&"error") {
            break;
        }
        failed += 1;
        let end = ["message_start", "message_end", "turn_end", "agent_end", "error", "agent_settled"];
        assert_eq!(kinds[kinds.len() - end.len()..], end, "{k}");
        for kind in ["agent", "turn"] {
            let count = |part: &str| kinds.iter().filter(|known| **known == format!("{kind}_{part}")).count();
            assert_eq!((count("start"), count("end")), (1, 1), "{k}: {kinds:?}");
        }
        let answer = &events[events.len() - 5]["message"];
        assert_eq!(answer["stopReason"], "error");
        let reason = answer["errorMessage"].as_str().unwrap();
        assert!(reason.contains("No space left"), "{reason}");
        assert_eq!(events[events.len() - 2]["error"], reason);
        // It is a message of the stream alone.
        assert!(!client.messages().unwrap().iter().any(|message| message["stopReason"] == "error"));
    }
    assert!(failed > 0, "no write ever failed");
}

#[test]
fn half_a_surrogate_pair_is_taken_as_other_programs_take_it() {
    let (world, _server) = crate::world([]);
    let lines = concat!(
        r#"{"id":"1","type":"follow_up","message":"x \ud83d"}"#,
        "\n",
        r#"{"id":"2","type":"clear_queue"}"#,
        "\n"
    );
    let events = world.pi().words("--mode rpc --model mock/m1").stdin(lines).run().success().events();
    let answer = |id: &str| events.iter().find(|event| event["id"] == id).unwrap();
    assert_eq!(answer("1")["success"], true);
    assert_eq!(answer("2")["data"]["followUp"], json!(["x \u{fffd}"]));
}
