//! A row against the reference's meaning of each field.

use super::*;
use crate::base::testing::TempDir;

const HEADER: &str = r#"{"type":"session","version":3,"id":"i","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/x","parentSession":"/p.jsonl"}"#;

fn message(role: &str, content: &str, time: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{:x}","parentId":null,"timestamp":"2024-12-03T15:00:00.000Z","message":{{"role":"{role}","content":{content}{time}}}}}"#,
        content.len()
    )
}

fn row(path: &Path, known: Option<Row>) -> Option<Row> {
    Row::read(path, Stamp::of(path).unwrap(), known)
}

/// Name, first message, number of messages and time of the last.
fn facts(info: &Info) -> (Option<&str>, &str, u64, &str) {
    (info.name.as_deref(), &info.first_message, info.message_count, &info.modified)
}

#[track_caller]
fn check(lines: &[&str], expected: (Option<&str>, &str, u64, &str)) {
    let scratch = TempDir::create();
    let text = [&[HEADER], lines].concat().join("\n");
    let whole = row(&scratch.write("a.jsonl", format!("{text}\n")), None).unwrap();
    assert_eq!(facts(&whole.info), expected, "{lines:#?}");
    // A last line without its end says the same.
    let torn = row(&scratch.write("b.jsonl", &text), None).unwrap();
    assert_eq!(facts(&torn.info), expected, "{lines:#?}");
    // So does a file that was read while it was shorter, at every byte.
    for cut in (HEADER.len()..text.len()).step_by(7) {
        let path = scratch.write("c.jsonl", text.as_bytes().get(..cut).unwrap());
        let known = row(&path, None);
        let mut file = File::options().append(true).open(&path).unwrap();
        io::Write::write_all(&mut file, &text.as_bytes()[cut..]).unwrap();
        io::Write::write_all(&mut file, b"\n").unwrap();
        let grown = row(&path, known).unwrap();
        assert_eq!(facts(&grown.info), expected, "cut at {cut}: {lines:#?}");
    }
}

#[test]
fn a_row_says_what_the_references_says() {
    let created = "2024-12-03T14:00:00.000Z";
    check(&[], (None, "(no messages)", 0, created));
    let user = message("user", r#""hi""#, r#","timestamp":1733300000000"#);
    let answer = message(
        "assistant",
        r#"[{"type":"thinking","thinking":"h"},{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
        r#","timestamp":1733400000000"#,
    );
    let tool = message("toolResult", "[]", r#","timestamp":1733900000000"#);
    check(&[&user, &answer, &tool], (None, "hi", 3, "2024-12-05T12:00:00.000Z"));
    // Without a time of its own a message has that of its entry.
    let late =
        message("user", r#"[{"type":"text","text":"x"},{"type":"image"},{"type":"text","text":"y"}]"#, "");
    check(&[&late], (None, "x y", 1, "2024-12-03T15:00:00.000Z"));
    // What says nothing is no first message; what is damaged is no message.
    let empty = message("user", r#""""#, r#","timestamp":-5"#);
    check(
        &[&empty, "broken", &user[..50], &message("user", "null", ""), &user],
        (None, "hi", 3, "2024-12-04T08:13:20.000Z"),
    );
    let info = |name: &str| {
        format!(r#"{{"type":"session_info","id":"n","parentId":null,"timestamp":"t","name":{name}}}"#)
    };
    check(&[&info(r#"" one ""#)], (Some("one"), "(no messages)", 0, created));
    check(&[&info(r#""one""#), &info(r#""""#)], (None, "(no messages)", 0, created));
    check(&[&info("5")], (None, "(no messages)", 0, created));
}

#[test]
fn files_that_are_no_sessions_have_no_row() {
    let scratch = TempDir::create();
    for text in ["", "\n\n", "junk", "{}\n", "[1]\n", r#"{"type":"message"}"#] {
        assert_eq!(row(&scratch.write("x.jsonl", text), None), None, "{text}");
    }
    let old = r#"{"type":"session","id":"old","timestamp":"junk"}"#;
    let path = scratch.write(
        "x.jsonl",
        format!("\u{feff}{old}\n{}\n", r#"{"type":"message","message":{"role":"user","content":"v1"}}"#),
    );
    let row = row(&path, None).unwrap();
    assert_eq!((row.info.created, row.info.cwd.as_str()), (None, ""));
    assert_eq!((row.info.first_message.as_str(), row.info.message_count), ("v1", 1));
}

#[test]
fn a_file_in_the_place_of_another_is_read_anew() {
    let scratch = TempDir::create();
    let user = message("user", r#""hi""#, "");
    let path = scratch.write("x.jsonl", format!("{HEADER}\n{user}\n"));
    let known = row(&path, None);
    let other = HEADER.replace("\"i\"", "\"j\"");
    // The same inode, written over.
    std::fs::write(&path, format!("{other}\n{user}\n{user}\n{user}\n")).unwrap();
    let row = row(&path, known).unwrap();
    assert_eq!((row.info.id.as_str(), row.info.message_count), ("j", 3));
}

#[test]
fn the_text_of_a_session_is_what_was_said_in_it() {
    let scratch = TempDir::create();
    let lines = [
        HEADER.to_owned(),
        message("user", r#""one \ud83d""#, ""),
        message("toolResult", r#"[{"type":"text","text":"output"}]"#, ""),
        "broken".to_owned(),
        message("assistant", r#"[{"type":"text","text":"two"}]"#, ""),
    ];
    let path = scratch.write("x.jsonl", lines.join("\n"));
    assert_eq!(all_messages_text(&path).unwrap(), "one \u{fffd} two");
    let mut heard = 0;
    each_text(&path, |_| {
        heard += 1;
        false
    })
    .unwrap();
    assert_eq!(heard, 1);
}

#[test]
fn a_long_first_message_is_cut_between_characters() {
    let long = "é".repeat(3000);
    let short = shortened(long);
    assert_eq!(short.len(), FIRST_MESSAGE_MAX);
}
