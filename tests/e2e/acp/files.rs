//! Files through the editor.

use super::{Answer, Editor};
use crate::agent::World;
use crate::server::{Reply, Server, gate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Tools that are called one after another, then a last word.
fn calling(words: &str, fs: Value, calls: &[(&str, Value)]) -> (World, Server, Editor, String) {
    let calls = calls.iter().map(|(tool, fields)| Reply::tool("t", tool, fields));
    let (world, server) = crate::world(calls.chain([Reply::text("done")]));
    let mut editor = Editor::start(&world, words);
    editor.initialize(json!({ "fs": fs }));
    let session = editor.new_session(&world);
    (world, server, editor, session)
}

fn both() -> Value {
    json!({"readTextFile": true, "writeTextFile": true})
}

/// What is open in the editor, by path.
type Buffers = BTreeMap<String, String>;

/// Answers the prompt's questions from `buffers`; gives what was asked, too.
fn serve(editor: &mut Editor, id: u64, buffers: &mut Buffers) -> (Answer, Vec<String>) {
    let (mut updates, mut asked) = (Vec::new(), Vec::new());
    loop {
        let mut line = editor.next();
        if line["id"] == id && line.get("method").is_none() {
            return (Answer { updates, line }, asked);
        }
        let params = line["params"].take();
        let method = line["method"].as_str().expect("a method");
        if method == "session/update" {
            updates.push(params["update"].clone());
            continue;
        }
        let path = params.pointer("/toolCall/content/0/oldText").unwrap_or(&params["path"]);
        let path = path.as_str().expect("a path").to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        asked.push(format!("{method} {name}"));
        let result = match method {
            "session/request_permission" => {
                Some(json!({"outcome": {"outcome": "selected", "optionId": "allow"}}))
            }
            "fs/read_text_file" => buffers.get(&path).map(|text| json!({"content": text})),
            _ if name == "refused" => None,
            "fs/write_text_file" => {
                let text = params["content"].as_str().expect("a text");
                buffers.insert(path, text.to_owned());
                Some(Value::Null)
            }
            other => panic!("{other}"),
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": line["id"]});
        match result {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({"code": -32603, "message": "not open here"}),
        }
        editor.send_line(&answer.to_string());
    }
}

/// The texts that the model got from its tools.
fn results(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let last = requests.last().expect("a request");
    let results = last.messages().iter().filter(|message| message["role"] == "tool");
    results.map(|result| result["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn tools_see_what_is_not_saved_and_write_where_it_stands() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "typed", "newText": "edited"}]});
    let (world, server, mut editor, session) = calling(
        "",
        both(),
        &[
            ("read", json!({"path": "a.txt"})),
            ("edit", edit),
            ("write", json!({"path": "new/b.txt", "content": "b"})),
        ],
    );
    let path = world.write("a.txt", "saved\n").to_string_lossy().into_owned();
    let mut buffers = Buffers::from([(path.clone(), "typed\n".to_owned())]);
    let id = editor.send_prompt(&session, "go");
    let (answer, asked) = serve(&mut editor, id, &mut buffers);
    assert_eq!(answer.stopped_by(), "end_turn");
    assert_eq!(buffers[&path], "edited\n");
    assert_eq!(buffers[&format!("{}/new/b.txt", world.work().display())], "b");
    // The disk is the editor's affair.
    assert_eq!(world.read("a.txt"), "saved\n");
    assert!(!world.work().join("new/b.txt").exists());
    assert_eq!(asked[0], "fs/read_text_file a.txt");
    assert_eq!(asked.last().unwrap(), "fs/write_text_file b.txt");
    assert_eq!(results(&server)[0], "typed\n");
}

#[test]
fn a_change_is_shown_against_what_is_not_saved() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "typed", "newText": "edited"}]});
    let (world, _server, mut editor, session) = calling(
        "--ask-tools writes",
        both(),
        &[("edit", edit), ("write", json!({"path": "a.txt", "content": "written\n"}))],
    );
    let path = world.write("a.txt", "saved\n").to_string_lossy().into_owned();
    let mut buffers = Buffers::from([(path.clone(), "one\ntyped\n".to_owned())]);
    let id = editor.send_prompt(&session, "go");
    let (answer, asked) = serve(&mut editor, id, &mut buffers);
    assert_eq!(buffers[&path], "written\n");
    let questions: Vec<&String> = asked.iter().filter(|asked| asked.contains("permission")).collect();
    assert_eq!(
        questions,
        ["session/request_permission one\ntyped\n", "session/request_permission one\nedited\n"]
    );
    let diffs: Vec<&Value> =
        answer.updates.iter().filter_map(|update| update.pointer("/content/0")).collect();
    let diff = |old: &str, new: &str| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    let shown: Vec<Value> = diffs.into_iter().filter(|block| block["type"] == "diff").cloned().collect();
    assert_eq!(shown, [diff("one\ntyped\n", "one\nedited\n"), diff("one\nedited\n", "written\n")]);
    let lines: Vec<&Value> =
        answer.updates.iter().filter_map(|update| update.pointer("/locations/0/line")).collect();
    assert_eq!(lines, [2, 1]);
}

#[test]
fn what_the_editor_has_no_part_in_stays_with_the_disk() {
    let (world, server, mut editor, session) = calling(
        "",
        both(),
        &[
            ("read", json!({"path": "closed.txt"})),
            ("read", json!({"path": "binary"})),
            ("read", json!({"path": "../outside.txt"})),
            ("write", json!({"path": "../written.txt", "content": "w"})),
            ("write", json!({"path": "refused", "content": "new"})),
            ("bash", json!({"command": "cat closed.txt"})),
        ],
    );
    world.write("closed.txt", "closed");
    world.write("binary", b"\0\x01\x02");
    world.write("refused", "old");
    world.write("../outside.txt", "outside");
    let id = editor.send_prompt(&session, "go");
    let (answer, asked) = serve(&mut editor, id, &mut Buffers::new());
    assert_eq!(answer.stopped_by(), "end_turn");
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    assert_eq!(
        asked,
        [
            "fs/read_text_file closed.txt",
            // For the diff, and before it is overwritten.
            "fs/read_text_file refused",
            "fs/read_text_file refused",
            "fs/write_text_file refused"
        ]
    );
    let results = results(&server);
    assert_eq!((&*results[0], &*results[2], &*results[5]), ("closed", "outside", "closed"));
    assert!(results[4].contains("the editor refused it: not open here"), "{}", results[4]);
    assert_eq!(world.read("refused"), "old");
    assert_eq!(world.read("../written.txt"), "w");
    fs::remove_file(world.work().join("../written.txt")).unwrap();
}

#[test]
fn an_editor_that_only_reads_is_not_asked_for_lines_it_may_change() {
    let reads = json!({"readTextFile": true});
    let (world, server, mut editor, session) = calling(
        "",
        reads,
        &[
            ("read", json!({"path": "unix.txt"})),
            ("edit", json!({"path": "dos.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
        ],
    );
    let path = world.write("unix.txt", "saved\n").to_string_lossy().into_owned();
    world.write("dos.txt", "one\r\n");
    let mut buffers = Buffers::from([(path, "typed\n".to_owned())]);
    let id = editor.send_prompt(&session, "go");
    let (_, asked) = serve(&mut editor, id, &mut buffers);
    assert_eq!(asked, ["fs/read_text_file unix.txt"]);
    assert_eq!(results(&server)[0], "typed\n");
    assert_eq!(world.read("dos.txt"), "two\r\n");
}

#[test]
fn a_cancel_ends_the_wait_for_the_editor() {
    let call = ("read", json!({"path": "a.txt"}));
    let (world, _server, mut editor, session) = calling("", both(), &[call]);
    world.write("a.txt", "saved");
    let id = editor.send_prompt(&session, "go");
    while editor.next()["method"] != "fs/read_text_file" {}
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.answer(id).stopped_by(), "cancelled");
    assert!(editor.client.close().unwrap().success());
}

#[test]
fn with_a_sandbox_the_editor_does_not_write() {
    if !crate::sandbox::can_confine() {
        return;
    }
    let write = ("write", json!({"path": "a.txt", "content": "x"}));
    let read = ("read", json!({"path": "b.txt"}));
    for (mode, is_written) in [("read-only", false), ("workspace", true)] {
        let words = format!("--sandbox {mode}");
        let calls = [write.clone(), read.clone()];
        let (world, server, mut editor, session) = calling(&words, both(), &calls);
        let path = world.write("b.txt", "saved").to_string_lossy().into_owned();
        let mut buffers = Buffers::from([(path, "typed".to_owned())]);
        let id = editor.send_prompt(&session, "go");
        let (_, asked) = serve(&mut editor, id, &mut buffers);
        assert_eq!(asked, ["fs/read_text_file b.txt"], "{mode}");
        let results = results(&server);
        assert_eq!(results[0].contains("sandbox"), !is_written, "{results:?}");
        assert_eq!(results[1], "typed");
        assert_eq!(world.work().join("a.txt").exists(), is_written);
    }
}

#[test]
fn a_run_that_begins_by_itself_reads_through_the_editor_after_a_cancelled_prompt() {
    let (gate_open, gate) = gate();
    let wait = "while [ ! -e go ]; do sleep 0.02; done";
    let (world, server) = crate::world([
        Reply::tool("b", "bash", &json!({"command": wait, "background": true})),
        Reply::text("started"),
        Reply::text("half").then_wait(gate),
        Reply::tool("r", "read", &json!({"path": "a.txt"})),
        Reply::text("seen"),
    ]);
    world.write("a.txt", "on the disk");
    let mut editor = Editor::start(&world, "--tools +job");
    editor.initialize(json!({ "fs": both() }));
    let session = editor.new_session(&world);
    editor.request("session/set_mode", &json!({"sessionId": session, "modeId": "free"})).result();
    assert_eq!(editor.prompt(&session, "begin").stopped_by(), "end_turn");
    let id = editor.send_prompt(&session, "more");
    editor.until_said("half");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.answer(id).stopped_by(), "cancelled");
    drop(gate_open);
    world.write("go", "");
    let asked = loop {
        let line = editor.next();
        if line["method"] == "fs/read_text_file" {
            break line["id"].clone();
        }
    };
    editor.send_line(&json!({"jsonrpc": "2.0", "id": asked, "result": {"content": "not saved"}}).to_string());
    editor.until_said("seen");
    assert!(results(&server).iter().any(|result| result.contains("not saved")), "{:?}", results(&server));
}
