//! Sessions on the interactive terminal: picked, forked, gone about in; and what is asked before there is one.

use crate::agent::{World, write_program};
use crate::screen::{CTRL_C, ENTER, ESCAPE, Screen, started};
use crate::server::{Reply, gate};
use crate::sessions::stored;
use crate::world;
use serde_json::json;
use std::fs;

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";

/// The last line of a session's file that speaks of `part`.
fn tells(path: &std::path::Path, part: &str) -> bool {
    fs::read_to_string(path).unwrap().contains(part)
}

#[test]
fn a_stored_session_is_found_and_gone_on_with() {
    let (world, server) = world([Reply::text("We go on.")]);
    stored(&world, &world.work(), "one", "apple pie");
    let other = stored(&world, &world.work(), "two", "banana bread");
    let screen = started(&world, "");
    screen.send("/resume");
    screen.wait_for("Resume Session (Current Folder)");
    screen.wait_for("apple pie");
    screen.type_keys("\"to banana\"");
    screen.wait_until_gone("apple pie");
    screen.wait_for("banana bread");
    screen.type_keys(ENTER);
    screen.wait_for("Resumed session");
    screen.wait_for("answer to banana bread");
    screen.send("Go on");
    screen.wait_for("We go on.");
    screen.quit();
    assert!(tells(&other, "We go on."));
    let requests = server.requests();
    let told = serde_json::to_string(requests[0].messages()).unwrap();
    assert!(told.contains("banana bread") && !told.contains("apple"));
}

#[test]
fn at_the_start_a_session_is_picked_from_the_list() {
    let (world, _server) = world([]);
    stored(&world, &world.work(), "one", "apple pie");
    stored(&world, &world.home().join("elsewhere"), "two", "banana bread");
    let pi = || world.pi().words("--model mock/m1 --resume");
    let screen = Screen::start(pi());
    let text = screen.wait_for("apple pie");
    assert!(!text.contains("banana"), "{text}");
    screen.type_keys("\t");
    screen.wait_for("banana bread");
    screen.type_keys("\t");
    screen.wait_until_gone("banana bread");
    screen.type_keys(ENTER);
    screen.wait_for("answer to apple pie");
    let raw = screen.quit();
    assert!(raw.contains("pi --session one"), "{raw}");

    let screen = Screen::start(pi());
    screen.wait_for("apple pie");
    screen.type_keys(ESCAPE);
    let (status, raw) = screen.wait();
    assert!(status.success() && raw.contains("No session selected"), "{raw}");

    let screen = Screen::start(pi());
    screen.wait_for("apple pie");
    screen.type_keys(CTRL_C);
    let (status, _) = screen.wait();
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_session_in_use_is_forked_or_read_or_left() {
    let (open, held) = gate();
    let (world, server) = world([Reply::text("half").then_wait(held), Reply::text("copied")]);
    let source = stored(&world, &world.work(), "abc", "apple pie");
    let words = "--model mock/m1 -p go --session abc";
    let holder = world.pi().words(words).spawn();
    server.wait_for(1);

    let screen = Screen::start(world.pi().words("--model mock/m1 --session abc"));
    screen.wait_for("Session in use");
    screen.wait_for("Read it only");
    screen.type_keys(DOWN);
    screen.type_keys(ENTER);
    screen.wait_for("answer to apple pie");
    let raw = screen.quit();
    assert!(!raw.contains("To resume"), "{raw}");

    let screen = started(&world, "");
    screen.send("/resume");
    screen.wait_for("apple pie");
    screen.type_keys(ENTER);
    screen.wait_for("Session in use");
    screen.type_keys(ESCAPE);
    screen.wait_for("Resume cancelled");
    screen.send("/resume");
    screen.wait_for("› apple pie");
    screen.type_keys(ENTER);
    screen.wait_for("Fork it: go on in a copy");
    screen.type_keys(ENTER);
    screen.wait_for("Resumed session");
    screen.send("In the copy");
    screen.wait_for("copied");
    screen.quit();
    open.send(()).unwrap();
    holder.wait().success();
    assert!(!tells(&source, "In the copy"));
    let copies = world.session_files();
    assert!(copies.iter().any(|path| tells(path, "In the copy") && tells(path, "apple pie")));
}

#[test]
fn a_session_whose_folder_is_gone_goes_on_here_if_that_is_wanted() {
    let (world, _server) = world([]);
    let gone = world.home().join("gone");
    let path = stored(&world, &gone, "abc", "apple pie");
    let pi = || world.pi().words(&format!("--model mock/m1 --session {}", path.display()));
    let screen = Screen::start(pi());
    screen.wait_for("Session cwd does not exist");
    screen.type_keys(ENTER);
    screen.wait_for("answer to apple pie");
    screen.quit();
    let screen = Screen::start(pi());
    screen.wait_for("Session cwd does not exist");
    screen.type_keys(ESCAPE);
    let (status, _) = screen.wait();
    assert!(status.success());

    let screen = started(&world, "");
    screen.send("/resume");
    screen.wait_for("Resume Session (Current Folder)");
    screen.type_keys("\t");
    screen.wait_for("apple pie");
    screen.type_keys(ENTER);
    screen.wait_for("Session cwd does not exist");
    screen.type_keys(ENTER);
    screen.wait_for("answer to apple pie");
    screen.quit();

    let before = std::fs::read(&path).unwrap();
    let screen = Screen::start(pi());
    screen.wait_for("Session cwd does not exist");
    screen.type_keys("\x1b[B\r");
    screen.wait_for("answer to apple pie");
    screen.quit();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let forks = world.session_files().into_iter().filter(|file| *file != path);
    assert!(
        forks.into_iter().any(|file| tells(&file, "apple pie") && !tells(&file, &gone.display().to_string()))
    );
}

#[test]
fn an_import_that_is_given_up_leaves_no_copy() {
    let (world, _server) = world([]);
    let elsewhere = world.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let stored = stored(&world, &world.home().join("gone"), "abc", "apple pie");
    let from = elsewhere.join("taken.jsonl");
    std::fs::rename(stored, &from).unwrap();
    let before = world.session_files();
    let screen = started(&world, "");
    for (key, shown, more) in [(ESCAPE, "Resume cancelled", 0), (ENTER, "answer to apple pie", 1)] {
        screen.send(&format!("/import {}", from.display()));
        screen.wait_for("Import session");
        screen.type_keys(ENTER);
        screen.wait_for("Session cwd does not exist");
        screen.type_keys(key);
        screen.wait_for(shown);
        screen.wait_until("the copy is kept or gone", |_| world.session_files().len() == before.len() + more);
    }
    screen.quit();
    assert!(tells(&from, "apple pie"));
}

#[test]
fn one_goes_back_in_the_tree_and_says_something_else() {
    let (world, server) = world([
        Reply::text("First answer."),
        Reply::text("Second answer."),
        Reply::text("Summary of the left branch."),
        Reply::text("Third answer."),
    ]);
    let screen = started(&world, "");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("second prompt");
    screen.wait_for("Second answer.");
    screen.send("/tree");
    let text = screen.wait_for("Session Tree");
    assert!(text.contains("› • assistant: Second answer."), "{text}");
    screen.type_keys(ENTER);
    screen.wait_for("Already at this point");
    screen.send("/tree");
    screen.wait_for("› • assistant: Second answer.");
    screen.type_keys(UP);
    screen.wait_for("› • user: second prompt");
    screen.type_keys(ENTER);
    screen.wait_for("Summarize branch?");
    // Back to the tree, where the cursor stays.
    screen.type_keys(ESCAPE);
    screen.wait_for("› • user: second prompt");
    screen.type_keys(ENTER);
    screen.wait_for("Summarize branch?");
    screen.type_keys(DOWN);
    screen.type_keys(ENTER);
    screen.wait_for("Navigated to selected point");
    // What was said there can be said anew.
    let text = screen.text();
    assert!(text.trim_end().contains("second prompt"), "{text}");
    screen.type_keys(", but otherwise\r");
    screen.wait_for("Third answer.");
    screen.quit();
    let requests = server.requests();
    let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    assert!(told.contains("second prompt, but otherwise"), "{told}");
    assert!(told.contains("Summary of the left branch."), "{told}");
    assert!(!told.contains("Second answer."), "{told}");
}

#[test]
fn the_summary_of_a_branch_can_be_cancelled() {
    let (open, held) = gate();
    let (world, _server) = world([Reply::text("First answer."), Reply::text("Sum").then_wait(held)]);
    let screen = started(&world, "");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("/tree");
    screen.wait_for("› • assistant: First answer.");
    screen.type_keys(UP);
    screen.type_keys(ENTER);
    screen.wait_for("Summarize branch?");
    screen.type_keys(DOWN);
    screen.type_keys(ENTER);
    screen.wait_for("Summarizing branch");
    screen.type_keys(ESCAPE);
    screen.wait_for("Branch summarization cancelled");
    screen.wait_for("› • user: first prompt");
    screen.type_keys(ESCAPE);
    open.send(()).ok();
    screen.wait_until_gone("Session Tree");
    screen.quit();
}

#[test]
fn a_fork_begins_before_a_prompt_which_is_in_the_editor() {
    let (world, server) =
        world([Reply::text("First answer."), Reply::text("Second answer."), Reply::text("Forked answer.")]);
    let screen = started(&world, "");
    screen.send("/fork");
    screen.wait_for("No messages to fork from");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("second prompt");
    screen.wait_for("Second answer.");
    screen.send("/fork");
    screen.wait_for("Fork from Message");
    screen.type_keys(ENTER);
    screen.wait_for("Forked to new session");
    screen.type_keys(" again\r");
    screen.wait_for("Forked answer.");
    screen.quit();
    assert_eq!(world.session_files().len(), 2);
    let requests = server.requests();
    let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    assert!(told.contains("second prompt again"), "{told}");
    assert!(!told.contains("Second answer."), "{told}");
}

#[test]
fn a_project_is_trusted_only_when_that_is_chosen() {
    for (keys, is_used) in [(ENTER, true), (ESCAPE, false)] {
        let (world, server) = world([Reply::text("one")]);
        world.write(".pi/SYSTEM.md", "CANARY");
        let screen = Screen::start(world.pi().words("--model mock/m1"));
        screen.wait_for("Trust project folder?");
        screen.type_keys(keys);
        screen.wait_for("m1");
        screen.send("What now?");
        screen.wait_for("one");
        screen.quit();
        let requests = server.requests();
        let told = serde_json::to_string(requests[0].messages()).unwrap();
        assert_eq!(told.contains("CANARY"), is_used, "{keys:?}");
    }
    let (world, _server) = world([]);
    world.write(".pi/SYSTEM.md", "CANARY");
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("Trust project folder?");
    screen.type_keys(CTRL_C);
    assert_eq!(screen.wait().0.code(), Some(130));
}

#[test]
fn a_prompt_that_a_crash_left_is_offered_again() {
    let (_open, held) = gate();
    let (world, _server) = world([Reply::text("Half").then_wait(held)]);
    let screen = started(&world, "");
    screen.send("what was to be asked");
    screen.wait_for("Half");
    // Killed.
    drop(screen);
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("A prompt got no answer");
    screen.wait_for("what was to be asked");
    screen.type_keys(ENTER);
    screen.wait_until_gone("A prompt got no answer");
    screen.wait_for("what was to be asked");
    screen.type_keys(CTRL_C);
    screen.wait_until_gone("what was to be asked");
    screen.quit();
    assert!(world.session_files().is_empty());
}

#[test]
fn a_session_is_exported_described_and_taken_in() {
    let (world, _server) = world([Reply::text("First answer.")]);
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let from = stored(&world, &elsewhere, "abc", "apple pie");
    let screen = started(&world, "");
    screen.send("/copy");
    screen.wait_for("No agent messages to copy yet.");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("/export \"a page.md\"");
    screen.wait_for("Session exported to:");
    let page = world.work().join("a page.md");
    screen.wait_until("the page is there", |_| page.exists());
    assert!(tells(&page, "First answer."));
    screen.send("/session");
    screen.wait_for("Messages");
    screen.wait_for("Tools: 0 calls, 0 results");
    screen.send("/copy");
    // Without a desktop the terminal is asked.
    screen.wait_for("Copied last agent message to clipboard");
    let copied = "\x1b]52;c;Rmlyc3QgYW5zd2VyLg==\x07";
    assert!(String::from_utf8_lossy(&screen.raw()).contains(copied));
    let junk = world.home().join("junk.jsonl");
    fs::write(&junk, "no session\n").unwrap();
    let before = world.session_files();
    screen.type_keys(&format!("/import {}\r", junk.display()));
    screen.wait_for("Import session");
    screen.type_keys(ENTER);
    screen.wait_for("Session file is not");
    assert_eq!(world.session_files(), before);
    screen.type_keys(&format!("/import {}\r", from.display()));
    screen.wait_for("Import session");
    screen.type_keys(ENTER);
    screen.wait_for("Session imported from:");
    screen.wait_for("answer to apple pie");
    screen.quit();
    assert_eq!(world.session_files().len(), 3);
}

#[test]
fn the_project_of_a_session_elsewhere_is_asked_about() {
    let (world, _server) = world([]);
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".pi")).unwrap();
    fs::write(elsewhere.join(".pi/SYSTEM.md"), "CANARY").unwrap();
    stored(&world, &elsewhere, "abc", "apple pie");
    let screen = started(&world, "");
    screen.send("/resume");
    screen.wait_for("Resume Session (Current Folder)");
    screen.type_keys("\t");
    screen.wait_for("apple pie");
    screen.type_keys(ENTER);
    screen.wait_for("Trust project folder?");
    screen.type_keys(ESCAPE);
    screen.wait_for("answer to apple pie");
    screen.wait_for("/elsewhere");
    screen.quit();
}

#[test]
fn changes_of_files_are_shown_and_taken_back() {
    let edit = |from: &str, to: &str| json!({"path": "a.txt", "edits": [{"oldText": from, "newText": to}]});
    let (world, server) = world([
        Reply::tool("call_1", "edit", &edit("one", "two")),
        Reply::text("First answer."),
        Reply::text("Second answer."),
    ]);
    world.write("a.txt", "one\nsame\n");
    let screen = started(&world, "");
    screen.send("/undo");
    screen.wait_for("There is nothing to undo");
    screen.send("change it");
    screen.wait_for("First answer.");
    // What was written goes to the disk before the run is over.
    screen.wait_until_gone("Working");
    assert_eq!(world.read("a.txt"), "two\nsame\n");
    screen.send("/undo");
    let text = screen.wait_for("Undo changes of files?");
    assert!(text.contains("restore ") && text.contains("+1 one"), "{text}");
    screen.type_keys(ESCAPE);
    screen.wait_for("Nothing was undone");
    assert_eq!(world.read("a.txt"), "two\nsame\n");
    screen.send("/undo all");
    screen.wait_for("Undo changes of files?");
    screen.type_keys(ENTER);
    screen.wait_for("Restored ");
    assert_eq!(world.read("a.txt"), "one\nsame\n");
    screen.send("What now?");
    screen.wait_for("Second answer.");
    screen.quit();
    let requests = server.requests();
    let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    assert!(told.contains("has its earlier content again"), "{told}");
}

#[test]
fn who_goes_elsewhere_in_the_tree_ends_what_runs() {
    let (_open, held) = gate();
    let (world, server) = world([
        Reply::text("First answer."),
        Reply::text("Half of").then_wait(held),
        Reply::text("Third answer."),
    ]);
    let screen = started(&world, "");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("second prompt");
    screen.wait_for("Half of");
    screen.send("/tree");
    screen.wait_for("› • user: second prompt");
    screen.type_keys(UP);
    screen.wait_for("› • assistant: First answer.");
    screen.type_keys(ENTER);
    screen.wait_for("Summarize branch?");
    screen.type_keys(ENTER);
    screen.wait_for("Navigated to selected point");
    screen.send("third prompt");
    screen.wait_for("Third answer.");
    screen.quit();
    let requests = server.requests();
    let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    assert!(told.contains("First answer.") && !told.contains("second prompt"), "{told}");
}

/// A world with these programs, shell scripts, and the `PATH` that has them.
fn programs(world: &World, scripts: &[(&str, &str)]) -> String {
    for (name, script) in scripts {
        write_program(&world.work().join("bin").join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", world.work().join("bin").display())
}

#[test]
fn a_page_is_shared_through_gh_and_text_copied_by_the_desktops_program() {
    let (world, _server) = world([Reply::text("First answer.")]);
    let path = programs(
        &world,
        &[
            (
                "gh",
                "[ \"$1\" = auth ] && exit 0\ncp \"$4\" shared.html\necho \"$1 $2 $3\" >asked\necho https://gist.example/abc",
            ),
            ("wl-copy", "cat >copied"),
        ],
    );
    let pi = world.pi().words("--model mock/m1");
    let screen = Screen::start(pi.env("PATH", path).env("WAYLAND_DISPLAY", "wayland-9"));
    screen.wait_for("m1");
    screen.send("first prompt");
    screen.wait_for("First answer.");
    screen.send("/share");
    screen.wait_for("Gist: https://gist.example/abc");
    assert_eq!(world.read("asked"), "gist create --public=false\n");
    assert!(world.read("shared.html").contains("First answer."));
    screen.send("/copy");
    screen.wait_for("Copied last agent message to clipboard");
    assert_eq!(world.read("copied"), "First answer.");
    let raw = screen.quit();
    assert!(!raw.contains("\x1b]52;"), "the terminal is not asked too");
}
