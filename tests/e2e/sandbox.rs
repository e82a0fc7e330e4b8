//! What tools may write and reach under `--sandbox` and `--read-only`.

use crate::server::Reply;
use crate::world;
use serde_json::json;

const PRINT: [&str; 3] = ["--model", "mock/m1", "-p"];

/// Whether this kernel can confine; where it cannot, pi says so and does not run.
pub fn can_confine() -> bool {
    cfg!(target_os = "macos") || {
        let world = crate::agent::World::new();
        world.pi().args(["sandbox", "--", "true"]).run().code() == 0
    }
}

#[test]
fn a_workspace_sandbox_keeps_all_tools_inside() {
    if !can_confine() {
        return;
    }
    let (world, server) = world([
        Reply::stream()
            .then_tool(0, "b", "bash", &json!({"command": "echo x > in; echo x > ~/out"}))
            .then_tool(1, "w", "write", &json!({"path": "~/out", "content": "x"}))
            .then_tool(2, "i", "write", &json!({"path": "in2", "content": "x"}))
            .finish("tool_calls"),
        Reply::text("done"),
    ]);
    let run = world.pi().args(["--sandbox", "workspace"]).args(PRINT).args(["go"]).run();
    run.success();
    let requests = server.requests();
    let text = |id: &str| {
        let mut messages = requests[1].messages().iter();
        let result = messages.find(|message| message["tool_call_id"] == id);
        result.expect("a result")["content"].to_string()
    };
    assert!(
        text("b").contains("Permission denied") && text("b").contains("ran in a sandbox"),
        "{}",
        text("b")
    );
    assert!(text("w").contains("the sandbox forbids it"), "{}", text("w"));
    assert!(text("i").contains("Successfully wrote"), "{}", text("i"));
    assert_eq!(world.read("in"), "x\n");
    assert!(!world.home().join("out").exists());
    let prompt = requests[0].messages()[0]["content"].to_string();
    assert!(prompt.contains("Tools run in a sandbox"), "{prompt}");
}

#[test]
fn a_read_only_run_offers_no_tool_that_changes_anything() {
    let (world, server) = world([Reply::text("done"), Reply::text("done")]);
    let offered = |index: usize| {
        let body = server.requests()[index].body.clone();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    world.pi().args(["--read-only"]).args(PRINT).args(["go"]).run().success();
    assert_eq!(offered(0), ["read", "grep", "find", "ls"]);
    let tools = ["--read-only", "--tools", "bash,read,edit"];
    world.pi().args(tools).args(PRINT).args(["go"]).run().success();
    assert_eq!(offered(1), ["read"]);
}

#[test]
fn a_command_can_be_tried_in_the_sandbox() {
    if !can_confine() {
        return;
    }
    let world = crate::agent::World::new();
    let sandbox = |words: &[&str]| world.pi().args(["sandbox"]).args(words).run();
    sandbox(&["--", "sh", "-c", "echo x > in; exit 3"]).fails_with(3);
    assert_eq!(world.read("in"), "x\n");
    sandbox(&["--", "sh", "-c", "echo x > ~/out"]).fails_with(2);
    sandbox(&["--sandbox", "read-only", "--", "sh", "-c", "echo x > in"]).fails_with(2);
    let home = world.home().display().to_string();
    sandbox(&["--sandbox-write", &home, "--", "sh", "-c", "echo x > ~/out"]).success();
    sandbox(&["--", "sh", "-c", "kill -TERM $$"]).fails_with(143);
    sandbox(&["--", "/no/such/program"]).fails_with(1);
    sandbox(&[]).fails_with(2);
    sandbox(&["--sandbox-write", "/no/such/folder", "--", "true"]).fails_with(1);
}
