//! The examples of the library, run as they are.

use crate::agent::World;
use std::path::PathBuf;
use std::process::{Command, Output};

/// `cargo test` builds the examples; where this test target runs alone, the test does.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("the path of this test");
    let built = tests.parent().and_then(|deps| deps.parent());
    let built = built.expect("the folder of the build");
    let path = built.join("examples").join(name);
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "--quiet", "--example", name]);
        if built.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.expect("run cargo").success());
    }
    path
}

fn run(world: &World, name: &str, words: &[&str]) -> Output {
    let mut pi = world.pi();
    let command = pi.command();
    let mut run = Command::new(example(name));
    run.args(words).env_clear().current_dir(world.work());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/examples/host.json");
    run.env("PI_FAUX_SCRIPT", script);
    for (name, value) in command.get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    run.output().expect("run an example")
}

/// What the example says, in a world with one file.
#[track_caller]
fn said(name: &str, words: &[&str]) -> String {
    let world = World::new();
    world.write("README.md", "# The first line\n");
    let output = run(&world, name, words);
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{fault}");
    assert_eq!(fault, "");
    // Nothing is stored that nobody asked for.
    assert_eq!(world.session_files().len(), 0);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_host_has_a_tool_of_its_own() {
    let said = said("host", &[]);
    assert_eq!(said, "No: the sun shines in Lisbon, at 24 degrees.\n");
}

#[test]
fn a_model_is_asked_without_an_agent() {
    let said = said("model", &["faux/echo", "Hello"]);
    assert!(said.starts_with("Hello\n["), "{said}");
    let world = World::new();
    let output = run(&world, "model", &["openai/gpt-5-mini", "Hello"]);
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(fault.contains("OPENAI_API_KEY"), "{fault}");
}

#[test]
fn events_are_drawn_as_one_likes() {
    let said = said("render", &["faux/demo", "Look"]);
    let steps: Vec<&str> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    let (end, steps) = steps.split_last().expect("lines");
    assert_eq!(
        steps,
        ["> ls {\"path\":\".\"}", "< ls done", "> read {\"path\":\"README.md\",\"limit\":20}", "< read done",]
    );
    assert!(end.starts_with("= 3 turns, "), "{end}");
    assert!(said.contains("begins with “The first line”."), "{said}");
}

#[test]
fn another_process_is_driven() {
    let said = said("client", &[env!("CARGO_BIN_EXE_pi")]);
    let (answer, stats) = said.split_once('\n').expect("two lines");
    assert_eq!(answer, "Hello");
    assert!(stats.ends_with(" tokens\n"), "{stats}");
}

#[test]
fn the_page_prints_examples_as_they_are() {
    let page = World::new().pi().words("docs sdk").run().success().stdout;
    for name in ["host", "client"] {
        let path = format!("{}/scripts/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let example = std::fs::read_to_string(path).expect("the example");
        assert!(page.contains(&format!("```rust\n{example}```\n")), "{name}.rs is another one in the page");
    }
    for other in ["model", "render"] {
        assert!(page.contains(&format!("scripts/examples/{other}.rs")));
    }
}
