//! A file system without locks: each `flock` fails with ENOLCK, as on some network file systems.

use crate::agent::{Pi, World, lines};
use crate::isolate::{PRINT, files, isolated, repository, worker};
use crate::server::{PATIENCE, Reply};
use pi::client::Client;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;

/// Lets each `flock` of the program and of what it starts fail.
fn without_locks(mut pi: Pi<'_>) -> Pi<'_> {
    let row = |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k };
    let flock = u32::try_from(libc::SYS_flock).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOLCK).unwrap();
    let rows = [
        // The number of the system call comes first in what the filter is given.
        row(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        row(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, flock),
        row(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        row(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: the calls are safe between fork and exec; the rows live in the closure.
    unsafe {
        pi.command().pre_exec(move || {
            let mut rows = rows;
            let filter = libc::sock_fprog { len: 4, filter: rows.as_mut_ptr() };
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) < 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    pi
}

fn ask<'w>(world: &'w World, words: &str) -> Pi<'w> {
    without_locks(world.pi().args(["--model", "mock/m1"]).words(words))
}

#[test]
fn a_session_that_another_program_goes_on_with_is_left_to_it() {
    let replies = ["one", "theirs", "mine", "more"].map(Reply::text);
    let (world, server) = crate::world(replies);
    let mut pi = ask(&world, "--mode rpc");
    let stderr = world.work().join("stderr");
    let mut client = Client::spawn(pi.command().stderr(File::create(&stderr).unwrap())).unwrap();
    client.set_patience(PATIENCE);
    client.prompt("first").unwrap();
    client.wait_until_settled().unwrap();
    // Nothing tells the second program that the session is in use.
    ask(&world, "-p -c second").run().success().stdout_is("theirs\n");
    let shared = world.session_files();
    assert_eq!(shared.len(), 1, "{shared:?}");
    let theirs = fs::read(&shared[0]).unwrap();

    client.prompt("third").unwrap();
    client.wait_until_settled().unwrap();
    client.prompt("fourth").unwrap();
    client.wait_until_settled().unwrap();
    assert!(client.close().unwrap().success());
    let told = fs::read_to_string(stderr).unwrap();
    assert!(told.contains("was written to by another program"), "{told}");
    assert_eq!(fs::read(&shared[0]).unwrap(), theirs);
    let mine = world.session_files().into_iter().find(|path| *path != shared[0]).unwrap();
    let said = |text: &str| -> Vec<String> {
        let entries = lines(text);
        let users = entries.iter().filter(|entry| entry["message"]["role"] == "user");
        users.map(|entry| entry["message"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said(&fs::read_to_string(mine).unwrap()), ["first", "third", "fourth"]);
    assert_eq!(said(&String::from_utf8(theirs).unwrap()), ["first", "second"]);
    crate::crash::assert_legal(&server.requests()[3]);
}

#[test]
fn what_commands_change_can_be_taken_back() {
    let call = Reply::tool("c", "bash", &json!({"command": "echo two >a.txt"}));
    let (world, _server) = crate::world([call, Reply::text("done")]);
    world.write("a.txt", "one\n");
    world.write_config("settings.json", r#"{"undo": {"commands": "on"}}"#);
    let outcome = ask(&world, "-p go").run().success();
    assert_eq!((world.read("a.txt").as_str(), outcome.stderr.as_str()), ("two\n", ""));
    without_locks(world.pi().words("undo")).run().success();
    assert_eq!(world.read("a.txt"), "one\n");
}

#[test]
fn helpers_work_in_copies() {
    let replies = [isolated(&["a"]), Reply::text("ok")];
    let (world, server, _helpers) = crate::helper::world(replies, [("a", worker("echo made >made"))]);
    repository(&world);
    without_locks(world.pi().args(PRINT).args(["go"])).run().success();
    let result = server.requests()[1].last_text();
    assert!(result.contains("[Changed: made]"), "{result}");
    assert!(files(&world.work()).contains(&("made".into(), "made\n".into())));
}

#[test]
fn settings_and_keys_are_stored() {
    let world = World::new();
    for (key, value) in [("theme", "dark"), ("steeringMode", "all")] {
        without_locks(world.pi().args(["config", "set", key, value])).run().success();
    }
    let login = world.pi().words("auth login openai --stdin").stdin("sk-canary\n");
    without_locks(login).run().success();
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(world.agent_dir().join(name)).unwrap()).unwrap()
    };
    assert_eq!(
        (&read("settings.json")["theme"], &read("settings.json")["steeringMode"]),
        (&json!("dark"), &json!("all"))
    );
    assert_eq!(read("auth.json")["openai"]["key"], "sk-canary");
}
