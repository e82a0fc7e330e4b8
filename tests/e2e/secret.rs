//! A key is in no output and in no file but the one that the user put it in.

use crate::server::{Reply, Server, gate};
use crate::world;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

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
