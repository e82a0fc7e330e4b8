//! Killed, or out of disk, at every step of what makes files besides the session's own line: forks,
//! imports, migrations, compactions, undo. What was there before stays, what is new is whole or not
//! there, and the same command works the next time.

use crate::agent::{Outcome, Pi, World};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const STEPS: [&str; 5] =
    ["session.create", "session.write", "session.torn", "session.sync", "session.rename"];

/// Runs `scene` with each of `points` failing at its k-th passage, for every k until the scene says that
/// it went through untouched.
#[track_caller]
fn every_passage(points: &[&str], scene: impl Fn(&str) -> bool) {
    let mut reached = 0;
    for point in points {
        for action in ["abort", "err"] {
            for k in 1.. {
                if scene(&format!("{point}:{k}:{action}")) {
                    reached += k - 1;
                    break;
                }
                assert!(k < 60, "{point} does not end");
            }
        }
    }
    assert!(reached > 0, "no point is ever passed");
}

fn untouched(outcome: &Outcome) -> bool {
    outcome.code() == 0 && outcome.stderr.is_empty()
}

fn session(cwd: &Path, version: u64) -> String {
    let link = |id: &str, parent: &str| match version {
        1 => String::new(),
        _ => format!(r#""id":"{id}","parentId":{parent},"#),
    };
    let cwd = cwd.display();
    let (u1, a1) = (link("u1", "null"), link("a1", "\"u1\""));
    format!(
        r#"{{"type":"session","version":{version},"id":"old","timestamp":"2024-12-03T14:00:00.000Z","cwd":"{cwd}"}}
{{"type":"message",{u1}"timestamp":"2024-12-03T14:00:01.000Z","message":{{"role":"user","content":"remember me","timestamp":1}}}}
{{"type":"message",{a1}"timestamp":"2024-12-03T14:00:02.000Z","message":{{"role":"assistant","content":[{{"type":"text","text":"I do"}}],"api":"openai-completions","provider":"mock","model":"m1","usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":2}}}}
"#
    )
}

fn ask<'w>(world: &'w World, words: &str) -> Pi<'w> {
    world.pi().args(["--model", "mock/m1"]).words(words)
}

fn named(world: &World) -> Vec<PathBuf> {
    let mut files = world.session_files();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files
}

/// Whole lines, the two messages of [`session`] among them.
#[track_caller]
fn assert_whole(path: &Path, fail: &str) {
    let text = fs::read_to_string(path).unwrap();
    let sound = text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok());
    // A line that a kill tore is fenced by the next.
    let whole = sound || fail.contains("torn");
    assert!(
        whole && text.contains("remember me") && text.contains("I do"),
        "{fail}: {} {text}",
        path.display()
    );
}

/// Nothing but sessions is left once `pi sessions prune` has been here.
#[track_caller]
fn assert_tidy(world: &World, fail: &str) {
    world.pi().words("sessions prune --yes").run().success();
    let kinds: HashSet<String> = world
        .session_files()
        .iter()
        .map(|path| path.extension().unwrap().to_string_lossy().into_owned())
        .collect();
    let known = ["jsonl", "draft", "bak"];
    assert!(kinds.iter().all(|kind| known.contains(&kind.as_str())), "{fail}: {kinds:?}");
}

#[test]
fn a_fork_is_whole_or_not_there() {
    every_passage(&STEPS, |fail| {
        let (world, _server) = world([Reply::text("one"), Reply::text("two")]);
        let source = world.write("old.jsonl", session(&world.work(), 3));
        let before = fs::read(&source).unwrap();
        let words = format!("-p go --fork {}", source.display());
        let outcome = ask(&world, &words).env("PI_FAIL", fail).run();
        assert_eq!(fs::read(&source).unwrap(), before, "{fail}");
        let forks = named(&world);
        forks.iter().for_each(|fork| assert_whole(fork, fail));
        if !untouched(&outcome) {
            let said = outcome.code() > 128 || outcome.stderr.contains("session");
            assert!(said, "{fail}: {outcome:?}");
            ask(&world, &words).run().success();
            assert_eq!(named(&world).len(), forks.len() + 1);
        }
        assert_tidy(&world, fail);
        untouched(&outcome)
    });
}

#[test]
fn an_import_is_whole_or_not_there() {
    for version in [1, 3] {
        every_passage(&STEPS, |fail| {
            let (world, _server) = world([]);
            let source = world.write("old.jsonl", session(&world.work(), version));
            let before = fs::read(&source).unwrap();
            let import = || world.pi().words("sessions import old.jsonl");
            let outcome = import().env("PI_FAIL", fail).run();
            assert_eq!(fs::read(&source).unwrap(), before, "{fail}");
            let imported = named(&world);
            imported.iter().for_each(|file| assert_whole(file, fail));
            if !untouched(&outcome) {
                import().run().success();
                assert_eq!(named(&world).len(), imported.len() + 1, "{fail}");
            }
            assert_tidy(&world, fail);
            untouched(&outcome)
        });
    }
}

#[test]
fn an_older_file_is_the_old_one_or_the_new_one() {
    every_passage(&STEPS, |fail| {
        let (world, server) = world([Reply::text("one"), Reply::text("two")]);
        let source = world.write("old.jsonl", session(&world.work(), 1));
        let words = format!("-p go --session {}", source.display());
        let outcome = ask(&world, &words).env("PI_FAIL", fail).run();
        assert_whole(&source, fail);
        if outcome.code() == 0 {
            // Only the migration is told.
            return outcome.stderr.lines().count() == 1;
        }
        ask(&world, &words).run().success();
        assert_whole(&source, fail);
        let requests = server.requests();
        let sent = requests.last().unwrap().messages();
        assert!(sent.iter().any(|message| message.to_string().contains("remember me")));
        let backup = world.work().read_dir().unwrap().flatten();
        let mut backups = backup.filter(|file| file.path().extension().unwrap() == "bak");
        let backup = backups.next().unwrap().path();
        let backup = fs::read_to_string(backup).unwrap();
        assert_eq!(backup, session(&world.work(), 1), "{fail}");
        false
    });
}

#[test]
fn a_compaction_is_there_or_not() {
    let points = ["session.write", "session.torn", "session.sync"];
    every_passage(&points, |fail| {
        let world = World::new();
        let first = [
            Reply::text(&"a".repeat(800)),
            Reply::tool(
                "1",
                "bash",
                &json!({"command": "yes 0123456789012345678901234567890123456789 | head -c 45000"}),
            ),
            Reply::text(&"b".repeat(800)).with_prompt_tokens(9500),
            Reply::text("THE SUMMARY"),
            Reply::text("THE TURN"),
            Reply::text("third"),
        ];
        let server = Server::start(first);
        small(&world, &server);
        let outcome = ask(&world, "--mode json -p one two three").env("PI_FAIL", fail).run();
        drop(server);
        let server = Server::start([Reply::text("again")]);
        world.use_server(&server);
        let file = world.session_files().into_iter().find(|path| {
            let end = path.extension().unwrap();
            end == "jsonl" || end == "draft"
        });
        let Some(file) = file else {
            return false;
        };
        let words = format!("-p more --session {}", file.display());
        ask(&world, &words).run().success();
        let requests = server.requests();
        crate::crash::assert_legal(&requests[0]);
        let entries = fs::read_to_string(file.with_extension("").with_extension("jsonl")).unwrap();
        let sent = requests[0].messages();
        let sent = serde_json::to_string(sent).unwrap();
        let mut sound = entries.lines().flat_map(serde_json::from_str::<Value>);
        let compacted = sound.any(|entry| entry["type"] == "compaction");
        // The first message, or what stands for it.
        if entries.contains("\"one\"") {
            assert_eq!(sent.contains("THE SUMMARY"), compacted, "{fail}: {sent}");
            assert_eq!(sent.contains("\"one\""), !compacted, "{fail}: {sent}");
        }
        untouched(&outcome)
    });
}

fn small(world: &World, server: &Server) {
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
        "api": "openai-completions", "models": [{"id": "m1", "contextWindow": 10_000, "maxTokens": 4000}]}}});
    world.write_config("models.json", &models.to_string());
    let settings = json!({"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100},
        "retry": {"enabled": false}});
    world.write_config("settings.json", &settings.to_string());
}

/// `a.txt` is edited, `new/b.txt` is made.
fn edits() -> [Reply; 3] {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let write = json!({"path": "new/b.txt", "content": "b"});
    [Reply::tool("1", "edit", &edit), Reply::tool("2", "write", &write), Reply::text("done")]
}

#[test]
fn what_a_killed_run_changed_can_be_taken_back() {
    every_passage(&["undo.write", "undo.torn"], |fail| {
        let (world, _server) = world(edits());
        world.write("a.txt", "one\r\n");
        let outcome = ask(&world, "-p go").env("PI_FAIL", fail).run();
        let now = world.read("a.txt");
        assert!(now == "one\r\n" || now == "two\r\n", "{fail}: {now:?}");
        if fail.ends_with("abort") {
            world.pi().words("undo 9").run().success();
            assert_eq!(world.read("a.txt"), "one\r\n", "{fail}");
            assert!(!world.work().join("new").exists(), "{fail}");
            return outcome.code() == 0;
        }
        // What could not be noted is not refused: the disk has room for the work itself.
        outcome.success();
        assert_eq!(now, "two\r\n");
        world.pi().words("undo 9").run();
        let now = world.read("a.txt");
        assert!(now == "one\r\n" || now == "two\r\n", "{fail}: {now:?}");
        now == "one\r\n" && !world.work().join("new").exists()
    });
}

#[test]
fn an_undo_that_was_killed_is_finished_by_the_next() {
    let points = ["undo.file", "undo.write", "undo.torn", "session.write", "session.torn"];
    every_passage(&points, |fail| {
        let (world, _server) = world(edits());
        world.write("a.txt", "one\r\n");
        ask(&world, "-p go").run().success();
        let outcome = world.pi().words("undo 9").env("PI_FAIL", fail).run();
        let now = world.read("a.txt");
        assert!(now == "one\r\n" || now == "two\r\n", "{fail}: {now:?}");
        world.pi().words("undo 9").run().success();
        assert_eq!(world.read("a.txt"), "one\r\n", "{fail}");
        assert!(!world.work().join("new").exists(), "{fail}");
        untouched(&outcome)
    });
}

/// A world and the way to run pi in it, where no file may become larger than `limit` bytes.
fn limited<'w>(world: &'w World, words: &str, limit: u64) -> Pi<'w> {
    use std::os::unix::process::CommandExt;
    let mut pi = ask(world, words);
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the call is safe between fork and exec, and the limit lives as long as the closure.
    unsafe {
        pi.command().pre_exec(move || {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            Ok(())
        });
    }
    pi
}

#[test]
fn a_file_at_its_size_limit_is_an_error_not_a_death() {
    let (world, server) = world([]);
    let source = world.write("old.jsonl", session(&world.work(), 3));
    let before = fs::read(&source).unwrap();
    let limit = before.len() as u64;
    for words in ["-p go --fork old.jsonl".to_owned(), format!("-p go --session {}", source.display())] {
        let outcome = limited(&world, &words, limit).run().fails_with(1);
        outcome.stderr_has("the limit for the size of a file was reached");
        assert_eq!(fs::read(&source).unwrap(), before, "{words}");
    }
    // Less than that does not hold a copy.
    let import = limited(&world, "-p go --fork old.jsonl", limit - 9).run();
    import.fails_with(1).stderr_has("the limit for the size of a file");
    assert!(server.requests().is_empty());
    named(&world).iter().for_each(|path| assert_whole(path, ""));
}

#[test]
fn a_folder_that_takes_no_files_is_an_error_before_the_request() {
    let (world, server) = world([Reply::text("on")]);
    // Not even root makes files there.
    let pi = ask(&world, "-p go --session-dir /proc/none");
    pi.run().fails_with(1).stderr_has("Could not create the session folder /proc/none");
    let source = world.write("old.jsonl", session(&world.work(), 3));
    let pi = ask(&world, "-p go --session-dir /proc/none --fork old.jsonl");
    pi.run().fails_with(1).stderr_has("/proc/none");
    let pi = world.pi().words("sessions import old.jsonl --session-dir /proc/none");
    pi.run().fails_with(1).stderr_has("/proc/none");
    assert!(source.exists());
    assert!(server.requests().is_empty());
    // It can still be talked to without.
    ask(&world, "-p go --no-session --session-dir /proc/none").run().success();
}
