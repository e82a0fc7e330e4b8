//! What an editor is told while a prompt is answered.

use super::{Answer, Editor};
use crate::agent::World;
use crate::server::{Reply, Server, Step};
use serde_json::{Value, json};

/// An editor that offers `able`, at a pi that tries again at once.
fn eager(able: Value, replies: impl IntoIterator<Item = Reply>) -> (World, Server, Editor, String) {
    let (world, server) = crate::world(replies);
    world.write_config("settings.json", r#"{"retry": {"baseDelayMs": 1}}"#);
    let mut editor = Editor::start(&world, "");
    editor.initialize(able);
    let session = editor.new_session(&world);
    (world, server, editor, session)
}

fn of_kind<'a>(answer: &'a Answer, kind: &str) -> Vec<&'a Value> {
    answer.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

#[test]
fn a_broken_attempt_is_told_from_the_next_one() {
    let broken = || Reply::stream().then_thinking("Hm.").then_text("Half an ans").cut();
    for able in [json!({}), json!({"session": {"notices": {}}})] {
        let has_notices = able.pointer("/session/notices").is_some();
        let (_world, _server, mut editor, session) = eager(able, [broken(), Reply::text("Whole.")]);
        let answer = editor.prompt(&session, "x");
        let chunks: Vec<(&str, &Value)> = of_kind(&answer, "agent_message_chunk")
            .into_iter()
            .map(|chunk| (chunk["content"]["text"].as_str().unwrap(), &chunk["messageId"]))
            .collect();
        let [(half, first), (gap, same), (whole, second)] = &chunks[..] else {
            panic!("{chunks:?}");
        };
        assert_eq!((*half, *gap, *whole), ("Half an ans", "\n\n", "Whole."));
        assert!(first == same && first != second && first.is_string() && second.is_string(), "{chunks:?}");
        let thoughts = of_kind(&answer, "agent_thought_chunk");
        assert_ne!(thoughts[0]["messageId"], **first);
        let again = "The answer failed. Attempt 1 of 3 follows in 0.0 s.";
        if has_notices {
            let notice = of_kind(&answer, "notice")[0];
            assert_eq!((&notice["severity"], &notice["title"]), (&json!("warning"), &json!(again)));
            assert!(notice["description"].is_string(), "{notice}");
            assert_eq!(thoughts.len(), 1);
        } else {
            let text = thoughts[1]["content"]["text"].as_str().unwrap();
            assert!(text.starts_with(again), "{text}");
            assert_ne!(thoughts[1]["messageId"], thoughts[0]["messageId"]);
            assert!(of_kind(&answer, "notice").is_empty());
        }
        assert_eq!(answer.stopped_by(), "end_turn");
    }
}

#[test]
fn a_compaction_is_told() {
    for (able, kinds) in [
        (json!({"session": {"compaction": {}, "notices": {}}}), ["compaction_update", "compaction_update"]),
        (json!({"session": {"notices": {}}}), ["notice", ""]),
        (json!({}), ["agent_thought_chunk", ""]),
    ] {
        let (world, server) = crate::world([
            Reply::text(&"a".repeat(800)),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
        ]);
        let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
            "api": "openai-completions", "models": [{"id": "m1", "contextWindow": 10_000, "maxTokens": 4000}]}}});
        world.write_config("models.json", &models.to_string());
        world.write_config(
            "settings.json",
            r#"{"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100}}"#,
        );
        let mut editor = Editor::start(&world, "");
        editor.initialize(able);
        let session = editor.new_session(&world);
        editor.prompt(&session, "one").result();
        let answer = editor.prompt(&session, "two");
        let mut told = answer.conversation();
        told.retain(|update| update["sessionUpdate"] != "agent_message_chunk");
        let shown: Vec<&Value> = told.iter().map(|update| &update["sessionUpdate"]).collect();
        assert_eq!(shown, kinds.into_iter().filter(|kind| !kind.is_empty()).collect::<Vec<_>>());
        if let [start, end] = &told[..] {
            assert_eq!((&start["status"], &end["status"]), (&json!("in_progress"), &json!("completed")));
            assert_eq!(start["compactionId"], end["compactionId"]);
            assert!(end["summary"][0]["text"].as_str().unwrap().contains("THE SUMMARY"), "{end}");
        }
        assert_eq!(answer.stopped_by(), "end_turn");
    }
}

#[test]
fn a_prompt_that_the_editor_takes_back_is_cancelled() {
    let (_world, _server, mut editor, session) =
        eager(json!({}), [Reply::text("half").then(Step::Stall), Reply::text("whole")]);
    let first = editor.send_prompt(&session, "one");
    editor.until_said("half");
    // One that has its answer, one that was never sent, and none at all.
    for id in [json!(1), json!("x"), Value::Null] {
        editor.notify("$/cancel_request", &json!({"requestId": id}));
    }
    editor.notify("$/cancel_request", &json!({"requestId": first}));
    assert_eq!(editor.answer(first).stopped_by(), "cancelled");
    let second = editor.prompt(&session, "two");
    assert_eq!(second.said("agent_message_chunk"), "whole");
    assert_eq!(second.stopped_by(), "end_turn");
}

#[test]
fn output_under_way_is_not_told_again_and_again() {
    let lines = "for i in $(seq 1 40); do seq 1 200; sleep 0.02; done";
    let (_world, _server, mut editor, session) =
        eager(json!({}), [Reply::tool("c1", "bash", &json!({"command": lines})), Reply::text("done")]);
    let answer = editor.prompt(&session, "x");
    let updates = of_kind(&answer, "tool_call_update");
    let (last, under_way) = updates.split_last().unwrap();
    let text =
        |update: &Value| update["content"][0]["content"]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(last).len() > 5000, "the result is whole");
    assert!(under_way.iter().any(|update| text(update).starts_with("…\n")), "{} updates", under_way.len());
    assert!(under_way.iter().all(|update| text(update).len() < 3000));
}

#[test]
fn a_result_is_told_once() {
    let read = json!({"path": "a.txt", "offset": 99_999_999_999u64});
    let whole = json!({"path": "a.txt"});
    let (world, _server, mut editor, session) = eager(
        json!({}),
        [
            Reply::stream().then_tool(0, "c1", "read", &whole).then_tool(1, "c2", "read", &read),
            Reply::text("x"),
        ],
    );
    world.write("a.txt", "a line of text\n".repeat(10_000));
    let answer = editor.prompt(&session, "x");
    let updates = of_kind(&answer, "tool_call_update");
    let of =
        |call: &str| -> Vec<&&Value> { updates.iter().filter(|told| told["toolCallId"] == call).collect() };
    let last = of("c1").pop().unwrap().to_string();
    assert!(last.contains("\"truncation\"") && last.len() < 70_000, "{} bytes", last.len());
    // Lines have 32 bits.
    assert_eq!(of("c2")[0]["locations"][0].get("line"), None);
}

#[test]
fn servers_that_are_not_used_are_named_in_the_session() {
    let (world, _server) = crate::world([]);
    let server = json!({"name": "tickets", "command": "/bin/true", "args": [], "env": []});
    let params = json!({"cwd": world.work(), "mcpServers": [server]});
    for (able, kind, place) in [
        (json!({}), "agent_thought_chunk", "/content/text"),
        (json!({"session": {"notices": {}}}), "notice", "/title"),
    ] {
        let mut editor = Editor::start(&world, "--no-mcp");
        editor.initialize(able);
        let id = editor.request("session/new", &params).result()["sessionId"].clone();
        let told = editor.next();
        assert_eq!(told["params"]["sessionId"], id);
        let update = &told["params"]["update"];
        assert_eq!(update["sessionUpdate"], kind);
        let text = update.pointer(place).and_then(Value::as_str).unwrap();
        assert!(text.starts_with("MCP servers of the editor are not used: tickets"), "{text}");
    }
}

#[test]
fn the_list_of_what_is_left_is_a_plan() {
    let todo = |arguments: Value| Reply::tool("t", "todo", &arguments);
    let (world, _server) = crate::world([
        todo(json!({"op": "set", "items": ["one", "two", "three"]})),
        todo(json!({"op": "drop", "item": "two"})),
        Reply::text("done").finish("length"),
    ]);
    let mut editor = Editor::start(&world, "--tools +todo");
    editor.initialize(json!({}));
    let session = editor.new_session(&world);
    let answer = editor.prompt(&session, "x");
    let plans = of_kind(&answer, "plan");
    let entry = |text: &str, status: &str| json!({"content": text, "priority": "medium", "status": status});
    assert_eq!(plans.len(), 2);
    assert_eq!(
        plans[0]["entries"],
        json!([entry("one", "in_progress"), entry("two", "pending"), entry("three", "pending")])
    );
    assert_eq!(plans[1]["entries"], json!([entry("one", "in_progress"), entry("three", "pending")]));
}
