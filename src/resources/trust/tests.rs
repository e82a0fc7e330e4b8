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
    let store_answer = |number: usize| store.answer(&project, &answers[number], &project.snapshot()).unwrap();
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
    let changed = || store.has_changed(&project, &project.snapshot()).unwrap();
    assert!(!changed(), "seen for the first time");
    scratch.write("home/w/p/.pi/settings.json", r#"{"theme":"b","shellPath":"/bin/sh"}"#);
    scratch.write("home/w/p/.pi/skills/a/SKILL.md", "text");
    assert!(!changed(), "nothing that runs");
    scratch.write("home/w/p/.pi/settings.json", r#"{"shellPath":"/tmp/evil"}"#);
    assert!(changed());
    store.remember(&project, &project.snapshot()).unwrap();
    assert!(!changed());
    scratch.write("home/w/p/.pi/extensions/deep/x.js", "1");
    assert!(changed());
    store.remember(&project, &project.snapshot()).unwrap();
    scratch.write("home/w/p/.pi/extensions/deep/x.js", "2");
    assert!(changed());
    fs::remove_dir_all(project.root().join(".pi")).unwrap();
    assert!(!changed(), "what is gone runs nothing");
}

#[test]
fn a_project_that_ran_nothing_is_known_too() {
    let scratch = TempDir::create();
    let (project, store) = (project(&scratch), store(&scratch));
    assert!(!store.has_changed(&project, &project.snapshot()).unwrap());
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    assert!(store.has_changed(&project, &project.snapshot()).unwrap());
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
    store.answer(&one, &one.answers(false)[0], &one.snapshot()).unwrap();
    let found = |project| store.find(project).unwrap().map(|entry| entry.is_trusted);
    assert_eq!([found(&one), found(&other), found(&real)], [Some(true), None, None]);
}

#[test]
fn what_would_run_is_told_with_values_and_no_end_is_hidden() {
    let scratch = TempDir::create();
    let project = project(&scratch);
    assert_eq!(project.snapshot(), Snapshot::nothing());
    let long = format!("echo{}touch evil", "\n".repeat(500));
    let settings =
        serde_json::json!({"theme": "x", "shellPath": "/bin/zsh\u{1b}[8m", "shellCommandPrefix": long});
    scratch.write("home/w/p/.pi/settings.json", settings.to_string());
    scratch.write("home/w/p/.pi/extensions/x.js", "1");
    scratch.fifo("home/w/p/.pi/extensions/pipe");
    let runs = project.snapshot().runs();
    assert_eq!(runs[0], "shellPath: \"/bin/zsh\\u001b[8m\"");
    assert!(runs[1].starts_with("shellCommandPrefix: \"echo\\n"), "{}", runs[1]);
    assert!(runs[1].ends_with("touch evil\" (1016 characters)"), "{}", runs[1]);
    assert_eq!(runs[2], ".pi/extensions: 2 files");
}

#[test]
fn a_settings_file_that_is_a_pipe_is_an_error_and_no_wait() {
    let scratch = TempDir::create();
    let project = project(&scratch);
    fs::create_dir_all(project.root().join(".pi")).unwrap();
    scratch.fifo("home/w/p/.pi/settings.json");
    assert_eq!(project.snapshot().settings, Err("could not be read: not a regular file".into()));
}
