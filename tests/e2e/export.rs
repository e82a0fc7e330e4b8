//! `pi export` and `--export`: sessions as pages, as Markdown, as JSON lines.

use crate::agent::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const ANSWER: &str = "## What I found\n\nThe parser **drops** the last field when a line ends in `\\r`, see [the RFC](https://www.rfc-editor.org/rfc/rfc4180) and <https://example.org>.\n\n1. Read the file\n   - in *binary* mode\n   - without translating ends of lines\n2. Split at `\\n`\n\n- [x] reproduce\n- [ ] fix\n\n| case | fields | ok |\n|:-----|------:|:--:|\n| `a,b\\n` | 2 | yes |\n| `a,b\\r\\n` | 1 | **no** |\n\n> A field may hold anything, if it is quoted.\n\n```rust\nfn fields(line: &str) -> Vec<&str> {\n    line.trim_end_matches(['\\r', '\\n']).split(',').collect() // a long comment, so that this line does not fit a telephone\n}\n```\n\n---\n\n[bad](javascript:alert(1)) and ![picture](https://example.org/x.png)";

/// A session with entries of every type, on three branches.
pub fn everything() -> Vec<Value> {
    let usage = |input: u64, output: u64| {
        json!({"input": input, "output": output, "cacheRead": 12000, "cacheWrite": 300, "totalTokens": input + output + 12300,
            "cost": {"input": 0.01, "output": 0.02, "cacheRead": 0.003, "cacheWrite": 0.001, "total": 0.034}})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let user =
        |said: &str| json!({"type": "message", "message": {"role": "user", "content": said, "timestamp": 1}});
    let answer = |content: Value, stop: &str| {
        json!({"type": "message", "message": {"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
            "model": "claude-sonnet-4-5", "usage": usage(1234, 567), "stopReason": stop, "timestamp": 1}})
    };
    let call = |id: &str, name: &str, arguments: Value| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
    let result = |id: &str, name: &str, content: Value, details: Value, bad: bool| {
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": id, "toolName": name, "content": content,
            "details": details, "isError": bad, "timestamp": 1}})
    };
    // Id, parent, entry.
    let rows: Vec<(&str, Option<&str>, Value)> = vec![
        ("info", None, json!({"type": "session_info", "name": "Fix the CSV parser"})),
        (
            "model",
            Some("info"),
            json!({"type": "model_change", "provider": "anthropic", "modelId": "claude-sonnet-4-5"}),
        ),
        ("level", Some("model"), json!({"type": "thinking_level_change", "thinkingLevel": "high"})),
        (
            "system",
            Some("level"),
            json!({"type": "message", "message": {"role": "system", "content": "",
            "sections": {"preamble": "You are a careful engineer.\nSay what you do.", "cwd": "/home/me/csv"},
            "toolsAdded": [{"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
                {"name": "bash", "description": "Runs a command.", "parameters": {}}], "timestamp": 1}}),
        ),
        ("ask", Some("system"), user("Why does the CSV parser lose the last field?\nFile: `src/csv.rs`")),
        (
            "look",
            Some("ask"),
            answer(
                json!([
                    {"type": "thinking", "thinking": "The user sees a lost field. **Line ends** are the usual suspect.\n\n- read the file\n- try a file with CRLF"},
                    text("I will look at the parser first."),
                    call("c1", "read", json!({"path": "src/csv.rs", "offset": 10, "limit": 20})),
                    call("c2", "bash", json!({"command": "printf 'a,b\\r\\n' | cargo run --quiet -- --fields --with-a-rather-long-option-that-does-not-fit\necho done"})),
                ]),
                "toolUse",
            ),
        ),
        (
            "r1",
            Some("look"),
            result(
                "c1",
                "read",
                json!([text("fn fields(line: &str) -> Vec<&str> {\n    line.split(',').collect()\n}")]),
                json!({}),
                false,
            ),
        ),
        (
            "r2",
            Some("r1"),
            result("c2", "bash", json!([text("\u{1b}[31merror\u{1b}[0m: 1 field\ndone")]), json!({}), true),
        ),
        (
            "edit",
            Some("r2"),
            answer(
                json!([
                    call(
                        "c3",
                        "edit",
                        json!({"path": "src/csv.rs", "edits": [{"oldText": "x", "newText": "y"}]})
                    ),
                    call("c4", "screenshot", json!({"window": "<main>", "scale": 2})),
                ]),
                "toolUse",
            ),
        ),
        (
            "r3",
            Some("edit"),
            result(
                "c3",
                "edit",
                json!([text("Replaced 1 block in src/csv.rs")]),
                json!({"diff": " 10 fn fields(line: &str) -> Vec<&str> {\n-11     line.split(',').collect()\n+11     line.trim_end_matches(['\\r', '\\n']).split(',').collect()\n 12 }"}),
                false,
            ),
        ),
        (
            "r4",
            Some("r3"),
            result(
                "c4",
                "screenshot",
                json!([text("Taken"), {"type": "image", "data": PIXEL, "mimeType": "image/png"}]),
                json!({}),
                false,
            ),
        ),
        ("found", Some("r4"), answer(json!([text(ANSWER)]), "stop")),
        ("label", Some("found"), json!({"type": "label", "targetId": "found", "label": "explained"})),
        // A branch that was left.
        ("left1", Some("label"), user("Rewrite it with a state machine")),
        ("left2", Some("left1"), answer(json!([text("That is a larger change. Here is a sketch.")]), "stop")),
        ("left3", Some("left2"), user("Too large. Stop.")),
        (
            "left4",
            Some("left3"),
            json!({"type": "message", "message": {"role": "assistant", "content": [], "api": "a", "provider": "p", "model": "m",
            "stopReason": "error", "errorMessage": "529 overloaded\nTry again", "timestamp": 1}}),
        ),
        ("left5", Some("left2"), user("Or with a library?")),
        // The current one.
        (
            "sum",
            Some("label"),
            json!({"type": "branch_summary", "fromId": "left4", "summary": "A state machine was **too large** a change.", "usage": usage(10, 20)}),
        ),
        (
            "ran",
            Some("sum"),
            json!({"type": "message", "message": {"role": "bashExecution", "command": "cargo test", "output": "test result: FAILED",
            "exitCode": 101, "cancelled": false, "truncated": false, "timestamp": 1}}),
        ),
        (
            "more",
            Some("ran"),
            json!({"type": "message", "message": {"role": "user", "content": [text("Add a test for this picture"),
            {"type": "image", "data": PIXEL, "mimeType": "image/png"}, {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"}], "timestamp": 1}}),
        ),
        (
            "ext",
            Some("more"),
            json!({"type": "custom_message", "customType": "linter", "content": "2 warnings", "display": true}),
        ),
        (
            "hid",
            Some("ext"),
            json!({"type": "custom_message", "customType": "hints", "content": "for the model", "display": false}),
        ),
        ("state", Some("hid"), json!({"type": "custom", "customType": "linter", "data": {"count": 42}})),
        (
            "warm",
            Some("state"),
            json!({"type": "usage", "kind": "cache_warm", "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage(0, 0)}),
        ),
        ("context", Some("warm"), json!({"type": "context_edit", "targetId": "r1", "replacement": null})),
        (
            "comp",
            Some("context"),
            json!({"type": "compaction", "summary": "### Goal\n\nThe parser keeps the last field.", "firstKeptEntryId": "more", "tokensBefore": 50000}),
        ),
        ("new", Some("comp"), json!({"type": "from_the_future", "field": [1, {"<b>": "</script>"}]})),
        ("role", Some("new"), json!({"type": "message", "message": {"role": "hologram", "x": 1}})),
        (
            "last",
            Some("role"),
            answer(
                json!([text(
                    "The test is there and passes:\n\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n```"
                )]),
                "length",
            ),
        ),
    ];
    let header = json!({"type": "session", "version": 3, "id": "0194-abcd", "timestamp": "2024-12-03T14:00:00.000Z", "cwd": "/home/me/csv"});
    let entries = rows.into_iter().enumerate().map(|(at, (id, parent, mut entry))| {
        let mut fields = serde_json::Map::new();
        fields.insert("type".into(), entry["type"].take());
        fields.insert("id".into(), id.into());
        fields.insert("parentId".into(), parent.into());
        fields.insert("timestamp".into(), format!("2024-12-03T14:{at:02}:00.000Z").into());
        for (name, value) in entry.as_object().into_iter().flatten().filter(|(name, _)| *name != "type") {
            fields.insert(name.clone(), value.clone());
        }
        Value::Object(fields)
    });
    std::iter::once(header).chain(entries).collect()
}

fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The names in the folder of work.
fn files(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.work()).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_page_goes_where_the_reference_puts_it() {
    let world = World::new();
    let file = world.write("s.jsonl", jsonl(&everything()));
    let mode = |path: &str| world.work().join(path).metadata().unwrap().permissions().mode() & 0o777;
    let before = std::fs::read(&file).unwrap();

    let run = world.pi().args(["--export", "s.jsonl"]).run();
    run.success().stdout_is("Exported to: pi-session-s.html\n");
    assert_eq!(mode("pi-session-s.html"), 0o600);
    let page = world.read("pi-session-s.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));

    // A file that exists keeps its mode, and any name gets a page.
    world.write("x.jsonl", "old");
    let path = world.work().join("x.jsonl");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = world.pi().args(["--export", "s.jsonl", "x.jsonl"]).run();
    run.success().stdout_is("Exported to: x.jsonl\n");
    assert_eq!((mode("x.jsonl"), world.read("x.jsonl")), (0o644, page));
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // The page has no other way out: a lone dash is no file, and no option.
    let run = world.pi().args(["--export", "s.jsonl", "-"]).run();
    run.fails_with(2).stderr_has("Unknown option: -");
    let run = world.pi().args(["sessions", "export", "s.jsonl", "-"]).run();
    assert!(run.success().stdout.starts_with("<!DOCTYPE html>"));
    assert_eq!(files(&world), ["pi-session-s.html", "s.jsonl", "x.jsonl"]);
}

#[test]
fn what_cannot_be_exported_is_told() {
    let world = World::new();
    world.write("s.jsonl", jsonl(&everything()));
    world.write("junk.jsonl", "junk\n");
    let work = world.work().display().to_string();
    let rows: [(&[&str], i32, String); 10] = [
        (&["--export", "no.jsonl"], 1, format!("Error: File not found: {work}/no.jsonl\n")),
        (
            &["--export", "junk.jsonl"],
            1,
            format!("Error: Session file is not a valid pi session: {work}/junk.jsonl\n"),
        ),
        (
            &["--export", "s.jsonl", "no/x.html"],
            1,
            "Error: Cannot write no/x.html: No such file or directory (os error 2)\n".into(),
        ),
        (&["--export", "s.jsonl", "."], 1, "Error: Cannot write .: is a directory\n".into()),
        (
            &["export", "s.jsonl", "./s.jsonl"],
            1,
            "Error: Cannot write ./s.jsonl: it is the session itself\n".into(),
        ),
        (&["export"], 1, "Error: There is no session of this folder to export\n".into()),
        (&["export", "nope"], 1, "Error: No session found matching 'nope'\n".into()),
        (&["export", "./no"], 1, format!("Error: File not found: {work}/./no\n")),
        (
            &["export", "s.jsonl", "--format", "pdf"],
            2,
            "Error: Invalid format \"pdf\". Valid values: html, md, jsonl\nTry pi export --help.\n".into(),
        ),
        (&["export", "a", "b", "c"], 2, "Error: Unexpected argument: c\nTry pi export --help.\n".into()),
    ];
    for (args, code, said) in rows {
        let run = world.pi().args(args).run().fails_with(code);
        assert_eq!((run.stdout, run.stderr), (String::new(), said), "{args:?}");
    }
    assert_eq!(files(&world), ["junk.jsonl", "s.jsonl"]);
}

#[test]
fn sessions_are_found_by_name_and_the_ending_chooses_the_form() {
    let world = World::new();
    let entries = everything();
    let work = world.work().to_str().unwrap().to_owned();
    let mut here = entries.clone();
    here[0]["cwd"] = work.clone().into();
    let folder = format!("sessions/--{}--", work.trim_start_matches('/').replace('/', "-"));
    std::fs::create_dir_all(world.agent_dir().join(&folder)).unwrap();
    world.write_config(&format!("{folder}/t_0194-abcd.jsonl"), &jsonl(&here));

    let newest = world.pi().args(["export"]).run().success();
    newest.stdout_is("Exported to: pi-session-t_0194-abcd.html\n");
    world.pi().args(["export", "-c", "a.md"]).run().success();
    assert!(world.read("a.md").starts_with("# Fix the CSV parser\n\n- Session: 0194-abcd\n"));
    let page = world.pi().args(["export", "0194", "-"]).run().success();
    assert_eq!(page.stdout, world.read("pi-session-t_0194-abcd.html"));
    let text = world.pi().args(["export", "-c", "-", "--format", "md"]).run();
    assert_eq!(text.success().stdout, world.read("a.md"));
}

#[test]
fn json_lines_are_the_branch_as_a_chain_or_every_line() {
    let world = World::new();
    let entries = everything();
    world.write("s.jsonl", jsonl(&entries));
    let export = |args: &[&str]| {
        let run = world.pi().args(["export", "s.jsonl", "-", "--format", "jsonl"]).args(args).run();
        crate::agent::lines(&run.success().stdout)
    };
    assert_eq!(export(&["--all"]), entries);

    let branch = export(&[]);
    let left = |entry: &&Value| !entry["id"].as_str().unwrap().starts_with("left");
    let mut expected: Vec<Value> = entries.iter().filter(left).cloned().collect();
    let mut parent = Value::Null;
    for entry in &mut expected[1..] {
        entry["parentId"] = parent;
        parent = entry["id"].clone();
    }
    assert_eq!(branch[1..], expected[1..]);
    let mut header = branch[0].clone();
    assert!(header["timestamp"].take().as_str().unwrap() > "2025");
    assert_eq!(
        header,
        json!({"type": "session", "version": 3, "id": "0194-abcd", "timestamp": null, "cwd": "/home/me/csv"})
    );
}

#[test]
fn secrets_are_taken_out_when_asked() {
    let world = World::new();
    world.write_config("auth.json", r#"{"p": {"type": "api_key", "key": "stored-secret-1"}}"#);
    let secrets = ["stored-secret-1", "variable-secret-2", "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"];
    let mut entries = everything();
    for entry in &mut entries[1..] {
        if entry["message"]["role"] == "user" {
            entry["message"]["content"] = secrets.join(" ").into();
        }
    }
    entries.push(json!({"type": "session_info", "id": "named", "parentId": "last", "timestamp": "", "name": secrets[0]}));
    world.write("s.jsonl", jsonl(&entries));
    for format in ["html", "md", "jsonl"] {
        let run = |more: &[&str]| {
            let pi =
                world.pi().env("MY_TOKEN", secrets[1]).args(["export", "s.jsonl", "-", "--format", format]);
            pi.args(more).run().success().stdout
        };
        let (all, some) = (run(&[]), run(&["--redact"]));
        for secret in secrets {
            let shown = format == "jsonl" || secret != secrets[0] || all.contains(secret);
            assert!(shown && !some.contains(secret), "{format} {secret}");
        }
        assert!(all.contains(secrets[2]) && some.contains("[redacted] [redacted] [redacted]"), "{format}");
    }
}

#[test]
fn what_configuration_and_variables_name_is_taken_out() {
    let world = World::new();
    let models = r#"{ // mine
        "providers": {"p": {"baseUrl": "http://x", "apiKey": "$WORK", "headers": {"x-a": "written-secret-1"}}}, }"#;
    world.write_config("models.json", models);
    let secrets = ["written-secret-1", "named-secret-2", "/aws+secret/3", "pat-secret-4", "pass-secret-5"];
    let path = world.work().to_string_lossy().into_owned();
    let mut entries = everything();
    let texts = [&secrets[..], &["p://me:a@b/c@host", &path]].concat();
    entries.push(json!({"type": "session_info", "id": "named", "parentId": "last", "timestamp": "", "name": texts.join(" ")}));
    world.write("s.jsonl", jsonl(&entries));
    let pi = world.pi().words("export s.jsonl - --format jsonl --redact --all");
    let pi = pi.env("WORK", secrets[1]).env("AWS_SECRET_ACCESS_KEY", secrets[2]);
    let pi = pi.env("GH_PAT", secrets[3]).env("DB_PASS", secrets[4]).env("KEY_FOLDER", &path);
    let exported = pi.run().success().stdout;
    let expected = format!("{}p://me:[redacted]@host {path}\"", "[redacted] ".repeat(5));
    assert!(exported.contains(&expected), "{exported}");
}

#[test]
fn damage_is_told_and_the_rest_is_exported() {
    let world = World::new();
    let text = jsonl(&everything());
    let lines: Vec<&str> = text.lines().collect();
    let damaged = format!("{}\n{}\n{{\"type\":\"mess\n{}", lines[0], lines[1], lines[2..].join("\n"));
    // The last line is torn.
    world.write("s.jsonl", &damaged[..damaged.len() - 10]);
    let run = world.pi().args(["--export", "s.jsonl"]).run().success();
    assert!(run.stderr.starts_with("Warning: 2 damaged lines of session "), "{}", run.stderr);
    let page = world.read("pi-session-s.html");
    assert!(page.contains("What I found") && page.contains("hologram"));
    let empty = world.write("empty.jsonl", "");
    world.pi().args(["--export", "empty.jsonl"]).run().success();
    assert_eq!(std::fs::read(empty).unwrap(), b"");
}
