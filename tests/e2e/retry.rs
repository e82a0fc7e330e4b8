//! Failed answers that are asked for again.

use crate::server::{Reply, Server, Step};
use crate::world;
use serde_json::{Value, json};

const JSON: [&str; 5] = ["--model", "mock/m1", "--mode", "json", "hi"];

fn eager(world: &crate::agent::World) {
    world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 1}}"#);
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_passing_failure_is_tried_again_and_left_out_of_the_conversation() {
    let (world, server) = world([Reply::error(503, "busy"), Reply::text("half").cut(), Reply::text("done")]);
    eager(&world);
    let events = world.pi().args(JSON).run().success().events();
    let starts = of_type(&events, "auto_retry_start");
    let attempts: Vec<&Value> = starts.iter().map(|event| &event["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(starts[0]["maxAttempts"], 3);
    let ends = of_type(&events, "auto_retry_end");
    assert_eq!(ends, [&json!({"type": "auto_retry_end", "success": true, "attempt": 2})]);
    let retried: Vec<&Value> =
        of_type(&events, "agent_end").iter().map(|event| &event["willRetry"]).collect();
    assert_eq!(retried, [true, true, false]);
    assert_eq!(of_type(&events, "agent_settled").len(), 1);
    let requests = server.requests();
    assert_eq!(requests[0].messages(), requests[2].messages());
    let stored = world.session();
    assert_eq!(stored.iter().filter(|entry| entry["type"] == "context_edit").count(), 2);
    assert_eq!(stored.iter().filter(|entry| entry["message"]["stopReason"] == "error").count(), 2);
    // A later run sees the conversation without the failures.
    drop(server);
    let server = Server::start([Reply::text("more")]);
    world.use_server(&server);
    world.pi().args(["-p", "-c", "again"]).run().success();
    let requests = server.requests();
    let roles: Vec<&Value> = requests[0].messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn attempts_come_to_an_end() {
    let (world, server) = world((0..4).map(|_| Reply::error(500, "broken inside")));
    eager(&world);
    let outcome = world.pi().args(JSON).run().fails_with(1);
    let events = outcome.events();
    let ends = of_type(&events, "auto_retry_end");
    assert_eq!((&ends[0]["success"], &ends[0]["attempt"]), (&json!(false), &json!(3)));
    assert!(ends[0]["finalError"].as_str().unwrap().contains("broken inside"));
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn what_stays_wrong_is_asked_once() {
    for reply in [
        Reply::error(400, "bad request"),
        Reply::error(401, "bad key"),
        Reply::error(429, "insufficient_quota"),
        Reply::error(400, "maximum context length is 100 tokens"),
    ] {
        let (world, server) = world([reply]);
        eager(&world);
        let events = world.pi().args(JSON).run().fails_with(1).events();
        assert!(of_type(&events, "auto_retry_start").is_empty());
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_wait_ends_with_a_signal() {
    let (world, _server) = world([Reply::error(503, "busy")]);
    world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 50000}}"#);
    let running = world.pi().args(JSON).spawn();
    running.wait_for("entry_appended");
    running.signal("INT");
    let outcome = running.wait().fails_with(130);
    assert!(outcome.stdout.contains("Retry cancelled"), "{}", outcome.stdout);
}

#[test]
fn a_server_that_asks_for_hours_is_not_waited_for() {
    let head = "HTTP/1.1 429 Slow\r\nretry-after: 7200\r\ncontent-length: 4\r\nconnection: close\r\n\r\nslow";
    let (world, server) = world([Reply::raw(head).then(Step::Stall)]);
    eager(&world);
    world.pi().args(JSON).run().fails_with(1);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_request_is_sent_again_without_a_word_where_the_settings_say_so() {
    let busy = || {
        Reply::raw(
            "HTTP/1.1 429 Slow\r\nretry-after-ms: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy",
        )
    };
    let (world, server) = world([busy(), busy(), Reply::text("done")]);
    world.write_config("settings.json", r#"{"retry": {"enabled": false, "provider": {"maxRetries": 2}}}"#);
    let events = world.pi().args(JSON).run().success().events();
    assert_eq!(of_type(&events, "auto_retry_start").len(), 0);
    assert_eq!(of_type(&events, "message_end").len(), 3);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].messages(), requests[2].messages());
}

#[test]
fn a_wait_inside_a_request_has_its_limit_too() {
    let late =
        "HTTP/1.1 429 Slow\r\nretry-after: 3600\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlater";
    let (world, server) = world([Reply::raw(late)]);
    let settings = r#"{"retry": {"enabled": false, "provider": {"maxRetries": 2}}}"#;
    world.write_config("settings.json", settings);
    let ask = world.pi().args(["--model", "mock/m1", "-p", "hi"]);
    let said = "Server requested 3600s retry delay (max: 60s). 429 later";
    ask.run().fails_with(1).stderr_has(said);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_wait_is_told_and_a_time_limit_says_what_was_waited_for() {
    let (world, _server) = world([Reply::error(503, "busy inside")]);
    world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 60000}}"#);
    let outcome = world.pi().words("--model mock/m1 --timeout 8 -p hi").run().fails_with(1);
    let outcome = outcome.stderr_has("busy inside (trying again in 60 s, 1 of 3)");
    outcome
        .stderr_has("the time limit of 8 s is reached (--timeout); the last attempt failed: 503 busy inside");
}

#[test]
fn a_passing_failure_is_tried_again_whatever_status_a_gateway_gives_it() {
    let in_stream = json!({"error": {"code": 400, "message": "Provider returned error"}});
    let (world, server) = world([
        Reply::error(400, "Provider returned error"),
        Reply::stream().then_bytes(format!("data: {in_stream}\n\n")).cut(),
        Reply::text("half").finish("error"),
        Reply::text("done"),
    ]);
    eager(&world);
    world.pi().args(["--model", "mock/m1", "-p", "hi"]).run().success().stdout_is("done\n");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_parameter_that_the_server_refuses_is_left_out_from_then_on() {
    let refusal = "litellm.UnsupportedParamsError: anthropic does not support parameters: \
        ['store', 'stream_options'], for model=m1. To drop these, set `litellm.drop_params=True`";
    let (world, server) = world([
        Reply::error(400, refusal),
        Reply::tool("c1", "ls", &json!({"path": "."})),
        Reply::text("done"),
    ]);
    let outcome = world.pi().args(["--model", "mock/m1", "-p", "hi"]).run().success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("done\n", ""));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].body["store"], false);
    // Nothing else changes, and each request extends the one before.
    let mut expected = requests[0].body.clone();
    for name in ["store", "stream_options"] {
        expected.as_object_mut().unwrap().shift_remove(name).expect(name);
    }
    assert_eq!(requests[1].body, expected);
    let (before, after) = (requests[1].messages(), requests[2].messages());
    assert_eq!(&after[..before.len()], before);
    expected["messages"] = requests[2].body["messages"].clone();
    assert_eq!(requests[2].body, expected);
    // Of the refused request nothing is in the session.
    assert_eq!(world.session().iter().filter(|entry| entry["message"]["stopReason"] == "error").count(), 0);
}

#[test]
fn a_choice_of_the_user_that_the_server_refuses_is_told_once() {
    for mode in ["text", "json"] {
        let refusal = r#"{"detail":[{"type":"extra_forbidden","loc":["body","temperature"],"msg":"x"}]}"#;
        let (world, server) =
            world([Reply::status(422, "application/json", refusal), Reply::text("one"), Reply::text("two")]);
        let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
            "api": "openai-completions",
            "models": [{"id": "m1", "samplingParams": {"temperature": 0.1}}]}}});
        world.write_config("models.json", &config.to_string());
        let outcome = world.pi().args(["--model", "mock/m1", "--mode", mode, "-p", "a", "b"]).run().success();
        let said = "127.0.0.1 does not take temperature: requests to m1 go without it";
        assert_eq!(outcome.stderr.matches(said).count(), 1, "{}", outcome.stderr);
        let requests = server.requests();
        assert_eq!(requests[0].body["temperature"], 0.1);
        assert!(requests[1..].iter().all(|request| request.body.get("temperature").is_none()));
        assert_eq!(requests.len(), 3);
    }
}

#[test]
fn a_refusal_that_cannot_be_helped_names_the_switches() {
    let (world, server) = world([Reply::error(400, "property 'tool_choice' is unsupported")]);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
        "api": "openai-completions",
        "models": [{"id": "m1", "samplingParams": {"tool_choice": "required"}}]}}});
    world.write_config("models.json", &config.to_string());
    let outcome = world.pi().args(["--model", "mock/m1", "-p", "hi"]).run().fails_with(1);
    outcome.stderr_has("tool_choice").stderr_has("`compat` in models.json");
    assert_eq!(server.requests().len(), 1);
}
