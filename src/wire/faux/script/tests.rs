//! Scripts of users: every field, and every way to get one wrong.

use super::super::tests::{Run, text};
use super::*;
use crate::base::testing::TempFile;

/// A run of the script in `file`.
fn run_of(file: &TempFile) -> Run {
    Run::new("script").with_env(VARIABLE, file.path())
}

#[test]
fn every_form_of_an_answer() {
    let file = TempFile::create(
        "script.json",
        r#"{"chunkSize": 3, "answers": [
            "plain",
            {"thinking": "hm", "text": "short"},
            {"content": [
                {"type": "text", "text": "a"},
                {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls"}},
                {"type": "toolCall", "name": "read", "arguments": "{\"path\": \"x"},
                {"type": "toolCall", "name": "ls"}
            ]},
            {"text": "cut", "stopReason": "length", "usage": {"input": 7, "output": 2, "cacheRead": 5, "reasoning": 1}},
            {}
        ]}"#,
    );
    let run = run_of(&file);
    let plain = run.play();
    assert_eq!(text(&plain.message), "plain");
    assert_eq!(plain.deltas, ["pla", "in"]);
    assert_eq!(plain.message.stop_reason, StopReason::Stop);

    let short = run.play();
    let kinds: Vec<_> = short
        .message
        .content
        .iter()
        .map(|block| serde_json::to_value(block).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["thinking", "text"]);

    let calls = run.play();
    assert_eq!(calls.message.stop_reason, StopReason::ToolUse);
    let calls: Vec<_> = calls.message.tool_calls().cloned().collect();
    assert_eq!((calls[0].id.as_str(), &calls[0].arguments["command"]), ("1", &Value::from("ls")));
    assert!(!calls[1].id.is_empty() && calls[1].id != calls[2].id);
    assert!(calls[2].arguments.is_empty());

    let cut = run.play();
    assert_eq!(cut.message.stop_reason, StopReason::Length);
    let usage = &cut.message.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.reasoning, usage.total_tokens),
        (7, 2, 5, Some(1), 14)
    );

    let empty = run.play();
    assert_eq!((empty.message.content.len(), empty.message.stop_reason), (0, StopReason::Stop));

    let over = run.play();
    let error = over.error.unwrap();
    assert!(error.message.contains("used up") && error.message.contains("5 answers"), "{error}");
}

#[test]
fn errors_end_an_answer_and_the_next_request_gets_the_next_one() {
    let file = TempFile::create(
        "script.json",
        r#"["before",
            {"text": "half", "error": {"message": "overloaded", "kind": "provider", "status": 529, "retryAfterMs": 50}},
            {"error": "plain failure"},
            "after"]"#,
    );
    let run = run_of(&file);
    run.play();
    let failed = run.play();
    let error = failed.error.unwrap();
    assert_eq!((error.kind, error.status, error.retry_after_ms), (ErrorKind::Provider, Some(529), Some(50)));
    assert_eq!(text(&failed.message), "half");
    assert_eq!(failed.message.stop_reason, StopReason::Error);
    let bare = run.play();
    assert_eq!((bare.error.unwrap().message.as_str(), bare.message.content.len()), ("plain failure", 0));
    assert_eq!(text(&run.play().message), "after");
}

#[test]
fn a_conversation_goes_on_where_it_was_and_others_begin_at_the_start() {
    let file = TempFile::create("script.json", r#"["one", "two", "three"]"#);
    let first = run_of(&file).with_session("first");
    assert_eq!(text(&first.play().message), "one");
    // As after a start with the stored conversation.
    let again = run_of(&file).with_session("again").said("q").answered("one").answered("two").said("more");
    assert_eq!(text(&again.play().message), "three");
    assert_eq!(text(&first.play().message), "two");
    let other = run_of(&file).with_session("other");
    assert_eq!(text(&other.play().message), "one");
}

#[test]
fn an_expectation_is_held_against_the_last_user_message() {
    let file = TempFile::create(
        "script.json",
        r#"[{"expect": "apples", "text": "yes"}, {"expect": "apples", "text": "yes"}]"#,
    );
    let met = run_of(&file).with_session("met").said("pears").said("some apples");
    assert_eq!(text(&met.play().message), "yes");
    let missed = run_of(&file).with_session("missed").said("apples").said("pears");
    let error = missed.play().error.unwrap();
    assert!(error.message.contains("\"apples\"") && error.message.contains("answer 1"), "{error}");
}

#[test]
fn a_broken_script_says_where() {
    for (script, pieces) in [
        ("", ["EOF", "line 1"]),
        ("[\n\"a\" \"b\"]", ["expected", "line 2 column 5"]),
        ("[\n{\"txet\": \"a\"}]", ["`txet`", "line 2 column 7"]),
        ("[\n\n5]", ["an answer", "line 3"]),
        ("{\"answers\": [],\n \"speed\": 1}", ["`speed`", "line 2"]),
        ("{}", ["`answers`", "line 1"]),
        ("\"a\"", ["a list of answers", "line 1"]),
        ("[{\"content\": [\n{\"type\": \"image\"}]}]", ["`image`", "line 2"]),
        ("[{\"content\": [\n{\"type\": \"text\"}]}]", ["`text`", "line 2"]),
        ("[\n{\"stopReason\": \"bored\"}]", ["`bored`", "line 2"]),
        ("[\n{\"error\": {\"message\": \"m\", \"kind\": \"odd\"}}]", ["`odd`", "line 2"]),
        ("[\n{\"usage\": {\"input\": -1}}]", ["-1", "line 2"]),
        ("[\n{\"delayMs\": \"1\"}]", ["string", "line 2"]),
    ] {
        let file = TempFile::create("script.json", script);
        let error = run_of(&file).play().error.unwrap();
        for piece in pieces.into_iter().chain([file.path(), "broken"]) {
            assert!(error.message.contains(piece), "{script}: {piece} is not in: {error}");
        }
    }
}

#[test]
fn a_script_that_is_not_there_is_named() {
    let unset = Run::new("script").with_env(VARIABLE, "").play();
    assert!(unset.error.unwrap().message.contains(VARIABLE));
    let missing = Run::new("script").with_env(VARIABLE, "/nowhere/x.json").play();
    assert!(missing.error.unwrap().message.contains("/nowhere/x.json"));
}

#[test]
fn delays_end_at_once_on_cancel() {
    for script in [
        r#"[{"text": "never", "delayMs": 100000000}]"#,
        r#"[{"text": "never", "chunkDelayMs": 100000000}]"#,
        r#"{"answers": ["never"], "tokensPerSecond": 0.000001}"#,
    ] {
        let file = TempFile::create("script.json", script);
        let run = run_of(&file);
        let cancel = run.cancel.clone();
        let played = std::thread::scope(|scope| {
            scope.spawn(move || cancel.cancel());
            run.play()
        });
        assert_eq!(played.message.stop_reason, StopReason::Aborted);
        assert_eq!(text(&played.message), "");
    }
}

#[test]
fn a_rate_changes_no_chunk() {
    let script = format!(r#"[{{"text": "{}", "tokensPerSecond": 10000, "chunkSize": 1}}]"#, "x".repeat(40));
    let file = TempFile::create("script.json", &script);
    assert_eq!(run_of(&file).play().deltas.len(), 40);
}

#[test]
fn the_example_of_the_manual_plays() {
    let manual = include_str!("../../../docs/faux.md");
    let example = manual.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(parse(example).unwrap().answers.len() > 2);
}

proptest::proptest! {
    #[test]
    fn no_script_panics(script in "[\\[\\]{}\",:a-z0-9 ]*") {
        let _ = parse(&script);
    }
}
