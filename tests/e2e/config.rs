//! `pi config`, `pi skills` and `pi prompts`.

use crate::agent::World;
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

fn settings(world: &World) -> Value {
    let text = fs::read_to_string(world.agent_dir().join("settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_setting_is_set_read_and_taken_away() {
    let world = World::new();
    world.write_config("settings.json", "{\"zzz\": 1, \"theme\": \"a\"}");
    let config = |words: &str| world.pi().words(&format!("config {words}")).run();
    config("get theme").success().stdout_is("a\n");
    config("set theme dark").success().stdout_is("");
    config("set retry.maxRetries 7").success();
    config("set defaultTools read").success();
    assert_eq!(
        settings(&world).to_string(),
        r#"{"zzz":1,"theme":"dark","retry":{"maxRetries":7},"defaultTools":["read"]}"#
    );
    config("get retry.maxRetries").success().stdout_is("7\n");
    config("get retry.baseDelayMs").success().stdout_is("2000\n");
    config("get defaultTools").success().stdout_is("[\"read\"]\n");
    config("unset theme").success();
    config("get theme").success().stdout_is("system\n");
    config("unset httpProxy");
    config("get httpProxy").fails_with(1).stderr_has("httpProxy is not set");
    let list = config("list").success().stdout;
    assert!(list.contains("  retry.maxRetries = 7 (user): "), "{list}");
    assert!(list.contains("  retry.enabled = true (default): "), "{list}");
    config("set httpProxy http://me:hunter2@proxy:3128").success();
    let list = config("list").success().stdout;
    assert!(list.contains("http://***@proxy:3128") && !list.contains("hunter2"), "{list}");
    let path = world.agent_dir().join("settings.json");
    config("path").success().stdout_is(&format!("{}\n", path.display()));
}

#[test]
fn a_projects_settings_are_changed_where_it_is_trusted() {
    let world = World::new();
    let config = |words: &str| world.pi().words(&format!("config {words}")).run();
    world.write(".pi/settings.json", "{}");
    config("set -l theme dark").fails_with(1).stderr_has("Project is not trusted");
    assert_eq!(world.read(".pi/settings.json"), "{}");
    config("set -l -a theme dark").success();
    assert_eq!(world.read(".pi/settings.json"), "{\n  \"theme\": \"dark\"\n}");
    config("get -a theme").success().stdout_is("dark\n");
    config("get theme").success().stdout_is("system\n");
    config("set -l -a httpProxy http://x").fails_with(1).stderr_has("can only be set in the agent folder");
}

#[test]
fn mistakes_are_named() {
    let world = World::new();
    let config = |words: &str| world.pi().words(&format!("config {words}")).run();
    config("set quietStartup maybe").fails_with(1).stderr_has("quietStartup must be true, false or header");
    config("get thme").fails_with(1).stderr_has("There is no setting thme. Did you mean theme?");
    config("frobnicate").fails_with(2).stderr_has("Usage: pi config");
    world.write_config("settings.json", "{\n  \"theme\": \"a\",\n}");
    let outcome = config("set theme b").fails_with(1);
    outcome.stderr_has("line 3, column 1: trailing comma; the file was left as it is");
    let text = fs::read_to_string(world.agent_dir().join("settings.json")).unwrap();
    assert_eq!(text, "{\n  \"theme\": \"a\",\n}");
}

#[test]
fn changes_of_many_processes_all_stay() {
    let world = World::new();
    fs::remove_file(world.agent_dir().join("settings.json")).unwrap();
    const KEYS: [&str; 10] = [
        "retry.maxRetries",
        "retry.baseDelayMs",
        "retry.maxAgentDelayMs",
        "retry.provider.maxRetries",
        "retry.provider.maxRetryDelayMs",
        "compaction.reserveTokens",
        "compaction.keepRecentTokens",
        "branchSummary.reserveTokens",
        "terminal.imageWidthCells",
        "bash.outputCapBytes",
    ];
    thread::scope(|scope| {
        for (number, key) in KEYS.into_iter().cycle().take(20).enumerate() {
            let world = &world;
            scope.spawn(move || {
                let value = if number < 10 { "1" } else { "2" };
                world.pi().args(["config", "set", key, value]).run().success();
            });
        }
    });
    let settings = settings(&world);
    for key in KEYS {
        let value = settings.pointer(&format!("/{}", key.replace('.', "/")));
        assert!(value == Some(&json!(1)) || value == Some(&json!(2)), "{key}: {settings}");
    }
    let path = world.agent_dir().join("settings.json");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!world.agent_dir().join("settings.json.lock").exists());
}

#[test]
fn an_editor_opens_the_file_and_what_it_left_is_checked() {
    let world = World::new();
    let edit = |editor: &str| world.pi().args(["config", "edit"]).env("EDITOR", editor).run();
    edit("true").success();
    edit("sh -c 'echo x > \"$1\"' --").fails_with(1).stderr_has("line 1, column 1");
    edit("false").fails_with(1).stderr_has("false ended with");
}

#[test]
fn skills_and_templates_are_listed_and_checked() {
    let world = World::new();
    let pi = |words: &str| world.pi().words(words).run();
    let skill = world.agent_dir().join("skills/good/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    fs::write(&skill, "---\ndescription: Does good\n---\nDo good.\n").unwrap();
    fs::create_dir_all(world.agent_dir().join("prompts")).unwrap();
    let prompt = world.agent_dir().join("prompts/p.md");
    fs::write(&prompt, "---\nargument-hint: <x>\n---\nDo $1\n").unwrap();
    pi("skills check").success().stdout_is("1 skills, nothing wrong\n");
    pi("skills").success().stdout_is(&format!("good (user): Does good\n  {}\n", skill.display()));
    pi("prompts list").success().stdout_is(&format!("/p <x> (user): Do $1\n  {}\n", prompt.display()));
    pi("prompts show p").success().stdout_is("Do $1\n");
    pi("prompts show q").fails_with(1).stderr_has("There is no prompt template /q");
    pi("skills frobnicate").fails_with(2);
    let bad = world.write("extra/Bad/SKILL.md", "---\ndescription: x\n---\n");
    let outcome = world.pi().args(["skills", "check", "--skill", "extra"]).run().fails_with(1);
    outcome.stderr_has(&format!("{}: name contains invalid characters", bad.display()));
    world.write("AGENTS.md", "@more.md\n");
    let more = world.write("more.md", "more");
    let context = pi("config context").success().stdout;
    for part in
        ["Context: ", "Skill: good", "Prompt template: /p", &format!("  imports {}\n", more.display())]
    {
        assert!(context.contains(part), "{part}: {context}");
    }
}

#[test]
fn files_of_early_versions_are_brought_to_their_places() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    let agent = world.agent_dir();
    let write = |name: &str, text: &str| {
        let path = agent.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let read = |name: &str| fs::read_to_string(agent.join(name)).unwrap();
    write("oauth.json", r#"{"anthropic": {"access": "a", "refresh": "r", "expires": 1}, "x": 1}"#);
    write("settings.json", r#"{"apiKeys": {"openai": "sk-1", "anthropic": "no", "y": 2}, "theme": "light"}"#);
    write("commands/review.md", "REVIEW $1");
    let session =
        r#"{"type":"session","version":3,"id":"old","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/a/b"}"#;
    write("1_old.jsonl", &format!("{session}\n"));
    write("notes.jsonl", "notes\n");

    let outcome = world.pi().args(["--model", "mock/m1", "-p", "/review me"]).run();
    let outcome = outcome.success().stdout_is("one\n");
    let auth: Value = serde_json::from_str(&read("auth.json")).unwrap();
    let expected = json!({"anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1},
        "openai": {"type": "api_key", "key": "sk-1"}});
    assert_eq!(auth, expected);
    let mode = fs::metadata(agent.join("auth.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(agent.join("oauth.json.migrated").exists() && !agent.join("oauth.json").exists());
    let settings: Value = serde_json::from_str(&read("settings.json")).unwrap();
    assert_eq!(settings, json!({"theme": "light"}));
    assert_eq!(server.requests()[0].last_text(), "REVIEW me");
    assert!(!agent.join("commands").exists());
    assert_eq!(read("sessions/--a-b--/1_old.jsonl"), format!("{session}\n"));
    assert!(!agent.join("1_old.jsonl").exists());
    assert_eq!(read("notes.jsonl"), "notes\n");
    assert!(!outcome.stderr.contains("sk-1"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 3, "{}", outcome.stderr);

    // What is in its place stays, and so does what is in the way of nothing any more.
    write("oauth.json", r#"{"z": {"access": "other"}}"#);
    write("commands/review.md", "OTHER");
    write("1_old.jsonl", &format!("{session}\nother\n"));
    let again = world.pi().args(["--model", "mock/m1", "-p", "/review me"]).run();
    assert_eq!(again.success().stderr, "");
    assert_eq!(serde_json::from_str::<Value>(&read("auth.json")).unwrap(), expected);
    assert_eq!(read("prompts/review.md"), "REVIEW $1");
    assert_eq!(read("sessions/--a-b--/1_old.jsonl"), format!("{session}\n"));
}

/// A user's file of the reference, with settings of parts that are not here.
#[test]
fn settings_of_the_reference_are_taken_without_a_word_and_kept() {
    let (world, _server) = world([Reply::text("hi")]);
    let written = json!({
        "$schema": "https://pi.dev/schemas/settings.schema.json", "quietStartup": "header", "theme": "system",
        "httpIdleTimeoutMs": "disabled", "websocketConnectTimeoutMs": "disabled", "cacheWarming": "idle",
        "fullscreenWheelScrollLines": "auto", "selfUpdateCommand": ["nix", "profile", "upgrade", "pi"],
        "deviceId": "8b0f3f9e-0a55-4d0b-a55d-1f3c58f1f3a1", "sessionShareDestination": "gist",
        "codemode": {"mode": "only", "inlineBudget": 0}, "extensions": ["-builtin:mcp"],
        "extensionChangelogVersions": {"npm:x": "1.0.0"}, "defaultTools": ["+codemode"],
    });
    world.write_config("settings.json", &written.to_string());
    let models = fs::read_to_string(world.agent_dir().join("models.json")).unwrap();
    let mut models: Value = serde_json::from_str(&models).unwrap();
    models["$schema"] = "https://pi.dev/schemas/models.schema.json".into();
    world.write_config("models.json", &models.to_string());
    let outcome = world.pi().args(["--model", "mock/m1", "-p", "x"]).run().success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("hi\n", ""));
    world.pi().words("config set steeringMode all").run().success();
    let mut expected = written;
    expected["steeringMode"] = "all".into();
    assert_eq!(settings(&world), expected);
}
