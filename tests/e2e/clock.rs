//! The machine's clock is set forward and back while pi runs, and between runs.
//!
//! A library in front of the C library adds seconds from a file to the time of day; the clock that measures
//! durations goes on as it does on a machine whose time is set.

use crate::agent::{Pi, World, wait_until};
use crate::rpc::client_of;
use crate::server::{Reply, Server, gate};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const YEAR: i64 = 365 * 24 * 3600;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    long status = syscall(SYS_clock_gettime, clock, time);
    const char *path = getenv("PI_TEST_CLOCK");
    if (status == 0 && path && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        char text[32] = {0};
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0 && read(file, text, sizeof text - 1) > 0) time->tv_sec += atol(text);
        if (file >= 0) close(file);
    }
    return (int)status;
}
"#;

/// The library, compiled once; `None`, with a note, where there is no compiler or pi is a static program.
fn library() -> Option<&'static PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let own = |end: &str| folder.join(format!("clock-{}.{end}", std::process::id()));
        let (source, made, library) = (own("c"), own("so"), folder.join("clock.so"));
        fs::write(&source, SOURCE).ok()?;
        let words = ["-shared", "-fPIC", "-o"];
        let compiled = Command::new("cc").args(words).args([&made, &source]).output();
        fs::remove_file(&source).ok()?;
        fs::rename(made, &library).ok()?;
        compiled.ok()?.status.success().then_some(library)
    };
    let library = LIBRARY.get_or_init(compile).as_ref();
    if library.is_none() || cfg!(target_env = "musl") {
        eprintln!("skipped: the clock cannot be set without a C compiler and a dynamic program");
        return None;
    }
    library
}

/// A world with a clock of its own.
struct Clock<'w>(&'w World, &'static PathBuf);

impl<'w> Clock<'w> {
    fn pi(&self) -> Pi<'w> {
        self.0.pi().env("LD_PRELOAD", self.1).env("PI_TEST_CLOCK", self.place())
    }

    fn place(&self) -> PathBuf {
        self.0.home().join("clock")
    }

    /// Sets it so many seconds before or after the true time.
    fn set(&self, seconds: i64) {
        fs::write(self.place().with_extension("new"), seconds.to_string()).unwrap();
        fs::rename(self.place().with_extension("new"), self.place()).unwrap();
    }
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// The texts of prompts and answers, without those of the system and the prompt's context.
fn said(messages: &[Value]) -> Vec<String> {
    let spoken =
        messages.iter().filter(|message| message["role"] == "user" || message["role"] == "assistant");
    spoken
        .map(|message| match message["content"].as_str() {
            Some(text) => text.to_owned(),
            None => message["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

#[test]
fn a_conversation_keeps_its_order() {
    let Some(library) = library() else { return };
    let (world, server) = crate::world((0..5).map(|n| Reply::text(&format!("answer {n}"))));
    let clock = Clock(&world, library);
    let mut expected = Vec::new();
    // Years ahead, years back, at the beginning of time, before it, and right again: in one process, then in several.
    clock.set(3 * YEAR);
    let mut client = client_of(clock.pi(), "--model mock/m1");
    for (n, seconds) in [3 * YEAR, -3 * YEAR, -now()].into_iter().enumerate() {
        clock.set(seconds);
        client.prompt(&format!("prompt {n}")).unwrap();
        client.wait_until_settled().unwrap();
        expected.extend([format!("prompt {n}"), format!("answer {n}")]);
    }
    drop(client);
    for (n, seconds) in [(3, -now() - YEAR), (4, 0)] {
        clock.set(seconds);
        let prompt = format!("prompt {n}");
        let outcome = clock.pi().args(["--model", "mock/m1", "-p", "-c", &prompt]).run().success();
        assert_eq!((outcome.stdout, outcome.stderr), (format!("answer {n}\n"), String::new()));
        expected.extend([prompt, format!("answer {n}")]);
    }
    let requests = server.requests();
    assert_eq!(said(requests[4].messages()), expected[..9]);
    let session = world.session();
    for pair in session[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    let messages: Vec<Value> = session.iter().map(|entry| entry["message"].clone()).collect();
    assert_eq!(said(&messages), expected);
    // The file's name and first entry are of the future, the list is right all the same.
    let year = |entry: &Value| entry["timestamp"].as_str().unwrap()[..4].parse::<i64>().unwrap();
    assert!(year(&session[0]) > year(session.last().unwrap()));
    clock.pi().words("sessions").run().success().stdout_has("prompt 0").stderr_has("");
}

#[test]
fn limits_of_time_are_not_reached_by_a_clock_that_is_set() {
    let Some(library) = library() else { return };
    let world = World::new();
    let clock = Clock(&world, library);
    let pipe = world.work().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (open, held) = gate();
    let call = json!({"command": "echo begun >begun; cat pipe", "timeout": 3600});
    let replies = [
        Reply::tool("c", "bash", &call),
        Reply::error(529, "Overloaded"),
        Reply::stream().then_text("half ").then_wait(held).then_text("whole").finish("stop"),
    ];
    let server = Server::start(replies);
    world.use_server(&server);
    world.write_config("settings.json", r#"{"retry": {"enabled": true, "baseDelayMs": 1}}"#);
    clock.set(0);
    let running = clock.pi().words("--model mock/m1 --mode json --timeout 7200 go").spawn();
    wait_until("the command runs", || world.work().join("begun").exists());
    clock.set(YEAR);
    fs::write(&pipe, "from the pipe").unwrap();
    server.wait_for(2);
    clock.set(-YEAR);
    running.wait_for("half ");
    clock.set(2 * YEAR);
    open.send(()).unwrap();
    let outcome = running.wait().success();
    assert_eq!(server.requests().len(), 3);
    assert_eq!(server.requests()[1].last_text(), "from the pipe");
    let answer = outcome.events().into_iter().rfind(|event| event["type"] == "message_end").unwrap();
    assert_eq!(answer["message"]["content"][0]["text"], "half whole");
}

#[cfg(feature = "interactive")]
#[test]
fn what_a_turn_took_is_not_what_the_clock_says() {
    let Some(library) = library() else { return };
    let (open, held) = gate();
    let (world, _server) =
        crate::world([Reply::stream().then_text("half ").then_wait(held).then_text("whole").finish("stop")]);
    let clock = Clock(&world, library);
    clock.set(0);
    let screen = crate::screen::Screen::start(clock.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen.send("hello");
    screen.wait_for("half");
    for seconds in [YEAR, -YEAR] {
        clock.set(seconds);
        // The spinner has drawn what it took so far.
        screen.type_keys("x");
        screen.wait_for("x");
        let text = screen.text();
        let took = text.split("Working ").nth(1).and_then(|rest| rest.split(" · ").next()).unwrap();
        assert!(!took.contains(['h', 'd', '-']), "{text}");
    }
    open.send(()).unwrap();
    let text = screen.wait_for("Worked");
    let took = text.split("Worked ").nth(1).and_then(|rest| rest.split(" · ").next()).unwrap();
    assert!(!took.contains(['h', 'd', '-']), "{took}");
    screen.type_keys("\x03");
    screen.quit();
}

/// An answer of a sign-in server.
fn token(access: &str) -> Reply {
    let body =
        json!({"access_token": access, "refresh_token": format!("after-{access}"), "expires_in": 3600});
    Reply::status(200, "application/json", &body.to_string())
}

#[test]
fn a_token_is_renewed_when_it_has_expired_by_the_clock() {
    let Some(library) = library() else { return };
    let hour = 3600;
    // Valid, expired, renewed long ahead of the time, still valid after the clock is right again.
    let replies = [
        Reply::text("one"),
        token("second"),
        Reply::text("two"),
        token("third"),
        Reply::text("three"),
        Reply::text("four"),
    ];
    let server = Server::start(replies);
    let expires = (now() + hour) * 1000;
    let entry = json!({"type": "oauth", "access": "first", "refresh": "r", "expires": expires});
    let world = crate::auth::gateway(&server, &entry);
    let clock = Clock(&world, library);
    for (seconds, answer) in [(0, "one"), (2 * hour, "two"), (YEAR, "three"), (0, "four")] {
        clock.set(seconds);
        clock
            .pi()
            .words("--model gate/m1 --no-session -p go")
            .run()
            .success()
            .stdout_is(&format!("{answer}\n"));
    }
    let used: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("authorization"))
        .map(|header| header.trim_start_matches("Bearer ").to_owned())
        .collect();
    assert_eq!(used, ["first", "second", "third", "third"]);
}
