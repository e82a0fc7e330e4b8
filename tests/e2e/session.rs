//! The session log, as it is found on disk.

use crate::server::{Reply, Step, gate};
use crate::world;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const MODEL: [&str; 2] = ["--model", "mock/m1"];

#[test]
fn a_new_file_begins_as_the_references_do() {
    let (world, _server) = world([Reply::text("Hello")]);
    world.pi().args(MODEL).args(["-p", "hi", "--name", "My talk"]).run().success();
    let session = world.session();
    let kinds: Vec<String> = session
        .iter()
        .map(|entry| match entry["message"]["role"].as_str() {
            Some(role) => role.to_owned(),
            None => entry["type"].as_str().unwrap().to_owned(),
        })
        .collect();
    let expected =
        ["session", "session_info", "model_change", "thinking_level_change", "system", "user", "assistant"];
    assert_eq!(kinds, expected);
    assert_eq!(session[0]["version"], 3);
    for pair in session[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    assert_eq!(session[1]["parentId"], Value::Null);
    assert_eq!(session[2]["provider"], "mock");
    let system = &session[4]["message"];
    assert!(
        system["sections"]["preamble"].is_string() && system["toolsAdded"].as_array().unwrap().len() == 4
    );
    assert_eq!(session[5]["message"]["content"], json!([{"type": "text", "text": "hi"}]));
    let file = &world.session_files()[0];
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let work = world.work().to_str().unwrap().trim_start_matches('/').replace('/', "-");
    assert_eq!(folder, format!("--{work}--"));
}

#[test]
fn the_prompt_is_on_disk_before_the_request_and_no_session_before_the_answer() {
    let (open, held) = gate();
    let (world, server) = world([Reply::stream().then_wait(held).then_text("ok")]);
    let running = world.pi().args(MODEL).args(["-p", "remember me"]).spawn();
    server.wait_for(1);
    let files = world.session_files();
    assert!(files.iter().all(|file| file.to_str().unwrap().ends_with(".jsonl.draft")), "{files:?}");
    assert!(std::fs::read_to_string(&files[0]).unwrap().contains("remember me"));
    open.send(()).unwrap();
    running.wait().success();
    let files = world.session_files();
    assert!(files.len() == 1 && files[0].to_str().unwrap().ends_with(".jsonl"), "{files:?}");
}

#[test]
fn what_was_typed_survives_a_kill() {
    let (world, server) = world([Reply::raw("").then(Step::Stall)]);
    let running = world.pi().args(MODEL).args(["-p", "remember me"]).spawn();
    server.wait_for(1);
    running.signal("KILL");
    running.wait().fails_with(137);
    let kept = world.session_files();
    assert!(
        kept.iter().any(|file| std::fs::read_to_string(file).unwrap().contains("remember me")),
        "{kept:?}"
    );
    let draft = kept[0].to_str().unwrap();
    let server = crate::server::Server::start([Reply::text("again"), Reply::text("yes")]);
    world.use_server(&server);
    world.pi().args(MODEL).args(["--no-session", "-p", "x"]).run().success();
    world.pi().args(MODEL).args(["-p", "go on", "--session", draft]).run().success();
    assert!(
        server.requests()[1].messages().iter().any(|message| message.to_string().contains("remember me"))
    );
    assert_eq!(world.session().last().unwrap()["message"]["role"], "assistant");
}

#[test]
fn a_draft_is_told_once_also_when_another_session_goes_on() {
    let (world, server) = world([Reply::text("one"), Reply::raw("").then(Step::Stall)]);
    world.pi().args(MODEL).args(["-p", "first"]).run().success();
    let running = world.pi().args(MODEL).args(["-p", "typed and lost"]).spawn();
    server.wait_for(2);
    running.signal("KILL");
    running.wait().fails_with(137);
    let draft = world.session_files().into_iter().find(|path| path.extension().unwrap() == "draft").unwrap();
    let server = crate::server::Server::start((0..3).map(|_| Reply::text("on")));
    world.use_server(&server);
    let told = format!("--session '{}'", draft.display());
    world.pi().args(MODEL).args(["-p", "-c", "second"]).run().success().stderr_has(&told);
    for words in ["-p -c third", "--mode json fourth"] {
        assert_eq!(world.pi().args(MODEL).words(words).run().success().stderr, "");
    }
    // The mark goes with what it belongs to.
    std::fs::remove_file(&draft).unwrap();
    world.pi().words("sessions prune --yes").run().success();
    let ends = world.session_files().into_iter().map(|path| path.extension().unwrap().to_owned());
    assert!(ends.into_iter().all(|end| end == "jsonl"));
}

#[test]
fn a_model_that_is_not_there_stores_nothing() {
    let (world, _server) = world([]);
    world.pi().words("--model nobody/nothing --name X -p hi").run().fails_with(1);
    assert_eq!(world.session_files(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_run_without_an_answer_leaves_no_file() {
    let (world, _server) = world([]);
    world.pi().args(MODEL).args(["-p"]).stdin("").run().fails_with(2);
    assert_eq!(world.session_files(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn continue_goes_on_where_the_last_session_ended() {
    let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    world.pi().args(MODEL).args(["-p", "first"]).run().success();
    world.pi().args(["-p", "-c", "second"]).run().success().stdout_is("two\n");
    let id = world.session()[0]["id"].as_str().unwrap().to_owned();
    world.pi().args(["-p", "--session", &id[..13], "third"]).run().success();
    assert_eq!(world.session_files().len(), 1);
    let told: Vec<String> = server.requests()[2]
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| {
            message["content"]
                .as_str()
                .map_or_else(|| message["content"][0]["text"].as_str().unwrap().into(), str::to_owned)
        })
        .collect();
    assert_eq!(told, ["first", "second", "third"]);
}

#[test]
fn a_session_id_is_made_once_and_then_found() {
    let (world, _server) = world([Reply::text("one"), Reply::text("two")]);
    for prompt in ["a", "b"] {
        world.pi().args(MODEL).args(["-p", prompt, "--session-id", "my.talk-1"]).run().success();
    }
    assert_eq!(world.session()[0]["id"], "my.talk-1");
}

#[test]
fn no_session_stores_nothing() {
    let (world, _server) = world([Reply::text("one")]);
    world.pi().args(MODEL).args(["-p", "a", "--no-session"]).run().success();
    assert_eq!(world.session_files(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn an_unknown_session_is_an_error() {
    let (world, server) = world([]);
    world
        .pi()
        .args(MODEL)
        .args(["-p", "a", "--session", "feed"])
        .run()
        .fails_with(1)
        .stderr_has("No session found matching 'feed'");
    let path = world.write("notes.jsonl", "this is not a session\n");
    world
        .pi()
        .args(MODEL)
        .args(["-p", "a", "--session", path.to_str().unwrap()])
        .run()
        .fails_with(1)
        .stderr_has("not a valid pi session");
    assert_eq!(world.read("notes.jsonl"), "this is not a session\n");
    assert!(server.requests().is_empty());
}

#[test]
fn a_damaged_line_costs_itself_alone() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    world.pi().args(MODEL).args(["-p", "first"]).run().success();
    let file = world.session_files()[0].clone();
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("{\"type\":\"message\",\"id\":\"abc\",\"torn");
    std::fs::write(&file, &text).unwrap();
    world.pi().args(["-p", "-c", "second"]).run().success().stderr_has("line");
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&text), "nothing is thrown away");
    let sound = after.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert_eq!(sound, after.lines().count() - 1);
    assert!(server.requests()[1].messages().iter().any(|message| message.to_string().contains("first")));
}

#[test]
fn a_session_in_use_is_not_shared() {
    let (open, held) = gate();
    let (world, server) =
        world([Reply::text("one"), Reply::text("half").then_wait(held), Reply::text("other")]);
    world.pi().args(MODEL).args(["-p", "first"]).run().success();
    let id = world.session()[0]["id"].as_str().unwrap().to_owned();
    let holder = world.pi().args(["-p", "-c", "second"]).spawn();
    server.wait_for(2);
    world.pi().args(["-p", "x", "--session", &id]).run().fails_with(1).stderr_has(&holder.pid().to_string());
    open.send(()).unwrap();
    holder.wait().success();
    assert_eq!(world.session().len(), 8);
}
