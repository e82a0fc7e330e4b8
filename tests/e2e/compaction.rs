//! Long conversations: when they are compacted, what is told, stored and sent.

use crate::agent::{Outcome, World};
use crate::server::{Reply, Request, Server, gate};
use serde_json::{Value, json};

const MODEL: [&str; 4] = ["--model", "mock/m1", "--mode", "json"];

/// The words by which a summary request is known.
const HISTORY: &str = "## Critical Context";
const PREFIX: &str = "## Context Needed to Continue";

/// A world with a window of `window` tokens, of which 1,000 are kept free.
fn small_world(window: u64, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let settings = json!({"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100},
        "retry": {"baseDelayMs": 1}});
    world_with(window, &settings, replies)
}

fn world_with(window: u64, settings: &Value, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let world = World::new();
    let server = Server::start(replies);
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
        "api": "openai-completions", "models": [
            {"id": "m1", "contextWindow": window, "maxTokens": 4000},
            {"id": "small", "contextWindow": window, "maxTokens": 300}]}}});
    world.write_config("models.json", &models.to_string());
    world.write_config("settings.json", &settings.to_string());
    (world, server)
}

fn overflow() -> Reply {
    Reply::error(400, "This model's maximum context length is 10000 tokens.")
}

fn run(world: &World, prompts: &[&str]) -> Outcome {
    let prompts = prompts.iter().copied();
    world.pi().args(MODEL).args(["-p"]).args(prompts).run()
}

/// The types of events without those of messages and turns.
fn told(outcome: &Outcome) -> Vec<String> {
    let types = outcome.events().into_iter().filter_map(|event| {
        let kind = event["type"].as_str()?.to_owned();
        let reason = event["reason"].as_str().unwrap_or_default();
        let is_told = kind.contains("compaction")
            || kind.contains("summarization")
            || kind == "entry_appended"
            || kind == "agent_settled";
        is_told.then(|| format!("{kind} {reason}").trim().to_owned())
    });
    types.collect()
}

fn ends(outcome: &Outcome) -> Vec<Value> {
    let events = outcome.events().into_iter();
    events.filter(|event| event["type"] == "compaction_end").collect()
}

fn asks(request: &Request, words: &str) -> bool {
    request.last_text().contains(words)
}

#[test]
fn a_full_context_is_compacted_after_the_run() {
    let (world, server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
            Reply::text("third"),
        ],
    );
    let outcome = run(&world, &["one", "two", "three"]).success();
    assert_eq!(
        told(&outcome),
        [
            "agent_settled",
            "compaction_start threshold",
            "compaction_end threshold",
            "agent_settled",
            "agent_settled",
        ]
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert!(asks(&requests[2], HISTORY) && asks(&requests[2], "[User]: one\n\n[Assistant]: aaa"));
    assert!(asks(&requests[3], PREFIX) && asks(&requests[3], "[User]: two"));
    for request in &requests[2..4] {
        assert!(request.body.get("tools").is_none());
        assert_eq!(request.messages().len(), 2);
    }
    let third = &requests[4];
    assert_eq!(third.messages().len(), 4, "{:?}", third.messages());
    let summary = third.messages()[1].to_string();
    assert!(summary.contains("THE SUMMARY") && summary.contains("THE TURN"), "{summary}");
    assert_eq!(third.body["tools"], requests[0].body["tools"]);

    let end = &ends(&outcome)[0];
    assert_eq!(end["aborted"], false);
    assert_eq!(end["willRetry"], false);
    assert_eq!(end["result"]["tokensBefore"], 9507);
    assert_eq!(end["result"]["usage"]["totalTokens"], 214);
    let session = world.session();
    let entry = session.iter().find(|entry| entry["type"] == "compaction");
    let entry = entry.expect("a compaction");
    assert_eq!(entry["summary"], end["result"]["summary"]);
    assert_eq!(entry["details"], json!({"readFiles": [], "modifiedFiles": []}));
    assert_eq!(entry["fromHook"], false);
    assert_eq!(entry["systemMessage"]["toolsAdded"].as_array().map(Vec::len), Some(4));
    let kept = session.iter().find(|other| other["id"] == entry["firstKeptEntryId"]);
    assert_eq!(kept.expect("kept")["message"]["role"], "assistant");
}

#[test]
fn a_long_run_is_compacted_between_its_turns() {
    let (world, server) = small_world(
        10_000,
        [
            Reply::tool("1", "read", &json!({"path": "b.txt"})),
            Reply::tool("2", "write", &json!({"path": "a.txt", "content": "x".repeat(500)})),
            Reply::tool("3", "read", &json!({"path": "a.txt"})).with_prompt_tokens(9500),
            Reply::text("THE TURN"),
            Reply::text("done"),
        ],
    );
    world.write("b.txt", "text");
    let outcome = run(&world, &["go"]).success();
    assert_eq!(told(&outcome), ["compaction_start threshold", "compaction_end threshold", "agent_settled"]);
    let requests = server.requests();
    assert!(asks(&requests[3], PREFIX) && asks(&requests[3], "read(path=\"b.txt\")"));
    let summary = ends(&outcome)[0]["result"]["summary"].to_string();
    assert!(summary.contains("No prior history."), "{summary}");
    // The kept call has its result, and no other result is there.
    let roles: Vec<&str> =
        requests[4].messages().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(
        ends(&outcome)[0]["result"]["details"],
        json!({"readFiles": ["b.txt"], "modifiedFiles": ["a.txt"]})
    );
    assert!(summary.contains("<read-files>\\nb.txt\\n</read-files>"), "{summary}");
}

#[test]
fn a_refused_context_is_compacted_and_asked_again_once() {
    let (world, server) = small_world(
        10_000,
        [Reply::text(&"a".repeat(800)), overflow(), Reply::text("THE SUMMARY"), Reply::text("recovered")],
    );
    let outcome = run(&world, &["one", "two"]).success();
    assert_eq!(
        told(&outcome),
        [
            "agent_settled",
            "entry_appended",
            "compaction_start overflow",
            "compaction_end overflow",
            "agent_settled",
        ]
    );
    assert_eq!(ends(&outcome)[0]["willRetry"], true);
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[3].last_text(), "two");
}

#[test]
fn a_second_refusal_is_a_plain_failure() {
    let (world, server) = small_world(
        10_000,
        [Reply::text(&"a".repeat(800)), overflow(), Reply::text("THE SUMMARY"), overflow()],
    );
    let outcome = run(&world, &["one", "two"]).fails_with(1);
    assert_eq!(server.requests().len(), 4);
    let said = ends(&outcome)[1]["errorMessage"].to_string();
    assert!(said.contains("Context overflow recovery failed after one compact-and-retry attempt"), "{said}");
    outcome.stderr_has("maximum context length");
}

#[test]
fn a_first_prompt_that_is_refused_is_no_loop_and_no_success() {
    let replies = [overflow(), overflow(), overflow()];
    let (world, server) = world_with(10_000, &json!({}), replies);
    let outcome = run(&world, &["one"]).fails_with(1);
    assert_eq!(server.requests().len(), 1);
    outcome.stderr_has("maximum context length");
}

#[test]
fn a_failed_summary_changes_nothing() {
    for refusal in [
        Reply::error(400, "no summary today"),
        Reply::text("half").finish("length"),
        Reply::tool("1", "read", &json!({"path": "x"})),
        Reply::text(" "),
    ] {
        let (world, server) = small_world(
            10_000,
            [Reply::text(&"a".repeat(800)), Reply::text(&"b".repeat(800)).with_prompt_tokens(9500), refusal],
        );
        let outcome = run(&world, &["one", "two"]).success();
        let end = ends(&outcome).pop().expect("an end");
        let said = end["errorMessage"].as_str().unwrap_or_default();
        assert!(said.starts_with("Auto-compaction failed: Summarization "), "{said}");
        assert!(end.get("result").is_none() && end["aborted"] == false);
        assert_eq!(server.requests().len(), 3);
        let session = world.session();
        assert!(session.iter().all(|entry| entry["type"] == "message"
            || !matches!(entry["type"].as_str(), Some("compaction" | "context_edit"))));
    }
}

#[test]
fn a_summary_is_asked_for_again_as_an_answer_is() {
    let (world, _server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::error(503, "overloaded"),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
        ],
    );
    let outcome = run(&world, &["one", "two"]).success();
    assert_eq!(
        told(&outcome),
        [
            "agent_settled",
            "compaction_start threshold",
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start threshold",
            "summarization_retry_finished",
            "compaction_end threshold",
            "agent_settled",
        ]
    );
}

#[test]
fn an_abort_leaves_the_conversation_as_it_was() {
    let (_open, held) = gate();
    let (world, server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::stream().then_text("THE SUM").then_wait(held),
        ],
    );
    let agent = world.pi().args(MODEL).args(["-p"]).args(["one", "two"]).spawn();
    server.wait_for(3);
    agent.signal("INT");
    let outcome = agent.wait();
    let end = ends(&outcome).pop().expect("an end");
    assert_eq!((&end["aborted"], end.get("result")), (&json!(true), None));
    assert!(end.get("errorMessage").is_none());
    let session = world.session();
    assert!(session.iter().all(|entry| entry["type"] != "compaction"));
}

#[test]
fn a_summary_is_carried_on_by_the_next_and_by_a_resume() {
    let (world, server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("SUMMARY ONE"),
            Reply::text("TURN ONE"),
            Reply::text(&"c".repeat(800)).with_prompt_tokens(9500),
            Reply::text("SUMMARY TWO"),
            Reply::text("TURN TWO"),
            Reply::text("fourth"),
            Reply::text("fifth"),
        ],
    );
    run(&world, &["one", "two", "three", "four"]).success();
    let requests = server.requests();
    let second = &requests[5];
    assert!(asks(second, "<previous-summary>\nSUMMARY ONE"), "{}", second.last_text());
    assert!(!asks(second, "[User]: one"));
    world.pi().args(MODEL).args(["-c", "-p", "five"]).run().success();
    let requests = server.requests();
    let (live, resumed) = (requests[7].messages(), requests[8].messages());
    // What is sent after a resume extends what was sent before it.
    assert_eq!(resumed[..live.len()], *live);
    assert!(live[1].to_string().contains("SUMMARY TWO"));
    assert!(!live[1].to_string().contains("SUMMARY ONE"));
}

#[test]
fn a_small_window_needs_no_settings() {
    let (world, server) = world_with(
        8192,
        &json!({}),
        [
            Reply::text(&"a".repeat(12_000)).with_prompt_tokens(3000),
            Reply::text(&"b".repeat(12_000)).with_prompt_tokens(6500),
            Reply::text("THE TURN"),
            Reply::text("third"),
        ],
    );
    let outcome = run(&world, &["one", "two", "three"]).success();
    assert_eq!(ends(&outcome).len(), 1);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn what_cannot_be_freed_is_not_compacted_at_every_turn() {
    let call = || Reply::tool("1", "ls", &json!({})).with_prompt_tokens(9900);
    // The prompt and the tools alone are larger than the window.
    let (world, server) =
        small_world(1200, [call(), call(), Reply::text("SUMMARY"), call(), call(), Reply::text("end")]);
    let outcome = run(&world, &["go"]).success();
    let compactions = told(&outcome).iter().filter(|kind| kind.starts_with("compaction_start")).count();
    assert!(compactions <= 2, "{:?}", told(&outcome));
    assert!(server.requests().len() <= 8);
}

#[test]
fn another_model_may_write_the_summary() {
    let settings =
        json!({"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100, "model": "mock/small"}});
    let replies = || {
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
        ]
    };
    let (world, server) = world_with(10_000, &settings, replies());
    run(&world, &["one", "two"]).success();
    let requests = server.requests();
    assert_eq!((&requests[1].body["model"], &requests[2].body["model"]), (&json!("m1"), &json!("small")));

    let settings =
        json!({"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100, "model": "mock/gone"}});
    let (world, server) = world_with(10_000, &settings, replies());
    let outcome = run(&world, &["one", "two"]).success();
    assert_eq!(server.requests()[2].body["model"], "m1");
    outcome.stderr_has("mock/gone of the setting compaction.model cannot be used");
}

#[test]
fn older_clients_are_told_in_their_own_event() {
    let (world, _server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
        ],
    );
    let pi = world.pi().args(MODEL).words("--cumulative-events -p one two");
    let outcome = pi.run().success();
    let events = outcome.events();
    let at = events.iter().position(|event| event["type"] == "compaction").expect("the event");
    assert_eq!(events[at - 1]["type"], "compaction_end");
    assert_eq!(events[at]["summary"], events[at - 1]["result"]["summary"]);
    assert_eq!((&events[at]["tokensBefore"], &events[at]["auto"]), (&json!(9507), &json!(true)));
}

#[test]
fn tool_outputs_that_do_not_fit_are_stored_and_named() {
    let (world, server) = small_world(
        10_000,
        [
            Reply::text(&"a".repeat(800)),
            Reply::tool(
                "1",
                "bash",
                &json!({"command": "yes 123456789012345678901234567890123456789012345678 | head -c 45000"}),
            ),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
            Reply::text("recovered"),
        ],
    );
    let outcome = run(&world, &["one", "two"]).success();
    let requests = server.requests();
    let sent = requests.last().expect("a request").messages();
    let result = sent.iter().find(|message| message["role"] == "tool").expect("a result");
    let said = result["content"].to_string();
    assert!(said.contains("moved out of the conversation"), "{said}");
    assert!(said.contains("Read artifact://1 if"), "{said}");
    assert_eq!(ends(&outcome).len(), 1);
}
