//! The terminal after a pi that was killed.

use crate::agent::{World, write_program};
use crate::screen::{Screen, started};
use crate::server::{Reply, Step};
use crate::world;
use std::fs;

const CTRL_G: &str = "\x07";

#[test]
fn a_pi_that_is_killed_leaves_the_terminal_as_it_was() {
    for words in ["", "--tui-mode fullscreen"] {
        let (world, _server) = world([Reply::text("half an answer").then(Step::Stall)]);
        let screen = started(&world, words);
        screen.send("What is this?");
        screen.wait_for("half an answer");
        world.wait_until_watched();
        screen.kill();
        assert_eq!(world.processes_left(), [0u32; 0]);
    }
}

#[test]
fn a_pi_that_is_killed_at_a_question_leaves_the_terminal_as_it_was() {
    let world = World::new();
    world.write(".pi/settings.json", r#"{"shellPath": "/bin/sh"}"#);
    let screen = Screen::start(world.pi().words("--model faux/demo"));
    screen.wait_for("Trust project folder?");
    world.wait_until_watched();
    screen.kill();
}

#[test]
fn a_terminal_without_sequences_gets_none_afterwards_either() {
    let (world, _server) = world([]);
    let screen = Screen::of_kind(world.pi().words("--model mock/m1").env("NO_COLOR", ""), "dumb");
    screen.wait_for("commands");
    world.wait_until_watched();
    let raw = screen.kill();
    assert!(!raw.contains('\x1b'), "{raw:?}");
}

/// An editor that switches on what editors do.
fn editor(world: &World) -> String {
    let path = world.work().join("editor");
    write_program(
        &path,
        "#!/bin/sh\nstty raw -echo\n\
        printf '\\033[?1049h\\033[?2004h\\033[?1000h\\033[?1004h\\033[?25l\\033[>7uEDITOR'\n\
        exec sleep 300\n",
    );
    path.display().to_string()
}

#[test]
fn a_pi_that_is_killed_takes_an_editor_along() {
    let (world, _server) = world([]);
    let editor = editor(&world);
    let screen = Screen::start(world.pi().words("--model mock/m1").env("EDITOR", editor));
    screen.wait_for("m1");
    screen.type_keys("some words");
    screen.wait_for("some words");
    screen.type_keys(CTRL_G);
    screen.wait_for("EDITOR");
    world.wait_until_watched();
    screen.kill();
    assert_eq!(world.processes_left(), [0u32; 0]);
    // What was typed is still to be found.
    let files: Vec<_> = world.tmp().read_dir().unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::read_to_string(files[0].path()).unwrap(), "some words");
    fs::remove_file(files[0].path()).unwrap();
}

/// Though pi has a terminal, what the model runs has none, and its editors fail with a word.
#[test]
fn a_command_of_the_model_has_no_terminal_and_no_editor() {
    let command = "(: < /dev/tty) 2>&1; git init -q . && git -c user.name=a -c user.email=a@b commit \
        --allow-empty 2>&1 | head -n1";
    let (world, _server) =
        world([Reply::tool("t", "bash", &serde_json::json!({"command": command})), Reply::text("All done.")]);
    let screen = started(&world, "");
    screen.send("go");
    screen.wait_for("All done.");
    screen.quit();
    let session = world.session();
    let result = session.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    let text = result["message"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("No such device or address"), "{text}");
    assert!(text.contains("No editor can be used here."), "{text}");
}
