//! The tool `codemode`, with the JavaScript engine of this machine; without one, that it is left out.

use crate::agent::{Outcome, World, wait_until};
use crate::server::{Reply, Request, Server};
use crate::world;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

pub const PRINT: [&str; 4] = ["--model", "mock/m1", "--tools", "+codemode"];

/// True if node of a version that can take rights away is here.
pub fn has_engine() -> bool {
    let node = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let version = node.map(|node| String::from_utf8_lossy(&node.stdout).into_owned()).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().unwrap_or_default().parse();
    let is_there = major.is_ok_and(|major: u32| major >= 20);
    if !is_there {
        eprintln!("skipped: node 20 or later is needed, found {version:?}");
    }
    is_there
}

pub fn script(code: &str) -> Reply {
    Reply::tool("c", "codemode", &json!({"code": code}))
}

/// A world whose model runs these scripts, one a turn, then says `done`.
fn scripts(codes: &[&str]) -> (World, Server) {
    let (world, server) = world(codes.iter().map(|code| script(code)).chain([Reply::text("done")]));
    (world, server)
}

pub fn run(world: &World) -> Outcome {
    world.pi().args(PRINT).args(["-p", "go"]).run().success()
}

/// The result of the only script, without its head.
pub fn result(server: &Server) -> String {
    let text = server.requests()[1].last_text();
    let (_, rest) = text.split_once("seconds\nOutput:\n").unwrap_or_else(|| panic!("no head: {text}"));
    rest.trim_start_matches('\n').to_owned()
}

pub fn tool_result(world: &World) -> Value {
    let entries = world.session();
    let is_result = |entry: &&Value| entry["message"]["role"] == "toolResult";
    entries.iter().rev().find(is_result).expect("a result")["message"].clone()
}

#[test]
fn a_script_calls_tools_and_puts_out_what_it_wants() {
    if !has_engine() {
        return;
    }
    let code = "const [a, b] = await Promise.allSettled([tools.read({path: 'a.txt'}), tools.read({path: 'none'})]);\n\
        text(a.value.trim()); console.log('failed', b.reason instanceof Error, b.status);\n\
        await tools.write({path: 'b.txt', content: 'made'});\nreturn {n: 1}";
    let (world, server) = scripts(&[code]);
    world.write("a.txt", "first\n");
    run(&world);
    let text = server.requests()[1].last_text();
    assert!(text.starts_with("Script completed\nWall time "), "{text}");
    let expected = "==> text 1/2 <==\nfirst\n==> text 2/2 <==\n{\"n\":1}\n<console_output>\nfailed true rejected\n</console_output>";
    assert_eq!(result(&server), expected);
    assert_eq!(world.read("b.txt"), "made");
    let result = tool_result(&world);
    assert_eq!(result["isError"], false);
    let calls = result["nestedCalls"]["calls"].as_array().unwrap();
    let told: Vec<Value> = calls.iter().map(|call| json!([call["name"], call["status"]])).collect();
    assert_eq!(json!(told), json!([["read", "ok"], ["read", "error"], ["write", "ok"]]));
    assert_eq!(calls[2]["arguments"], json!({"path": "b.txt", "content": "made"}));
    assert_eq!((&calls[0]["id"], &result["nestedCalls"]["complete"]), (&json!("c/1"), &json!(true)));
    assert_eq!(result["details"]["calls"][2]["status"], "ok");
}

#[test]
fn calls_of_a_script_have_events_of_their_own() {
    if !has_engine() {
        return;
    }
    let code = "await tools.read({path: 'a.txt'});\n\
        await Promise.allSettled([tools.bash({command: 'echo hi'}), tools.read({path: 'none'}), tools.read({})])";
    let (world, _server) = scripts(&[code]);
    world.write("a.txt", "first\n");
    let outcome = world.pi().args(PRINT).args(["--mode", "json", "go"]).run().success();
    let lines = outcome.events();
    let nested: Vec<&Value> = lines.iter().filter(|line| line["parentToolCallId"] == "c").collect();
    let of = |kind: &str| nested.iter().copied().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let starts: Vec<Value> = of("tool_execution_start")
        .iter()
        .map(|line| json!([line["toolCallId"], line["toolName"], line["args"]]))
        .collect();
    let expected = json!([
        ["c/1", "read", {"path": "a.txt"}],
        ["c/2", "bash", {"command": "echo hi"}],
        ["c/3", "read", {"path": "none"}],
        ["c/4", "read", {}],
    ]);
    assert_eq!(json!(starts), expected);
    assert!(of("tool_execution_update").iter().any(|line| line["toolCallId"] == "c/2"));
    let mut ends = of("tool_execution_end");
    ends.sort_by_key(|line| line["toolCallId"].to_string());
    let told: Vec<Value> =
        ends.iter().map(|line| json!([line["isError"], line["durationMs"].is_u64()])).collect();
    // The last call did not run.
    assert_eq!(json!(told), json!([[false, true], [false, true], [true, true], [true, false]]));
    assert_eq!(ends[0]["result"]["structuredContent"], "first\n");
    // All of them lie within the call of the script, and none is a message.
    let place = |line: &Value| lines.iter().position(|other| other == line).unwrap();
    let is_end = |line: &&Value| line["type"] == "tool_execution_end" && line["toolCallId"] == "c";
    let end = lines.iter().find(is_end).expect("the end of the script");
    assert!(end.get("parentToolCallId").is_none());
    assert!(nested.iter().all(|line| place(line) < place(end)));
    let roles: Vec<String> = world
        .session()
        .iter()
        .filter_map(|entry| Some(entry["message"]["role"].as_str()?.to_owned()))
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "toolResult", "assistant"]);

    let (world, _server) = scripts(&["await tools.bash({command: 'echo hi'})"]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools +codemode");
    client.prompt("go").unwrap();
    let events = client.wait_until_settled().unwrap();
    let kinds: Vec<&Value> = events
        .iter()
        .filter(|event| event["parentToolCallId"] == "c")
        .map(|event| &event["type"])
        .filter(|kind| **kind != "tool_execution_update")
        .collect();
    assert_eq!(kinds, ["tool_execution_start", "tool_execution_end"]);
    client.close().unwrap();
}

#[test]
fn a_script_that_fails_says_why_and_keeps_what_it_put_out() {
    if !has_engine() {
        return;
    }
    let rows = [
        (
            "text('before');\nthrow new TypeError('bad')",
            "before\nScript error:\nTypeError: bad\n    at line 2, column 7",
        ),
        ("await tools.read({path: 'a.txt'}); null.x", "read (ok)"),
        ("await tools.read({})", "Validation failed"),
        ("await tools.codemode({code: '1'})", "tools.codemode is not a function"),
        ("return (await tools.none())", "tools.none is not a function"),
        ("nonsense here", "SyntaxError"),
        ("await new Promise(() => {})", "nothing can settle"),
        ("// @options: {\"timeout_ms\": 300}\nwhile (true) {}", "Script timed out after 300 ms"),
        ("const a = []; while (true) a.push('x'.repeat(1e6) + a.length)", "out of memory"),
        ("const a = 'x'.repeat(1e6); while (true) text(a)", "more than 16777216 characters"),
        ("while (true) console.log('')", "more than 100000 items"),
        ("store('a', 'x'.repeat(3e5))", "more than 262144 characters"),
        ("image('https://a/b.png')", "addresses are not fetched"),
        ("// @options: {\"x\": 1}", "\"x\" is unknown"),
        ("", "is empty"),
    ];
    for (code, expected) in rows {
        let (world, server) = scripts(&[code]);
        world.write("a.txt", "first\n");
        run(&world);
        let text = server.requests()[1].last_text();
        assert!(text.contains(expected), "{code}: {text}");
        assert_eq!(tool_result(&world)["isError"], true, "{code}");
        assert_eq!(world.processes_left(), Vec::<u32>::new());
    }
}

#[test]
fn a_script_has_nothing_but_its_names() {
    if !has_engine() {
        return;
    }
    let rows = [
        "[typeof process, typeof require, typeof fetch, typeof setTimeout, typeof Deno].join()",
        "text.constructor.constructor('return [typeof process, typeof require, typeof fetch].join()')()",
        "await import('node:fs').then(() => 'imported', (error) => \
         error.constructor.constructor('return [typeof process, typeof require, typeof fetch].join()')())",
        "await import('node:child_process').then(() => 'imported', () => 'undefined')",
        "await import('data:text/javascript,export default 1').then(() => 'imported', () => 'undefined')",
    ];
    for row in rows {
        let (_world, server) = scripts(&[&format!("return {row}")]);
        run(&_world);
        let result = result(&server);
        assert!(result.split(',').all(|kind| kind == "undefined"), "{row}: {result}");
    }
}

#[test]
fn values_are_kept_on_the_branch_that_stored_them() {
    if !has_engine() {
        return;
    }
    let codes = [
        "store('a', {n: 1}); store('b', 2); return typeof load('none')",
        "store('a', {n: load('a').n + 1}); store('b', undefined); store('c', [])",
        "store('a', 'lost'); throw new Error('no')",
        "return [load('a'), load('b'), load('c')]",
    ];
    let (world, server) = scripts(&codes);
    run(&world);
    let requests = server.requests();
    assert!(requests[1].last_text().ends_with("undefined"));
    assert!(requests[4].last_text().ends_with("[{\"n\":2},null,[]]"), "{}", requests[4].last_text());
    let kept: Vec<Value> = world
        .session()
        .iter()
        .filter(|entry| entry["customType"] == "codemode-store")
        .map(|entry| entry["data"].clone())
        .collect();
    assert_eq!(
        json!(kept),
        json!([{"set": {"a": {"n": 1}, "b": 2}, "delete": []}, {"set": {"a": {"n": 2}, "c": []}, "delete": ["b"]}])
    );
    // Another start of the session has them, too.
    let (again, server) = (world, Server::start([script("return load('a')"), Reply::text("done")]));
    again.use_server(&server);
    again.pi().args(PRINT).args(["-c", "-p", "go"]).run().success();
    assert_eq!(result(&server), "{\"n\":2}");
}

#[test]
fn large_output_loses_its_middle_and_images_are_shown() {
    if !has_engine() {
        return;
    }
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let code = format!(
        "// @options: {{\"max_output_tokens\": 100}}\nimage('data:image/png;base64,{PNG}'); return 'x'.repeat(999) + 'END'"
    );
    let (world, server) = scripts(&[&code]);
    run(&world);
    let result = tool_result(&world);
    let content = result["content"].as_array().unwrap();
    let kinds: Vec<&str> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "text", "image"]);
    let text = content[1]["text"].as_str().unwrap();
    assert!(
        text.contains("END") && text.contains("tokens truncated") && text.contains("[Image saved to "),
        "{text}"
    );
    let all = std::fs::read_to_string(result["details"]["fullOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(all.len(), 1002);
    drop(server);
}

#[test]
fn calls_of_scripts_are_asked_about_and_an_abort_ends_them() {
    if !has_engine() {
        return;
    }
    let (world, server) = scripts(&[
        "return (await Promise.allSettled([tools.write({path: 'x', content: ''})]))[0].reason.message",
    ]);
    world.pi().args(PRINT).args(["--ask-tools", "writes", "-p", "go"]).run().success();
    assert!(!world.work().join("x").exists());
    assert!(result(&server).contains("\"write\" needs approval"), "{}", result(&server));

    let (world, _server) = scripts(&["await tools.bash({command: 'touch begun; sleep 300'})"]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools +codemode");
    client.prompt("go").unwrap();
    // The event of the call precedes the command.
    wait_until("the command has begun", || world.work().join("begun").exists());
    client.abort().unwrap();
    client.wait_until_settled().unwrap();
    client.close().unwrap();
    assert_eq!(world.processes_left(), Vec::<u32>::new());
}

fn declared(request: &Request) -> Vec<String> {
    let tools = request.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_an_engine_it_is_left_out_and_that_is_said_once() {
    let (world, server) = world([Reply::text("done")]);
    let outcome = world.pi().args(PRINT).args(["-p", "go"]).env("PATH", "/nowhere").run().success();
    assert_eq!(outcome.stderr.matches("it needs node").count(), 1, "{}", outcome.stderr);
    assert_eq!(declared(&server.requests()[0]), ["read", "bash", "edit", "write"]);
    // Who did not ask for it is told nothing.
    let (world, _server) = crate::world([Reply::text("done")]);
    let outcome = world.pi().args(["--model", "mock/m1", "-p", "go"]).env("PATH", "/nowhere").run().success();
    assert!(!outcome.stderr.contains("node"), "{}", outcome.stderr);
}

#[test]
fn scripts_may_be_the_only_way_to_other_tools() {
    if !has_engine() {
        return;
    }
    let code = "return (await tools.bash({command: 'echo hi; exit 3'})).exit_code";
    let (world, server) = world([script(code)].into_iter().chain((0..6).map(|_| Reply::text("done"))));
    let said = |request: &Request| {
        let tools = request.body["tools"].as_array().unwrap().iter();
        let own = tools.map(|tool| &tool["function"]).find(|tool| tool["name"] == "codemode").cloned();
        own.map(|tool| tool["description"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    let starts = |mode: &str, words: &[&str]| {
        world.write_config("settings.json", &json!({"codemode": {"mode": mode}}).to_string());
        world.pi().args(["--model", "mock/m1"]).args(words).run().success();
        server.requests().last().unwrap().clone()
    };
    let request = starts("only", &["--tools", "+codemode", "-p", "go"]);
    assert!(result(&server).ends_with('3'));
    assert_eq!(declared(&request), ["codemode"]);
    let about = said(&request);
    for name in ["read", "bash", "edit", "write"] {
        assert!(about.contains(&format!("tools.{name}(args: {{\n  ")), "{name}: {about}");
    }
    assert!(about.contains("exit_code: number;") && !about.contains("tools.ls("), "{about}");
    let prompt = request.body["messages"][0].to_string();
    assert!(prompt.contains("- codemode: ") && !prompt.contains("- read: "), "{prompt}");
    // The session has recorded all tools as active: the setting alone decides on what is declared.
    let added =
        &world.session().iter().find_map(|entry| entry["message"].get("toolsAdded").cloned()).unwrap();
    assert_eq!(added.as_array().unwrap().len(), 5);
    let request = starts("only", &["--tools", "+ls", "-c", "-p", "go"]);
    assert_eq!(declared(&request), ["codemode"]);
    assert!(said(&request).contains("tools.ls("));
    let request = starts("on", &["-c", "-p", "go"]);
    assert_eq!(declared(&request), ["read", "bash", "edit", "write", "ls", "codemode"]);
    assert!(!said(&request).contains("tools.ls("));
    let request = starts("only", &["--tools", "-codemode", "-c", "-p", "go"]);
    assert_eq!(declared(&request), ["read", "bash", "edit", "write", "ls"]);
    // The shortest tools go into a small budget.
    world.write_config("settings.json", r#"{"codemode": {"mode": "only", "inlineBudget": 80}}"#);
    world.pi().args(PRINT).args(["-p", "go"]).run().success();
    let about = said(server.requests().last().unwrap());
    assert!(about.contains("tools.write(") && !about.contains("tools.edit("), "{about}");
}

/// A server with two tools, in `sh`.
const SCRIPT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"},"instructions":"Adds numbers"}';;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"add-up","description":"Adds numbers up","inputSchema":{"type":"object","properties":{"n":{"type":"number"}}},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}}}},{"name":"fail","inputSchema":{"type":"object"}}]}';;
    *'"name":"fail"'*) answer '{"content":[{"type":"text","text":"it failed"}],"isError":true}';;
    *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"4"}],"structuredContent":{"sum":4}}';;
  esac
done
"#;

#[test]
fn tools_of_servers_are_called_from_scripts() {
    if !has_engine() {
        return;
    }
    let code = "const sum = await tools.mcp__one__add_up({n: 1}); const bad = await tools.mcp__one__fail();\n\
        const found = await searchTools('add numbers', {limit: 1, namespace: 'one'});\n\
        const about = await describeNamespace('mcp__one');\n\
        return [sum.structuredContent.sum, bad.isError, found[0].name, about.instructions, about.tools.length,\n\
        (await describeTool('mcp__one__add_up')).includes('n?: number'),\n\
        (await describeTool('mcp__one__add_up')).includes('structuredContent?: { sum?: number }'), typeof await describeTool('none'),\n\
        ALL_TOOLS.some((tool) => tool.name === 'mcp__one__add_up')]";
    let (world, server) = scripts(&[code]);
    let script = world.home().join("server.sh");
    std::fs::write(&script, SCRIPT).unwrap();
    let config = json!({"mcpServers": {"one": {"command": "sh", "args": [script]}}});
    world.write_config("mcp.json", &config.to_string());
    let print = ["--model", "mock/m1", "-p", "go"];
    world.pi().args(print).run().success();
    let requests = server.requests();
    assert_eq!(declared(&requests[0]), ["read", "bash", "edit", "write", "codemode"]);
    let prompt = requests[0].body["messages"][0].to_string();
    assert!(prompt.contains("- mcp__one (codemode)"), "{prompt}");
    assert_eq!(result(&server), r#"[4,true,"mcp__one__add_up","Adds numbers",2,true,true,"undefined",true]"#);
    // Who does not want scripts has a search.
    for (path, config) in [
        ("mcp.json", json!({"autoEnableCodemode": false, "mcpServers": config["mcpServers"]})),
        ("settings.json", json!({"extensions": ["-builtin:codemode"]})),
    ] {
        let (other, server) = crate::world([Reply::text("done")]);
        std::fs::write(other.home().join("server.sh"), SCRIPT).unwrap();
        let servers = json!({"one": {"command": "sh", "args": [other.home().join("server.sh")]}});
        other.write_config("mcp.json", &json!({"mcpServers": servers}).to_string());
        let mut config = config;
        if path == "mcp.json" {
            config["mcpServers"] = servers;
        }
        other.write_config(path, &config.to_string());
        other.pi().args(print).run().success();
        assert_eq!(
            declared(&server.requests()[0]),
            ["read", "bash", "edit", "write", "tool_search"],
            "{path}"
        );
    }
    // Without extensions there are no servers and no scripts, unless they are asked for.
    for (words, expected) in [
        ("-ne", vec!["read", "bash", "edit", "write"]),
        ("-ne -e builtin:mcp", vec!["read", "bash", "edit", "write", "tool_search"]),
        ("-ne -e builtin:mcp -e builtin:codemode", vec!["read", "bash", "edit", "write", "codemode"]),
    ] {
        let server = Server::start([Reply::text("done")]);
        world.use_server(&server);
        world.pi().args(print).words(words).run().success();
        assert_eq!(declared(&server.requests()[0]), expected, "{words}");
    }
}
