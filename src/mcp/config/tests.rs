//! Files of servers: what is taken, refused and changed.

use super::*;
use crate::base::testing::TempDir;
use serde_json::json;

struct Files(TempDir);

impl Files {
    fn new(user: &str, project: &str) -> Self {
        let folder = TempDir::create();
        folder.write("agent/mcp.json", user);
        if !project.is_empty() {
            folder.write("project/.pi/mcp.json", project);
        }
        Self(folder)
    }

    fn load(&self) -> Servers {
        load(&self.0.path().join("agent"), Some(&self.0.path().join("project")))
    }
}

/// Checks what is wrong with an entry of the user: the error holds `expected`, none if it is empty.
#[track_caller]
fn check_entry(name: &str, entry: Value, expected: &str) {
    let servers = Files::new(&json!({"mcpServers": {name: entry}}).to_string(), "").load();
    match expected {
        "" => assert_eq!((servers.errors, servers.entries.len()), (Vec::new(), 1)),
        _ => {
            assert!(
                servers.errors.len() == 1 && servers.errors[0].contains(expected),
                "{:?}",
                servers.errors
            );
            assert_eq!(servers.entries, []);
        }
    }
}

#[test]
fn entries_are_taken_or_refused_with_a_reason() {
    check_entry("a", json!({"command": "x"}), "");
    check_entry("a-B_9", json!({"command": "x", "args": ["y"], "env": {"A": "b"}, "cwd": "~"}), "");
    check_entry("a", json!({"url": "https://x/mcp", "type": "streamable-http", "timeout": 0.5}), "");
    check_entry("a", json!({"url": "http://x/sse", "type": "sse"}), "");
    check_entry("a", json!({"command": "x", "exposure": "codemode-deferred", "unknown": 1}), "");
    check_entry("a b", json!({"command": "x"}), "letters, digits");
    check_entry("", json!({"command": "x"}), "letters, digits");
    check_entry("a", json!([]), "must be an object");
    check_entry("a", json!({}), "needs \"command\"");
    check_entry("a", json!({"type": "stdio", "url": "https://x"}), "type \"stdio\" needs \"command\"");
    check_entry("a", json!({"type": "ws", "url": "https://x"}), "\"type\" must be one of");
    check_entry("a", json!({"command": 1}), "\"command\" must be a text");
    check_entry("a", json!({"command": "x", "args": "y"}), "\"args\" must be a list");
    check_entry("a", json!({"command": "x", "env": {"A": 1}}), "\"env\" must be an object");
    check_entry("a", json!({"command": "x", "timeout": 0}), "\"timeout\" must be");
    check_entry("a", json!({"command": "x", "enabled": "no"}), "\"enabled\" must be true or false");
    check_entry("a", json!({"command": "x", "exposure": "all"}), "\"exposure\" must be one of codemode");
    check_entry(
        "a",
        json!({"command": "x", "toolExposure": {"t": "all"}}),
        "\"toolExposure\" of \"t\" must be",
    );
    check_entry("a", json!({"url": "ftp://x"}), "\"url\" must be a http");
    check_entry(
        "a",
        json!({"url": "https://x", "oauth": {"callbackPort": 0}}),
        "\"callbackPort\" must be a port",
    );
    check_entry(
        "a",
        json!({"url": "https://x", "oauth": {"callbackUrl": "http://x/c"}}),
        "\"callbackUrl\" must",
    );
    let two = json!({"callbackUrl": "http://localhost:1/c", "callbackPort": 2});
    check_entry("a", json!({"url": "https://x", "oauth": two}), "two ports");
    let both = json!({"clientRegistration": "cimd", "clientId": "x"});
    check_entry("a", json!({"url": "https://x", "oauth": both}), "goes with neither");
    check_entry("a", json!({"url": "https://x", "auth": {}}), "\"auth\" must be");
    check_entry("a", json!({"url": "http://x", "auth": {"provider": "p"}}), "needs a https");
    check_entry("a", json!({"url": "http://127.0.0.1:1", "auth": {"provider": "p"}}), "");
}

#[test]
fn one_bad_entry_costs_that_entry() {
    let files =
        Files::new(r#"{"mcpServers": {"a-b": {"command": "x"}, "a_b": {"command": "y"}, "c": 1}}"#, "");
    let servers = files.load();
    assert_eq!(servers.entries.len(), 1);
    assert!(servers.errors[0].contains("named like \"a-b\""), "{:?}", servers.errors);
    assert!(servers.errors[1].contains("must be an object"), "{:?}", servers.errors);
}

#[test]
fn files_that_are_no_objects_are_named() {
    for (text, expected) in
        [("[]", "must be an object"), ("{", "EOF"), (r#"{"mcpServers": []}"#, "must be an object")]
    {
        let errors = Files::new(text, "").load().errors;
        assert!(
            errors.len() == 1 && errors[0].contains("agent/mcp.json") && errors[0].contains(expected),
            "{errors:?}"
        );
    }
    assert_eq!(Files::new("\u{feff}{}", "").load().errors, Vec::<String>::new());
}

#[test]
fn a_project_replaces_and_changes_servers_of_the_user() {
    let user = json!({"mcpServers": {
        "kept": {"command": "x"},
        "changed": {"url": "https://x", "headers": {"Authorization": "y"}, "enabled": true},
        "replaced": {"command": "x", "env": {"A": "b"}},
    }});
    let project = json!({"mcpServers": {
        "changed": {"enabled": false, "exposure": "direct"},
        "replaced": {"command": "z"},
        "own": {"command": "w"},
        "bad": {"enabled": false},
        "kept": {"enabled": false, "env": {}},
        "auth": {"url": "https://x", "auth": {"provider": "p"}},
    }});
    let servers = Files::new(&user.to_string(), &project.to_string()).load();
    let names: Vec<&str> = servers.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["kept", "changed", "replaced", "own"]);
    let changed = servers.find("changed").unwrap();
    assert_eq!(
        (changed.scope, changed.is_enabled(), changed.exposure()),
        (Scope::User, false, Exposure::Direct)
    );
    assert!(changed.changed_by.is_some() && changed.has_authorization());
    let replaced = servers.find("replaced").unwrap();
    assert_eq!((replaced.scope, replaced.address()), (Scope::Project, "z".to_owned()));
    assert!(!replaced.fields.contains_key("env"));
    let errors = servers.errors.join("\n");
    assert_eq!(servers.errors.len(), 3, "{errors}");
    for expected in ["\"bad\": needs \"command\"", "only, not env", "user's file only"] {
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn an_exact_name_goes_before_the_first_pattern() {
    let entry = json!({"command": "x", "exposure": "deferred",
        "toolExposure": {"get_*": "direct", "*_x": "hidden", "get_x": "codemode-deferred"}});
    let servers = Files::new(&json!({"mcpServers": {"a": entry}}).to_string(), "").load();
    let entry = servers.find("a").unwrap();
    let exposures = ["get_x", "get_y", "set_x", "other"].map(|tool| entry.exposure_of(tool).name());
    assert_eq!(exposures, ["codemode", "direct", "hidden", "deferred"]);
    assert!(entry.may_expose(|exposure| exposure == Exposure::Direct));
}

#[test]
fn a_change_keeps_what_else_is_in_the_file() {
    let files = Files::new(
        "{\n\t\"other\": [1],\n\t\"mcpServers\": {\"a\": {\"command\": \"x\", \"mine\": 1}}\n}",
        "",
    );
    let path = files.0.path().join("agent/mcp.json");
    let text = || std::fs::read_to_string(&path).unwrap();
    let off = edit::Patch { enabled: Some(false), exposure: Some(Exposure::Direct) };
    edit::patch(&path, "a", off, false).unwrap();
    let expected = "{\n\t\"other\": [\n\t\t1\n\t],\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\",\n\t\t\t\"mine\": 1,\n\t\t\t\"enabled\": false,\n\t\t\t\"exposure\": \"direct\"\n\t\t}\n\t}\n}\n";
    assert_eq!(text(), expected);
    // Defaults are left out, but for entries that only change another one.
    let on = edit::Patch { enabled: Some(true), exposure: Some(Exposure::Codemode) };
    edit::patch(&path, "a", on, false).unwrap();
    assert!(!text().contains("enabled") && !text().contains("exposure"));
    edit::patch(&path, "b", on, true).unwrap();
    assert!(text().contains("\"enabled\": true"));
    assert!(edit::patch(&path, "c", on, false).is_err());
    assert_eq!(edit::add(&path, "a", Map::new()), Ok(true));
    assert_eq!((edit::remove(&path, "a"), edit::remove(&path, "a")), (Ok(true), Ok(false)));
    let broken = files.0.write("broken.json", "{");
    assert!(edit::add(&broken, "a", Map::new()).is_err());
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "{");
}
