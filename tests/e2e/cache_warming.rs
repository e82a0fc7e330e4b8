//! Prompt caches that are kept warm by repeated requests.

use crate::agent::World;
#[cfg(feature = "extensions")]
use crate::extension;
use crate::rpc::client;
#[cfg(feature = "interactive")]
use crate::screen::started;
use crate::server::{Reply, Server, gate};
use serde_json::{Value, json};

/// A world whose model is worth a warm cache, that lives 10.2 seconds: a request is repeated after 0.2.
fn world(settings: &Value, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let world = World::new();
    let server = Server::start(replies);
    let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "test-key",
        "api": "openai-completions", "models": [{"id": "m1", "contextWindow": 10_000_000,
            "cost": {"input": 10, "output": 0, "cacheRead": 1, "cacheWrite": 0},
            "promptCache": {"short": 10.2}}]}}});
    world.write_config("models.json", &config.to_string());
    world.write_config("settings.json", &settings.to_string());
    (world, server)
}

/// More answers than there are requests.
fn many() -> impl Iterator<Item = Reply> {
    (0..300).map(|_| large())
}

fn large() -> Reply {
    Reply::text("hi").with_prompt_tokens(1_000_000)
}

fn warmed(world: &World) -> Vec<Value> {
    world.session().into_iter().filter(|entry| entry["type"] == "usage").collect()
}

#[test]
fn the_last_request_is_repeated_while_nobody_writes() {
    let (world, server) = world(&json!({}), many());
    let mut client = client(&world, "--model mock/m1");
    client.request("prompt", json!({"message": "x"})).unwrap();
    let entry = loop {
        let event = client.next_event().unwrap();
        if event["type"] == "entry_appended" {
            break event["entry"].clone();
        }
    };
    // What it cost is spent money of the session.
    let stats = client.request("get_session_stats", json!({})).unwrap();
    assert!(stats["cost"].as_f64().unwrap() >= 20.0, "{stats}");
    client.close().unwrap();

    assert_eq!(
        (&entry["kind"], &entry["provider"], &entry["model"]),
        (&json!("cache_warm"), &json!("mock"), &json!("m1"))
    );
    assert_eq!(entry["usage"]["input"], 1_000_000);
    assert_eq!(warmed(&world)[0], entry);
    let requests = server.requests();
    let (first, second) = (&requests[0].body, &requests[1].body);
    assert_eq!(second["messages"], first["messages"]);
    assert_eq!(second["tools"], first["tools"]);
    assert_eq!(second["max_completion_tokens"], 1, "{second}");
    // The next prompt does not contain it.
    world.pi().words("--model mock/m1 -c -p y").run().success();
    let last = server.requests().pop().unwrap();
    let roles: Vec<&str> = last.messages().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles[1..], ["user", "assistant", "user"]);
}

#[test]
fn a_prompt_ends_the_repetition_under_way() {
    let (open, held) = gate();
    // The second answer is too small to be worth a repetition.
    let replies = [large(), Reply::stream().then_wait(held), Reply::text("second")];
    let (world, server) = world(&json!({}), replies);
    let mut client = client(&world, "--model mock/m1");
    client.prompt("x").unwrap();
    while client.next_event().unwrap()["type"] != "agent_settled" {}
    server.wait_for(2);
    client.prompt("y").unwrap();
    while client.next_event().unwrap()["type"] != "agent_settled" {}
    client.close().unwrap();
    drop(open);
    assert_eq!(server.requests()[2].last_text(), "y");
    assert_eq!(warmed(&world), [] as [Value; 0]);
}

#[test]
#[cfg(feature = "extensions")]
fn an_extension_may_forbid_it() {
    let (world, server) = world(&json!({}), many());
    let arms = r#"
    *'"type":"cache_warming_decision"'*) call n ui.notify '{"message":"asked"}'; ok '{"action":"stop"}' ;;
"#;
    extension::install(&world, "ext", &json!({"events": ["cache_warming_decision"]}), arms);
    let mut client = client(&world, "--model mock/m1");
    client.prompt("x").unwrap();
    while client.next_event().unwrap()["message"] != "asked" {}
    client.close().unwrap();
    let asked = extension::events(&world).pop().unwrap();
    assert_eq!((&asked["missCost"], &asked["action"]), (&json!(9.0), &json!("warm")));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn in_print_mode_nothing_is_repeated() {
    let call = Reply::tool("c", "bash", &json!({"command": "sleep 0.6"})).with_prompt_tokens(1_000_000);
    let (world, server) = world(&json!({}), [call, large()]);
    world.pi().words("--model mock/m1 -p x").run().success().stdout_is("hi\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
#[cfg(feature = "interactive")]
fn the_screen_tells_what_it_costs() {
    let settings = json!({"showCacheMissNotices": true});
    let (world, _server) = world(&settings, many());
    let screen = started(&world, "");
    screen.send("x");
    screen.wait_for("Cache warmed: $10.000");
    screen.wait_for("(warming $");
    screen.send("/session");
    screen.wait_for("Cache miss penalty: $9.000");
    // The cache was warm, and the provider reads nothing from it.
    screen.send("y");
    screen.wait_for("Cache miss: 1.0M tokens billed again (~$9.00)");
    screen.quit();
}

#[test]
#[cfg(feature = "interactive")]
fn it_is_off_where_the_user_says_so() {
    let (world, server) = world(&json!({"cacheWarming": "off"}), many());
    // A project cannot spend the user's money.
    world.write(".pi/settings.json", r#"{"cacheWarming": "idle"}"#);
    let screen = started(&world, "--approve");
    screen.send("x");
    screen.wait_for("hi");
    screen.send("/session");
    screen.wait_for("Inactive (cache warming disabled)");
    screen.quit();
    assert_eq!(server.requests().len(), 1);
}
