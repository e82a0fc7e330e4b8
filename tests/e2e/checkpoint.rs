//! The tools `checkpoint` and `rewind`.

use crate::server::Reply;
use crate::world;
use serde_json::json;

#[test]
fn a_detour_is_replaced_by_its_report() {
    let call = |name: &str, arguments: serde_json::Value| Reply::tool("c", name, &arguments);
    let (world, server) = world([
        call("rewind", json!({"report": "none"})),
        call("checkpoint", json!({})),
        call("bash", json!({"command": "echo a long way; echo x > made"})),
        call("rewind", json!({"report": "It was a dead end"})),
        call("rewind", json!({"report": "again"})),
        Reply::text("I know"),
    ]);
    world
        .pi()
        .words("--model mock/m1 --tools bash,checkpoint,rewind -p go")
        .run()
        .success()
        .stdout_is("I know\n");
    let requests = server.requests();
    assert_eq!(requests[1].last_text(), "There is no checkpoint to go back to");
    assert!(requests[3].body.to_string().contains("a long way"));
    let after = requests[4].body.to_string();
    assert!(after.contains("It was a dead end") && after.contains("Marked."), "{after}");
    assert!(!after.contains("a long way") && !after.contains("Going back"), "{after}");
    // A checkpoint is used up, and files stay.
    assert_eq!(requests[5].last_text(), "There is no checkpoint to go back to");
    assert_eq!(world.read("made"), "x\n");
    // The detour is still in the tree.
    let entries = world.session();
    assert!(entries.iter().any(|entry| entry.to_string().contains("a long way")));
    assert!(entries.iter().any(|entry| entry["type"] == "branch_summary"));
}

#[test]
fn the_tools_are_off_by_default() {
    let (world, server) = world([Reply::text("ok")]);
    world.pi().words("--model mock/m1 -p go").run().success();
    assert!(!server.requests()[0].body["tools"].to_string().contains("checkpoint"));
}

#[test]
fn a_run_that_ends_by_going_back_leaves_the_next_prompt_alone() {
    let call = |name: &str, arguments: serde_json::Value| Reply::tool("c", name, &arguments);
    let (world, server) = world([
        call("checkpoint", json!({})),
        call("bash", json!({"command": "echo a long way"})),
        call("rewind", json!({"report": "It was a dead end"})),
        call("bash", json!({"command": "echo next"})),
        Reply::text("ok"),
    ]);
    let pi = |words: &str| world.pi().words("--model mock/m1 --tools +checkpoint,+rewind").words(words).run();
    let first = pi("--max-turns 3 -p first").fails_with(1);
    assert!(!first.stderr.contains("There is no tool"), "{}", first.stderr);
    pi("-c -p second").success();
    let requests = server.requests();
    for request in &requests[3..] {
        let body = request.body.to_string();
        assert!(body.contains("It was a dead end") && body.contains("second"), "{body}");
        assert!(!body.contains("a long way"), "{body}");
    }
}
