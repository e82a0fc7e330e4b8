//! Tests of the `edit` tool as a whole: forms of arguments, encodings, endings, errors.

use super::*;
use crate::agent::CancelToken;
use crate::llm::model::Model;
use crate::tools::backend::{Backend, Child, DirEntry, ShellCommand, Source, Stat};
use crate::tools::local::Local;
use crate::tools::testing::{TempDir, call, call_with, text};
use proptest::prelude::*;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Edits a file with this content; returns the result and the new content.
fn run(content: &[u8], arguments: Value) -> (String, Vec<u8>) {
    let dir = TempDir::create();
    dir.write("f", content);
    let tool = tool(Arc::new(dir.workspace()));
    let mut arguments = arguments;
    arguments["path"] = "f".into();
    let result = call(tool.as_ref(), arguments);
    assert_eq!(dir.names(), ["f"], "nothing is left beside the file");
    (text(&result), dir.read("f"))
}

/// Checks one edit that must succeed.
#[track_caller]
fn check(content: impl AsRef<[u8]>, old: &str, new: &str, expected: impl AsRef<[u8]>) {
    let arguments = json!({"edits": [{"oldText": old, "newText": new}]});
    let (answer, content) = run(content.as_ref(), arguments);
    assert_eq!(answer, "Successfully replaced 1 block(s) in f.");
    assert_eq!(content, expected.as_ref(), "{}", String::from_utf8_lossy(&content));
}

/// Checks edits that must fail and leave the file unchanged. Only the start of the result is compared.
#[track_caller]
fn refuse(content: impl AsRef<[u8]>, edits: Value, expected: &str) {
    let before = content.as_ref();
    let (answer, content) = run(before, json!({"edits": edits}));
    let shown = answer.get(..expected.len()).unwrap_or(&answer);
    assert_eq!(shown, expected);
    assert_eq!(content, before);
}

#[test]
fn all_edits_match_the_original() {
    let edits = json!([
        {"oldText": "three", "newText": "3"},
        {"oldText": "one", "newText": "two"},
        {"oldText": "two", "newText": "one"},
    ]);
    let (answer, content) = run(b"one two three\n", json!({"edits": edits}));
    assert_eq!(answer, "Successfully replaced 3 block(s) in f.");
    assert_eq!(content, b"two one 3\n");
}

#[test]
fn one_bad_edit_stops_all() {
    refuse(
        "one two",
        json!([{"oldText": "one", "newText": "1"}, {"oldText": "2", "newText": "two"}]),
        "error: Could not find edits[1] in f. The oldText must match exactly including all whitespace and newlines.",
    );
}

#[test]
fn errors_say_what_to_do() {
    let one = |old: &str, new: &str| json!([{"oldText": old, "newText": new}]);
    refuse(
        "fn a() {}\n",
        one("fn b() {}", ""),
        "error: Could not find the exact text in f. The old text must match exactly including all whitespace and newlines.\nThe nearest place is line 1: the file has",
    );
    refuse(
        "a\nb\na\na\n",
        one("a", "x"),
        "error: Found 3 occurrences of the text in f. The text must be unique. Please provide more context to make it unique.\nThey start in these lines: 1, 3, 4. To replace all of them, add \"replaceAll\": true to the edit.",
    );
    refuse(
        "a",
        json!([{"oldText": "a", "newText": "b"}, {"oldText": "", "newText": "x"}]),
        "error: edits[1].oldText must not be empty in f.",
    );
    refuse("a", one("", "x"), "error: oldText must not be empty in f.");
    refuse(
        "a",
        one("a", "a"),
        "error: No changes made to f. The replacement produced identical content. This might indicate",
    );
    refuse(
        "ab",
        json!([{"oldText": "a", "newText": "a"}, {"oldText": "b", "newText": "b"}]),
        "error: No changes made to f. The replacements produced identical content.",
    );
    refuse(
        "abc",
        json!([{"oldText": "bc", "newText": "1"}, {"oldText": "ab", "newText": "2"}]),
        "error: edits[1] and edits[0] overlap in f. Merge them into one edit or target disjoint regions.",
    );
    refuse(
        "abc",
        json!([{"oldText": "b", "newText": "1"}, {"oldText": "b", "newText": "1"}]),
        "error: edits[0] and edits[1] overlap in f.",
    );
    for edits in [json!([]), json!("nonsense"), json!([{"oldText": "a"}]), json!(null)] {
        refuse("a", edits, "error: Edit tool input is invalid. edits must contain at least one replacement.");
    }
}

#[test]
fn a_forgiving_match_only_finds_the_place() {
    check("“a”  \n‘keep’ \t\n“b”\n", "\"b\"", "\"c\"", "“a”  \n‘keep’ \t\n\"c\"\n");
    check("x = “a”;  // ‘note’ \n", "\"a\"", "“b”", "x = “b”;  // ‘note’ \n");
    check("a \nb \nc \n", "a\nb", "1\n2", "1\n2 \nc \n");
}

#[test]
fn lines_that_differ_only_in_their_endings_are_not_unique() {
    refuse(
        "hello\r\nworld\r\n---\r\nhello\nworld\n",
        json!([{"oldText": "hello\nworld\n", "newText": "x\n"}]),
        "error: Found 2 occurrences of the text in f. The text must be unique.",
    );
    let all = json!({"edits": [{"oldText": "a\nb", "newText": "c\nd", "replaceAll": true}]});
    assert_eq!(run(b"a\r\nb\na\nb", all).1, b"c\r\nd\nc\nd");
}

#[test]
fn the_matrix_of_encodings_and_endings() {
    check("\u{feff}a\nb\n", "a", "x", "\u{feff}x\nb\n");
    check("a\r\nb\r\nc", "a\nb", "1\n2\n3", "1\r\n2\r\n3\r\nc");
    check("a\nb\r\nc\rd", "b", "1\n2", "a\n1\r\n2\r\nc\rd");
    check("a\rb\rc", "a\nb", "1\n2", "1\r2\rc");
    check("no newline", "no", "still no", "still no newline");
    check(b"\0bin\0ary\xff", "ary", "", b"\0bin\0\xff");
    check(b"a\xff\xfe\xff\r\nb\n", "b", "1\n2", b"a\xff\xfe\xff\r\n1\n2\n");
    check(b"caf\xe9 \x93x\x94\n", "café “x”", "thé – ok", b"th\xe9 \x96 ok\n");
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
    };
    check(
        utf16("é\r\n😀 old\r\n", u16::to_le_bytes),
        "😀 old\n",
        "new\n漢\n",
        utf16("é\r\nnew\r\n漢\r\n", u16::to_le_bytes),
    );
    check(utf16("old", u16::to_be_bytes), "old", "new", utf16("new", u16::to_be_bytes));
    refuse(
        b"caf\xe9",
        json!([{"oldText": "caf", "newText": "漢"}]),
        "error: f is encoded in Latin-1 (Windows-1252), which has no '漢'.",
    );
    refuse(
        b"\xff \xe2\x80\x9ca\xe2\x80\x9d \0",
        json!([{"oldText": "\"a\"", "newText": "b"}]),
        "error: Could not find the exact text in f. The old text must match exactly including all whitespace and newlines.\nThe file is not UTF-8",
    );
}

#[test]
fn other_forms_of_the_arguments_are_taken() {
    let edit = json!({"oldText": "a", "newText": "b"});
    for arguments in [
        json!({"edits": [edit]}),
        json!({"edits": edit}),
        json!({"edits": edit.to_string()}),
        json!({"edits": json!([edit]).to_string()}),
        json!({"oldText": "a", "newText": "b"}),
        json!({"old_string": "a", "new_string": "b"}),
        json!({"edits": [{"old_string": "a", "new_string": "b"}]}),
        json!({"edits": [], "oldText": "a", "newText": "b"}),
    ] {
        let (answer, content) = run(b"a c", arguments.clone());
        assert_eq!(answer, "Successfully replaced 1 block(s) in f.", "{arguments}");
        assert_eq!(content, b"b c");
    }
    for arguments in [
        json!({"edits": [{"oldText": "a", "newText": "b", "replaceAll": true}]}),
        json!({"oldText": "a", "newText": "b", "replaceAll": "true"}),
        json!({"old_string": "a", "new_string": "b", "replace_all": true}),
        json!({"edits": edit, "replace_all": true}),
    ] {
        let (answer, content) = run(b"a a", arguments.clone());
        assert_eq!(answer, "Successfully replaced 2 block(s) in f.", "{arguments}");
        assert_eq!(content, b"b b");
    }
    let (_, content) = run(b"aaa", json!({"oldText": "aa", "newText": "b", "replaceAll": true}));
    assert_eq!(content, b"ba");
}

#[test]
fn the_details_are_those_of_the_reference() {
    let dir = TempDir::create();
    dir.write("f", "\u{feff}a\r\nb\r\nc\r\n");
    let tool = tool(Arc::new(dir.workspace()));
    let arguments = json!({"path": "f", "oldText": "b", "newText": "B\nbb"});
    let output = call(tool.as_ref(), arguments).unwrap();
    assert_eq!(
        output.details.unwrap(),
        json!({
            "diff": " 1 a\n-2 b\n+2 B\n+3 bb\n 3 c",
            "patch": "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+bb\n c\n",
            "firstChangedLine": 2,
        })
    );
}

#[test]
fn what_is_not_a_file_is_refused() {
    let dir = TempDir::create();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let tool = tool(Arc::new(dir.workspace()));
    for (path, expected) in [
        ("folder", "error: Could not edit file: folder. Error code: EISDIR."),
        ("Folder", "error: Could not edit file: Folder. Error code: ENOENT. Similar paths: folder."),
        ("missing", "error: Could not edit file: missing. Error code: ENOENT."),
        (
            "/dev/null",
            "error: Could not edit file: /dev/null. Reason: it is a device, pipe or socket, not a regular file.",
        ),
    ] {
        let result = call(tool.as_ref(), json!({"path": path, "oldText": "a", "newText": "b"}));
        assert_eq!(text(&result), expected);
    }
    symlink("/dev/null", dir.path().join("link")).unwrap();
    let large = fs::File::create(dir.path().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    let result = call(tool.as_ref(), json!({"path": "large", "oldText": "a", "newText": "b"}));
    assert_eq!(
        text(&result),
        "error: large is too large to edit in memory (1048576.0MB). Use bash with sed or a script."
    );
}

/// A backend whose file is changed by another program after the first read.
struct Meddling(PathBuf, AtomicUsize);

impl Backend for Meddling {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        if self.1.fetch_add(1, Ordering::SeqCst) == 1 {
            fs::write(&self.0, "a, changed meanwhile")?;
        }
        Local.open(path)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Local.stat(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        Local.list(path)
    }
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        Local.write(path, content)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        Local.create_dir_all(path)
    }
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Local.canonical(path)
    }
    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        Local.spawn(command)
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let dir = TempDir::create();
    let path = dir.write("f", "a");
    let mut workspace = dir.workspace();
    workspace.backend = Arc::new(Meddling(path, AtomicUsize::new(0)));
    let tool = tool(Arc::new(workspace));
    let result = call(tool.as_ref(), json!({"path": "f", "oldText": "a", "newText": "b"}));
    assert!(text(&result).starts_with("error: f was changed by another program during this edit."));
    assert_eq!(dir.read("f"), b"a, changed meanwhile");
}

#[test]
fn edits_of_one_file_at_the_same_time_all_land() {
    let dir = TempDir::create();
    let names: Vec<String> = (0..8).map(|number| format!("<{number}>")).collect();
    dir.write("f", names.join("\n"));
    symlink("f", dir.path().join("link")).unwrap();
    let tool = tool(Arc::new(dir.workspace()));
    std::thread::scope(|scope| {
        for (number, name) in names.iter().enumerate() {
            let tool = tool.as_ref();
            let path = if number % 2 == 0 { "f" } else { "link" };
            let arguments = json!({"path": path, "oldText": name, "newText": "done"});
            scope.spawn(move || call(tool, arguments).unwrap());
        }
    });
    assert_eq!(dir.read("f"), ["done"; 8].join("\n").as_bytes());
}

#[test]
fn an_aborted_call_changes_nothing() {
    let dir = TempDir::create();
    dir.write("f", "a");
    let cancel = CancelToken::new();
    cancel.cancel();
    let tool = tool(Arc::new(dir.workspace()));
    let arguments = json!({"path": "f", "oldText": "a", "newText": "b"});
    let result = call_with(tool.as_ref(), arguments, &cancel, &Model::default());
    assert_eq!(text(&result), "error: Operation aborted");
    assert_eq!(dir.read("f"), b"a");
}

/// Files with all kinds of line endings, encodings and damage.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[ab ]{1,3}".prop_map(String::into_bytes),
        2 => prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just(" \n")].prop_map(|text| text.into()),
        2 => prop_oneof![Just("é"), Just("e\u{301}"), Just("“"), Just("ﬁ"), Just("\u{a0}"), Just("\t")].prop_map(|text| text.into()),
        1 => prop_oneof![Just(b"\xff".to_vec()), Just(b"\xe9".to_vec()), Just(b"\0".to_vec()), Just(b"\xc3".to_vec())],
    ];
    let start = prop_oneof![4 => Just(""), 1 => Just("\u{feff}")];
    let text = (start, prop::collection::vec(piece, 0..20));
    (text, 0..4).prop_map(|((start, pieces), kind)| {
        let bytes = [start.as_bytes().to_vec(), pieces.concat()].concat();
        match (kind, std::str::from_utf8(&bytes)) {
            (0, Ok(text)) => Encoding::Utf16Le.encode(text).unwrap_or_default(),
            _ => bytes,
        }
    })
}

proptest! {
    #[test]
    fn bytes_outside_the_edits_stay(
        content in file(),
        olds in prop::collection::vec("[ab \"'fi\n]{1,4}", 1..3),
        new in "[xé\n\r]{0,4}",
        all: bool,
    ) {
        let edits: Vec<Edit> = olds.into_iter().map(|old| Edit { old, new: new.clone(), all }).collect();
        let file = File::decode(&content);
        prop_assert_eq!(file.encode(&file.body, "f").unwrap(), content.clone());
        let Ok(spans) = spans(&file.body, &edits, "f", &CancelToken::new()) else { return Ok(()) };
        let Ok(edited) = file.encode(&replace(&file.body, &edits, &spans), "f") else { return Ok(()) };
        // What lies between two places must follow in the same order, byte for byte.
        let mut rest = edited.as_slice();
        let mut end = 0;
        let mut length = file.mark.len();
        prop_assert!(rest.starts_with(file.mark));
        rest = &rest[file.mark.len()..];
        let encoded = |body: &[u8]| {
            let plain = File { mark: b"", encoding: file.encoding, body: body.into() };
            plain.encode(body, "f").unwrap()
        };
        for span in &spans {
            let kept = encoded(&file.body[end..span.at.start]);
            prop_assert!(rest.starts_with(&kept));
            let replacement = encoded(&ending::adapt(&new, &file.body, &span.at));
            rest = &rest[kept.len()..];
            prop_assert!(rest.starts_with(&replacement));
            rest = &rest[replacement.len()..];
            length += kept.len() + encoded(&file.body[span.at.clone()]).len();
            end = span.at.end;
        }
        prop_assert_eq!(rest, &content[length..]);
    }
}
