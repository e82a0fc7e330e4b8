//! The extensions of `scripts/examples/extensions`, and those that `pi extension new` writes. What needs a program that
//! is not there is left out, with a line that says so.

use crate::agent::World;
use crate::server::{PATIENCE, Reply};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn example(name: &str) -> String {
    format!("{}/scripts/examples/extensions/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn has(test: &str, programs: &[&str]) -> bool {
    let is_there = |program: &&str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(missing) = missing {
        eprintln!("{test} is left out: no {missing} in PATH");
    }
    missing.is_none()
}

fn client(world: &World, extension: &str) -> Client {
    let mut pi = world.pi().args(["--mode", "rpc", "--model", "mock/m1", "--no-mcp", "-e", extension]);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client
}

/// Sends a prompt and gives all events until the run has ended.
fn prompt(client: &mut Client, text: &str) -> Vec<Value> {
    client.prompt(text).unwrap();
    client.events_until("agent_settled").unwrap()
}

/// Waits until an extension has registered the command `name`.
fn wait_until_there(client: &mut Client, name: &str) {
    let begun = Instant::now();
    loop {
        let commands = client.request("get_commands", json!({})).unwrap();
        let is_there = |command: &Value| command["name"] == name;
        if commands["commands"].as_array().is_some_and(|commands| commands.iter().any(is_there)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{name} is not there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The last of an extension's messages to the screen with this method.
fn shown<'a>(events: &'a [Value], method: &str) -> &'a Value {
    let is_it = |event: &&Value| event["type"] == "extension_ui_request" && event["method"] == method;
    events.iter().rfind(is_it).unwrap_or_else(|| panic!("no {method} in {events:#?}"))
}

#[test]
fn the_permission_gate_stops_what_is_dangerous() {
    if !has("the permission gate", &["python3"]) {
        return;
    }
    for (command, agrees, runs) in
        [("rm -rf keep", Some(false), false), ("rm -r keep", Some(true), true), ("mv keep gone", None, true)]
    {
        let reply = Reply::tool("t1", "bash", &json!({"command": command}));
        let (world, server) = world([reply, Reply::text("ok")]);
        world.write("keep/file", "");
        let mut client = client(&world, &example("permission-gate.py"));
        wait_until_there(&mut client, "permission-gate");
        client.prompt("go").unwrap();
        if let Some(agrees) = agrees {
            let events = client.events_until("extension_ui_request").unwrap();
            let question = events.last().unwrap();
            assert!(question["message"].as_str().unwrap().starts_with(command), "{question}");
            let answer = json!({"type": "extension_ui_response", "id": question["id"], "confirmed": agrees});
            client.send_line(answer.to_string().as_bytes()).unwrap();
        }
        client.events_until("agent_settled").unwrap();
        assert_eq!(!world.work().join("keep").exists(), runs, "{command}");
        let told = server.requests()[1].messages().last().unwrap().to_string();
        assert_eq!(told.contains("The user said no"), !runs, "{told}");
    }
}

#[test]
fn the_checklist_is_shown_and_stored() {
    if !has("the checklist", &["node"]) {
        return;
    }
    let items = json!({"items": [{"text": "look", "done": true}, {"text": "leap"}]});
    let (world, server) = world([Reply::tool("t1", "checklist", &items), Reply::text("ok")]);
    let mut client = client(&world, &example("checklist.mjs"));
    wait_until_there(&mut client, "checklist");
    let events = prompt(&mut client, "go");
    assert_eq!(shown(&events, "setWidget")["widgetLines"], json!(["☑ look", "☐ leap"]));
    assert!(server.requests()[1].messages().last().unwrap().to_string().contains("1 left"));
    client.close().unwrap();
    let stored = world.session().into_iter().find(|entry| entry["customType"] == "checklist").unwrap();
    assert_eq!(stored["data"]["items"][1], json!({"text": "leap", "done": false}));
}

#[test]
fn a_checkpoint_keeps_every_file() {
    let write = |text: &str| Reply::tool("t1", "write", &json!({"path": "a", "content": text}));
    let (world, _server) = world([write("two"), write("three"), Reply::text("ok")]);
    let git = |words: &[&str]| {
        let ran = Command::new("git")
            .args(words)
            .current_dir(world.work())
            .env("HOME", world.home())
            .output()
            .unwrap();
        assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    fs::write(world.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n").unwrap();
    world.write("a", "one");
    git(&["init", "-q"]);
    git(&["add", "a"]);
    git(&["commit", "-q", "-m", "one"]);
    world.write("new", "not added");
    let mut client = client(&world, &example("git-checkpoint.sh"));
    wait_until_there(&mut client, "checkpoints");
    prompt(&mut client, "go");
    let refs = git(&["for-each-ref", "--format=%(refname)", "refs/pi/checkpoints"]);
    let refs: Vec<&str> = refs.lines().collect();
    let contents: Vec<String> = refs.iter().map(|name| git(&["show", &format!("{name}:a")])).collect();
    assert_eq!(contents, ["one", "two", "three"]);
    assert_eq!(git(&["show", &format!("{}:new", refs[0])]), "not added");
    assert_eq!(git(&["status", "--porcelain"]), " M a\n?? new\n", "the index is left alone");
}

#[test]
fn a_program_is_a_model_that_streams() {
    if !has("the model that is a program", &["python3"]) {
        return;
    }
    let world = World::new();
    let run = |command: &str, prompt: &str| {
        let pi = world.pi().args(["-e", &example("program-model.py"), "--model", "program/run"]);
        pi.args(["--no-session", "--mode", "json", prompt]).env("PI_PROGRAM_MODEL", command).run()
    };
    let told = run("sed -n 's/^user: /You said: /p'; echo é", "hello").success();
    let answer = told.events().into_iter().rfind(|event| event["type"] == "message_end").unwrap();
    assert_eq!(answer["message"]["content"][0]["text"], "You said: hello\né\n");
    assert!(told.events().iter().any(|event| event["assistantMessageEvent"]["type"] == "text_delta"));
    let failed = run("exit 3", "hello").stdout;
    assert!(failed.contains("The program ended with status 3"), "{failed}");
    // An abort ends the program.
    let marked = world.home().join("pid");
    let command = format!("echo $$ >'{}'; echo begun; exec sleep 600", marked.display());
    let pi = world.pi().args(["--mode", "rpc", "--model", "program/run", "-e", &example("program-model.py")]);
    let mut client =
        Client::spawn(pi.env("PI_PROGRAM_MODEL", command).command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client.prompt("go").unwrap();
    client.events_until("message_update").unwrap();
    client.abort().unwrap();
    client.wait_until_settled().unwrap();
    client.close().unwrap();
    let pid = fs::read_to_string(&marked).unwrap();
    let begun = Instant::now();
    while std::path::Path::new(&format!("/proc/{}", pid.trim())).exists() && cfg!(target_os = "linux") {
        assert!(begun.elapsed() < PATIENCE, "the program still runs");
        std::thread::yield_now();
    }
}

#[test]
fn the_status_line_counts_turns() {
    if !has("the status line", &["python3"]) {
        return;
    }
    let (world, _server) = world([Reply::text("hi"), Reply::text("ok")]);
    let mut client = client(&world, &example("status-line.py"));
    // The first line is shown when the extension has come.
    client.events_until("extension_ui_request").unwrap();
    prompt(&mut client, "go");
    let mut events = prompt(&mut client, "again");
    // Nobody waits for the line: it may come after the end of the run.
    if !events.iter().any(|event| event["method"] == "setStatus") {
        events = client.events_until("extension_ui_request").unwrap();
    }
    let text = shown(&events, "setStatus")["statusText"].as_str().unwrap();
    assert!(text.starts_with("turn 1") || text.starts_with("turn 2"), "{text}");
}

#[test]
fn a_new_extension_works_and_its_test_passes() {
    for (language, programs, test) in [
        ("python", &["python3"][..], &["python3", "test.py"][..]),
        ("node", &["node"], &["node", "test.mjs"]),
        ("sh", &["jq"], &["sh", "test.sh"]),
    ] {
        if !has(language, programs) {
            continue;
        }
        let call = Reply::tool("t1", "greeter", &json!({"who": "Ada"}));
        let (world, server) = world([call, Reply::text("ok")]);
        let made =
            world.pi().args(["extension", "new", "greeter", "--lang", language]).run().success().stdout;
        assert!(made.starts_with("Made greeter/\n") && made.contains(&test.join(" ")), "{made}");
        let ran = Command::new(test[0])
            .args(&test[1..])
            .current_dir(world.work().join("greeter"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{language}: {}", String::from_utf8_lossy(&ran.stderr));
        let mut client = client(&world, "./greeter");
        wait_until_there(&mut client, "greeter");
        prompt(&mut client, "go");
        let told = server.requests()[1].messages().last().unwrap().to_string();
        assert!(told.contains("Hello, Ada."), "{language}: {told}");
        // A folder that is there is left alone.
        world.pi().args(["extension", "new", "greeter"]).run().fails_with(1).stderr_has("could not be made");
    }
}

#[test]
fn a_new_extension_in_rust_works() {
    let (world, server) = world([Reply::tool("t1", "greeter", &json!({"who": "Ada"})), Reply::text("ok")]);
    world.pi().args(["extension", "new", "greeter", "--lang=rust"]).run().success().stdout_has("cargo test");
    let target = world.work().join("greeter/target");
    for words in [&["test", "--offline", "--quiet"][..], &["build", "--release", "--offline", "--quiet"]] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(words).current_dir(world.work().join("greeter")).env("CARGO_TARGET_DIR", &target);
        let ran = cargo.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    let mut client = client(&world, "./greeter");
    wait_until_there(&mut client, "greeter");
    prompt(&mut client, "go");
    assert!(server.requests()[1].messages().last().unwrap().to_string().contains("Hello, Ada."));
}

#[test]
fn names_and_languages_that_cannot_be_are_refused() {
    let world = World::new();
    for (words, said) in [
        ("new ../x", "cannot be the name"),
        ("new Greeter", "cannot be the name"),
        ("new test", "cannot be the name"),
        ("new x --lang cobol", "Known: python, node, sh, rust"),
        ("", "Usage: pi extension new NAME"),
        ("old x", "Usage: pi extension new NAME"),
    ] {
        world.pi().words(&format!("extension {words}")).run().fails_with(2).stderr_has(said);
    }
    assert!(fs::read_dir(world.work()).unwrap().next().is_none());
}
