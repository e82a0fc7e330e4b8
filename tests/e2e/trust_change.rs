//! A trusted project of which a file changes that runs.

use crate::agent::{World, write_program};
use crate::extension::{registers, script};
use crate::server::{PATIENCE, Reply};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const MODEL: [&str; 2] = ["--model", "mock/m1"];

/// A manifest whose program is started when its command is first used.
fn manifest(command: &str) -> String {
    json!({"command": "./run", "lazy": true, "commands": [{"name": command}]}).to_string()
}

/// An extension that leaves a mark in the home folder when it is started.
fn program() -> String {
    let text = script(&registers(&json!({"commands": [{"name": "late"}]})));
    text.replace("#!/bin/sh\n", "#!/bin/sh\necho . >> \"$HOME/started\"\n")
}

fn starts(world: &World) -> usize {
    fs::read_to_string(world.home().join("started")).unwrap_or_default().lines().count()
}

/// Files of each kind, and whether a change of one is asked about.
const FILES: &[(&str, bool)] = &[
    (".pi/extensions/one/pi-extension.json", true),
    (".pi/extensions/one/run", true),
    (".pi/extensions/one/lib/beside.sh", true),
    ("pack/package.json", true),
    ("pack/ext/pi-extension.json", true),
    ("pack/ext/run", true),
    ("pack/prompts/p.md", true),
    (".pi/npm/node_modules/n/package.json", true),
    (".pi/npm/node_modules/n/lib.js", true),
    (".pi/npm/package-lock.json", true),
    (".pi/git/host.org/u/r/prompts/g.md", true),
    (".pi/git/host.org/u/r/lib.js", true),
    ("tools/named/pi-extension.json", true),
    ("tools/named/run", true),
    (".pi/SYSTEM.md", false),
    (".pi/prompts/review.md", false),
    (".pi/skills/s/SKILL.md", false),
    (".pi/mcp.json", true),
    ("scripts/hook.sh", true),
    (".pi/settings.json", true),
    (".pi/themes/t.json", false),
    ("src/main.rs", false),
    ("pack/.git/index", false),
];

fn make_project(world: &World) {
    let hooks = json!({"Notification": [{"hooks": [{"type": "command", "command": "scripts/hook.sh"}]}]});
    let settings = json!({
        "packages": ["../pack", "npm:n", "git:host.org/u/r"], "extensions": ["../tools/named"], "hooks": hooks,
    });
    let resources = json!({"pi": {"extensions": ["./ext/pi-extension.json"], "prompts": ["./prompts"]}});
    for (name, _) in FILES {
        let text = match *name {
            ".pi/settings.json" => settings.to_string(),
            ".pi/mcp.json" => json!({"mcpServers": {"s": {"command": "none", "enabled": false}}}).to_string(),
            "pack/package.json" => resources.to_string(),
            ".pi/prompts/review.md" => "reviewed".to_owned(),
            ".pi/skills/s/SKILL.md" => "---\ndescription: d\n---\ntext".to_owned(),
            name if name.ends_with("package.json") => "{}".to_owned(),
            ".pi/extensions/one/pi-extension.json" => manifest("late"),
            name if name.ends_with("pi-extension.json") => manifest(&format!("c{}", name.len())),
            _ => "1".to_owned(),
        };
        world.write(name, text);
        if name.ends_with("/run") {
            write_program(&world.work().join(name), &program());
        }
    }
    trust(world);
}

fn trust(world: &World) {
    world.write_config("trust.json", &json!({world.work().to_str().unwrap(): true}).to_string());
}

/// Changes one byte of a file, in a way that its format allows.
fn change(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let changed = match path.file_name().unwrap().to_str().unwrap() {
        "mcp.json" => text.replace("none", "nine"),
        "settings.json" => text.replace("hook.sh", "hook.py"),
        _ => text + "\n",
    };
    fs::write(path, changed).unwrap();
}

#[test]
fn a_change_of_one_byte_is_named_and_the_project_is_not_used() {
    let (world, server) = world((0..2 * FILES.len() + 2).map(|_| Reply::text("ok")));
    make_project(&world);
    let run = || {
        let before = server.requests().len();
        let outcome = world.pi().args(MODEL).args(["--no-session", "-p", "/review"]).run().success();
        (server.requests()[before].last_text().trim_end().to_owned(), outcome.stderr)
    };
    let used = ("reviewed".to_owned(), String::new());
    assert_eq!(run(), used);
    assert_eq!(run(), used, "nothing has changed");
    for (name, asks) in FILES {
        let path = world.work().join(name);
        let before = fs::read(&path).unwrap();
        change(&path);
        let (text, said) = run();
        let expected = format!("Not used, since the project has changed since it was trusted: {name}");
        match asks {
            true => assert!(text == "/review" && said.starts_with(&expected), "{name}: {text} {said}"),
            false => assert_eq!((text, said), used, "{name}"),
        }
        fs::write(&path, &before).unwrap();
        assert_eq!(run(), used, "{name} is as it was");
    }
    assert_eq!(starts(&world), 0);
}

#[test]
fn the_question_names_what_has_changed_and_the_answer_is_kept() {
    let (world, server) = world((0..3).map(|_| Reply::text("ok")));
    make_project(&world);
    let pi = || world.pi().args(MODEL).args(["--no-session", "-p", "/review"]);
    pi().run().success();
    change(&world.work().join("tools/named/run"));
    world.write("pack/new.js", "1");
    let running = pi().spawn_on_terminal();
    running.wait_until_shown("It has changed since: pack/new.js (new), tools/named/run");
    running.wait_until_shown("Number, or Enter");
    running.type_keys("1\r");
    running.wait().success();
    assert_eq!(pi().run().success().stderr, "");
    let texts: Vec<String> = server.requests().iter().map(|request| request.last_text()).collect();
    assert_eq!(texts, ["reviewed"; 3]);
}

#[test]
fn a_program_that_changes_while_pi_runs_is_not_started_before_a_reload_asked() {
    let (world, _server) = world([]);
    make_project(&world);
    let mut client = Client::spawn(world.pi().words("--mode rpc").args(MODEL).command()).expect("start pi");
    client.set_patience(PATIENCE);
    client.request("get_state", json!({})).expect("the state");
    change(&world.work().join(".pi/extensions/one/lib/beside.sh"));
    client.send("prompt", json!({"message": "/late"})).expect("a command");
    let error = loop {
        let event: Value = client.next_event().expect("an event");
        // The hook of the project fails, too.
        if event["type"] == "extension_error" && event["event"] == "start" {
            break event["error"].as_str().unwrap().to_owned();
        }
    };
    let expected = "the project has changed since it was trusted: .pi/extensions/one/lib/beside.sh";
    assert!(error.contains(expected), "{error}");
    client.close().expect("an end in order");
    assert_eq!(starts(&world), 0);
}
