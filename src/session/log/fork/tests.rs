//! What a fork holds, and what it leaves behind when it fails.

use super::*;
use crate::base::failpoint;
use crate::base::testing::TempDir;
use crate::session::testing::{answer, user};
use serde_json::json;

const HEADER: &str = r#"{"type":"session","version":3,"id":"old","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/work","extra":1}"#;

/// The line of an entry: its kind, id, parent ("" for none) and other fields.
fn line(kind: &str, id: &str, parent: &str, fields: &str) -> String {
    let parent = Some(parent).filter(|parent| !parent.is_empty());
    let parent = parent.map_or("null".into(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2024-12-03T14:00:01.000Z",{fields}}}"#
    )
}

fn said(role: &str, id: &str, parent: &str, text: &str) -> String {
    let rest = match role {
        "assistant" => {
            format!(r#""content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop""#)
        }
        _ => format!(r#""content":"{text}""#),
    };
    let fields = format!(r#""message":{{"role":"{role}",{rest},"timestamp":1,"odd":1e0}}"#);
    line("message", id, parent, &fields)
}

/// A tree with labels on its way, a second branch, a compaction that keeps from a label on.
fn tree() -> Vec<String> {
    vec![
        HEADER.to_owned(),
        said("user", "u1", "", "first"),
        line("label", "l1", "u1", r#""targetId":"u1","label":"start""#),
        said("assistant", "a1", "l1", "one"),
        line("label", "l2", "a1", r#""targetId":"u9","label":"elsewhere""#),
        line("label", "l3", "l2", r#""targetId":"a1","label":"gone""#),
        line("label", "l4", "l3", r#""targetId":"a1""#),
        line("compaction", "c1", "l4", r#""summary":"s","firstKeptEntryId":"l1","tokensBefore":5"#),
        said("user", "u2", "c1", "second"),
        said("assistant", "a2", "u2", "two"),
        said("user", "u9", "a1", "other branch"),
        line("label", "l5", "u9", r#""targetId":"u2","label":"here""#),
    ]
}

fn open(scratch: &TempDir, lines: &[String]) -> Log {
    let path = scratch.write("s/old.jsonl", lines.join("\n") + "\n");
    Log::open(&path, Path::new("/work"), SyncMode::Turn).unwrap()
}

fn values(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn shape(values: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shape = |entry: &Value| {
        let own = if entry["type"] == "label" {
            format!("label {}", word(&entry["label"]))
        } else {
            word(&entry["id"])
        };
        format!("{own} on {}", word(&entry["parentId"]))
    };
    values.iter().map(shape).collect()
}

#[test]
fn a_fork_holds_the_branch_before_a_message_and_hands_its_text_back() {
    let scratch = TempDir::create();
    let lines = tree();
    let log = open(&scratch, &lines);
    let (fork, text) = log.fork_before("u2").unwrap();
    assert_eq!(text, "second");
    let path = fork.path().unwrap().to_owned();
    assert_eq!(path.parent(), log.path().unwrap().parent());
    let values = values(&path);
    let header = &values[0];
    let keys: Vec<&str> = header.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["type", "version", "id", "timestamp", "cwd", "parentSession"]);
    assert_eq!(header["cwd"], "/work");
    assert_eq!(header["parentSession"], json!(log.path().unwrap()));
    assert_eq!(shape(&values[1..4]), ["u1 on -", "a1 on u1", "c1 on a1"], "{values:#?}");
    // What stood for the label that it kept from.
    assert_eq!(values[3]["firstKeptEntryId"], "a1");
    assert_eq!(shape(&values[4..]), ["label start on c1"]);
    assert_eq!(fork.leaf(), values[4]["id"].as_str());
    // What did not have to change is the same to the byte.
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().nth(1), Some(lines[1].as_str()));
    assert!(scratch.files().iter().all(|file| file.ends_with(".jsonl")));
}

#[test]
fn a_clone_holds_the_whole_branch() {
    let scratch = TempDir::create();
    let log = open(&scratch, &tree());
    let copy = log.fork_at("a2").unwrap();
    let values = values(copy.path().unwrap());
    let shape = shape(&values[1..]);
    assert_eq!(shape[..5], ["u1 on -", "a1 on u1", "c1 on a1", "u2 on c1", "a2 on u2"]);
    assert_eq!(shape[5], "label start on a2");
    assert!(shape[6].starts_with("label here on ") && shape.len() == 7);
    // It goes on as a session of its own.
    let mut copy = copy;
    copy.append_message(&user("more")).unwrap();
    assert_eq!(log.path().unwrap().metadata().unwrap().len(), { (tree().join("\n") + "\n").len() as u64 });
}

#[test]
fn a_fork_without_an_answer_waits_for_its_next_message() {
    let scratch = TempDir::create();
    let log = open(&scratch, &tree());
    for (id, entries) in [("u1", 1), ("a1", 0)] {
        let (mut fork, kept) = if id == "u1" {
            let (fork, text) = log.fork_before("u1").unwrap();
            assert_eq!(text, "first");
            (fork, 0)
        } else {
            (log.fork_at("l1").unwrap(), 2)
        };
        let before = scratch.files().len();
        fork.append_message(&user("again")).unwrap();
        assert_eq!(scratch.files().len(), before + 1);
        fork.append_message(&answer("yes")).unwrap();
        let values = values(fork.path().unwrap());
        assert_eq!(values.len(), 1 + kept + 2, "{entries}");
        assert_eq!(values[0]["parentSession"], json!(log.path().unwrap()));
    }
}

#[test]
fn what_cannot_be_forked_is_said() {
    let scratch = TempDir::create();
    let log = open(&scratch, &tree());
    for id in ["a1", "c1", "l1", "nope", ""] {
        let error = log.fork_before(id).err().unwrap().to_string();
        assert_eq!(error, "Invalid entry ID for forking", "{id}");
    }
    assert!(log.fork_at("nope").is_err());
    let mut draft = Log::create(scratch.path(), Path::new("/w"), None, SyncMode::Turn).unwrap();
    let id = draft.append_message(&user("x")).unwrap().id;
    let error = draft.fork_at(&id).err().unwrap().to_string();
    assert!(error.starts_with("This session has not been saved yet."), "{error}");
    let memory = Log::in_memory(Path::new("/w"), None).unwrap();
    assert!(memory.fork_at("x").is_err());
}

#[test]
fn a_log_in_memory_is_forked_in_memory() {
    let mut log = Log::in_memory(Path::new("/w"), None).unwrap();
    log.append_message(&user("x")).unwrap();
    log.append_message(&answer("y")).unwrap();
    let leaf = log.leaf().unwrap().to_owned();
    let copy = log.fork_at(&leaf).unwrap();
    assert_eq!((copy.path(), copy.index().slots.len()), (None, 2));
    assert_eq!(copy.header().parent_session, None);
    assert_ne!(copy.header().id, log.header().id);
}

#[test]
fn a_copy_for_another_folder_holds_every_entry_that_can_be_read() {
    let scratch = TempDir::create();
    let mut lines = tree();
    let whole = lines.clone();
    lines.insert(4, r#"{"type":"message","id":"broken","parentId":"a1","timest"#.into());
    let source = open(&scratch, &lines);
    let to = scratch.path().join("to");
    let copy = source.copy_into(&to, Path::new("/new"), Some("mine"), SyncMode::Turn).unwrap();
    let text = std::fs::read_to_string(copy.path().unwrap()).unwrap();
    let copied: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(copied, whole[1..]);
    let header = copy.header();
    assert_eq!((header.id.as_str(), header.cwd.as_str()), ("mine", "/new"));
    assert_eq!(header.parent_session.as_deref(), source.path().unwrap().to_str());
    // The source may be in use, and the same id is not given twice.
    assert!(!copy.path().unwrap().starts_with(scratch.path().join("s")));
}

#[test]
fn a_fork_that_fails_leaves_nothing() {
    let scratch = TempDir::create();
    let log = open(&scratch, &tree());
    let before = scratch.files();
    for place in [
        "session.create:1:err",
        "session.write:1:err",
        "session.torn:1:err",
        "session.sync:1:err",
        "session.rename:1:err",
    ] {
        let failed = failpoint::with(place, || log.fork_at("a2").is_err());
        assert!(failed, "{place}");
        assert_eq!(scratch.files(), before, "{place}");
    }
}

#[test]
fn messages_to_fork_at_are_listed_from_all_branches() {
    let scratch = TempDir::create();
    let points = open(&scratch, &tree()).fork_points();
    let texts: Vec<&str> = points.iter().map(|point| point.text.as_str()).collect();
    assert_eq!(texts, ["first", "second", "other branch"]);
}

#[test]
fn a_fork_finds_the_outputs_that_it_speaks_of() {
    let scratch = TempDir::create();
    let log = open(&scratch, &tree());
    scratch.write("s/old.outputs/pi-bash-0000000000000001.log", "whole");
    let fork = log.fork_at("a2").unwrap();
    let copy = log.copy_into(&scratch.path().join("to"), Path::new("/x"), None, SyncMode::Turn).unwrap();
    drop(log);
    std::fs::remove_dir_all(scratch.path().join("s/old.outputs")).unwrap();
    for path in [fork.path().unwrap(), copy.path().unwrap()] {
        let kept = beside::outputs(path).join("pi-bash-0000000000000001.log");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "whole");
    }
}
