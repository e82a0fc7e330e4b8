//! Trust in projects.

use super::*;
use crate::base::testing::TempDir;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn project(scratch: &TempDir) -> Project {
    let cwd = scratch.path().join("home/w/p");
    fs::create_dir_all(&cwd).unwrap();
    Project::new(&cwd, Some(&scratch.path().join("home")))
}

fn store(scratch: &TempDir) -> Store {
    Store::new(&scratch.path().join("agent"))
}

#[test]
fn only_what_is_used_needs_trust() {
    let needs = [
        "settings.json",
        "SYSTEM.md",
        "APPEND_SYSTEM.md",
        "skills/a",
        "prompts/a",
        "extensions/a",
        "themes/a",
        "agents/a.md",
    ];
    for name in needs {
        let scratch = TempDir::create();
        scratch.write(&format!("home/w/p/.pi/{name}"), "");
        assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
    }
    for name in ["home/w/p/.agents/skills/a", "home/w/.agents/skills/a"] {
        let scratch = TempDir::create();
        scratch.write(name, "");
        assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
    }
    for name in
        ["home/w/p/.pi/other", "home/w/.pi/settings.json", "home/.agents/skills/a", "home/w/p/AGENTS.md"]
    {
        let scratch = TempDir::create();
        scratch.write(name, "");
        assert_eq!(project(&scratch).surfaces(), [""; 0].map(PathBuf::from), "{name}");
    }
}

#[test]
fn the_nearest_decision_counts() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    let found = || store.find(&project).unwrap().map(|entry| entry.is_trusted);
    assert_eq!(found(), None);
    let p = project.root().to_owned();
    let w = p.parent().unwrap().to_owned();
    let answers = project.answers(true);
    let store_answer =
        |number: usize| store.answer(&project, &answers[number], &store.snapshot(&project).unwrap()).unwrap();
    // For the session only.
    store_answer(2);
    store_answer(4);
    assert_eq!(found(), None);
    assert!(!store.path.exists());
    store_answer(1);
    assert_eq!(found(), Some(true));
    store_answer(3);
    assert_eq!(found(), Some(false));
    store_answer(1);
    assert_eq!(found(), Some(true));
    let text = fs::read_to_string(&store.path).unwrap();
    assert_eq!(text, format!("{{\n  \"{}\": true\n}}\n", w.display()));
    for path in [&store.path, &store.surfaces] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(project.answers(false).len(), 3);
    // A link to the project is the project.
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&p, &link).unwrap();
    store.set(&[(link.clone(), Some(false))]).unwrap();
    assert_eq!(found(), Some(false));
    assert_eq!(Project::new(&link, None).root(), p);
}

#[test]
fn a_damaged_store_is_an_error_and_stays() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    for (text, error) in [
        ("{", "Failed to read trust store"),
        ("[]", "expected an object"),
        ("{\"/a\":1}", "value for \"/a\" must be true, false, or null"),
    ] {
        scratch.write("agent/trust.json", text);
        assert!(store.find(&project).unwrap_err().contains(error), "{text}");
        assert!(store.set(&[(project.root().to_owned(), Some(true))]).unwrap_err().contains(error));
        assert_eq!(fs::read_to_string(&store.path).unwrap(), text);
    }
    scratch.write("agent/trust.json", format!("\u{feff}{{\"{}\":null}}", project.root().display()));
    assert_eq!(store.find(&project), Ok(None));
}

#[test]
fn what_a_project_runs_is_remembered() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    scratch.write("home/w/p/.pi/settings.json", r#"{"theme":"a","shellPath":"/bin/sh"}"#);
    let changes = || store.changes(&project, &store.snapshot(&project).unwrap()).unwrap();
    let agree = || store.remember(&project, &store.snapshot(&project).unwrap()).unwrap();
    let none = [""; 0];
    assert_eq!(changes(), none, "seen for the first time");
    scratch.write("home/w/p/.pi/settings.json", r#"{"theme":"b","shellPath":"/bin/sh"}"#);
    scratch.write("home/w/p/.pi/themes/a.json", "{}");
    assert_eq!(changes(), none, "nothing that runs, and no text for the model");
    scratch.write("home/w/p/.pi/settings.json", r#"{"shellPath":"/tmp/evil"}"#);
    assert_eq!(changes(), [".pi/settings.json#shellPath"]);
    agree();
    assert_eq!(changes(), none);
    scratch.write("home/w/p/.pi/extensions/deep/x.js", "1");
    assert_eq!(changes(), [".pi/extensions/deep/x.js (new)"]);
    agree();
    scratch.write("home/w/p/.pi/extensions/deep/x.js", "2");
    assert_eq!(changes(), [".pi/extensions/deep/x.js"]);
    fs::remove_dir_all(project.root().join(".pi")).unwrap();
    assert_eq!(changes(), none, "what is gone runs nothing");
}

/// A project with a file of each kind that trust is about.
const COVERED: &[&str] = &[
    ".pi/extensions/one.py",
    ".pi/extensions/two/index.ts",
    ".pi/extensions/two/deep/lib.ts",
    ".pi/extensions/two/node_modules/dep/index.js",
    ".pi/extensions/three/pi-extension.json",
    ".pi/npm/package.json",
    ".pi/npm/package-lock.json",
    ".pi/npm/node_modules/pack/package.json",
    ".pi/npm/node_modules/pack/extensions/x.ts",
    ".pi/npm/node_modules/pack/src/lib.ts",
    ".pi/npm/node_modules/dep/index.js",
    ".pi/git/host.org/user/repo/skills/g/SKILL.md",
    ".pi/git/host.org/user/repo/extensions/y.ts",
    ".pi/git/host.org/user/repo/lib/z.ts",
    "local/extensions/l.ts",
    "local/prompts/l.md",
    "local/lib.ts",
    "tools/ext.js",
    "tools/lib/beside.js",
    "more/folder/index.js",
    "more/folder/beside.py",
    "lone.js",
    "scripts/hook.sh",
    "scripts/check.py",
    "scripts/server",
    "bin/line.sh",
];

fn covered_project(scratch: &TempDir) -> Project {
    let project = project(scratch);
    for name in COVERED {
        scratch.write(&format!("home/w/p/{name}"), "1");
    }
    for (name, content) in [
        (".pi/npm/node_modules/pack/package.json", r#"{"pi": {"extensions": ["./extensions/x.ts"]}}"#),
        (".pi/mcp.json", r#"{"mcpServers": {"a": {"command": "scripts/server"}, "b": {"enabled": true}}}"#),
        ("src/main.rs", "1"),
        ("README.md", "1"),
        (".pi/git/host.org/user/repo/.git/index", "1"),
    ] {
        scratch.write(&format!("home/w/p/{name}"), content);
    }
    fs::set_permissions(project.root().join("scripts/server"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |command: &str| serde_json::json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = serde_json::json!({
        "packages": ["npm:pack", "git:host.org/user/repo", "../local"],
        "extensions": ["../tools/ext.js", "../more", "../lone.js"],
        "statusLine": "!bin/line.sh --short",
        "hooks": {
            "PreToolUse": run("\"$PI_PROJECT_DIR\"/scripts/hook.sh x <src/main.rs"),
            "Stop": run("python3 scripts/check.py README.md"),
        },
    });
    scratch.write("home/w/p/.pi/settings.json", settings.to_string());
    project
}

#[test]
fn a_change_of_each_file_that_runs_is_named() {
    let scratch = TempDir::create();
    let (project, store) = (covered_project(&scratch), store(&scratch));
    let changes = || store.changes(&project, &store.snapshot(&project).unwrap()).unwrap();
    let agree = || store.remember(&project, &store.snapshot(&project).unwrap()).unwrap();
    agree();
    assert_eq!(changes(), [""; 0]);
    for name in COVERED {
        let path = project.root().join(name);
        let before = fs::read(&path).unwrap();
        fs::write(&path, [before.as_slice(), b" "].concat()).unwrap();
        assert_eq!(changes(), [*name], "{name}");
        fs::write(&path, &before).unwrap();
    }
    assert_eq!(changes(), [""; 0]);
    for name in ["src/main.rs", "README.md", ".pi/git/host.org/user/repo/.git/index"] {
        fs::write(project.root().join(name), "2").unwrap();
        assert_eq!(changes(), [""; 0], "{name}");
    }
    for (name, content, expected) in [
        ("tools/new.js", "", "tools/new.js (new)"),
        (".pi/mcp.json", r#"{"mcpServers": {"b": {"enabled": false}}}"#, ".pi/mcp.json#b"),
        (".pi/settings.json", r#"{"statusLine": "!other"}"#, ".pi/settings.json#statusLine"),
    ] {
        scratch.write(&format!("home/w/p/{name}"), content);
        assert_eq!(changes(), [expected]);
        agree();
    }
    scratch.write("home/w/p/.pi/settings.json", r#"{"statusLine": "{model}"}"#);
    assert_eq!(changes(), [""; 0]);
}

#[test]
fn a_project_that_is_a_package_is_not_walked() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    scratch.write("home/w/p/.pi/settings.json", r#"{"packages": [".."], "skills": ["../SKILL.md"]}"#);
    scratch.write("home/w/p/extensions/x.js", "1");
    scratch.write("home/w/p/SKILL.md", "1");
    scratch.write("home/w/p/src/main.rs", "1");
    let names: Vec<String> = store.snapshot(&project).unwrap().prints.into_keys().collect();
    assert_eq!(names, [".pi/settings.json#packages", "extensions/x.js"]);
}

#[test]
fn links_are_followed_and_what_they_lead_to_is_watched() {
    use std::os::unix::fs::symlink;
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    scratch.write("home/w/p/tools/lib.js", "1");
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    symlink("../../tools", project.root().join(".pi/extensions/linked")).unwrap();
    symlink("..", project.root().join(".pi/extensions/loop")).unwrap();
    symlink("nowhere", project.root().join(".pi/extensions/dangling")).unwrap();
    store.remember(&project, &store.snapshot(&project).unwrap()).unwrap();
    scratch.write("home/w/p/tools/lib.js", "2");
    let changes = store.changes(&project, &store.snapshot(&project).unwrap()).unwrap();
    assert!(changes.contains(&".pi/extensions/linked/lib.js".to_owned()), "{changes:?}");
}

#[test]
fn only_the_first_files_are_watched_and_dependencies_come_last() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    for number in 0..2100 {
        scratch.write(&format!("home/w/p/.pi/extensions/a/node_modules/d/{number}.js"), "1");
    }
    scratch.write("home/w/p/.pi/extensions/z/index.js", "1");
    let prints = store.snapshot(&project).unwrap().prints;
    assert_eq!(prints.len(), 2001);
    assert!(prints.contains_key("/further files") && prints.contains_key(".pi/extensions/z/index.js"));
}

#[test]
fn a_file_is_read_again_only_when_its_stamp_is_another() {
    use super::snapshot::print_of;
    use std::time::{Duration, SystemTime};
    let scratch = TempDir::create();
    let path = scratch.write("x", "1");
    let now = SystemTime::now();
    let fresh = print_of(&path, None, now).unwrap();
    assert!(!fresh.contains(' '), "a change in the tick of the clock would not be seen: {fresh}");
    let later = now + Duration::from_secs(10);
    let print = print_of(&path, None, later).unwrap();
    let (hash, stamp) = print.split_once(' ').unwrap();
    assert_eq!(hash, fresh);
    let known = format!("known {stamp}");
    assert_eq!(print_of(&path, Some(&known), later).unwrap(), known, "not read");
    fs::write(&path, "2").unwrap();
    assert_ne!(print_of(&path, Some(&known), later).unwrap(), known);
}

#[test]
fn consent_is_to_what_was_there() {
    let scratch = TempDir::create();
    let (project, store) = (covered_project(&scratch), store(&scratch));
    let consent = Consent::new(project.clone(), store.snapshot(&project).unwrap());
    let to_all = Consent::to_all(project.clone(), store.snapshot(&project).unwrap());
    assert_eq!(consent.check(), Ok(()));
    // Texts and settings were read when the session began.
    scratch.write("home/w/p/.pi/prompts/p.md", "2");
    scratch.write("home/w/p/.pi/settings.json", "{}");
    assert_eq!(consent.check(), Ok(()));
    scratch.write("home/w/p/tools/lib/beside.js", "2");
    let expected = "the project has changed since it was trusted: tools/lib/beside.js";
    assert_eq!(consent.check(), Err(expected.to_owned()));
    assert_eq!(to_all.check(), Ok(()));
}

#[test]
fn a_project_that_ran_nothing_is_known_too() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    let changes = || store.changes(&project, &store.snapshot(&project).unwrap()).unwrap();
    assert_eq!(changes(), [""; 0]);
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    assert_eq!(changes(), [".pi/extensions/x.js (new)"]);
}

#[test]
fn folders_whose_names_are_no_text_have_a_decision_each() {
    use std::ffi::OsStr;
    let scratch = TempDir::create();
    let store = store(&scratch);
    let project = |name: &[u8]| {
        let folder = scratch.path().join(OsStr::from_bytes(name));
        // Not every file system takes such a name.
        fs::create_dir(&folder).ok().map(|()| Project::new(&folder, None))
    };
    let (Some(one), Some(other)) = (project(b"a\xff"), project(b"a\xfe")) else {
        return;
    };
    let real = project("a\u{fffd}".as_bytes()).unwrap();
    store.answer(&one, &one.answers(false)[0], &store.snapshot(&one).unwrap()).unwrap();
    let found = |project| store.find(project).unwrap().map(|entry| entry.is_trusted);
    assert_eq!([found(&one), found(&other), found(&real)], [Some(true), None, None]);
}

#[test]
fn what_would_run_is_told_with_values_and_no_end_is_hidden() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    assert_eq!(store.snapshot(&project).unwrap(), Snapshot::nothing());
    let long = format!("echo{}touch evil", "\n".repeat(500));
    let settings =
        serde_json::json!({"theme": "x", "shellPath": "/bin/zsh\u{1b}[8m", "shellCommandPrefix": long});
    scratch.write("home/w/p/.pi/settings.json", settings.to_string());
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    scratch.fifo("home/w/p/.pi/extensions/pipe");
    let runs = store.snapshot(&project).unwrap().runs();
    assert_eq!(runs[0], "shellPath: \"/bin/zsh\\u001b[8m\"");
    assert!(runs[1].starts_with("shellCommandPrefix: \"echo\\n"), "{}", runs[1]);
    assert!(runs[1].ends_with("touch evil\" (1016 characters)"), "{}", runs[1]);
    assert_eq!(runs[2], ".pi/extensions: 2 files");
}

#[test]
fn a_settings_file_that_is_a_pipe_is_an_error_and_no_wait() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    fs::create_dir_all(project.root().join(".pi")).unwrap();
    scratch.fifo("home/w/p/.pi/settings.json");
    assert_eq!(
        store.snapshot(&project).unwrap().settings,
        Err("could not be read: not a regular file".into())
    );
}

#[test]
fn files_that_commands_name_are_watched() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    for name in ["my hook.sh", "server.sh", "hook", "env", "a.sh", "b.sh", "data.json"] {
        scratch.write(&format!("home/w/p/tools/{name}"), "1");
    }
    scratch.write("home/w/p/tools/ext/e.sh", "1");
    let check = |settings: serde_json::Value, servers: serde_json::Value, expected: &[&str]| {
        scratch.write("home/w/p/.pi/settings.json", settings.to_string());
        scratch.write("home/w/p/.pi/mcp.json", serde_json::json!({ "mcpServers": servers }).to_string());
        let prints = store.snapshot(&project).unwrap().prints;
        let files: Vec<&str> = prints.keys().filter_map(|name| name.strip_prefix("tools/")).collect();
        assert_eq!(files, expected, "{settings} {servers}");
    };
    let hook = |command: &str| serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
    let none = || serde_json::json!({});
    check(hook("sh \"tools/my hook.sh\""), none(), &["my hook.sh"]);
    check(hook("sh -c 'sh tools/a.sh tools/data.json'"), none(), &["a.sh"]);
    check(hook("sh tools/hook; . tools/env"), none(), &["env", "hook"]);
    check(hook("cd tools && sh ./hook x"), none(), &["hook"]);
    check(
        hook("for f in tools/*.sh; do sh $f; done"),
        none(),
        &["a.sh", "b.sh", "env", "hook", "my hook.sh", "server.sh"],
    );
    check(hook("${PI_PROJECT_DIR}/tools/a.sh"), none(), &["a.sh"]);
    check(none(), serde_json::json!({"s": {"command": "sh", "args": ["tools/my hook.sh"]}}), &["my hook.sh"]);
    check(
        none(),
        serde_json::json!({"s": {"command": "sh", "args": ["server.sh"], "cwd": "tools"}}),
        &["server.sh"],
    );
    check(
        none(),
        serde_json::json!({"s": {"command": "sh", "args": ["../../etc/passwd", "/etc/passwd"]}}),
        &[],
    );
    scratch.write(
        "home/w/p/.pi/extensions/x/pi-extension.json",
        r#"{"command": "../../../tools/hook", "args": ["../../../tools/ext/e.sh"]}"#,
    );
    check(none(), none(), &["ext/e.sh", "hook"]);
}

#[test]
fn a_look_at_a_project_ends() {
    use std::os::unix::fs::symlink;
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    // Its size is nothing, and reading it has no end.
    symlink("/proc/self/pagemap", project.root().join(".pi/extensions/endless.js")).unwrap();
    // Two links in each of many folders.
    for number in 0..24 {
        let folder = project.root().join(format!("deep/{number}"));
        fs::create_dir_all(&folder).unwrap();
        for name in ["a", "b"] {
            symlink(format!("../{}", number + 1), folder.join(name)).unwrap();
        }
    }
    scratch.write("home/w/p/deep/24/last.js", "1");
    symlink("../../deep/0", project.root().join(".pi/extensions/maze")).unwrap();
    let prints = store.snapshot(&project).unwrap().prints;
    assert_eq!(prints.keys().filter(|name| name.ends_with("last.js")).count(), 1);
}

#[test]
fn a_damaged_memory_of_projects_asks() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    let changes = || store.changes(&project, &store.snapshot(&project).unwrap());
    assert_eq!(changes(), Ok(Vec::new()), "seen for the first time");
    let whole = fs::read_to_string(&store.surfaces).unwrap();
    for damaged in ["", "{", "[]", whole.trim_end().strip_suffix('}').unwrap()] {
        fs::write(&store.surfaces, damaged).unwrap();
        assert_eq!(changes(), Ok(vec![".pi/extensions/x.js (new)".to_owned()]), "{damaged}");
    }
    // Projects that the file named once are asked about, too.
    let other = Project::new(scratch.path(), None);
    store.remember(&other, &store.snapshot(&other).unwrap()).unwrap();
    assert_eq!(changes().unwrap().len(), 1);
    store.remember(&project, &store.snapshot(&project).unwrap()).unwrap();
    assert_eq!(changes(), Ok(Vec::new()));
    // What cannot be remembered is said.
    fs::remove_file(&store.surfaces).unwrap();
    fs::create_dir(&store.surfaces).unwrap();
    assert!(store.snapshot(&project).is_err());
}
