//! `pi auth`: what scripts see of it, a sign-in from end to end, and many processes with one token.
//!
//! A Radius gateway of the user's own stands for all providers with a sign-in: it is the one whose
//! address a configuration may name.

use crate::agent::{Pi, World, terminal};
use crate::server::{Reply, Server, gate};
use serde_json::{Value, json};
use std::fs;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// What must be on no stream that was not asked for it.
const CANARY: &str = "canary-secret-1";
const FAR: u64 = 99_999_999_999_999;

fn auth<'w>(world: &'w World, words: &str) -> Pi<'w> {
    world.pi().words(&format!("auth {words}"))
}

/// A world with a gateway at `server`, and what auth.json has for it.
pub fn gateway(server: &Server, entry: &Value) -> World {
    let world = World::new();
    let url = server.url();
    let config = json!({"providers": {"gate": {"baseUrl": url, "oauth": "radius", "api": "openai-completions",
        "models": [{"id": "m1", "baseUrl": url}]}}});
    world.write_config("models.json", &config.to_string());
    if !entry.is_null() {
        let entries = json!({"gate": entry, "other": {"type": "new"}});
        world.write_config("auth.json", &entries.to_string());
        let file = world.agent_dir().join("auth.json");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("close the file");
    }
    world
}

fn expired() -> Value {
    json!({"type": "oauth", "access": "old", "refresh": CANARY, "expires": 5})
}

fn stored(world: &World) -> Value {
    let text = fs::read_to_string(world.agent_dir().join("auth.json")).expect("read auth.json");
    serde_json::from_str(&text).expect("auth.json is JSON")
}

fn token(access: &str, seconds: u64) -> Reply {
    let body =
        json!({"access_token": access, "refresh_token": format!("after-{access}"), "expires_in": seconds});
    Reply::status(200, "application/json", &body.to_string())
}

#[test]
fn check_answers_as_scripts_expect() {
    let world = World::new();
    let entries = json!({
        "anthropic": {"type": "oauth", "access": "at", "refresh": CANARY, "expires": FAR},
        "openai": {"type": "api_key", "key": "sk-1"},
        "groq": {"type": "api_key", "key": "$NOPE"},
        "xai": {"type": "oauth", "access": "old", "refresh": CANARY, "expires": 5},
    });
    world.write_config("auth.json", &entries.to_string());
    let rows = [
        ("--provider anthropic", 0, "ready"),
        ("--provider openai --credentials", 0, "sk-1"),
        ("--provider openai --json", 0, r#"{"status":"ready","provider":"openai","authType":"api_key"}"#),
        (
            "--provider anthropic --json --credentials",
            0,
            r#"{"status":"ready","provider":"anthropic","authType":"oauth","credentials":"at"}"#,
        ),
        (
            "--provider xai --no-refresh --json --credentials",
            0,
            r#"{"status":"ready","provider":"xai","authType":"oauth","credentials":"old"}"#,
        ),
        (
            "--provider groq --json",
            1,
            r#"{"status":"not_ready","provider":"groq","reason":"credentials_not_configured"}"#,
        ),
        (
            "--provider nope --json",
            1,
            r#"{"status":"not_ready","provider":"nope","reason":"provider_not_found"}"#,
        ),
        ("--provider deepseek", 1, "not_ready"),
        (
            "--model zzz-nonexistent --json",
            2,
            r#"{"status":"invalid","provider":"zzz-nonexistent","reason":"invalid_state"}"#,
        ),
        ("--model openai/gpt-4o", 0, "ready"),
    ];
    for (words, code, stdout) in rows {
        let outcome = auth(&world, &format!("check {words}")).run().fails_with(code);
        let outcome = outcome.stdout_is(&format!("{stdout}\n"));
        assert!(!outcome.stderr.contains(CANARY), "{outcome:?}");
    }
    world.write_config("auth.json", "{broken");
    let invalid = r#"{"status":"invalid","provider":"openai","reason":"invalid_state"}"#;
    auth(&world, "check --provider openai --json").run().fails_with(2).stdout_is(&format!("{invalid}\n"));
}

#[test]
fn print_writes_the_secret_and_nothing_else() {
    let world = World::new();
    let entries = json!({
        "anthropic": {"type": "oauth", "access": "at", "refresh": CANARY, "expires": FAR},
        "kimi-coding": {"type": "oauth", "access": "kt", "refresh": CANARY, "expires": FAR},
        "openai": {"type": "api_key", "key": "!echo sk-$((1 + 1))"},
    });
    world.write_config("auth.json", &entries.to_string());
    let rows = [
        ("print-api-key --provider openai", Ok("sk-2")),
        ("print-api-key --provider mistral", Ok("from-env")),
        ("print-api-key --model gpt-4o", Ok("sk-2")),
        ("print-bearer-token --provider anthropic --min-expiry 1h", Ok("at")),
        ("print-bearer-token --provider kimi-coding", Ok("kt")),
        (
            "print-api-key --provider anthropic",
            Err("Provider \"anthropic\" is configured with OAuth, not an API key"),
        ),
        (
            "print-bearer-token --provider openai",
            Err("Provider \"openai\" is not configured with an OAuth bearer token"),
        ),
        ("print-api-key --provider deepseek", Err("No usable API key is configured")),
        (
            "print-api-key --provider nope",
            Err("Unknown provider \"nope\". Use --list-models to see available providers."),
        ),
        (
            "print-api-key --model zzz",
            Err("Model \"zzz\" not found. Use --list-models to see available models."),
        ),
    ];
    for (words, expected) in rows {
        let outcome = auth(&world, words).env("MISTRAL_API_KEY", "from-env").run();
        match expected {
            Ok(secret) => drop(outcome.success().stdout_is(&format!("{secret}\n"))),
            Err(text) => drop(outcome.fails_with(1).stdout_is("").stderr_has(&format!("Error: {text}"))),
        }
    }
}

#[test]
fn wrong_words_are_refused_with_the_right_exit_code() {
    let world = World::new();
    let rows = [
        ("check", 2, "Error: Auth checks require --provider <provider> or --model <model>"),
        ("check --provider openai hello", 2, "Error: Auth commands only accept --provider and --model"),
        ("check --provider openai --api-key x", 2, "Error: Auth commands only accept --provider and --model"),
        (
            "check --provider openai --frob",
            1,
            "Unknown option --frob for \"auth check\".\nUse \"pi --help\" or",
        ),
        ("check --provider openai -z", 2, "Error: Unknown option: -z"),
        ("check --min-expiry 5m --provider x", 1, "--min-expiry is only supported by print-bearer-token"),
        ("print-api-key", 1, "Error: Credential printing requires --provider <provider> or --model <model>"),
        ("print-api-key --json --provider x", 1, "--json is only supported by auth check"),
        ("print-bearer-token --provider x --min-expiry 5x", 1, "must use a duration such as 30m or 1h"),
        ("frob", 1, "Error: Unknown auth command \"frob\""),
        ("login nope", 1, "Unknown provider \"nope\""),
        ("login openai --method phone", 1, "Invalid method \"phone\""),
        ("login groq --method browser", 1, "There is no sign-in for groq"),
        ("login groq", 1, "--stdin"),
        ("login groq --api-key", 1, "--stdin"),
        ("login openai-codex --api-key --stdin", 1, "takes no API key"),
        ("logout --api-key", 1, "Unknown option --api-key"),
        ("login openai-codex --stdin", 1, "takes no API key"),
        ("login", 1, "pi auth login <provider>"),
        ("login a b", 1, "does not take \"b\""),
        ("logout", 1, "pi auth logout <provider>"),
        ("logout nonsense", 1, "Unknown provider \"nonsense\""),
        ("list --x", 1, "Unknown option --x"),
    ];
    for (words, code, stderr) in rows {
        auth(&world, words).run().fails_with(code).stdout_is("").stderr_has(stderr);
    }
    for words in ["", "help", "check --help", "login -h"] {
        let outcome = auth(&world, words).run().success();
        assert!(outcome.stdout.contains("pi auth print-bearer-token"), "{outcome:?}");
    }
    assert!(!world.agent_dir().join("auth.json").exists());
}

#[test]
fn a_key_comes_in_by_stdin_and_goes_again() {
    let world = World::new();
    let file = world.agent_dir().join("auth.json");
    auth(&world, "login openai --stdin").stdin(format!(" {CANARY}\n")).run().success();
    assert_eq!(stored(&world), json!({"openai": {"type": "api_key", "key": CANARY}}));
    let mode = fs::metadata(&file).expect("facts of the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for bad in ["", " \n", "two\nlines", "a\u{1b}b"] {
        auth(&world, "login openai --stdin").stdin(bad).run().fails_with(1);
    }
    let list = auth(&world, "list").env("GROQ_API_KEY", CANARY).run().success();
    list.stdout_is("openai  api_key  auth.json\ngroq    api_key  GROQ_API_KEY\n");
    let list = auth(&world, "list --json").run().success();
    list.stdout_is("[{\"provider\":\"openai\",\"type\":\"api_key\",\"source\":\"auth.json\"}]\n");
    let outcome = auth(&world, "logout openai").env("OPENAI_API_KEY", "x").run().success();
    outcome.stdout_is("Signed out of openai.\n").stderr_has("can still be used");
    assert_eq!(stored(&world), json!({}));
}

#[test]
fn a_sign_in_with_a_code_from_end_to_end() {
    let code = json!({"device_code": CANARY, "user_code": "AB-\u{1b}[31mCD", "verification_uri": "https://gate.example/d",
        "expires_in": 600, "interval": 1});
    let server = Server::start([
        Reply::status(200, "application/json", &code.to_string()),
        token("access", 3600),
        Reply::text("Hello"),
    ]);
    let world = gateway(&server, &Value::Null);
    let log = world.tmp().join("http.log");
    let outcome = auth(&world, "login gate --method device").env("PI_DEBUG_HTTP", &log).run().success();
    let outcome = outcome.stderr_has("https://gate.example/d").stderr_has("AB-CD");
    let file = world.agent_dir().join("auth.json");
    let outcome = outcome.stdout_is(&format!("Signed in to gate. Stored in {}\n", file.display()));
    let logged = fs::read_to_string(&log).expect("read the log");
    fs::remove_file(&log).expect("remove the log");
    for secret in [CANARY, "after-access", "access\""] {
        assert!(!outcome.stderr.contains(secret) && !logged.contains(secret), "{secret}: {logged}");
    }
    assert!(logged.contains("/v1/oauth/token"));
    assert_eq!(stored(&world)["gate"]["access"], "access");
    world.pi().words("--model gate/m1 -p hi").run().success().stdout_is("Hello\n");
    assert_eq!(server.requests()[2].header("authorization"), Some("Bearer access"));
}

#[test]
fn a_token_that_ends_during_a_run_is_renewed_and_nothing_is_said() {
    let server = Server::start([
        token("first", 90),
        Reply::tool("c1", "bash", &json!({"command": "true"})),
        token("second", 3600),
        Reply::text("Done"),
    ]);
    let world = gateway(&server, &expired());
    let outcome = world.pi().words("--model gate/m1 -p hi").run().success().stdout_is("Done\n");
    assert_eq!(outcome.stderr, "");
    let requests = server.requests();
    assert_eq!(requests[1].header("authorization"), Some("Bearer first"));
    assert_eq!(requests[3].header("authorization"), Some("Bearer second"));
    assert_eq!(stored(&world)["gate"]["refresh"], "after-second");
    assert_eq!(stored(&world)["other"], json!({"type": "new"}));
}

#[test]
fn a_sign_in_that_cannot_be_renewed_says_how_to_sign_in_again() {
    let refused = json!({"error": "invalid_grant", "error_description": format!("{CANARY} is revoked")});
    let server = Server::start([Reply::status(400, "application/json", &refused.to_string())]);
    let world = gateway(&server, &expired());
    let outcome = world.pi().words("--model gate/m1 -p hi").run().fails_with(1);
    let outcome = outcome.stderr_has("OAuth refresh failed for gate").stderr_has("pi auth login gate");
    assert!(!outcome.stderr.contains(CANARY), "{outcome:?}");
    assert_eq!(stored(&world)["gate"], expired());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn many_processes_renew_once() {
    let (open, held) = gate();
    let held = Reply::raw("").then_wait(held);
    let body = json!({"access_token": "new", "refresh_token": "next", "expires_in": 7200}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let server = Server::start([held.then_bytes(head).then_bytes(body)]);
    let world = gateway(&server, &expired());
    let running: Vec<_> =
        (0..6).map(|_| auth(&world, "print-bearer-token --provider gate").spawn()).collect();
    server.wait_for(1);
    drop(open);
    for process in running {
        process.wait().success().stdout_is("new\n");
    }
    assert_eq!(server.requests().len(), 1);
    let left: Vec<_> = fs::read_dir(world.agent_dir())
        .expect("list the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().contains("auth.json."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_signal_ends_a_sign_in_that_waits() {
    let code = json!({"device_code": "d", "user_code": "u", "verification_uri": "https://gate.example/d", "expires_in": 600,
        "interval": 600});
    let pending = Reply::status(400, "application/json", r#"{"error": "authorization_pending"}"#);
    let server = Server::start([Reply::status(200, "application/json", &code.to_string()), pending]);
    let world = gateway(&server, &expired());
    let running = auth(&world, "login gate --method device").spawn();
    server.wait_for(2);
    running.signal("INT");
    running.wait().fails_with(130).stderr_has("Login cancelled").stdout_is("");
    assert_eq!(stored(&world)["gate"], expired());
}

fn echoes(terminal: &OwnedFd) -> bool {
    // SAFETY: all zeros are a valid value, and the descriptor is a terminal.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        modes.c_lflag & libc::ECHO != 0
    }
}

/// Reads until `part` was shown.
fn read_until(user: &mut File, part: &str) -> String {
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains(part) {
        let mut byte = [0];
        user.read_exact(&mut byte).expect("more from the terminal");
        shown.extend(byte);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn a_key_is_typed_unseen_and_the_terminal_is_as_before() {
    for signal in [None, Some(libc::SIGTERM)] {
        let world = World::new();
        let (mut user, program) = terminal().expect("open a terminal");
        let mut pi = auth(&world, "login groq");
        let clone = || Stdio::from(program.try_clone().expect("another handle"));
        let mut child =
            pi.command().stdin(clone()).stderr(clone()).stdout(Stdio::null()).spawn().expect("start pi");
        read_until(&mut user, "API key for groq: ");
        assert!(!echoes(&program));
        write!(user, "{CANARY}x").expect("type");
        let stars = "*".repeat(CANARY.len() + 1);
        assert_eq!(read_until(&mut user, &stars), stars);
        user.write_all(b"\x7f").expect("press Backspace");
        read_until(&mut user, "\u{8} \u{8}");
        match signal {
            None => user.write_all(b"\r").expect("press Enter"),
            Some(signal) => {
                let pid = libc::pid_t::try_from(child.id()).expect("a process id");
                // SAFETY: the child runs and was not waited for.
                assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
            }
        }
        let code = child.wait().expect("wait for pi").code();
        assert!(echoes(&program), "the terminal does not echo any more");
        match signal {
            None => assert_eq!((code, stored(&world)["groq"]["key"].as_str()), (Some(0), Some(CANARY))),
            Some(_) => {
                assert_eq!(code, Some(143));
                assert!(!world.agent_dir().join("auth.json").exists());
            }
        }
    }
}
