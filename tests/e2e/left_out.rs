//! A build without a feature says so where the part is asked for.

use crate::agent::World;

#[cfg(not(feature = "acp"))]
#[test]
fn acp_mode_is_refused() {
    World::new().pi().words("--mode acp").run().fails_with(1).stderr_has("built without acp");
}

#[cfg(not(feature = "sandbox"))]
#[test]
fn a_sandbox_is_not_promised() {
    let words = "--model faux/echo --sandbox workspace -p hi";
    World::new().pi().words(words).run().fails_with(1).stdout_is("").stderr_has("built without sandbox");
    let tried = World::new().pi().words("sandbox -- true").run();
    assert!(tried.code() != 0 && tried.stderr.contains("built without sandbox"), "{}", tried.stderr);
}

#[cfg(not(feature = "clouds"))]
#[test]
fn models_of_a_cloud_are_refused_and_not_listed() {
    let world = World::new();
    let pi = || world.pi().env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
    for model in ["amazon-bedrock/us.anthropic.claude-opus-4-6-v1", "google-vertex/gemini-3.1-pro-preview"] {
        let refused = pi().args(["--model", model, "-p", "hi"]).run();
        assert!(refused.code() != 0 && refused.stderr.contains("built without clouds"), "{}", refused.stderr);
    }
    let listed = pi().words("--list-models").run();
    assert!(!listed.stdout.contains("amazon-bedrock"), "{}", listed.stdout);
}

#[cfg(not(feature = "interactive"))]
#[test]
fn a_terminal_is_told_that_there_is_no_conversation() {
    let world = World::new();
    let screen = crate::screen::Screen::start(world.pi().words("--model faux/echo"));
    screen.wait_for("There is no conversation on a terminal");
}

#[cfg(not(feature = "mcp"))]
#[test]
fn servers_of_mcp_are_refused() {
    World::new().pi().words("mcp list").run().fails_with(1).stderr_has("built without mcp");
}

#[cfg(not(feature = "extensions"))]
#[test]
fn extensions_are_refused() {
    let world = World::new();
    world.write("x", "");
    let outcome = world.pi().words("--model faux/echo -e x -p hi").run();
    outcome.fails_with(1).stderr_has("built without extensions");
}
