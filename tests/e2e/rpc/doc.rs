//! The clients of the manual, run where their language is installed.

use crate::agent::World;
use crate::server::Reply;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

/// The first block of the manual's page in `language`.
fn block(language: &str) -> String {
    let page = World::new().pi().words("docs rpc").run().success().stdout;
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("the end of the block").0.to_owned()
}

/// Runs a client of the manual and gives what it printed; none where the language is not installed.
fn run(language: &str, program: &str, flag: &str) -> Option<String> {
    let installed = Command::new(program).args([flag, ""]).stdin(Stdio::null()).output();
    if !installed.is_ok_and(|outcome| outcome.status.success()) {
        return None;
    }
    let (world, _server) = crate::world([Reply::text("one ").then_text("two")]);
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_pi"), bin.join("pi")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let outcome = Command::new(program)
        .args([flag, &block(language)])
        .env_clear()
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("HOME", world.home())
        .env("TMPDIR", world.tmp())
        .current_dir(world.work())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    Some(String::from_utf8(outcome.stdout).unwrap())
}

#[test]
fn the_python_client_works() {
    if let Some(said) = run("python", "python3", "-c") {
        assert_eq!(said, "one two");
    }
}

#[test]
fn the_node_client_works() {
    if let Some(said) = run("js", "node", "-e") {
        assert_eq!(said, "one two");
    }
}

#[test]
fn the_shell_client_works() {
    if let Some(said) = run("sh", "sh", "-c") {
        assert!(said.lines().last().unwrap().contains("one two"), "{said}");
    }
}
