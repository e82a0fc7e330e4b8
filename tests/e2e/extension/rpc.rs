//! Extensions and a client of RPC mode: commands, questions, calls.

use super::{hello, install, log};
use crate::agent::{World, wait_until};
use crate::server::{PATIENCE, Reply, gate};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::process::Stdio;

pub fn client(world: &World) -> Client {
    let mut pi = world.pi().words("--mode rpc --model mock/m1");
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client
}

fn until(client: &mut Client, kind: &str) -> Value {
    let events = client.events_until(kind).unwrap_or_else(|error| panic!("no {kind}: {error}"));
    events.last().unwrap().clone()
}

#[test]
fn a_command_is_listed_and_handled() {
    let (world, server) = world([]);
    let arms = "    *'\"method\":\"command.run\"'*) call n ui.notify '{\"message\":\"ran\",\"type\":\"warning\"}'; ok null ;;\n";
    install(&world, "cmd", &json!({"commands": [{"name": "do", "description": "Does"}]}), arms);
    let mut client = client(&world);
    let commands = client.request("get_commands", json!({})).unwrap()["commands"].clone();
    assert_eq!(commands[0]["name"], "do");
    assert_eq!(commands[0]["source"], "extension");
    assert_eq!(commands[0]["sourceInfo"]["scope"], "user");
    let answer = client.request("prompt", json!({"message": "/do it"})).unwrap();
    assert_eq!(answer, json!({"disposition": "handled"}));
    let shown = until(&mut client, "extension_ui_request");
    assert_eq!(
        (&shown["method"], &shown["message"], &shown["notifyType"]),
        (&json!("notify"), &json!("ran"), &json!("warning"))
    );
    assert!(client.close().unwrap().success());
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn questions_reach_the_client_and_answers_the_program() {
    let rows = [
        (
            "select",
            json!({"title": "T", "options": ["a", "b"]}),
            json!({"value": "b"}),
            json!({"value": "b"}),
        ),
        (
            "select",
            json!({"title": "T", "options": ["a"]}),
            json!({"cancelled": true}),
            json!({"value": null}),
        ),
        (
            "confirm",
            json!({"title": "T", "message": "M"}),
            json!({"confirmed": true}),
            json!({"confirmed": true}),
        ),
        (
            "confirm",
            json!({"title": "T", "message": "M"}),
            json!({"confirmed": false}),
            json!({"confirmed": false}),
        ),
        ("input", json!({"title": "T", "placeholder": "P"}), json!({"value": "x"}), json!({"value": "x"})),
        ("editor", json!({"title": "T", "prefill": "P"}), json!({"value": "x\ny"}), json!({"value": "x\ny"})),
    ];
    for (method, params, answer, expected) in rows {
        let (world, _server) = world([]);
        let arms = format!(
            "    *'\"method\":\"command.run\"'*) saved=$id; call q ui.{method} '{params}' ;;\n    *'\"id\":\"q\"'*) ok null \"$saved\" ;;\n"
        );
        install(&world, "cmd", &json!({"commands": [{"name": "ask"}]}), &arms);
        let mut client = client(&world);
        let id = client.send("prompt", json!({"message": "/ask"})).unwrap();
        let asked = until(&mut client, "extension_ui_request");
        assert_eq!(asked["method"], method);
        for (name, value) in params.as_object().unwrap() {
            assert_eq!(&asked[name], value, "{method}");
        }
        let mut line = json!({"type": "extension_ui_response", "id": asked["id"]});
        line.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        client.send_line(line.to_string().as_bytes()).unwrap();
        client.answer(id).unwrap();
        let got = log(&world).into_iter().find(|message| message["id"] == "q").unwrap();
        assert_eq!(got["result"], expected, "{method}");
        client.close().unwrap();
    }
}

#[test]
fn a_question_is_over_after_its_time_and_the_handler_has_all_of_its_own() {
    let (world, _server) = world([Reply::text("done")]);
    let arms = "    *'\"type\":\"agent_start\"'*) saved=$id; call q ui.confirm '{\"title\":\"T\",\"message\":\"M\",\"timeout\":1500}' ;;\n    *'\"id\":\"q\"'*) ok null \"$saved\" ;;\n";
    install(&world, "cmd", &json!({"events": [{"event": "agent_start", "timeoutMs": 500}]}), arms);
    let mut client = client(&world);
    client.prompt("hi").unwrap();
    let events = client.wait_until_settled().unwrap();
    let kind = |name: &str| events.iter().filter(|event| event["type"] == name).count();
    assert_eq!((kind("extension_ui_request"), kind("extension_error")), (1, 0), "{events:?}");
    client.close().unwrap();
}

#[test]
fn a_failing_handler_is_told_by_an_event() {
    let (world, _server) = world([Reply::text("done")]);
    install(&world, "bad", &json!({"events": ["turn_end"]}), "    *'\"type\":\"turn_end\"'*) fail boom ;;\n");
    let mut client = client(&world);
    client.prompt("hi").unwrap();
    let events = client.wait_until_settled().unwrap();
    let error = events.iter().find(|event| event["type"] == "extension_error").unwrap();
    assert!(error["extensionPath"].as_str().unwrap().ends_with("extensions/bad"));
    assert_eq!((&error["event"], &error["error"]), (&json!("turn_end"), &json!("boom")));
    client.close().unwrap();
}

/// Makes one call from a command and gives its result, or the text of its error.
fn calls(client: &mut Client, world: &World, method: &str, params: &Value) -> Result<Value, String> {
    let line = json!({"method": method, "params": params});
    std::fs::write(world.home().join("call"), line["params"].to_string()).unwrap();
    std::fs::write(world.home().join("ext.log"), "").unwrap();
    client.request("prompt", json!({"message": format!("/call {method}")})).unwrap();
    let got = log(world).into_iter().find(|message| message["id"] == "q");
    let got = got.unwrap_or_else(|| panic!("{method} was not answered: {:?}", log(world)));
    match got.get("error") {
        Some(error) => Err(error["message"].as_str().unwrap().to_owned()),
        None => Ok(got["result"].clone()),
    }
}

const CALLER: &str = r#"
    *'"method":"command.run"'*)
      saved=$id
      method=$(printf '%s' "$line" | sed -n 's/.*"arguments":"\([a-zA-Z.]*\)".*/\1/p')
      call q "$method" "$(cat "$HOME/call")" ;;
    *'"id":"q"'*) ok null "$saved" ;;
"#;

#[test]
fn a_reload_is_refused_during_a_run() {
    let (open, held) = gate();
    let (world, _server) = world([Reply::text("one ").then_wait(held).then_text("two")]);
    install(&world, "caller", &json!({"commands": [{"name": "call"}]}), CALLER);
    let mut client = client(&world);
    client.prompt("hi").unwrap();
    let refused = calls(&mut client, &world, "session.reload", &json!({})).unwrap_err();
    assert_eq!(refused, "Wait for the current response to finish before reloading.");
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    client.close().unwrap();
}

#[test]
fn a_signal_does_not_interrupt_the_end_that_a_closed_stdin_began() {
    let (world, _server) = world([]);
    let [begun, go_on] = ["begun", "go-on"].map(|name| world.home().join(name));
    let arms = "    *'\"type\":\"session_shutdown\"'*) : > \"$HOME/begun\"
      until [ -e \"$HOME/go-on\" ]; do sleep 0.01; done; ok null ;;\n";
    install(&world, "slow", &json!({"events": ["session_shutdown"]}), arms);
    let pi = world.pi().words("--mode rpc --model mock/m1").spawn();
    wait_until("the end has begun", || begun.exists());
    pi.signal("TERM");
    std::fs::write(go_on, "").unwrap();
    pi.wait().success();
    assert_eq!(log(&world).last().unwrap()["method"], "shutdown");
}

#[test]
fn programs_read_and_change_the_session() {
    let (world, server) = world([Reply::text("aside"), Reply::text("one"), Reply::text("two")]);
    let mut fields = hello();
    fields["commands"] = json!([{"name": "call"}]);
    fields["flags"] = json!([{"name": "plan", "type": "string", "default": "none"}]);
    let arms = format!("{CALLER}    *'\"method\":\"tool.call\"'*) ok '{{\"content\":\"Hello.\"}}' ;;\n");
    install(&world, "caller", &fields, &arms);
    let mut client = client(&world);
    let mut call = |method: &str, params: Value| calls(&mut client, &world, method, &params);
    let state = call("session.state", json!({})).unwrap();
    assert_eq!((&state["isIdle"], &state["model"]["id"]), (&json!(true), &json!("m1")));
    assert!(
        call("session.appendEntry", json!({"customType": "x", "data": {"n": 1}})).unwrap()["id"].is_string()
    );
    let entries = call("session.entries", json!({})).unwrap()["entries"].clone();
    let last = entries.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["type"], &last["data"]), (&json!("custom"), &json!({"n": 1})));
    let branch = call("session.branch", json!({})).unwrap()["entries"].clone();
    assert_eq!(branch.as_array().unwrap().last(), Some(&last));
    call("session.setName", json!({"name": "Named"})).unwrap();
    assert_eq!(call("session.state", json!({})).unwrap()["sessionName"], "Named");
    call("session.setLabel", json!({"entryId": last["id"], "label": "here"})).unwrap();
    assert_eq!(call("flags.get", json!({"name": "plan"})).unwrap()["value"], "none");
    let ran =
        call("exec", json!({"command": "sh", "args": ["-c", "echo out; echo err >&2; exit 3"]})).unwrap();
    assert_eq!(
        ran,
        json!({"stdout": "out\n", "stderr": "err\n", "code": 3, "killed": false, "truncated": false})
    );
    let ran = call("exec", json!({"command": "sleep", "args": ["300"], "timeout": 30})).unwrap();
    assert_eq!((&ran["killed"], &ran["truncated"]), (&json!(true), &json!(false)));
    let ran = call("exec", json!({"command": "yes", "maxBuffer": 1000})).unwrap();
    assert_eq!((&ran["killed"], &ran["truncated"]), (&json!(true), &json!(true)));
    let said =
        call("models.complete", json!({"messages": [{"role": "user", "content": "aside?", "timestamp": 1}]}))
            .unwrap();
    assert_eq!(said["content"][0]["text"], "aside");
    let nested =
        call("tools.execute", json!({"toolCallId": "c", "name": "read", "arguments": {"path": "nothing"}}))
            .unwrap();
    assert_eq!(nested["isError"], true);
    let names = call("tools.setActive", json!({"names": ["read"]})).unwrap()["names"].clone();
    assert_eq!(names, json!(["read"]));
    let prompt = call("session.systemPrompt", json!({})).unwrap();
    assert!(prompt["sections"]["preamble"].is_string());
    for (method, params, fault) in [
        ("session.setName", json!({}), "\"name\" is missing"),
        ("no.such", json!({}), "Unknown method: no.such"),
        ("exec", json!({"command": "no-such-program-here"}), "Cannot start no-such-program-here"),
        ("register", json!({"tools": [{}]}), "\"tools\""),
    ] {
        let error = call(method, params).unwrap_err();
        assert!(error.contains(fault), "{method}: {error}");
    }
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(calls(&mut client, &world, "session.new", &json!({})).unwrap(), json!({"cancelled": false}));
    assert_eq!(client.messages().unwrap().len(), 0);
    let sent = json!({"message": {"customType": "note", "content": "from me", "display": true}, "triggerTurn": true});
    calls(&mut client, &world, "session.sendMessage", &sent).unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests().last().unwrap().last_text(), "from me");
    client.send("prompt", json!({"message": "/call session.shutdown"})).unwrap();
    // It ends by itself, and in order.
    while client.next_event().is_ok() {}
    assert!(client.close().unwrap().success());
}

#[test]
fn tools_come_and_go_while_the_session_lives() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    install(&world, "caller", &json!({"commands": [{"name": "call"}]}), CALLER);
    let mut client = client(&world);
    let declares = |at: usize| server.requests()[at].body["tools"].to_string().contains("\"hello\"");
    calls(&mut client, &world, "register", &hello()).unwrap();
    client.prompt("a").unwrap();
    client.wait_until_settled().unwrap();
    assert!(declares(0));
    calls(&mut client, &world, "unregister", &json!({"tools": ["hello"]})).unwrap();
    client.prompt("b").unwrap();
    client.wait_until_settled().unwrap();
    assert!(!declares(1));
    client.close().unwrap();
}

#[test]
fn a_reload_starts_programs_anew() {
    let (world, _server) = world([]);
    install(&world, "x", &json!({"events": ["session_start", "session_shutdown"]}), "");
    let mut client = client(&world);
    client.request("reload", json!({})).unwrap();
    client.close().unwrap();
    let told: Vec<String> = super::events(&world)
        .iter()
        .map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        ["session_start startup", "session_shutdown reload", "session_start reload", "session_shutdown quit"]
    );
    assert_eq!(log(&world).iter().filter(|message| message["method"] == "initialize").count(), 2);
}

#[test]
fn a_message_is_stored_at_once_as_an_entry_of_its_own() {
    let (world, _server) = world([]);
    install(&world, "caller", &json!({"commands": [{"name": "call"}]}), CALLER);
    let mut client = client(&world);
    for text in ["one", "two"] {
        let message =
            json!({"message": {"customType": "note", "content": text, "display": true, "details": {"n": 1}}});
        calls(&mut client, &world, "session.sendMessage", &message).unwrap();
        calls(&mut client, &world, "session.appendEntry", &json!({"customType": "mark", "data": text}))
            .unwrap();
    }
    let entries = calls(&mut client, &world, "session.entries", &json!({})).unwrap();
    let entries =
        entries["entries"].as_array().unwrap().iter().filter(|entry| entry["customType"].is_string());
    let order: Vec<(&str, &str)> = entries
        .map(|entry| {
            let said = if entry["type"] == "custom_message" { &entry["content"] } else { &entry["data"] };
            (entry["type"].as_str().unwrap(), said.as_str().unwrap())
        })
        .collect();
    let (said, marked) = ("custom_message", "custom");
    assert_eq!(order, [(said, "one"), (marked, "one"), (said, "two"), (marked, "two")]);
    client.close().unwrap();
}

#[test]
fn every_failed_compaction_is_told() {
    let (world, _server) = world([Reply::text("one")]);
    super::install(&world, "x", &json!({"events": ["session_compact_failed", "session_before_compact"]}), "");
    let mut client = client(&world);
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    let refused = client.request("compact", json!({})).unwrap_err().to_string();
    assert!(refused.contains("Nothing to compact"), "{refused}");
    client.close().unwrap();
    let expected = json!([{"type": "session_compact_failed", "reason": "manual", "aborted": false,
        "willRetry": false, "fromExtension": false,
        "errorMessage": "Compaction failed: Nothing to compact (session too small)"}]);
    assert_eq!(Value::from(super::events(&world)), expected);
}

#[test]
fn questions_that_overlap_are_one_wait_for_the_user() {
    let (world, _server) = world([]);
    // The first question is open while the second is asked.
    let arms = r#"
    *'"method":"command.run"'*) saved=$id; call a ui.input '{"title":"first"}'; call b ui.confirm '{"title":"second"}' ;;
    *'"id":"a"'*|*'"id":"b"'*) if [ -n "$one" ]; then ok null "$saved"; else one=1; fi ;;
"#;
    let fields = json!({"commands": [{"name": "ask"}], "events": ["ui_prompt_start", "ui_prompt_end"]});
    super::install(&world, "x", &fields, arms);
    let mut client = client(&world);
    let asked = client.send("prompt", json!({"message": "/ask"})).unwrap();
    let mut open = Vec::new();
    while open.len() < 2 {
        let events = client.events_until("extension_ui_request").unwrap();
        open.push(events.last().unwrap().clone());
    }
    for question in &open {
        let answer = match question["method"].as_str().unwrap() {
            "input" => json!({"id": question["id"], "value": "x"}),
            _ => json!({"id": question["id"], "confirmed": true}),
        };
        client.send("extension_ui_response", answer).unwrap();
    }
    client.answer(asked).unwrap();
    // Nobody waits for these events.
    crate::agent::wait_until("both ends are told", || super::events(&world).len() >= 2);
    client.close().unwrap();
    let told = super::events(&world);
    let kinds: Vec<&Value> = told.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["ui_prompt_start", "ui_prompt_end"]);
    assert_eq!(told[0]["kind"], told[1]["kind"]);
    assert_eq!(told[0]["title"], told[1]["title"]);
}

#[test]
fn a_component_waits_for_the_user_as_a_question_does() {
    let (world, _server) = world([]);
    let arms = "    *'\"method\":\"command.run\"'*) saved=$id; call c ui.custom '{\"component\":\"x\"}' ;;\n    *'\"id\":\"c\"'*) ok null \"$saved\" ;;\n";
    let fields = json!({"commands": [{"name": "show"}], "events": ["ui_prompt_start", "ui_prompt_end"]});
    install(&world, "x", &fields, arms);
    let mut client = client(&world);
    client.request("prompt", json!({"message": "/show"})).unwrap();
    wait_until("it is told", || super::events(&world).len() >= 2);
    client.close().unwrap();
    let prompt = |kind: &str| json!({"type": kind, "reason": "ui_prompt", "kind": "custom"});
    assert_eq!(super::events(&world), [prompt("ui_prompt_start"), prompt("ui_prompt_end")]);
}

#[test]
fn a_thinking_level_is_told_before_the_model_that_brings_it() {
    let (world, server) = world([Reply::text("one")]);
    let models = json!([{"id": "m1", "reasoning": true}, {"id": "m2"}]);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
        "api": "openai-completions", "models": models}}});
    world.write_config("models.json", &config.to_string());
    let names = ["model_select", "thinking_level_select", "provider_stream_event"];
    install(&world, "x", &json!({"events": names}), "");
    let mut client = client(&world);
    client.request("set_thinking_level", json!({"level": "high"})).unwrap();
    client.request("set_model", json!({"provider": "mock", "modelId": "m2"})).unwrap();
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    client.close().unwrap();
    let told = super::events(&world);
    let selected: Vec<_> =
        told.iter().filter(|event| event["data"].is_null()).map(|event| event["type"].clone()).collect();
    assert_eq!(selected, ["thinking_level_select", "thinking_level_select", "model_select"]);
    // The mark at the end of the stream is no event of it.
    let data: Vec<&Value> = told.iter().map(|event| &event["data"]).filter(|data| !data.is_null()).collect();
    assert!(!data.is_empty() && data.iter().all(|data| data.is_object()), "{data:?}");
}
