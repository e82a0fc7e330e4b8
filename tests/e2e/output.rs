//! `--output-schema`: a run that ends with one value, checked.

use crate::agent::World;
use crate::server::{Reply, Server};
use serde_json::{Value, json};

/// A world with a schema that wants `{"n": a whole number}`.
fn wanting(replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let (world, server) = crate::world(replies);
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    world.write("schema.json", schema.to_string());
    (world, server)
}

#[test]
fn the_value_is_one_line_of_json() {
    let (world, server) = wanting([Reply::text("```json\n{ \"n\":\n 1 }\n```")]);
    world.pi().words("-p --output-schema schema.json go").run().success().stdout_is("{\"n\":1}\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    // The model knows what is wanted.
    let told = requests[0].messages()[0]["content"].to_string();
    assert!(told.contains("integer"), "{told}");
}

#[test]
fn a_wrong_answer_is_asked_for_again() {
    let call = json!({"path": "schema.json"});
    let (world, server) = wanting([
        Reply::tool("t1", "read", &call),
        Reply::text("one"),
        Reply::text(r#"{"n": "1"}"#),
        Reply::text(r#"{"n": 1}"#),
    ]);
    let outcome = world.pi().words("-p --output-schema schema.json go").run().success();
    outcome.stdout_is("{\"n\":1}\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests[2].last_text().contains("not one JSON value"));
    assert!(requests[3].last_text().contains("n: expected integer, got string"));
}

#[test]
fn after_two_more_wrong_answers_it_fails() {
    let (world, server) = wanting([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    world
        .pi()
        .words("-p --output-schema schema.json go")
        .run()
        .fails_with(1)
        .stdout_is("")
        .stderr_has("the answer is not one JSON value");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_failed_answer_is_not_asked_for_again() {
    let (world, server) = wanting([Reply::error(400, "no")]);
    world.pi().words("-p --output-schema schema.json go").run().fails_with(1).stdout_is("");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn programs_are_told_by_an_event() {
    for (answers, expected, code) in [
        (vec!["x", r#"{"n": 2}"#], json!({"type": "output", "value": {"n": 2}}), 0),
        (
            vec![r#"{"n": 0.5}"#; 3],
            json!({"type": "output", "error": "the answer does not satisfy the schema: n: expected integer, got number"}),
            1,
        ),
    ] {
        let (world, _server) = wanting(answers.iter().map(|text| Reply::text(text)));
        let outcome = world.pi().words("--mode json --output-schema schema.json go").run().fails_with(code);
        let events = outcome.events();
        let is_output = |event: &&Value| event["type"] == "output";
        let told: Vec<&Value> = events.iter().filter(is_output).collect();
        assert_eq!(told, [&expected]);
        let types = outcome.event_types();
        assert_eq!(types[types.len() - 2..], ["output", "agent_settled"]);
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_at_the_start() {
    let (world, server) = wanting([]);
    world.write("odd.json", r#"{"properties": {"a": {"format": "date"}}}"#);
    for (file, reason) in [
        ("odd.json", "properties.a: \"format\" is not supported"),
        ("none.json", "Cannot read the output schema none.json"),
    ] {
        world
            .pi()
            .args(["-p", "--output-schema", file, "go"])
            .run()
            .fails_with(1)
            .stdout_is("")
            .stderr_has(reason);
    }
    assert_eq!(server.requests().len(), 0);
}
