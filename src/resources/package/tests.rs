//! Packages of settings: which are used, and which of their files.

use super::*;
use crate::base::testing::TempDir;
use crate::resources::settings::Settings;
use serde_json::json;

/// The files of a kind that settings of the user and of the project bring, relative to the scratch folder.
fn files(scratch: &TempDir, kind: Kind, user: &Value, project: &Value) -> (Vec<(String, bool)>, Vec<String>) {
    let (agent, cwd) = (scratch.path().join("agent"), scratch.path().join("p"));
    scratch.write("agent/settings.json", json!({"packages": user}).to_string());
    scratch.write("p/.pi/settings.json", json!({"packages": project}).to_string());
    let (mut settings, _) = Settings::load(&agent);
    settings.add_project(&cwd);
    let mut places = Places {
        agent: &agent,
        home: None,
        cwd: &cwd,
        settings: &settings,
        is_trusted: true,
        packages: &[],
        named_packages: &[],
    };
    let (packages, problems) = configured(&places);
    places.packages = &packages;
    let shown = |path: &Path| path.strip_prefix(scratch.path()).unwrap().display().to_string();
    let found = places.configured(kind).into_iter().map(|(source, is_on)| (shown(&source.path), is_on));
    (found.collect(), problems)
}

#[test]
fn filters_choose_among_what_a_package_declares() {
    let scratch = TempDir::create();
    for name in ["a", "b", "c"] {
        scratch.write(&format!("agent/npm/node_modules/@x/y/prompts/{name}.md"), "");
    }
    let rows: &[(Value, &[&str])] = &[
        (json!("npm:@x/y"), &["a", "b", "c"]),
        (json!({"source": "npm:@x/y"}), &["a", "b", "c"]),
        (json!({"source": "npm:@x/y", "skills": []}), &["a", "b", "c"]),
        (json!({"source": "npm:@x/y", "prompts": []}), &[]),
        (json!({"source": "npm:@x/y", "prompts": ["prompts/b.md"]}), &["b"]),
        (json!({"source": "npm:@x/y", "prompts": ["prompts/*", "!prompts/a.md"]}), &["b", "c"]),
        (json!({"source": "npm:@x/y", "prompts": ["!*", "+prompts/c.md"]}), &["c"]),
        (json!({"source": "npm:@x/y", "prompts": ["-prompts/c.md"]}), &["a", "b"]),
        (json!({"source": "npm:@x/y", "prompts": ["-c.md"]}), &["a", "b", "c"]),
        (json!({"source": "npm:@x/y", "prompts": ["x/../../../../agent/*"]}), &[]),
    ];
    for (entry, expected) in rows {
        let (found, problems) = files(&scratch, Kind::Prompts, &json!([entry]), &json!([]));
        assert_eq!((found.len(), problems), (3, Vec::new()), "all are there to be switched: {entry}");
        let on = found.iter().filter(|(_, is_on)| *is_on).map(|(path, _)| path.as_str());
        let names: Vec<&str> =
            on.map(|path| &path["agent/npm/node_modules/@x/y/prompts/".len()..][..1]).collect();
        assert_eq!(names, *expected, "{entry}");
    }
}

#[test]
fn a_package_of_both_scopes_is_the_projects() {
    let scratch = TempDir::create();
    scratch.write("agent/git/h.org/u/r/prompts/a.md", "");
    scratch.write("agent/git/h.org/u/r/prompts/b.md", "");
    scratch.write("p/.pi/git/h.org/u/r/prompts/p.md", "");
    scratch.write("p/local/prompts/l.md", "");
    let on = |user: &Value, project: &Value| -> Vec<String> {
        let (found, _) = files(&scratch, Kind::Prompts, user, project);
        found.into_iter().filter(|(_, is_on)| *is_on).map(|(path, _)| path).collect()
    };
    let (both, delta) = (
        json!(["git:h.org/u/r"]),
        |entries: Value| json!([{"source": "https://h.org/u/r@v1", "autoload": false, "prompts": entries}]),
    );
    let (a, b) = ("agent/git/h.org/u/r/prompts/a.md", "agent/git/h.org/u/r/prompts/b.md");
    assert_eq!(on(&both, &json!([])), [a, b]);
    assert_eq!(on(&both, &both), ["p/.pi/git/h.org/u/r/prompts/p.md"]);
    assert_eq!(on(&both, &delta(json!(["-prompts/a.md"]))), [b]);
    let off = json!([{"source": "git:h.org/u/r", "prompts": []}]);
    assert_eq!(on(&off, &delta(json!(["+prompts/a.md"]))), [a]);
    assert_eq!(on(&off, &delta(json!(["!prompts/*", "prompts/b*"]))), [b]);
    // Paths begin at the folder of the settings.
    assert_eq!(on(&json!(["../p/local"]), &json!(["../local"])), ["p/local/prompts/l.md"]);
}

#[test]
fn what_cannot_be_used_is_said() {
    let scratch = TempDir::create();
    scratch.write("agent/npm/node_modules/old/package.json", r#"{"version": "1.0.0"}"#);
    let user = json!([7, {"skills": []}, "git:nowhere", "npm:old@1.2.0", "npm:gone", "../gone"]);
    let (found, problems) = files(&scratch, Kind::Skills, &user, &json!([]));
    assert_eq!((found.len(), problems.len()), (0, 3), "{problems:?}");
    let store = Store::user(&scratch.path().join("agent"));
    for (source, expected) in [
        ("npm:old", None),
        ("npm:old@1.0.0", None),
        ("npm:old@^2.0.0", None),
        ("npm:old@1.2.0", Some("is installed as version \"1.0.0\"")),
        ("npm:gone", Some("is not installed, and not used. Run: pi install npm:gone")),
        ("./gone", Some("does not exist")),
    ] {
        let fault = Package::new(source, &store, |path| store.base.join(path)).unwrap().fault();
        assert_eq!(fault.is_some(), expected.is_some(), "{source} {fault:?}");
        assert!(fault.unwrap_or_default().contains(expected.unwrap_or_default()), "{source}");
    }
}

#[test]
fn packages_lie_where_the_typescript_pi_has_them() {
    let store = Store::temporary(Path::new("/a"));
    let folder = |source: &str| {
        Package::new(source, &store, |path| PathBuf::from(path)).unwrap().root.display().to_string()
    };
    // As printed by the TypeScript pi 1.5.2.
    assert_eq!(folder("npm:foo@1.0.0"), "/a/tmp/extensions/npm/f35b2129/node_modules/foo");
    assert_eq!(folder("git:github.com/u/r@v1"), "/a/tmp/extensions/git-github.com/8dd28ea3/u/r");
}
