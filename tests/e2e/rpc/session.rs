//! One conversation after another, and what is stored of each.

use super::{client, conversation, start, until_text};
use crate::server::{Reply, Step};
use crate::world;
use serde_json::{Value, json};

#[test]
fn a_new_session_ends_the_run_and_leaves_the_old_one_stored() {
    let (world, _server, mut client) = start([Reply::text("half").then(Step::Stall), Reply::text("second")]);
    let first = client.state().unwrap();
    client.prompt("one").unwrap();
    until_text(&mut client);
    let new = json!({"parentSession": first.session_file});
    let answer = client.request("new_session", new).unwrap();
    assert_eq!(answer, json!({"cancelled": false}));
    let second = client.state().unwrap();
    assert_ne!(first.session_id, second.session_id);
    assert_eq!((second.message_count, second.pending_message_count), (0, 0));
    client.wait_until_settled().unwrap();
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();

    let path = json!({"sessionPath": first.session_file});
    client.request("switch_session", path).unwrap();
    assert_eq!(client.state().unwrap().session_id, first.session_id);
    assert_eq!(conversation(&mut client), ["user: one", "assistant: half"]);
    // The session that is open can be opened again.
    let path = json!({"sessionPath": first.session_file});
    client.request("switch_session", path).unwrap();
    assert_eq!(conversation(&mut client), ["user: one", "assistant: half"]);
    assert!(client.close().unwrap().success());
    let file = std::fs::read_to_string(second.session_file.unwrap()).unwrap();
    let header: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    assert_eq!(header["parentSession"], json!(first.session_file));
    assert_eq!(world.session_files().len(), 2);
}

#[test]
fn modes_and_switches_outlive_a_conversation() {
    let (world, _server, mut client) = start([]);
    for (command, fields) in [
        ("set_steering_mode", json!({"mode": "all"})),
        ("set_follow_up_mode", json!({"mode": "all"})),
        ("set_interrupt_mode", json!({"mode": "immediate"})),
        ("set_auto_compaction", json!({"enabled": false})),
        ("set_auto_retry", json!({"enabled": true})),
        ("new_session", Value::Null),
    ] {
        client.request(command, fields).unwrap();
    }
    let state = client.request("get_state", Value::Null).unwrap();
    let keys = ["steeringMode", "followUpMode", "interruptMode", "autoCompactionEnabled", "autoRetryEnabled"];
    assert_eq!(
        keys.map(|key| state[key].clone()),
        [json!("all"), json!("all"), json!("immediate"), json!(false), json!(true)]
    );
    let settings = std::fs::read(world.agent_dir().join("settings.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&settings).unwrap(),
        json!({"retry": {"enabled": true}, "steeringMode": "all", "followUpMode": "all",
            "compaction": {"enabled": false}})
    );
}

#[test]
fn nothing_is_stored_on_request() {
    let (world, _server) = crate::world([Reply::text("a")]);
    let mut client = client(&world, "--no-session");
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(client.state().unwrap().session_file, None);
    client.request("new_session", Value::Null).unwrap();
    assert_eq!(client.state().unwrap().message_count, 0);
    drop(client);
    assert_eq!(world.session_files().len(), 0);
}

#[test]
fn entries_are_read_from_a_cursor_on() {
    let (_world, _server, mut client) = start([Reply::text("a"), Reply::text("b")]);
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    let before = client.request("get_entries", Value::Null).unwrap();
    let last = before["entries"].as_array().unwrap().last().unwrap()["id"].clone();
    assert_eq!(before["leafId"], last);
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();
    let after = client.request("get_entries", json!({"since": last})).unwrap();
    let roles: Vec<&Value> =
        after["entries"].as_array().unwrap().iter().map(|entry| &entry["message"]["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);

    let page = client.request("get_messages", json!({"offset": 1, "limit": 2})).unwrap();
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    assert_eq!((&page["total"], &page["nextOffset"]), (&json!(5), &json!(3)));
    let page = client.request("get_messages", json!({"offset": 9})).unwrap();
    assert_eq!(page, json!({"messages": [], "total": 5, "nextOffset": null}));
}

#[test]
fn a_fork_begins_before_a_message_and_a_clone_at_the_end() {
    let (world, _server, mut client) = start([Reply::text("a"), Reply::text("b")]);
    assert_eq!(
        super::refusal(&mut client, "fork", json!({"entryId": "nope"})),
        "Invalid entry ID for forking"
    );
    assert_eq!(
        super::refusal(&mut client, "clone", Value::Null),
        "This session has not been saved yet. Wait for the first assistant response before cloning or forking it."
    );
    for text in ["one", "two"] {
        client.prompt(text).unwrap();
        client.wait_until_settled().unwrap();
    }
    let first = client.state().unwrap();
    let points = client.request("get_fork_messages", Value::Null).unwrap();
    let texts: Vec<&Value> =
        points["messages"].as_array().unwrap().iter().map(|point| &point["text"]).collect();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(client.request("clone", Value::Null).unwrap(), json!({"cancelled": false}));
    assert_ne!(client.state().unwrap().session_id, first.session_id);
    assert_eq!(conversation(&mut client).len(), 4);
    let fork = json!({"entryId": points["messages"][1]["entryId"]});
    let forked = client.request("branch", fork).unwrap();
    assert_eq!(forked, json!({"text": "two", "cancelled": false}));
    assert_eq!(conversation(&mut client), ["user: one", "assistant: a"]);
    assert_eq!(world.session_files().len(), 3);
}

#[test]
fn a_conversation_becomes_a_page() {
    let (world, _server, mut client) = start([Reply::text("the answer")]);
    let reason = super::refusal(&mut client, "export_html", Value::Null);
    assert_eq!(reason, "Nothing to export yet - start a conversation first");
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    let exported = client.request("export_html", json!({"outputPath": "page.html"})).unwrap();
    let path = world.work().join("page.html");
    assert_eq!(exported, json!({"path": path.to_string_lossy()}));
    assert!(std::fs::read_to_string(path).unwrap().contains("the answer"));
    let nowhere = json!({"outputPath": "none/such/folder/page.html"});
    assert_ne!(super::refusal(&mut client, "export_html", nowhere), "");
}

#[test]
fn a_compaction_is_answered_and_told() {
    let (world, _server) = crate::world([Reply::text("a"), Reply::text("b"), Reply::text("the summary")]);
    world.write_config(
        "settings.json",
        r#"{"retry": {"enabled": false}, "compaction": {"keepRecentTokens": 10}}"#,
    );
    let mut client = client(&world, "");
    assert_eq!(super::refusal(&mut client, "compact", Value::Null), "Nothing to compact (session too small)");
    client.events_until("compaction_end").unwrap();
    for text in ["one ".repeat(100), "two ".repeat(100)] {
        client.prompt(&text).unwrap();
        client.wait_until_settled().unwrap();
    }
    let result = client.request("compact", json!({"customInstructions": "short"})).unwrap();
    assert!(result["summary"].as_str().unwrap().contains("the summary"), "{result}");
    let end = client.events_until("compaction_end").unwrap();
    assert_eq!(end.last().unwrap()["result"], result);
    assert!(!client.state().unwrap().is_compacting);
    let usage = client.request("get_session_stats", Value::Null).unwrap()["contextUsage"].take();
    assert_eq!(usage["tokens"], Value::Null);
    assert_eq!(super::refusal(&mut client, "compact", Value::Null), "Already compacted");
}

#[test]
fn another_branch_records_what_holds_there() {
    let (world, server) = crate::world((0..3).map(|number| Reply::text(&number.to_string())));
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m1", "reasoning": true}, {"id": "m2", "reasoning": true}]}}});
    world.write_config("models.json", &models.to_string());
    let mut client = super::client(&world, "--model mock/m1 --thinking off");
    client.request("set_active_tools", json!({"toolNames": ["read"]})).unwrap();
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    client.request("set_model", json!({"provider": "mock", "modelId": "m2"})).unwrap();
    client.request("set_thinking_level", json!({"level": "high"})).unwrap();
    client.request("set_active_tools", json!({"toolNames": ["read", "ls"]})).unwrap();
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();
    let entries = client.request("get_entries", Value::Null).unwrap();
    let entries = entries["entries"].as_array().unwrap();
    let is_answer = |entry: &&Value| entry["message"]["role"] == "assistant";
    let first = entries.iter().find(is_answer).unwrap()["id"].clone();
    client.request("navigate_tree", json!({"targetId": first})).unwrap();
    // The tools are those of the branch; model and level stay, and are recorded with the prompt.
    let state = client.request("get_state", Value::Null).unwrap();
    assert_eq!(state["activeTools"], json!(["read"]));
    let last = entries.last().unwrap()["id"].clone();
    client.prompt("three").unwrap();
    client.wait_until_settled().unwrap();
    let added = client.request("get_entries", json!({"since": last})).unwrap();
    let kinds = |entries: &Value| -> Vec<String> {
        let entries = entries.as_array().unwrap().iter();
        let words = entries.map(|entry| match entry["message"]["role"].as_str() {
            Some(role) => role.to_owned(),
            None => entry["type"].as_str().unwrap().to_owned(),
        });
        words.collect()
    };
    assert_eq!(kinds(&added["entries"]), ["model_change", "thinking_level_change", "user", "assistant"]);
    assert_eq!(added["entries"][0]["modelId"], "m2");
    assert_eq!(added["entries"][1]["thinkingLevel"], "high");
    assert_eq!(server.requests()[2].body["model"], "m2");
}

#[test]
fn the_tree_is_shown_and_moved_in() {
    let (open, held) = crate::server::gate();
    let (_world, _server, mut client) =
        start([Reply::text("a"), Reply::text("b"), Reply::text("c").then_wait(held)]);
    for text in ["one", "two"] {
        client.prompt(text).unwrap();
        client.wait_until_settled().unwrap();
    }
    let points = client.request("get_fork_messages", Value::Null).unwrap();
    let second = points["messages"][1]["entryId"].clone();
    let moved = client.request("navigate_tree", json!({"targetId": second, "label": "here"})).unwrap();
    assert_eq!(moved, json!({"cancelled": false, "editorText": "two"}));
    assert_eq!(conversation(&mut client), ["user: one", "assistant: a"]);
    client.prompt("three").unwrap();
    super::until_text(&mut client);
    assert_eq!(
        super::refusal(&mut client, "navigate_tree", json!({"targetId": second})),
        "Wait for the current response to finish before navigating the session tree."
    );
    let tree = client.request("get_tree", Value::Null).unwrap();
    assert!(tree["leafId"].is_string());
    let text = tree["tree"].to_string();
    assert!(text.contains("\"label\":\"here\""), "{text}");
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(conversation(&mut client), ["user: one", "assistant: a", "user: three", "assistant: c"]);
    assert_eq!(
        super::refusal(&mut client, "navigate_tree", json!({"targetId": "nope"})),
        "Entry nope not found"
    );
}

#[test]
fn templates_are_listed_and_expanded() {
    let (world, server) = crate::world([Reply::text("a")]);
    std::fs::create_dir(world.agent_dir().join("prompts")).unwrap();
    world.write_config("prompts/greet.md", "Say hello to $1");
    let mut client = client(&world, "");
    let commands = client.request("get_commands", Value::Null).unwrap();
    let names: Vec<_> =
        commands["commands"].as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert!(names.contains(&&json!("greet")), "{names:?}");
    client.prompt("/greet Ada").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests()[0].last_text(), "Say hello to Ada");
}

#[test]
fn a_name_is_stored_and_told() {
    let (_world, _server, mut client) = start([Reply::text("a")]);
    client.request("set_session_name", json!({"name": " mine "})).unwrap();
    assert_eq!(client.next_event().unwrap(), json!({"type": "session_info_changed", "name": "mine"}));
    assert_eq!(client.state().unwrap().session_name.as_deref(), Some("mine"));
}

#[test]
fn a_switch_to_the_own_session_keeps_tools_and_hooks() {
    let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let hooks = json!({"UserPromptSubmit": [{"hooks": [{"type": "command",
        "command": "if grep -q SECRET; then echo no >&2; exit 2; fi"}]}]});
    world.write_config("settings.json", &json!({"hooks": hooks, "retry": {"enabled": false}}).to_string());
    let mut client = client(&world, "--model mock/m1");
    client.prompt("first").unwrap();
    client.wait_until_settled().unwrap();
    let file = client.state().unwrap().session_file.unwrap();
    let tools = client.request("get_tools", json!({})).unwrap();
    client.request("switch_session", json!({"sessionPath": file})).unwrap();
    assert_eq!(client.request("get_tools", json!({})).unwrap(), tools);
    client.prompt("the SECRET").unwrap();
    client.prompt("second").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests().len(), 2, "what a hook blocks is not sent");
    // One that cannot be opened any more is refused, and the conversation goes on with all that it has.
    std::fs::write(&file, "no session at all").unwrap();
    client.request("switch_session", json!({"sessionPath": file})).unwrap_err();
    assert_eq!(client.request("get_tools", json!({})).unwrap(), tools);
    client.prompt("third").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(server.requests()[2].messages().len(), 6);
    client.close().unwrap();
}
