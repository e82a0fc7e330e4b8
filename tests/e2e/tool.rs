//! The loop with real tools.

use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

const PRINT: [&str; 3] = ["--model", "mock/m1", "-p"];

/// The results that the model was given in the second request, by call.
fn results(server: &crate::server::Server) -> Vec<(String, String)> {
    let requests = server.requests();
    let tools = requests[1].messages().iter().filter(|message| message["role"] == "tool");
    tools
        .map(|message| {
            let text = match message["content"].as_str() {
                Some(text) => text.to_owned(),
                None => message["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            };
            (message["tool_call_id"].as_str().unwrap().to_owned(), text)
        })
        .collect()
}

#[test]
fn files_are_written_edited_and_read() {
    let (world, server) = world([
        Reply::tool("w", "write", &json!({"path": "src/a.txt", "content": "one\ntwo\n"})),
        Reply::tool(
            "e",
            "edit",
            &json!({"path": "src/a.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
        ),
        Reply::tool("r", "read", &json!({"path": "src/a.txt"})),
        Reply::text("done"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success().stdout_is("done\n");
    assert_eq!(world.read("src/a.txt"), "one\n2\n");
    let texts: Vec<String> = server.requests()[1..].iter().map(crate::server::Request::last_text).collect();
    assert_eq!(texts[0], "Successfully wrote to src/a.txt");
    assert_eq!(texts[1], "Successfully replaced 1 block(s) in src/a.txt.");
    assert_eq!(texts[2], "one\n2\n");
}

#[test]
fn a_failing_command_is_a_result_for_the_model() {
    let (world, server) = world([
        Reply::tool("t", "bash", &json!({"command": "echo out; echo err >&2; exit 3"})),
        Reply::text("ok"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert_eq!(results(&server), [("t".into(), "out\nerr\n\n\nCommand exited with code 3".into())]);
}

#[test]
fn unknown_tools_and_bad_arguments_are_told_to_the_model() {
    let (world, server) = world([
        Reply::tool("a", "teleport", &json!({})).then_tool(1, "b", "read", &json!({"offset": "x"})),
        Reply::text("ok"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success();
    let results = results(&server);
    assert_eq!(results[0].1, "Tool teleport not found");
    let expected =
        "Validation failed for tool \"read\":\n  - path: missing\n  - offset: expected number, got string\n";
    assert!(results[1].1.starts_with(expected), "{results:?}");
}

#[test]
fn an_answer_cut_at_the_limit_runs_no_tool() {
    let (world, server) = world([
        Reply::tool("t", "bash", &json!({"command": "touch ran"})).finish("length"),
        Reply::text("ok"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(!world.work().join("ran").exists());
    assert!(results(&server)[0].1.contains("hit the output token limit"), "{:?}", results(&server));
}

#[test]
fn a_stream_that_is_cut_runs_no_tool_and_is_no_answer() {
    let (world, _server) = world([Reply::tool("t", "bash", &json!({"command": "touch ran"})).cut()]);
    world.pi().args(PRINT).args(["go"]).run().fails_with(1).stdout_is("");
    assert!(!world.work().join("ran").exists());
}

#[test]
fn arguments_that_are_not_json_never_run() {
    let call = r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"bash","arguments":"{\"command\": \"touch ran\", oops}"}}]}}]}"#;
    let (world, server) =
        world([Reply::stream().then_bytes(format!("{call}\n\n")).finish("tool_calls"), Reply::text("ok")]);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(!world.work().join("ran").exists());
    let result = results(&server)[0].1.clone();
    let (fault, raw) = result.split_once("\n\nReceived arguments:\n").expect("the arguments are told");
    assert!(fault.starts_with("Invalid arguments for tool \"bash\": "), "{fault}");
    assert_eq!(raw, r#"{"command": "touch ran", oops}"#);
    let session = world.session();
    let call = session.iter().find_map(|entry| entry["message"]["content"][0].get("argumentsError"));
    let error = call.and_then(serde_json::Value::as_str).expect("the call says why");
    assert_eq!(format!("Invalid arguments for tool \"bash\": {error}"), result);
    assert_eq!(server.requests()[1].messages()[2]["tool_calls"][0]["function"]["arguments"], "{}");
}

#[track_caller]
fn tools(args: &[&str], expected: &[&str]) {
    let (world, server) = world([Reply::text("ok")]);
    world.pi().args(PRINT).args(["go"]).args(args).run().success();
    let body = &server.requests()[0].body;
    let mut names: Vec<&str> = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|t| t["function"]["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, expected, "{args:?}");
}

#[test]
fn tools_are_chosen_by_flags() {
    tools(&[], &["bash", "edit", "read", "write"]);
    tools(&["--tools", "read,grep"], &["grep", "read"]);
    tools(&["-xt", "bash"], &["edit", "read", "write"]);
    tools(&["--tools", "read,find,ls", "--exclude-tools", "ls"], &["find", "read"]);
    tools(&["--no-tools"], &[]);
    tools(&["-nbt"], &[]);
}

#[test]
fn commands_see_the_session_variables() {
    let (world, server) = world([
        Reply::tool(
            "t",
            "bash",
            &json!({"command": "env | grep -E '^(PI_|AI_AGENT)' | grep -v TEST | sort"}),
        ),
        Reply::text("ok"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success();
    let (_, text) = &results(&server)[0];
    for part in [
        "AI_AGENT=pi\n",
        "PI_CODING_AGENT=true\n",
        "PI_MODEL=m1\n",
        "PI_PROVIDER=mock\n",
        "PI_REASONING_LEVEL=off\n",
        "PI_SESSION_ID=",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_background_process_ends_with_the_program() {
    let (world, server) = world([
        Reply::tool("t", "bash", &json!({"command": "(setsid sleep 300 &) ; sleep 300 & echo started"})),
        Reply::text("ok"),
    ]);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(results(&server)[0].1.starts_with("started"), "{:?}", results(&server));
    assert_eq!(world.processes(), [0u32; 0]);
}

#[test]
fn requests_extend_each_other_byte_for_byte() {
    let mut replies: Vec<Reply> = (0..12)
        .map(|n| {
            Reply::text("step").then_tool(
                0,
                &format!("t{n}"),
                "bash",
                &json!({"command": format!("echo {n}")}),
            )
        })
        .collect();
    replies.push(Reply::text("done"));
    let (world, server) = world(replies.into_iter().chain([Reply::text("again")]));
    world.pi().args(PRINT).args(["go"]).run().success();
    world.pi().args(PRINT).args(["-c", "more"]).run().success();
    let bodies: Vec<Vec<String>> = server
        .requests()
        .iter()
        .map(|request| request.messages().iter().map(Value::to_string).collect())
        .collect();
    for pair in bodies.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{:#?}\ndoes not extend\n{:#?}", pair[1], pair[0]);
    }
}

/// The names of the tools of the last request.
fn declared(server: &crate::server::Server) -> String {
    let requests = server.requests();
    let body = &requests.last().unwrap().body;
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    names.join(" ")
}

/// The rows without a remark are what the reference declares, in its order.
#[test]
fn lists_of_tools_choose_or_change_what_is_declared() {
    // User's and project's defaultTools, arguments, tools, what stderr says.
    const NO_ENGINE: &str = "The tool codemode is left out: it needs node";
    let defaults = "read bash edit write";
    let rows = [
        ("", "", "", defaults, ""),
        (r#"["+codemode"]"#, "", "", defaults, NO_ENGINE),
        (r#"["+grep", "-write"]"#, "", "", "read bash edit grep", ""),
        (r#"["+grep"]"#, r#"["-bash", "+ls"]"#, "", "read edit write grep ls", ""),
        (r#"["+grep"]"#, r#"["read"]"#, "", "read", ""),
        (r#"["read"]"#, "", "-t +grep", "read grep", ""),
        ("[]", "", "", "", ""),
        // The reference is left without tools.
        (r#"["codemode"]"#, "", "", defaults, NO_ENGINE),
        (r#"["nonsense"]"#, "", "", defaults, "There is no tool \"nonsense\""),
        ("", "", "-t +grep,-write", "read bash edit grep", ""),
        ("", "", "-t +codemode,-nonsense", defaults, NO_ENGINE),
        ("", "", "-nbt -t +grep", "grep", ""),
        ("", "", "-t re*,mcp__*", "read rewind", ""),
        ("", "", "-t read,mcp__radius__*,codemode", "read", NO_ENGINE),
        ("", "", "-t *", "read bash edit write grep find ls task todo job plan checkpoint rewind", NO_ENGINE),
        ("", "", "-t codemode", "", NO_ENGINE),
        ("", "", "-xt w*,mcp__*", "read bash edit", ""),
        ("", "", "-xt nonsense", defaults, "There is no tool \"nonsense\" to exclude"),
        ("", "", "--no-mcp -e builtin:mcp", defaults, ""),
        ("", "", "-e builtin:codemode", defaults, ""),
    ];
    for (user, project, words, expected, told) in rows {
        let (world, server) = world([Reply::text("hi")]);
        if !user.is_empty() {
            world.write_config("settings.json", &format!(r#"{{"defaultTools": {user}}}"#));
        }
        if !project.is_empty() {
            world.write(".pi/settings.json", format!(r#"{{"defaultTools": {project}}}"#));
        }
        // Without an engine for scripts.
        let pi =
            world.pi().args(["--model", "mock/m1", "--no-session", "-a", "-p", "x"]).env("PATH", "/nowhere");
        let outcome = pi.words(words).run().success();
        assert_eq!(declared(&server), expected, "{user} {project} {words}");
        match told {
            "" => assert_eq!(outcome.stderr, "", "{user} {project} {words}"),
            _ => assert!(outcome.stderr.contains(told), "{user} {words}: {}", outcome.stderr),
        }
    }
}
