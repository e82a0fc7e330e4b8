//! Rules about tool calls, and the modes of approval.

use crate::screen::{ENTER, ESCAPE, started};
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};
use std::fs;

const ALT_M: &str = "\x1bm";
const DELETE: &str = "\x1b[3~";

fn bash(command: &str) -> Reply {
    Reply::tool("c", "bash", &json!({"command": command}))
}

/// Settings of a test, with these permissions.
fn settings(permissions: &Value) -> String {
    json!({"retry": {"enabled": false}, "permissions": permissions}).to_string()
}

/// The stored settings.
fn stored(world: &crate::agent::World) -> Value {
    let text = fs::read_to_string(world.agent_dir().join("settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn rules_of_the_settings_hold_where_nobody_can_be_asked() {
    let nobody = "needs approval, and there is nobody to ask";
    // Permissions, the command, whether it ran, and what the model was told.
    let rows = [
        (json!({}), "touch made", true, ""),
        (json!({"deny": ["bash(touch *)"]}), "true && touch made", false, "The rule \"deny bash(touch *)\""),
        (json!({"ask": ["bash(touch *)"]}), "touch made", false, nobody),
        (json!({"mode": "all"}), "touch made", false, nobody),
        (json!({"mode": "writes", "allow": ["bash(touch *)"]}), "touch made", true, ""),
        (json!({"mode": "writes", "allow": ["bash(touch *)"]}), "touch made; true", false, nobody),
        (json!({"mode": "writes", "allow": ["bash(echo *)"]}), "echo x > made", false, nobody),
        (json!({"mode": "writes", "allow": ["bash(echo *)", "write(made)"]}), "echo x > made", true, ""),
        (json!({"mode": "read-only", "allow": ["bash"]}), "touch made", false, "Read-only mode"),
        (json!({"deny": ["write(made)"]}), "echo x > made", false, "The rule \"deny write(made)\""),
        // What cannot be read is told, and lets nothing through.
        (json!({"deny": ["bash(touch"]}), "touch made", false, nobody),
    ];
    for (permissions, command, runs, told) in rows {
        let (world, server) = world([bash(command), Reply::text("done")]);
        world.write_config("settings.json", &settings(&permissions));
        let outcome = world.pi().words("-p go").run().success();
        assert_eq!(world.work().join("made").exists(), runs, "{permissions} {command}");
        let result = server.requests()[1].last_text();
        assert!(result.contains(told), "{permissions} {command}: {result}");
        assert_eq!(
            outcome.stderr.contains("does not end in )"),
            permissions.to_string().contains("(touch\"")
        );
    }
}

#[test]
fn a_project_only_adds_to_what_is_asked_and_denied() {
    let (world, server) = world([bash("touch made"), Reply::text("done")]);
    let rules = json!({"permissions": {"mode": "free", "allow": ["bash"], "deny": ["bash(touch *)"]}});
    world.write(".pi/settings.json", rules.to_string());
    world.write_config("settings.json", &settings(&json!({"deny": ["bash(rm *)"]})));
    let outcome = world.pi().words("-p --approve go").run().success();
    assert!(
        outcome.stderr.contains("permissions.allow can only be set in the agent folder"),
        "{}",
        outcome.stderr
    );
    assert!(server.requests()[1].last_text().contains("deny bash(touch *)"));
    assert!(!world.work().join("made").exists());
}

#[test]
fn tools_of_clients_are_under_the_rules_too() {
    let (world, server) = world([Reply::tool("c", "look", &json!({"at": "x"})), Reply::text("done")]);
    world.write_config("settings.json", &settings(&json!({"deny": ["look(at=x)"]})));
    let mut client = crate::rpc::client(&world, "");
    let tool = json!({"name": "look", "description": "d", "readOnly": true, "parameters":
        {"type": "object", "properties": {"at": {"type": "string"}}}});
    client.request("register_tools", json!({"tools": [tool]})).unwrap();
    client.prompt("go").unwrap();
    let events = client.wait_until_settled().unwrap();
    assert!(!events.iter().any(|event| event["type"] == "tool_call_request"));
    assert!(server.requests()[1].last_text().contains("deny look(at=x)"));
}

#[test]
fn a_client_can_allow_the_beginning_of_a_command() {
    let (world, _server) = world([bash("true a"), bash("true b"), bash("false"), Reply::text("done")]);
    let mut client = crate::rpc::client(&world, "--ask-tools writes");
    client.prompt("go").unwrap();
    let asked = client.events_until("extension_ui_request").unwrap().pop().unwrap();
    let options = json!([
        "Allow",
        "Always allow",
        "Always allow: bash(true a *)",
        "Change the arguments",
        "Deny",
        "Deny with a reason"
    ]);
    assert_eq!(asked["options"], options);
    let answer = json!({"id": asked["id"], "value": "Always allow: bash(true a *)"});
    client.send("extension_ui_response", answer).unwrap();
    // Another beginning asks again.
    for _ in 0..2 {
        let asked = client.events_until("extension_ui_request").unwrap().pop().unwrap();
        client.send("extension_ui_response", json!({"id": asked["id"], "value": "Allow"})).unwrap();
    }
    client.wait_until_settled().unwrap();
}

#[test]
fn the_mode_is_changed_by_a_key_and_holds_from_the_next_call_on() {
    let (world, server) =
        world([bash("touch one"), Reply::text("First."), bash("touch two"), Reply::text("Second.")]);
    let screen = started(&world, "");
    screen.type_keys(ALT_M);
    screen.wait_for("Now pi changes nothing");
    screen.wait_for("• changes nothing");
    screen.send("go");
    screen.wait_for("First.");
    assert!(server.requests()[1].last_text().contains("Read-only mode"));
    screen.type_keys(ALT_M);
    screen.wait_for("Now pi asks before changes");
    screen.send("again");
    screen.wait_for("Allow bash?");
    screen.type_keys("n");
    screen.wait_for("Second.");
    screen.quit();
    assert!(!world.work().join("one").exists() && !world.work().join("two").exists());
}

#[test]
fn a_call_is_shown_once_and_always_is_kept_for_the_folder() {
    let (world, _server) = world([bash("touch made"), bash("touch made"), Reply::text("Done.")]);
    let screen = started(&world, "--ask-tools all");
    screen.send("go");
    let text = screen.wait_for("Allow bash?");
    assert_eq!(text.matches("touch made").count(), 1, "{text}");
    screen.type_keys("a");
    let text = screen.wait_for("this folder: bash(touch made *)");
    assert!(text.contains("everywhere: every call of bash"), "{text}");
    screen.type_keys("\x1b[B\r");
    screen.wait_for("Done.");
    let folder = world.work().to_string_lossy().into_owned();
    assert_eq!(stored(&world)["permissions"]["folders"], json!({folder: ["bash(touch made *)"]}));
    // The rule is listed, and can be removed.
    screen.send("/permissions");
    let text = screen.wait_for("+ Add a rule");
    assert!(text.contains("this folder") && text.contains("✓ asks before each call"), "{text}");
    screen.type_keys("\x1b[A\x1b[A\x1b[A");
    screen.wait_for("→ allow bash(touch made *)");
    screen.type_keys(DELETE);
    screen.wait_for("Rule removed: allow bash(touch made *)");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Permissions");
    assert_eq!(stored(&world)["permissions"].get("folders"), None);
    screen.quit();
}

#[test]
fn a_rule_is_typed_and_refuses_the_next_call() {
    let (world, server) = world([bash("touch made"), Reply::text("Done.")]);
    let screen = started(&world, "");
    screen.send("/permissions");
    screen.wait_for("✓ runs without asking");
    screen.type_keys("\x1b[B\x1b[B");
    screen.wait_for("→ + Add a rule");
    screen.type_keys(ENTER);
    screen.wait_for("For this session");
    screen.type_keys("deny bash(touch *)\r");
    screen.wait_for("→ deny bash(touch *)");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Permissions");
    screen.send("go");
    screen.wait_for("Done.");
    assert!(server.requests()[1].last_text().contains("deny bash(touch *)"));
    screen.quit();
}

#[test]
fn questions_of_the_model_are_drawn_and_wait_for_the_user() {
    let question = json!({"questions": [{"question": "Which colour?", "options": ["red", "blue"]}]});
    let (world, server) = world([Reply::tool("c", "ask", &question), Reply::text("Done.")]);
    let pi = world.pi().words("--model mock/m1 --tools +ask").env("PI_PROGRAM_STATUS", "1");
    let screen = crate::screen::Screen::start(pi);
    screen.wait_for("m1");
    screen.send("go");
    screen.wait_for("Which colour?");
    screen.type_keys("\x1b[B\r");
    screen.wait_for("Done.");
    assert!(server.requests()[1].last_text().contains("blue"));
    let raw = screen.quit();
    assert!(raw.contains("state=blocked:app=pi:kind=question"), "{raw}");
    assert!(raw.contains("waits for you"), "{raw}");
}

#[test]
fn typed_text_does_not_answer_a_question() {
    let (open, held) = crate::server::gate();
    let call = Reply::stream().then_text("Wait. ").then_wait(held).then_tool(
        1,
        "c",
        "bash",
        &json!({"command": "touch made"}),
    );
    let (world, _server) = world([call.finish("tool_calls"), Reply::text("Done.")]);
    let screen = started(&world, "--ask-tools all");
    screen.send("go");
    screen.wait_for("Wait.");
    screen.type_keys("my next prompt");
    screen.wait_for("my next prompt");
    drop(open);
    screen.wait_for("What you were writing waits");
    screen.type_keys("y\r");
    screen.type_keys(ESCAPE);
    screen.wait_for("Done.");
    assert!(!world.work().join("made").exists());
    screen.wait_for("my next prompt");
    screen.type_keys("\x03");
    screen.quit();
}
