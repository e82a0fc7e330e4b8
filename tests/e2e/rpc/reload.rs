//! What `reload` reads again, and what it leaves alone.

use super::{client, conversation, refusal};
use crate::server::{Reply, gate};
use serde_json::{Value, json};

fn commands(client: &mut pi::client::Client) -> Vec<String> {
    let data = client.request("get_commands", Value::Null).unwrap();
    let names = data["commands"].as_array().unwrap().iter();
    let names = names.filter(|command| command["source"] != "extension");
    names.map(|command| command["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_changed_on_disk_holds_from_the_next_request_on() {
    let (world, server) = crate::world([Reply::text("one"), Reply::text("two")]);
    world.write("AGENTS.md", "the first rule");
    let mut client = client(&world, "--tools read,ls");
    client.prompt("a").unwrap();
    client.wait_until_settled().unwrap();
    client.request("set_active_tools", json!({"toolNames": ["ls"]})).unwrap();
    client.request("set_interrupt_mode", json!({"mode": "immediate"})).unwrap();
    assert_eq!(commands(&mut client), [""; 0]);

    world.write("AGENTS.md", "the second rule");
    std::fs::create_dir_all(world.agent_dir().join("prompts")).unwrap();
    world.write_config("prompts/hello.md", "say hello");
    world.write_config("settings.json", r#"{"steeringMode": "all", "retry": {"enabled": true}}"#);
    assert_eq!(client.request("reload", Value::Null).unwrap(), Value::Null);

    assert_eq!(commands(&mut client), ["hello"]);
    let state = client.request("get_state", Value::Null).unwrap();
    assert_eq!(state["steeringMode"], json!("all"));
    assert_eq!(state["autoRetryEnabled"], json!(true));
    assert_eq!(state["interruptMode"], json!("immediate"));
    assert_eq!(state["activeTools"], json!(["ls"]));
    client.prompt("/hello").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(conversation(&mut client), ["user: a", "assistant: one", "user: say hello", "assistant: two"]);
    let requests = server.requests();
    let told = |request: &crate::server::Request| request.body.to_string();
    assert!(told(&requests[0]).contains("the first rule"));
    assert!(told(&requests[1]).contains("the second rule"));
}

#[test]
fn it_is_refused_during_a_run() {
    let (open, held) = gate();
    let (world, _server) = crate::world([Reply::text("one ").then_wait(held).then_text("two")]);
    let mut client = client(&world, "");
    client.prompt("a").unwrap();
    let reason = refusal(&mut client, "reload", Value::Null);
    assert_eq!(reason, "Wait for the current response to finish before reloading.");
    assert!(client.state().unwrap().is_streaming);
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(client.request("reload", Value::Null).unwrap(), Value::Null);
    assert_eq!(client.last_text().unwrap().as_deref(), Some("one two"));
}
