//! An abort ends the wait for handlers that hang, and the prompt is not sent.

use super::rpc::client;
use super::{events, install};
use crate::agent::{World, wait_until};
use crate::screen::{ENTER, ESCAPE, Screen};
use crate::server::{Reply, Server};
use crate::world;
use pi::client::Client;
use serde_json::json;

/// A world with an extension that does not answer an event with `part` in it.
fn hanging(event: &str, part: &str) -> (World, Server) {
    let (world, server) = world([Reply::text("the answer")]);
    install(&world, "x", &json!({"events": [event]}), &format!("    *'{part}'*) ;;\n"));
    (world, server)
}

fn wait_until_asked(world: &World) {
    wait_until("the handler is asked", || !events(world).is_empty());
}

/// Sends a prompt, aborts it while a handler is asked, and sends another one.
fn abort_a_prompt(client: &mut Client, world: &World) -> bool {
    let prompt = client.send("prompt", json!({"message": "hang here"})).unwrap();
    wait_until_asked(world);
    client.request("abort", json!({})).unwrap();
    let is_accepted = client.answer(prompt).unwrap()["success"] == true;
    if is_accepted {
        client.wait_until_settled().unwrap();
    }
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(client.last_text().unwrap().as_deref(), Some("the answer"));
    is_accepted
}

#[test]
fn a_client_aborts_a_prompt_that_a_handler_looks_at() {
    let (world, server) = hanging("input", "hang here");
    let mut client = client(&world);
    assert!(!abort_a_prompt(&mut client, &world));
    assert_eq!(server.requests().len(), 1);
    assert!(client.close().unwrap().success());
}

#[test]
fn a_client_aborts_a_prompt_that_waits_for_the_start_of_the_session() {
    let (world, server) = hanging("session_start", "session_start");
    let mut client = client(&world);
    assert!(abort_a_prompt(&mut client, &world));
    assert_eq!(server.requests().len(), 1);
    assert!(client.close().unwrap().success());
}

#[test]
fn a_handler_that_aborts_the_run_does_not_abort_the_prompt_it_looks_at() {
    let (world, _server) = world([Reply::text("the answer")]);
    let arms = "    *'\"type\":\"input\"'*) call a session.abort '{}'; first=$id ;;\n    *'\"id\":\"a\"'*) ok null $first ;;\n";
    install(&world, "x", &json!({"events": ["input"]}), arms);
    world.pi().words("--model mock/m1 -p hi").run().success().stdout_is("the answer\n");
}

#[test]
fn escape_brings_a_prompt_back_that_a_handler_keeps() {
    for event in ["input", "session_start"] {
        let (world, server) = hanging(event, "hang here");
        if event == "session_start" {
            install(&world, "x", &json!({"events": [event]}), "    *'session_start'*) ;;\n");
        }
        let screen = Screen::start(world.pi().words("--model mock/m1"));
        screen.wait_for("(auto)");
        screen.type_keys("hang here");
        screen.wait_for("hang here");
        screen.type_keys(ENTER);
        if event == "input" {
            screen.wait_for("Waiting for extensions");
        }
        wait_until_asked(&world);
        screen.wait_until("the prompt has left the editor", |text| !text.contains("hang here"));
        screen.type_keys(ESCAPE);
        screen.wait_for("hang here");
        assert!(server.requests().is_empty(), "{event}");
        screen.type_keys(" or go");
        screen.wait_for("hang here or go");
        // Ctrl-C empties the editor.
        screen.type_keys("\u{3}");
        screen.quit();
    }
}
