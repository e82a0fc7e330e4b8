//! Stored sessions: forked, found, listed, searched, removed, taken in.

use crate::agent::{Pi, World, lines};
use crate::server::{Reply, gate};
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A stored session of two messages in the folder `cwd` (by its name below the test's root).
pub fn stored(world: &World, cwd: &Path, id: &str, said: &str) -> PathBuf {
    let name = cwd.to_str().unwrap().trim_start_matches('/').replace('/', "-");
    let folder = world.agent_dir().join("sessions").join(format!("--{name}--"));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("2024-12-03T14-00-00-000Z_{id}.jsonl"));
    let cwd = cwd.display();
    let text = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2024-12-03T14:00:00.000Z","cwd":"{cwd}"}}
{{"type":"message","id":"u1","parentId":null,"timestamp":"2024-12-03T14:00:01.000Z","message":{{"role":"user","content":"{said}","timestamp":1733234401000}}}}
{{"type":"message","id":"a1","parentId":"u1","timestamp":"2024-12-03T14:00:02.000Z","message":{{"role":"assistant","content":[{{"type":"text","text":"answer to {said}"}}],"api":"openai-completions","provider":"mock","model":"m1","usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":1733234402000}}}}
"#
    );
    fs::write(&path, text).unwrap();
    path
}

fn ask<'w>(world: &'w World, words: &str) -> Pi<'w> {
    world.pi().args(["--model", "mock/m1"]).words(words)
}

/// The sessions that are not `known`.
fn others(world: &World, known: &[&Path]) -> Vec<PathBuf> {
    let mut files = world.session_files();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.retain(|path| !known.contains(&path.as_path()));
    files
}

fn read(path: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(path).unwrap())
}

#[test]
fn a_fork_is_a_session_of_this_folder_that_names_its_parent() {
    let (world, _server) = world([Reply::text("forked"), Reply::text("again")]);
    let elsewhere = world.home().join("other");
    fs::create_dir_all(&elsewhere).unwrap();
    let source = stored(&world, &elsewhere, "abc-1", "first");
    let before = fs::read(&source).unwrap();
    ask(&world, "-p go --fork abc").run().success().stdout_is("forked\n");
    assert_eq!(fs::read(&source).unwrap(), before);
    let forks = others(&world, &[&source]);
    let fork = read(&forks[0]);
    assert_eq!(fork[0]["parentSession"], source.to_str().unwrap());
    assert_eq!(fork[0]["cwd"], world.work().to_str().unwrap());
    assert_ne!(fork[0]["id"], "abc-1");
    assert_eq!((&fork[1]["id"], &fork[2]["id"]), (&"u1".into(), &"a1".into()));
    assert_eq!(fork[3]["parentId"], "a1");
    // With an id of the user's, once.
    let words = format!("-p go --fork {} --session-id mine", source.display());
    ask(&world, &words).run().success();
    ask(&world, &words).run().fails_with(1).stderr_has("Session already exists with id 'mine'");
}

#[test]
fn what_cannot_be_forked_is_an_error() {
    let (world, _server) = world([]);
    let empty = world.write("empty.jsonl", "");
    let junk = world.write("junk.jsonl", "junk\n");
    for (wanted, error) in [
        (empty.to_str().unwrap(), "Cannot fork: source session file is empty or invalid: "),
        (junk.to_str().unwrap(), "Cannot fork: source session file is empty or invalid: "),
        ("/nowhere.jsonl", "Cannot fork: source session file is empty or invalid: /nowhere.jsonl"),
        ("nope", "No session found matching 'nope'"),
    ] {
        let words = format!("-p go --fork {wanted}");
        ask(&world, &words).run().fails_with(1).stderr_has(error);
    }
    ask(&world, "-p go --fork x --session y -c")
        .run()
        .fails_with(2)
        .stderr_has("--fork cannot be combined with --session, --continue");
    ask(&world, "-p go --session-id x --session y --resume")
        .run()
        .fails_with(2)
        .stderr_has("--session-id cannot be combined with --session, --resume");
    assert!(others(&world, &[]).is_empty());
}

#[test]
fn a_session_of_another_folder_is_not_opened_unasked() {
    let (world, _server) = world([Reply::text("there")]);
    let elsewhere = world.home().join("other");
    fs::create_dir_all(&elsewhere).unwrap();
    let source = stored(&world, &elsewhere, "abc-1", "first");
    let refused = ask(&world, "-p go --session abc").run().fails_with(1);
    let refused = refused.stderr_has("Session found in different project: ");
    refused.stderr_has("Fork it into this folder with --fork abc-1");
    // A path is a clear word.
    let words = format!("-p go --session {}", source.display());
    ask(&world, &words).run().success();
    assert_eq!(read(&source).len(), 6 + 1);
    assert!(others(&world, &[&source]).is_empty());
}

#[test]
fn a_session_whose_folder_is_gone_asks_for_another() {
    let (world, _server) = world([Reply::text("here")]);
    let gone = world.home().join("gone");
    let source = stored(&world, &gone, "abc", "first");
    let words = format!("-p go --session {}", source.display());
    let refused = ask(&world, &words).run().fails_with(1);
    refused.stderr_has(&format!(
        "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {}",
        gone.display(),
        source.display(),
        world.work().display()
    ));
    let words = format!("{words} --cwd {}", world.work().display());
    ask(&world, &words).run().success();
}

#[test]
fn a_session_in_use_names_its_process_and_can_be_forked() {
    let (open, held) = gate();
    let (world, server) = world([Reply::text("half").then_wait(held), Reply::text("forked")]);
    let newest = stored(&world, &world.work(), "new", "first");
    let older = stored(&world, &world.work(), "old", "earlier");
    let aged = fs::File::options().append(true).open(&older).unwrap();
    aged.set_modified(std::time::UNIX_EPOCH).unwrap();
    let running = ask(&world, "-p go --session new").spawn();
    server.wait_for(1);
    ask(&world, "-p go --session new")
        .run()
        .fails_with(1)
        .stderr_has(&format!("is in use by process {}", running.pid()))
        .stderr_has("go on in a copy with --fork ");
    ask(&world, "-p go --fork new").run().success().stdout_is("forked\n");
    let fork = others(&world, &[&newest, &older]);
    fs::remove_file(&fork[0]).unwrap();
    // Going on with an older one would ask a question in the wrong conversation.
    let before = fs::read(&older).unwrap();
    for mode in ["-p go -c", "--mode json go -c", "--mode rpc -c"] {
        let outcome = ask(&world, mode).run().fails_with(1).stdout_is("");
        let outcome = outcome.stderr_has("is in use by").stderr_has("--fork");
        outcome.stderr_has("Name another one with --session");
    }
    assert_eq!(fs::read(&older).unwrap(), before);
    // Nor is it removed.
    let words = ["sessions", "rm", "new", "--yes"];
    world.pi().args(words).run().fails_with(1).stderr_has("is in use by");
    open.send(()).unwrap();
    running.wait().success();
    assert!(newest.exists());
}

#[test]
fn resume_needs_a_terminal() {
    let (world, _server) = world([]);
    ask(&world, "-p go --resume").run().fails_with(1).stderr_has("--session");
    ask(&world, "-p go -r").run().fails_with(1).stderr_has("--session");
}

#[test]
fn sessions_are_listed_for_people_and_for_scripts() {
    let (world, _server) = world([]);
    let here = stored(&world, &world.work(), "abcdefgh-1", "fix the parser");
    stored(&world, &world.work(), "abcdefgh-2", "something else");
    let other = world.home().join("other");
    stored(&world, &other, "zzz", "far away");
    let list = |words: &str| world.pi().words(words).run().success().stdout;
    let text = list("sessions");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("abcdefgh-1 ") && text.contains("  fix the parser\n"), "{text}");
    assert_eq!(list("sessions list --limit 1").lines().count(), 1);
    let all = list("sessions list --all");
    assert!(all.lines().count() == 3 && all.contains(other.to_str().unwrap()), "{all}");
    let rows = lines(&list("sessions list --json"));
    let row = rows.iter().find(|row| row["id"] == "abcdefgh-1").unwrap();
    assert_eq!(row["path"], here.to_str().unwrap());
    assert_eq!(row["cwd"], world.work().to_str().unwrap());
    assert_eq!(row["messageCount"], 2);
    assert_eq!(row["firstMessage"], "fix the parser");
    assert_eq!(row["created"], "2024-12-03T14:00:00.000Z");
    assert_eq!(row["modified"], "2024-12-03T14:00:02.000Z");
    // The index is in nobody's way, and can go.
    assert!(world.agent_dir().join("cache/sessions.jsonl").exists());
    fs::write(world.agent_dir().join("cache/sessions.jsonl"), "junk").unwrap();
    assert_eq!(list("sessions list --all"), all);
}

#[test]
fn sessions_are_found_by_what_was_said() {
    let (world, _server) = world([]);
    stored(&world, &world.work(), "one", "fix the parser");
    stored(&world, &world.work(), "two", "fix nothing");
    let search = |words: &str| world.pi().words(words).run().success().stdout;
    let found = search("sessions search answer PARSER");
    assert!(found.starts_with("one ") && found.contains("\n    fix the parser\n"), "{found}");
    assert_eq!(lines(&search("sessions search fix --json")).len(), 2);
    assert_eq!(search("sessions search re:n.th --json").lines().count(), 1);
    assert_eq!(search("sessions search nowhere"), "");
    world.pi().words("sessions search re:(").run().fails_with(2).stderr_has("Invalid search pattern");
    let shown = search("sessions show one");
    assert!(shown.contains("Messages  2\n") && shown.contains("\nanswer to fix the parser\n"), "{shown}");
    let shown = lines(&search("sessions show one --json"));
    assert_eq!(shown[0]["allMessagesText"], "fix the parser answer to fix the parser");
}

#[test]
fn sessions_are_removed_when_that_is_said_twice() {
    let (world, _server) = world([]);
    let one = stored(&world, &world.work(), "one", "x");
    let two = stored(&world, &world.work(), "two", "y");
    fs::create_dir(one.with_extension("outputs")).unwrap();
    fs::create_dir(one.with_file_name("lost.outputs")).unwrap();
    world.pi().words("sessions rm one").run().fails_with(1).stderr_has("--yes");
    assert!(one.exists());
    world.pi().words("sessions rm one --yes").run().success();
    assert!(!one.exists() && !one.with_extension("outputs").exists());
    let foreign = world.write("notes.txt", "keep");
    let words = format!("sessions rm {} --yes", foreign.display());
    world.pi().words(&words).run().fails_with(1).stderr_has("is not a session");
    assert!(foreign.exists());
    world.pi().words("sessions rm nope --yes").run().fails_with(1);
    // What belongs to nothing goes; sessions only when they are old or many.
    world.pi().words("sessions prune --yes").run().success();
    assert!(two.exists() && !one.with_file_name("lost.outputs").exists());
    world.pi().words("sessions prune --keep 1 --yes").run().success();
    assert!(two.exists());
    world
        .pi()
        .words("sessions prune --older-than 30d")
        .run()
        .fails_with(1)
        .stderr_has("1 session would be removed");
    world.pi().words("sessions prune --older-than 30d --yes").run().success();
    assert!(!two.exists());
    world.pi().words("sessions prune --yes").run().success().stderr_has("nothing to remove");
}

#[test]
fn a_session_of_a_year_with_five_digits_is_the_latest() {
    let (world, _server) = world([]);
    let late = stored(&world, &world.work(), "late", "y");
    let text = fs::read_to_string(&late).unwrap().replace("1733234402000", "253402300800000");
    fs::write(&late, text).unwrap();
    for words in ["--older-than 30d", "--keep 1"] {
        let old = stored(&world, &world.work(), "old", "x");
        world.pi().words("sessions prune --yes").words(words).run().success();
        assert!(late.exists() && !old.exists(), "{words}");
    }
    let shown = world.pi().words("sessions show late").run().success().stdout;
    assert!(shown.contains("+010000-01-01T00:00:00.000Z"), "{shown}");
}

#[test]
fn a_file_is_imported_and_its_damage_told() {
    let (world, _server) = world([Reply::text("on")]);
    let source = stored(&world, &world.work(), "abc", "first");
    let outside = world.write("abc.jsonl", fs::read_to_string(&source).unwrap() + "broken\n");
    fs::remove_file(&source).unwrap();
    for name in ["abc.jsonl", "abc-1.jsonl"] {
        let imported = world.pi().args(["sessions", "import", "abc.jsonl"]).run().success();
        let path = source.with_file_name(name);
        let imported = imported.stdout_is(&format!("Session imported to: {}\n", path.display()));
        imported.stderr_has("1 damaged line");
        assert_eq!(fs::read(&path).unwrap(), fs::read(&outside).unwrap());
    }
    ask(&world, "-p go -c").run().success().stdout_is("on\n");
    world.write("junk.jsonl", "junk");
    world
        .pi()
        .words("sessions import junk.jsonl")
        .run()
        .fails_with(1)
        .stderr_has("is not a valid pi session");
    world.pi().words("sessions import nope.jsonl").run().fails_with(1).stderr_has("File not found: ");
}

#[test]
fn what_sessions_does_not_understand_is_said() {
    let (world, _server) = world([]);
    for words in [
        "sessions frob",
        "sessions list x",
        "sessions rm",
        "sessions show",
        "sessions search",
        "sessions --frob",
        "sessions prune --keep x",
    ] {
        world.pi().words(words).run().fails_with(2).stderr_has("pi sessions search");
    }
    let help = world.pi().words("sessions --help").run().success().stdout;
    assert!(help.starts_with("pi sessions [list]"), "{help}");
}

#[test]
fn a_whole_output_is_found_by_later_runs_and_forks_and_goes_with_the_session() {
    let print = json!({"command": "for n in $(seq 5000); do echo line-$n-of-many; done"});
    let look = |id: &str, uri: &str, offset: u64| {
        Reply::tool(id, "read", &json!({"path": uri, "offset": offset, "limit": 1}))
    };
    let (world, server) = world([
        Reply::tool("1", "bash", &print),
        Reply::text("one"),
        // A run of its own, then a fork, both of which have only the number.
        look("2", "artifact://1", 7),
        look("3", "artifact://2", 1),
        Reply::text("two"),
        look("4", "artifact://1", 8),
        Reply::text("three"),
        look("5", "artifact://1", 9),
        Reply::text("four"),
    ]);
    ask(&world, "-p go").run().success();
    let result = |at: usize| server.requests()[at].last_text();
    assert!(result(1).contains("line-5000-of-many") && !result(1).contains("line-7-of"));
    let session = others(&world, &[]).pop().unwrap();
    let outputs = session.with_extension("outputs");
    assert!(result(1).contains(outputs.to_str().unwrap()), "{}", result(1));
    let kept: Vec<_> = fs::read_dir(&outputs).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);

    ask(&world, "-p next -c").run().success();
    assert!(result(3).starts_with("line-7-of-many"), "{}", result(3));
    assert!(result(4).contains("no kept output \"2\""), "{}", result(4));
    let id = read_id(&session);
    ask(&world, &format!("-p fork --fork {id}")).run().success();
    assert!(result(6).starts_with("line-8-of-many"), "{}", result(6));

    // The fork keeps its own.
    world.pi().words(&format!("sessions rm {id} --yes")).run().success();
    assert!(!session.exists() && !outputs.exists());
    ask(&world, "-p last -c").run().success();
    assert!(result(8).starts_with("line-9-of-many"), "{}", result(8));
    world.pi().words("sessions prune --keep 0 --yes").run().success();
    assert_eq!(world.session_files(), [] as [PathBuf; 0]);
}

fn read_id(path: &Path) -> String {
    read(path)[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_whose_owner_is_about_to_end_is_waited_for() {
    let (world, _server) = world([Reply::text("here")]);
    let path = stored(&world, &world.work(), "new", "first");
    let owner = fs::File::open(&path).unwrap();
    owner.lock().unwrap();
    let running = ask(&world, "-p go --session new").spawn();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(owner);
    running.wait().success().stdout_is("here\n");
}
