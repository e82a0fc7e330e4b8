//! `pi undo`: what tools did to files is taken back.

use crate::agent::{World, lines};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A session in which `a.txt` is edited twice and `new/b.txt` is made.
fn changed() -> (World, Server) {
    let edit = |from: &str, to: &str| json!({"path": "a.txt", "edits": [{"oldText": from, "newText": to}]});
    let (world, server) = world([
        Reply::tool("call_1", "edit", &edit("one", "two")),
        Reply::text("done"),
        Reply::tool("call_1", "edit", &edit("two", "three")),
        Reply::tool("call_1", "write", &json!({"path": "new/b.txt", "content": "b"})),
        Reply::text("done"),
    ]);
    world.write("a.txt", "one\r\n");
    for words in ["-p first", "-p -c second"] {
        world.pi().args(["--model", "mock/m1"]).words(words).run().success();
    }
    assert_eq!(world.read("a.txt"), "three\r\n");
    (world, server)
}

#[test]
fn steps_are_shown_and_taken_back_from_the_last_on() {
    let (world, _server) = changed();
    let undo = |words: &str| world.pi().args(["undo"]).words(words).run();
    let listed = undo("--list").success().stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.lines().next().unwrap().ends_with("/new/b.txt"), "{listed}");
    let would = undo("2 --dry-run").success().stdout;
    let (a, b) = (world.work().join("a.txt"), world.work().join("new/b.txt"));
    let (a, b) = (a.display(), b.display());
    assert_eq!(would, format!("Would remove {b}\nWould restore {a}\n"));
    assert_eq!(world.read("a.txt"), "three\r\n");
    undo("1").success().stdout_is(&format!("Removed {b}\n"));
    assert!(!world.work().join("new").exists());
    // Since the last prompt, then since the one before.
    undo("").success().stdout_is(&format!("Restored {a}\n"));
    assert_eq!(world.read("a.txt"), "two\r\n");
    undo("").success().stdout_is(&format!("Restored {a}\n"));
    assert_eq!(world.read("a.txt"), "one\r\n");
    undo("").success().stdout_is("").stderr_has("nothing to undo");
}

#[test]
fn all_since_a_message_is_taken_back() {
    let (world, _server) = changed();
    let session = world.session();
    let mut users = session.iter().filter(|entry| entry["message"]["role"] == "user");
    let second = users.next_back().unwrap()["id"].as_str().unwrap().to_owned();
    let done = world.pi().args(["undo", "--json", "--to", &second]).run().success();
    let rows = lines(&done.stdout);
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["done"] == true), "{rows:?}");
    assert_eq!(world.read("a.txt"), "two\r\n");
    world.pi().args(["undo", "--to", "nope"]).run().fails_with(1).stderr_has("no entry 'nope'");
}

#[test]
fn a_file_that_was_changed_since_is_not_overwritten_unasked() {
    let (world, _server) = changed();
    world.write("a.txt", "mine");
    let refused = world.pi().words("undo 3").run().fails_with(1);
    refused.stdout_has("a.txt: was changed since").stdout_has("new/b.txt");
    assert!(!world.work().join("new/b.txt").exists());
    assert_eq!(world.read("a.txt"), "mine");
    world.pi().words("undo 3 --force").run().success();
    assert_eq!(world.read("a.txt"), "one\r\n");
}

#[test]
fn what_undo_needs_is_private_and_goes_with_the_session() {
    let (world, _server) = changed();
    let session = world
        .session_files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let folder = session.with_extension("undo");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in folder.read_dir().unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    let id = session.to_str().unwrap();
    world.pi().args(["sessions", "rm", id, "--yes"]).run().success();
    assert!(!folder.exists());
    world.pi().words("undo").run().fails_with(1).stderr_has("no session of this folder");
    world.pi().words("undo x").run().fails_with(2).stderr_has("pi undo <n>");
}

#[test]
fn the_model_is_told_what_was_taken_back() {
    let (world, server) = changed();
    let said = |world: &World| world.session().last().unwrap().clone();
    let before = said(&world);
    world.pi().words("undo 9 --dry-run").run().success();
    world.pi().words("undo 9").run().success();
    let note = said(&world);
    let (a, b) = (world.work().join("a.txt"), world.work().join("new/b.txt"));
    assert_eq!((&note["type"], &note["customType"]), (&json!("custom_message"), &json!("undo")));
    assert_eq!(note["parentId"], before["id"]);
    assert_eq!(note["details"]["files"], json!([b, a]));
    drop(server);
    let server = Server::start([Reply::text("I see")]);
    world.use_server(&server);
    world.pi().words("-p -c next").run().success();
    let requests = server.requests();
    let sent = requests[0].messages();
    let told = sent[sent.len() - 2]["content"].to_string();
    assert_eq!(sent[sent.len() - 2]["role"], "user");
    assert!(
        told.contains("new/b.txt was removed") && told.contains("a.txt has its earlier content"),
        "{told}"
    );
    assert_eq!(requests[0].last_text(), "next");
}

#[test]
fn files_outside_of_the_sessions_folder_are_not_touched_unasked() {
    let world = World::new();
    let path = world.home().join("notes");
    fs::write(&path, "old").unwrap();
    let server = Server::start([
        Reply::tool("call_1", "write", &json!({"path": path, "content": "new"})),
        Reply::text("done"),
    ]);
    world.use_server(&server);
    world.pi().args(["--model", "mock/m1", "-p", "go"]).run().success();
    let refused = world.pi().words("undo").run().fails_with(1);
    refused.stderr_has("notes is outside the session's folder").stderr_has("With --yes");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    let asked = world.pi().words("undo").spawn_on_terminal();
    asked.wait_until_shown("Undo this? [y/N]");
    asked.type_keys("n\n");
    asked.wait().fails_with(1).stderr_has("Would restore ").stderr_has("Nothing was undone");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    world.pi().words("undo --yes").run().success();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

/// A repository can hold a session file with a journal that says anything.
#[test]
fn the_journal_of_a_session_that_came_from_elsewhere_is_not_believed_unasked() {
    let (world, _server) = changed();
    let session =
        world.session_files().into_iter().find(|path| path.extension().unwrap() == "jsonl").unwrap();
    let foreign = world.work().join("talk.jsonl");
    fs::rename(&session, &foreign).unwrap();
    fs::rename(session.with_extension("undo"), foreign.with_extension("undo")).unwrap();
    for words in ["undo --session ./talk.jsonl", "undo --session ./talk.jsonl --session-dir ."] {
        let refused = world.pi().words(words).run().fails_with(1);
        refused.stderr_has("talk.jsonl is not in the folder of sessions").stderr_has("With --yes");
    }
    assert!(world.work().join("new/b.txt").exists());
    world.pi().words("undo --session ./talk.jsonl --yes").run().success();
    assert!(!world.work().join("new/b.txt").exists());
}

#[test]
#[cfg_attr(not(feature = "sandbox"), ignore)]
fn undoing_stays_inside_the_sandbox() {
    let (world, _server) = changed();
    world.write_config("settings.json", r#"{"sandbox": {"mode": "read-only"}, "retry": {"enabled": false}}"#);
    let refused = world.pi().words("undo").run().fails_with(1);
    assert!(refused.stdout.contains("new/b.txt: the sandbox forbids it."), "{}", refused.stdout);
    assert!(world.work().join("new/b.txt").exists());
    world.write_config("settings.json", r#"{"sandbox": {"mode": "workspace"}, "retry": {"enabled": false}}"#);
    world.pi().words("undo 3").run().success();
    assert_eq!(world.read("a.txt"), "one\r\n");
    assert!(!world.work().join("new").exists());
}

/// The steps of a session whose prompts ran `commands`, in a mode that looks at them.
fn commanded(world: &World, commands: &[&str]) {
    let mut client = crate::rpc::client(world, "--model mock/m1");
    for command in commands {
        client.prompt(command).unwrap();
        client.wait_until_settled().unwrap();
    }
    client.close().unwrap();
}

fn bash(command: &str) -> [Reply; 2] {
    [Reply::tool("c", "bash", &json!({"command": command})), Reply::text("done")]
}

#[test]
fn what_commands_did_is_taken_back_prompt_by_prompt() {
    let scripts = ["mkdir d; mv a.txt d/b.txt; chmod 640 keep; ln -s keep l", "rm -r d keep; echo new >c"];
    let (world, server) = world(scripts.iter().flat_map(|script| bash(script)));
    world.write("a.txt", "one");
    world.write("keep", "kept");
    commanded(&world, &scripts);
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(world.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["c", "l"]);
    let would = world.pi().words("undo --dry-run").run().success().stdout;
    assert!(would.contains("Would remove") && would.contains("/d/b.txt"), "{would}");
    world.pi().words("undo").run().success();
    assert_eq!(names(), ["d", "keep", "l"]);
    assert_eq!((world.read("d/b.txt").as_str(), world.read("keep").as_str()), ("one", "kept"));
    world.write("l.txt", "by the user");
    world.pi().words("undo").run().success();
    assert_eq!(names(), ["a.txt", "keep", "l.txt"]);
    let mode = fs::metadata(world.work().join("keep")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    world.pi().words("undo").run().success().stderr_has("nothing to undo");
    assert_eq!(server.requests().len(), 4);
    // What is kept is the user's alone.
    let store = world.agent_dir().join("checkpoints");
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn clients_take_back_what_commands_did() {
    let script = "echo two >a.txt; echo n >n";
    let (world, _server) = world(bash(script));
    world.write("a.txt", "one\n");
    let mut client = crate::rpc::client(&world, "--model mock/m1");
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    // A command of the user, too.
    client.request("bash", json!({"command": "echo u >u"})).unwrap();
    let planned = client.request("undo", json!({"dryRun": true})).unwrap();
    let files = planned["files"].as_array().unwrap();
    assert_eq!(files.len(), 3, "{planned}");
    let a = files.iter().find(|file| file["path"].as_str().unwrap().ends_with("a.txt")).unwrap();
    assert_eq!((&a["action"], &a["done"], &a["problem"]), (&json!("restore"), &json!(false), &json!(null)));
    assert!(a["diff"].as_str().unwrap().contains("+1 one"), "{a}");
    assert_eq!(world.read("a.txt"), "two\n");
    let done = client.request("undo", json!({})).unwrap();
    assert!(done["files"].as_array().unwrap().iter().all(|file| file["done"] == true), "{done}");
    assert_eq!(world.read("a.txt"), "one\n");
    assert!(!world.work().join("n").exists() && !world.work().join("u").exists());
    client.close().unwrap();
}

#[test]
fn print_mode_does_not_pay_and_says_what_it_does_not_know() {
    let (world, _server) = world(bash("echo n >n"));
    world.pi().words("--model mock/m1 -p go").run().success();
    assert!(!world.agent_dir().join("checkpoints").exists());
    world.pi().words("undo").run().success().stderr_has("nothing to undo");
    // A process that was killed in the middle of a command.
    let (world, _server) = self::world(bash("echo n >n; echo up; sleep 300"));
    let mut client = crate::rpc::client(&world, "--model mock/m1");
    client.prompt("go").unwrap();
    while !client.next_event().unwrap()["partialResult"].to_string().contains("up") {}
    world.wait_until_watched();
    std::process::Command::new("kill").args(["-9", &client.pid().to_string()]).status().unwrap();
    drop(client);
    world.pi().words("undo").run().stderr_has("pi ended while it ran");
}

#[test]
#[cfg(feature = "interactive")]
fn the_terminal_goes_back_to_a_prompt() {
    use crate::screen::{ENTER, started};
    let (world, server) =
        world(bash("echo two >a.txt").into_iter().chain(bash("rm a.txt")).chain([Reply::text("ok")]));
    world.write("a.txt", "one\n");
    let screen = started(&world, "");
    for text in ["first thing", "second thing"] {
        screen.send(text);
        let ends = 1 + usize::from(text == "second thing");
        screen.wait_until("the end", |shown| shown.matches("Worked").count() == ends);
    }
    assert!(!world.work().join("a.txt").exists());
    screen.send("/rewind");
    screen.wait_for("Conversation, files or both");
    screen.type_keys("first");
    screen.wait_for("→ first thing");
    screen.type_keys(ENTER);
    screen.wait_for("What goes back to before this prompt?");
    screen.type_keys(ENTER);
    screen.wait_for("Undo changes of files?");
    screen.type_keys(ENTER);
    screen.wait_for("Navigated to selected point");
    assert_eq!(world.read("a.txt"), "one\n");
    // The prompt is in the editor again.
    screen.send(", but other");
    screen.wait_for("ok");
    screen.quit();
    let requests = server.requests();
    let told = serde_json::to_string(requests[4].messages()).unwrap();
    assert!(told.contains("first thing, but other") && !told.contains("second thing"), "{told}");
    assert_eq!(told.matches("first thing").count(), 1, "{told}");
}
