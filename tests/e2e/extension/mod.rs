//! Extensions: small shell programs that take part in a session of the built binary.

mod abort;
mod boundary;
mod change;
mod conflict;
mod folder;
mod hostile;
mod odd;
mod part;
mod provider;
pub mod rpc;
mod server;
mod sign_in;
mod slow;
mod stuck;
mod trust;
mod virtual_model;

use crate::agent::{World, let_go, write_program};
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The loop of an extension. `arms` are those of a `case` over each line, before the usual ones. `ok` answers the
/// request `$id` with a result, `fail` with an error, `call` makes a call with an id of its own.
pub fn script(arms: &str) -> String {
    format!(
        r#"#!/bin/sh
ok() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "${{2:-$id}}" "$1"; }}
fail() {{ printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":1,"message":"%s"}}}}\n' "$id" "$1"; }}
call() {{ printf '{{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}}\n' "$1" "$2" "$3"; }}
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$HOME/ext.log"
  id=$(printf '%s' "$line" | sed -n 's/^{{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
  case $line in
{arms}
    *'"method":"shutdown"'*) ok null; exit 0 ;;
    *) if [ -n "$id" ]; then ok null; fi ;;
  esac
done
"#
    )
}

/// The arm that answers `initialize` with these fields.
pub fn registers(fields: &Value) -> String {
    let mut answer = json!({"protocolVersion": 1});
    answer.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("    *'\"method\":\"initialize\"'*) ok '{answer}' ;;\n")
}

/// Makes an extension of the user that registers `fields` and has further `arms`.
pub fn install(world: &World, name: &str, fields: &Value, arms: &str) {
    let path = world.agent_dir().join("extensions").join(name);
    write_program(&path, &script(&(registers(fields) + arms)));
}

/// A pipe that an extension reads from before it begins.
fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().expect("run mkfifo").success());
}

/// The messages that extensions got.
fn log(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.home().join("ext.log")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The events that extensions got, in order.
pub fn events(world: &World) -> Vec<Value> {
    let messages = log(world).into_iter();
    messages.filter(|message| message["method"] == "event").map(|mut m| m["params"]["event"].take()).collect()
}

pub fn hello() -> Value {
    json!({"tools": [{"name": "hello", "description": "Greets", "promptSnippet": "greets people",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}]})
}

const HELLO: &str = r#"
    *'"method":"tool.call"'*)
      printf '{"jsonrpc":"2.0","method":"tool.update","params":{"toolCallId":"t1","content":"wait"}}\n'
      ok '{"content":[{"type":"text","text":"Hello Ada."}],"details":{"n":1},"structuredContent":["x"]}' ;;
"#;

fn greeting() -> [Reply; 2] {
    [Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]
}

/// Texts of the tool results in a request.
fn results(messages: &[Value]) -> Vec<String> {
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_tool_of_a_program_is_declared_called_and_answered() {
    let (world, server) = world(greeting());
    install(&world, "hello", &hello(), HELLO);
    let done = world.pi().words("--model mock/m1 --json hi").run().success();
    let ended = done.events().into_iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    assert_eq!(ended["result"]["details"], json!({"n": 1}));
    assert_eq!(ended["result"]["structuredContent"], json!(["x"]));
    let requests = server.requests();
    let system = requests[0].messages()[0]["content"].to_string();
    assert!(system.contains("greets people"), "{system}");
    assert_eq!(results(requests[1].messages()), ["Hello Ada."]);
    let call = log(&world).into_iter().find(|message| message["method"] == "tool.call").unwrap();
    assert_eq!(call["params"]["arguments"], json!({"name": "Ada"}));
    assert_eq!(call["params"]["model"], json!({"provider": "mock", "id": "m1"}));
}

#[test]
fn flags_choose_among_tools_of_programs() {
    for (words, is_there) in [
        ("", true),
        ("--tools read", false),
        ("--tools hel*", true),
        ("-xt hello", false),
        ("-nt", false),
        ("-ne", false),
        ("--tools -hello", false),
    ] {
        let (world, server) = world([Reply::text("done")]);
        install(&world, "hello", &hello(), HELLO);
        let ran = world.pi().words("--model mock/m1 -p hi").words(words).run();
        ran.success().stdout_is("done\n");
        let body = server.requests()[0].body.to_string();
        assert_eq!(body.contains("\"hello\""), is_there, "{words}");
    }
}

#[test]
fn events_come_in_order_and_only_those_that_are_wanted() {
    let (world, _server) = world(greeting());
    let names = [
        "session_start",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_end",
        "tool_call",
        "tool_execution_end",
        "tool_result",
        "turn_end",
        "agent_end",
        "agent_settled",
        "session_shutdown",
    ];
    let mut fields = hello();
    fields["events"] = json!(names);
    install(&world, "hello", &fields, HELLO);
    world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("done\n");
    let events = events(&world);
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "session_start",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_end",
        "message_end",
        "message_end",
        "tool_call",
        "tool_result",
        "tool_execution_end",
        "message_end",
        "turn_end",
        "turn_start",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
        "session_shutdown",
    ];
    assert_eq!(types, expected);
    assert_eq!(events[0]["reason"], "startup");
    assert_eq!(events[1]["prompt"], "hi");
    assert_eq!(events[11]["turnIndex"], 0);
    assert_eq!(events.last().unwrap()["reason"], "quit");
}

#[test]
fn a_handler_blocks_changes_and_rewrites_calls() {
    let rows = [
        (r#"ok '{"block":true,"reason":"not today"}'"#, "not today"),
        (r#"ok '{"block":"yes","reason":"as in JavaScript"}'"#, "as in JavaScript"),
        (r#"ok '"deny"'"#, "The call was not executed: a handler that decides on calls failed: it answered"),
        (
            r#"ok '{"input":5}'"#,
            "The call was not executed: a handler that decides on calls failed: its \"input\"",
        ),
        (r#"ok '{"input":{"name":"Bob"}}'"#, "Hello Bob."),
        ("fail broken", "The call was not executed: a handler that decides on calls failed"),
        ("exit 3", "The call was not executed: a handler that decides on calls failed"),
        ("ok null", "Hello Ada."),
        ("ok '[]'", "Hello Ada."),
    ];
    for (answer, told) in rows {
        let (world, server) = world(greeting());
        let mut fields = hello();
        fields["events"] = json!(["tool_call"]);
        let arms = format!(
            "    *'\"type\":\"tool_call\"'*) {answer} ;;\n    *'\"method\":\"tool.call\"'*Bob*) ok '\"Hello Bob.\"' ;;\n    *'\"method\":\"tool.call\"'*) ok '\"Hello Ada.\"' ;;\n"
        );
        install(&world, "gate", &fields, &arms);
        world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("done\n");
        let requests = server.requests();
        let results = results(requests[1].messages());
        assert!(results[0].starts_with(told), "{answer}: {results:?}");
    }
}

#[test]
fn a_gate_that_is_late_misses_no_call_and_keeps_no_prompt_waiting() {
    let (world, server) = world(greeting());
    install(&world, "greets", &hello(), HELLO);
    let pipe = world.home().join("pipe");
    fifo(&pipe);
    let fields = json!({"events": ["session_start", "tool_call"]});
    let arms = r#"    *'"type":"tool_call"'*) ok '{"block":true,"reason":"late but not too late"}' ;;"#;
    let text = script(&(registers(&fields) + arms + "\n"));
    // It starts when the test has seen the request.
    let text = text.replace("#!/bin/sh\n", "#!/bin/sh\nread -r go < \"$HOME/pipe\"\n");
    write_program(&world.agent_dir().join("extensions/gate"), &text);
    let running = world.pi().words("--model mock/m1 -p hi").spawn();
    server.wait_for(1);
    let_go(&pipe);
    running.wait().success();
    assert_eq!(results(server.requests()[1].messages()), ["late but not too late"]);
    // It was told of the session before it was asked.
    let of_gate = events(&world).into_iter().map(|event| event["type"].as_str().unwrap().to_owned());
    assert_eq!(of_gate.take(2).collect::<Vec<_>>(), ["session_start", "tool_call"]);
}

#[test]
fn an_abort_does_not_wait_for_an_extension_that_never_comes() {
    let (world, _server) = world(greeting());
    fifo(&world.home().join("pipe"));
    install(&world, "greets", &hello(), HELLO);
    write_program(&world.agent_dir().join("extensions/gate"), "#!/bin/sh\nread -r go < \"$HOME/pipe\"\n");
    let mut client = rpc::client(&world);
    client.prompt("hi").unwrap();
    client.events_until("tool_execution_start").unwrap();
    client.abort().unwrap();
    client.wait_until_settled().unwrap();
    client.close().unwrap();
}

#[test]
fn handlers_of_several_programs_see_what_the_ones_before_changed() {
    let (world, server) = world(greeting());
    let mut fields = hello();
    fields["events"] = json!(["tool_result"]);
    install(
        &world,
        "a",
        &fields,
        &format!(
            "{HELLO}    *'\"type\":\"tool_result\"'*) ok '{{\"content\":[{{\"type\":\"text\",\"text\":\"one\"}}]}}' ;;\n"
        ),
    );
    let second = "    *'\"type\":\"tool_result\"'*'\"text\":\"one\"'*) ok '{\"content\":[{\"type\":\"text\",\"text\":\"two\"}],\"isError\":true}' ;;\n";
    install(&world, "b", &json!({"events": ["tool_result"]}), second);
    world.pi().words("--model mock/m1 -p hi").run().success();
    assert_eq!(results(server.requests()[1].messages()), ["two"]);
}

#[test]
fn input_prompt_and_messages_can_be_changed() {
    let (world, server) = world([Reply::text("done")]);
    let arms = r#"
    *'"type":"input"'*) ok '{"action":"transform","text":"other words"}' ;;
    *'"type":"before_agent_start"'*) ok '{"systemPrompt":"Be brief.","message":{"customType":"note","content":"a note","display":true}}' ;;
    *'"type":"context"'*) ok '{"messages":[{"role":"user","content":"only this","timestamp":1}]}' ;;
"#;
    install(&world, "all", &json!({"events": ["input", "before_agent_start", "context"]}), arms);
    world.pi().words("--model mock/m1 -p hi").run().success();
    let requests = server.requests();
    let messages = requests[0].messages();
    assert_eq!(messages[0]["content"], "Be brief.");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[1]["content"].to_string().contains("only this"));
    let stored = world.session();
    let told = |part: &str| stored.iter().any(|entry| entry.to_string().contains(part));
    assert!(told("other words") && told("a note") && !told("only this"));
}

#[test]
fn a_command_is_run_and_not_sent() {
    let (world, server) = world([Reply::text("asked")]);
    let arms = r#"
    *'"method":"command.run"'*'"arguments":"a b"'*) ok null ;;
    *'"method":"command.run"'*'"arguments":"send"'*)
      call s session.sendUserMessage '{"content":"from the extension"}'; ok null ;;
    *'"method":"command.run"'*) fail 'no such thing' ;;
"#;
    install(&world, "cmd", &json!({"commands": [{"name": "do", "description": "Does"}]}), arms);
    world.pi().words("--model mock/m1 -p").args(["/do a b"]).run().success().stdout_is("");
    let failed = world.pi().words("--model mock/m1 -p").args(["/do"]).run().success();
    assert!(failed.stderr.contains("no such thing"), "{}", failed.stderr);
    assert_eq!(server.requests().len(), 0);
    world.pi().words("--model mock/m1 -p").args(["/do send"]).run().success().stdout_is("asked\n");
    assert_eq!(server.requests()[0].last_text(), "from the extension");
}

#[test]
fn nothing_of_a_project_without_trust_is_started() {
    let canary = "touch \"$HOME/canary\"\n";
    for (words, runs) in [("", false), ("--no-approve", false), ("--approve", true)] {
        let (world, _server) = world([Reply::text("done")]);
        let program = script(&registers(&json!({}))).replace("#!/bin/sh\n", &format!("#!/bin/sh\n{canary}"));
        write_program(&world.work().join(".pi/extensions/evil"), &program);
        write_program(&world.work().join("bad/run"), &program);
        world.write("bad/pi-extension.json", r#"{"command": "./run"}"#);
        world.write(".pi/settings.json", r#"{"extensions": ["../bad"]}"#);
        world.pi().words("--model mock/m1 -p hi").words(words).run().success().stdout_is("done\n");
        assert_eq!(world.home().join("canary").exists(), runs, "{words}");
    }
}

#[test]
fn settings_switch_programs_on_and_off() {
    for (entries, expected) in [
        (r#"["-extensions/a"]"#, "b"),
        (r#"["!extensions/*", "+extensions/b"]"#, "b"),
        (r#"["more"]"#, "more/c a b"),
    ] {
        let (world, _server) = world([Reply::text("done")]);
        for name in ["extensions/a", "extensions/b", "more/c/run"] {
            write_program(
                &world.agent_dir().join(name),
                &script(&registers(&json!({"events": ["session_start"]}))),
            );
        }
        fs::write(
            world.agent_dir().join("more/c/pi-extension.json"),
            r#"{"command": "./run", "name": "more/c"}"#,
        )
        .unwrap();
        world.write_config("settings.json", &format!("{{\"extensions\": {entries}}}"));
        let listed = world.pi().words("extensions").run().success().stdout;
        let names: Vec<&str> = listed
            .lines()
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(names.join(" "), expected, "{entries}: {listed}");
        assert!(
            listed.contains("running, started in") && listed.contains("events: session_start"),
            "{listed}"
        );
    }
}

#[test]
fn keys_are_not_in_the_environment_of_a_program() {
    let (world, _server) = world([Reply::text("done")]);
    let dump = script(&registers(&json!({}))).replace("#!/bin/sh\n", "#!/bin/sh\nenv > \"$HOME/env\"\n");
    write_program(&world.agent_dir().join("extensions/dump"), &dump);
    let key = "sk-ant-api03-canary-000000000000000000000000";
    let pi = world.pi().words("--model mock/m1 -p hi");
    pi.env("ANTHROPIC_API_KEY", key).env("COPY", format!("x{key}y")).env("PLAIN", "p").run().success();
    let env = fs::read_to_string(world.home().join("env")).unwrap();
    assert!(!env.contains("canary"), "{env}");
    assert!(env.contains("PLAIN=p") && env.contains("PI_EXTENSION=1"), "{env}");
}

#[test]
fn a_lazy_program_starts_when_it_is_used() {
    for is_used in [false, true] {
        let replies = if is_used { Vec::from(greeting()) } else { vec![Reply::text("done")] };
        let (world, _server) = world(replies);
        let folder = world.agent_dir().join("extensions/lazy");
        write_program(&folder.join("run"), &script(&(registers(&hello()) + HELLO)));
        let mut manifest = hello();
        manifest["command"] = "./run".into();
        manifest["lazy"] = true.into();
        fs::write(folder.join("pi-extension.json"), manifest.to_string()).unwrap();
        world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("done\n");
        assert_eq!(log(&world).is_empty(), !is_used);
    }
}

#[test]
fn what_cannot_be_started_is_said() {
    let world = World::new();
    let run = |words: &str| world.pi().words("--model faux/echo -p hi").words(words).run();
    run("-e nothing-here").fails_with(1).stderr_has("Extension path does not exist");
    world.write("plain.txt", "x");
    run("-e plain.txt").fails_with(1).stderr_has("make it executable");
    world.write("bad/pi-extension.json", "{");
    run("-e bad").fails_with(1).stderr_has("is not understood");
    world.write("gone/pi-extension.json", r#"{"command": "no-such-program-here"}"#);
    run("-e gone").fails_with(1).stderr_has("which is not in PATH");
}

#[test]
fn a_deadline_of_a_handler_passes_and_the_run_goes_on() {
    let (world, _server) = world([Reply::text("done")]);
    let fields = json!({"events": [{"event": "agent_start", "timeoutMs": 30}]});
    install(&world, "mute", &fields, "    *'\"type\":\"agent_start\"'*) ;;\n");
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    assert!(done.stderr.contains("agent_start: no answer within 30ms"), "{}", done.stderr);
    // What is late is told that nobody waits.
    assert!(log(&world).iter().any(|message| message["method"] == "$/cancelRequest"));
    done.stdout_is("done\n");
}

#[test]
fn flags_of_programs_are_taken_from_the_command_line() {
    let flags = json!({"flags": [{"name": "plan", "type": "boolean"}, {"name": "depth", "type": "string", "default": "1"}],
        "events": ["session_start"]});
    let arms = r#"
    *'"type":"session_start"'*) saved=$id; call a flags.get '{"name":"plan"}'; call b flags.get '{"name":"depth"}' ;;
    *'"id":"b"'*) ok null "$saved" ;;
"#;
    for (words, plan, depth) in [
        ("-p hi", json!(null), json!("1")),
        ("--plan -p hi", json!(true), json!("1")),
        ("-p --plan --depth 7 hi", json!(true), json!("7")),
        ("--depth=x -p hi", json!(null), json!("x")),
    ] {
        let (world, server) = world([Reply::text("done")]);
        install(&world, "f", &flags, arms);
        world.pi().words("--model mock/m1").words(words).run().success().stdout_is("done\n");
        assert_eq!(server.requests()[0].last_text(), "hi", "{words}");
        let answer = |id: &str| {
            log(&world).into_iter().find(|message| message["id"] == id).unwrap()["result"]["value"].take()
        };
        assert_eq!((answer("a"), answer("b")), (plan, depth), "{words}");
    }
    let (world, _server) = world([]);
    install(&world, "f", &flags, arms);
    world
        .pi()
        .words("--model mock/m1 --bogus -p hi")
        .run()
        .fails_with(2)
        .stderr_has("Unknown option: --bogus");
}

#[test]
fn one_program_runs_many_extensions() {
    let (world, server) = world(greeting());
    let tools = hello()["tools"].clone();
    let answer = json!({"protocolVersion": 1, "extensions": [
        {"id": "e1", "tools": tools, "events": ["tool_result"]},
        {"id": "e2", "error": "is broken"},
        {"id": "e3", "events": ["tool_result"]},
    ]});
    let arms = format!(
        r#"
    *'"method":"initialize"'*) ok '{answer}' ;;
    *'"method":"tool.call"'*'"extension":"e1"'*) ok '"one"' ;;
    *'"extension":"e1"'*'"type":"tool_result"'*) ok '{{"content":[{{"type":"text","text":"two"}}]}}' ;;
    *'"extension":"e3"'*'"type":"tool_result"'*'"two"'*) ok '{{"content":[{{"type":"text","text":"three"}}]}}' ;;
"#
    );
    for name in ["a", "b", "c"] {
        let folder = world.agent_dir().join("extensions").join(name);
        write_program(&folder.join("run"), &script(&arms));
        fs::write(folder.join("pi-extension.json"), r#"{"command": "./run", "group": "host"}"#).unwrap();
    }
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    let is_said = done.stderr.contains("extensions/b/pi-extension.json") && done.stderr.contains("is broken");
    assert!(is_said, "{}", done.stderr);
    assert_eq!(results(server.requests()[1].messages()), ["three"]);
    let messages = log(&world).into_iter();
    let started: Vec<Value> = messages.filter(|message| message["method"] == "initialize").collect();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0]["params"]["extensions"].as_array().unwrap().len(), 3);
}
