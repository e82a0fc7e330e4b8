//! Plan mode, and what is asked beside the conversation.

use crate::agent::World;
use crate::server::{Reply, Request};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};

const PLAN: &str = "# Goal\n\n1. Write a.txt";

fn plan() -> Reply {
    Reply::tool("p", "plan", &json!({"text": PLAN}))
}

fn write() -> Reply {
    Reply::tool("w", "write", &json!({"path": "a.txt", "content": "a"}))
}

/// The plan that is kept, with its file.
fn kept(world: &World) -> String {
    let folder = std::fs::read_dir(world.agent_dir().join("plans")).unwrap();
    let files: Vec<_> = folder.flatten().map(|file| file.path()).collect();
    assert_eq!(files.len(), 1);
    std::fs::read_to_string(&files[0]).unwrap()
}

/// The names of the tools that are in force with a request.
fn tools(request: &Request) -> Vec<String> {
    let all = request.body["tools"].as_array().into_iter().flatten();
    let mut names: Vec<String> =
        all.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// True if a message of a request has this text, in the form of JSON.
fn told(request: &Request, text: &str) -> bool {
    request.body["messages"].to_string().contains(text)
}

#[test]
fn a_pipeline_accepts_its_plan_itself() {
    let (world, server) = world([write(), plan(), write(), Reply::text("done")]);
    world.pi().words("--model mock/m1 --plan --yes -p go").run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(tools(&requests[0]), ["find", "grep", "ls", "plan", "read"]);
    let system = requests[0].messages()[0].to_string();
    assert!(system.contains("Plan mode is on"), "{system}");
    assert!(requests[1].last_text().contains("not found"), "{}", requests[1].last_text());
    assert!(told(&requests[2], "Accepted. Carry out this plan now."));
    assert_eq!(tools(&requests[2]), ["bash", "edit", "read", "write"]);
    assert_eq!(world.read("a.txt"), "a");
    assert_eq!(kept(&world), PLAN);
}

#[test]
fn without_anybody_to_ask_the_plan_is_kept_and_nothing_is_done() {
    let (world, server) = world([plan(), Reply::text("It writes a file"), Reply::text("on")]);
    world.pi().words("--model mock/m1 --plan -p go").run().success().stdout_is("It writes a file\n");
    assert!(server.requests()[1].last_text().starts_with("Kept in "));
    assert_eq!(kept(&world), PLAN);
    assert!(!world.work().join("a.txt").exists());
    // A session that goes on is still in plan mode.
    world.pi().words("--model mock/m1 -c -p on").run().success();
    let last = server.requests().pop().unwrap();
    assert!(!tools(&last).contains(&"write".to_owned()), "{:?}", tools(&last));
    let refused = world.pi().words("--yes -p x").run().fails_with(1);
    refused.stderr_has("requires --plan");
}

/// Waits for a question and answers it.
fn answer(client: &mut Client, method: &str, fields: Value) {
    loop {
        let asked = client.events_until("extension_ui_request").unwrap().pop().unwrap();
        if asked["method"] == method {
            let mut fields = fields;
            fields["id"] = asked["id"].clone();
            client.send("extension_ui_response", fields).unwrap();
            return;
        }
    }
}

#[test]
fn the_user_refuses_edits_and_accepts() {
    let (world, server) =
        world([plan(), plan(), plan(), write(), Reply::text("done"), plan(), Reply::text("fresh")]);
    let mut client = crate::rpc::client(&world, "--model mock/m1");
    client.request("set_plan_mode", json!({"enabled": true})).unwrap();
    client.prompt("go").unwrap();
    answer(&mut client, "select", json!({"value": "Refuse, and say why"}));
    answer(&mut client, "input", json!({"value": "too short"}));
    answer(&mut client, "select", json!({"value": "Refuse, and say why"}));
    answer(&mut client, "input", json!({"cancelled": true}));
    // Back to the choice.
    answer(&mut client, "select", json!({"value": "Edit"}));
    answer(&mut client, "editor", json!({"value": "2. Write b.txt"}));
    let requests = server.wait_for(3);
    assert_eq!(requests[1].last_text(), "Refused: too short\nMake a better plan.");
    assert!(told(&requests[2], "The user has changed the plan:\\n\\n2. Write b.txt\\n\\n"));
    assert_eq!(kept(&world), "2. Write b.txt");
    // The mode is off: a plan is not wanted any more.
    client.wait_until_settled().unwrap();
    let requests = server.requests();
    assert_eq!(requests[3].last_text(), "Tool plan not found");
    assert_eq!(world.read("a.txt"), "a");
    let before = client.state().unwrap().session_id;
    client.request("set_plan_mode", json!({"enabled": true})).unwrap();
    client.prompt("once more").unwrap();
    answer(&mut client, "select", json!({"value": "Accept, in a fresh session"}));
    let last = server.wait_for(7).pop().unwrap();
    assert_eq!(last.last_text(), format!("Carry out this plan now.\n\n{PLAN}"));
    assert_eq!(last.messages().len(), 2, "{:?}", last.messages());
    assert!(tools(&last).contains(&"write".to_owned()));
    while client.last_text().unwrap().as_deref() != Some("fresh") {
        client.next_event().unwrap();
    }
    assert_ne!(client.state().unwrap().session_id, before);
    client.close().unwrap();
}

#[test]
fn a_question_beside_the_conversation_does_not_enter_it() {
    let (world, server) = world([
        Reply::text("hello"),
        Reply::text("beside"),
        Reply::text("on"),
        Reply::text("Begin with this"),
    ]);
    let mut client = crate::rpc::client(&world, "--model mock/m1");
    client.prompt("first").unwrap();
    client.wait_until_settled().unwrap();
    let answer = client.request("btw", json!({"question": "What is this?"})).unwrap();
    assert_eq!(answer, json!({"answer": "beside"}));
    client.prompt("second").unwrap();
    client.wait_until_settled().unwrap();
    let requests = server.requests();
    let aside = requests[1].messages();
    assert!(aside.last().unwrap().to_string().contains("What is this?"));
    // It goes on from the conversation as it is, so that the provider's cache holds it.
    let after = requests[2].messages();
    assert_eq!(aside[..3], after[..3]);
    assert!(!serde_json::to_string(after).unwrap().contains("What is this?"));
    assert_eq!(requests[1].body["tools"], requests[2].body["tools"]);
    let parent = client.state().unwrap().session_file.unwrap();
    let begun = client.request("handoff", json!({"goal": "Ship it"})).unwrap();
    assert_eq!(begun, json!({"text": "Begin with this", "cancelled": false}));
    assert!(server.requests()[3].last_text().ends_with("Goal: Ship it"));
    let file = client.state().unwrap().session_file.unwrap();
    assert_ne!(parent, file);
    assert!(client.messages().unwrap().is_empty());
    let refused = client.request("handoff", json!({"goal": "More"})).unwrap_err().to_string();
    assert!(refused.contains("nothing to hand over"), "{refused}");
    client.close().unwrap();
}

#[test]
#[cfg(feature = "interactive")]
fn the_terminal_plans_asks_beside_and_hands_over() {
    use crate::screen::{ENTER, started};
    let (world, server) =
        world([plan(), Reply::text("carried out"), Reply::text("**beside** it"), Reply::text("Begin so")]);
    let screen = started(&world, "");
    screen.send("/plan write a file");
    screen.wait_for("Accept the plan?");
    screen.wait_for("1. Write a.txt");
    screen.wait_for("plan mode");
    screen.type_keys(ENTER);
    screen.wait_for("carried out");
    screen.send("/btw why so?");
    screen.wait_for("beside it");
    screen.send("/handoff finish");
    screen.wait_for("New session. Enter sends its first message");
    screen.wait_for("Begin so");
    screen.type_keys("\x15");
    screen.quit();
    assert!(tools(&server.requests()[1]).contains(&"write".to_owned()));
}
