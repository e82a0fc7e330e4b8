//! Facts about the repository that must stay true: which room may use which, and what lies where.

mod graph;

use graph::Graph;
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Room, the rooms it may use, and what it must not see inside them.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    ("base", &[], &[]),
    ("jsonrpc", &["base"], &[]),
    ("markdown", &[], &[]),
    ("client", &[], &[]),
    ("docs", &["base"], &[]),
    ("llm", &["base"], &[]),
    ("wire", &["base", "llm"], &[]),
    ("models", &["base", "llm", "wire"], &[]),
    ("auth", &["base", "llm", "wire", "models"], &[]),
    ("agent", &["base", "llm", "wire"], WIRE),
    ("tools", &["base", "llm", "agent"], WIRE),
    ("session", &["base", "llm", "agent", "markdown"], WIRE),
    ("resources", &["base", "llm"], WIRE),
    ("runtime", &["base", "llm", "wire", "models", "auth", "agent", "tools", "session", "resources"], WIRE),
    ("codemode", &["base", "jsonrpc", "llm", "agent", "tools", "session", "runtime"], WIRE),
    (
        "mcp",
        &[
            "base",
            "jsonrpc",
            "llm",
            "models",
            "auth",
            "agent",
            "tools",
            "session",
            "resources",
            "runtime",
            "codemode",
        ],
        &[],
    ),
    (
        "extension",
        &["base", "jsonrpc", "llm", "agent", "tools", "resources", "runtime"],
        &["llm::http", "llm::sse", "llm::protocol", "llm::body"],
    ),
    ("helper", &["base", "llm", "agent", "tools", "session", "resources", "runtime", "client"], WIRE),
    ("tui", &["base", "markdown"], &[]),
    // Of the modes only the interactive one uses the terminal.
    ("mode", &["base", "runtime", "jsonrpc", "tui"], &[]),
    (
        "cli",
        &[
            "base",
            "llm",
            "wire",
            "models",
            "auth",
            "agent",
            "tools",
            "session",
            "resources",
            "runtime",
            "helper",
            "extension",
            "codemode",
            "mcp",
            "mode",
            "docs",
        ],
        &[],
    ),
];

/// How requests travel: for the rooms that make and send them.
const WIRE: &[&str] = &["llm::http", "llm::sse", "llm::protocol", "llm::body", "wire::endpoint"];

/// Files that import each other in a circle are read as one. None may be larger than this.
const CIRCLE_FILES_MAX: usize = 5;

/// Only these files start programs.
const SPAWNERS: &[&str] = &[
    "src/cli/config.rs",
    "src/models/config_value.rs",
    "src/tools/process",
    "src/tools/image",
    "src/tools/bash",
    "src/tools/sandbox",
    "src/cli/sandbox.rs",
    "src/client",
    "src/helper/command.rs",
    "src/runtime/job/kept.rs",
    "src/helper/isolate/git.rs",
    "src/mode/interactive/command/editor.rs",
    "src/mode/interactive/program.rs",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

static TEST_MODULE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"#\[cfg\(test\)\]\n(pub )?mod \w+;").unwrap());

/// The text of a source file without its tests; empty for a file of tests.
fn product(path: &Path) -> String {
    let is_test = |name: &str| matches!(name, "tests" | "tests.rs" | "testing" | "testing.rs" | "matrix");
    if path.iter().any(|name| name.to_str().is_some_and(is_test)) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = TEST_MODULE.replace_all(&text, "").into_owned();
    text.split("\n#[cfg(test)]\nmod ").next().unwrap().to_owned()
}

/// Every source file with its product code.
fn sources() -> Vec<(PathBuf, String)> {
    let files = rust_files(&root().join("src")).into_iter();
    files.map(|path| (path.clone(), product(&path))).filter(|(_, text)| !text.is_empty()).collect()
}

#[test]
fn files_import_each_other_in_small_circles_only() {
    let graph = Graph::read(&root().join("src"), &sources());
    let largest = graph.circles().into_iter().next().unwrap_or_default();
    assert!(largest.len() <= CIRCLE_FILES_MAX, "{} files: {largest:#?}", largest.len());
}

#[test]
fn rooms_use_only_what_they_may() {
    for (room, allowed, hidden) in ARROWS {
        for path in rust_files(&root().join("src").join(room)) {
            for (number, line) in product(&path).lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for used in code.split("crate::").skip(1) {
                    let name: String =
                        used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    let place = || format!("{}:{}: {line}", path.display(), number + 1);
                    let known = ARROWS.iter().any(|(other, ..)| *other == name);
                    assert!(name == *room || !known || allowed.contains(&&*name), "{}", place());
                    assert!(!hidden.iter().any(|part| used.starts_with(part)), "{}", place());
                }
            }
        }
    }
}

#[test]
fn every_room_is_in_the_table() {
    for entry in fs::read_dir(root().join("src")).unwrap().flatten() {
        if entry.path().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(ARROWS.iter().any(|(room, ..)| *room == name), "{name} has no arrows");
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for path in rust_files(&root().join("src")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!") || path.ends_with("main.rs"), "{} has no header", path.display());
    }
}

#[test]
fn programs_are_started_in_few_places() {
    for path in rust_files(&root().join("src")) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if SPAWNERS.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        assert!(!product(&path).contains("Command::new"), "{name} starts a program");
    }
}

#[test]
fn what_costs_code_for_each_type_has_one_place() {
    let elsewhere = [
        (r"thread::Builder::new", "base/thread.rs"),
        (r"serde_json::(json!|json;|\{[^}]*\bjson\b)", "base/json.rs"),
    ];
    let elsewhere = elsewhere.map(|(text, place)| (Regex::new(text).unwrap(), place));
    for (path, text) in sources() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        // A client is a file of its own, and a template begins another program.
        if ["src/base/", "src/client/", "src/cli/extension/template/"].iter().any(|own| name.starts_with(own))
        {
            continue;
        }
        for (text_elsewhere, place) in &elsewhere {
            assert!(!text_elsewhere.is_match(&text), "{name} does what {place} is for");
        }
    }
}

#[test]
fn the_top_level_stays_small() {
    const KNOWN: &[&str] = &[
        ".ci",
        ".git",
        ".git-blame-ignore-revs",
        ".gitignore",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "rustfmt.toml",
        "scripts",
        "src",
        "target",
        "tests",
    ];
    for entry in fs::read_dir(root()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(KNOWN.contains(&&*name), "{name} at the top level");
    }
}

/// Where a feature is named beside a `mod` line, and why.
const FEATURE_FILES: &[(&str, &str)] = &[
    ("src/lib.rs", "what only a part that is left out uses is not dead"),
    ("src/base/feature.rs", "the list of features"),
    ("src/wire/mod.rs", "rows of the table of protocols"),
    ("src/auth/provider.rs", "rows of the table of providers"),
];

#[test]
fn a_feature_is_named_where_a_part_begins_and_in_few_other_files() {
    let mut others = Vec::new();
    for (path, text) in sources() {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if !line.contains("feature = \"") {
                continue;
            }
            let after = lines.clone().find(|line| !line.trim_start().starts_with("#["));
            if !after.is_some_and(|line| line.starts_with("mod ") || line.starts_with("pub mod ")) {
                others.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    others.sort();
    others.dedup();
    let mut known: Vec<&str> = FEATURE_FILES.iter().map(|(file, _)| *file).collect();
    known.sort_unstable();
    assert_eq!(others, known);
}

#[test]
fn every_setting_is_read_somewhere() {
    const TABLE: &str = "src/resources/settings/table.rs";
    let table = fs::read_to_string(root().join(TABLE)).unwrap();
    let row = Regex::new(r#"(?m)^ +(?:key|global)\("([^"]+)""#).unwrap();
    let not_readers = [TABLE, "src/resources/settings/migrate.rs", "src/mode/interactive/dialog/settings.rs"];
    let code: String = sources()
        .into_iter()
        .filter(|(path, _)| !not_readers.iter().any(|name| path.ends_with(name)))
        .map(|(_, text)| text)
        .collect();
    for row in row.captures_iter(&table) {
        let is_read = code.contains(&format!("\"{}\"", &row[1]));
        assert!(is_read, "nothing reads {}", &row[1]);
    }
}
