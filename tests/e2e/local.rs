//! Servers on the same machine, found without configuration.

use crate::agent::World;
use crate::server::{Reply, Server};

#[test]
fn a_server_on_this_machine_is_the_default_without_a_key() {
    let world = World::new();
    let server = Server::start([Reply::text("from the local server")]);
    server.list_models();
    let root = format!("http://127.0.0.1:{}", server.port());
    let pi = world.pi().args(["-p", "hi"]).env("PI_LOCAL_URL", &root);
    let outcome = pi.run().success().stdout_is("from the local server\n");
    assert!(outcome.stderr.contains("tiny") && outcome.stderr.contains(&root), "{}", outcome.stderr);
    let request = &server.requests()[0];
    assert_eq!(request.body["model"], "tiny");
    assert_eq!(request.header("authorization"), None);
}

#[test]
fn a_local_model_can_be_named() {
    let world = World::new();
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    server.list_models();
    let root = format!("http://127.0.0.1:{}", server.port());
    for name in ["local", "local/tiny"] {
        world
            .pi()
            .args(["--model", name, "--no-session", "-p", "hi"])
            .env("PI_LOCAL_URL", &root)
            .run()
            .success();
    }
    let pi = world.pi().args(["--model", "local/other", "-p", "hi"]).env("PI_LOCAL_URL", &root);
    pi.run().fails_with(1).stderr_has("tiny");
}

#[test]
fn a_configured_model_is_asked_and_nobody_else() {
    let (world, server) = crate::world([Reply::text("ok")]);
    let other = Server::start([]);
    other.list_models();
    let root = format!("http://127.0.0.1:{}", other.port());
    world.pi().args(["--model", "mock/m1", "-p", "hi"]).env("PI_LOCAL_URL", &root).run().success();
    assert_eq!(server.requests().len(), 1);
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_server_that_refuses_to_list_models_is_named() {
    let world = World::new();
    // Without a list of models, it answers every question about them with an error.
    let server = Server::start([]);
    let root = format!("http://127.0.0.1:{}", server.port());
    for words in ["--model local/x -p hi", "-p hi"] {
        let pi = world.pi().words(words).env("PI_LOCAL_URL", &root).env("PI_LOCAL_API_KEY", "wrong");
        let outcome = pi.run().fails_with(1);
        outcome.stderr_has(&format!("The server at {root} answered 418 (the script is used up)"));
    }
}
