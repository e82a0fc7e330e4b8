//! MCP servers that an editor lends to a session.

use super::start;
use crate::agent::{World, wait_until};
use crate::mcp::{SCRIPT, configure};
use crate::mcp_ask::OFFERS;
use crate::server::Reply;
use serde_json::{Value, json};
use std::fs;

/// A server of the editor that answers calls with what `on_call` says.
fn lent(world: &World, name: &str, on_call: &str) -> Value {
    let script = world.home().join("lent.sh");
    fs::write(&script, format!("{SCRIPT}echo ended >> \"$HOME/ended\"\n")).unwrap();
    json!({"name": name, "command": "sh", "args": [script, on_call],
        "env": [{"name": "OWN", "value": "${HOME} !x"}]})
}

fn lines(world: &World, file: &str) -> usize {
    fs::read_to_string(world.home().join(file)).unwrap_or_default().lines().count()
}

#[track_caller]
fn wait_for_line(world: &World, file: &str) {
    wait_until("a line is in the file", || lines(world, file) > 0);
}

#[test]
fn a_server_of_the_editor_is_called_beside_own_ones_and_ends_with_its_session() {
    let call = |name: &str| Reply::tool("c", name, &json!({}));
    let (world, server, mut editor) = start([
        Reply::tool("s", "tool_search", &json!({"query": "echo"})),
        call("mcp__my_tickets__echo"),
        call("mcp__own__echo"),
        Reply::text("done"),
        Reply::tool("s", "tool_search", &json!({"query": "echo"})),
        call("mcp__my_tickets__echo"),
        Reply::text("done"),
    ]);
    configure(&world, "own", "say own", &json!({}));
    let path = world.agent_dir().join("mcp.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    config["autoEnableCodemode"] = false.into();
    fs::write(path, config.to_string()).unwrap();
    world.write_config("settings.json", r#"{"permissions": {"mode": "free"}}"#);
    let offered = editor.initialize(json!({}));
    assert_eq!(offered["agentCapabilities"]["mcpCapabilities"], json!({"http": true, "sse": true}));
    let servers = json!([lent(&world, "my tickets", r#"say "lent $OWN""#)]);
    let params = json!({"cwd": world.work(), "mcpServers": servers});
    let session = editor.request("session/new", &params).result()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.prompt(&session, "go").stopped_by(), "end_turn");
    let requests = server.requests();
    assert!(requests[0].body.to_string().contains("mcp__my_tickets (tool_search)"), "{}", requests[0].body);
    assert_eq!(requests[2].last_text(), "lent ${HOME} !x");
    assert_eq!(requests[3].last_text(), "own");
    // The session is open already: what is lent still is kept, what is not ends.
    let place = |servers: &Value| json!({"cwd": world.work(), "sessionId": session, "mcpServers": servers});
    editor.request("session/resume", &place(&servers)).result();
    assert_eq!((lines(&world, "started"), lines(&world, "ended")), (2, 0));
    editor.request("session/resume", &place(&json!([]))).result();
    assert_eq!(lines(&world, "ended"), 1);
    let session = editor.request("session/new", &params).result()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.prompt(&session, "go").stopped_by(), "end_turn");
    editor.request("session/close", &json!({"sessionId": session})).result();
    assert_eq!((lines(&world, "started"), lines(&world, "ended")), (3, 2));
}

#[test]
fn a_server_that_cannot_be_used_is_refused_or_named() {
    let (world, _server, mut editor) = start([]);
    editor.initialize(json!({"session": {"notices": {}}}));
    let mut open = |server: Value| {
        let params = json!({"cwd": world.work(), "mcpServers": [server]});
        editor.request("session/new", &params)
    };
    let refused = |answer: super::Answer| answer.error();
    assert_eq!(refused(open(json!({"command": "x"}))).0, -32602);
    let (code, text) = refused(open(json!({"type": "acp", "name": "s", "id": "1"})));
    assert!(code == -32602 && text.contains("the type \"acp\""), "{text}");
    open(json!({"name": "gone", "command": "/no/such/program", "args": [], "env": []})).result();
    loop {
        let update = editor.next()["params"]["update"].take();
        if update["sessionUpdate"] == "notice" {
            let title = update["title"].as_str().unwrap();
            assert!(title.starts_with("MCP server \"gone\": Cannot start /no/such/program"), "{title}");
            break;
        }
    }
}

#[test]
fn prompts_of_a_server_are_commands_of_the_session() {
    let (world, server, mut editor) = start([Reply::text("ok")]);
    editor.initialize(json!({"session": {"notices": {}}}));
    let lent = json!({"name": "docs", "command": "sh", "args": ["-c", OFFERS], "env": []});
    let params = json!({"cwd": world.work(), "mcpServers": [lent]});
    let session = editor.request("session/new", &params).result()["sessionId"].as_str().unwrap().to_owned();
    while !editor.next().to_string().contains(r#""name":"mcp__docs__greet""#) {}
    assert_eq!(editor.prompt(&session, "/mcp__docs__greet Ada Lovelace").stopped_by(), "end_turn");
    assert_eq!(server.requests()[0].last_text(), "Greet Ada Lovelace warmly");
    editor.send_prompt(&session, "/mcp");
    while !editor.next().to_string().contains("docs: connected, resources (codemode, client)") {}
}

/// Asks the user before it tells its tools.
const ASKS_FIRST: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}';;
    *'"method":"tools/list"'*) list=$id
      echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"May I?","requestedSchema":{"type":"object","properties":{}}}}';;
    *'"id":"q"'*) printf '%s' "$line" > "$HOME/answered"; id=$list; answer '{"tools":[]}';;
  esac
done
"#;

#[test]
fn a_question_waits_until_the_editor_knows_the_session() {
    let (world, _server, mut editor) = start([]);
    editor.initialize(json!({"elicitation": {"form": {}}}));
    let lent = json!({"name": "asking", "command": "sh", "args": ["-c", ASKS_FIRST], "env": []});
    // No question comes before this answer.
    let opened = editor.request("session/new", &json!({"cwd": world.work(), "mcpServers": [lent]})).result();
    let question = loop {
        let line = editor.next();
        if line["method"] == "elicitation/create" {
            break line;
        }
    };
    assert_eq!(question["params"]["sessionId"], opened["sessionId"], "{question}");
    let declined = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    editor.send_line(&declined.to_string());
    editor.request("session/close", &json!({"sessionId": opened["sessionId"]})).result();
}

#[test]
fn a_replaced_server_that_never_answers_ends_at_once() {
    let (world, _server, mut editor) = start([]);
    editor.initialize(json!({}));
    let mute = json!({"name": "mute", "command": "sh", "env": [],
        "args": ["-c", "echo $$ > \"$HOME/pid\"; cat > /dev/null; echo > \"$HOME/ended\""]});
    let opened = editor.request("session/new", &json!({"cwd": world.work(), "mcpServers": [mute]})).result();
    wait_for_line(&world, "pid");
    let alone = json!({"cwd": world.work(), "sessionId": opened["sessionId"], "mcpServers": []});
    editor.request("session/resume", &alone).result();
    // Its limit to answer is a minute.
    wait_for_line(&world, "ended");
}
