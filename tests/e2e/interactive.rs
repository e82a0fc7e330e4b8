//! The interactive terminal, as one sees it.

use crate::agent::World;
use crate::screen::Screen;
use crate::server::Reply;
use crate::world;

fn start(world: &World) -> Screen {
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen
}

#[test]
fn a_prompt_is_answered_and_the_session_can_be_resumed() {
    let (world, server) = world([Reply::text("Hello from the model.")]);
    let screen = start(&world);
    screen.send("What is this?");
    screen.wait_for("Hello from the model.");
    let raw = screen.quit();
    assert!(raw.contains("pi --session "), "{raw}");
    assert_eq!(server.requests().len(), 1);
    let screen = Screen::start(world.pi().words("--continue"));
    let text = screen.wait_for("Hello from the model.");
    assert!(text.contains("What is this?"), "{text}");
    screen.quit();
}
