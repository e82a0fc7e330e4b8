//! The end of what is under way, whatever that is: on demand, by a signal, by a closed stdin or stdout.

use super::{client, until_text};
use crate::agent::World;
use crate::server::{Reply, Server, Step};
use pi::client::Client;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::Command;

/// A command with all that may outlive it: a group of its own, a session of its own, one that ignores to
/// be asked.
const TREE: &str = "trap '' TERM; (setsid sleep 300 &); nohup sleep 300 >/dev/null 2>&1 & (sh -c 'sleep 300 & exec sleep 300' &); echo up; sleep 300";

/// Something that takes its time.
struct State {
    name: &'static str,
    words: &'static str,
    settings: &'static str,
    replies: fn() -> Vec<Reply>,
    /// Brings the program there.
    reach: fn(&World, &Server, &mut Client),
    /// The command that ends it.
    end: &'static str,
}

const RETRY: &str = r#"{"retry": {"baseDelayMs": 60000}}"#;
const COMPACTION: &str = r#"{"retry": {"enabled": false}, "compaction": {"keepRecentTokens": 100}}"#;
const PLAIN: &str = r#"{"retry": {"enabled": false}}"#;

fn tree() -> Vec<Reply> {
    vec![Reply::tool("t", "bash", &json!({"command": TREE}))]
}

fn until(client: &mut Client, kind: &str) {
    client.events_until(kind).unwrap_or_else(|error| panic!("no {kind}: {error}"));
}

fn states() -> Vec<State> {
    let state = State {
        name: "a command that runs",
        words: "",
        settings: PLAIN,
        replies: tree,
        reach: |_, _, client| {
            client.prompt("go").unwrap();
            until(client, "tool_execution_update");
        },
        end: "abort",
    };
    vec![
        State {
            name: "a server that says nothing",
            replies: || vec![Reply::raw("").then(Step::Stall)],
            reach: |_, server, client| {
                client.prompt("go").unwrap();
                server.wait_for(1);
            },
            ..state
        },
        State {
            name: "an answer that streams",
            replies: || vec![Reply::text("half").then(Step::Stall)],
            reach: |_, _, client| {
                client.prompt("go").unwrap();
                until_text(client);
            },
            ..state
        },
        State {
            name: "a search",
            words: "--tools grep",
            replies: || vec![Reply::tool("t", "grep", &json!({"pattern": "(a|b)+c"}))],
            reach: |world, _, client| {
                for n in 0..500 {
                    world.write(&format!("d{}/f{n}", n % 20), "ababab\n".repeat(200));
                }
                client.prompt("go").unwrap();
                until(client, "tool_execution_start");
            },
            ..state
        },
        State {
            name: "an edit of a large file",
            replies: || {
                let edits = json!([{"oldText": "last line", "newText": "the end"}]);
                vec![Reply::tool("t", "edit", &json!({"path": "big", "edits": edits}))]
            },
            reach: |world, _, client| {
                world.write("big", "some line\n".repeat(300_000) + "last line\n");
                client.prompt("go").unwrap();
                until(client, "tool_execution_start");
            },
            ..state
        },
        State {
            name: "a wait before a retry",
            settings: RETRY,
            replies: || vec![Reply::error(503, "busy")],
            reach: |_, _, client| {
                client.prompt("go").unwrap();
                until(client, "auto_retry_start");
            },
            ..state
        },
        State {
            name: "a compaction",
            settings: COMPACTION,
            replies: || {
                let long = "words and words ".repeat(60);
                vec![Reply::text(&long), Reply::text(&long), Reply::text("THE SUM").then(Step::Stall)]
            },
            reach: |_, server, client| {
                for text in ["one", "two"] {
                    client.prompt(text).unwrap();
                    client.wait_until_settled().unwrap();
                }
                client.send("compact", Value::Null).unwrap();
                server.wait_for(3);
            },
            ..state
        },
        State {
            name: "a question",
            words: "--ask-tools all",
            reach: |_, _, client| {
                client.prompt("go").unwrap();
                until(client, "extension_ui_request");
            },
            ..state
        },
        State {
            name: "a tool of the client",
            replies: || vec![Reply::tool("t", "look", &json!({}))],
            reach: |_, _, client| {
                let tools = json!({"tools": [{"name": "look"}]});
                client.request("register_tools", tools).unwrap();
                client.prompt("go").unwrap();
                until(client, "tool_call_request");
            },
            ..state
        },
        State {
            name: "a command of the user",
            replies: Vec::new,
            reach: |_, _, client| {
                client.send("bash", json!({"command": TREE})).unwrap();
                until(client, "bash_execution_update");
            },
            end: "abort_bash",
            ..state
        },
        state,
    ]
}

/// Every state, its world and its client; afterwards what is stored is whole.
fn in_every_state(end: impl Fn(&State, Client)) {
    for state in states() {
        let later = (0..3).map(|_| Reply::text("fine"));
        let (world, server) = crate::world((state.replies)().into_iter().chain(later));
        world.write_config("settings.json", state.settings);
        let mut client = client(&world, state.words);
        (state.reach)(&world, &server, &mut client);
        end(&state, client);
        assert_eq!(world.processes(), [0u32; 0], "{}", state.name);
        if world.session_files().is_empty() {
            continue;
        }
        let (mut called, mut answered) = (BTreeSet::new(), BTreeSet::new());
        for entry in world.session() {
            let message = &entry["message"];
            if message["role"] == "toolResult" {
                let is_new = answered.insert(message["toolCallId"].to_string());
                assert!(is_new, "{}: {entry}", state.name);
            }
            let blocks = message["content"].as_array().into_iter().flatten();
            let calls = blocks.filter(|block| block["type"] == "toolCall");
            called.extend(calls.map(|call| call["id"].to_string()));
        }
        assert_eq!(called, answered, "{}", state.name);
    }
}

#[test]
fn an_abort_ends_anything_and_the_next_turn_is_fine() {
    in_every_state(|state, mut client| {
        let name = state.name;
        client.request(state.end, Value::Null).unwrap();
        client.abort().unwrap();
        let now = client.state().unwrap();
        assert!(!now.is_streaming && !now.is_compacting, "{name}");
        client.prompt("and now").unwrap();
        while client.state().unwrap().is_streaming {
            client.wait_until_settled().unwrap();
        }
        assert_eq!(client.last_text().unwrap().as_deref(), Some("fine"), "{name}");
        assert!(client.close().unwrap().success(), "{name}");
    });
}

#[test]
fn a_closed_stdin_ends_anything() {
    in_every_state(|state, client| {
        assert!(client.close().unwrap().success(), "{}", state.name);
    });
}

#[test]
fn a_signal_ends_anything() {
    // One after another: which one it is makes no difference to what is under way.
    let signals = [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131)];
    let signals = RefCell::new(signals.iter().cycle());
    in_every_state(|state, mut client| {
        let (signal, code) = *signals.borrow_mut().next().unwrap();
        let sent = Command::new("kill").args([format!("-{signal}"), client.pid().to_string()]).status();
        assert!(sent.unwrap().success());
        while client.next_event().is_ok() {}
        let status = client.close().unwrap();
        assert_eq!(status.code(), Some(code), "{signal} in {}", state.name);
    });
}
