//! What a host of other extensions needs: built-in tools behind their replacements, entries, the screen.

use super::rpc::client;
use super::{hello, install, log, results};
use crate::agent::{World, wait_until};
use crate::screen::{CTRL_C, ENTER, Screen, started};
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

/// Waits for the answer to the call with this id.
#[track_caller]
fn answer(world: &World, id: &str) -> Value {
    let mut answer = None;
    wait_until(&format!("{id} is answered"), || {
        answer =
            log(world).into_iter().find(|message| message["id"] == id && message.get("method").is_none());
        answer.is_some()
    });
    answer.unwrap_or_default()
}

#[test]
fn a_tool_in_place_of_a_builtin_one_may_run_that() {
    let (world, server) = world([Reply::tool("t1", "read", &json!({"path": "a.txt"})), Reply::text("done")]);
    world.write("a.txt", "from the file");
    let mut fields = hello();
    fields["tools"][0]["name"] = "read".into();
    fields["tools"][0]["parameters"] = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    fields["events"] = json!(["tool_call"]);
    let arms = r#"
    *'"type":"tool_call"'*) ok null ;;
    *'"method":"tool.call"'*) saved=$id
      call b tools.execute '{"toolCallId":"t1","name":"read","arguments":{"path":"a.txt"},"builtin":true}' ;;
    *'"id":"b"'*) ok '{"content":"mine: from the file"}' "$saved" ;;
"#;
    install(&world, "instead", &fields, arms);
    world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("done\n");
    assert_eq!(results(server.requests()[1].messages()), ["mine: from the file"]);
    let got = answer(&world, "b")["result"].clone();
    assert_eq!((&got["isError"], &got["content"][0]["text"]), (&json!(false), &json!("from the file")));
    // The hooks were for the outer call.
    let asked = super::events(&world).into_iter().filter(|event| event["type"] == "tool_call").count();
    assert_eq!(asked, 1);
}

#[test]
fn entries_of_another_session_come_whole() {
    let (world, _server) = world([]);
    let arms = r#"
    *'"method":"command.run"'*) call a session.entries '{"since":"nowhere"}'; call b ui.theme '{}'; ok null ;;
"#;
    install(&world, "cmd", &json!({"commands": [{"name": "do"}]}), arms);
    let mut client = client(&world);
    client.request("prompt", json!({"message": "/do"})).unwrap();
    let state = client.state().unwrap();
    let got = answer(&world, "a")["result"].clone();
    assert_eq!((&got["since"], got["sessionId"].as_str().unwrap()), (&Value::Null, &*state.session_id));
    assert!(!got["entries"].as_array().unwrap().is_empty());
    assert_eq!(answer(&world, "b")["result"], json!({}));
    client.close().unwrap();
}

const DRAWS: &str = r##"
    *'"method":"component.render"'*'"component":"e"'*) saved=$id; call r ui.editorRender '{"width":40}' ;;
    *'"id":"r"'*) ok '{"lines":["OWN EDITOR"]}' "$saved" ;;
    *'"method":"component.render"'*'"component":"o"'*) ok '{"lines":["+------+","| OVER |","+------+"]}' ;;
    *'"method":"component.input"'*'"component":"e"'*) call k ui.editorInput '{"data":"q"}' ;;
    *'"method":"component.input"'*'"component":"o"'*) call c ui.close '{"component":"o","result":7}' ;;
    *'"method":"command.run"'*editor*) call s ui.setEditor '{"component":"e"}'; ok null ;;
    *'"method":"command.run"'*back*) call s ui.setEditor '{}'; ok null ;;
    *'"method":"command.run"'*over*) cmd=$id; call o ui.custom '{"component":"o","overlay":true,"overlayOptions":{"width":8,"anchor":"top-right"},"blocked":{"kind":"question","message":"Pick"}}' ;;
    *'"id":"o"'*) ok null "$cmd" ;;
    *'"method":"command.complete"'*'"prefix":"o'*) ok '[{"value":"over","label":"over","description":"shows the overlay"}]' ;;
    *'"method":"command.run"'*said*) call m session.sendMessage '{"message":{"customType":"mine","content":"plain text","display":true}}'; ok null ;;
    *'"method":"command.run"'*entry*) call m session.appendEntry '{"customType":"kept","data":{"n":1}}'; ok null ;;
    *'"method":"render"'*'"kind":"message"'*) ok '{"lines":["drawn: a message"]}' ;;
    *'"method":"render"'*'"kind":"entry"'*) ok '{"lines":["drawn: an entry"]}' ;;
    *'"method":"render"'*'"kind":"toolCall"'*) ok '{"lines":["drawn: hello is called"]}' ;;
    *'"method":"render"'*'"kind":"toolResult"'*) ok '{"lines":["drawn: its result"]}' ;;
    *'"method":"completer.complete"'*'#1'*) ok '{"prefix":"#1","items":[{"value":"#12","label":"#12 an issue"}]}' ;;
    *'"method":"tool.call"'*) ok '"Hello Ada."' ;;
    *'"type":"session_start"'*) call p ui.addCompleter '{"completer":"p1","triggers":["#"]}'
      call w ui.setHiddenThinkingLabel '{"label":"hm"}'; ok null ;;
"##;

fn drawing() -> Value {
    let mut fields = hello();
    fields["tools"][0]["renders"] = json!(["call", "result"]);
    fields["commands"] = json!([{"name": "show", "completes": true}]);
    fields["renderers"] = json!({"messages": ["mine"], "entries": ["kept"]});
    fields["events"] = json!(["session_start"]);
    fields
}

/// A screen once the extension of `DRAWS` has begun.
fn drawn(world: &World) -> Screen {
    install(world, "draws", &drawing(), DRAWS);
    let screen = Screen::start(world.pi().words("--model mock/m1").env("PI_PROGRAM_STATUS", "1"));
    screen.wait_until("the completer is there", |_| log(world).iter().any(|message| message["id"] == "p"));
    screen
}

#[test]
fn an_overlay_stands_over_the_screen_until_it_is_closed() {
    let (world, _server) = world([]);
    let screen = drawn(&world);
    screen.send("/show over");
    screen.wait_for("| OVER |");
    let shown = screen.text();
    assert!(shown.lines().nth(1).is_some_and(|row| row.ends_with("| OVER |")), "{shown}");
    screen.type_keys("x");
    screen.wait_until_gone("OVER");
    assert_eq!(answer(&world, "o")["result"], json!({"result": 7}));
    // The terminal is told that the overlay waits for the user.
    let raw = screen.quit();
    let blocked = raw.split("\x1b]7501;").filter(|rest| rest.starts_with("state=blocked"));
    let blocked: Vec<&str> = blocked.filter_map(|rest| rest.split('\x1b').next()).collect();
    assert_eq!(blocked, ["state=blocked:app=pi:kind=question:msg=UGljaw=="]);
}

#[test]
fn a_component_is_the_editor_and_pis_own_keeps_the_text() {
    let (world, _server) = world([]);
    let screen = drawn(&world);
    screen.send("/show editor");
    screen.wait_for("OWN EDITOR");
    screen.type_keys("x");
    // The component has typed another letter.
    screen.wait_until("a key is drawn", |_| {
        let drawn = log(&world).into_iter().filter(|message| message["method"] == "component.render");
        drawn.count() >= 2 && log(&world).iter().any(|message| message["method"] == "component.input")
    });
    let own = answer(&world, "r")["result"].clone();
    assert!(own["lines"].as_array().unwrap().len() >= 3 && own["cursor"]["row"] == 1, "{own}");
    screen.type_keys(CTRL_C);
    screen.type_keys(CTRL_C);
    let (status, _) = screen.wait();
    assert!(status.success());
}

/// Has a part of each kind that the extension draws.
fn show_all(screen: &Screen) {
    screen.send("/show said");
    screen.wait_for("drawn: a message");
    screen.send("/show entry");
    screen.wait_for("drawn: an entry");
    screen.send("hi");
}

#[test]
fn messages_entries_and_calls_are_drawn_by_their_extension() {
    let (world, _server) = world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
    let screen = drawn(&world);
    show_all(&screen);
    screen.wait_for("drawn: its result");
    let shown = screen.wait_for("done");
    assert!(shown.contains("✓ drawn: hello is called") && shown.contains("drawn: its result"), "{shown}");
    assert!(!shown.contains("plain text") && !shown.contains("Hello Ada."), "{shown}");
    screen.quit();
}

#[test]
fn a_session_that_is_opened_again_is_drawn_by_its_extension() {
    let (world, _server) = world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
    let screen = drawn(&world);
    show_all(&screen);
    screen.wait_for("done");
    screen.quit();
    let screen = started(&world, "-c");
    let parts =
        ["drawn: a message", "drawn: an entry", "✓ drawn: hello is called", "drawn: its result", "done"];
    // A part that is not drawn yet stands there in pi's own form.
    screen.wait_until("all is drawn", |shown| {
        parts.iter().all(|part| shown.contains(part))
            && !shown.contains("plain text")
            && !shown.contains("Hello Ada.")
    });
    screen.quit();
}

#[test]
fn markdown_is_changed_before_it_is_shown_and_stays_as_it_was_in_the_session() {
    let (world, _server) = world([Reply::text("the plain answer")]);
    let arms = r#"
    *'"method":"markdown.transform"'*'"messageType":"user"'*) ok '{"text":"another **prompt**"}' ;;
    *'"method":"markdown.transform"'*'"isStreaming":false'*) ok '{"text":"the changed answer"}' ;;
    *'"method":"markdown.transform"'*) ok '{"text":"it grows"}' ;;
"#;
    let fields = json!({"events": ["session_start"], "markdownTransformers": [{}]});
    install(&world, "changes", &fields, arms);
    let changed = |shown: &str| {
        ["another prompt", "the changed answer"].iter().all(|part| shown.contains(part))
            && !shown.contains("the plain answer")
            && !shown.contains("as typed")
    };
    let screen = started(&world, "");
    screen.wait_until("the program takes part", |_| !super::events(&world).is_empty());
    screen.send("as typed");
    screen.wait_until("the texts are changed", changed);
    screen.quit();
    let stored = std::fs::read_to_string(&world.session_files()[0]).unwrap();
    assert!(stored.contains("the plain answer") && stored.contains("as typed"), "{stored}");
    assert!(!stored.contains("the changed answer"));
    let screen = started(&world, "-c");
    screen.wait_until("the texts are changed again", changed);
    screen.quit();
}

#[test]
fn an_extension_changes_the_changelog() {
    let (world, _server) = world([]);
    let arms = r#"
    *'"method":"markdown.transform"'*'"messageType":"changelog"'*) ok '{"text":"**Another list**"}' ;;
"#;
    let fields =
        json!({"events": ["session_start"], "markdownTransformers": [{"messageTypes": ["changelog"]}]});
    install(&world, "changes", &fields, arms);
    let screen = started(&world, "");
    screen.wait_until("the program takes part", |_| !super::events(&world).is_empty());
    screen.send("/changelog");
    let shown = screen.wait_for("Another list");
    assert!(shown.contains("What's New") && !shown.contains("The first release"), "{shown}");
    screen.quit();
    let asked = log(&world).into_iter().find(|message| message["method"] == "markdown.transform").unwrap();
    assert!(asked["params"]["text"].as_str().unwrap().contains("The first release"), "{asked}");
}

#[test]
fn a_script_finds_the_tools_of_a_namespace() {
    let code = "const about = await describeNamespace('words');\n\
        text(about.name + '|' + about.description + '|' + about.instructions + '|' + about.tools.join());\n\
        text((await searchTools('greets', { namespace: 'the_words' })).map((tool) => tool.name).join());";
    let (world, server) = world([Reply::tool("t1", "codemode", &json!({"code": code})), Reply::text("done")]);
    let mut fields = hello();
    fields["tools"][0]["exposure"] = "codemode".into();
    fields["tools"][0]["namespace"] = json!({"name": "the_words", "aliases": ["words"],
        "description": "Kind words", "instructions": "Use them often"});
    install(&world, "hello", &fields, "");
    world.pi().words("--model mock/m1 --tools +codemode -p hi").run().success().stdout_is("done\n");
    let found = results(server.requests()[1].messages()).join("\n");
    assert!(found.contains("the_words|Kind words|Use them often|hello"), "{found}");
    assert!(found.trim_end().ends_with("hello"), "{found}");
}

#[test]
fn an_extension_completes_words_and_arguments() {
    let (world, _server) = world([]);
    let screen = drawn(&world);
    screen.type_keys("fix #1");
    screen.wait_for("#12 an issue");
    screen.type_keys("\t");
    screen.wait_for("fix #12");
    screen.type_keys(CTRL_C);
    screen.type_keys("/show o");
    screen.wait_for("shows the overlay");
    screen.type_keys(ENTER);
    screen.wait_for("| OVER |");
    screen.type_keys("x");
    screen.wait_until_gone("OVER");
    screen.quit();
}

#[test]
fn keys_are_looked_at_before_they_are_typed() {
    let (world, _server) = world([]);
    let arms = r#"
    *'"type":"terminal_input"'*'"data":"a"'*) ok '{"data":"b"}' ;;
    *'"type":"terminal_input"'*'"data":"x"'*) ok '{"consume":true}' ;;
"#;
    install(&world, "keys", &json!({"events": ["terminal_input", "session_start"]}), arms);
    let screen = started(&world, "");
    // What is typed before the program has come is not shown to it.
    screen.wait_until("the program takes part", |_| !super::events(&world).is_empty());
    for key in ["q", "a", "x", "q", "a"] {
        screen.type_keys(key);
    }
    screen.wait_for("qbqb");
    screen.type_keys(CTRL_C);
    screen.quit();
}

#[test]
fn an_extension_that_hangs_does_not_hold_the_keyboard() {
    let (world, _server) = world([]);
    install(
        &world,
        "mute",
        &json!({"events": ["terminal_input"]}),
        "    *'\"type\":\"terminal_input\"'*) ;;\n",
    );
    let screen = started(&world, "");
    screen.type_keys("typed");
    screen.wait_for("typed");
    screen.type_keys(CTRL_C);
    screen.quit();
}

#[test]
fn a_new_session_begins_with_the_entries_of_its_maker() {
    let (world, server) = world([Reply::text("done")]);
    let setup = json!([
        {"type": "session_info", "name": "Prepared"},
        {"type": "message", "message": {"role": "user", "content": "from before", "timestamp": 1}},
        {"type": "custom", "customType": "mine", "data": {"n": 1}},
    ]);
    let new = |id: &str, setup: &Value| format!("call {id} session.new '{}'", json!({"setup": setup}));
    let bad = json!([{"type": "compaction", "summary": "x"}]);
    let arms = format!(
        "    *'\"method\":\"command.run\"'*) run=$id; {} ;;\n    *'\"id\":\"bad\"'*) {} ;;\n    *'\"id\":\"good\"'*) ok null \"$run\" ;;\n",
        new("bad", &bad),
        new("good", &setup)
    );
    super::install(&world, "maker", &json!({"commands": [{"name": "make"}]}), &arms);
    world.pi().words("--model mock/m1 -p /make next").run().success().stdout_is("done\n");
    let refused = answer(&world, "bad");
    assert!(refused["error"]["message"].as_str().unwrap().contains("can begin with"), "{refused}");
    let requests = server.requests();
    let texts: Vec<String> = requests[0].messages()[1..].iter().map(|m| m["content"].to_string()).collect();
    assert!(texts[0].contains("from before") && texts[1].contains("next"), "{texts:?}");
    let stored = world.session();
    assert!(stored.iter().any(|entry| entry["name"] == "Prepared"));
    assert!(stored.iter().any(|entry| entry["customType"] == "mine" && entry["data"]["n"] == 1));
}

#[test]
fn calls_that_a_tool_makes_are_numbered_and_kept_with_its_result() {
    let (world, _server) = world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
    world.write("a.txt", "text");
    let arms = r#"
    *'"method":"tool.call"'*)
      saved=$id
      call a tools.execute '{"toolCallId":"t1","name":"read","arguments":{"path":"a.txt"}}'
      ;;
    *'"id":"a","result"'*) call b tools.execute '{"toolCallId":"t1","name":"read","arguments":{"path":"none"}}' ;;
    *'"id":"b","result"'*) ok '{"content":"both read","isError":true,"details":{"n":2}}' "$saved" ;;
"#;
    super::install(&world, "x", &super::hello(), arms);
    let ran = world.pi().words("--model mock/m1 --json hi").run().success();
    let starts = ran.events().into_iter().filter(|event| event["type"] == "tool_execution_start");
    let ids: Vec<String> = starts.map(|event| event["toolCallId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["t1", "t1/1", "t1/2"]);
    let stored = world.session().into_iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    let message = &stored["message"];
    assert_eq!((&message["isError"], &message["details"]), (&json!(true), &json!({"n": 2})), "{message}");
    let nested = &message["nestedCalls"];
    assert_eq!(nested["complete"], true);
    let rows = nested["calls"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{nested}");
    assert_eq!((&rows[0]["id"], &rows[0]["name"]), (&json!("t1/1"), &json!("read")));
    assert_eq!((&rows[0]["status"], &rows[0]["arguments"]), (&json!("ok"), &json!({"path": "a.txt"})));
    assert_eq!((&rows[1]["id"], &rows[1]["status"]), (&json!("t1/2"), &json!("error")));
    assert!(rows[1]["error"].as_str().unwrap().contains("none"), "{nested}");
}

#[test]
fn a_question_with_a_limit_counts_down_and_goes_away() {
    let (world, _server) = world([]);
    let arms = r#"
    *'"method":"command.run"'*) saved=$id; call q ui.confirm '{"title":"Really?","message":"so","timeout":2500}' ;;
    *'"id":"q"'*) ok null "$saved" ;;
"#;
    install(&world, "cmd", &json!({"commands": [{"name": "do"}], "events": ["session_start"]}), arms);
    let screen = started(&world, "");
    screen.wait_until("the program takes part", |_| !super::events(&world).is_empty());
    screen.send("/do");
    let shown = screen.wait_for("goes away by itself in");
    assert!(shown.contains("Really?"), "{shown}");
    screen.wait_for("by itself in 1s");
    screen.wait_until("it is gone", |shown| !shown.contains("Really?"));
    assert_eq!(answer(&world, "q")["result"], json!({"confirmed": false}));
    screen.quit();
}
