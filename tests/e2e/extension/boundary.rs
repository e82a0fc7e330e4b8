//! The ends of turns and runs, where handlers append entries and ask for one more request.

use super::{events, install};
use crate::agent::{Outcome, World};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};

const REMINDER: &str =
    r#"{"type":"custom_message","customType":"review","content":"Review it.","display":false}"#;

/// Runs a prompt with an extension that answers the first `boundary` with `answer`. `$answered` is the id of the
/// turn's answer.
fn run(boundary: &str, answer: &str) -> (World, Server, Outcome) {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    let arms = format!(
        r#"    *'"type":"{boundary}"'*)
      answered=$(printf '%s' "$line" | sed -n 's/.*"messageEntryId":"\([^"]*\)".*/\1/p')
      if [ -n "$done" ]; then ok null; else done=1; ok "{}"; fi ;;
"#,
        answer.replace('"', "\\\"")
    );
    let fields = json!({"events": ["turn_end", "agent_before_settle", "agent_end", "agent_settled"]});
    install(&world, "x", &fields, &arms);
    let ran = world.pi().words("--model mock/m1 --json hi").run();
    (world, server, ran)
}

/// The entries of the only session after the first answer: their types, and what is told of them.
fn stored(world: &World) -> Vec<String> {
    let entries = world.session().into_iter();
    let entries = entries.skip_while(|entry| entry["message"]["role"] != "assistant").skip(1);
    entries
        .map(|entry| entry["message"]["role"].as_str().or(entry["type"].as_str()).unwrap().to_owned())
        .collect()
}

#[test]
fn handlers_append_entries_and_ask_for_a_request() {
    let reminder = format!("[{REMINDER}]");
    let edit = |replacement: &str| {
        format!(r#"{{"type":"context_edit","targetId":"$answered","replacement":{replacement}}}"#)
    };
    let entries = |entries: &str, rest: &str| format!(r#"{{"entries":{entries}{rest}}}"#);
    let go = r#","continue":true"#;
    let compaction = r#"[{"type":"compaction","summary":"SUM","firstKeptEntryId":null}]"#;
    // Where it is answered, the answer, what is stored, how many requests, and a part of the last.
    let rows: &[(&str, String, &[&str], usize, &str)] = &[
        ("turn_end", entries(&reminder, go), &["custom_message", "assistant"], 2, "Review it."),
        ("agent_before_settle", entries(&reminder, go), &["custom_message", "assistant"], 2, "Review it."),
        ("turn_end", entries(&reminder, ""), &["custom_message"], 1, ""),
        (
            "agent_before_settle",
            entries(r#"[{"type":"custom","customType":"x","data":1}]"#, ""),
            &["custom"],
            1,
            "",
        ),
        (
            "turn_end",
            entries(&format!("[{},{REMINDER}]", edit("null")), go),
            &["context_edit", "custom_message", "assistant"],
            2,
            "Review it.",
        ),
        ("turn_end", entries(&format!("[{}]", edit(r#"{"content":"other"}"#)), ""), &["context_edit"], 1, ""),
        ("agent_before_settle", entries(compaction, go), &["compaction", "assistant"], 2, "SUM"),
    ];
    for (boundary, answer, kinds, requests, part) in rows {
        let (world, server, ran) = run(boundary, answer);
        let ran = ran.success();
        assert_eq!(ran.stderr, "", "{boundary} {answer}");
        assert_eq!(stored(&world), *kinds, "{boundary} {answer}");
        let made = server.requests();
        assert_eq!(made.len(), *requests, "{boundary} {answer}");
        let last = made[requests - 1].body["messages"].to_string();
        assert!(last.contains(part), "{boundary} {answer}: {last}");
        assert!(!(answer.contains("null},") && last.contains("\"one\"")), "{last}");
        // Each appended entry is an event, before the end of the turn.
        let told: Vec<String> = ran.events().iter().map(|event| event["type"].to_string()).collect();
        let appended = told.iter().filter(|kind| *kind == "\"entry_appended\"").count();
        assert_eq!(appended, kinds.iter().filter(|kind| **kind != "assistant").count(), "{told:?}");
        let settles = told.iter().filter(|kind| *kind == "\"agent_settled\"").count();
        assert_eq!(settles, 1, "{told:?}");
    }
}

#[test]
fn a_wrong_proposal_is_reported_and_nothing_is_appended() {
    let with = |entry: &str| format!(r#"{{"entries":[{REMINDER},{entry}],"continue":true}}"#);
    let rows = [
        (with(r#"{"type":"context_edit","targetId":"nope","replacement":null}"#), "There is no entry nope"),
        (with(r#"{"type":"context_edit","targetId":"$answered"}"#), "A context_edit needs"),
        (
            with(r#"{"type":"message","message":{"role":"user","content":"x"}}"#),
            "not an entry that can be appended",
        ),
        (with("5"), "not an entry that can be appended"),
        (r#"{"entries":"x"}"#.to_owned(), "\"entries\" must be a list"),
        (r#"{"continue":true}"#.to_owned(), "there is nothing that the model could answer"),
    ];
    for (answer, told) in rows {
        let (world, server, ran) = run("turn_end", &answer);
        let ran = ran.success();
        assert!(ran.stderr.contains(told), "{answer}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("Extension error").count(), 1, "{answer}: {}", ran.stderr);
        assert_eq!(stored(&world), [""; 0], "{answer}");
        assert_eq!(server.requests().len(), 1, "{answer}");
    }
}

#[test]
fn the_end_of_a_turn_names_what_was_stored() {
    let (world, _server) = world([Reply::tool("t1", "read", &json!({"path": "x"})), Reply::text("done")]);
    world.write("x", "content");
    let arms = r#"    *'"type":"turn_end"'*|*'"type":"agent_before_settle"'*)
      call p session.preview '{"event":"turn_end","entries":[{"type":"custom_message","customType":"c","content":"more"}]}'; ok null ;;
"#;
    install(&world, "x", &json!({"events": ["turn_end", "agent_before_settle"]}), arms);
    world.pi().words("--model mock/m1 -p hi").run().success();
    let entries = world.session();
    let id = |role: &str| {
        entries
            .iter()
            .find(|entry| entry["message"]["role"] == role)
            .map(|entry| entry["id"].clone())
            .unwrap()
    };
    let events = events(&world);
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["turn_end", "turn_end", "agent_before_settle"]);
    assert_eq!(events[0]["messageEntryId"], id("assistant"));
    assert_eq!(events[0]["toolResultEntryIds"], json!([id("toolResult")]));
    assert_eq!((&events[0]["turnIndex"], &events[1]["turnIndex"]), (&json!(0), &json!(1)));
    assert_eq!(events[1]["toolResultEntryIds"], json!([]));
    for event in &events {
        assert_eq!(event["outcome"], "completed");
        assert_eq!((&event["entries"], &event["continue"]), (&json!([]), &json!(false)));
    }
    let mut previews = super::log(&world).into_iter().filter(|message| message["id"] == "p");
    let last = previews.next_back().unwrap()["result"].take();
    assert_eq!(last["canContinue"], true);
    let messages = last["llmMessages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"][0]["text"], "more");
    assert_eq!(
        last["contextEntries"].as_array().unwrap().last().unwrap()["sourceEntry"]["type"],
        "custom_message"
    );
    // It was a look, and nothing more.
    assert!(entries.iter().all(|entry| entry["type"] != "custom_message"));
}

#[test]
fn a_message_without_a_turn_waits_for_the_end_of_the_turn() {
    for (event, at) in [("agent_start", 0), ("tool_call", 0), ("agent_end", 1)] {
        let (world, server) = world([Reply::tool("t1", "read", &json!({"path": "x"})), Reply::text("done")]);
        let arms = format!(
            r#"    *'"type":"{event}"'*) call m session.sendMessage '{{"message":{{"customType":"c","content":"aside"}},"triggerTurn":false}}'; ok null ;;
"#
        );
        install(&world, "x", &json!({"events": [event]}), &arms);
        let ran = world.pi().words("--model mock/m1 --json hi").run().success();
        let made = server.requests();
        assert_eq!(made.len(), 2, "{event}");
        let asides = |at: usize| made[at].body["messages"].to_string().matches("aside").count();
        assert_eq!((asides(0), asides(1)), (0, 1 - at), "{event}");
        let told = ran.events();
        let told = told.iter().filter(|event| event["message"]["customType"] == "c");
        let told: Vec<&Value> = told.map(|event| &event["type"]).collect();
        assert_eq!(told, ["message_start", "message_end"], "{event}");
        let kinds = stored(&world);
        let expected: &[&str] =
            [&["toolResult", "custom_message", "assistant"], &["toolResult", "assistant", "custom_message"]]
                [at];
        assert_eq!(kinds, expected, "{event}");
    }
}

#[test]
fn a_message_that_is_appended_stands_on_the_screen() {
    let (world, _server) = world([Reply::text("one"), Reply::text("two")]);
    let entry =
        json!({"type": "custom_message", "customType": "c", "content": "look again", "display": true});
    let answer = json!({"entries": [entry], "continue": true});
    let arms = format!(
        r#"    *'"type":"agent_before_settle"'*) if [ -n "$done" ]; then ok null; else done=1; ok '{answer}'; fi ;;
"#
    );
    install(&world, "x", &json!({"events": ["agent_before_settle"]}), &arms);
    let screen = crate::screen::Screen::start(world.pi().words("--model mock/m1").args(["hi"]));
    screen.wait_until("both answers and the message", |text| {
        ["one", "look again", "two"].iter().all(|part| text.contains(part))
    });
    screen.quit();
}
