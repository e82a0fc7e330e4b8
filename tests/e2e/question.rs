//! What is asked on a terminal before a run: each answer, plain Enter, the end of the input, Ctrl-C.

use crate::agent::{Outcome, World};
use crate::server::{Reply, Server, gate};
use crate::sessions::stored;
use crate::world;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

const ENTER: &str = "\r";
const END: &str = "\x04";
const CTRL_C: &str = "\x03";

const NUMBER: &str = "Number (empty: none of them): ";

/// Runs pi and types `keys` when it has asked `question`.
#[track_caller]
fn answer(world: &World, words: &str, question: &str, keys: &str) -> Outcome {
    let pi = world.pi().args(["--model", "mock/m1"]).words(words);
    let running = pi.spawn_on_terminal();
    running.wait_until_shown(question);
    running.type_keys(keys);
    running.wait()
}

/// The files of all sessions with their content.
fn stored_files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let files = world.session_files().into_iter();
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Every way not to choose ends the run before anything is asked of the model, and touches nothing.
#[track_caller]
fn none_of_them(world: &World, server: &Server, words: &str, said: &str) {
    let (before, requests) = (stored_files(world), server.requests().len());
    for (keys, code) in [(ENTER, 1), (END, 1), (CTRL_C, 130), ("9\rx\r0\r", 1)] {
        let outcome = answer(world, words, NUMBER, keys).fails_with(code);
        assert_eq!(outcome.stdout, "", "{keys:?}");
        // Nothing has to be put in order: the signal itself is the end.
        let signal = outcome.status.signal();
        assert_eq!(signal.is_some(), keys == CTRL_C, "{keys:?} {signal:?}");
        if code == 1 {
            outcome.stderr_has(said);
        }
        assert_eq!(stored_files(world), before, "{keys:?}");
        assert_eq!(server.requests().len(), requests, "{keys:?}");
    }
}

/// Whether the last request holds the message `said` of [`stored`].
fn sent(server: &Server, said: &str) -> bool {
    let requests = server.requests();
    let messages = requests.last().unwrap().messages();
    messages.iter().any(|message| message.to_string().contains(said))
}

#[test]
fn resume_lists_the_sessions_of_this_folder() {
    let (world, server) = world([Reply::text("on")]);
    let newest = stored(&world, &world.work(), "new", "apple");
    let older = stored(&world, &world.work(), "old", "banana");
    stored(&world, &world.home().join("other"), "far", "cherry");
    let aged = fs::File::options().append(true).open(&older).unwrap();
    aged.set_modified(std::time::UNIX_EPOCH).unwrap();
    none_of_them(&world, &server, "-p go --resume", "No session selected");
    let before = fs::read(&newest).unwrap();
    // What was typed wrong can be typed again.
    let outcome = answer(&world, "-p go --resume", NUMBER, "x\r2\r").success();
    assert_eq!(outcome.stdout, "on\n");
    assert!(!outcome.stderr.contains("cherry"), "{}", outcome.stderr);
    let both = sent(&server, "apple") as usize + sent(&server, "banana") as usize;
    assert_eq!(both, 1);
    let grown = [&newest, &older].map(|path| fs::read(path).unwrap().len() > before.len() + 9);
    assert_eq!(grown.iter().filter(|grown| **grown).count(), 1);
}

#[test]
fn a_folder_without_sessions_has_nothing_to_resume() {
    let (world, _server) = world([]);
    let pi = world.pi().words("--model mock/m1 -p go --resume");
    let outcome = pi.spawn_on_terminal().wait().fails_with(1);
    outcome.stderr_has("There is no session of this folder");
}

#[test]
fn a_session_in_use_is_forked_or_read() {
    let (open, held) = gate();
    let (world, server) =
        world([Reply::text("half").then_wait(held), Reply::text("forked"), Reply::text("read")]);
    let source = stored(&world, &world.work(), "abc", "first");
    let holder = world.pi().words("--model mock/m1 -p go --session abc").spawn();
    server.wait_for(1);
    let words = "-p next --session abc";
    none_of_them(&world, &server, words, "No session selected");
    let before = stored_files(&world);
    let read_only = answer(&world, words, NUMBER, "2\r").success();
    assert!(read_only.stderr.contains(&format!("in use by process {}", holder.pid())));
    assert!(sent(&server, "answer to first"));
    assert_eq!(stored_files(&world), before);
    answer(&world, words, NUMBER, "1\r").success();
    assert!(sent(&server, "answer to first"));
    let now = stored_files(&world);
    assert_eq!(now.len(), 2);
    assert!(now.contains(&before[0]) && before[0].0 == source);
    open.send(()).unwrap();
    holder.wait().success();
}

#[test]
fn a_session_of_another_folder_is_forked_or_opened_there() {
    let (world, server) = world([Reply::text("forked"), Reply::text("there")]);
    let elsewhere = world.home().join("other");
    fs::create_dir_all(&elsewhere).unwrap();
    let source = stored(&world, &elsewhere, "abc", "first");
    let words = "-p next --session abc";
    none_of_them(&world, &server, words, "No session selected");
    let before = fs::read(&source).unwrap();
    answer(&world, words, NUMBER, "1\r").success();
    assert!(sent(&server, "answer to first"));
    assert_eq!(fs::read(&source).unwrap(), before);
    assert_eq!(world.session_files().len(), 2);
    let there = answer(&world, "-p next --session abc", NUMBER, "2\r").success();
    assert_eq!(there.stdout, "there\n");
    assert!(fs::read(&source).unwrap().len() > before.len());
    assert!(sent(&server, elsewhere.to_str().unwrap()));
}

#[test]
fn a_session_whose_folder_is_gone_can_go_on_here() {
    let (world, server) = world([Reply::text("here"), Reply::text("forked")]);
    let gone = world.home().join("gone");
    let source = stored(&world, &gone, "abc", "first");
    let words = format!("-p go --session {}", source.display());
    none_of_them(&world, &server, &words, "No folder to work in");
    let outcome = answer(&world, &words, NUMBER, "1\r").success();
    outcome.stderr_has("Stored session working directory does not exist: ");
    assert!(sent(&server, world.work().to_str().unwrap()));
    let before = fs::read(&source).unwrap();
    answer(&world, &words, NUMBER, "2\r").success();
    assert_eq!(fs::read(&source).unwrap(), before);
    assert_eq!(world.session_files().len(), 2);
    assert!(sent(&server, "answer to first") && sent(&server, world.work().to_str().unwrap()));
}

#[test]
fn a_project_is_trusted_only_by_a_clear_word() {
    const QUESTION: &str = "Number, or Enter for no:";
    let rows = [
        (ENTER, false, false),
        (END, false, false),
        ("7\r", false, false),
        ("y\r", false, false),
        // Trusted for once, refused for good, trusted for good.
        ("3\r", true, false),
        ("4\r", false, true),
        ("1\r", true, true),
    ];
    for (keys, is_used, is_kept) in rows {
        let (world, server) = world([Reply::text("one"), Reply::text("two")]);
        world.write(".pi/SYSTEM.md", "CANARY");
        answer(&world, "-p go", QUESTION, keys).success();
        assert_eq!(sent(&server, "CANARY"), is_used, "{keys:?}");
        // A decision that is kept is not asked for again.
        let again = world.pi().words("--model mock/m1 -p go").spawn_on_terminal();
        if !is_kept {
            again.wait_until_shown(QUESTION);
            again.type_keys(ENTER);
        }
        again.wait().success();
        assert_eq!(sent(&server, "CANARY"), is_used && is_kept, "{keys:?}");
    }
    let (world, server) = world([]);
    world.write(".pi/SYSTEM.md", "CANARY");
    answer(&world, "-p go", QUESTION, CTRL_C).fails_with(130);
    assert!(server.requests().is_empty());
}

#[test]
fn a_removal_is_confirmed() {
    let (world, _server) = world([]);
    let path = stored(&world, &world.work(), "abc", "first");
    let remove = |keys: &str| {
        let running = world.pi().words("sessions rm abc").spawn_on_terminal();
        running.wait_until_shown("for good? [y/N]");
        running.type_keys(keys);
        running.wait()
    };
    for keys in [ENTER, END, "n\r", "x\r"] {
        remove(keys).fails_with(1);
        assert!(path.exists(), "{keys:?}");
    }
    remove(CTRL_C).fails_with(130);
    assert!(path.exists());
    remove("y\r").success();
    assert!(!path.exists());
}
