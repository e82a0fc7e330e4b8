//! `--mode acp`, as an editor drives it.

mod files;
mod mode;
mod option;
mod server;
mod session;
mod sign_in;
mod terminal;
mod told;

use crate::agent::{Pi, World};
use crate::server::{PATIENCE, Reply, Server, Step, gate};
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// An editor, with pi at its other end.
struct Editor {
    client: Client,
    last_id: u64,
}

/// The answer to a request, and what was told before it.
struct Answer {
    updates: Vec<Value>,
    line: Value,
}

impl Editor {
    /// Starts pi, whose calls run without questions unless the settings or `words` say otherwise.
    fn start(world: &World, words: &str) -> Self {
        let settings = fs::read_to_string(world.agent_dir().join("settings.json"));
        let mut settings: Value = serde_json::from_str(&settings.unwrap_or("{}".into())).unwrap();
        if settings.get("permissions").is_none() {
            settings["permissions"] = json!({"mode": "free"});
            world.write_config("settings.json", &settings.to_string());
        }
        Self::start_as_it_is(world, words)
    }

    fn start_as_it_is(world: &World, words: &str) -> Self {
        Self::of(world.pi().words("--mode acp").words(words))
    }

    fn of(mut pi: Pi<'_>) -> Self {
        let command = pi.command().stderr(Stdio::null());
        let mut client = Client::spawn(command).expect("start pi");
        client.set_patience(PATIENCE);
        Self { client, last_id: 0 }
    }

    fn send_line(&mut self, line: &str) {
        self.client.send_line(line.as_bytes()).expect("send");
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.send_line(&line.to_string());
        self.last_id
    }

    /// The next line, which must be a message.
    fn next(&mut self) -> Value {
        let line = self.client.next_event().expect("a line");
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        line
    }

    /// Waits for the answer to `id`.
    fn answer(&mut self, id: u64) -> Answer {
        let mut updates = Vec::new();
        loop {
            let mut line = self.next();
            if line["id"] == id {
                return Answer { updates, line };
            }
            assert_eq!(line["method"], "session/update", "{line}");
            updates.push(line["params"]["update"].take());
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Answer {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Says what this editor can do.
    fn initialize(&mut self, able: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": able});
        self.request("initialize", &params).result()
    }

    fn new_session(&mut self, world: &World) -> String {
        let params = json!({"cwd": world.work(), "mcpServers": []});
        let opened = self.request("session/new", &params).result();
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    fn prompt(&mut self, session: &str, text: &str) -> Answer {
        let id = self.send_prompt(session, text);
        self.answer(id)
    }

    /// Waits until the model has said `text`.
    fn until_said(&mut self, text: &str) {
        while self.next()["params"]["update"]["content"]["text"] != text {}
    }
}

impl Answer {
    #[track_caller]
    fn result(self) -> Value {
        assert!(self.line.get("error").is_none(), "{}", self.line);
        self.line["result"].clone()
    }

    #[track_caller]
    fn error(self) -> (i64, String) {
        assert!(self.line.get("result").is_none(), "{}", self.line);
        let error = &self.line["error"];
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a text").to_owned())
    }

    #[track_caller]
    fn stopped_by(self) -> String {
        let result = self.result();
        result["stopReason"].as_str().expect("a reason").to_owned()
    }

    /// The updates but those of commands and usage, which may come at any time.
    fn conversation(&self) -> Vec<&Value> {
        let beside = ["available_commands_update", "usage_update"];
        let is_beside = |update: &&Value| beside.iter().any(|kind| update["sessionUpdate"] == *kind);
        self.updates.iter().filter(|update| !is_beside(update)).collect()
    }

    /// The chunks of this kind, joined.
    fn said(&self, kind: &str) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }
}

fn start(replies: impl IntoIterator<Item = Reply>) -> (World, Server, Editor) {
    let (world, server) = crate::world(replies);
    let editor = Editor::start(&world, "");
    (world, server, editor)
}

#[test]
fn both_sides_say_what_they_can() {
    let (_world, _server, mut editor) = start([]);
    let params = json!({"protocolVersion": 7, "clientCapabilities": {"fs": {}}});
    let answer = editor.request("initialize", &params).result();
    assert_eq!(answer["protocolVersion"], 1);
    let able = &answer["agentCapabilities"];
    assert_eq!(able["loadSession"], true);
    assert_eq!(able["promptCapabilities"], json!({"image": true, "audio": false, "embeddedContext": true}));
    assert_eq!(answer["agentInfo"]["name"], "pi");
}

#[test]
fn what_cannot_be_done_is_refused_and_the_connection_lives_on() {
    let (world, _server, mut editor) = start([]);
    for (line, id, code) in [
        ("{", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"{"id":"a","method":"initialize"}"#, json!("a"), -32600),
        (r#"{"jsonrpc":"2.0","id":"b","method":"session/dance"}"#, json!("b"), -32601),
        (r#"{"jsonrpc":"2.0","id":"c","method":"session/new","params":{"cwd":"here"}}"#, json!("c"), -32602),
        (
            r#"{"jsonrpc":"2.0","id":"d","method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
            json!("d"),
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"e","method":"session/prompt","params":{"sessionId":"x","prompt":7}}"#,
            json!("e"),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"f","method":"session/set_mode","params":{"sessionId":"x"}}"#,
            json!("f"),
            -32002,
        ),
        (r#"{"jsonrpc":"2.0","id":"g","method":"session/close","params":{}}"#, json!("g"), -32602),
    ] {
        editor.send_line(line);
        let answer = editor.next();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
    }
    // Nothing is said to a notification, known or not, and to an answer that nobody waits for.
    editor.notify("session/cancel", &json!({"sessionId": "x"}));
    editor.notify("session/dance", &Value::Null);
    editor.send_line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    let missing = json!({"cwd": world.work(), "sessionId": "nope", "mcpServers": []});
    assert_eq!(editor.request("session/load", &missing).error().0, -32002);
    assert!(editor.client.close().unwrap().success());
}

#[test]
fn a_prompt_is_told_step_by_step() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let write = json!({"path": "b.txt", "content": "new\n"});
    let (world, server, mut editor) = start([
        Reply::stream()
            .then_thinking("Hm.")
            .then_text("I change it.")
            .then_tool(0, "c1", "edit", &edit)
            .then_tool(1, "c2", "write", &write),
        Reply::text("Done."),
    ]);
    world.write("a.txt", "one\n");
    world.write("b.txt", "old\n");
    let id = editor.new_session(&world);
    let prompt = json!([
        {"type": "text", "text": "Change "},
        {"type": "resource_link", "uri": "file:///x/a.txt", "name": "a.txt"},
        {"type": "resource", "resource": {"uri": "file:///x/n.md", "text": "a note"}},
    ]);
    let answer = editor.request("session/prompt", &json!({"sessionId": id, "prompt": prompt}));
    assert_eq!(answer.said("agent_thought_chunk"), "Hm.");
    assert_eq!(answer.said("agent_message_chunk"), "I change it.Done.");
    let path = |name: &str| world.work().join(name).to_string_lossy().into_owned();
    let calls = |call: &str| -> Vec<&Value> {
        let updates = answer.updates.iter();
        updates.filter(|update| update["toolCallId"] == call).collect()
    };
    for (call, title, tool, file, old, new) in [
        ("c1", "Edit a.txt", "edit", "a.txt", "one\n", "two\n"),
        ("c2", "Write b.txt", "write", "b.txt", "old\n", "new\n"),
    ] {
        let told = calls(call);
        let states: Vec<&str> = told.iter().filter_map(|update| update["status"].as_str()).collect();
        assert_eq!(states, ["pending", "in_progress", "completed"], "{told:?}");
        assert_eq!(
            told[0],
            &json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": tool, "name": tool,
                "kind": "edit", "status": "pending"})
        );
        assert_eq!(told[1]["sessionUpdate"], "tool_call_update");
        assert_eq!(told[1]["title"], title);
        assert_eq!(told[1]["locations"], json!([{"path": path(file), "line": 1}]));
        let diff = json!([{"type": "diff", "path": path(file), "oldText": old, "newText": new}]);
        assert_eq!(told[1]["content"], diff);
        assert_eq!(told[2].get("content"), None, "what was told is not told again");
    }
    assert_eq!(answer.stopped_by(), "end_turn");
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("two\n".into(), "new\n".into()));
    let asked = server.requests()[0].last_text();
    assert_eq!(asked, "Change /x/a.txt /x/n.md\n<file name=\"/x/n.md\">\na note\n</file>");
    assert!(editor.client.close().unwrap().success());
}

#[test]
fn a_call_that_never_ran_is_ended() {
    let (world, _server) = crate::world([Reply::stream().then_tool(0, "c1", "ls", &json!({})).cut()]);
    world.write_config("settings.json", r#"{"retry": {"enabled": false}}"#);
    let mut editor = Editor::start(&world, "");
    let id = editor.new_session(&world);
    let answer = editor.prompt(&id, "x");
    let states: Vec<&Value> = answer.updates.iter().filter_map(|update| update.get("status")).collect();
    assert_eq!(states, ["pending", "failed"]);
    assert_eq!(answer.error().0, -32603);
}

#[test]
fn a_cancelled_prompt_ends_and_the_session_goes_on() {
    let (world, _server, mut editor) = start([Reply::text("half").then(Step::Stall), Reply::text("whole")]);
    let id = editor.new_session(&world);
    let first = editor.send_prompt(&id, "one");
    editor.until_said("half");
    editor.notify("session/cancel", &json!({"sessionId": id}));
    assert_eq!(editor.answer(first).stopped_by(), "cancelled");
    let second = editor.prompt(&id, "two");
    assert_eq!(second.said("agent_message_chunk"), "whole");
    assert_eq!(second.stopped_by(), "end_turn");
}

#[test]
fn a_session_answers_one_prompt_at_a_time_and_sessions_side_by_side() {
    let (open, held) = gate();
    let (world, server, mut editor) = start([Reply::text("first").then_wait(held), Reply::text("second")]);
    let (a, b) = (editor.new_session(&world), editor.new_session(&world));
    assert_ne!(a, b);
    let first = editor.send_prompt(&a, "one");
    server.wait_for(1);
    editor.until_said("first");
    assert_eq!(editor.prompt(&a, "too early").error().0, -32600);
    assert_eq!(editor.prompt(&b, "two").stopped_by(), "end_turn");
    drop(open);
    assert_eq!(editor.answer(first).stopped_by(), "end_turn");
    assert!(editor.client.close().unwrap().success());
    assert_eq!(world.session_files().len(), 2);
}

#[test]
fn a_stored_session_is_told_anew_and_goes_on() {
    let read = json!({"path": "a.txt"});
    let (world, server, mut editor) = start([
        Reply::stream().then_thinking("Hm.").then_text("Let me look.").then_tool(0, "c1", "read", &read),
        Reply::text("It says one."),
        Reply::text("More."),
    ]);
    world.write("a.txt", "one\n");
    let id = editor.new_session(&world);
    assert_eq!(editor.prompt(&id, "Look").stopped_by(), "end_turn");
    assert!(editor.client.close().unwrap().success());

    let mut editor = Editor::start(&world, "");
    let listed = editor.request("session/list", &json!({"cwd": world.work()}));
    let listed = listed.result();
    assert_eq!(listed["sessions"][0]["sessionId"], id.as_str());
    assert_eq!(listed["sessions"][0]["title"], "Look");
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    // The second time it is open already.
    for _ in 0..2 {
        let loaded = editor.request("session/load", &place);
        let told = loaded.conversation();
        let kinds: Vec<&str> = told.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect();
        assert_eq!(
            kinds,
            [
                "user_message_chunk",
                "agent_thought_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
                "agent_message_chunk"
            ]
        );
        assert_eq!(loaded.said("user_message_chunk"), "Look");
        assert_eq!(loaded.said("agent_message_chunk"), "Let me look.It says one.");
        assert_eq!(told[3]["title"], "Read a.txt");
        assert_eq!(told[4]["status"], "completed");
        assert_eq!(loaded.result()["modes"]["currentModeId"], "free");
    }
    let resumed = editor.request("session/resume", &place);
    assert_eq!(resumed.conversation(), Vec::<&Value>::new());
    let more = editor.prompt(&id, "More");
    assert_eq!(more.said("agent_message_chunk"), "More.");
    assert_eq!(more.stopped_by(), "end_turn");
    let spoken = server.requests()[2].messages().len();
    assert!(spoken >= 6, "{spoken} messages");
    assert_eq!(world.session_files().len(), 1);
}

#[test]
fn a_turn_says_why_it_stopped() {
    let (world, _server) = crate::world([
        Reply::text("cut").finish("length"),
        Reply::error(400, "bad model"),
        Reply::tool("c1", "ls", &json!({})),
    ]);
    world.write_config("settings.json", r#"{"retry": {"enabled": false}}"#);
    let mut editor = Editor::start(&world, "--max-turns 1");
    let id = editor.new_session(&world);
    assert_eq!(editor.prompt(&id, "one").stopped_by(), "max_tokens");
    let id = editor.new_session(&world);
    let (code, text) = editor.prompt(&id, "two").error();
    assert_eq!(code, -32603);
    assert!(text.contains("bad model"), "{text}");
    let id = editor.new_session(&world);
    assert_eq!(editor.prompt(&id, "three").stopped_by(), "max_turn_requests");
}

#[test]
fn commands_are_offered_and_called() {
    let (world, server) = crate::world([Reply::text("a")]);
    std::fs::create_dir(world.agent_dir().join("prompts")).unwrap();
    world.write_config("prompts/greet.md", "Say hello to $1.");
    world.write_config("prompts/hinted.md", "---\nargument-hint: <file>\n---\nRead $1.");
    world.write_config("prompts/plain.md", "Say hello.");
    let mut editor = Editor::start(&world, "");
    let id = editor.new_session(&world);
    let told = editor.next();
    assert_eq!(told["params"]["update"]["sessionUpdate"], "available_commands_update");
    let commands = told["params"]["update"]["availableCommands"].as_array().unwrap();
    let inputs: Vec<_> = commands
        .iter()
        .map(|command| (command["name"].as_str().unwrap(), &command["input"]["hint"]))
        .collect();
    let own = inputs.iter().position(|(name, _)| *name == "greet").unwrap();
    assert_eq!(inputs[0], ("compact", &json!("what the summary should keep")));
    assert_eq!(
        inputs[own..],
        [("greet", &json!("arguments")), ("hinted", &json!("<file>")), ("plain", &Value::Null)]
    );
    editor.prompt(&id, "/greet Ada").result();
    assert_eq!(server.requests()[0].last_text(), "Say hello to Ada.");
}

#[test]
fn a_closed_session_is_over_and_can_be_opened_again() {
    let (world, _server, mut editor) = start([Reply::text("half").then(Step::Stall)]);
    let id = editor.new_session(&world);
    let prompt = editor.send_prompt(&id, "one");
    editor.until_said("half");
    let close = editor.send("session/close", &json!({"sessionId": id}));
    assert_eq!(editor.answer(prompt).stopped_by(), "cancelled");
    editor.answer(close).result();
    assert_eq!(editor.prompt(&id, "two").error().0, -32002);
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    let loaded = editor.request("session/load", &place);
    assert_eq!(loaded.said("agent_message_chunk"), "half");
}

#[test]
fn the_end_of_stdin_stores_what_there_is() {
    let (world, _server, mut editor) = start([Reply::text("half").then(Step::Stall)]);
    let id = editor.new_session(&world);
    editor.send_prompt(&id, "one");
    editor.until_said("half");
    assert!(editor.client.close().unwrap().success());
    let last = world.session().pop().unwrap();
    assert_eq!(last["message"]["stopReason"], "aborted", "{last}");
    assert_eq!(world.processes(), Vec::<u32>::new());
}

#[test]
fn the_command_line_opens_no_session() {
    let world = World::new();
    for words in ["--continue", "hello", "@file"] {
        world.pi().words("--mode acp").words(words).run().fails_with(1).stdout_is("");
    }
}
