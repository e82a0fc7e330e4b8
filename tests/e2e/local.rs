//! Servers on the same machine, found without configuration.

use crate::agent::World;
use crate::screen::{ENTER, Screen};
use crate::server::{Reply, Server};
use serde_json::{Value, json};
use std::fs;

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
fn a_llama_cpp_server_is_signed_in_to_by_its_address() {
    let world = World::new();
    let server = Server::start([Reply::text("one")]);
    let login = |world: &World| {
        let url = format!("http://127.0.0.1:{}/v1/", server.port());
        world.pi().words("auth login llama.cpp").env("LLAMA_BASE_URL", &url).run()
    };
    // Nothing is stored that does not answer.
    login(&world).fails_with(1);
    assert!(!world.agent_dir().join("auth.json").exists());
    server.list_models();
    login(&world).success();
    let stored: Value =
        serde_json::from_slice(&fs::read(world.agent_dir().join("auth.json")).unwrap()).unwrap();
    let url = format!("http://127.0.0.1:{}", server.port());
    assert_eq!(stored, json!({"llama.cpp": {"type": "api_key", "env": {"LLAMA_BASE_URL": url}}}));
    world.pi().words("--model llama.cpp/tiny -p hi").run().success().stdout_is("one\n");
    // The address that is typed at another sign-in is the one from then on.
    let other = Server::start([Reply::text("two")]);
    other.list_models();
    let pi = world.pi().words("auth login llama.cpp").spawn_on_terminal();
    pi.wait_until_shown("ddress");
    pi.type_keys(&format!("http://127.0.0.1:{}\n", other.port()));
    pi.wait_until_shown("ey");
    pi.type_keys("\n");
    pi.wait().success();
    world.pi().words("--model llama.cpp/tiny -p hi").run().success().stdout_is("two\n");
}

/// The entry that `/login llama.cpp` of the TypeScript pi writes, and the models of its sessions.
#[test]
fn a_llama_cpp_server_of_auth_json_has_models_under_its_own_name() {
    let world = World::new();
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    server.list_models();
    let entry = json!({"llama.cpp": {"type": "api_key", "key": "sesame",
        "env": {"LLAMA_BASE_URL": format!("http://127.0.0.1:{}", server.port())}}});
    world.write_config("auth.json", &entry.to_string());
    world.pi().words("--list-models llama").run().success().stdout_has("llama.cpp  tiny");
    world.pi().words("--model llama.cpp/tiny -p hi").run().success().stdout_is("one\n");
    world.pi().words("-c -p more").run().success().stdout_is("two\n");
    let session = world.session();
    assert!(session.iter().any(|entry| entry["type"] == "model_change" && entry["provider"] == "llama.cpp"));
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer sesame"));
    }
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

/// A server whose socket belongs to another user. Only root can make one.
#[cfg(target_os = "linux")]
fn server_of_another_user() -> Option<Server> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let start = || {
        // SAFETY: the bare system call changes this thread alone, and only its rights to files.
        unsafe { libc::syscall(libc::SYS_setfsuid, 1234 as libc::c_long) };
        Server::endless(|_| Reply::text("from another user"))
    };
    let server = std::thread::spawn(start).join().unwrap();
    server.list_models();
    Some(server)
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_of_another_user_is_not_used_unless_it_is_asked_for() {
    let Some(server) = server_of_another_user() else { return };
    let world = World::new();
    let host = format!("127.0.0.1:{}", server.port());
    for words in ["-p hi", "--mode json -p hi", "--mode rpc"] {
        let outcome = world.pi().words(words).env("OLLAMA_HOST", &host).run().fails_with(1);
        let place = format!("http://{host}, run by the user");
        outcome.stderr_has(&place).stderr_has("uid 1234").stderr_has("--model local");
    }
    let pi = world.pi().words("--model local -p hi").env("OLLAMA_HOST", &host);
    pi.run().success().stdout_is("from another user\n");
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(feature = "interactive"), ignore)]
fn somebody_at_the_terminal_is_asked_once_about_a_server_of_another_user() {
    let Some(server) = server_of_another_user() else { return };
    let world = World::new();
    let host = format!("127.0.0.1:{}", server.port());
    let pi = || world.pi().env("OLLAMA_HOST", &host);
    let screen = Screen::start(pi());
    let text = screen.wait_for("Use a model server of another user?");
    assert!(text.contains(&host) && text.contains("uid 1234"), "{text}");
    screen.type_keys("\x1b[B\r");
    screen.wait_until("pi is there", |text| text.contains("escape interrupt") && text.contains("tiny"));
    screen.send("hi");
    screen.wait_for("from another user");
    screen.quit();
    let kept = std::fs::read_to_string(world.agent_dir().join("local-servers.json")).unwrap();
    assert_eq!(kept, format!("{{\n  \"http://{host} uid 1234\": true\n}}\n"));
    let screen = Screen::start(pi());
    let text = screen.wait_for("escape interrupt");
    assert!(text.contains("tiny"), "{text}");
    assert!(!text.contains("another user?"), "{text}");
    screen.quit();
    // A no is kept too, and pi starts without a model.
    world.write_config("local-servers.json", "{}");
    let screen = Screen::start(pi());
    screen.wait_for("Use a model server of another user?");
    screen.type_keys(ENTER);
    screen.wait_until_gone("Use a model server of another user?");
    screen.wait_until("the answer is kept", |_| {
        let kept = std::fs::read_to_string(world.agent_dir().join("local-servers.json"));
        kept.is_ok_and(|kept| kept.contains("false"))
    });
    screen.wait_for("escape interrupt");
    screen.quit();
}
