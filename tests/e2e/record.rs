//! What sessions and events record beside the words: durations, levels, the active tools, data for programs.

use crate::agent::World;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};

const MODEL: [&str; 2] = ["--model", "mock/m1"];

/// The names of the tools in the last request.
fn declared(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let tools = requests.last().unwrap().body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn ask(world: &World, words: &str) {
    world.pi().args(MODEL).words(words).args(["-p", "hi"]).run().success();
}

/// Asks where no engine is for scripts, so that `codemode` is not there.
fn ask_without_engine(world: &World, words: &str) {
    world.pi().args(MODEL).words(words).args(["-p", "hi"]).env("PATH", "/nowhere").run().success();
}

#[test]
fn answers_and_results_say_how_long_they_took() {
    let (world, _server) = world([
        Reply::tool("a", "bash", &json!({"command": "true"})).then_tool(1, "b", "teleport", &json!({})),
        Reply::text("done"),
    ]);
    ask(&world, "");
    let session = world.session();
    let message = |index: usize| &session[index]["message"];
    let answer = [
        "role",
        "content",
        "api",
        "provider",
        "model",
        "usage",
        "stopReason",
        "timestamp",
        "responseId",
        "rawStopReason",
        "durationMs",
        "thinkingLevel",
    ];
    let (first, ran, refused, last) = (message(5), message(6), message(7), message(8));
    for said in [first, last] {
        let kept: Vec<&str> = keys(said).into_iter().filter(|key| answer.contains(key)).collect();
        assert_eq!(kept, keys(said), "{said}");
        assert!(said["durationMs"].is_u64() && said["thinkingLevel"] == "off", "{said}");
        assert_eq!(keys(said)[keys(said).len() - 2..], ["durationMs", "thinkingLevel"]);
        assert_eq!(said["usage"]["cost"]["totalFromProvider"], false);
    }
    let result = ["role", "toolCallId", "toolName", "content", "isError", "durationMs", "timestamp"];
    assert_eq!(keys(ran), result);
    assert_eq!((refused["isError"].as_bool(), refused.get("durationMs")), (Some(true), None));
}

#[test]
fn events_have_the_result_as_data_and_sessions_have_not() {
    let (world, _server) = world([
        Reply::tool("a", "bash", &json!({"command": "echo out; exit 3"}))
            .then_tool(1, "b", "read", &json!({"path": "f"}))
            .then_tool(2, "c", "bash", &json!({"command": "seq 1 3000"}))
            .then_tool(3, "d", "read", &json!({"path": "none"}))
            .then_tool(4, "e", "bash", &json!({"command": "sleep 60", "timeout": 0.1}))
            .then_tool(5, "f", "bash", &json!({"command": "head -c 1500000 /dev/zero | tr '\\0' x"})),
        Reply::text("done"),
    ]);
    world.write("f", "one\n");
    let run = world.pi().args(MODEL).args(["--mode", "json", "hi"]).run().success();
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = |id: &str| {
        let is_end = |event: &&Value| event["type"] == "tool_execution_end" && event["toolCallId"] == id;
        let end = events.iter().find(is_end).expect("the call ended");
        assert!(end["durationMs"].is_u64(), "{end}");
        end["result"].clone()
    };
    let failed = result("a");
    assert_eq!(keys(&failed), ["content", "structuredContent", "isError"]);
    let data = &failed["structuredContent"];
    assert_eq!(keys(data), ["output", "truncated", "exit_code", "wall_time_seconds"]);
    assert_eq!((&data["output"], &data["exit_code"]), (&json!("out\n"), &json!(3)));
    assert_eq!(result("b")["structuredContent"], "one\n");
    let whole = &result("c")["structuredContent"];
    let numbers: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    assert_eq!((&whole["output"], &whole["truncated"]), (&json!(numbers), &json!(false)));
    for id in ["d", "e"] {
        assert_eq!(keys(&result(id)), ["content", "details"]);
    }
    let large = result("f")["structuredContent"].clone();
    assert_eq!(keys(&large)[..3], ["output", "truncated", "full_output_path"]);
    let output = large["output"].as_str().unwrap();
    assert!(output.contains("x\n\n[... 451424 bytes omitted ...]\n\nx"), "{}", output.len());
    let stored: String = world.session().iter().map(Value::to_string).collect();
    assert!(!stored.contains("structured"));
    let settled = events.last().unwrap();
    assert_eq!(*settled, json!({"type": "agent_settled", "aborted": false}));
}

#[test]
fn the_active_tools_are_those_that_the_session_has_recorded() {
    let rows: &[(&[(&str, &str)], &str)] = &[
        (&[("", "read bash edit write"), ("-c", "read bash edit write")], "plain"),
        (&[("--tools read,grep", "read grep"), ("-c", "read grep")], "chosen"),
        (&[("", "read bash edit write"), ("-c --tools read,ls", "read ls"), ("-c", "read ls")], "over"),
        (&[("", "read bash edit write"), ("-c -nt", ""), ("-c", "")], "none"),
        (&[("", "read bash edit write"), ("-c -nbt", ""), ("-c", "")], "no builtin"),
        (&[("-xt bash", "read edit write"), ("-c", "read edit write")], "excluded"),
        (&[("--tools read,bash", "read bash"), ("-c -xt bash", "read"), ("-c", "read")], "excluded later"),
        (&[("--tools read,bash", "read bash"), ("-c --read-only", "find grep ls read")], "only reading"),
    ];
    for (steps, name) in rows {
        let (world, server) = world(steps.iter().map(|_| Reply::text("ok")));
        for (words, expected) in *steps {
            ask(&world, words);
            let mut found = declared(&server);
            let mut expected: Vec<&str> = expected.split_whitespace().collect();
            if words.contains("read-only") {
                found.sort();
                expected.sort_unstable();
            }
            assert_eq!(found, expected, "{name}: {words}");
        }
    }
}

/// A file of the reference, with what only extensions of it write: a value stored by a tool that runs scripts, nested
/// calls, a virtual model.
fn foreign(world: &World) -> (String, Vec<Value>) {
    let entry = |id: u32, mut fields: Value| {
        fields["id"] = format!("{id:08x}").into();
        fields["parentId"] = if id == 1 { Value::Null } else { format!("{:08x}", id - 1).into() };
        fields["timestamp"] = "2026-11-22T17:10:13.497Z".into();
        fields
    };
    let message = |id: u32, message: Value| entry(id, json!({"type": "message", "message": message}));
    let usage = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5, "totalFromProvider": true}});
    let answer = |content: Value, reason: &str| {
        json!({"role": "assistant", "content": content, "api": "openai-completions", "provider": "mock", "model": "m1",
            "usage": usage, "stopReason": reason, "timestamp": 3, "durationMs": 43, "thinkingLevel": "off"})
    };
    let call =
        json!({"type": "toolCall", "id": "c", "name": "codemode", "arguments": {"code": "store('k', 1)"}});
    let nested = json!({"calls": [{"id": "c/1", "name": "bash", "status": "ok", "arguments": {"command": "ls"},
        "durationMs": 36}], "complete": true});
    let entries = vec![
        json!({"type": "session", "version": 3, "id": "01a2043c-a65c-73c9-bc8e-948d31f44bb4",
            "timestamp": "2026-11-22T17:10:13.343Z", "cwd": world.work()}),
        entry(1, json!({"type": "model_change", "provider": "mock", "modelId": "m1"})),
        message(
            2,
            json!({"role": "system", "content": "", "sections": {"preamble": "p"}, "timestamp": 1,
            "toolsAdded": [{"name": "codemode", "description": "", "parameters": {"type": "object"}},
                {"name": "read", "description": "", "parameters": {"type": "object"}}]}),
        ),
        message(3, json!({"role": "user", "content": [{"type": "text", "text": "go"}], "timestamp": 2})),
        message(4, answer(json!([call]), "toolUse")),
        entry(
            5,
            json!({"type": "custom", "customType": "codemode-store", "data": {"set": {"k": 1}, "delete": []}}),
        ),
        message(
            6,
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "codemode",
            "content": [{"type": "text", "text": "stored"}], "isError": false, "durationMs": 276, "timestamp": 4,
            "nestedCalls": nested}),
        ),
        message(7, answer(json!([{"type": "text", "text": "fine"}]), "stop")),
    ];
    let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    world.write("foreign.jsonl", text);
    (world.work().join("foreign.jsonl").to_str().unwrap().to_owned(), entries)
}

#[test]
fn a_tool_that_is_not_here_stays_recorded_until_it_is_taken_away() {
    let rows: &[(&str, bool)] =
        &[("", false), ("--tools +ls", false), ("--tools=-codemode", true), ("--tools read", true)];
    for (words, is_removed) in rows {
        let (world, server) = world([Reply::text("on"), Reply::text("further")]);
        let (path, entries) = foreign(&world);
        ask_without_engine(&world, &format!("{words} --session {path}"));
        assert!(!declared(&server).contains(&"codemode".to_owned()), "{words}");
        let text = world.read("foreign.jsonl");
        let added: Vec<Value> =
            text.lines().skip(entries.len()).map(|line| serde_json::from_str(line).unwrap()).collect();
        let removed: Vec<&Value> = added
            .iter()
            .flat_map(|entry| entry["message"]["toolsRemoved"].as_array().into_iter().flatten())
            .collect();
        assert_eq!(
            removed.iter().any(|tool| tool["name"] == "codemode"),
            *is_removed,
            "{words}: {removed:?}"
        );
        // The next request says of tools what the first one has said.
        ask_without_engine(&world, &format!("--session {path}"));
        let requests = server.requests();
        assert_eq!(requests[0].body["tools"], requests[1].body["tools"], "{words}");
    }
}

#[test]
fn an_entry_between_a_call_and_its_result_is_kept_and_not_in_the_way() {
    let (world, server) = world([Reply::text("on"), Reply::text("forked")]);
    let (path, entries) = foreign(&world);
    let roles = |messages: &[Value]| -> Vec<String> {
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    ask_without_engine(&world, &format!("--session {path}"));
    let expected = ["system", "user", "assistant", "tool", "assistant", "user"];
    assert_eq!(roles(server.requests()[0].messages()), expected);
    assert_eq!(declared(&server), ["read"]);
    let text = world.read("foreign.jsonl");
    for entry in &entries {
        assert!(text.contains(&entry.to_string()), "{entry}");
    }
    ask_without_engine(&world, &format!("--fork {path}"));
    assert_eq!(roles(server.requests()[1].messages())[..4], expected[..4]);
    let forked = std::fs::read_to_string(&world.session_files()[0]).unwrap();
    for entry in &entries[1..] {
        let fields = ["customType", "data", "message"].map(|field| entry[field].to_string());
        for field in fields.iter().filter(|field| *field != "null") {
            assert!(forked.contains(field), "{field}");
        }
    }
    for target in ["out.html", "out.md", "out.jsonl"] {
        world.pi().words(&format!("export {path} {target}")).run().success();
    }
    let copy = world.read("out.jsonl");
    for part in ["\"nestedCalls\":{", "codemode-store", "\"totalFromProvider\":true", "\"durationMs\":276"] {
        assert!(copy.contains(part), "{part}");
    }
}

#[test]
fn an_unknown_model_gives_way_to_the_one_that_has_answered() {
    let (world, server) = world([Reply::text("a"), Reply::text("b")]);
    let (path, _) = foreign(&world);
    let change = json!({"type": "model_change", "id": "0000000b", "parentId": "00000003", "timestamp": "t",
        "provider": "router", "modelId": "virtual"});
    // Before the answers, which name the model that stood behind it.
    let text = world.read("foreign.jsonl").replace("\"parentId\":\"00000003\"", "\"parentId\":\"0000000b\"");
    let (head, tail) = text.split_at(text.match_indices('\n').nth(3).unwrap().0 + 1);
    world.write("foreign.jsonl", format!("{head}{change}\n{tail}"));
    world.pi().words(&format!("--session {path} -p hi")).run().success();
    assert_eq!(server.requests()[0].body["model"], "m1");
}

#[test]
fn a_cut_answer_is_printed_and_is_a_failure() {
    let told = "Response was truncated: the model reached its output token limit.\n";
    let (world, _server) = world([Reply::text("cut").finish("length")]);
    let run = world.pi().args(MODEL).args(["-p", "hi"]).run().fails_with(1).stdout_is("cut\n");
    assert_eq!(run.stderr, told);
    let (world, _server) = crate::world([Reply::text("cut").finish("length")]);
    world.pi().args(MODEL).args(["--mode", "json", "hi"]).run().fails_with(1);
}
