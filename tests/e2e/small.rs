//! Lists and dialogs where there is little room, and on terminals that know no sequences.

use crate::agent::World;
use crate::screen::{ENTER, ESCAPE, Screen, started};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};

/// An image of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x04\0\0\0\xb5\x1c\x0c\x02\0\0\0\x0bIDATx\xdacd\xf8\x0f\0\x01\x05\x01\x01'\x18\xe3f\0\0\0\0IEND\xaeB`\x82";

#[test]
fn lists_can_be_used_on_five_rows_of_twenty_cells() {
    let call = Reply::tool("c", "bash", &json!({"command": "touch made"}));
    let (world, _server) = world([call, Reply::text("Done.")]);
    let screen = started(&world, "--ask-tools all");
    screen.resize(20, 5);
    for (command, row) in [
        ("/model", "Type to search"),
        ("/settings", "Auto-comp"),
        ("/permissions", "What no rule"),
        ("/hotkeys", "→ /"),
    ] {
        screen.send(command);
        screen.wait_for(row);
        screen.type_keys("\x1b[B");
        screen.wait_for("→");
        screen.type_keys(ESCAPE);
        screen.wait_until_gone("→");
    }
    screen.send("go");
    screen.wait_for("→ y  Allow");
    screen.type_keys(ENTER);
    screen.wait_until("the command was not run", |_| world.work().join("made").exists());
    screen.quit();
}

#[test]
fn key_hints_wrap_where_they_do_not_fit() {
    let (world, _server) = world([]);
    let screen = started(&world, "");
    screen.resize(60, 18);
    screen.send("/scoped-models");
    let text = screen.wait_for("Model Configuration");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("ctrl+s save"), "{text}");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Model Configuration");
    screen.quit();
}

#[test]
fn lists_use_the_room_of_a_low_screen_and_name_their_keys() {
    let (world, _server) = world([]);
    let screen = started(&world, "");
    screen.resize(40, 12);
    for (command, last_row, key) in
        [("/settings", "Block images", "escape leave"), ("/permissions", "Add a rule", "escape leave")]
    {
        screen.send(command);
        let text = screen.wait_for(last_row);
        assert!(text.contains(key), "{text}");
        screen.type_keys(ESCAPE);
        screen.wait_until_gone(last_row);
    }
    screen.quit();
}

#[test]
fn a_list_can_be_used_on_a_terminal_without_sequences() {
    let (world, server) =
        world([Reply::tool("c", "bash", &json!({"command": "true"})), Reply::text("Done.")]);
    let pi = world.pi().words("--model mock/m1 --ask-tools all").env("NO_COLOR", "");
    let screen = Screen::of_kind(pi, "dumb");
    screen.wait_for("commands");
    screen.send("/permissions");
    screen.wait_for("selected: on: asks before each call");
    screen.type_keys("\x1b[B");
    screen.wait_for("selected: off: runs without asking");
    screen.type_keys("\x03");
    screen.send("go");
    screen.wait_for("Allow bash?");
    screen.wait_for("selected: y  Allow");
    screen.type_keys("y");
    screen.wait_for("Done.");
    let raw = screen.quit();
    assert!(!raw.contains('\x1b'), "{raw:?}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_fills_the_window_is_listed() {
    let (world, _server) = world([Reply::text("An answer.")]);
    world.write("AGENTS.md", "Be brief.");
    let screen = started(&world, "");
    screen.send("a long question");
    screen.wait_for("An answer.");
    screen.wait_until_gone("Working");
    screen.send("/context");
    let text = screen.wait_for("Messages");
    for part in
        ["system prompt", "tools", "project files", "prompt: a long question", "answer: An answer.", "%"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("project files");
    screen.quit();
}

#[test]
fn images_are_sent_with_the_prompt_that_names_them() {
    let (world, server) = world([Reply::text("I see."), Reply::text("Nothing there.")]);
    world.write("my shot.png", PNG);
    let screen = started(&world, "");
    // As terminals insert the path of a file that is dropped.
    let path = world.work().join("my shot.png");
    screen.type_keys(&format!("\x1b[200~'{}' \x1b[201~", path.display()));
    screen.wait_for("my shot.png");
    screen.send("what is it?");
    screen.wait_for("I see.");
    let sent = serde_json::to_string(server.requests()[0].messages()).unwrap();
    assert!(sent.contains("data:image/png;base64,") && sent.contains("what is it?"), "{sent}");
    screen.wait_for("1 image attached");
    screen.send("and other.png?");
    screen.wait_for("Nothing there.");
    let sent = serde_json::to_string(&server.requests()[1].messages()).unwrap();
    assert_eq!(sent.matches("image_url").count() / 2, 1, "{sent}");
    screen.quit();
}

#[test]
fn a_prompt_waits_for_a_model_and_is_sent_then() {
    let (world, server) = (World::new(), Server::start([Reply::text("Here I am.")]));
    let models: Value = json!({"providers": {"groq": {"baseUrl": server.url()}}});
    world.write_config("models.json", &models.to_string());
    let screen = Screen::start(world.pi());
    screen.wait_for("no-model");
    screen.send("are you there?");
    screen.wait_for("Select authentication method:");
    screen.type_keys("\x1b[B\r");
    screen.wait_for("Select provider to configure:");
    screen.type_keys("groq");
    screen.wait_for("Groq");
    screen.type_keys(ENTER);
    screen.wait_for("Login to Groq");
    screen.type_keys("gsk-secret");
    screen.wait_for("••••••••••");
    screen.type_keys(ENTER);
    screen.wait_for("Here I am.");
    assert_eq!(server.requests()[0].last_text(), "are you there?");
    screen.quit();
}

#[test]
fn ctrl_c_with_a_list_open_empties_the_editor() {
    let (world, server) = world([]);
    let screen = started(&world, "");
    screen.type_keys("/rev");
    screen.wait_for("Have the model review");
    screen.type_keys("\x03");
    screen.wait_until_gone("/rev");
    screen.send("/permissions");
    screen.wait_for("What no rule is about");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("What no rule is about");
    screen.quit();
    assert_eq!(server.requests().len(), 0);
}
