//! Limits of a run, and runs that repeat themselves.

use crate::server::{Reply, gate};
use crate::world;
use serde_json::json;

const PRINT: [&str; 3] = ["--model", "mock/m1", "-p"];

fn look() -> Reply {
    Reply::tool("c", "ls", &json!({"path": "."}))
}

#[test]
fn turns_are_counted() {
    let (world, server) = world([look(), look(), Reply::text("never asked")]);
    let args = ["--tools", "ls", "--max-turns", "2"];
    let run = world.pi().args(args).args(PRINT).args(["go"]).run();
    run.fails_with(1).stdout_is("").stderr_has("limit of 2 turns");
    assert_eq!(server.requests().len(), 2);
    // The conversation can be gone on with.
    let session = world.session();
    assert_eq!(session.last().unwrap()["message"]["role"], "toolResult");
}

#[test]
fn an_answer_within_the_limits_is_whole() {
    let (world, _server) = world([look(), Reply::text("done")]);
    let args = ["--tools", "ls", "--max-turns", "2", "--max-cost", "1", "--timeout", "60"];
    let run = world.pi().args(args).args(PRINT).args(["go"]).run();
    run.success().stdout_is("done\n");
}

#[test]
fn time_is_up_in_the_middle_of_an_answer() {
    let (open, held) = gate();
    let (world, _server) = world([Reply::text("half ").then_wait(held)]);
    let args = ["--timeout", "0.2", "--mode", "json", "--model", "mock/m1", "go"];
    let run = world.pi().args(args).run();
    drop(open);
    let types: Vec<String> =
        run.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(types[types.len() - 3..], ["agent_end", "limit_reached", "agent_settled"]);
    run.fails_with(1).stderr_has("time limit of 0.2 s");
}

#[test]
fn a_run_that_repeats_itself_is_told_and_then_ended() {
    let (world, server) = world((0..8).map(|_| look()));
    let args = ["--tools", "ls"];
    let run = world.pi().args(args).args(PRINT).args(["go"]).run();
    run.fails_with(1).stderr_has("repeats the same tool calls");
    let requests = server.requests();
    assert_eq!(requests.len(), 7);
    assert!(requests[6].last_text().contains("Do something else"));
    assert!(!requests[5].last_text().contains("Do something else"));
}

#[test]
fn a_session_has_its_own_limits() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    world.write_config("settings.json", r#"{"limits": {"sessionTokens": 1}}"#);
    world.pi().args(PRINT).args(["go"]).run().success();
    let run = world.pi().args(["-c"]).args(PRINT).args(["on"]).run();
    run.fails_with(1).stderr_has("limits.sessionTokens");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let world = crate::agent::World::new();
    for args in
        [["--max-turns", "0"], ["--max-cost", "x"], ["--timeout", "-1"], ["--max-tokens-total", "1.5"]]
    {
        world.pi().args(args).args(["-p", "x"]).run().fails_with(2).stderr_has(args[0]);
    }
}
