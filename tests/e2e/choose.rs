//! Choosing and configuring in the interactive terminal: models, thinking, settings, keys.

use crate::agent::World;
use crate::screen::{ENTER, ESCAPE, Screen};
use crate::server::{Reply, Server};
use serde_json::{Value, json};

const CTRL_L: &str = "\x0c";
const CTRL_S: &str = "\x13";
const CTRL_U: &str = "\x15";

/// A provider with two models, the second of which thinks.
fn two_models(replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let (world, server) = crate::world(replies);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "test-key",
        "api": "openai-completions", "models": [{"id": "m1", "name": "Mock One"},
            {"id": "m2", "name": "Mock Two", "reasoning": true}]}}});
    world.write_config("models.json", &config.to_string());
    (world, server)
}

fn started(world: &World) -> Screen {
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen
}

/// The user's settings but those that every test has.
fn settings(world: &World) -> Value {
    let text = std::fs::read_to_string(world.agent_dir().join("settings.json")).unwrap();
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    settings.as_object_mut().unwrap().remove("retry");
    settings
}

#[test]
fn a_model_is_chosen_for_the_session_or_for_good() {
    let (world, server) = two_models([Reply::text("From the second.")]);
    let screen = started(&world);
    screen.type_keys(CTRL_L);
    screen.wait_for("Only showing models from configured providers");
    screen.type_keys("two");
    screen.wait_for("Model Name: Mock Two");
    screen.type_keys(ENTER);
    screen.wait_for("Model: m2");
    assert_eq!(settings(&world), json!({}));
    screen.send("hello");
    screen.wait_for("From the second.");
    assert_eq!(server.requests()[0].body["model"], "m2");
    screen.send("/model mock/m1");
    screen.wait_for("Model: m1");
    screen.send("/model");
    screen.wait_for("to set as default");
    screen.type_keys("m2");
    screen.wait_for("Model Name: Mock Two");
    screen.type_keys(CTRL_S);
    screen.wait_for("Default model: mock/m2");
    screen.quit();
    let saved = json!({"defaultProvider": "mock", "defaultModel": "m2"});
    assert_eq!(settings(&world), saved);
}

#[test]
fn servers_of_this_machine_are_in_the_list_of_models() {
    let (world, _server) = two_models([]);
    let local = Server::start([]);
    local.list_models();
    let root = format!("http://127.0.0.1:{}", local.port());
    let pi = world.pi().words("--model mock/m1");
    let screen = Screen::start(pi.env("PI_LOCAL_URL", root));
    screen.wait_for("m1");
    screen.send("/model");
    screen.wait_for("tiny [local]");
    screen.type_keys("tiny");
    screen.wait_until("the other model is gone", |text| !text.contains("m2 [mock]"));
    screen.type_keys(ENTER);
    screen.wait_for("Model: tiny");
    screen.quit();
}

#[test]
fn thinking_is_chosen() {
    let (world, _server) = two_models([]);
    let screen = started(&world);
    screen.send("/model mock/m2");
    screen.wait_for("Model: m2");
    screen.send("/thinking high");
    screen.wait_for("Thinking level: high");
    screen.send("/thinking");
    screen.wait_for("Thinking Level");
    screen.type_keys("low");
    screen.wait_until("the others are gone", |text| !text.contains("about 16k"));
    screen.type_keys(CTRL_S);
    screen.wait_for("Default thinking level: low");
    screen.quit();
    assert_eq!(settings(&world), json!({"defaultThinkingLevel": "low"}));
}

#[test]
fn settings_are_looked_at_and_changed() {
    let (world, _server) = two_models([]);
    let screen = started(&world);
    screen.send("/settings");
    screen.wait_for("Auto-compact");
    screen.type_keys("quiet");
    screen.wait_for("Quiet startup");
    screen.type_keys(ENTER);
    screen.wait_for("takes effect after restart");
    screen.type_keys(CTRL_U);
    screen.type_keys("default model");
    screen.wait_for("defaultModel in settings.json");
    screen.type_keys(ENTER);
    screen.wait_for("Default model: ");
    screen.type_keys("m2");
    screen.type_keys(ENTER);
    screen.wait_until("the value is shown", |text| text.contains("Default model") && text.contains("m2"));
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Type to search");
    screen.quit();
    let saved = json!({"quietStartup": "header", "defaultModel": "m2"});
    assert_eq!(settings(&world), saved);
}

#[test]
fn a_first_start_without_a_key_says_what_to_do_and_a_key_can_be_stored() {
    let world = World::new();
    let screen = Screen::start(world.pi());
    let text = screen.wait_for("No model to ask yet");
    assert_eq!(text.matches("pi v").count(), 1, "{text}");
    screen.send("/login");
    screen.wait_for("Select authentication method:");
    screen.type_keys("\x1b[B");
    screen.type_keys(ENTER);
    screen.wait_for("Select provider to configure:");
    screen.type_keys("groq");
    screen.wait_for("Groq");
    screen.type_keys(ENTER);
    screen.wait_for("Login to Groq");
    screen.type_keys("gsk-very-secret");
    screen.wait_for("•••••••••••••••");
    screen.type_keys(ENTER);
    screen.wait_for("Saved API key for Groq. Selected openai/gpt-oss-120b.");
    screen.send("/logout");
    screen.wait_for("Select provider to logout:");
    screen.type_keys(ENTER);
    screen.wait_for("Removed stored API key for Groq.");
    let raw = screen.quit();
    assert!(!raw.contains("gsk-very"), "{raw}");
    let auth = std::fs::read_to_string(world.agent_dir().join("auth.json")).unwrap();
    assert_eq!(auth.trim(), "{}");
}

#[test]
fn trust_tools_and_the_models_to_change_between_are_dialogs_too() {
    let (world, _server) = two_models([]);
    let screen = started(&world);
    for (command, title) in [
        ("/trust", "Project trust"),
        ("/tools", "What the model may call"),
        ("/scoped-models", "Model Configuration"),
    ] {
        screen.send(command);
        screen.wait_for(title);
        screen.type_keys(ESCAPE);
        screen.wait_until_gone(title);
    }
    screen.quit();
}
