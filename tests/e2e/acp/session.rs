//! Sessions that an editor names, lists and opens again.

use super::{Editor, start};
use crate::server::{Reply, Step};
use crate::world;
use serde_json::{Value, json};

#[test]
fn a_session_is_titled_by_the_first_line_that_was_typed() {
    let (world, _server, mut editor) = start([Reply::text("a"), Reply::text("b")]);
    let id = editor.new_session(&world);
    let prompt = json!([
        {"type": "text", "text": format!("  Explain\tthis\nat length {}", "x".repeat(5000))},
        {"type": "resource", "resource": {"uri": "file:///a.rs", "text": "fn a() {}"}},
    ]);
    let answer = editor.request("session/prompt", &json!({"sessionId": id, "prompt": prompt}));
    let told = |updates: &[Value]| -> Vec<Value> {
        let updates = updates.iter();
        let infos = updates.filter(|update| update["sessionUpdate"] == "session_info_update");
        infos.map(|update| update["title"].clone()).collect()
    };
    assert_eq!(told(&answer.updates), ["Explain this"]);
    assert_eq!(told(&editor.prompt(&id, "And now?").updates), [""; 0]);
    let listed = editor.request("session/list", &json!({})).result();
    assert_eq!(listed["sessions"][0]["title"], "Explain this");
}

#[test]
fn a_prompt_whose_session_fails_inside_is_answered() {
    let (world, _server) = world([Reply::text("one")]);
    let mut editor = Editor::of(world.pi().words("--mode acp").env("PI_FAIL", "session.write:3:panic"));
    let id = editor.new_session(&world);
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hi"}]});
    for reason in ["Failed inside", "open it again"] {
        let (_, said) = editor.request("session/prompt", &prompt).error();
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_conversation_is_told_anew_as_it_was_typed() {
    let (world, server) = world([Reply::text("a"), Reply::text("b")]);
    world.write(".pi/skills/demo/SKILL.md", "---\nname: demo\ndescription: Shows\n---\nThe whole skill.");
    let mut editor = Editor::start(&world, "--approve");
    let id = editor.new_session(&world);
    let resource =
        json!({"type": "resource", "resource": {"uri": "file:///p/a.rs#L3:4", "text": "fn a() {}"}});
    for text in ["/skill:demo now", "Explain "] {
        let prompt = json!([{"type": "text", "text": text}, resource]);
        editor.request("session/prompt", &json!({"sessionId": id, "prompt": prompt})).result();
    }
    let requests = server.requests();
    assert!(requests[0].last_text().contains("The whole skill."), "{}", requests[0].last_text());
    assert!(requests[1].last_text().ends_with("lines=\"3-4\">\nfn a() {}\n</file>"));
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    let loaded = editor.request("session/load", &place);
    let blocks: Vec<(&Value, &Value)> = loaded
        .updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .map(|update| (&update["messageId"], &update["content"]))
        .collect();
    let link = json!({"type": "resource_link", "uri": "file:///p/a.rs#L3:4", "name": "a.rs"});
    let contents: Vec<&Value> = blocks.iter().map(|(_, content)| *content).collect();
    assert_eq!(
        contents,
        [
            &json!({"type": "text", "text": "/skill:demo now"}),
            &link,
            &json!({"type": "text", "text": "Explain /p/a.rs (lines 3-4)"}),
            &link
        ]
    );
    assert!(blocks[0].0 == blocks[1].0 && blocks[1].0 != blocks[2].0, "one id for each message");
}

#[test]
fn a_session_that_was_never_prompted_can_be_opened_again() {
    let (world, _server, mut editor) = start([Reply::text("a")]);
    let id = editor.new_session(&world);
    assert!(editor.client.close().unwrap().success());
    assert_eq!(world.session_files().len(), 0);
    let mut editor = Editor::start(&world, "");
    editor.initialize(json!({"session": {"notices": {}}}));
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    editor.request("session/load", &place).result();
    assert_eq!(
        editor.next()["params"]["update"]["title"],
        "Nothing is stored of this session; it begins anew."
    );
    assert_eq!(editor.prompt(&id, "x").stopped_by(), "end_turn");
    assert_eq!(world.session()[0]["id"], id.as_str());
    // Of another folder it is no session, stored or not.
    drop(editor);
    let other = world.write("other/a", "").parent().unwrap().to_owned();
    let mut editor = Editor::start(&world, "");
    let place = json!({"cwd": other, "sessionId": id, "mcpServers": []});
    assert_eq!(editor.request("session/load", &place).error().0, -32002);
}

#[test]
fn a_prompt_that_a_crash_left_without_an_answer_is_still_there() {
    let (world, _server, mut editor) = start([Reply::text("half").then(Step::Stall)]);
    let id = editor.new_session(&world);
    editor.send_prompt(&id, "the question");
    editor.until_said("half");
    // Dropped, it is killed.
    drop(editor);
    let mut editor = Editor::start(&world, "");
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    let loaded = editor.request("session/load", &place);
    assert_eq!(loaded.said("user_message_chunk"), "the question");
}

#[test]
fn a_session_in_use_is_refused_in_words_for_an_editor() {
    let (world, _server, mut editor) = start([Reply::text("a")]);
    let id = editor.new_session(&world);
    editor.prompt(&id, "x").result();
    let mut other = Editor::start(&world, "");
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    let (code, text) = other.request("session/load", &place).error();
    assert_eq!(code, -32603);
    assert!(text.contains("in use by process") && !text.contains("--fork"), "{text}");
}

#[test]
fn a_missing_folder_is_a_wrong_parameter() {
    let (world, _server, mut editor) = start([]);
    let gone = world.work().join("gone");
    let params = json!({"cwd": gone, "sessionId": "x", "mcpServers": []});
    for method in ["session/new", "session/load", "session/resume"] {
        let (code, text) = editor.request(method, &params).error();
        assert_eq!(code, -32602, "{method}");
        assert!(text.contains("gone"), "{text}");
    }
}

#[test]
fn extensions_take_part_in_a_session_of_an_editor() {
    let call = Reply::tool("t1", "hello", &json!({"name": "Ada"}));
    let (world, server) = world([call, Reply::text("done")]);
    let arms = r#"
    *'"type":"tool_call"'*) saved=$id; call q ui.confirm '{"title":"Sure?","message":"It says hello"}' ;;
    *'"id":"q"'*) case $line in *'"confirmed":true'*) ok null "$saved" ;; *) ok '{"block":true}' "$saved" ;; esac ;;
    *'"method":"tool.call"'*) ok '"Hello Ada."' ;;
    *'"method":"command.run"'*) call n ui.notify '{"message":"it ran"}'; ok null ;;
"#;
    let mut fields = crate::extension::hello();
    fields["events"] = json!(["tool_call"]);
    fields["commands"] = json!([{"name": "do", "description": "Does"}]);
    crate::extension::install(&world, "ext", &fields, arms);
    let mut editor = Editor::start(&world, "");
    let session = editor.new_session(&world);
    let id = editor.send_prompt(&session, "hi");
    let mut asked = 0;
    let answer = loop {
        let line = editor.next();
        if line["method"] == "session/request_permission" {
            asked += 1;
            assert!(line["params"]["toolCall"].to_string().contains("Sure?"), "{line}");
            let first = &line["params"]["options"][0]["optionId"];
            let chosen = json!({"outcome": {"outcome": "selected", "optionId": first}});
            editor.send_line(&json!({"jsonrpc": "2.0", "id": line["id"], "result": chosen}).to_string());
        }
        if line["id"] == id && line.get("method").is_none() {
            break line;
        }
    };
    assert_eq!((asked, &answer["result"]["stopReason"]), (1, &json!("end_turn")));
    assert!(server.requests()[1].messages().iter().any(|message| message["content"] == "Hello Ada."));
    let told = editor.prompt(&session, "/do it");
    assert!(told.updates.iter().any(|update| update.to_string().contains("it ran")), "{:?}", told.updates);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn further_folders_belong_to_the_workspace() {
    let (world, server) = world([
        Reply::tool("c1", "bash", &json!({"command": "echo x > \"$HOME/other/made\""})),
        Reply::text("a"),
        Reply::tool("c2", "read", &json!({"path": "~/other/open.txt"})),
        Reply::text("b"),
        Reply::text("c"),
    ]);
    let other = world.home().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("open.txt"), "on the disk").unwrap();
    let words = if cfg!(target_os = "linux") { "--sandbox workspace" } else { "" };
    let mut editor = Editor::start(&world, words);
    let able = json!({"fs": {"readTextFile": true}});
    assert!(
        editor.initialize(able)["agentCapabilities"]["sessionCapabilities"]["additionalDirectories"]
            .is_object()
    );
    let params =
        |folders: Value| json!({"cwd": world.work(), "mcpServers": [], "additionalDirectories": folders});
    for (folders, told) in [
        (json!(["relative"]), "must be absolute paths"),
        (json!("/"), "must be a list"),
        (json!(["/no/such/folder"]), "There is no folder /no/such/folder"),
    ] {
        let (code, text) = editor.request("session/new", &params(folders)).error();
        assert!(code == -32602 && text.contains(told), "{text}");
    }
    let opened = editor.request("session/new", &params(json!([other]))).result();
    let id = opened["sessionId"].as_str().unwrap();
    assert_eq!(editor.prompt(id, "x").stopped_by(), "end_turn");
    assert_eq!(std::fs::read_to_string(other.join("made")).unwrap(), "x\n");
    let prompt = editor.send_prompt(id, "y");
    let question = loop {
        let line = editor.next();
        if line["method"] == "fs/read_text_file" {
            break line;
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"content": "in the editor"}});
    editor.send_line(&answer.to_string());
    assert_eq!(editor.answer(prompt).stopped_by(), "end_turn");
    let requests = server.requests();
    assert_eq!(requests[3].last_text(), "in the editor");
    let listed = format!("- {}", other.display());
    assert!(
        requests[0].body["messages"][0].to_string().contains(&listed),
        "{}",
        requests[0].body["messages"][0]
    );
    // The list of a session that is opened again is the whole list.
    let mut place = params(Value::Null);
    place["sessionId"] = id.into();
    editor.request("session/resume", &place).result();
    editor.prompt(id, "z");
    assert!(!server.requests()[4].body["messages"][0].to_string().contains(&listed));
}
