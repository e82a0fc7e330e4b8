//! Programs that do not answer `initialize`: what waits for them, and how the wait ends.
//!
//! `PI_PATIENCE` makes the wait so long that only its early end lets a test pass.

use super::{hello, install, log, registers, script};
use crate::agent::{World, let_go, wait_until, write_program};
use crate::screen::{ENTER, ESCAPE, Screen};
use crate::server::{PATIENCE, Reply};
use crate::world;
use pi::client::Client;
use serde_json::json;
use std::process::Stdio;

const FOREVER: &str = "1000";

/// Makes an extension that takes `initialize` and does not answer.
fn install_mute(world: &World) {
    write_program(
        &world.agent_dir().join("extensions/mute"),
        &script("    *'\"method\":\"initialize\"'*) ;;\n"),
    );
}

fn wait_until_started(world: &World) {
    wait_until("the extension is started", || !log(world).is_empty());
}

#[test]
fn a_prompt_goes_without_a_mute_program_and_names_it() {
    let (world, server) = world([Reply::text("done")]);
    install_mute(&world);
    install(&world, "greets", &hello(), "");
    let ran = world.pi().env("PI_PATIENCE", "1").words("--model mock/m1 -p hi").run().success();
    assert!(ran.stderr.contains("extensions/mute") && ran.stderr.contains("joins later"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("Extension error").count(), 1, "{}", ran.stderr);
    ran.stdout_is("done\n");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_signal_ends_the_wait_of_a_script() {
    let (world, server) = world([Reply::text("done")]);
    install_mute(&world);
    let running = world.pi().env("PI_PATIENCE", FOREVER).words("--model mock/m1 -p hi").spawn();
    wait_until_started(&world);
    running.signal("INT");
    assert_eq!(running.wait().code(), 130);
    assert!(server.requests().is_empty());
    assert!(world.processes_left().is_empty());
}

#[test]
fn a_client_is_answered_while_a_prompt_waits_and_an_abort_ends_the_wait() {
    let (world, server) = world([Reply::text("done")]);
    install_mute(&world);
    let mut pi = world.pi().words("--mode rpc --model mock/m1").env("PI_PATIENCE", FOREVER);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    let prompt = client.send("prompt", json!({"message": "hi"})).unwrap();
    let commands = client.send("get_commands", json!({})).unwrap();
    let state = client.request("get_state", json!({})).unwrap();
    assert_eq!((&state["isStreaming"], &state["messageCount"]), (&json!(false), &json!(0)));
    client.request("abort", json!({})).unwrap();
    // In the order in which they were sent.
    assert_eq!(client.answer(prompt).unwrap()["success"], true);
    assert_eq!(client.answer(commands).unwrap()["success"], true);
    // The next prompt does not wait again.
    client.prompt("again").unwrap();
    client.wait_until_settled().unwrap();
    assert!(server.requests().len() <= 2);
    client.close().unwrap();
    assert!(world.processes_left().is_empty());
}

#[test]
fn queries_see_what_is_changed_before_them_and_an_abort_may_come_at_once() {
    let (world, _server) = world([Reply::text("done")]);
    install_mute(&world);
    let mut pi = world.pi().words("--mode rpc --model mock/m1").env("PI_PATIENCE", FOREVER);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client.send("set_session_name", json!({"name": "Ada"})).unwrap();
    let state = client.send("get_state", json!({})).unwrap();
    client.send("prompt", json!({"message": "hi"})).unwrap();
    client.request("abort", json!({})).unwrap();
    assert_eq!(client.answer(state).unwrap()["data"]["sessionName"], "Ada");
    client.close().unwrap();
}

#[test]
fn a_client_that_closes_stdin_gets_its_answers() {
    let (world, _server) = world([]);
    install(&world, "slow", &json!({"commands": [{"name": "do"}]}), "");
    let lines = "{\"id\":1,\"type\":\"get_commands\"}\n{\"id\":2,\"type\":\"get_state\"}\n";
    let ran = world.pi().words("--mode rpc --model mock/m1").stdin(lines).run().success();
    let answers = crate::agent::lines(&ran.stdout);
    let of = |id: u32| answers.iter().find(|line| line["id"] == id).unwrap()["data"].clone();
    assert_eq!(of(1)["commands"][0]["name"], "do");
    assert_eq!(of(2)["messageCount"], 0);
}

#[test]
fn a_terminal_takes_keys_says_what_it_waits_for_and_escape_goes_on() {
    let (world, server) = world([Reply::text("the answer")]);
    install_mute(&world);
    let screen = Screen::start(world.pi().words("--model mock/m1").env("PI_PATIENCE", FOREVER));
    screen.wait_for("(auto)");
    screen.type_keys("hello there");
    screen.wait_for("hello there");
    screen.type_keys(ENTER);
    screen.wait_for("Waiting for extensions (mute)");
    screen.wait_for("Queued: hello there");
    assert!(server.requests().is_empty());
    screen.type_keys(ESCAPE);
    screen.wait_for("the answer");
    // Wherever the row ends.
    let shown = screen.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("joins later"), "{shown}");
    screen.quit();
}

#[test]
fn a_program_that_says_that_it_is_loading_is_waited_for() {
    let (world, server) = world([Reply::text("done")]);
    let program = script(&registers(&hello())).replace(
        "#!/bin/sh\n",
        "#!/bin/sh\nfor n in 1 2 3; do printf '{\"jsonrpc\":\"2.0\",\"method\":\"loading\"}\\n'; sleep 0.2; done\n",
    );
    write_program(&world.agent_dir().join("extensions/slow"), &program);
    // The wait for a mute one would be over.
    world.pi().env("PI_PATIENCE", "1").words("--model mock/m1 -p hi").run().success();
    assert!(server.requests()[0].body.to_string().contains("\"hello\""));
}

#[test]
fn what_is_said_during_the_start_is_on_the_screen_once() {
    let (world, _server) = world([]);
    super::fifo(&world.home().join("pipe"));
    let program = "#!/bin/sh\nread -r go < \"$HOME/pipe\"\nexit 7\n";
    write_program(&world.agent_dir().join("extensions/bad"), program);
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("(auto)");
    let_go(&world.home().join("pipe"));
    screen.wait_for("exit code 7");
    // An answer to a key comes behind what was said.
    screen.type_keys("/quit");
    screen.wait_for("/quit");
    let said = screen.everything().iter().filter(|line| line.contains("Extension error")).count();
    assert_eq!(said, 1, "{}", screen.text());
    screen.type_keys(ENTER);
    assert!(screen.wait().0.success());
}

/// An extension that is loaded after its answer, with `before` the answer and `after` it.
fn install_late(world: &World, before: &str, after: &str) {
    let answer = json!({"protocolVersion": 1, "extensions": [{"id": "e1", "loading": true}]});
    let arms = format!(
        "    *'\"method\":\"initialize\"'*) {before}ok '{answer}'; {after} ;;\n    *'\"type\":\"tool_call\"'*) fail boom ;;\n"
    );
    write_program(&world.agent_dir().join("extensions/late"), &script(&arms));
}

#[test]
fn what_is_loaded_counts_also_when_it_comes_with_the_answer() {
    let (world, server) =
        world([Reply::tool("t1", "bash", &json!({"command": "true"})), Reply::text("done")]);
    let mut loaded = hello();
    loaded["extension"] = json!("e1");
    install_late(&world, &format!("call l loaded '{loaded}'; "), ":");
    world.pi().words("--model mock/m1 -p hi").run().success();
    // The call has waited for it.
    assert!(server.requests()[1].body.to_string().contains("\"hello\""));
}

#[test]
fn an_extension_that_fails_late_leaves_nothing_behind() {
    let (world, server) =
        world([Reply::tool("t1", "bash", &json!({"command": "echo ran"})), Reply::text("done")]);
    let register = r#"call r register '{"extension":"e1","events":["tool_call"]}'; "#;
    install_late(
        &world,
        "",
        &format!(r#"{register}call l loaded '{{"extension":"e1","error":"too late"}}'"#),
    );
    let ran = world.pi().words("--model mock/m1 -p hi").run().success();
    assert!(ran.stderr.contains("too late"), "{}", ran.stderr);
    assert_eq!(server.requests()[1].last_text(), "ran\n");
}

#[test]
fn a_tool_call_says_whom_it_waits_for_and_goes_on_without_one_that_is_no_gate() {
    let (world, server) =
        world([Reply::tool("t1", "bash", &json!({"command": "echo ran"})), Reply::text("done")]);
    install_mute(&world);
    let ran = world.pi().env("PI_PATIENCE", "1").words("--model mock/m1 -p hi").run().success();
    assert!(ran.stderr.contains("extensions/mute): start: is still being started: a tool call waits for it"));
    // The end of its start was not waited for.
    assert!(!ran.stderr.contains("did not answer initialize"), "{}", ran.stderr);
    assert_eq!(server.requests()[1].last_text(), "ran\n");
}

#[test]
fn a_command_line_that_waits_for_extensions_says_so() {
    let (world, _server) = world([]);
    super::fifo(&world.home().join("pipe"));
    let program = "#!/bin/sh\nread -r go < \"$HOME/pipe\"\nexit 7\n";
    write_program(&world.agent_dir().join("extensions/mute"), program);
    let running = world.pi().env("PI_PATIENCE", "1").words("--list-models").spawn();
    running.wait_until_shown("Waiting for extensions (mute)");
    let_go(&world.home().join("pipe"));
    let ran = running.wait().success();
    assert!(ran.stderr.contains("exit code 7"), "{}", ran.stderr);
}

#[test]
fn a_client_of_mcp_is_told_the_tools_of_a_slow_program() {
    let (world, _server) = world([]);
    let arms = registers(&hello()).replace(") ok", ") sleep 0.3; ok")
        + "    *tool.call*) ok '{\"content\":\"Hi\"}' ;;\n";
    write_program(&world.agent_dir().join("extensions/slow"), &script(&arms));
    let mut pi = world.pi().words("--mode mcp --model mock/m1").env("PI_PATIENCE", FOREVER);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    let call = json!({"name": "hello", "arguments": {"name": "Ada"}});
    for (id, method, params) in [(1, "tools/call", call), (2, "tools/list", json!({}))] {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        client.send_line(line.to_string().as_bytes()).unwrap();
    }
    for _ in 0..2 {
        let answer = client.next_event().expect("an answer");
        let result = &answer["result"];
        match answer["id"].as_u64() {
            Some(1) => assert_eq!(result["content"][0]["text"], "Hi", "{answer}"),
            _ => assert!(
                result["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "hello"),
                "{answer}"
            ),
        }
    }
}
