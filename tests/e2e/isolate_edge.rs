//! What must hold whatever a helper does in its copy, and whatever the user does meanwhile.

use crate::agent::{World, wait_until, write_program};
use crate::helper::{done, world};
use crate::isolate::{PRINT, copies, files, git, isolated, repository, runs, worker};
use crate::server::{Reply, Server, gate};
use serde_json::json;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs one isolated helper with a command, in a folder that `prepare` has made.
fn run(prepare: impl FnOnce(&World), command: &str) -> (World, Server) {
    let (world, server, _helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", worker(command))]);
    prepare(&world);
    world.pi().args(PRINT).args(["go"]).run().success();
    (world, server)
}

fn result(server: &Server) -> String {
    server.requests()[1].last_text()
}

/// Waits until the helper has run the first of its commands, and then for `change`, before it ends.
fn run_meanwhile(
    prepare: impl FnOnce(&World),
    command: &str,
    change: impl FnOnce(&World),
) -> (World, String) {
    let (open, held) = gate();
    let replies = vec![
        runs(command),
        Reply::stream().then_wait(held).then_tool(0, "y", "yield", &json!({"result": "ready"})),
    ];
    let (world, server, helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", replies)]);
    prepare(&world);
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    helpers[0].wait_for(2);
    change(&world);
    open.send(()).unwrap();
    run.wait().success();
    let result = result(&server);
    (world, result)
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn no_program_that_a_repository_names_is_run() {
    // The session's repository names programs, and so does one that the helper puts in place of its own.
    let escape = |world: &World| world.work().parent().unwrap().join("escaped");
    let prepare = |world: &World| {
        let program = format!("touch {}; cat", escape(world).display());
        world.write(".gitattributes", "* filter=x diff=x\n");
        repository(world);
        for name in
            ["filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.x.command", "core.fsmonitor"]
        {
            let mut command = std::process::Command::new("git");
            assert!(
                command
                    .current_dir(world.work())
                    .args(["config", name, &program])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let hook = world.work().join(".git/hooks/reference-transaction");
        write_program(&hook, &format!("#!/bin/sh\n{program}\n"));
    };
    let command = "up=$(git config --get x.y; pwd); rm -rf .git; git init -q; \
        git config filter.x.clean 'touch escaped-copy; cat'; git config core.fsmonitor 'touch escaped-copy'; \
        echo '* filter=x' > .gitattributes; sed -i 's/line 3$/LINE 3/' a.txt";
    let (world, server) = run(prepare, command);
    assert!(result(&server).contains("Changed: .gitattributes, a.txt"), "{}", result(&server));
    assert!(world.read("a.txt").contains("LINE 3\n"));
    assert!(!escape(&world).exists() && !world.work().join("escaped-copy").exists());
    // Nor for a branch.
    let (world, server, _helpers) = crate::helper::world(
        [isolated(&["a"]), Reply::text("ok")],
        [("a", vec![runs("echo x > x"), Reply::tool("y", "yield", &json!({"error": "cannot"}))])],
    );
    prepare(&world);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(result(&server).contains("the branch pi/a"), "{}", result(&server));
    assert!(!escape(&world).exists());
}

#[cfg(feature = "sandbox")]
#[test]
fn nothing_leaves_the_sandbox() {
    if !crate::sandbox::can_confine() {
        return;
    }
    let change = "echo x > x; rm gone; git add -A; git -c user.name=h -c user.email=h@h commit -qm mine";
    let fails = || vec![runs("echo y > y"), Reply::tool("y", "yield", &json!({"error": "cannot"}))];
    let tasks = [isolated(&["a"]), isolated(&["b"]), Reply::text("ok")];
    let (world, server, helpers) = world(tasks, [("a", worker(change)), ("b", fails())]);
    repository(&world);
    // The branch would be made outside.
    let objects = world.home().join("objects");
    fs::rename(world.work().join(".git/objects"), &objects).unwrap();
    std::os::unix::fs::symlink(&objects, world.work().join(".git/objects")).unwrap();
    let before = walk(&objects).len();
    world.pi().args(["--sandbox", "workspace"]).args(PRINT).args(["go"]).run().success();
    assert!(
        !helpers[0].requests()[1].last_text().contains("denied"),
        "{}",
        helpers[0].requests()[1].last_text()
    );
    assert!(result(&server).contains("[Changed: gone, x]"), "{}", result(&server));
    assert_eq!((world.read("x"), world.work().join("gone").exists()), ("x\n".into(), false));
    let kept = server.requests()[2].last_text();
    assert!(kept.contains("has not finished. They are kept in /"), "{kept}");
    assert_eq!((walk(&objects).len(), copies(&world)), (before, 1));
}

#[test]
fn repositories_that_a_helper_makes_stay_in_the_copy() {
    let plain = |world: &World| drop(world.write("one", "1\n"));
    for (prepare, expected) in [(&plain as &dyn Fn(&World), "made, .git"), (&repository, "made")] {
        let (world, server) = run(prepare, "git init -q; git init -q made; echo s > made/s; echo n > n");
        let text = result(&server);
        assert!(text.contains(&format!("as repositories: {expected}. They are in /")), "{text}");
        assert!(text.contains("[Changed: n]"), "{text}");
        assert_eq!((world.read("n"), world.work().join("made").exists()), ("n\n".into(), false));
        assert_eq!(copies(&world), 1);
        let copy = fs::read_dir(world.agent_dir().join("copies")).unwrap().flatten().next().unwrap();
        assert_eq!(fs::read_to_string(copy.path().join("tree/made/s")).unwrap(), "s\n");
    }
    let (world, server) = run(repository, "echo n > new; git add -A; git stash -q; git branch mine");
    assert!(result(&server).contains("branches, tags or a stash"), "{}", result(&server));
    assert_eq!((copies(&world), git(&world.work(), "branch --list").lines().count()), (1, 1));
}

#[test]
fn an_edit_that_git_does_not_see_is_kept() {
    let line = "line 20\n";
    let edits: [&dyn Fn(&World); 3] = [
        // Of the size and, for git, of the time of the commit.
        &|_| {},
        &|world| drop(git(&world.work(), "update-index --assume-unchanged a.txt")),
        &|world| drop(git(&world.work(), "update-index --skip-worktree a.txt")),
    ];
    for edit in edits {
        let prepare = |world: &World| {
            repository(world);
            edit(world);
            world.write("a.txt", world.read("a.txt").replace(line, "LINE 20\n"));
        };
        let (world, _) = run(prepare, "sed -i 's/line 1$/LINE 1/' a.txt");
        assert!(world.read("a.txt").starts_with("LINE 1\n") && world.read("a.txt").ends_with("LINE 20\n"));
        // While the helper works, too.
        let change =
            |world: &World| drop(world.write("a.txt", world.read("a.txt").replace(line, "mine 20\n")));
        let prepare = |world: &World| {
            repository(world);
            edit(world);
        };
        let (world, text) = run_meanwhile(prepare, "sed -i 's/line 1$/LINE 1/' a.txt", change);
        assert!(text.contains("[Changed: a.txt]"), "{text}");
        assert!(world.read("a.txt").starts_with("LINE 1\n") && world.read("a.txt").ends_with("mine 20\n"));
    }
    // A change of the helper that keeps the size.
    let (world, _) = run(repository, "printf y > gone.tmp; cat gone.tmp > gone; echo >> gone; rm gone.tmp");
    assert_eq!(world.read("gone"), "y\n");
}

#[test]
fn line_endings_and_modes_stay() {
    let text: String = (1..=20).map(|number| format!("line {number}\r\n")).collect();
    for autocrlf in ["true", "input", "false"] {
        let prepare = |world: &World| {
            world.write("dos", &text);
            world.write("run", "#!/bin/sh\n");
            fs::set_permissions(world.work().join("run"), fs::Permissions::from_mode(0o750)).unwrap();
            git(&world.work(), "init -q");
            for setting in
                [&*format!("core.autocrlf {autocrlf}"), "core.fileMode false", "diff.noprefix true"]
            {
                git(&world.work(), &format!("config {setting}"));
            }
            git(&world.work(), "add -A");
            git(&world.work(), "commit -qm first");
            world.write("both", &text);
        };
        let command = "sed -i 's/line 3\\r/LINE 3\\r/' dos both; chmod +x both; echo more >> run";
        let (world, result) = run_meanwhile(prepare, command, |world| {
            for name in ["dos", "both"] {
                world.write(name, world.read(name).replace("line 15\r", "LINE 15\r"));
            }
        });
        assert!(result.contains("[Changed: both, dos, run]"), "{result}");
        let expected = text.replace("line 3\r", "LINE 3\r").replace("line 15\r", "LINE 15\r");
        assert_eq!((world.read("dos"), world.read("both")), (expected.clone(), expected));
        assert_eq!(
            (mode(&world.work().join("run")), mode(&world.work().join("both")) & 0o100),
            (0o750, 0o100)
        );
        let patch =
            world.session_files().into_iter().find(|path| path.extension().is_some_and(|end| end == "patch"));
        assert!(fs::read_to_string(patch.unwrap()).unwrap().contains("diff --git a/both b/both\n"));
    }
}

#[test]
fn a_rule_holds_for_what_a_copy_stands_for() {
    let settings = |world: &World| {
        repository(world);
        let rule = format!("write({}/secret/**)", world.work().display());
        world.write_config("settings.json", &json!({"permissions": {"deny": [rule]}}).to_string());
    };
    // A command whose target no rule can know.
    let (world, server) = run(settings, "mkdir secret; cp a.txt secret/x");
    assert!(result(&server).contains("of the user forbids this call. They are kept in the branch pi/a"));
    assert!(!world.work().join("secret").exists());
    // The copy's own path.
    let (world, _server, helpers) = world_of_write();
    settings(&world);
    world.pi().words("--model mock/m1 --tools write,task -p go").run().success();
    let refused = helpers[0].requests()[1].last_text();
    assert!(refused.contains("The rule \"deny write(") && refused.contains("forbids this call"), "{refused}");
    assert!(!world.work().join("secret").exists());
}

fn world_of_write() -> (World, Server, Vec<Server>) {
    let (world, server, helpers) = world([isolated(&["a"]), Reply::text("ok")], [("a", vec![])]);
    let name = world.work().file_name().unwrap().to_str().unwrap().to_owned();
    let agent = world.agent_dir().canonicalize().unwrap();
    let path = agent.join(format!("copies/{name}-a-1/tree/secret/x"));
    let replies = std::iter::once(Reply::tool("w", "write", &json!({"path": path, "content": "x"})));
    let scripted = Server::start(replies.chain(done("ready")));
    let models = fs::read_to_string(world.agent_dir().join("models.json")).unwrap();
    world.write_config("models.json", &models.replace(&helpers[0].url(), &scripted.url()));
    (world, server, vec![scripted])
}

#[test]
fn a_kept_edit_does_not_stand_in_the_way_of_a_recovery_for_ever() {
    let change = "echo changed > a.txt; echo n > new2; rm gone";
    let (world, _server, _helpers) =
        world([isolated(&["a"]), Reply::text("1"), Reply::text("2")], [("a", worker(change))]);
    repository(&world);
    world.pi().env("PI_FAIL", "apply-commit:1:abort").args(PRINT).args(["go"]).run();
    world.write("a.txt", "my own\n");
    for _ in 0..2 {
        let later = world.pi().args(["--model", "mock/m1", "-p", "later"]).run();
        later.success().stderr_has("a.txt changed meanwhile").stderr_has("pi sessions prune");
        assert_eq!((world.read("a.txt"), world.read("gone")), ("my own\n".into(), "x\n".into()));
        assert!(!world.work().join("new2").exists());
    }
    world.pi().words("sessions prune --yes").run().success();
    assert_eq!((copies(&world), world.read("a.txt")), (0, "my own\n".into()));
}

#[test]
fn an_abort_does_not_wait_for_git() {
    let (world, _server, _helpers) =
        world([isolated(&["a"]), Reply::text("ok")], [("a", worker("echo x > x"))]);
    repository(&world);
    let before = files(&world.work());
    // A git that never comes back from the last thing that it is asked for.
    let bin = world.agent_dir().parent().unwrap().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let marker = bin.join("marker");
    let path = std::env::var_os("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists()).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *diff-tree*) echo > {}; exec sleep 600;; esac\nexec {} \"$@\"\n",
        marker.display(),
        real.display()
    );
    write_program(&bin.join("git"), &script);
    let path = format!("{}:{}", bin.display(), path.display());
    let mut client =
        crate::rpc::client_of(world.pi().env("PATH", &path), "--model mock/m1 --tools bash,task");
    client.prompt("go").unwrap();
    wait_until("git is asked", || marker.exists());
    client.abort().unwrap();
    let events = client.wait_until_settled().unwrap();
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("it was cancelled. They are kept in /"), "{text}");
    assert_eq!((files(&world.work()), copies(&world)), (before, 1));
    client.close().unwrap();
}

#[test]
fn nothing_is_written_to_the_repository_unless_a_branch_is() {
    let objects = |world: &World| walk(&world.work().join(".git")).len();
    let mut before = 0;
    let prepare = |world: &World| {
        repository(world);
        world.write("large", "x".repeat(100_000));
        before = objects(world);
    };
    let (world, _) = run(prepare, "echo x > x");
    assert_eq!(objects(&world), before);
    // What git does not know has a limit.
    let prepare = |world: &World| {
        repository(world);
        world.write("large", "x".repeat(2 << 20));
        world.write_config("settings.json", r#"{"helpers": {"copyBytes": 1048576}}"#);
    };
    let (world, server) = run(prepare, "echo x > x");
    let text = result(&server);
    assert!(text.contains("holds more than 1 MB of files") && text.contains("helpers.copyBytes"), "{text}");
    assert_eq!(copies(&world), 0);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    walkdir::WalkDir::new(folder).into_iter().flatten().map(|entry| entry.into_path()).collect()
}

#[test]
fn folders_and_names_of_any_bytes_are_taken_over() {
    let (world, server, _helpers) = world(
        [isolated(&["a"]), Reply::text("ok")],
        [(
            "a",
            worker(
                "pwd; rm b.txt; cd ..; rm -r only; n=$(printf 'n\\351'); printf x > \"$n\"; printf y > 'a\nb'",
            ),
        )],
    );
    repository(&world);
    world.write("only/one/f", "f");
    let mut pi = world.pi().args(PRINT).args(["go"]);
    pi.command().current_dir(world.work().join("sub"));
    pi.run().success();
    let text = result(&server);
    assert!(text.contains("[Changed: a\\nb, n\u{fffd}, only/one/f, sub/b.txt]"), "{text}");
    assert!(world.work().join("sub").is_dir() && !world.work().join("only").exists());
    let name = std::ffi::OsStr::from_bytes(b"n\xe9");
    assert_eq!(fs::read(world.work().join(name)).unwrap(), b"x");
    assert_eq!(world.read("a\nb"), "y");
}
