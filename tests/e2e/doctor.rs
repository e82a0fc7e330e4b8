//! `pi doctor` and `pi bug`.

use crate::agent::{Pi, World};
use crate::server::Reply;
use crate::world;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const CANARY: &str = "canary-key-0123456789";

/// A doctor that finds no server of this machine: the port of discard answers nobody.
fn doctor(world: &World) -> Pi<'_> {
    world.pi().env("PI_LOCAL_URL", "http://127.0.0.1:9").words("doctor --json")
}

/// The findings of one check: state and text.
fn findings(stdout: &str, check: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    for finding in report["checks"].as_array().unwrap() {
        assert_eq!(finding["state"] != "ok", finding["advice"].is_string(), "{finding}");
    }
    checks
        .filter(|finding| finding["check"] == check)
        .map(|finding| (text(finding, "state"), text(finding, "about")))
        .collect()
}

#[track_caller]
fn has(stdout: &str, check: &str, state: &str, part: &str) {
    let found = findings(stdout, check);
    assert!(found.iter().any(|(known, about)| known == state && about.contains(part)), "{check}: {found:?}");
}

#[test]
fn a_sound_place_has_nothing_bad() {
    let world = World::new();
    std::fs::set_permissions(world.agent_dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let outcome = doctor(&world).env("OPENAI_API_KEY", CANARY).run().success();
    has(&outcome.stdout, "keys", "ok", "openai");
    has(&outcome.stdout, "files", "ok", "can be written");
    has(&outcome.stdout, "certificates", "ok", "roots");
    has(&outcome.stdout, "servers", "ok", "no model server");
    assert!(!outcome.stdout.contains(CANARY));
    let lines = world.pi().env("PI_LOCAL_URL", "http://127.0.0.1:9").words("doctor").run().success().stdout;
    assert!(
        lines.lines().all(|line| ["ok ", "war", "   "].iter().any(|start| line.starts_with(start))),
        "{lines}"
    );
}

#[test]
fn what_is_wrong_is_told_and_no_key_shown() {
    let world = World::new();
    std::fs::set_permissions(world.agent_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.write_config("auth.json", &format!(r#"{{"openai": {{"type": "api_key", "key": "{CANARY}"}}}}"#));
    let auth = world.agent_dir().join("auth.json");
    std::fs::set_permissions(&auth, std::fs::Permissions::from_mode(0o644)).unwrap();
    world.write_config("settings.json", "{\"theme\": 3, \"shellPath\": \"/no/such/shell\"}");
    world.write_config("models.json", "{");
    let outcome = doctor(&world)
        .env("HTTPS_PROXY", format!("no proxy {CANARY}"))
        .env("SSL_CERT_FILE", "/no/such/file")
        .env("TMPDIR", "/no/such/folder")
        .run()
        .fails_with(1);
    has(&outcome.stdout, "files", "bad", "auth.json can be used by others (mode 644)");
    has(&outcome.stdout, "files", "bad", ".pi/agent can be used by others (mode 755)");
    has(&outcome.stdout, "files", "bad", "models.json");
    has(&outcome.stdout, "files", "bad", "settings.json");
    has(&outcome.stdout, "files", "bad", "/no/such/folder cannot be written");
    has(&outcome.stdout, "shell", "bad", "/no/such/shell");
    has(&outcome.stdout, "proxies", "bad", "HTTPS_PROXY is not the URL of a proxy");
    has(&outcome.stdout, "certificates", "bad", "SSL_CERT_FILE=/no/such/file");
    has(&outcome.stdout, "keys", "ok", "openai");
    assert!(!outcome.stdout.contains(CANARY) && !outcome.stderr.contains(CANARY));
}

#[test]
fn a_damaged_auth_file_and_a_missing_home_are_findings() {
    let world = World::new();
    world.write_config("auth.json", "{");
    let outcome = doctor(&world).run().fails_with(1);
    has(&outcome.stdout, "keys", "bad", "auth.json");
    let outcome = doctor(&world).env("HOME", "rel").run().fails_with(1);
    has(&outcome.stdout, "files", "bad", "HOME is not an absolute path");
    assert_eq!(findings(&outcome.stdout, "git").len(), 1);
}

#[test]
fn servers_elsewhere_are_asked_only_on_request() {
    let (world, server) = world([Reply::text("never"), Reply::text("never")]);
    let stdout = world.pi().env("PI_LOCAL_URL", "http://203.0.113.1:9").words("doctor --json").run().stdout;
    has(&stdout, "servers", "ok", "PI_LOCAL_URL names a server on another machine");
    assert_eq!(findings(&stdout, "online"), []);
    assert_eq!(server.requests().len(), 0);
    let stdout = doctor(&world).words("--online").run().stdout;
    has(&stdout, "online", "ok", "mock answers");
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn a_report_holds_what_helps_and_no_secret() {
    let (world, _server) = world([Reply::error(400, &format!("bad key {CANARY}"))]);
    world.write_config("auth.json", &format!(r#"{{"openai": {{"type": "api_key", "key": "{CANARY}"}}}}"#));
    world.write_config(
        "settings.json",
        r#"{"theme": "light", "retry": {"enabled": false}, "httpProxy": "http://me:hunter22@127.0.0.1:9"}"#,
    );
    world.pi().args(["--model", "mock/m1", "-p", "a private prompt"]).run().fails_with(1);
    let pi = || world.pi().env("PI_LOCAL_URL", "http://127.0.0.1:9").words("bug report.md");
    pi().run().success();
    let report = world.read("report.md");
    for part in ["referenceVersion", "certificates", "theme: \"light\"", "mock/m1", "user, 16 bytes", "Error"]
    {
        assert!(report.contains(part), "{part} is not in:\n{report}");
    }
    for part in [CANARY, "hunter22", "a private prompt", world.home().to_str().unwrap()] {
        assert!(!report.contains(part), "{part} is in:\n{report}");
    }
    let mode = std::fs::metadata(world.work().join("report.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What is there stays.
    pi().run().fails_with(1).stderr_has("Cannot write report.md");
    assert_eq!(world.read("report.md"), report);
}
