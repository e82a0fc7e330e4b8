//! Helpers that work in a copy of the folder.

use crate::agent::{World, wait_until};
use crate::helper::{done, world};
use crate::server::{Reply, gate};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

pub const PRINT: [&str; 5] = ["--model", "mock/m1", "--tools", "bash,task", "-p"];

pub fn isolated(agents: &[&str]) -> Reply {
    let task = |agent: &&str| json!({"agent": agent, "task": "Work", "isolated": true});
    Reply::tool("c1", "task", &json!({"tasks": agents.iter().map(task).collect::<Vec<_>>()}))
}

pub fn runs(command: &str) -> Reply {
    Reply::tool("b", "bash", &json!({"command": command}))
}

/// A helper that runs a command, and is then done.
pub fn worker(command: &str) -> Vec<Reply> {
    let mut replies = vec![runs(command)];
    replies.extend(done("ready"));
    replies
}

pub fn git(folder: &Path, words: &str) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=x", "-c", "user.email=x@x"]);
    let out = command.args(words.split(' ')).output().unwrap();
    assert!(out.status.success(), "git {words}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A repository with a commit, and files that are not committed.
pub fn repository(world: &World) {
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    for (path, text) in
        [("a.txt", lines.as_str()), ("gone", "x\n"), ("sub/b.txt", "b\n"), (".gitignore", "*.log\n")]
    {
        world.write(path, text);
    }
    let work = world.work();
    git(&work, "init -q");
    git(&work, "add -A");
    git(&work, "commit -qm first");
    world.write("sub/b.txt", "b, not committed\n");
    world.write("new", "untracked\n");
    world.write("x.log", "ignored\n");
}

/// Files and their texts, without git's own.
pub fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
        let name = entry.file_name().into_string().unwrap();
        match entry.path().is_dir() {
            true => {
                let inner = files(&entry.path());
                found.extend(inner.into_iter().map(|(path, text)| (format!("{name}/{path}"), text)));
            }
            false => found.push((name, fs::read_to_string(entry.path()).unwrap_or_default())),
        }
    }
    found.sort();
    found
}

pub fn copies(world: &World) -> usize {
    fs::read_dir(world.agent_dir().join("copies")).map_or(0, Iterator::count)
}

#[test]
fn the_copy_begins_as_the_folder_is_and_changes_come_back() {
    let look = "cat sub/b.txt new; ls x.log 2>/dev/null; git status --short; pwd";
    let change = "sed -i 's/line 3$/LINE 3/' a.txt; rm gone; mkdir -p deep/er; echo made > deep/er/f; \
        chmod +x deep/er/f; ln -s a.txt link; echo log > y.log; git add -A; git -c user.name=h -c user.email=h@h commit -qm mine";
    let mut replies = vec![runs(look)];
    replies.extend(worker(change));
    let (world, server, helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", replies)]);
    repository(&world);
    let (work, index) = (world.work(), fs::read(world.work().join(".git/index")).unwrap());
    let head = git(&work, "rev-parse HEAD");
    let before = files(&work);
    world.write_config("settings.json", r#"{"undo": {"commands": "on"}}"#);
    let run = world.pi().args(PRINT).args(["--mode", "json", "go"]).run().success();
    let seen = helpers[0].requests()[1].last_text();
    assert!(seen.starts_with("b, not committed\nuntracked\n/") && seen.contains("/copies/"), "{seen}");
    let result = server.requests()[1].last_text();
    let expected = "## a (a): done\n[Not taken over, as ignore rules exclude them: y.log]\n\
        [Changed: a.txt, deep/er/f, gone, link]\n\nready\n";
    assert_eq!(result, expected);
    assert!(world.read("a.txt").contains("LINE 3\n") && !work.join("gone").exists());
    assert!(!work.join("y.log").exists() && work.join("link").is_symlink());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&work.join("deep/er/f").metadata().unwrap().permissions());
    assert_eq!(mode & 0o111, 0o111);
    // Neither index nor branches have changed, and nothing is left.
    assert_eq!(fs::read(work.join(".git/index")).unwrap(), index);
    assert_eq!(git(&work, "rev-parse HEAD"), head);
    assert_eq!(git(&work, "branch --list").lines().count(), 1);
    assert_eq!(git(&work, "worktree list").lines().count(), 1);
    assert_eq!(copies(&world), 0);
    let end = run.events().into_iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    let changes = &end["result"]["details"]["helpers"][0]["changes"];
    assert_eq!((&changes["applied"], &changes["branch"]), (&json!(true), &Value::Null));
    let patch = fs::read_to_string(changes["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("-line 3\n+LINE 3\n"), "{patch}");
    // It can be taken back as what commands do.
    world.pi().words("undo --yes").run().success();
    assert_eq!(files(&work), before);
}

#[test]
fn what_does_not_fit_is_kept_on_a_branch() {
    let (open, held) = gate();
    let replies = vec![
        runs("sed -i 's/line 3$/theirs/' a.txt; echo more > other"),
        Reply::stream().then_wait(held).then_tool(0, "y", "yield", &json!({"result": "ready"})),
    ];
    let (world, server, helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", replies)]);
    repository(&world);
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    helpers[0].wait_for(2);
    world.write("a.txt", world.read("a.txt").replace("line 3\n", "ours\n"));
    let before = files(&world.work());
    open.send(()).unwrap();
    run.wait().success();
    assert_eq!(files(&world.work()), before);
    let result = server.requests()[1].last_text();
    let expected = "[Its changes (a.txt, other) are not in your files: changed in the folder, too: a.txt. They are kept in the branch pi/a and the diff ";
    assert!(result.contains(expected), "{result}");
    assert!(git(&world.work(), "show pi/a:a.txt").contains("theirs"));
    assert!(git(&world.work(), "show pi/a:sub/b.txt").contains("not committed"));
    assert_eq!((copies(&world), git(&world.work(), "worktree list").lines().count()), (0, 1));
}

#[test]
fn two_helpers_change_one_file() {
    let at = |line: usize, word: &str| worker(&format!("sed -i 's/line {line}$/{word}/' a.txt"));
    let (world, server, _helpers) = world(
        [isolated(&["a", "b", "c"]), Reply::text("ok")],
        [("a", at(3, "three")), ("b", at(15, "fifteen")), ("c", at(15, "other"))],
    );
    repository(&world);
    world.pi().args(PRINT).args(["go"]).run().success();
    let text = world.read("a.txt");
    assert!(text.contains("three\n"), "{text}");
    // The first one of the other two counts.
    let (kept, taken) = if text.contains("fifteen\n") { ("c", "fifteen") } else { ("b", "other") };
    assert!(text.contains(&format!("line 14\n{taken}\nline 16\n")), "{text}");
    let result = server.requests()[1].last_text();
    assert!(result.contains(&format!("the branch pi/{kept}")), "{result}");
    assert_eq!(result.matches("[Changed: a.txt]").count(), 2, "{result}");
}

#[test]
fn a_helper_that_fails_leaves_its_changes_on_a_branch() {
    let replies = vec![runs("echo half > half"), Reply::tool("y", "yield", &json!({"error": "cannot"}))];
    let (world, server, _helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", replies)]);
    repository(&world);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(!world.work().join("half").exists());
    let result = server.requests()[1].last_text();
    assert!(result.contains("the helper has not finished. They are kept in the branch pi/a"), "{result}");
    assert_eq!(git(&world.work(), "show pi/a:half"), "half\n");
}

#[test]
fn an_abort_leaves_the_copy_and_a_stop_makes_a_branch() {
    for (op, expected) in [("abort", "kept in /"), ("stop", "kept in the branch pi/a")] {
        let stalls =
            vec![runs("echo half > half"), Reply::stream().then_text("x").then(crate::server::Step::Stall)];
        let (world, _server, helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", stalls)]);
        repository(&world);
        let before = files(&world.work());
        let mut client = crate::rpc::client(&world, "--model mock/m1 --tools bash,task");
        client.prompt("go").unwrap();
        helpers[0].wait_for(2);
        match op {
            "abort" => client.abort().unwrap(),
            _ => drop(client.request("helper", json!({"op": "stop", "helper": "a"})).unwrap()),
        }
        let events = client.wait_until_settled().unwrap();
        let end = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
        let text = end["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("(a): aborted\n") && text.contains(expected), "{text}");
        assert_eq!(files(&world.work()), before);
        assert_eq!(copies(&world), usize::from(op == "abort"));
        client.close().unwrap();
    }
}

#[test]
fn what_an_abort_leaves_of_a_copy_that_was_being_made_is_removed() {
    let (world, _server, _helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", worker("true"))]);
    for number in 0..3000 {
        world.write(&format!("{}/{number}", number % 50), "x");
    }
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools bash,task");
    client.prompt("go").unwrap();
    client.events_until("tool_execution_start").unwrap();
    client.abort().unwrap();
    let events = client.wait_until_settled().unwrap();
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    // A slow test may have come when the copy was complete.
    let expected = usize::from(text.contains("kept in /"));
    wait_until("only what is kept is left", || copies(&world) == expected);
    client.close().unwrap();
}

#[test]
fn a_folder_without_git_is_copied() {
    let (world, server, helpers) = world(
        [isolated(&["a"]), Reply::text("ok")],
        [("a", worker("ls -A; echo 2 > one; rm two; echo x > out.tmp; mkdir d; echo n > d/n"))],
    );
    world.write("one", "1\n");
    world.write("two", "2\n");
    world.write(".gitignore", "*.tmp\n");
    world.write("big.tmp", "ignored");
    world.write("inner/f", "x");
    git(&world.work().join("inner"), "init -q");
    world.pi().args(PRINT).args(["go"]).run().success();
    let listed = helpers[0].requests()[1].last_text();
    assert!(listed.starts_with(".gitignore\none\ntwo\n"), "{listed}");
    let result = server.requests()[1].last_text();
    let expected = "## a (a): done\n[Not in the copy, as repositories of their own: inner. Not taken over, as ignore rules \
        exclude them: out.tmp]\n[Changed: d/n, one, two]\n";
    assert!(result.starts_with(expected), "{result}");
    assert_eq!((world.read("one"), world.read("d/n")), ("2\n".into(), "n\n".into()));
    assert!(!world.work().join("two").exists() && !world.work().join("out.tmp").exists());
    assert_eq!(copies(&world), 0);
}

#[test]
fn a_kill_or_a_full_disk_leaves_the_folder_whole_or_untouched() {
    let change = "echo changed > a.txt; echo n > new2; rm gone";
    for in_git in [true, false] {
        for point in [
            "copy-begin:1",
            "copy-file:3",
            "copy-end:1",
            "patch:1",
            "apply-stage:2",
            "apply-journal:1",
            "apply-file:2",
            "apply-rename:2",
            "apply-commit:1",
            "apply-end:1",
        ] {
            for action in ["abort", "err"] {
                if in_git && point.starts_with("copy-file") {
                    continue;
                }
                let what = format!("{point}:{action}");
                let (world, server, _helpers) = world(
                    [isolated(&["a"]), Reply::text("ok"), Reply::text("later")],
                    [("a", worker(change))],
                );
                match in_git {
                    true => repository(&world),
                    false => {
                        ["a.txt", "gone", "kept"].iter().for_each(|name| drop(world.write(name, "old\n")))
                    }
                }
                let before = files(&world.work());
                let run = world.pi().env("PI_FAIL", &what).args(PRINT).args(["go"]).run();
                if action == "err" {
                    run.success();
                    let result = server.requests()[1].last_text();
                    let is_told = result.contains("No space left") || result.contains("[Changed: ");
                    assert!(is_told, "{what}: {result}");
                } else {
                    assert_ne!(run.code(), 0, "{what}");
                }
                let later = world.pi().args(["--model", "mock/m1", "-p", "later"]).run();
                later.success();
                let after = files(&world.work());
                let is_whole = !world.work().join("gone").exists()
                    && world.read("a.txt") == "changed\n"
                    && world.read("new2") == "n\n";
                assert!(after == before || is_whole, "{what}: {after:?}");
                // What was not taken over is kept somewhere, unless the kill came before there was anything.
                let kept =
                    copies(&world) > 0 || (in_git && git(&world.work(), "branch --list").contains("pi/a"));
                assert!(is_whole || kept || point.starts_with("copy"), "{what}");
                for path in world
                    .session_files()
                    .iter()
                    .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
                {
                    world.pi().words("sessions show").args([path]).run().success();
                }
                world.pi().words("sessions prune --all --yes").run().success();
                assert_eq!(copies(&world), 0, "{what}");
                assert!(files(&world.work()) == before || is_whole, "{what}");
                if in_git {
                    git(&world.work(), "worktree prune");
                    assert_eq!(git(&world.work(), "worktree list").lines().count(), 1, "{what}");
                }
            }
        }
    }
}

#[test]
fn prune_asks_before_it_removes_a_copy() {
    let (world, _server, _helpers) = world([isolated(&["a"])], [("a", worker("echo x > x"))]);
    repository(&world);
    let before = files(&world.work());
    world.pi().env("PI_FAIL", "patch:1:abort").args(PRINT).args(["go"]).run();
    assert_eq!(copies(&world), 1);
    let refused = world.pi().words("sessions prune").run().fails_with(1);
    refused.stderr_has("the copy in which helpers worked (").stderr_has("Say --yes to do it");
    assert_eq!(copies(&world), 1);
    world.pi().words("sessions prune --yes").run().success().stdout_has("Removed ");
    assert_eq!((copies(&world), files(&world.work())), (0, before));
}
