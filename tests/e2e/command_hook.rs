//! Commands of the setting `hooks`, in sessions of the built binary. The recipes are those of the manual.

use crate::agent::{World, write_program};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

fn hooks(world: &World, hooks: &Value) {
    world.write_config("settings.json", &json!({"retry": {"enabled": false}, "hooks": hooks}).to_string());
}

/// A hook for an event that runs `command`.
fn hook(event: &str, matcher: &str, command: &str) -> Value {
    json!({event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]})
}

fn bash(command: &str) -> Reply {
    Reply::tool("t1", "bash", &json!({"command": command}))
}

/// The recipe below a line of the manual.
fn recipe(world: &World, title: &str) -> Value {
    let page = world.pi().words("docs hooks").run().success().stdout;
    let text = page.split(title).nth(1).and_then(|rest| rest.split("\n\n").nth(1)).expect("the recipe");
    serde_json::from_str::<Value>(text).unwrap()["hooks"].take()
}

/// What the model was told last.
fn told(server: &Server) -> String {
    server.requests().last().unwrap().messages().last().unwrap().to_string()
}

#[test]
fn a_call_is_blocked_by_its_name_and_its_arguments() {
    let (world, server) = world([bash("touch made"), Reply::text("ok")]);
    let command = r#"cat > "$HOME/in.json"; echo 'not here' >&2; exit 2"#;
    hooks(
        &world,
        &json!({"PreToolUse": [
            {"matcher": "Write", "hooks": [{"command": "exit 2"}]},
            {"matcher": "Bash", "arguments": {"command": "^rm"}, "hooks": [{"command": "exit 2"}]},
            {"matcher": "Bash", "arguments": {"command": "touch"}, "hooks": [{"command": command}]}
        ]}),
    );
    world.pi().words("-p go").run().success();
    assert!(!world.work().join("made").exists() && told(&server).contains("not here"));
    let input: Value = serde_json::from_slice(&fs::read(world.home().join("in.json")).unwrap()).unwrap();
    let expected = json!({"tool_name": "Bash", "tool_input": {"command": "touch made"}, "tool_use_id": "t1",
        "hook_event_name": "PreToolUse", "cwd": world.work(), "permission_mode": "default"});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&input[name], value, "{name}");
    }
    assert!(input["session_id"].is_string() && input["transcript_path"].is_string(), "{input}");
}

#[test]
fn json_denies_asks_changes_and_ends() {
    let answer = |specific: &str| {
        format!(r#"printf '{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{specific}}}}}'"#)
    };
    for (command, is_made, said) in [
        (answer(r#""permissionDecision":"deny","permissionDecisionReason":"never""#), false, "never"),
        (answer(r#""permissionDecision":"ask""#), false, "nobody can answer"),
        (answer(r#""permissionDecision":"allow""#), true, ""),
        (answer(r#""updatedInput":{"command":"touch made; echo changed"}"#), true, "changed"),
        (answer(r#""additionalContext":"mind the gap""#), true, "[hook] mind the gap"),
        (r#"printf '{"decision":"block","reason":"blocked"}'"#.to_owned(), false, "blocked"),
        ("exit 1".to_owned(), true, ""),
        ("no-such-program-anywhere".to_owned(), false, "not found"),
    ] {
        let (world, server) = world([bash("touch made"), Reply::text("ok")]);
        hooks(&world, &hook("PreToolUse", "Bash", &command));
        world.pi().words("-p go").run().success();
        assert_eq!(world.work().join("made").exists(), is_made, "{command}");
        assert!(told(&server).contains(said), "{command}: {}", told(&server));
    }
    let (world, server) = world([bash("true"), Reply::text("ok")]);
    hooks(&world, &hook("PreToolUse", "", r#"printf '{"continue":false,"stopReason":"enough"}'"#));
    world.pi().words("--mode json go").run();
    assert_eq!(server.requests().len(), 1, "the run ends");
}

#[test]
fn a_late_command_blocks_and_leaves_no_process() {
    let (world, server) = world([bash("touch made"), Reply::text("ok")]);
    let late = json!({"command": "sleep 600 & sleep 600", "timeout": 0.2});
    hooks(&world, &json!({"PreToolUse": [{"hooks": [late]}]}));
    world.pi().words("-p go").run().success();
    assert!(told(&server).contains("took too long") && !world.work().join("made").exists());
}

#[test]
fn results_and_prompts_get_what_commands_say() {
    let (world, server) = world([bash("echo one"), Reply::text("ok")]);
    let mut all = hook("PostToolUse", "bash", "echo 'run the linter' >&2; exit 2");
    all["UserPromptSubmit"] = json!([{"hooks": [{"command": "jq -r '\"asked: \" + .prompt'"}]}]);
    all["SessionStart"] = json!([{"matcher": "startup", "hooks": [{"command": "echo today is Monday"}]}]);
    all["SessionEnd"] = json!([{"hooks": [{"command": "jq -r .reason > \"$HOME/end\""}]}]);
    hooks(&world, &all);
    world.pi().words("-p hello").run().success();
    let first = server.requests()[0].messages().iter().map(Value::to_string).collect::<String>();
    assert!(first.contains("today is Monday") && first.contains("asked: hello"), "{first}");
    assert!(told(&server).contains("one") && told(&server).contains("[hook] run the linter"));
    assert_eq!(fs::read_to_string(world.home().join("end")).unwrap(), "other\n");
}

#[test]
fn a_prompt_is_refused() {
    let (world, server) = world([]);
    hooks(
        &world,
        &hook("UserPromptSubmit", "", "grep -q secret && { echo 'has a secret' >&2; exit 2; }; exit 0"),
    );
    for form in ["-p", "--json"] {
        let ran = world.pi().words(form).words("my-secret").run();
        assert!(ran.stderr.contains("The prompt was not sent: has a secret"), "{}", ran.stderr);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_model_goes_on_while_a_command_says_so() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    let command = "jq -e .stop_hook_active >/dev/null || { echo 'now test it' >&2; exit 2; }";
    hooks(&world, &hook("Stop", "", command));
    world.pi().words("-p go").run().success().stdout_has("two");
    assert_eq!(server.requests().len(), 2);
    assert!(told(&server).contains("now test it"));
}

#[test]
fn a_command_that_always_blocks_the_end_is_ended() {
    let replies: Vec<Reply> = (0..11).map(|_| Reply::text("again")).collect();
    let (world, server) = world(replies);
    hooks(&world, &hook("Stop", "", "exit 2"));
    world.pi().words("-p go").run().success();
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn hooks_of_a_project_need_trust_and_wrong_ones_are_said() {
    let replies = || [bash("touch made"), Reply::text("ok")];
    let (world, _server) = world(replies());
    hooks(&world, &json!({"Nonsense": []}));
    world.write(".pi/settings.json", json!({"hooks": hook("PreToolUse", "Bash", "exit 2")}).to_string());
    world.pi().words("-p go").run().success().stderr_has("there is no event Nonsense");
    assert!(world.work().join("made").exists(), "an untrusted project's hooks do not run");
    fs::remove_file(world.work().join("made")).unwrap();
    let server = Server::start(replies());
    world.use_server(&server);
    world.pi().words("-a -p go").run().success();
    assert!(!world.work().join("made").exists());
}

#[test]
fn recipe_format_on_edit() {
    let (world, _server) =
        world([Reply::tool("t1", "write", &json!({"path": "a.rs", "content": "x"})), Reply::text("ok")]);
    let bin = world.home().join("bin");
    write_program(&bin.join("rustfmt"), "#!/bin/sh\nprintf 'formatted' > \"$3\"\n");
    hooks(&world, &recipe(&world, "Format what was edited"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    world.pi().words("-p go").env("PATH", path).run().success();
    assert_eq!(world.read("a.rs"), "formatted");
}

#[test]
fn recipe_block_rm() {
    for (command, stays) in
        [("rm -rf keep", true), ("rm -f -R keep", true), ("rm keep/file; rmdir keep", false)]
    {
        let (world, _server) = world([bash(command), Reply::text("ok")]);
        world.write("keep/file", "");
        hooks(&world, &recipe(&world, "Block `rm -r`"));
        world.pi().words("-p go").run().success();
        assert_eq!(world.work().join("keep").exists(), stays, "{command}");
    }
}

#[test]
fn recipe_notify() {
    let (world, _server) = world([Reply::text("all done")]);
    let bin = world.home().join("bin");
    write_program(&bin.join("notify-send"), "#!/bin/sh\nprintf '%s' \"$2\" > \"$HOME/note\"\n");
    hooks(&world, &recipe(&world, "Tell the desktop that a run has ended"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    world.pi().words("-p go").env("PATH", path).run().success();
    assert_eq!(fs::read_to_string(world.home().join("note")).unwrap(), "all done");
}

#[test]
fn recipe_git_checkpoint() {
    let (world, _server) =
        world([Reply::tool("t1", "write", &json!({"path": "a", "content": "new"})), Reply::text("ok")]);
    let git = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let ran = Command::new("git")
            .args(words)
            .current_dir(world.work())
            .env("HOME", world.home())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    world.write("a", "committed");
    fs::write(world.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n").unwrap();
    git("init -q");
    git("add -A");
    git("commit -q -m one");
    world.write("a", "mine");
    hooks(&world, &recipe(&world, "Keep a git checkpoint of every prompt"));
    world.pi().args(["-p", "change it"]).run().success();
    assert_eq!(world.read("a"), "new");
    assert!(git("stash list").contains("before: change it"));
    git("checkout -q -- a");
    git("stash apply -q");
    assert_eq!(world.read("a"), "mine");
}

#[test]
fn a_gate_that_cannot_be_read_stays_shut() {
    let (world, server) = world([bash("touch made"), Reply::text("ok")]);
    hooks(&world, &hook("PreToolUse", "(", "exit 2"));
    let ran = world.pi().words("-p go").run().success();
    assert!(ran.stderr.contains("no regular expression"), "{}", ran.stderr);
    assert!(
        !world.work().join("made").exists() && told(&server).contains("cannot be used"),
        "{}",
        told(&server)
    );
}
