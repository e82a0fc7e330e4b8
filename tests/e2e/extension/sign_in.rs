//! Sign-ins that extensions perform for their providers.

use super::*;
use crate::screen::{ENTER, started};

/// An extension whose provider `mine` is signed in to. Its token is old at once, and the new one is good for long.
const SIGNS_IN: &str = r#"
    *'"method":"provider.login"'*) login=$id
      call o auth.open '{"provider":"mine","url":"https://sign.test/in","instructions":"Use your account"}'
      call p auth.prompt '{"provider":"mine","message":"Which team?","placeholder":"none"}' ;;
    *'"id":"p"'*) team=$(printf '%s' "$line" | sed -n 's/.*"value":"\([a-z]*\)".*/\1/p')
      ok '{"refresh":"r1","access":"a1","expires":1,"team":"'"$team"'"}' "$login" ;;
    *'"method":"provider.refresh"'*) ok '{"refresh":"r2","access":"a2","expires":4102444800000}' ;;
    *'"method":"provider.key"'*'"access":"a2"'*) ok '{"apiKey":"key-of-a2"}' ;;
    *'"method":"provider.models"'*) ok '{"models":[{"id":"small"},{"id":"huge","maxTokens":7}]}' ;;
"#;

fn install_provider(world: &World, url: &str, arms: &str) {
    let provider = json!({"events": ["session_start"], "providers": [{"name": "mine", "displayName": "Mine", "baseUrl": url,
        "api": "openai-completions", "oauth": {"name": "Mine account", "modifiesModels": true},
        "models": [{"id": "small"}]}]});
    install(world, "mine", &provider, arms);
}

fn stored(world: &World) -> Value {
    let text = fs::read_to_string(world.agent_dir().join("auth.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[test]
fn a_sign_in_of_an_extension_is_stored_renewed_and_used() {
    let (world, server) = world([Reply::text("done")]);
    install_provider(&world, &server.url(), SIGNS_IN);
    let ran = world.pi().words("auth login mine").run().success();
    assert!(
        ran.stderr.contains("https://sign.test/in") && ran.stderr.contains("Use your account"),
        "{ran:?}"
    );
    let entry = json!({"refresh": "r1", "access": "a1", "expires": 1, "team": "", "type": "oauth"});
    assert_eq!(stored(&world)["mine"], entry);
    // The account has a model that nobody else has.
    world.pi().words("--model mine/huge -p hi").run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer key-of-a2"));
    assert_eq!(
        requests[0].body["max_completion_tokens"].as_u64().or(requests[0].body["max_tokens"].as_u64()),
        Some(7)
    );
    assert_eq!(stored(&world)["mine"]["access"], "a2");
    let asked = log(&world).into_iter().find(|message| message["method"] == "provider.refresh").unwrap();
    assert_eq!(asked["params"]["credentials"]["refresh"], "r1");
    world.pi().words("auth check --provider mine").run().success().stdout_is("ready\n");
    world.pi().words("auth print-bearer-token --provider mine").run().success().stdout_is("key-of-a2\n");
    world.pi().words("auth logout mine").run().success();
    assert_eq!(stored(&world), json!({}));
    let ran = world.pi().words("--model mine/small -p hi").run().fails_with(1);
    assert!(ran.stderr.contains("pi auth login mine"), "{}", ran.stderr);
}

#[test]
fn a_sign_in_of_an_extension_asks_on_the_screen() {
    let (world, server) = world([]);
    install_provider(&world, &server.url(), SIGNS_IN);
    let screen = started(&world, "");
    screen.wait_until("the program takes part", |_| !events(&world).is_empty());
    screen.send("/login mine");
    let shown = screen.wait_for("Which team?");
    assert!(shown.contains("https://sign.test/in"), "{shown}");
    screen.type_keys("red");
    screen.type_keys(ENTER);
    screen.wait_for("Logged in to Mine");
    assert_eq!(stored(&world)["mine"]["team"], "red");
    // One that the user leaves is taken back, and nothing is stored of it.
    screen.send("/logout");
    screen.wait_for("Select provider to logout");
    screen.type_keys(ENTER);
    screen.wait_for("Logged out of Mine");
    screen.send("/login mine");
    screen.wait_for("Which team?");
    screen.type_keys("\u{1b}");
    screen.wait_until("the sign-in is taken back", |_| {
        log(&world).iter().any(|message| message["method"] == "$/cancelRequest")
    });
    assert_eq!(stored(&world), json!({}));
    screen.quit();
}

#[test]
fn a_sign_in_that_fails_says_why_and_stores_nothing() {
    for (arms, part) in [
        ("    *'\"method\":\"provider.login\"'*) fail 'no luck' ;;\n", "no luck"),
        ("    *'\"method\":\"provider.login\"'*) exit 3 ;;\n", "has ended with exit code 3"),
        (
            "    *'\"method\":\"provider.login\"'*) ok '{\"access\":1}' ;;\n",
            "without \"access\" and \"expires\"",
        ),
        (
            "    *'\"method\":\"provider.login\"'*) ok '{\"type\":\"api_key\",\"key\":\" \"}' ;;\n",
            "or a \"key\" that is not empty",
        ),
        (
            "    *'\"method\":\"provider.login\"'*) login=$id\n      call o auth.open '{\"provider\":\"mine\",\"url\":\"file:///x\"}' ;;\n    *'\"id\":\"o\"'*) id=$login; fail \"$(printf %s \"$line\" | tr -d '\\\\\"')\" ;;\n",
            "must begin with https",
        ),
    ] {
        let world = World::new();
        install_provider(&world, "http://127.0.0.1:9", arms);
        let ran = world.pi().words("auth login mine").run().fails_with(1);
        assert!(
            ran.stderr.contains("Cannot sign in to mine") && ran.stderr.contains(part),
            "{part}: {}",
            ran.stderr
        );
        assert_eq!(stored(&world), Value::Null);
    }
}

#[test]
fn a_secret_that_an_extension_asks_for_is_not_shown_and_may_be_the_key() {
    let (world, server) = world([Reply::text("done")]);
    let arms = r#"
    *'"method":"provider.login"'*) login=$id
      call p auth.prompt '{"provider":"mine","message":"Which key?","type":"secret"}' ;;
    *'"id":"p"'*) key=$(printf '%s' "$line" | sed -n 's/.*"value":"\([a-z]*\)".*/\1/p')
      ok '{"type":"api_key","key":"'"$key"'"}' "$login" ;;
"#;
    install_provider(&world, &server.url(), arms);
    let screen = started(&world, "");
    screen.wait_until("the program takes part", |_| !events(&world).is_empty());
    screen.send("/login mine");
    screen.wait_for("Which key?");
    screen.type_keys("verysecret");
    screen.wait_for("••••••••••");
    screen.type_keys(ENTER);
    let shown = screen.wait_for("Logged in to Mine");
    assert!(!shown.contains("verysecret"), "{shown}");
    screen.quit();
    assert_eq!(stored(&world)["mine"], json!({"type": "api_key", "key": "verysecret"}));
    world.pi().words("--model mine/small -p hi").run().success().stdout_is("done\n");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer verysecret"));
}
