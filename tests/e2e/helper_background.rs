//! Helpers in the background, and what a person does with helpers.

use crate::helper::{PRINT, done, world};
use crate::server::{Reply, Step, gate};
use serde_json::{Value, json};

fn background(agents: &[&str]) -> Reply {
    let tasks: Vec<Value> = agents.iter().map(|agent| json!({"agent": agent, "task": "Work"})).collect();
    Reply::tool("c1", "task", &json!({"tasks": tasks, "background": true}))
}

fn stalls() -> Vec<Reply> {
    vec![Reply::stream().then_text("half of it").then(Step::Stall)]
}

#[test]
fn the_answer_wakes_an_idle_agent() {
    let (open, held) = gate();
    let slow = Reply::stream().then_wait(held).then_tool(0, "y1", "yield", &json!({"result": "from a"}));
    let (world, server, helpers) = world(
        [background(&["a", "b"]), Reply::text("I go on"), Reply::text("I saw it")],
        [("a", vec![slow]), ("b", done("from b"))],
    );
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools task");
    client.prompt("go").unwrap();
    let events = client.wait_until_settled().unwrap();
    assert!(events.iter().any(|event| event["type"] == "helper_update" && event["helper"]["name"] == "a"));
    assert_eq!(server.requests()[1].last_text(), "Started a, b. The result arrives as a message.");
    helpers[0].wait_for(1);
    let listed = client.request("helper", json!({"op": "list"})).unwrap();
    assert_eq!(
        (&listed["helpers"][0]["name"], &listed["helpers"][0]["background"]),
        (&json!("a"), &json!(true))
    );
    open.send(()).unwrap();
    let told = server.wait_for(3)[2].last_text();
    assert_eq!(told, "## a (a): done\n\nfrom a\n\n## b (b): done\n\nfrom b\n");
    client.wait_until_settled().unwrap();
    assert_eq!(client.last_text().unwrap().as_deref(), Some("I saw it"));
    client.close().unwrap();
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
fn where_a_session_ends_with_its_run_the_run_waits() {
    let (world, server, _helpers) =
        world([background(&["a"]), Reply::text("I wait"), Reply::text("I saw it")], [("a", done("from a"))]);
    world.pi().args(PRINT).args(["go"]).run().success().stdout_is("I saw it\n");
    assert_eq!(server.requests()[2].last_text(), "## a (a): done\n\nfrom a\n");
}

#[test]
fn helpers_in_the_background_are_steered_and_stopped_and_end_with_their_session() {
    let (world, server, helpers) = world(
        [
            background(&["a"]),
            Reply::text("ok"),
            Reply::text("it was stopped"),
            background(&["b"]),
            Reply::text("ok"),
        ],
        [("a", stalls()), ("b", stalls())],
    );
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools task");
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    helpers[0].wait_for(1);
    // An abort is for the run, which has ended.
    client.abort().unwrap();
    for (fields, fault) in [
        (json!({"op": "stop", "helper": "z"}), "There is no helper \"z\". Known: a"),
        (json!({"op": "steer", "helper": "a"}), "text is needed"),
        (json!({"op": "fly"}), "There is no op \"fly\""),
    ] {
        let refused = client.request("helper", fields).unwrap_err().to_string();
        assert!(refused.contains(fault), "{refused}");
    }
    client.request("helper", json!({"op": "steer", "helper": "a", "text": "be quick"})).unwrap();
    client.request("helper", json!({"op": "stop", "helper": "a"})).unwrap();
    let told = server.wait_for(3)[2].last_text();
    assert!(told.starts_with("## a (a): aborted\n[It was aborted; this is its last text]"), "{told}");
    client.wait_until_settled().unwrap();
    client.prompt("again").unwrap();
    client.wait_until_settled().unwrap();
    helpers[1].wait_for(1);
    client.request("new_session", Value::Null).unwrap();
    assert_eq!(client.request("helper", json!({"op": "list"})).unwrap()["helpers"], json!([]));
    assert_eq!(client.messages().unwrap(), [0u8; 0].map(|_| Value::Null));
    client.close().unwrap();
    assert_eq!(world.processes_left(), [0u32; 0]);
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn limits_hold_in_the_background() {
    let look = |_| Reply::tool("c", "bash", &json!({"command": "true"}));
    let (world, _server, helpers) =
        world([background(&["a"]), Reply::text("I wait")], [("a", (0..20).map(look).collect())]);
    world.pi().args(["--max-tokens-total", "600"]).args(PRINT).args(["go"]).run().fails_with(1);
    assert!(helpers[0].requests().len() < 10);
}

#[test]
#[cfg(feature = "interactive")]
fn the_terminal_shows_helpers_live() {
    let (open, held) = gate();
    let slow = Reply::stream().then_text("Half of the answer").then_wait(held).then_tool(
        1,
        "y1",
        "yield",
        &json!({"result": "from a"}),
    );
    let (world, _server, helpers) = world(
        [background(&["a"]), Reply::text("I go on"), Reply::text("I saw it")],
        [("a", vec![slow, Reply::text("Quick")])],
    );
    let screen = crate::screen::started(&world, "--model mock/m1 --tools task");
    screen.send("/agents");
    screen.wait_for("This session has no helpers");
    screen.send("go");
    screen.wait_for("I go on");
    helpers[0].wait_for(1);
    screen.send("/agents");
    screen.wait_for("a (a): running");
    screen.send("");
    screen.wait_for("Half of the answer");
    screen.wait_for("Work");
    screen.type_keys("g");
    screen.wait_for("a is still at work");
    screen.type_keys("m");
    screen.wait_for("Message to a");
    screen.send("be quick");
    screen.wait_for("Sent to a");
    open.send(()).unwrap();
    screen.wait_for("a (a): done");
    screen.type_keys("g");
    screen.wait_for("Going on with the session of a");
    screen.wait_for("Half of the answer");
    screen.quit();
    assert_eq!(world.processes_left(), [0u32; 0]);
}
