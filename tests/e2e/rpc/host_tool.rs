//! Tools that the client runs itself.

use super::{client, conversation, refusal, types};
use crate::agent::World;
use crate::server::{Reply, Server};
use pi::client::Client;
use serde_json::{Value, json};

fn look() -> Value {
    json!({"name": "look", "description": "Looks.", "readOnly": true, "parameters":
        {"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}}})
}

/// A client that lends `look`, and a model that calls it once.
fn lending(words: &str, tool: &Value) -> (World, Server, Client) {
    let call = Reply::tool("t1", "look", &json!({"at": 5}));
    let (world, server) = crate::world([call, Reply::text("done")]);
    let mut client = client(&world, words);
    let active = client.request("register_tools", json!({"tools": [tool]})).unwrap();
    let active = active["toolNames"].as_array().unwrap();
    assert_eq!(active.last(), Some(&json!("look")));
    (world, server, client)
}

/// The call that the client is to run.
#[track_caller]
fn request(client: &mut Client) -> Value {
    let events = client.events_until("tool_call_request").unwrap();
    events.last().unwrap().clone()
}

fn say(client: &mut Client, kind: &str, request: &Value, fields: Value) {
    let mut line = json!({"type": kind, "id": request["id"]});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    client.send_line(line.to_string().as_bytes()).unwrap();
}

/// The ends of tools up to the end of the run.
fn ends(events: &[Value]) -> Vec<&Value> {
    let ends = events.iter();
    ends.filter(|event| event["type"] == "tool_execution_end").collect()
}

#[test]
fn the_client_runs_the_call_and_shows_how_far_it_is() {
    let (_world, server, mut client) = lending("--no-tools", &look());
    client.prompt("go").unwrap();
    let call = request(&mut client);
    assert_eq!(call["toolName"], json!("look"));
    assert_eq!(call["toolCallId"], json!("t1"));
    // Checked, and bent to the schema, as for any tool.
    assert_eq!(call["arguments"], json!({"at": "5"}));
    say(&mut client, "tool_call_update", &call, json!({"content": "half"}));
    let result = json!({"content": [{"type": "text", "text": "whole"}], "details": {"n": 1}});
    say(&mut client, "tool_call_response", &call, result.clone());
    // Only the first one counts.
    say(&mut client, "tool_call_response", &call, json!({"content": "late"}));
    let events = client.wait_until_settled().unwrap();
    let update = events.iter().find(|event| event["type"] == "tool_execution_update").unwrap();
    assert_eq!(update["partialResult"]["content"][0]["text"], json!("half"));
    let end = ends(&events)[0];
    assert_eq!(end["isError"], json!(false));
    assert_eq!(end["result"]["details"], json!({"n": 1}));
    assert_eq!(
        conversation(&mut client),
        ["user: go", "assistant: ", "toolResult: whole", "assistant: done"]
    );
    let requests = server.requests();
    let tools = requests[0].body["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["function"]["name"], json!("look"));
}

#[test]
fn failures_are_results() {
    let rows = [
        (json!({"content": "broken", "isError": true}), "broken"),
        (
            json!({"content": 5}),
            "The result of look is not understood: \"content\" must be a string or a list of blocks",
        ),
    ];
    for (answer, told) in rows {
        let (_world, server, mut client) = lending("", &look());
        client.prompt("go").unwrap();
        let call = request(&mut client);
        say(&mut client, "tool_call_response", &call, answer);
        let events = client.wait_until_settled().unwrap();
        assert_eq!(ends(&events)[0]["isError"], json!(true));
        assert_eq!(server.requests()[1].last_text(), told);
    }
}

#[test]
fn an_abort_a_time_limit_and_the_end_of_the_client_end_a_call() {
    let (_world, _server, mut client) = lending("", &look());
    client.prompt("go").unwrap();
    let call = request(&mut client);
    client.abort().unwrap();
    let events = client.wait_until_settled().unwrap();
    let cancel = events.iter().find(|event| event["type"] == "tool_call_cancel");
    assert_eq!(cancel, Some(&json!({"type": "tool_call_cancel", "id": call["id"], "reason": "aborted"})));
    let text = &ends(&events)[0]["result"]["content"][0]["text"];
    assert_eq!(text, &json!("Operation aborted"));

    let mut tool = look();
    tool["timeoutMs"] = json!(1);
    let (_world, server, mut client) = lending("", &tool);
    client.prompt("go").unwrap();
    let events = client.wait_until_settled().unwrap();
    let cancel = events.iter().find(|event| event["type"] == "tool_call_cancel").unwrap();
    assert_eq!(cancel["reason"], json!("timeout"));
    let told = server.requests()[1].last_text();
    assert_eq!(told, "The tool look gave no result within 1ms");

    let (world, _server, mut client) = lending("", &look());
    client.prompt("go").unwrap();
    request(&mut client);
    assert!(client.close().unwrap().success());
    let stored = world.session();
    let result = stored.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    assert_eq!(result["message"]["isError"], json!(true));
}

#[test]
fn calls_run_beside_each_other_and_their_results_keep_the_order() {
    let (world, server) = crate::world([
        Reply::stream().then_tool(0, "t1", "look", &json!({"at": "a"})).then_tool(
            1,
            "t2",
            "look",
            &json!({"at": "b"}),
        ),
        Reply::text("done"),
    ]);
    let mut client = client(&world, "");
    client.request("register_tools", json!({"tools": [look()]})).unwrap();
    client.prompt("go").unwrap();
    let calls = [request(&mut client), request(&mut client)];
    let of = |id: &str| calls.iter().find(|call| call["toolCallId"] == id).unwrap();
    say(&mut client, "tool_call_response", of("t2"), json!({"content": "B"}));
    client.events_until("tool_execution_end").unwrap();
    say(&mut client, "tool_call_response", of("t1"), json!({"content": "A"}));
    client.wait_until_settled().unwrap();
    let requests = server.requests();
    let results: Vec<&Value> = requests[1]
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(results, ["A", "B"]);
}

#[test]
fn lent_tools_stay_until_they_are_taken_back() {
    let (world, server) = crate::world([Reply::text("one"), Reply::text("two")]);
    let mut client = client(&world, "--tools read");
    let names = |data: Value| data["toolNames"].clone();
    let other = json!({"name": "other"});
    let tools = json!({"tools": [look(), other]});
    let active = names(client.request("register_tools", tools).unwrap());
    assert_eq!(active, json!(["read", "look", "other"]));
    // Again is no second one.
    let again = json!({"tools": [look()]});
    let active = names(client.request("register_tools", again).unwrap());
    assert_eq!(active, json!(["read", "look", "other"]));
    client.request("reload", Value::Null).unwrap();
    client.request("new_session", Value::Null).unwrap();
    let active = &client.request("get_state", Value::Null).unwrap()["activeTools"];
    assert_eq!(active.as_array().unwrap().len(), 3);
    client.prompt("a").unwrap();
    client.wait_until_settled().unwrap();
    let gone = json!({"toolNames": ["look", "other", "read", "nothing"]});
    let active = names(client.request("unregister_tools", gone).unwrap());
    assert_eq!(active, json!(["read"]));
    client.prompt("b").unwrap();
    client.wait_until_settled().unwrap();
    let count = |request: &crate::server::Request| request.body["tools"].as_array().unwrap().len();
    let counts: Vec<usize> = server.requests().iter().map(count).collect();
    assert_eq!(counts, [3, 1]);
}

#[test]
fn what_is_no_tool_is_refused_whole() {
    let (world, _server) = crate::world([]);
    let mut client = client(&world, "");
    let rows = [
        (json!({}), "\"tools\" is missing"),
        (json!({"tools": [1]}), "\"tools\" must be a list of objects"),
        (json!({"tools": [look(), {}]}), "\"name\" is missing"),
        (
            json!({"tools": [{"name": "a b"}]}),
            "The name \"a b\" of a tool must be 1 to 64 letters, digits, \"_\" or \"-\"",
        ),
        (
            json!({"tools": [{"name": "a", "parameters": {"type": "array"}}]}),
            "The \"parameters\" of a must be a JSON schema of the type \"object\"",
        ),
        (json!({"tools": [look(), {"name": "bash"}]}), "There is a tool \"bash\" already"),
        (json!({"tools": [look(), look()]}), "The tool \"look\" is named twice"),
    ];
    for (fields, error) in rows {
        assert_eq!(refusal(&mut client, "register_tools", fields), error);
    }
    let tools = client.request("get_tools", Value::Null).unwrap();
    assert!(!tools.to_string().contains("look"));
}

#[test]
fn lent_tools_need_approval_like_others() {
    let mut tool = look();
    tool["readOnly"] = json!(false);
    let (_world, _server, mut client) = lending("--ask-tools writes", &tool);
    client.prompt("go").unwrap();
    let asked = client.events_until("extension_ui_request").unwrap();
    assert!(!types(&asked).contains(&"tool_call_request"));
    let asked = asked.last().unwrap().clone();
    say(&mut client, "extension_ui_response", &asked, json!({"value": "Allow"}));
    let call = request(&mut client);
    say(&mut client, "tool_call_response", &call, json!({"content": "x"}));
    client.wait_until_settled().unwrap();
}
