//! What a log promises, on real files.

use super::*;
use crate::base::failpoint;
use crate::base::testing::TempDir;
use crate::session::testing::{answer, user};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn create(scratch: &TempDir) -> Log {
    Log::create(&scratch.path().join("s"), Path::new("/work"), None, SyncMode::Turn).unwrap()
}

fn open(path: &Path) -> Log {
    Log::open(path, Path::new("/work"), SyncMode::Turn).unwrap()
}

/// A stored session of `count` messages, user and assistant in turn, and its path.
fn stored(scratch: &TempDir, count: usize) -> PathBuf {
    let mut log = create(scratch);
    for n in 0..count {
        let text = format!("message {n}");
        log.append_message(&if n % 2 == 0 { user(&text) } else { answer(&text) }).unwrap();
    }
    log.path().unwrap().to_owned()
}

/// The texts that the model would see.
pub(super) fn texts(log: &mut Log) -> Vec<String> {
    let messages = log.context().into_messages();
    messages.iter().map(text_of).collect()
}

fn text_of(message: &AgentMessage) -> String {
    match message.to_llm() {
        Some(crate::llm::message::Message::User(user)) => user.content.text(),
        Some(crate::llm::message::Message::Assistant(answer)) => {
            crate::llm::message::text_of(&answer.content)
        }
        other => format!("{other:?}"),
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_session_has_a_draft_from_the_first_message_and_a_file_from_the_first_answer() {
    let scratch = TempDir::create();
    let mut log = create(&scratch);
    log.append_session_info("a\r\nname ").unwrap();
    log.append_model_change("faux", "echo").unwrap();
    log.append_thinking_level("high").unwrap();
    assert_eq!(scratch.files(), [""; 0]);

    log.append_message(&user("hello")).unwrap();
    let name = format!("s/{}", log.path().unwrap().file_name().unwrap().to_str().unwrap());
    assert_eq!(scratch.files(), [format!("{name}.draft")]);
    assert!(!log.is_saved());

    log.append_message(&answer("hi")).unwrap();
    assert_eq!(scratch.files(), [name]);
    assert!(log.is_saved());
    let path = log.path().unwrap().to_owned();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);

    let before = log.context();
    let id = log.header().id.clone();
    log.finish().unwrap();
    let mut log = open(&path);
    assert_eq!(log.context(), before);
    assert_eq!(log.header().id, id);
    assert_eq!(log.name().as_deref(), Some("a name"));
    assert_eq!(before.thinking_level.as_deref(), Some("high"));
    assert_eq!(before.models.last.unwrap().id, "echo");
    assert_eq!(log.take_notices(), []);
    let text = String::from_utf8(read(&path)).unwrap();
    let kinds: Vec<&str> = text.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(
        kinds,
        ["session", "session_info", "model_change", "thinking_level_change", "message", "message"]
    );
}

#[test]
fn a_draft_without_an_answer_is_removed_at_the_end_and_kept_by_a_crash() {
    let scratch = TempDir::create();
    create(&scratch).finish().unwrap();
    assert_eq!(scratch.files(), [""; 0]);

    let mut log = create(&scratch);
    log.append_message(&user("hello")).unwrap();
    log.finish().unwrap();
    assert_eq!(scratch.files(), [""; 0]);

    let mut log = create(&scratch);
    log.append_message(&user("hello")).unwrap();
    let path = log.path().unwrap().to_owned();
    drop(log);
    let mut log = open(&path);
    assert_eq!(texts(&mut log), ["hello"]);
    assert_eq!(log.path(), Some(&*path));
    log.append_message(&answer("hi")).unwrap();
    assert_eq!(texts(&mut open(&copy(&scratch, &read(&path)))), ["hello", "hi"]);
    assert!(!draft_of(&path).exists());
}

fn copy(scratch: &TempDir, bytes: &[u8]) -> PathBuf {
    scratch.write("copy.jsonl", bytes)
}

#[test]
fn a_draft_never_takes_the_place_of_a_file() {
    let scratch = TempDir::create();
    let path = scratch.path().join("x.jsonl");
    let mut log = open(&path);
    log.append_message(&user("hello")).unwrap();
    scratch.write("x.jsonl", "mine");
    log.append_message(&answer("hi")).unwrap();
    assert!(matches!(&*log.take_notices(), [Notice::StillADraft { .. }]));
    assert_eq!(read(&path), b"mine");
    log.finish().unwrap();
    assert_eq!(scratch.files(), ["x.jsonl", "x.jsonl.draft"]);
}

#[test]
fn a_process_killed_between_two_names_leaves_one_session() {
    let scratch = TempDir::create();
    let path = stored(&scratch, 2);
    std::fs::hard_link(&path, draft_of(&path)).unwrap();
    assert_eq!(texts(&mut open(&path)).len(), 2);
    assert_eq!(scratch.files().len(), 1);
}

#[test]
fn a_log_in_memory_is_like_any_other() {
    let mut log = Log::in_memory(Path::new("/work"), Some("my-id")).unwrap();
    assert_eq!((log.path(), log.header().id.as_str()), (None, "my-id"));
    log.append_message(&user("a")).unwrap();
    let a = log.leaf().unwrap().to_owned();
    log.append_message(&answer("b")).unwrap();
    assert_eq!(texts(&mut log), ["a", "b"]);
    log.set_leaf(Some(&a)).unwrap();
    log.append_message(&answer("c")).unwrap();
    assert_eq!(texts(&mut log), ["a", "c"]);
    log.set_leaf(None).unwrap();
    assert_eq!(texts(&mut log), [""; 0]);
    assert!(log.set_leaf(Some("nope")).is_err());
    assert!(Log::in_memory(Path::new("/work"), Some("../x")).is_err());
    log.finish().unwrap();
}

/// Opens `bytes` as a session, checks that nothing of it is lost by going on, and gives what is seen.
#[track_caller]
fn go_on(scratch: &TempDir, bytes: &[u8]) -> (Vec<String>, Vec<Notice>) {
    let path = copy(scratch, bytes);
    let mut log = open(&path);
    let seen = texts(&mut log);
    let notices = log.take_notices();
    log.append_message(&user("next")).unwrap();
    let mut expected = seen.clone();
    expected.push("next".into());
    assert_eq!(texts(&mut log), expected);
    drop(log);
    assert!(read(&path).starts_with(bytes));
    // On a line of its own, for readers that give up a damaged one.
    let after = read(&path);
    let last = after.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap();
    assert!(after.ends_with(b"}\n") && serde_json::from_slice::<Entry>(last).is_ok());
    assert_eq!(texts(&mut open(&path)), expected);
    (seen, notices)
}

#[test]
fn a_tail_torn_at_any_byte_costs_its_own_entry_only() {
    let scratch = TempDir::create();
    let bytes = read(&stored(&scratch, 4));
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1).collect();
    for cut in ends[2]..=bytes.len() {
        // The newline alone may be missing: the entry is whole.
        let whole = ends.iter().filter(|end| **end <= cut + 1).count() - 1;
        let (seen, notices) = go_on(&scratch, &bytes[..cut]);
        let expected: Vec<String> = (0..whole).map(|n| format!("message {n}")).collect();
        assert_eq!(seen, expected, "cut at {cut}");
        let torn = !ends.contains(&cut) && !ends.contains(&(cut + 1));
        assert_eq!(notices.len(), usize::from(torn), "cut at {cut}: {notices:?}");
    }
}

#[test]
fn damage_in_the_middle_costs_what_it_hits() {
    let scratch = TempDir::create();
    let whole = String::from_utf8(read(&stored(&scratch, 5))).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let nul = "\0".repeat(4096);
    let half = lines[3].split_at(lines[3].len() / 2);
    let insert = |line: usize, text: &str| {
        let mut lines = lines.clone();
        lines.insert(line, text);
        lines.join("\n") + "\n"
    };
    let replace = |line: usize, text: &str| {
        let mut lines = lines.clone();
        lines[line] = text;
        lines.join("\n") + "\n"
    };
    let all = &["0", "1", "2", "3", "4"][..];
    let unknown = r#"{"type":"hologram","id":"h","parentId":null,"timestamp":"t","x":1}"#;
    let second_header = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#;
    let rows: &[(&str, String, &[&str], usize)] = &[
        ("whole", whole.clone(), all, 0),
        ("no final newline", whole.trim_end().to_owned(), all, 0),
        ("blank lines", insert(3, "\n  \n"), all, 0),
        ("CRLF", whole.replace('\n', "\r\n"), all, 0),
        ("BOM", format!("\u{feff}{whole}"), all, 0),
        ("garbage", insert(3, "garbage"), all, 1),
        ("a NUL block", insert(3, &nul), all, 1),
        ("a NUL tail", format!("{whole}{nul}"), all, 1),
        ("NULs before an entry", replace(3, &format!("{nul}{}", lines[3])), all, 1),
        ("an unreadable line", replace(3, &nul), &["0", "1", "3", "4"], 1),
        ("a torn line", replace(3, half.0), &["0", "1", "3", "4"], 1),
        ("only the end of a line", replace(3, half.1), &["0", "1", "3", "4"], 1),
        (
            "a torn line fused with the next",
            replace(3, half.0).replacen(&format!("{}\n", half.0), half.0, 1),
            &["0", "1", "3", "4"],
            1,
        ),
        (
            "two lines fused",
            whole.replacen("}\n{\"type\":\"message\"", "}{\"type\":\"message\"", 3).replacen(
                "}{\"type\":\"message\"",
                "}\n{\"type\":\"message\"",
                2,
            ),
            all,
            1,
        ),
        ("a line twice", insert(3, lines[2]), all, 1),
        ("an early line again at the end", format!("{whole}{}\n", lines[1]), all, 1),
        ("a missing line", replace(3, ""), &["0", "1", "3", "4"], 0),
        ("a value that is no entry", insert(3, r#"[1]"#), all, 1),
        ("an entry without an id", insert(3, r#"{"type":"message"}"#), all, 1),
        ("an unknown type beside the path", insert(3, unknown), all, 0),
        ("a second header", insert(3, second_header), all, 0),
        ("a newer version", whole.replacen("\"version\":3", "\"version\":4", 1), all, 1),
        ("a damaged header", whole.replacen("{\"type\"", "{type\"", 1), all, 2),
        ("a header that is none", whole.replacen("\"session\"", "\"sessiom\"", 1), all, 2),
        (
            "half UTF-8",
            whole.replacen("message 2", "message \u{fffd}2", 1),
            &["0", "1", "\u{fffd}2", "3", "4"],
            0,
        ),
    ];
    for (what, text, expected, notices) in rows {
        let (seen, said) = go_on(&scratch, text.as_bytes());
        let seen: Vec<&str> = seen.iter().map(|text| text.trim_start_matches("message ")).collect();
        assert_eq!(seen, *expected, "{what}");
        assert_eq!(said.len(), *notices, "{what}: {said:?}");
        for notice in said {
            assert!(!notice.to_string().is_empty());
        }
    }
    let mut bytes = whole.clone().into_bytes();
    let at = whole.find("message 2").unwrap();
    bytes[at] = 0xff;
    assert_eq!(go_on(&scratch, &bytes).0[2], "\u{fffd}essage 2");
}

#[test]
fn damage_inside_a_line_that_looks_whole_is_found_when_it_is_read() {
    let scratch = TempDir::create();
    let whole = String::from_utf8(read(&stored(&scratch, 4))).unwrap();
    for n in 0..4 {
        let text = whole.replacen(&format!("message {n}"), "mess\"age", 1);
        let (seen, notices) = go_on(&scratch, text.as_bytes());
        let expected: Vec<String> = (0..4).filter(|m| *m != n).map(|m| format!("message {m}")).collect();
        assert_eq!(seen, expected);
        assert!(matches!(&*notices, [Notice::Unreadable { .. }]), "{notices:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn one_damaged_byte_costs_at_most_one_entry(at in 0usize..10_000, byte: u8, how in 0..3) {
        let scratch = TempDir::create();
        let mut bytes = read(&stored(&scratch, 6));
        let at = at % bytes.len();
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        // Files of that version are written anew.
        proptest::prop_assume!(memchr::memmem::find(&bytes, b"\"version\":2").is_none());
        let (seen, _) = go_on(&scratch, &bytes);
        let sound = (0..6).filter(|n| seen.contains(&format!("message {n}"))).count();
        proptest::prop_assert!(sound >= 5, "{:?}", seen);
    }

    #[test]
    fn no_file_panics_or_is_changed(parts in proptest::collection::vec(0usize..8, 0..12), junk: Vec<u8>) {
        let scratch = TempDir::create();
        let header = br#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#;
        let entry = br#"{"type":"message","id":"a","parentId":"b","timestamp":"t","message":{"role":"user","content":"x"}}"#;
        let other = br#"{"id":"b","parentId":"a","type":"compaction","firstKeptEntryId":"a"}"#;
        let pieces: [&[u8]; 8] = [header, entry, other, b"\n", b"\r\n", b"\0", &junk, b"\xef\xbb\xbf"];
        let bytes = parts.iter().map(|part| pieces[*part]).collect::<Vec<_>>().concat();
        let path = copy(&scratch, &bytes);
        match Log::open(&path, Path::new("/work"), SyncMode::Never) {
            Ok(mut log) => {
                log.context();
                log.append_message(&user("next")).unwrap();
                proptest::prop_assert_eq!(texts(&mut log).pop(), Some("next".to_owned()));
            }
            Err(error) => {
                let refused = matches!(error, SessionError::NotASession { .. });
                proptest::prop_assert!(refused, "{}", error);
                proptest::prop_assert_eq!(read(&path), bytes);
            }
        }
    }
}

#[test]
fn what_is_not_a_session_is_left_alone() {
    let scratch = TempDir::create();
    let entry = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#;
    for text in ["hello\nworld\n", "{}", "[]", entry, "\0\0\0", "{\"type\":\"session\"}\n"] {
        let path = copy(&scratch, text.as_bytes());
        let error = Log::open(&path, Path::new("/work"), SyncMode::Turn).err().unwrap().to_string();
        assert_eq!(error, format!("Session file is not a valid pi session: {}", path.display()));
        assert_eq!(read(&path), text.as_bytes());
    }
    assert!(Log::open(scratch.path(), Path::new("/work"), SyncMode::Turn).is_err());
}

#[test]
fn an_empty_file_becomes_a_session() {
    let scratch = TempDir::create();
    for text in ["", "\n", " "] {
        let path = copy(&scratch, text.as_bytes());
        let mut log = open(&path);
        log.append_message(&user("a")).unwrap();
        drop(log);
        let mut log = open(&path);
        assert_eq!(texts(&mut log), ["a"]);
        assert_eq!(log.header().cwd, "/work");
        assert_eq!(log.take_notices(), []);
    }
}

#[test]
fn any_text_survives() {
    let scratch = TempDir::create();
    let mut log = create(&scratch);
    let long = "x".repeat(3 << 20);
    let rows = [
        "\u{2028}\u{2029}\u{85}",
        "a\r\nb\nc\r\td\0e\u{1b}[31m",
        "\u{1f600}\u{feff}\"\\u0000",
        r#"{"type":"message","id":"x","parentId":"y"#,
        &long,
    ];
    for text in rows {
        log.append_message(&user(text)).unwrap();
    }
    log.append_message(&answer("done")).unwrap();
    let path = log.path().unwrap().to_owned();
    drop(log);
    let mut log = open(&path);
    assert!(texts(&mut log).iter().zip(rows).all(|(seen, text)| seen == text));
    assert_eq!(log.take_notices(), []);
}

#[test]
fn strange_trees_are_walked_once() {
    let scratch = TempDir::create();
    let header = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#;
    let entry = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{id}"}}}}"#
        )
    };
    let check = |entries: &[(&str, &str)], expected: &[&str]| {
        let lines: Vec<String> = entries.iter().map(|(id, parent)| entry(id, parent)).collect();
        let (seen, _) = go_on(&scratch, format!("{header}\n{}\n", lines.join("\n")).as_bytes());
        assert_eq!(seen, expected, "{entries:?}");
    };
    check(&[("a", "null"), ("b", "\"a\""), ("c", "\"a\"")], &["a", "c"]);
    // Two roots.
    check(&[("a", "null"), ("b", "null")], &["b"]);
    // Its own parent.
    check(&[("a", "\"a\"")], &["a"]);
    // A circle.
    check(&[("a", "\"b\""), ("b", "\"a\"")], &["a", "b"]);
    // A parent that comes later.
    check(&[("b", "\"a\""), ("a", "null"), ("c", "\"b\"")], &["a", "b", "c"]);
    // A parent that is not there.
    check(&[("a", "null"), ("c", "\"b\"")], &["a", "c"]);
    check(&[("c", "\"b\"")], &["c"]);
    // One id for two entries: each child hangs on the one before it.
    check(
        &[("a", "null"), ("b", "\"a\""), ("c", "\"b\""), ("b", "\"c\""), ("d", "\"b\"")],
        &["a", "b", "c", "b", "d"],
    );

    let mut deep = format!("{header}\n{}\n", entry("0", "null"));
    for n in 1..100_000 {
        deep.push_str(&entry(&n.to_string(), &format!("\"{}\"", n - 1)));
        deep.push('\n');
    }
    let mut log = open(&copy(&scratch, deep.as_bytes()));
    assert_eq!(log.index().path(log.leaf_position()).len(), 100_000);
    assert_eq!(log.context().messages.len(), 100_000);
}

#[test]
fn a_failed_write_leaves_no_trace_and_can_be_tried_again() {
    let scratch = TempDir::create();
    for plan in ["session.create:1:err", "session.write:1:err", "session.torn:1:err"] {
        let mut log = create(&scratch);
        log.append_model_change("faux", "echo").unwrap();
        let error = failpoint::with(plan, || log.append_message(&user("a")).unwrap_err());
        let error = error.to_string();
        assert!(error.starts_with("Could not ") && error.contains("free some space"), "{error}");
        assert_eq!(scratch.files(), [""; 0], "{plan}");
        log.append_message(&user("a")).unwrap();
        assert_eq!(texts(&mut log), ["a"]);
        log.finish().unwrap();
    }
    for (plan, fenced) in [
        ("session.write:1:err", false),
        ("session.torn:1:err", false),
        ("session.torn:1:err,session.cut:1:err", true),
    ] {
        let path = stored(&scratch, 2);
        let mut log = open(&path);
        let before = read(&path);
        failpoint::with(plan, || log.append_message(&user("lost")).unwrap_err());
        assert_eq!(read(&path) != before, fenced, "{plan}");
        assert_eq!(texts(&mut log), ["message 0", "message 1"]);
        log.append_message(&user("found")).unwrap();
        assert_eq!(log.path(), Some(&*path));
        assert_eq!(texts(&mut log).len(), 3);
        drop(log);
        let mut log = open(&path);
        assert_eq!(texts(&mut log), ["message 0", "message 1", "found"]);
        assert_eq!(log.take_notices().len(), usize::from(fenced));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_disk_that_does_not_store_makes_the_log_go_on_elsewhere() {
    let scratch = TempDir::create();
    let path = stored(&scratch, 2);
    let mut log = open(&path);
    failpoint::with("session.sync:1:err", || log.turn_ended());
    assert!(matches!(&*log.take_notices(), [Notice::NotStored { .. }]));
    log.append_message(&user("next")).unwrap();
    assert!(matches!(&*log.take_notices(), [Notice::Moved { .. }]));
    assert_ne!(log.path(), Some(&*path));
    assert_eq!(texts(&mut log), ["message 0", "message 1", "next"]);
}

#[test]
fn one_process_at_a_time_writes() {
    let scratch = TempDir::create();
    let path = stored(&scratch, 2);
    let log = open(&path);
    match Log::open(&path, Path::new("/work"), SyncMode::Turn) {
        Err(error @ SessionError::Held { pid, .. }) => {
            assert!(error.to_string().contains("in use by"));
            if cfg!(target_os = "linux") {
                assert_eq!(pid, Some(std::process::id()));
            }
        }
        other => panic!("{:?}", other.err()),
    }
    let mut reader = Log::open_to_read(&path).unwrap();
    assert_eq!(texts(&mut reader).len(), 2);
    assert!(matches!(reader.append_message(&user("x")), Err(SessionError::ReadOnly { .. })));
    drop(log);
    open(&path);
}

#[test]
fn a_file_that_somebody_touched_is_left_to_him() {
    let scratch = TempDir::create();
    let all = ["message 0", "message 1", "message 2", "message 3", "next"];
    type Touch = fn(&Path);
    let rows: &[(Touch, &str, &[&str])] = &[
        (|path| std::fs::remove_file(path).unwrap(), "was deleted", &all),
        (|path| std::fs::rename(path, path.with_extension("x")).unwrap(), "was deleted", &all),
        (
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::write(path, "other").unwrap();
            },
            "was replaced",
            &all,
        ),
        (
            |path| {
                let mut bytes = read(path);
                bytes.extend_from_slice(b"{\"half");
                std::fs::write(path, bytes).unwrap();
            },
            "was written to",
            &all,
        ),
        (
            |path| {
                let bytes = read(path);
                std::fs::write(path, &bytes[..bytes.len() - 5]).unwrap();
            },
            "was cut short",
            &["message 0", "message 1", "message 2", "next"],
        ),
        (|path| std::fs::write(path, "").unwrap(), "was cut short", &["next"]),
    ];
    for (touch, why, expected) in rows {
        let path = stored(&scratch, 4);
        let mut log = open(&path);
        touch(&path);
        let touched = std::fs::read(&path).ok();
        log.append_message(&user("next")).unwrap();
        assert_eq!(texts(&mut log), *expected, "{why}");
        log.append_message(&answer("more")).unwrap();
        match &*log.take_notices() {
            [Notice::Moved { from, to, why: said }, ..] => {
                assert_eq!((from, Some(to.as_path())), (&path, log.path()));
                assert!(said.starts_with(why), "{said}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read(&path).ok(), touched, "{why}");
        assert_eq!(log.header().parent_session.as_deref(), path.to_str());
        let moved = log.path().unwrap().to_owned();
        drop(log);
        let mut log = open(&moved);
        assert_eq!(texts(&mut log).len(), expected.len() + 1, "{why}");
    }
}

#[test]
fn a_draft_that_somebody_touched_stays_a_draft() {
    let scratch = TempDir::create();
    let mut log = create(&scratch);
    log.append_message(&user("a")).unwrap();
    std::fs::remove_file(draft_of(log.path().unwrap())).unwrap();
    log.append_message(&user("b")).unwrap();
    assert_eq!(scratch.files().len(), 1);
    assert!(scratch.files()[0].ends_with(".draft"));
    assert_eq!(texts(&mut log), ["a", "b"]);
    log.append_message(&answer("c")).unwrap();
    assert!(log.is_saved());
    log.finish().unwrap();
    assert_eq!(scratch.files().len(), 1);
}

#[test]
fn older_versions_are_brought_forward_when_they_are_written_to() {
    let scratch = TempDir::create();
    let first = concat!(
        "{\"type\":\"session\",\"id\":\"old\",\"timestamp\":\"t\",\"cwd\":\"/w\",\"provider\":\"p\"}\n",
        "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n",
        "broken\n",
        "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"b\"}}\n",
        "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"hookMessage\",\"customType\":\"k\",\"content\":\"c\"}}\n",
        "{\"type\":\"compaction\",\"timestamp\":\"t\",\"summary\":\"s\",\"firstKeptEntryIndex\":2,\"tokensBefore\":9}\n",
        "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"d\"}}\n",
    );
    let second = concat!(
        "{\"type\":\"session\",\"version\":2,\"id\":\"old\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
        "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"b\"}}\n",
        "{\"type\":\"message\",\"id\":\"2\",\"parentId\":\"1\",\"timestamp\":\"t\",\"message\":{\"role\":\"hookMessage\",\"customType\":\"k\",\"content\":\"c\"}}\n",
        "{\"type\":\"message\",\"id\":\"3\",\"parentId\":\"2\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"d\"}}\n",
    );
    for (text, version) in [(first, 1), (second, 2)] {
        let path = copy(&scratch, text.as_bytes());
        let mut log = open(&path);
        let seen = texts(&mut log);
        assert_eq!(seen[seen.len() - 3..], ["b", "c", "d"], "{seen:?}");
        assert_eq!(seen.len(), if version == 1 { 4 } else { 3 });
        log.take_notices();
        assert_eq!(read(&path), text.as_bytes());
        failpoint::with("session.rename:1:err", || log.append_message(&user("e")).unwrap_err());
        assert_eq!(read(&path), text.as_bytes());
        log.append_message(&user("e")).unwrap();
        let backup = match &*log.take_notices() {
            [Notice::Migrated { from, backup, .. }] if *from == version => backup.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(read(&backup), text.as_bytes());
        drop(log);
        let mut log = open(&path);
        assert_eq!(log.header().version, 3);
        assert_eq!(texts(&mut log)[seen.len()..], ["e"]);
        assert_eq!(texts(&mut log)[..seen.len()], seen);
        drop(log);
        for file in scratch.files() {
            assert!(file.starts_with("copy.jsonl") && !file.contains('-'), "{file}");
            std::fs::remove_file(scratch.path().join(file)).unwrap();
        }
    }
}

#[test]
fn a_link_to_a_session_stays_a_link() {
    let scratch = TempDir::create();
    let path = stored(&scratch, 2);
    let link = scratch.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut log = open(&link);
    log.append_message(&user("x")).unwrap();
    assert_eq!(log.take_notices(), []);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(texts(&mut log).len(), 3);
}

const CRASH_FOLDER: &str = "PI_TEST_CRASH_FOLDER";

/// Runs in a child process, see below: writes a session and notes each entry that is on disk.
#[test]
#[ignore = "killed by another test"]
fn writes_until_it_is_killed() {
    use std::io::Write;
    let Some(folder) = std::env::var_os(CRASH_FOLDER) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let mut notes = std::fs::File::create(folder.join("notes")).unwrap();
    let mut log = Log::create(&folder.join("s"), &folder, None, SyncMode::Always).unwrap();
    log.append_model_change("faux", "echo").unwrap();
    for n in 0..6 {
        let text = format!("message {n}");
        let message = if n % 3 == 1 { answer(&text) } else { user(&text) };
        log.append_message(&message).unwrap();
        writeln!(notes, "{text}").unwrap();
    }
    log.finish().unwrap();
}

#[test]
fn a_process_killed_at_any_moment_leaves_all_that_it_told() {
    let program = std::env::current_exe().unwrap();
    let mut killed = 0;
    for point in ["session.create", "session.write", "session.torn", "session.rename", "session.sync"] {
        for passage in 1.. {
            let scratch = TempDir::create();
            let status = std::process::Command::new(&program)
                .args(["--ignored", "--exact", "session::log::tests::writes_until_it_is_killed"])
                .env(CRASH_FOLDER, scratch.path())
                .env("PI_FAIL", format!("{point}:{passage}:abort"))
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap();
            let notes = std::fs::read_to_string(scratch.path().join("notes")).unwrap();
            let told: Vec<&str> = notes.lines().collect();
            let files = scratch.files();
            let sessions: Vec<&String> = files.iter().filter(|name| *name != "notes").collect();
            if told.is_empty() && sessions.is_empty() {
                assert!(!status.success());
                killed += 1;
                continue;
            }
            // A draft may have two names for a moment.
            let name = sessions.iter().find(|name| name.ends_with(".jsonl")).unwrap_or(&sessions[0]);
            let mut log = open(&scratch.path().join(name));
            let seen = texts(&mut log);
            assert!(seen.len() <= told.len() + 1, "{point}:{passage}: {seen:?}");
            assert_eq!(seen[..told.len()], told, "{point}:{passage}");
            assert!(log.take_notices().len() <= 1, "{point}:{passage}");
            log.append_message(&answer("next")).unwrap();
            assert_eq!(texts(&mut log)[seen.len()..], ["next"]);
            assert!(log.is_saved());
            drop(log);
            assert_eq!(scratch.files().len(), 2, "{point}:{passage}: {:?}", scratch.files());
            if status.success() {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 15, "{killed}");
}
