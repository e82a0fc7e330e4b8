//! Programs that break every rule: the session goes on, nothing is left behind, and the user is told once.

use super::{hello, registers, script};
use crate::agent::write_program;
use crate::server::Reply;
use crate::world;
use serde_json::json;

/// Events of a prompt, and a gate.
const EVENTS: [&str; 12] = [
    "session_start",
    "resources_discover",
    "input",
    "before_agent_start",
    "agent_start",
    "turn_start",
    "context",
    "message_end",
    "turn_end",
    "agent_end",
    "agent_settled",
    "tool_call",
];

/// Name, program, and a part of what is said on stderr; empty for nothing.
fn programs() -> Vec<(&'static str, String, &'static str)> {
    let with = |arms: &str| script(&(registers(&json!({"events": EVENTS})) + arms));
    let at_start = |code: &str| format!("#!/bin/sh\n{code}\n");
    let mut programs = vec![
        ("never answers", at_start("sleep 300"), ""),
        ("ends at once", at_start("exit 0"), "has ended"),
        ("ends with a code", at_start("echo oh no >&2; exit 7"), "has ended with exit code 7: oh no"),
        ("is no program", "no program at all".to_owned(), "Extension error"),
        ("closes its stdout", at_start("exec >&-; sleep 300"), "Extension error"),
        ("closes its stdin", at_start("exec <&-; sleep 300"), ""),
        ("writes garbage", at_start("yes garbage"), "lines that are no messages"),
        ("writes bytes without a line", at_start("head -c 100000000 /dev/zero"), "Extension error"),
        (
            "writes one huge line and goes on",
            at_start("head -c 100000000 /dev/zero; echo").trim_end().to_owned()
                + "\n"
                + with("").trim_start_matches("#!/bin/sh\n"),
            "",
        ),
        (
            "speaks another version",
            script("    *'\"method\":\"initialize\"'*) ok '{\"protocolVersion\":9}' ;;\n"),
            "speaks version 9",
        ),
        (
            "says no version",
            script("    *'\"method\":\"initialize\"'*) ok '{}' ;;\n"),
            "did not say which version",
        ),
        ("registers nonsense", script(&registers(&json!({"tools": [{"name": 1}]}))), "\"tools\""),
        (
            "answers twice and to nothing",
            with("    *'\"type\":\"agent_start\"'*) ok null; ok null; ok null 999; ok null '\"x\"' ;;\n"),
            "",
        ),
        ("eats signals", at_start("trap '' TERM INT HUP PIPE; while :; do sleep 300; done"), ""),
        (
            "forks a daemon",
            with("    *'\"type\":\"agent_start\"'*) (setsid sleep 300 >/dev/null 2>&1 &); ok null ;;\n"),
            "",
        ),
        (
            "floods stderr",
            with("    *'\"type\":\"agent_start\"'*) head -c 3000000 /dev/zero >&2; ok null ;;\n"),
            "",
        ),
        (
            "calls without end",
            with(
                "    *'\"type\":\"agent_start\"'*) (while :; do call x session.state '{}' || exit; done) & ok null ;;\n",
            ),
            "",
        ),
        (
            "calls what is not there",
            with(
                "    *'\"type\":\"agent_start\"'*) call a no.such '{}'; call b ui.select '[]'; call c session.setLabel '{\"entryId\":5}'; ok null ;;\n",
            ),
            "",
        ),
        ("never reads", at_start("sleep 300 | sleep 300"), ""),
        ("is slow", with("").replacen("#!/bin/sh\n", "#!/bin/sh\nsleep 0.3\n", 1), ""),
        (
            "answers an event with 100 MB",
            with(
                "    *'\"type\":\"agent_start\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"' $id; head -c 100000000 /dev/zero; echo ;;\n",
            ),
            "agent_start: the answer of the extension is longer than 64 MB",
        ),
        (
            "answers under another id",
            script(
                &(registers(&json!({"events": [{"event": "agent_start", "timeoutMs": 300}]}))
                    + "    *'\"type\":\"agent_start\"'*) ok null 77; ok null 999 ;;\n"),
            ),
            "agent_start: no answer within 300ms",
        ),
        (
            "eats signals and its shutdown",
            with("    *'\"method\":\"shutdown\"'*) ;;\n").replacen(
                "#!/bin/sh\n",
                "#!/bin/sh\ntrap '' TERM INT HUP PIPE\n",
                1,
            ) + "while :; do sleep 300; done\n",
            "",
        ),
    ];
    for event in EVENTS.iter().filter(|event| **event != "tool_call") {
        let dies = with(&format!("    *'\"type\":\"{event}\"'*) kill -9 $$ ;;\n"));
        programs.push(("dies at an event", dies, "was ended by signal 9"));
    }
    programs
}

#[test]
fn no_program_stops_a_session() {
    for (name, program, told) in programs() {
        for words in ["-p hi", "--json hi"] {
            let (world, server) = world([Reply::text("done")]);
            write_program(&world.agent_dir().join("extensions/x"), &program);
            // What never says hello is waited for in full.
            let patience = if program.contains("initialize") { "20" } else { "1" };
            let done = world.pi().env("PI_PATIENCE", patience).words("--model mock/m1").words(words).run();
            assert_eq!(done.code(), 0, "{name} {words}: {}", done.stderr);
            assert!(done.stdout.contains("done"), "{name} {words}: {}", done.stdout);
            assert!(done.stderr.contains(told), "{name} {words}: {}", done.stderr);
            // That a prompt goes without it is another thing than how it ends.
            let errors = done.stderr.lines().filter(|line| line.contains("Extension error"));
            let ends = errors.filter(|line| !line.contains("joins later")).count();
            assert!(ends <= 1, "{name} {words}: {}", done.stderr);
            assert_eq!(server.requests().len(), 1, "{name} {words}");
            assert_eq!(world.processes_left(), [0u32; 0], "{name} {words}");
        }
    }
}

#[test]
fn no_program_stops_a_client() {
    for (name, program, _) in programs() {
        let (world, _server) = world([Reply::text("done")]);
        write_program(&world.agent_dir().join("extensions/x"), &program);
        let mut client = super::rpc::client(&world);
        client.prompt("hi").unwrap_or_else(|error| panic!("{name}: {error}"));
        client.wait_until_settled().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(client.last_text().unwrap().as_deref(), Some("done"), "{name}");
        assert!(client.close().unwrap().success(), "{name}");
        assert_eq!(world.processes_left(), [0u32; 0], "{name}");
    }
}

#[test]
fn no_program_stops_a_terminal() {
    for (name, program, _) in programs() {
        let (world, _server) = world([Reply::text("the answer")]);
        write_program(&world.agent_dir().join("extensions/x"), &program);
        let pi = world.pi().words("--model mock/m1").args(["hello there"]).env("PI_PATIENCE", "2");
        let screen = crate::screen::Screen::start(pi);
        screen.wait_until(name, |text| text.contains("the answer"));
        screen.quit();
        assert_eq!(world.processes_left(), [0u32; 0], "{name}");
    }
}

#[test]
fn a_tool_whose_program_dies_fails_and_the_model_is_told() {
    for arm in ["exit 4", "kill -9 $$"] {
        let call = || Reply::tool("t1", "hello", &json!({"name": "Ada"}));
        let (world, server) = world([call(), call(), Reply::text("done")]);
        super::install(&world, "hello", &hello(), &format!("    *'\"method\":\"tool.call\"'*) {arm} ;;\n"));
        let done = world.pi().words("--model mock/m1 -p hi").run().success();
        assert_eq!(done.stderr.matches("Extension error").count(), 1, "{}", done.stderr);
        let requests = server.requests();
        let results = super::results(requests[2].messages());
        assert!(results.iter().all(|result| result.contains("The tool hello cannot be used")), "{results:?}");
        done.stdout_is("done\n");
    }
}

#[test]
fn programs_end_when_pi_is_killed() {
    let (world, _server) = world([Reply::raw("").then(crate::server::Step::Stall)]);
    let arms = "    *'\"type\":\"agent_start\"'*) (setsid sleep 300 >/dev/null 2>&1 &); ok null; touch \"$HOME/up\" ;;\n";
    super::install(&world, "x", &json!({"events": ["agent_start"]}), arms);
    let running = world.pi().words("--model mock/m1 -p hi").spawn();
    world.wait_until_watched();
    _server.wait_for(1);
    running.signal("KILL");
    running.wait();
    assert_eq!(world.processes_left(), [0u32; 0]);
}
