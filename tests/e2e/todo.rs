//! The tools `todo` and `ask`.

use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

fn todo(arguments: &Value) -> Reply {
    Reply::tool("t", "todo", arguments)
}

#[test]
fn a_list_is_kept_with_the_session_and_open_items_are_reminded_of_once() {
    let (world, server) = world([
        Reply::stream()
            .then_tool(0, "t1", "todo", &json!({"op": "set", "items": ["one", "# Later", "two"]}))
            .then_tool(1, "t2", "todo", &json!({"op": "done", "item": "1"})),
        Reply::text("I stop here"),
        Reply::text("I wait for you"),
        todo(&json!({"op": "view"})),
        todo(&json!({"op": "done", "item": "two"})),
        Reply::text("all done"),
    ]);
    let words = "--model mock/m1 --tools read,todo -p";
    world.pi().words(words).args(["go"]).run().success().stdout_is("I wait for you\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    // Calls of one answer see each other's changes.
    let list = "1. [x] one\n# Later\n2. [/] two\n1 of 2 open";
    assert_eq!(requests[1].last_text(), list);
    let reminder = requests[2].last_text();
    assert!(reminder.starts_with(&format!("These items are still open:\n{list}\n")), "{reminder}");
    // A session that goes on has its list, and the tool that it was given.
    world.pi().words("--model mock/m1 -c -p").args(["on"]).run().success().stdout_is("all done\n");
    let requests = server.requests();
    assert_eq!(requests[4].last_text(), list);
    assert_eq!(requests[5].last_text(), "1. [x] one\n# Later\n2. [x] two\n0 of 2 open");
    assert_eq!(requests.len(), 6);
    let session = world.session();
    let last = session.iter().rev().find(|entry| entry["message"]["toolName"] == "todo").unwrap();
    let expected = json!([{"text": "one", "status": "completed"}, {"text": "two", "status": "completed", "phase": "Later"}]);
    assert_eq!(last["message"]["details"]["todos"], expected);
}

#[test]
fn a_branch_has_its_own_list() {
    let view = || todo(&json!({"op": "view"}));
    let (world, server) = world([
        todo(&json!({"op": "set", "items": ["one", "two"]})),
        Reply::text("1").finish("length"),
        todo(&json!({"op": "done", "item": "one"})),
        Reply::text("2").finish("length"),
        view(),
        Reply::text("3").finish("length"),
    ]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools todo");
    for text in ["first", "second"] {
        client.prompt(text).unwrap();
        client.wait_until_settled().unwrap();
    }
    let points = client.request("get_fork_messages", Value::Null).unwrap();
    let second = points["messages"][1]["entryId"].as_str().unwrap().to_owned();
    client.request("fork", json!({"entryId": second})).unwrap();
    client.prompt("third").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests()[5].last_text(), "1. [/] one\n2. [ ] two\n2 of 2 open");
    client.close().unwrap();
}

#[test]
fn the_user_is_asked_where_somebody_is_there() {
    let question =
        json!({"questions": [{"question": "Which one?", "options": ["red", "blue"], "recommended": 1}]});
    let replies = || [Reply::tool("a", "ask", &question), Reply::text("ok")];
    let (world, server) = world(replies());
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools ask");
    client.prompt("go").unwrap();
    let asked = client.events_until("extension_ui_request").unwrap().pop().unwrap();
    assert_eq!((&asked["method"], &asked["title"]), (&json!("select"), &json!("Which one?")));
    assert_eq!(asked["options"], json!(["red (recommended)", "blue", "Something else…"]));
    client.send("extension_ui_response", json!({"id": asked["id"], "value": "blue"})).unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests()[1].last_text(), "Which one?\nblue");
    client.close().unwrap();
    // An abort ends the wait.
    let (world, server) = crate::world(replies());
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools ask");
    client.prompt("go").unwrap();
    client.events_until("extension_ui_request").unwrap();
    client.abort().unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests().len(), 1);
    client.close().unwrap();
    // Nobody answers in time.
    let (world, server) = crate::world(replies());
    world.write_config("settings.json", r#"{"ask": {"timeoutSeconds": 0.05}}"#);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools ask");
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests()[1].last_text(), "Which one?\nred (nobody answered in time)");
    client.close().unwrap();
    // Nobody is there: the tool is not offered.
    let (world, server) = crate::world([Reply::text("ok")]);
    let run = world.pi().words("--model mock/m1 --tools +ask,+todo -p go").run().success();
    assert_eq!(run.stderr, "");
    let tools = server.requests()[0].body["tools"].to_string();
    assert!(tools.contains("\"todo\"") && !tools.contains("\"ask\""), "{tools}");
}

#[test]
#[cfg(feature = "interactive")]
fn what_is_open_is_shown_above_the_editor() {
    let (world, _server) = world([
        todo(&json!({"op": "set", "items": ["first step", "second step"]})),
        Reply::text("1").finish("length"),
        todo(&json!({"op": "done", "item": "1"})),
        todo(&json!({"op": "done", "item": "2"})),
        Reply::text("2").finish("length"),
    ]);
    let screen = crate::screen::started(&world, "--tools todo");
    screen.send("go");
    screen.wait_for("To do: 2 of 2");
    screen.wait_for("[/] first step");
    screen.send("/quit");
    screen.wait();
    // A session that goes on shows it again.
    let screen = crate::screen::started(&world, "--tools todo -c");
    screen.wait_for("To do: 2 of 2");
    screen.send("on");
    screen.wait_until_gone("To do:");
    screen.quit();
}

#[test]
#[cfg(feature = "interactive")]
fn a_person_edits_the_list_in_an_editor() {
    let (world, server) = world([
        todo(&json!({"op": "set", "items": ["first step", "second step"]})),
        Reply::text("1").finish("length"),
        todo(&json!({"op": "view"})),
        Reply::text("2").finish("length"),
    ]);
    let script = world.write(
        "edit.sh",
        "#!/bin/sh\ncp \"$1\" seen\nprintf '# Now\\n- [x] first step\\n- mine\\n' > \"$1\"\n",
    );
    let pi =
        world.pi().words("--model mock/m1 --tools todo").env("EDITOR", format!("sh {}", script.display()));
    let screen = crate::screen::Screen::start(pi);
    screen.wait_for("commands");
    screen.send("go");
    screen.wait_for("To do: 2 of 2");
    screen.send("/todo edit");
    screen.wait_for("To do: 1 of 2");
    assert_eq!(world.read("seen"), "1. [/] first step\n2. [ ] second step\n");
    screen.send("on");
    let requests = server.wait_for(4);
    assert!(requests[2].body.to_string().contains("The user has changed the list"));
    assert_eq!(requests[3].last_text(), "# Now\n1. [x] first step\n2. [/] mine\n1 of 2 open");
    screen.quit();
}
