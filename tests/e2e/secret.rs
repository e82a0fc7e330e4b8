//! A key is in no output and in no file but the one that the user put it in.

use crate::server::{PATIENCE, Reply, Server, gate};
use crate::world;
use pi::client::Client;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const STORED: &str = "canary-stored-key-1";
const GIVEN: &str = "canary-given-key-2";
const HEADER: &str = "canary-header-3";
const ENVIRONMENT: &str = "canary-environment-4";
const ALL: [&str; 4] = [STORED, GIVEN, HEADER, ENVIRONMENT];

/// The files below `folder` that hold a secret, but for auth.json and models.json.
fn leaks(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            leaks(&path, found);
            continue;
        }
        if path.ends_with("auth.json") || path.ends_with("models.json") {
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        if ALL.iter().any(|secret| text.contains(secret)) {
            found.push(path);
        }
    }
}

#[test]
fn no_output_and_no_file_holds_a_key() {
    // A tool call, an answer, an error that says the key back.
    let replies = |key: &str| {
        let echo = format!("Incorrect API key provided: {key} with {HEADER}");
        [
            Reply::tool("c", "bash", &json!({"command": "echo done"})),
            Reply::text("fine"),
            Reply::error(401, &echo),
        ]
    };
    for (mode, key) in [("text", None), ("json", None), ("text", Some(GIVEN)), ("json", Some(GIVEN))] {
        let (world, server) = world(replies(key.unwrap_or(STORED)));
        use_keys(&world, &server);
        let log = world.tmp().join("http.log");
        let mut outputs = Vec::new();
        for message in ["first", "second"] {
            let given = key.map_or_else(Vec::new, |key| vec!["--api-key", key]);
            let run = world
                .pi()
                .args(["--model", "mock/m1", "--mode", mode, "--verbose", "-c", "-p", message])
                .args(given)
                .env("PI_DEBUG_HTTP", &log)
                .env("OPENAI_API_KEY", ENVIRONMENT)
                .run();
            outputs.push(run.stdout + &run.stderr);
        }
        for words in [
            "auth list",
            "auth check --provider mock",
            "--list-models",
            "config list",
            "sessions show",
            "export - --format jsonl",
        ] {
            let run = world.pi().words(words).env("OPENAI_API_KEY", ENVIRONMENT).run();
            outputs.push(run.stdout + &run.stderr);
        }
        for output in outputs {
            assert!(!ALL.iter().any(|secret| output.contains(secret)), "{output}");
        }
        assert!(log.exists(), "the requests were logged");
        let mut found = Vec::new();
        for folder in [world.home(), world.work(), world.tmp()] {
            leaks(&folder, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
        fs::remove_file(log).expect("remove the log");
        let asked = server.requests();
        let sent = key.unwrap_or(STORED);
        assert!(asked.iter().all(|request| request.head.contains(sent)));
    }
}

fn use_keys(world: &crate::agent::World, server: &Server) {
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "api": "openai-completions",
        "headers": {"x-own-token": HEADER}, "models": [{"id": "m1"}]}}});
    world.write_config("models.json", &config.to_string());
    let auth = json!({"mock": {"type": "api_key", "key": STORED}});
    world.write_config("auth.json", &auth.to_string());
}

/// Values without a common part, so that a piece of one is a piece of that one.
const OF_ENV: &str = "sk-Zq8vR2mLx71TbnW4";
const OF_AUTH: &str = "au-K3hYpD95cJg0sVfE";
const OF_HEADER: &str = "hd-61XwNuQe8GtAo2Mi";
const SECRETS: [&str; 3] = [OF_ENV, OF_AUTH, OF_HEADER];

/// Whether `text` holds a secret, or a piece of one that is as long as the shortest secret.
fn holds_secret(text: &str) -> bool {
    SECRETS.iter().any(|secret| {
        secret.as_bytes().windows(12).any(|piece| text.contains(std::str::from_utf8(piece).expect("ASCII")))
    })
}

/// The provider `mock` with a key in auth.json and a header from a variable.
fn use_secrets(world: &crate::agent::World, server: &Server) {
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "api": "openai-completions",
        "headers": {"x-team": "${TEAM}"}, "models": [{"id": "m1"}]}}});
    world.write_config("models.json", &config.to_string());
    let auth = json!({"mock": {"type": "api_key", "key": OF_AUTH}});
    world.write_config("auth.json", &auth.to_string());
}

fn pi<'w>(world: &'w crate::agent::World, mode: &str) -> crate::agent::Pi<'w> {
    world
        .pi()
        .args(["--model", "mock/m1", "--mode", mode])
        .env("OPENAI_API_KEY", OF_ENV)
        .env("TEAM", OF_HEADER)
        .env("PI_DEBUG_HTTP", world.home().join("http.log"))
}

#[test]
fn a_model_works_with_secrets_that_it_does_not_see() {
    let many = "for i in $(seq 9000); do printf %s \"$OPENAI_API_KEY\"; done";
    let long_line = format!("{}{OF_ENV} {OF_HEADER} TOKEN", "x".repeat(484));
    let written = "‹secret:OPENAI_API_KEY› ‹secret:auth.mock› ‹secret:TEAM›";
    let edits = json!([{"oldText": "KEY=‹secret:OPENAI_API_KEY›\nMODE=a", "newText": "KEY=‹secret:OPENAI_API_KEY›\nMODE=b"}]);
    for mode in ["text", "json"] {
        let (world, server) = world([
            Reply::tool("c1", "bash", &json!({"command": "env; cat .env"})),
            Reply::tool("c2", "bash", &json!({"command": many})),
            Reply::tool("c3", "read", &json!({"path": ".env"})),
            Reply::tool("c4", "edit", &json!({"path": ".env", "edits": edits})),
            Reply::tool("c5", "write", &json!({"path": "copy.env", "content": written})),
            Reply::tool("c6", "write", &json!({"path": "no.env", "content": "‹secret:NOPE›"})),
            Reply::tool("c7", "grep", &json!({"pattern": "TOKEN", "path": "long.txt"})),
            Reply::tool("c8", "bash", &json!({"command": "test ‹secret:TEAM› = \"$TEAM\" && echo same"})),
            Reply::stream().then_text("it is sk-Zq8vR2").then_text("mLx71TbnW4 and "),
            Reply::error(401, &format!("Incorrect key {OF_AUTH} of {OF_HEADER}")),
        ]);
        use_secrets(&world, &server);
        world.write(".env", format!("KEY={OF_ENV}\nMODE=a\n"));
        world.write("long.txt", &long_line);
        world.write("AGENTS.md", format!("The key is {OF_ENV}."));
        let tools = "read,bash,edit,write,grep";
        let first =
            pi(&world, mode).args(["--tools", tools, "-p", &format!("My key is {OF_AUTH}")]).run().success();
        let second = pi(&world, mode).args(["--tools", tools, "-c", "-p", "again", "--verbose"]).run();
        assert_eq!(world.read(".env"), format!("KEY={OF_ENV}\nMODE=b\n"));
        assert_eq!(world.read("copy.env"), format!("{OF_ENV} {OF_AUTH} {OF_HEADER}"));
        assert!(!world.work().join("no.env").exists());

        let requests = server.requests();
        assert_eq!(requests.len(), 10);
        for request in &requests {
            assert!(!holds_secret(&request.body.to_string()), "{}", request.body);
            assert_eq!(request.header("authorization"), Some(&*format!("Bearer {OF_AUTH}")));
            assert_eq!(request.header("x-team"), Some(OF_HEADER));
        }
        let told = |at: usize| requests[at].last_text();
        assert!(requests[0].body.to_string().contains("The key is ‹secret:OPENAI_API_KEY›."));
        assert_eq!(told(0), "My key is ‹secret:auth.mock›");
        assert!(told(1).contains("OPENAI_API_KEY=‹secret:OPENAI_API_KEY›"), "{}", told(1));
        assert!(told(2).contains("‹secret:OPENAI_API_KEY›‹secret:OPENAI_API_KEY›"), "{}", told(2));
        assert_eq!(told(3), "KEY=‹secret:OPENAI_API_KEY›\nMODE=a\n");
        assert!(told(6).contains("‹secret:NOPE› stands for a secret that is not known here"), "{}", told(6));
        assert!(told(7).contains("‹secret:"), "{}", told(7));
        assert_eq!(told(8), "same\n");
        if mode == "text" {
            assert_eq!(first.stdout, "it is ‹secret:OPENAI_API_KEY› and \n");
        }
        // What was sent once is sent again, byte for byte.
        for pair in requests.windows(2) {
            let (before, after) = (pair[0].messages(), pair[1].messages());
            assert_eq!(before, &after[..before.len()]);
        }

        for output in [first, second] {
            assert!(!holds_secret(&output.stdout), "{}", output.stdout);
            assert!(!holds_secret(&output.stderr), "{}", output.stderr);
        }
        let log = fs::read_to_string(world.home().join("http.log")).expect("the log");
        assert!(log.contains("x-team: •••") && log.contains("‹secret:OPENAI_API_KEY›"), "{log}");
        let mut found = Vec::new();
        secrets_below(&world.home(), &mut found);
        secrets_below(&world.work(), &mut found);
        found.sort();
        // The journal of undo keeps the user's files as they were.
        found.retain(|path| {
            !path.components().any(|part| part.as_os_str().to_string_lossy().ends_with(".undo"))
        });
        let expected = [
            world.agent_dir().join("auth.json"),
            world.work().join(".env"),
            world.work().join("AGENTS.md"),
            world.work().join("copy.env"),
            world.work().join("long.txt"),
        ];
        assert_eq!(found, expected);
    }
}

fn secrets_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            secrets_below(&path, found);
        } else if holds_secret(&String::from_utf8_lossy(&fs::read(&path).unwrap_or_default())) {
            found.push(path);
        }
    }
}

#[test]
fn a_secret_of_an_older_session_is_not_sent_unless_the_setting_says_so() {
    for hides in [true, false] {
        let (world, server) = world([Reply::text("yes")]);
        use_secrets(&world, &server);
        world.write_config(
            "settings.json",
            &json!({"hideSecrets": hides, "retry": {"enabled": false}}).to_string(),
        );
        let lines = [
            json!({"type": "session", "version": 3, "id": "old", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": world.work()}),
            json!({"type": "message", "id": "a0000001", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
                "message": {"role": "user", "content": format!("key {OF_ENV}"), "timestamp": 1}}),
        ];
        let file = world.write("old.jsonl", lines.map(|line| line.to_string() + "\n").concat());
        pi(&world, "text")
            .args([std::ffi::OsStr::new("--session"), file.as_os_str()])
            .args(["-p", "go on"])
            .run()
            .success();
        let body = server.requests()[0].body.to_string();
        assert_eq!(body.contains(OF_ENV), !hides, "{body}");
        assert_eq!(body.contains("key ‹secret:OPENAI_API_KEY›"), hides, "{body}");
        let get = json!({"type": "get_entries"}).to_string() + "\n";
        let words = ["--mode".as_ref(), "rpc".as_ref(), "--session".as_ref(), file.as_os_str()];
        let entries = world
            .pi()
            .env("OPENAI_API_KEY", OF_ENV)
            .args(["--model", "mock/m1"])
            .args(words)
            .stdin(get)
            .run();
        assert_eq!(entries.stdout.contains(OF_ENV), !hides, "{}", entries.stdout);
    }
}

#[test]
fn a_password_in_an_address_is_in_no_output() {
    let (world, server) = world([]);
    let base = server.url().replace("http://", &format!("http://me:{OF_AUTH}@")) + "?key=" + OF_ENV;
    let config = json!({"providers": {"mock": {"baseUrl": base, "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m1"}]}}});
    world.write_config("models.json", &config.to_string());
    let commands = ["get_state", "get_available_models", "cycle_model"]
        .map(|name| json!({"type": name}).to_string() + "\n");
    let run = world
        .pi()
        .args(["--model", "mock/m1", "--mode", "rpc", "--verbose"])
        .stdin(commands.concat())
        .run()
        .success();
    assert!(run.stdout.contains("\"baseUrl\":\"http://127.0.0.1:"), "{}", run.stdout);
    assert!(run.stderr.contains("mock/m1 at http://127.0.0.1:"), "{}", run.stderr);
    assert!(!holds_secret(&run.stdout) && !holds_secret(&run.stderr), "{} {}", run.stdout, run.stderr);
}

#[test]
fn a_client_sees_placeholders_and_the_tool_that_it_lends_gets_the_value() {
    let call = Reply::tool("t1", "look", &json!({"at": "‹secret:OPENAI_API_KEY›"}));
    let (world, server) = world([call, Reply::text("done"), Reply::text("more")]);
    let mut pi = world.pi().words("--mode rpc --ask-tools all --model mock/m1").env("OPENAI_API_KEY", OF_ENV);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    let look = json!({"name": "look", "description": "Looks.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}});
    client.request("register_tools", json!({"tools": [look]})).expect("lend a tool");
    let mut seen = Vec::new();

    let halves = "printf sk-Zq8vR2mL; sleep 0.2; echo x71TbnW4";
    let said =
        client.request("bash", json!({"command": format!("{halves} # {OF_ENV}")})).expect("run a command");
    assert_eq!(said["output"], "‹secret:OPENAI_API_KEY›\n");
    client.request("set_session_name", json!({"name": OF_ENV})).expect("name the session");
    client.prompt("go").expect("ask");
    client.follow_up(&format!("and {OF_ENV}")).expect("queue");

    let asked = client.events_until("extension_ui_request").expect("a question");
    let question = asked.last().expect("a question").clone();
    assert_eq!(question["arguments"], json!({"at": "‹secret:OPENAI_API_KEY›"}));
    seen.extend(asked);
    let answer = json!({"type": "extension_ui_response", "id": question["id"], "value": "Allow"});
    client.send_line(answer.to_string().as_bytes()).expect("allow");
    let mut calls = client.events_until("tool_call_request").expect("the call");
    let call = calls.pop().expect("the call");
    assert_eq!(call["arguments"], json!({"at": OF_ENV}));
    seen.extend(calls);
    for kind in ["tool_call_update", "tool_call_response"] {
        let fields = json!({"type": kind, "id": call["id"], "content": format!("see {OF_ENV}"), "details": {"k": [OF_ENV]}});
        client.send_line(fields.to_string().as_bytes()).expect("answer the call");
    }
    seen.extend(client.wait_until_settled().expect("the end"));
    seen.extend(client.messages().expect("messages"));
    seen.push(said);
    seen.push(client.request("get_entries", json!({})).expect("entries"));
    seen.push(client.request("get_state", json!({})).expect("the state"));
    drop(client);
    let end = seen.iter().find(|event| event["type"] == "tool_execution_end").expect("the end of the call");
    assert_eq!(end["result"]["details"], json!({"k": ["‹secret:OPENAI_API_KEY›"]}));
    for event in &seen {
        assert!(!holds_secret(&event.to_string()), "{event}");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| !holds_secret(&request.body.to_string())));
    assert_eq!(requests[2].last_text(), "and ‹secret:OPENAI_API_KEY›");
    let mut found = Vec::new();
    secrets_below(&world.home(), &mut found);
    assert_eq!(found, [] as [PathBuf; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_key_of_the_command_line_is_not_among_the_arguments_that_others_see() {
    let (open, held) = gate();
    let (world, server) = world([Reply::stream().then_wait(held).then_text("ok").finish("stop")]);
    let running = world.pi().args(["--model", "mock/m1", "--api-key", GIVEN, "-p", "hi"]).spawn();
    let request = server.wait_for(1).remove(0);
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {GIVEN}")));
    let arguments = fs::read(format!("/proc/{}/cmdline", running.pid())).unwrap();
    let arguments = String::from_utf8(arguments).unwrap();
    assert!(arguments.contains("--api-key\0***") && arguments.ends_with("-p\0hi\0"), "{arguments:?}");
    assert!(!arguments.contains(GIVEN), "{arguments:?}");
    drop(open);
    running.wait().success();
}
