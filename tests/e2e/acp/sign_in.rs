//! Keys: what an editor is told of them, and how its user signs in.

use super::Editor;
use crate::agent::World;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};

const NO_KEY: &str = "--model anthropic/claude-sonnet-4-5";

#[test]
fn with_a_key_there_is_no_need_to_sign_in() {
    let (world, _server) = world([]);
    for words in ["", "--model faux/echo"] {
        let mut editor = Editor::start(&world, words);
        assert_eq!(editor.initialize(json!({}))["authMethods"], json!([]));
        // A client may try all the same.
        let answer = editor.request("authenticate", &json!({"methodId": "pi-auth-login"}));
        assert_eq!(answer.result(), json!({}));
    }
}

#[test]
fn signing_out_removes_the_stored_key() {
    let world = World::new();
    world.write_config(
        "auth.json",
        r#"{"anthropic": {"type": "api_key", "key": "sk-ant-secret-0123456789"}}"#,
    );
    let mut editor = Editor::start(&world, NO_KEY);
    assert_eq!(editor.initialize(json!({}))["agentCapabilities"]["auth"], json!({"logout": {}}));
    assert_eq!(editor.request("logout", &json!({})).result(), json!({}));
    assert_eq!(editor.request("authenticate", &json!({"methodId": "pi-auth-login"})).error().0, -32000);
    let (_, text) = editor.request("logout", &json!({})).error();
    assert!(text.contains("No stored credentials for anthropic"), "{text}");
}

#[test]
fn without_a_key_the_editor_is_told_to_sign_in() {
    let world = World::new();
    let mut editor = Editor::start(&world, NO_KEY);
    let answer = editor.initialize(json!({}));
    let method = &answer["authMethods"][0];
    assert_eq!((method["id"].as_str(), method.get("type")), (Some("pi-auth-login"), None));
    let (code, text) = editor.request("authenticate", &json!({"methodId": method["id"]})).error();
    assert_eq!(code, -32000);
    assert!(text.contains("pi auth login"), "{text}");
    drop(editor);
    // No model at all.
    let world = World::new();
    let mut editor = Editor::start(&world, "");
    assert_eq!(editor.initialize(json!({}))["authMethods"][0]["id"], "pi-auth-login");
    let params = json!({"cwd": world.work(), "mcpServers": []});
    assert_eq!(editor.request("session/new", &params).error().0, -32000);
}

#[test]
fn a_key_that_comes_later_is_found() {
    let world = World::new();
    let server = Server::start([Reply::text("Hello.")]);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "api": "openai-completions",
        "models": [{"id": "m1"}]}}});
    world.write_config("models.json", &config.to_string());
    let mut editor = Editor::start(&world, "--model mock/m1");
    let id = editor.new_session(&world);
    assert_eq!(editor.prompt(&id, "x").error().0, -32000);
    assert_eq!(world.session_files().len(), 0);
    assert_eq!(editor.request("authenticate", &json!({"methodId": "pi-auth-login"})).error().0, -32000);
    world.write_config("auth.json", r#"{"mock": {"type": "api_key", "key": "k"}}"#);
    editor.request("authenticate", &json!({"methodId": "pi-auth-login"})).result();
    assert_eq!(editor.prompt(&id, "x").said("agent_message_chunk"), "Hello.");
}

#[test]
fn an_editor_with_a_terminal_signs_in_there() {
    let world = World::new();
    let mut editor = Editor::start(&world, NO_KEY);
    let answer = editor.initialize(json!({"auth": {"terminal": true}}));
    let method = &answer["authMethods"][0];
    assert_eq!(method["type"], "terminal");
    assert_eq!(method["args"], json!(["auth", "login"]));
    drop(editor);
    let words = method["args"].as_array().unwrap().iter().filter_map(Value::as_str);
    // It is `pi auth login`, which wants a terminal.
    let signing_in = world.pi().words("--mode acp").words(NO_KEY).args(words);
    signing_in.run().fails_with(1).stderr_has("pi auth login <provider>");
}
