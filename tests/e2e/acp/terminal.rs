//! Commands in terminals of the editor.

use super::{Answer, Editor};
use crate::server::{Reply, Server};
use serde_json::{Value, json};

/// A command for `bash`, then a last word.
fn running(words: &str, command: &str, able: &Value) -> (crate::agent::World, Server, Editor, String) {
    let (world, server) =
        crate::world([Reply::tool("c1", "bash", &json!({"command": command})), Reply::text("done")]);
    let mut editor = Editor::start(&world, words);
    editor.initialize(able.clone());
    let session = editor.new_session(&world);
    (world, server, editor, session)
}

/// Answers requests by `answer`; none leaves one unanswered. Gives the answer to `id`, and what was asked for.
fn serve(editor: &mut Editor, id: u64, answer: impl Fn(&str) -> Option<Value>) -> (Answer, Vec<Value>) {
    let (mut updates, mut asked) = (Vec::new(), Vec::new());
    loop {
        let mut line = editor.next();
        if line["id"] == id && line.get("method").is_none() {
            return (Answer { updates, line }, asked);
        }
        if line["method"] == "session/update" {
            updates.push(line["params"]["update"].take());
            continue;
        }
        if let Some(answer) = answer(line["method"].as_str().unwrap()) {
            let mut response = json!({"jsonrpc": "2.0", "id": line["id"]});
            response.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
            editor.send_line(&response.to_string());
        }
        asked.push(line);
    }
}

fn methods(asked: &[Value]) -> Vec<&str> {
    asked.iter().map(|line| line["method"].as_str().unwrap()).collect()
}

const ABLE: &str = r#"{"terminal": true}"#;

#[test]
fn a_command_runs_in_a_terminal_whose_output_the_model_gets() {
    let able: Value = serde_json::from_str(ABLE).unwrap();
    for (code, truncated, told) in [
        (0, false, "out"),
        (3, false, "out\n\n\nCommand exited with code 3"),
        (0, true, "[The editor kept the end of the output only]\nout"),
    ] {
        let (world, server, mut editor, session) = running("", "make it", &able);
        let id = editor.send_prompt(&session, "x");
        let (answer, asked) = serve(&mut editor, id, |method| {
            Some(json!({"result": match method {
                "terminal/create" => json!({"terminalId": "t7"}),
                "terminal/wait_for_exit" => json!({"exitCode": code, "signal": null}),
                "terminal/output" => json!({"output": "out\n", "truncated": truncated}),
                _ => json!({}),
            }}))
        });
        let all = ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"];
        assert_eq!(methods(&asked), all);
        let params = &asked[0]["params"];
        assert_eq!((&params["command"], &params["args"]), (&json!("bash"), &json!(["-c", "make it"])));
        assert_eq!(params["cwd"], world.work().to_str().unwrap());
        let env = params["env"].to_string();
        assert!(env.contains("PI_SESSION_ID") && !env.contains("HOME"), "{env}");
        assert_eq!(asked[3]["params"], json!({"sessionId": session, "terminalId": "t7"}));
        let shown: Vec<&Value> = answer
            .updates
            .iter()
            .filter(|update| update["toolCallId"] == "c1")
            .map(|update| &update["content"])
            .collect();
        assert_eq!(shown[2..], [&json!([{"type": "terminal", "terminalId": "t7"}]), &Value::Null]);
        assert_eq!(answer.stopped_by(), "end_turn");
        assert_eq!(server.requests()[1].last_text().trim_end(), told);
    }
}

#[test]
fn a_terminal_is_killed_with_the_turn_and_always_released() {
    let able: Value = serde_json::from_str(ABLE).unwrap();
    for held in ["terminal/create", "terminal/wait_for_exit"] {
        let (_world, _server, mut editor, session) = running("", "sleep 100", &able);
        let id = editor.send_prompt(&session, "x");
        let waiting = loop {
            let line = editor.next();
            if line["method"] == held {
                break line;
            }
            if line["method"] == "terminal/create" {
                let made = json!({"jsonrpc": "2.0", "id": line["id"], "result": {"terminalId": "t1"}});
                editor.send_line(&made.to_string());
            }
        };
        editor.notify("session/cancel", &json!({"sessionId": session}));
        let is_killed = held == "terminal/wait_for_exit";
        if !is_killed {
            // Nobody waits for it any more.
            assert_eq!(serve(&mut editor, id, |_| None).0.stopped_by(), "cancelled");
            let made = json!({"jsonrpc": "2.0", "id": waiting["id"], "result": {"terminalId": "t1"}});
            editor.send_line(&made.to_string());
            let line = editor.next();
            assert_eq!(
                (&line["method"], &line["params"]["terminalId"]),
                (&json!("terminal/release"), &json!("t1"))
            );
            continue;
        }
        let (answer, asked) =
            serve(&mut editor, id, |_| Some(json!({"result": {"output": "", "truncated": false}})));
        assert_eq!(answer.stopped_by(), "cancelled");
        assert_eq!(methods(&asked), ["terminal/kill", "terminal/output", "terminal/release"]);
    }
}

#[test]
fn a_command_runs_here_where_no_terminal_can_be_had() {
    let able: Value = serde_json::from_str(ABLE).unwrap();
    for (words, able) in [
        ("", able.clone()),
        ("", json!({})),
        #[cfg(target_os = "linux")]
        ("--sandbox workspace", able),
    ] {
        let (_world, server, mut editor, session) = running(words, "echo here", &able);
        let id = editor.send_prompt(&session, "x");
        let (answer, asked) =
            serve(&mut editor, id, |_| Some(json!({"error": {"code": -32603, "message": "no"}})));
        assert_eq!(answer.stopped_by(), "end_turn");
        assert_eq!(asked.len(), usize::from(words.is_empty() && able["terminal"] == true));
        assert_eq!(server.requests()[1].last_text().trim_end(), "here");
    }
}
