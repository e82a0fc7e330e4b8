//! `--mode mcp`, as a client of the Model Context Protocol drives it.

use crate::agent::World;
use crate::server::{PATIENCE, Reply, Step};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::process::Stdio;

/// A client, with pi at its other end.
struct Other {
    client: Client,
    last_id: u64,
}

impl Other {
    fn start(world: &World, words: &str, able: &Value) -> Self {
        let mut pi = world.pi().words("--mode mcp").words(words);
        let command = pi.command().stderr(Stdio::null());
        let mut client = Client::spawn(command).expect("start pi");
        client.set_patience(PATIENCE);
        let mut other = Self { client, last_id: 0 };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": able,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = other.request("initialize", &params);
        assert_eq!(answer["protocolVersion"], "2025-06-18");
        assert_eq!(answer["serverInfo"]["name"], "pi");
        other.notify("notifications/initialized", &json!({}));
        other
    }

    fn send_line(&mut self, line: &Value) {
        self.client.send_line(line.to_string().as_bytes()).expect("send");
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send_line(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    fn next(&mut self) -> Value {
        self.client.next_event().expect("a line")
    }

    /// The line that answers `id`, and the lines before it.
    fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let line = self.next();
            if line["id"] == id && line.get("method").is_none() {
                return (line, before);
            }
            before.push(line);
        }
    }

    #[track_caller]
    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let (mut line, _) = self.answer(id);
        assert!(line.get("error").is_none(), "{line}");
        line["result"].take()
    }

    fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        let id = self.send(method, params);
        let error = &self.answer(id).0["error"];
        (error["code"].as_i64().expect("a code"), error["message"].as_str().unwrap_or_default().to_owned())
    }

    fn tools(&mut self) -> Vec<String> {
        let list = self.request("tools/list", &json!({}));
        let tools = list["tools"].as_array().expect("tools").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn tools_are_declared_and_called() {
    let (world, _server) = world([]);
    world.write("a.txt", "one\n");
    let mut other = Other::start(&world, "", &json!({}));
    let list = other.request("tools/list", &json!({}));
    let read = &list["tools"][0];
    assert_eq!((&read["name"], &read["inputSchema"]["type"]), (&json!("read"), &json!("object")));
    assert_eq!(read["annotations"]["readOnlyHint"], true);
    assert_eq!(other.tools(), ["read", "bash", "edit", "write", "agent"]);
    let result = other.request("tools/call", &json!({"name": "read", "arguments": {"path": "a.txt"}}));
    assert_eq!((text(&result).trim_end(), &result["isError"]), ("one", &json!(false)));
    other.request("tools/call", &json!({"name": "write", "arguments": {"path": "b.txt", "content": "two"}}));
    assert_eq!(world.read("b.txt"), "two");
    // What the tool refuses is a result; what is no call is an error.
    let result = other.request("tools/call", &json!({"name": "read", "arguments": {"path": "none"}}));
    assert_eq!(result["isError"], true);
    let result = other.request("tools/call", &json!({"name": "read", "arguments": {}}));
    assert!(result["isError"] == true && text(&result).contains("path"), "{result}");
    for (params, expected) in [
        (json!({"name": "fly"}), "Unknown tool: fly"),
        (json!({}), "\"name\" must be"),
        (json!({"name": "read", "arguments": 7}), "must be an object"),
    ] {
        let (code, text) = other.error("tools/call", &params);
        assert!(code == -32602 && text.contains(expected), "{text}");
    }
    assert_eq!(other.error("no/such", &json!({})).0, -32601);
    assert_eq!(other.request("ping", &json!({})), json!({}));
    assert!(other.client.close().unwrap().success());
}

#[test]
fn messages_go_to_a_client_that_sets_their_level() {
    let (world, _server) = world([]);
    let command = r#"printf '{"systemMessage":"mind the gap"}'"#;
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]});
    world.write_config("settings.json", &json!({"hooks": hooks}).to_string());
    let mut other = Other::start(&world, "", &json!({}));
    let mut messages = |level: &str| {
        if !level.is_empty() {
            assert_eq!(other.request("logging/setLevel", &json!({"level": level})), json!({}));
        }
        let id = other.send("tools/call", &json!({"name": "bash", "arguments": {"command": "true"}}));
        other.answer(id).1
    };
    assert_eq!(messages(""), Vec::<Value>::new());
    let params = json!({"level": "info", "logger": "pi", "data": "mind the gap"});
    assert_eq!(
        messages("debug"),
        [json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})]
    );
    assert_eq!(messages("warning"), Vec::<Value>::new());
    for level in [json!("loud"), Value::Null] {
        let (code, text) = other.error("logging/setLevel", &json!({"level": level}));
        assert!(code == -32602 && text.contains("one of debug, info"), "{text}");
    }
    assert!(other.client.close().unwrap().success());
}

#[test]
fn without_a_key_only_the_tools_are_offered() {
    let world = World::new();
    let mut other = Other::start(&world, "--tools read,ls", &json!({}));
    assert_eq!(other.tools(), ["read", "ls"]);
    assert!(other.client.close().unwrap().success());
}

#[test]
fn an_agent_works_and_goes_on() {
    let (world, server) = world([
        Reply::tool("c1", "read", &json!({"path": "a.txt"})),
        Reply::text("It says one."),
        Reply::text("Yes."),
    ]);
    world.write("a.txt", "one\n");
    let mut other = Other::start(&world, "", &json!({}));
    let call = json!({"name": "agent", "arguments": {"prompt": "Look"}, "_meta": {"progressToken": "p"}});
    let id = other.send("tools/call", &call);
    let (line, before) = other.answer(id);
    let result = &line["result"];
    assert_eq!((text(result), &result["isError"]), ("It says one.", &json!(false)));
    let progress = &before[0]["params"];
    assert_eq!((&progress["progressToken"], &progress["message"]), (&json!("p"), &json!("Read a.txt")));
    let session = &result["structuredContent"]["session"];
    let call = json!({"name": "agent", "arguments": {"prompt": "Sure?", "session": session}});
    assert_eq!(text(&other.request("tools/call", &call)), "Yes.");
    assert!(server.requests()[2].body.to_string().contains("It says one."));
    // Both prompts are one stored session.
    let list = other.request("resources/list", &json!({}));
    assert_eq!(list["resources"].as_array().unwrap().len(), 1);
    assert_eq!(list["resources"][0]["title"], "Look");
    let read = other.request("resources/read", &json!({"uri": list["resources"][0]["uri"]}));
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("Sure?") && text.contains("Yes."), "{text}");
    assert_eq!(other.error("resources/read", &json!({"uri": "pi-session:///none"})).0, -32002);
    let call = json!({"name": "agent", "arguments": {"prompt": "x", "session": "none"}});
    assert_eq!(other.request("tools/call", &call)["isError"], true);
}

#[test]
fn a_call_that_is_cancelled_ends_and_is_not_answered() {
    let (world, _server) = world([Reply::text("half").then(Step::Stall)]);
    let mut other = Other::start(&world, "", &json!({}));
    for (name, arguments) in
        [("bash", json!({"command": "echo $$ > pid; exec sleep 1000"})), ("agent", json!({"prompt": "x"}))]
    {
        let id = other.send("tools/call", &json!({"name": name, "arguments": arguments}));
        other.notify("notifications/cancelled", &json!({"requestId": id}));
        let ping = other.send("ping", &json!({}));
        let (_, before) = other.answer(ping);
        assert!(before.is_empty(), "{before:?}");
    }
    // The end of stdin ends what is under way.
    other.send("tools/call", &json!({"name": "bash", "arguments": {"command": "sleep 1000"}}));
    assert!(other.client.close().unwrap().success());
}

#[test]
fn approval_is_asked_for_by_a_form() {
    let (world, _server) = world([]);
    let call = json!({"name": "bash", "arguments": {"command": "echo hi"}});
    let mut other = Other::start(&world, "--ask-tools all", &json!({"elicitation": {}}));
    for (answer, is_error) in [("Deny", true), ("Allow", false)] {
        let id = other.send("tools/call", &call);
        let asked = other.next();
        assert_eq!(asked["method"], "elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("echo hi"), "{message}");
        let result = json!({"action": "accept", "content": {"answer": answer}});
        other.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
        assert_eq!(other.answer(id).0["result"]["isError"], is_error);
    }
    let mut other = Other::start(&world, "--ask-tools all", &json!({}));
    let result = other.request("tools/call", &call);
    assert!(result["isError"] == true && text(&result).contains("shows no forms"), "{result}");
}

#[test]
fn templates_are_prompts() {
    let (world, _server) = world([]);
    std::fs::create_dir(world.agent_dir().join("prompts")).unwrap();
    world.write_config("prompts/greet.md", "---\nargument-hint: <name>\n---\nSay hello to $@.");
    let mut other = Other::start(&world, "", &json!({}));
    let list = other.request("prompts/list", &json!({}));
    assert_eq!(list["prompts"][0]["name"], "greet");
    assert_eq!(list["prompts"][0]["arguments"][0]["description"], "<name>");
    let got = other.request("prompts/get", &json!({"name": "greet", "arguments": {"arguments": "Ada"}}));
    assert_eq!(got["messages"][0]["content"]["text"], "Say hello to Ada.");
    assert_eq!(other.error("prompts/get", &json!({"name": "none"})).0, -32602);
}

#[test]
fn words_that_a_hint_names_are_arguments() {
    let (world, _server) = world([]);
    std::fs::create_dir(world.agent_dir().join("prompts")).unwrap();
    world.write_config("prompts/ship.md", "---\nargument-hint: <what> [fast|safe]\n---\nShip $1 ${2:-soon}.");
    world.write_config("prompts/tell.md", "---\nargument-hint: \"[long|short]\"\n---\nTell $@.");
    let mut other = Other::start(&world, "", &json!({}));
    let list = other.request("prompts/list", &json!({}));
    let arguments = json!([{"name": "what", "required": true}, {"name": "fast|safe", "required": false}]);
    assert_eq!(list["prompts"][0]["arguments"], arguments);
    for (arguments, expected) in [
        (json!({"what": "the \"big\" one", "fast|safe": "fast"}), "Ship the \"big\" one fast."),
        (json!({"what": "it"}), "Ship it soon."),
        (json!({"arguments": "it 'right now'"}), "Ship it right now."),
    ] {
        let got = other.request("prompts/get", &json!({"name": "ship", "arguments": arguments}));
        assert_eq!(got["messages"][0]["content"]["text"], expected);
    }
    let (code, text) = other.error("prompts/get", &json!({"name": "ship"}));
    assert_eq!((code, text.as_str()), (-32602, "The argument \"what\" is missing"));

    let argument = |name: &str, value: &str| json!({"name": name, "value": value});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    for (prompt_name, name, value, expected) in [
        ("ship", "fast|safe", "", json!(["fast", "safe"])),
        ("ship", "fast|safe", "f", json!(["fast"])),
        ("ship", "what", "", json!([])),
        ("tell", "arguments", "s", json!(["short"])),
    ] {
        let params = json!({"ref": prompt(prompt_name), "argument": argument(name, value)});
        let completion = other.request("completion/complete", &params)["completion"].take();
        assert_eq!(completion["values"], expected, "{prompt_name} {name} {value}");
        assert_eq!(completion["hasMore"], false);
    }
    for (params, expected) in [
        (json!({"ref": prompt("none"), "argument": argument("a", "")}), "No prompt \"none\""),
        (json!({"ref": prompt("ship"), "argument": argument("a", "")}), "has no argument \"a\""),
        (
            json!({"ref": {"type": "ref/resource", "uri": "x:{id}"}, "argument": argument("id", "")}),
            "No resource",
        ),
        (json!({"argument": argument("a", "")}), "\"ref\" must"),
        (json!({"ref": prompt("ship"), "argument": {"name": "a"}}), "\"argument.value\" must"),
    ] {
        let (code, text) = other.error("completion/complete", &params);
        assert!(code == -32602 && text.contains(expected), "{text}");
    }
}

#[test]
fn changes_of_a_session_are_told_to_subscribers() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let (world, _server) = world([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let mut other = Other::start(&world, "", &json!({}));
    let agent = |other: &mut Other, session: &Value| {
        let call = json!({"name": "agent", "arguments": {"prompt": "Go", "session": session}});
        let id = other.send("tools/call", &call);
        let (mut line, before) = other.answer(id);
        (line["result"]["structuredContent"]["session"].take(), before)
    };
    let (session, before) = agent(&mut other, &Value::Null);
    assert_eq!(before, Vec::<Value>::new());

    // The id is proposed.
    let template = &other.request("resources/templates/list", &json!({}))["resourceTemplates"][0];
    let reference = json!({"type": "ref/resource", "uri": template["uriTemplate"]});
    let first = &session.as_str().unwrap()[..4];
    for (value, expected) in [(first, json!([session])), ("no", json!([]))] {
        let params = json!({"ref": reference, "argument": {"name": "id", "value": value}});
        let values = other.request("completion/complete", &params)["completion"]["values"].take();
        assert_eq!(values, expected);
    }

    let uri = json!({"uri": format!("pi-session:///{}", session.as_str().unwrap())});
    assert_eq!(other.request("resources/subscribe", &uri), json!({}));
    // Another process changes the session.
    let run = world.pi().words("-p --session").args([session.as_str().unwrap(), "More"]).run();
    assert_eq!(run.stdout, "Two.\n");
    let told = other.next();
    let news = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": uri});
    assert_eq!(told, news);

    assert_eq!(other.request("resources/unsubscribe", &uri), json!({}));
    let (_, before) = agent(&mut other, &session);
    assert!(before.iter().all(|line| *line == news) && before.len() < 2, "{before:?}");

    let none = json!({"uri": "pi-session:///none"});
    assert_eq!(other.error("resources/subscribe", &none).0, -32002);
    assert_eq!(other.error("resources/subscribe", &json!({})).0, -32002);
    assert_eq!(other.request("resources/unsubscribe", &none), json!({}));
    // What is subscribed to does not hold the end up.
    assert_eq!(other.request("resources/subscribe", &uri), json!({}));
    assert!(other.client.close().unwrap().success());
}

#[test]
fn the_output_of_a_command_is_its_progress() {
    let (world, _server) = world([]);
    let mut other = Other::start(&world, "", &json!({}));
    let command = "echo under way; until [ -e go ]; do sleep 0.02; done; echo done";
    let call = json!({"name": "bash", "arguments": {"command": command}, "_meta": {"progressToken": 7}});
    let id = other.send("tools/call", &call);
    let progress = other.next()["params"].take();
    assert_eq!(progress, json!({"progressToken": 7, "progress": 1, "message": "under way"}));
    world.write("go", "");
    assert!(text(&other.answer(id).0["result"]).ends_with("done\n"));
}

#[test]
fn calls_over_the_limit_are_refused() {
    let (world, _server) = world([]);
    let mut other = Other::start(&world, "", &json!({}));
    let call = json!({"name": "bash", "arguments": {"command": "sleep 1000"}});
    for _ in 0..32 {
        other.send("tools/call", &call);
    }
    let (code, text) = other.error("tools/call", &call);
    assert!(code == -32603 && text.contains("32 calls"), "{text}");
    assert_eq!(other.request("ping", &json!({})), json!({}));
    assert!(other.client.close().unwrap().success());
    assert_eq!(world.processes_left(), Vec::<u32>::new());
}

#[test]
fn a_stored_session_is_read_without_keys() {
    let (world, _server) = world([Reply::text("ok")]);
    let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let mut other = Other::start(&world, "", &json!({}));
    let prompt = json!({"prompt": format!("my token is {key}")});
    let result = other.request("tools/call", &json!({"name": "agent", "arguments": prompt}));
    let uri = format!("pi-session:///{}", result["structuredContent"]["session"].as_str().unwrap());
    let read = other.request("resources/read", &json!({"uri": uri})).to_string();
    assert!(read.contains("my token is") && !read.contains(&key), "{read}");
}
