//! Tool calls that the client is asked about.

use super::{client, types};
use crate::agent::World;
use crate::server::{Reply, Server};
use pi::client::Client;
use serde_json::{Value, json};

/// A client whose model writes the file `a`, then says `done`.
fn writing(words: &str) -> (World, Server, Client) {
    let call = json!({"path": "a", "content": "x"});
    let (world, server) = crate::world([Reply::tool("t1", "write", &call), Reply::text("done")]);
    let mut client = client(&world, words);
    client.prompt("go").unwrap();
    (world, server, client)
}

/// The next question, of this method.
#[track_caller]
fn question(client: &mut Client, method: &str) -> Value {
    let asked = client.events_until("extension_ui_request").unwrap();
    let asked = asked.last().unwrap().clone();
    assert_eq!(asked["method"], json!(method), "{asked}");
    asked
}

fn respond(client: &mut Client, question: &Value, fields: Value) {
    let mut line = json!({"type": "extension_ui_response", "id": question["id"]});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    client.send_line(line.to_string().as_bytes()).unwrap();
}

/// The results of the tools up to the end of the run: whether each failed, and its text.
fn results(client: &mut Client) -> Vec<(bool, String)> {
    let events = client.wait_until_settled().unwrap();
    assert!(!types(&events).contains(&"extension_ui_request"));
    let ends = events.iter().filter(|event| event["type"] == "tool_execution_end");
    ends.map(|event| {
        let text = event["result"]["content"][0]["text"].as_str().unwrap();
        (event["isError"] == true, text.to_owned())
    })
    .collect()
}

#[test]
fn the_client_decides() {
    // What is answered, whether the file is there then, and what the model is told.
    let rows = [
        (json!({"value": "Allow"}), Some("x"), ""),
        (json!({"value": "Change the arguments", "arguments": {"path": "a", "content": "y"}}), Some("y"), ""),
        (json!({"value": "Change the arguments", "arguments": {"path": "a"}}), None, "Validation failed"),
        (json!({"value": "Deny"}), None, "The user denied this call"),
        (json!({"value": "Deny", "reason": "not there"}), None, "The user denied this call: not there"),
        (json!({"cancelled": true}), None, "The user denied this call"),
        (json!({"value": 7}), None, "The user denied this call"),
    ];
    for (answer, file, told) in rows {
        let (world, _server, mut client) = writing("--ask-tools writes");
        let asked = question(&mut client, "select");
        assert_eq!(asked["toolName"], json!("write"));
        assert_eq!(asked["toolCallId"], json!("t1"));
        assert_eq!(asked["arguments"], json!({"path": "a", "content": "x"}));
        assert!(!world.work().join("a").exists());
        respond(&mut client, &asked, answer.clone());
        let results = results(&mut client);
        let (failed, text) = &results[0];
        assert_eq!(*failed, file.is_none(), "{answer}: {text}");
        assert!(text.starts_with(told), "{answer}: {text}");
        let content = std::fs::read_to_string(world.work().join("a")).ok();
        assert_eq!(content.as_deref(), file, "{answer}");
        assert_eq!(client.last_text().unwrap().as_deref(), Some("done"));
    }
}

#[test]
fn a_simple_client_is_asked_for_the_rest() {
    let (_world, _server, mut client) = writing("--ask-tools write");
    let asked = question(&mut client, "select");
    respond(&mut client, &asked, json!({"value": "Deny with a reason"}));
    let asked = question(&mut client, "input");
    respond(&mut client, &asked, json!({"value": "too big"}));
    assert_eq!(results(&mut client), [(true, "The user denied this call: too big".to_owned())]);

    let (world, _server, mut client) = writing("--ask-tools all");
    let asked = question(&mut client, "select");
    respond(&mut client, &asked, json!({"value": "Change the arguments"}));
    let asked = question(&mut client, "editor");
    let shown: Value = serde_json::from_str(asked["prefill"].as_str().unwrap()).unwrap();
    assert_eq!(shown, json!({"path": "a", "content": "x"}));
    respond(&mut client, &asked, json!({"value": "{nonsense"}));
    // It is told what was wrong, and asked again.
    let asked = question(&mut client, "select");
    let title = asked["title"].as_str().unwrap();
    assert!(title.starts_with("The arguments are no JSON object"), "{title}");
    respond(&mut client, &asked, json!({"value": "Change the arguments"}));
    let asked = question(&mut client, "editor");
    let other = json!({"path": "b", "content": "z"}).to_string();
    respond(&mut client, &asked, json!({"value": other}));
    assert!(!results(&mut client)[0].0);
    assert_eq!(world.read("b"), "z");
}

#[test]
fn only_the_tools_of_the_rule_are_asked_about() {
    for (words, is_asked) in [
        ("", false),
        ("--ask-tools bash", false),
        ("--ask-tools bash,write", true),
        ("--ask-tools writes --allow-tools write", false),
    ] {
        let (world, _server, mut client) = writing(words);
        if is_asked {
            let asked = question(&mut client, "select");
            respond(&mut client, &asked, json!({"value": "Allow"}));
        }
        assert!(!results(&mut client)[0].0, "{words}");
        assert_eq!(world.read("a"), "x");
    }
}

#[test]
fn always_holds_for_later_calls() {
    let call = |n: u32| Reply::tool(&format!("t{n}"), "bash", &json!({"command": "true"}));
    let (world, _server) =
        crate::world([call(1), call(2), Reply::text("done"), call(3), Reply::text("done")]);
    let mut client = client(&world, "--ask-tools writes");
    client.prompt("go").unwrap();
    let asked = question(&mut client, "select");
    respond(&mut client, &asked, json!({"value": "Always allow"}));
    assert_eq!(results(&mut client).len(), 2);
    // Another conversation of the same program.
    client.request("new_session", Value::Null).unwrap();
    client.prompt("go").unwrap();
    assert_eq!(results(&mut client).len(), 1);
}

#[test]
fn an_open_question_holds_up_no_other_call_and_ends_with_an_abort() {
    let (world, _server) = crate::world([Reply::stream()
        .then_tool(0, "t1", "write", &json!({"path": "a", "content": "x"}))
        .then_tool(1, "t2", "ls", &json!({}))]);
    let mut client = client(&world, "--tools write,ls --ask-tools writes");
    client.prompt("go").unwrap();
    let mut before = client.events_until("tool_execution_end").unwrap();
    let end = before.last().unwrap();
    assert_eq!(end["toolCallId"], json!("t2"));
    if !types(&before).contains(&"extension_ui_request") {
        before.push(question(&mut client, "select"));
    }
    assert_eq!(client.request("ping", Value::Null).unwrap(), Value::Null);
    client.abort().unwrap();
    let results = results(&mut client);
    assert_eq!(results, [(true, "Operation aborted".to_owned())]);
    assert!(!world.work().join("a").exists());
    // An answer that comes too late is passed over.
    let asked = before.iter().find(|event| event["type"] == "extension_ui_request").unwrap();
    respond(&mut client, asked, json!({"value": "Allow"}));
    client.request("ping", Value::Null).unwrap();
    assert!(!world.work().join("a").exists());
}

#[test]
fn a_client_that_goes_away_allows_nothing() {
    let (world, _server, mut client) = writing("--ask-tools writes");
    question(&mut client, "select");
    assert!(client.close().unwrap().success());
    assert!(!world.work().join("a").exists());
    let stored = world.session();
    let result = stored.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    assert_eq!(result["message"]["isError"], json!(true));
}

#[test]
fn without_anybody_to_ask_the_answer_is_no() {
    let replies = || {
        let call = json!({"path": "a", "content": "x"});
        [Reply::tool("t1", "write", &call), Reply::text("done")]
    };
    let (world, server) = crate::world(replies());
    world.pi().words("-p --ask-tools writes go").run().success().stdout_is("done\n");
    assert!(!world.work().join("a").exists());
    let told = server.requests()[1].last_text();
    assert_eq!(
        told,
        "Tool \"write\" needs approval, and there is nobody to ask. To allow it: --allow-tools write"
    );
    let (world, _server) = crate::world(replies());
    world.pi().words("-p --ask-tools writes --allow-tools write go").run().success();
    assert_eq!(world.read("a"), "x");
}
