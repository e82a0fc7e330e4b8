//! Conversations of every kind, one line a turn.

use super::*;
use serde_json::json;

fn model() -> Model {
    Model { id: "m".into(), api: "a".into(), provider: "p".into(), ..Model::default() }
}

fn answer(model: &str, content: Value) -> Value {
    json!({"role":"assistant","content":content,"api":"a","provider":"p","model":model,
        "stopReason":"stop","timestamp":1})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type":"toolCall","id":id,"name":name,"arguments":{}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role":"toolResult","toolCallId":id,"toolName":"x","isError":false,
        "content":[{"type":"text","text":text}]})
}

fn user(text: &str) -> Value {
    json!({"role":"user","content":text})
}

/// One line a turn. Checks on the way that every call has one result, right after it.
fn shown(messages: &Value, model: &Model, call_id: &dyn Fn(&str) -> String) -> Vec<String> {
    let context = Context { messages: serde_json::from_value(messages.clone()).unwrap() };
    let all: Vec<&Message> = context.messages.iter().collect();
    let turns: Vec<_> = transform(&context, &all, model, call_id).collect();
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for turn in &turns {
        let answers_calls = matches!(turn, Turn::Results(_));
        assert_eq!(answers_calls, !open.is_empty(), "results follow calls");
        lines.push(match turn {
            Turn::System(system) => format!("system {}", system.prompt()),
            Turn::User(user) => format!("user {}", text_of(&user.parts)),
            Turn::Assistant(answer) => {
                let said = answer.blocks.iter().map(|block| match block {
                    AssistantBlock::Text { text, signature } => format!("text {text} {signature:?}"),
                    AssistantBlock::Thinking { text, redacted, .. } => format!("think {text} {redacted}"),
                    AssistantBlock::Call(call) => {
                        assert!(!call.id.is_empty() && !call.name.is_empty());
                        assert!(seen.insert(call.id.to_string()), "ids are unique");
                        open.push(call.id.to_string());
                        format!("call {} {}", call.id, call.name)
                    }
                });
                said.collect::<Vec<_>>().join("; ")
            }
            Turn::Results(results) => {
                let mut ids: Vec<String> = std::mem::take(&mut open);
                let shown = results.iter().map(|result| {
                    ids.retain(|id| *id != result.call_id);
                    let text = text_of(&result.parts);
                    format!("result {} {text} {}", result.call_id, result.is_error)
                });
                let shown = shown.collect::<Vec<_>>().join("; ");
                assert!(ids.is_empty(), "no result for {ids:?}");
                shown
            }
        });
    }
    assert!(open.is_empty());
    lines
}

#[track_caller]
fn check(messages: Value, expected: &[&str]) {
    let same = |id: &str| id.to_owned();
    assert_eq!(shown(&messages, &model(), &same), expected);
    // What came before is not changed by what comes after.
    let all = messages.as_array().unwrap();
    let mut earlier: Vec<String> = Vec::new();
    for end in 0..=all.len() {
        let lines = shown(&Value::from(&all[..end]), &model(), &same);
        let open = |line: &&String| line.contains(NO_RESULT);
        let settled = earlier.iter().take_while(|line| !open(line));
        assert!(settled.zip(&lines).all(|(a, b)| a == b));
        earlier = lines;
    }
}

#[test]
fn calls_without_results_are_answered_and_results_without_calls_are_dropped() {
    check(
        json!([
            user("a"),
            answer("m", json!([call("1", "ls"), call("2", "ls")])),
            result("2", "x"),
            user("b")
        ]),
        &["user a", "call 1 ls; call 2 ls", "result 2 x false; result 1 No result provided true", "user b"],
    );
    check(
        json!([user("a"), answer("m", json!([call("1", "ls")]))]),
        &["user a", "call 1 ls", "result 1 No result provided true"],
    );
    check(json!([result("9", "x"), user("a")]), &["user a"]);
    check(
        json!([
            answer("m", json!([call("1", "ls")])),
            result("1", "x"),
            result("1", "again"),
            user("b"),
            result("1", "late")
        ]),
        &["call 1 ls", "result 1 x false", "user b"],
    );
}

#[test]
fn failed_answers_go_with_their_results() {
    let mut failed = answer("m", json!([call("1", "ls")]));
    failed["stopReason"] = json!("aborted");
    check(json!([user("a"), failed, result("1", "x"), user("b")]), &["user a", "user b"]);
}

#[test]
fn empty_and_repeated_ids_and_names_are_made_good() {
    check(
        json!([
            answer("m", json!([call("", ""), call("0", "ls"), call("0", "ls")])),
            result("", "r1"),
            result("0", "r2"),
            result("0", "r3"),
            answer("m", json!([call("0", "bad name!")])),
            result("0", "r4")
        ]),
        &[
            "call call_1 unknown; call 0 ls; call call3_0 ls",
            "result call_1 r1 false; result 0 r2 false; result call3_0 r3 false",
            "call call4_0 bad_name_",
            "result call4_0 r4 false",
        ],
    );
}

#[test]
fn a_declared_name_is_sent_as_it_is() {
    check(
        json!([{"role":"system","content":"s","toolsAdded":[{"name":"a.b"}]}, answer("m", json!([call("1", "a.b"), call("2", "a.c")])), result("1", ""), result("2", "")]),
        &["system s", "call 1 a.b; call 2 a_c", "result 1  false; result 2  false"],
    );
}

#[test]
fn a_system_message_between_calls_and_results_waits() {
    check(
        json!([answer("m", json!([call("1", "ls")])), {"role":"system","content":"s"}, result("1", "x")]),
        &["call 1 ls", "result 1 x false", "system s"],
    );
}

#[test]
fn thinking_is_kept_for_its_own_model_alone() {
    let blocks = json!([
        {"type":"thinking","thinking":"t","thinkingSignature":"s"},
        {"type":"thinking","thinking":"","thinkingSignature":"s"},
        {"type":"thinking","thinking":"[r]","thinkingSignature":"s","redacted":true},
        {"type":"thinking","thinking":" "},
        {"type":"text","text":"x","textSignature":"y"},
        {"type":"hologram"}
    ]);
    check(
        json!([answer("m", blocks.clone())]),
        &["think t false; think  false; think [r] true; text x Some(\"y\")"],
    );
    check(json!([answer("other", blocks)]), &["text x None"]);
}

#[test]
fn ids_of_other_models_are_normalised_with_their_results() {
    let short = |id: &str| id.chars().take(5).collect::<String>();
    let messages = json!([
        answer("other", json!([call("abcdefg", "ls"), call("abcdexx", "ls")])),
        result("abcdexx", "2"),
        result("abcdefg", "1"),
        answer("m", json!([call("own-and-long", "ls")])),
        result("own-and-long", "3"),
    ]);
    assert_eq!(
        shown(&messages, &model(), &short),
        [
            "call abcde ls; call call2 ls",
            "result call2 2 false; result abcde 1 false",
            "call own-and-long ls",
            "result own-and-long 3 false",
        ]
    );
}

#[test]
fn images_become_one_note_where_the_model_sees_none() {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let messages = json!([
        {"role":"user","content":[{"type":"text","text":"a"}, image, image, {"type":"text","text":"b"}, image]},
        answer("m", json!([call("1", "ls")])),
        {"role":"toolResult","toolCallId":"1","toolName":"ls","content":[image],"isError":false}
    ]);
    let same = |id: &str| id.to_owned();
    let user = format!("user a\n{NO_IMAGE}\nb\n{NO_IMAGE}");
    assert_eq!(
        shown(&messages, &model(), &same),
        [user, "call 1 ls".into(), format!("result 1 {NO_TOOL_IMAGE} false")]
    );
    let seeing = Model { input: vec!["image".into()], ..model() };
    assert_eq!(shown(&messages, &seeing, &same)[0], "user a\nb");
}
