//! Commands of the user.

use super::{conversation, start};
use crate::server::{Reply, gate};
use serde_json::{Value, json};

#[test]
fn output_comes_live_and_the_result_enters_the_conversation() {
    let (_world, server, mut client) = start([Reply::text("ok")]);
    let id = client.send("bash", json!({"command": "printf 'a\\033[31mb\\n'; exit 3"})).unwrap();
    let answer = client.answer(id).unwrap();
    assert_eq!(
        answer["data"],
        json!({"output": "ab\n", "exitCode": 3, "cancelled": false, "truncated": false})
    );
    assert_eq!(
        client.next_event().unwrap(),
        json!({"type": "bash_execution_update", "id": id, "delta": "ab\n"})
    );
    let hidden = json!({"command": "echo secret", "excludeFromContext": true});
    client.request("bash", hidden).unwrap();
    assert_eq!(client.state().unwrap().message_count, 2);
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    let request = server.requests()[0].body.to_string();
    assert!(request.contains("Ran `printf"), "{request}");
    assert!(!request.contains("secret"), "{request}");
}

#[test]
fn a_command_runs_beside_an_answer_and_is_recorded_after_it() {
    let (open, held) = gate();
    let (_world, _server, mut client) =
        start([Reply::text("one ").then_wait(held).then_text("two"), Reply::text("three")]);
    client.prompt("go").unwrap();
    let result = client.request("bash", json!({"command": "echo beside"})).unwrap();
    assert_eq!(result["output"], json!("beside\n"));
    assert_eq!(conversation(&mut client), ["user: go"]);
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    let roles = |client: &mut pi::client::Client| -> Vec<String> {
        let messages = client.messages().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(&mut client), ["system", "user", "assistant", "bashExecution"]);
    client.prompt("more").unwrap();
    client.wait_until_settled().unwrap();
    let entries = client.request("get_entries", Value::Null).unwrap();
    let stored: Vec<&str> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["message"]["role"].as_str())
        .collect();
    assert_eq!(stored, roles(&mut client));
}

#[test]
fn commands_that_run_are_ended_and_hold_nobody_up() {
    let (_world, _server, mut client) = start([]);
    let ids: Vec<u64> = (0..3)
        .map(|n| client.send("bash", json!({"command": format!("echo {n}; sleep 300")})).unwrap())
        .collect();
    for _ in &ids {
        client.events_until("bash_execution_update").unwrap();
    }
    assert!(!client.state().unwrap().is_streaming);
    client.request("abort_bash", Value::Null).unwrap();
    for id in ids {
        let answer = client.answer(id).unwrap();
        assert_eq!(answer["data"]["cancelled"], json!(true), "{answer}");
        assert!(answer["data"].get("exitCode").is_none());
    }
}

#[test]
fn a_long_output_is_in_a_file() {
    let (_world, _server, mut client) = start([]);
    let result = client.request("bash", json!({"command": "seq 1 5000"})).unwrap();
    assert_eq!(result["truncated"], json!(true));
    let path = result["fullOutputPath"].as_str().unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(whole.lines().count(), 5000);
    assert!(result["output"].as_str().unwrap().ends_with("\n5000"));
}
