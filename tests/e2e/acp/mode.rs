//! Modes of a session, and the approval of calls.

use super::{Answer, Editor};
use crate::agent::{World, wait_until};
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

fn open(editor: &mut Editor, world: &World) -> (String, Value) {
    let opened = editor.request("session/new", &json!({"cwd": world.work(), "mcpServers": []})).result();
    (opened["sessionId"].as_str().unwrap().to_owned(), opened)
}

fn write(id: &str, name: &str) -> Reply {
    Reply::tool(id, "write", &json!({"path": name, "content": "new\n"}))
}

/// Waits for a request of pi.
fn asked(editor: &mut Editor, method: &str) -> Value {
    loop {
        let line = editor.next();
        if line["method"] == method {
            return line;
        }
    }
}

/// Answers a question with the option of this name.
fn choose(editor: &mut Editor, question: &Value, name: &str) {
    let options = question["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["name"] == name);
    let id = &option.unwrap_or_else(|| panic!("no {name} in {options:?}"))["optionId"];
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": id}});
    editor.send_line(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}).to_string());
}

fn set_mode(editor: &mut Editor, session: &str, mode: &str) -> Answer {
    editor.request("session/set_mode", &json!({"sessionId": session, "modeId": mode}))
}

#[test]
fn the_users_choice_decides_on_the_mode_and_else_changes_are_asked_about() {
    let all = ["writes", "all", "free", "read-only", "plan"];
    for (settings, words, mode) in [
        ("{}", "", "writes"),
        (r#"{"permissions": {"mode": "free"}}"#, "", "free"),
        (r#"{"permissions": {"mode": "read-only"}}"#, "", "read-only"),
        ("{}", "--ask-tools all", "all"),
        ("{}", "--ask-tools bash", "named"),
        ("{}", "--exclude-tools plan", "writes"),
        #[cfg(target_os = "linux")]
        ("{}", "--sandbox workspace", "free"),
    ] {
        let (world, _server) = world([]);
        world.write_config("settings.json", settings);
        let mut editor = Editor::start_as_it_is(&world, words);
        let (_, opened) = open(&mut editor, &world);
        let modes = &opened["modes"];
        assert_eq!(modes["currentModeId"], mode, "{settings} {words}");
        let offered = modes["availableModes"].as_array().unwrap().iter();
        let offered: Vec<&str> = offered.map(|mode| mode["id"].as_str().unwrap()).collect();
        let mut expected = all.to_vec();
        expected.retain(|mode| *mode != "plan" || !words.contains("plan"));
        if mode == "named" {
            expected.insert(4, mode);
        }
        assert_eq!(offered, expected);
    }
    let (world, _server) = world([]);
    let mut editor = Editor::start(&world, "--read-only");
    assert_eq!(open(&mut editor, &world).1.get("modes"), None);
}

#[test]
fn a_mode_holds_from_the_next_call_on() {
    let (world, server) =
        world([write("c1", "a.txt"), Reply::text("a"), write("c2", "b.txt"), Reply::text("b")]);
    let mut editor = Editor::start_as_it_is(&world, "");
    let (id, _) = open(&mut editor, &world);
    assert_eq!(set_mode(&mut editor, &id, "no").error().0, -32602);
    for (mode, name) in [("read-only", "a.txt"), ("free", "b.txt")] {
        set_mode(&mut editor, &id, mode).result();
        let prompted = editor.prompt(&id, "x");
        let told = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        let updates = prompted.conversation();
        assert_eq!(*updates[0], told);
        assert_eq!(updates[1]["sessionUpdate"], "config_option_update");
        assert_eq!(world.work().join(name).exists(), mode == "free");
    }
    let requests = server.requests();
    assert_eq!(requests[0].body["tools"], requests[3].body["tools"], "the prompt's beginning stays the same");
    assert!(requests[1].last_text().starts_with("Read-only mode"), "{}", requests[1].last_text());
}

#[test]
fn a_plan_that_is_accepted_changes_the_mode() {
    let plan = Reply::tool("c1", "plan", &json!({"text": "# Steps"}));
    let (world, _server) = world([plan, write("c2", "a.txt"), Reply::text("done")]);
    let mut editor = Editor::start_as_it_is(&world, "");
    let (id, _) = open(&mut editor, &world);
    let told = set_mode(&mut editor, &id, "plan");
    assert!(told.updates.iter().any(|update| update["currentModeId"] == "plan"), "{:?}", told.updates);
    told.result();
    let prompt = editor.send_prompt(&id, "x");
    let question = asked(&mut editor, "session/request_permission");
    choose(&mut editor, &question, "Accept");
    let told = asked(&mut editor, "session/update")["params"]["update"].take();
    assert_eq!(told, json!({"sessionUpdate": "current_mode_update", "currentModeId": "writes"}));
    let question = asked(&mut editor, "session/request_permission");
    assert_eq!(question["params"]["toolCall"]["title"], "Write a.txt");
    choose(&mut editor, &question, "Allow");
    assert_eq!(editor.answer(prompt).stopped_by(), "end_turn");
    assert!(world.work().join("a.txt").exists());
}

#[test]
fn an_answer_holds_once_or_as_a_rule() {
    let replies = [0, 1, 2, 2, 3, 4, 4, 5]
        .into_iter()
        .flat_map(|n| [write("c", &format!("{n}/x.txt")), Reply::text("ok")]);
    let (world, _server) = world(replies);
    let mut editor = Editor::start_as_it_is(&world, "--approve");
    let (id, _) = open(&mut editor, &world);
    let kinds = [
        "allow_once",
        "allow_always",
        "allow_always",
        "allow_always",
        "allow_always",
        "reject_once",
        "reject_always",
    ];
    for (at, choice) in [
        (0, Some("Allow")),
        (1, Some("Deny")),
        (2, Some("Always allow write in 2 (everywhere)")),
        (2, None),
        (3, Some("Always allow write in 3 (this folder)")),
        (4, Some("Never allow write in 4 (this session)")),
        (4, None),
        (5, Some("Always allow every call of write (this session)")),
    ] {
        let prompt = editor.send_prompt(&id, "x");
        if let Some(choice) = choice {
            let question = asked(&mut editor, "session/request_permission");
            let params = &question["params"];
            assert_eq!(params["sessionId"], id.as_str());
            assert_eq!(params["toolCall"]["title"], format!("Write {at}/x.txt"));
            assert_eq!(params["toolCall"]["content"][0]["newText"], "new\n");
            let options = params["options"].as_array().unwrap().iter();
            assert_eq!(options.map(|option| option["kind"].as_str().unwrap()).collect::<Vec<_>>(), kinds);
            choose(&mut editor, &question, choice);
        }
        assert_eq!(editor.answer(prompt).stopped_by(), "end_turn");
        assert_eq!(world.work().join(format!("{at}/x.txt")).exists(), at != 1 && at != 4, "{at}");
    }
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(world.agent_dir().join("settings.json")).unwrap())
            .unwrap();
    assert_eq!(settings["permissions"]["allow"], json!(["write(2/**)"]));
    assert_eq!(settings["permissions"]["folders"][world.work().to_str().unwrap()], json!(["write(3/**)"]));
}

#[test]
fn a_cancel_ends_the_wait_for_a_handler_of_the_prompt() {
    let (world, server) = world([]);
    let events = json!({"events": ["input"]});
    crate::extension::install(&world, "x", &events, "    *'\"type\":\"input\"'*) ;;\n");
    let mut editor = Editor::start(&world, "");
    let (id, _) = open(&mut editor, &world);
    let prompt = editor.send_prompt(&id, "x");
    wait_until("the handler is asked", || !crate::extension::events(&world).is_empty());
    editor.notify("session/cancel", &json!({"sessionId": id}));
    assert_eq!(editor.answer(prompt).stopped_by(), "cancelled");
    assert!(server.requests().is_empty());
}

#[test]
fn a_cancel_ends_the_wait_for_an_answer() {
    let (world, _server) = world([write("c", "c.txt")]);
    let mut editor = Editor::start_as_it_is(&world, "");
    let (id, _) = open(&mut editor, &world);
    let prompt = editor.send_prompt(&id, "x");
    asked(&mut editor, "session/request_permission");
    editor.notify("session/cancel", &json!({"sessionId": id}));
    assert_eq!(editor.answer(prompt).stopped_by(), "cancelled");
    assert!(!world.work().join("c.txt").exists());
}
