//! What of a session the model is told.

use super::*;
use crate::base::testing::TempDir;
use crate::session::log::SyncMode;
use std::path::Path;

const USAGE: &str = r#""usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;

/// A file of entries, each `id type fields`; each hangs on the one before it, or on the one named
/// as `id<parent`.
fn session(entries: &[&str]) -> String {
    let mut text = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#.to_owned();
    let mut previous = "null".to_owned();
    for entry in entries {
        let mut parts = entry.splitn(3, ' ');
        let (id, kind, fields) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or(""));
        let (id, parent) = match id.split_once('<') {
            Some((id, parent)) => (id, format!("\"{parent}\"")),
            None => (id, previous),
        };
        let (kind, fields) = match kind {
            "user" => {
                ("message", format!(r#""message":{{"role":"user","content":"{fields}","timestamp":1}}"#))
            }
            "system" => {
                ("message", format!(r#""message":{{"role":"system","content":"{fields}","timestamp":1}}"#))
            }
            "answer" => (
                "message",
                format!(
                    r#""message":{{"role":"assistant","content":[{{"type":"text","text":"{fields}"}}],"api":"a","provider":"p","model":"{fields}",{USAGE},"stopReason":"stop","timestamp":1}}"#
                ),
            ),
            "result" => (
                "message",
                format!(
                    r#""message":{{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{{"type":"text","text":"{fields}"}}],"isError":false,"timestamp":1}}"#
                ),
            ),
            "raw" => ("message", format!(r#""message":{fields}"#)),
            kind => (kind, fields.to_owned()),
        };
        let comma = if fields.is_empty() { "" } else { "," };
        text.push_str(&format!(
            "\n{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"1970-01-01T00:00:09.000Z\"{comma}{fields}}}"
        ));
        previous = format!("\"{id}\"");
    }
    text + "\n"
}

fn context(entries: &[&str]) -> SessionContext {
    let scratch = TempDir::create();
    let path = scratch.write("x.jsonl", session(entries));
    let mut log = Log::open(&path, Path::new("/"), SyncMode::Never).unwrap();
    let context = log.context();
    assert_eq!(log.take_notices(), []);
    context
}

/// Checks what is seen: `entry role text` of each message.
#[track_caller]
fn check(entries: &[&str], expected: &[&str]) {
    let seen: Vec<String> = context(entries)
        .messages
        .iter()
        .map(|seen| {
            let text = match &seen.message {
                AgentMessage::CompactionSummary(summary) => summary.summary.clone(),
                AgentMessage::BranchSummary(summary) => summary.summary.clone(),
                AgentMessage::System(system) => system.content.text(),
                AgentMessage::User(user) => user.content.text(),
                AgentMessage::Custom(custom) => custom.content.text(),
                AgentMessage::Assistant(answer) => crate::llm::message::text_of(&answer.content),
                AgentMessage::ToolResult(result) => crate::llm::message::text_of(&result.content),
                _ => String::new(),
            };
            format!("{} {} {text}", seen.entry, seen.message.role())
        })
        .collect();
    assert_eq!(seen, expected, "{entries:#?}");
}

fn compaction(id: &str, first_kept: &str) -> String {
    format!(
        r#"{id} compaction "summary":"sum {id}","firstKeptEntryId":"{first_kept}","tokensBefore":9,"systemMessage":{{"role":"system","content":"sys {id}","timestamp":1}}"#
    )
}

#[test]
fn without_a_compaction_all_messages_of_the_path_are_seen() {
    check(
        &[
            "1 session_info \"name\":\"n\"",
            "2 model_change \"provider\":\"p\",\"modelId\":\"m\"",
            "3 system s",
            "4 user a",
            "5 custom \"customType\":\"k\",\"data\":1",
            "6 answer b",
            "7 label \"targetId\":\"4\",\"label\":\"l\"",
            "8 hologram \"x\":1",
            "9<4 custom_message \"customType\":\"k\",\"content\":\"c\",\"display\":true",
            "10 branch_summary \"fromId\":\"8\",\"summary\":\"left\"",
            "11 branch_summary \"fromId\":\"8\",\"summary\":\"\"",
            &format!("12 usage \"kind\":\"k\",\"provider\":\"p\",\"model\":\"u\",{USAGE}"),
            "13 raw {\"role\":\"bashExecution\",\"command\":\"ls\",\"output\":\"\",\"cancelled\":false,\"truncated\":false,\"timestamp\":1}",
        ],
        &["3 system s", "4 user a", "9 custom c", "10 branchSummary left", "13 bashExecution "],
    );
    let seen = context(&["1 custom_message \"customType\":\"k\",\"display\":true"]);
    assert_eq!(seen.messages[0].message.timestamp(), 9000);
}

#[test]
fn the_latest_compaction_stands_for_what_it_cut_off() {
    let all = ["1 system s", "2 user a", "3 answer b", "4 user c", "5 system t", "6 answer d"];
    let with =
        |more: &[&str]| -> Vec<String> { all.iter().chain(more).map(|entry| (*entry).to_owned()).collect() };
    let check = |more: &[&str], expected: &[&str]| {
        let entries = with(more);
        check(&entries.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    };
    // Its checkpoint replaces the system messages that it kept.
    check(
        &[&compaction("7", "4"), "8 user e", "9 system u"],
        &[
            "7 system sys 7",
            "7 compactionSummary sum 7",
            "4 user c",
            "6 assistant d",
            "8 user e",
            "9 system u",
        ],
    );
    // Its own id keeps nothing, and neither does one that is not on the path.
    for first_kept in ["7", "nope", "12"] {
        check(
            &[&compaction("7", first_kept), "8 user e", "12<2 user x", "9<8 answer f"],
            &["7 system sys 7", "7 compactionSummary sum 7", "8 user e", "9 assistant f"],
        );
    }
    // An older one in the kept range says nothing.
    check(
        &[&compaction("7", "4"), "8 user e", &compaction("9", "6"), "10 user f"],
        &["9 system sys 9", "9 compactionSummary sum 9", "6 assistant d", "8 user e", "10 user f"],
    );
    // The reference before system messages.
    check(&["7 compaction \"summary\":\"old\",\"tokensBefore\":9"], &["7 compactionSummary old"]);
}

#[test]
fn the_latest_edit_on_the_path_wins() {
    let edit = |id: &str, target: &str, replacement: &str| {
        format!("{id} context_edit \"targetId\":\"{target}\",\"replacement\":{replacement}")
    };
    let text = r#"{"content":"new"}"#;
    let blocks = r#"{"content":[{"type":"text","text":"blocks"}]}"#;
    check(
        &[
            "1 user a",
            "2 answer b",
            "3 result c",
            "4 custom_message \"customType\":\"k\",\"content\":\"d\",\"display\":true",
            &edit("5", "1", "null"),
            &edit("6", "1", text),
            &edit("7", "2", text),
            &edit("8", "3", blocks),
            &edit("9", "4", "null"),
            &edit("10", "nope", "null"),
        ],
        &["1 user new", "2 assistant new", "3 toolResult blocks"],
    );
    // Before the edit, the original is back.
    check(
        &["1 user a", "2 answer b", &edit("3", "1", "null"), "4<2 user c"],
        &["1 user a", "2 assistant b", "4 user c"],
    );
    // An edit that was cut off does not count, one that was kept does.
    check(
        &["1 user a", &edit("2", "3", "null"), "3 user b", &edit("4", "1", "null"), &compaction("5", "3")],
        &["5 system sys 5", "5 compactionSummary sum 5", "3 user b"],
    );
}

#[test]
fn model_and_thinking_level_are_the_last_of_the_path() {
    let entries = [
        "1 model_change \"provider\":\"p\",\"modelId\":\"m\"",
        "2 thinking_level_change \"thinkingLevel\":\"high\"",
        "3 user a",
        "4 answer b",
        &compaction("5", "5"),
        "6<3 model_change \"provider\":\"q\",\"modelId\":\"n\"",
        "7<3 answer z",
        "8<1 user y",
    ];
    let rows: &[(usize, &str, Option<&str>)] = &[
        (1, "m", None),
        (2, "m", Some("high")),
        (4, "b", Some("high")),
        (5, "b", Some("high")),
        (6, "n", Some("high")),
        (7, "z", Some("high")),
        (8, "m", None),
    ];
    for (count, model, level) in rows {
        let seen = context(&entries[..*count]);
        assert_eq!(seen.models.last.unwrap().id, *model, "{count}");
        assert_eq!(seen.thinking_level.as_deref(), *level, "{count}");
    }
    assert_eq!(context(&[]), SessionContext::default());
}

#[test]
fn messages_without_content_are_completed() {
    for role in ["user", "assistant", "toolResult", "system", "custom"] {
        for content in ["", r#","content":null"#] {
            let raw = format!(
                r#"1 raw {{"role":"{role}","toolCallId":"c","customType":"k","timestamp":7,"later":1{content}}}"#
            );
            let seen = context(&[&raw]);
            let message = &seen.messages[0].message;
            assert!(!matches!(message, AgentMessage::Unknown(_)), "{raw}");
            assert_eq!((message.role(), message.timestamp()), (role, 7));
        }
    }
    let seen = context(&[r#"1 raw {"role":"assistant","stopReason":"new reason"}"#]);
    assert!(matches!(seen.messages[0].message, AgentMessage::Assistant(_)));
}
