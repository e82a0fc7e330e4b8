//! What MCP servers ask in the middle of a call, their prompts and resources, and servers of other programs.

use crate::agent::World;
use crate::mcp::{configure, configure_script};
use crate::rpc::client;
use crate::server::{Reply, Server};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;

/// Asks pi, and tells the answer as the result of the call.
fn asking(method: &str, params: &Value) -> String {
    let ask = json!({"jsonrpc": "2.0", "id": "q1", "method": method, "params": params});
    format!("printf '%s\\n' '{ask}'; read -r line; say \"$(printf '%s' \"$line\" | tr '\"' '~')\"")
}

fn start(replies: Vec<Reply>, on_call: &str) -> (World, Server, Client) {
    let call = Reply::tool("c", "mcp__one__echo", &json!({"text": "x"}));
    let (world, server) = world([call].into_iter().chain(replies));
    configure(&world, "one", on_call, &json!({"exposure": "direct"}));
    let mut client = client(&world, "--model mock/m1");
    client.prompt("go").unwrap();
    (world, server, client)
}

/// Answers the next question, which must be of this method and hold this text.
#[track_caller]
fn answer(client: &mut Client, method: &str, part: &str, fields: Value) {
    let events = client.events_until("extension_ui_request").unwrap();
    let asked = events.last().unwrap();
    assert_eq!(asked["method"], method, "{asked}");
    assert!(asked.to_string().contains(part), "{part}: {asked}");
    let mut line = json!({"type": "extension_ui_response", "id": asked["id"]});
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    client.send_line(line.to_string().as_bytes()).unwrap();
}

#[test]
fn a_form_of_a_server_is_filled_in_by_the_user() {
    let form = json!({"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 1},
            "ok": {"type": "boolean"}, "note": {"type": "string"}}}});
    let (_world, server, mut client) = start(vec![Reply::text("done")], &asking("elicitation/create", &form));
    answer(&mut client, "select", "Who are you?", json!({"value": "Answer"}));
    answer(&mut client, "input", "name", json!({"value": "Ada"}));
    answer(&mut client, "input", "age", json!({"value": "none"}));
    answer(&mut client, "input", "a whole number is needed", json!({"value": "7"}));
    answer(&mut client, "select", "ok", json!({"value": "yes"}));
    answer(&mut client, "input", "note (may be empty)", json!({"value": ""}));
    client.wait_until_settled().unwrap();
    let told = server.requests()[1].last_text();
    let expected = "~result~:{~action~:~accept~,~content~:{~name~:~Ada~,~age~:7,~ok~:true}}";
    assert!(told.contains(expected), "{told}");

    for (value, action) in [(json!({"value": "Decline"}), "decline"), (json!({"cancelled": true}), "cancel")]
    {
        let (_world, server, mut client) =
            start(vec![Reply::text("done")], &asking("elicitation/create", &form));
        answer(&mut client, "select", "Who", value);
        client.wait_until_settled().unwrap();
        let told = server.requests()[1].last_text();
        assert!(told.contains(&format!("~action~:~{action}~")), "{told}");
    }
    let page =
        json!({"mode": "url", "message": "Sign in", "url": "https://a.example/x", "elicitationId": "1"});
    let (_world, server, mut client) = start(vec![Reply::text("done")], &asking("elicitation/create", &page));
    answer(&mut client, "confirm", "https://a.example/x", json!({"confirmed": true}));
    client.wait_until_settled().unwrap();
    assert!(server.requests()[1].last_text().contains("~action~:~accept~"));
}

#[test]
fn the_model_is_asked_for_a_server_if_the_user_agrees() {
    let ask = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "what is it?"}}],
        "systemPrompt": "Be short", "maxTokens": 9});
    let on_call = asking("sampling/createMessage", &ask);
    let (_world, server, mut client) = start(vec![Reply::text("sampled"), Reply::text("done")], &on_call);
    answer(&mut client, "confirm", "what is it?", json!({"confirmed": true}));
    client.wait_until_settled().unwrap();
    let requests = server.requests();
    assert_eq!(requests[1].last_text(), "what is it?");
    assert!(requests[1].body["tools"].is_null(), "{}", requests[1].body);
    let told = requests[2].last_text();
    assert!(told.contains("~text~:~sampled~") && told.contains("~stopReason~:~endTurn~"), "{told}");

    let (_world, server, mut client) = start(vec![Reply::text("done")], &on_call);
    answer(&mut client, "confirm", "what is it?", json!({"confirmed": false}));
    client.wait_until_settled().unwrap();
    assert!(server.requests()[1].last_text().contains("User rejected"));
}

/// A server with a prompt and a resource.
pub const OFFERS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"t","version":"1"}}';;
    *'"method":"tools/list"'*) answer '{"tools":[]}';;
    *'"method":"prompts/list"'*) answer '{"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"who","required":true}]}]}';;
    *'"method":"prompts/get"'*) who=$(printf '%s' "$line" | sed 's/.*"who":"\([^"]*\)".*/\1/'); answer "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Greet $who warmly\"}}]}";;
    *'"method":"resources/read"'*'a.txt'*) answer '{"contents":[{"uri":"file:///a.txt","text":"the text of a"}]}';;
    *'"method":"resources/read"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"not there"}}\n' "$id";;
  esac
done
"#;

#[test]
fn prompts_are_commands_and_resources_are_mentioned() {
    let (world, server) = world((0..4).map(|_| Reply::text("ok")));
    let script = world.home().join("offers.sh");
    fs::write(&script, OFFERS).unwrap();
    configure_script(&world, "my-docs", &[&script.to_string_lossy()], &json!({"exposure": "direct"}));
    let mut client = client(&world, "--model mock/m1");
    let mut say = |text: &str| {
        client.prompt(text).unwrap();
        client.wait_until_settled().unwrap();
    };
    say("hi");
    say("/mcp__my_docs__greet Ada Lovelace");
    say("see @my-docs:file:///a.txt, and @my-docs:file:///b.txt and mail@my-docs:x");
    let requests = server.requests();
    assert_eq!(requests[1].last_text(), "Greet Ada Lovelace warmly");
    let text = requests[2].last_text();
    assert!(text.starts_with("see @my-docs:file:///a.txt, and"), "{text}");
    let resource = "<resource server=\"my-docs\" uri=\"file:///a.txt\">\nthe text of a\n</resource>";
    assert!(text.ends_with(resource) && text.matches("<resource").count() == 1, "{text}");
}

#[test]
fn servers_of_other_programs_are_taken_when_asked() {
    let (world, _server) = world([]);
    let pi = |words: &str| world.pi().words(words).run();
    pi("mcp import").success().stdout_has("No other program's servers");
    world.write(".vscode/mcp.json", "{\n// mine\n\"servers\": {\"db one\": {\"type\": \"stdio\", \"command\": \"db\", \"env\": {\"K\": \"${input:api-key}\"}},}}");
    let claude = json!({"mcpServers": {"web": {"type": "http", "url": "https://a.example/mcp"}}, "projects":
        {world.work().to_str().unwrap(): {"mcpServers": {"own": {"command": "x"}}}}});
    fs::write(world.home().join(".claude.json"), claude.to_string()).unwrap();
    fs::create_dir_all(world.home().join(".codex")).unwrap();
    let toml = "[mcp_servers.docs]\nurl = \"https://b.example\"\nbearer_token_env_var = \"T\" # token\n[mcp_servers.bad]\nnothing = 1\n";
    fs::write(world.home().join(".codex/config.toml"), toml).unwrap();
    let list = pi("mcp import").success();
    assert!(
        list.stdout.contains("db one") && list.stdout.contains("own, web") && list.stdout.contains("codex: ")
    );
    assert!(!world.agent_dir().join("mcp.json").exists());
    pi("mcp import vscode").success().stdout_has("set the variable API_KEY");
    pi("mcp import claude").success();
    pi("mcp import claude").success().stdout_has("there is one of this name");
    pi("mcp import codex").fails_with(1).stdout_has("bad: was not taken");
    pi("mcp import nothing.json").fails_with(1).stderr_has("There is no");
    let config: Value =
        serde_json::from_str(&fs::read_to_string(world.agent_dir().join("mcp.json")).unwrap()).unwrap();
    let expected = json!({"mcpServers": {
        "db-one": {"type": "stdio", "command": "db", "env": {"K": "${API_KEY}"}},
        "own": {"command": "x"}, "web": {"type": "http", "url": "https://a.example/mcp"},
        "docs": {"url": "https://b.example", "headers": {"Authorization": "Bearer ${T}"}}}});
    assert_eq!(config, expected);
}
