//! What is typed: kept for the next start, found again in the history; and runs that were cut off.

use crate::agent::{World, wait_until};
use crate::screen::{CTRL_C, ENTER, ESCAPE, Screen, started};
use crate::server::{Reply, Server, gate};
use crate::sessions::stored;
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const CTRL_R: &str = "\x12";

fn unsent(world: &World) -> Vec<PathBuf> {
    let mut files = world.session_files();
    files.retain(|path| path.extension().is_some_and(|end| end == "unsent"));
    files
}

/// Waits until `text` is kept.
fn wait_until_kept(world: &World, screen: &Screen, text: &str) {
    let is_kept =
        || unsent(world).iter().any(|path| fs::read_to_string(path).is_ok_and(|kept| kept.contains(text)));
    wait_until(&format!("{text:?} is kept with\n{}", screen.text()), is_kept);
}

#[test]
fn a_draft_survives_a_kill_and_a_closed_window() {
    for is_killed in [true, false] {
        let (world, _server) = world([Reply::text("Answer.")]);
        let screen = started(&world, "");
        screen.type_keys("a thought not sent");
        screen.wait_for("a thought not sent");
        match is_killed {
            true => {
                wait_until_kept(&world, &screen, "a thought not sent");
                let mode = unsent(&world)[0].metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                // Another window does not take it.
                let other = started(&world, "");
                assert!(!other.text().contains("a thought"), "{}", other.text());
                other.quit();
                screen.kill();
            }
            // At once, before the pause in which it would have been written.
            false => screen.hang_up(),
        }
        assert_eq!(world.processes_left(), [] as [u32; 0]);
        let screen = started(&world, "");
        screen.wait_for("Not sent yet, typed just now");
        screen.type_keys(" and more\r");
        screen.wait_for("Answer.");
        screen.wait_until("nothing is kept any more", |_| unsent(&world).is_empty());
        screen.quit();
        assert_eq!(world.session().iter().filter(|line| line["message"]["role"] == "user").count(), 1);
        let text = world.session().iter().find(|line| line["message"]["role"] == "user").unwrap().to_string();
        assert!(text.contains("a thought not sent and more"), "{text}");
    }
}

#[test]
fn queued_messages_survive_a_kill_with_their_session() {
    let (_open, held) = gate();
    let (world, _server) = world([Reply::text("One."), Reply::text("Half").then_wait(held)]);
    let screen = started(&world, "");
    screen.send("first");
    screen.wait_for("One.");
    screen.send("second");
    screen.wait_for("Half");
    screen.send("steer it");
    screen.wait_for("Steering: steer it");
    screen.type_keys("and a draft");
    wait_until_kept(&world, &screen, "and a draft");
    screen.kill();
    assert_eq!(world.processes_left(), [] as [u32; 0]);
    let screen = Screen::start(world.pi().words("--model mock/m1 -c"));
    let text = screen.wait_for("and a draft");
    assert!(text.contains("The last prompt got no answer"), "{text}");
    assert!(text.contains("steer it"), "{text}");
    screen.type_keys(CTRL_C);
    screen.wait_until_gone("and a draft");
    // Dropped, and yet in the history.
    screen.type_keys(UP);
    screen.wait_for("and a draft");
    screen.type_keys(&DOWN.repeat(3));
    screen.wait_until_gone("and a draft");
    screen.quit();
    assert_eq!(unsent(&world), [] as [PathBuf; 0]);
}

#[test]
fn a_folder_that_cannot_be_written_is_told_once_and_nothing_else_is_lost() {
    let (world, _server) = world([Reply::text("Answer.")]);
    fs::write(world.agent_dir().join("sessions"), "in the way").unwrap();
    fs::create_dir(world.agent_dir().join("prompt-history.jsonl")).unwrap();
    let screen = started(&world, "");
    screen.type_keys("some");
    screen.wait_for("would not survive a crash");
    screen.type_keys(" text");
    screen.wait_for("some text");
    screen.type_keys(CTRL_C);
    screen.wait_for("Prompts are not kept for later sessions");
    screen.type_keys("other");
    screen.wait_for("other");
    screen.type_keys(CTRL_C);
    let raw = screen.quit();
    for part in ["would not survive a crash", "Prompts are not kept"] {
        assert_eq!(raw.matches(part).count(), 1, "{part}");
    }
}

fn killed_during(replies: impl IntoIterator<Item = Reply>, sign: &str) -> (World, Server) {
    let (world, _first) = world(replies);
    let screen = started(&world, "");
    screen.send("first");
    screen.wait_for("One.");
    screen.send("second");
    screen.wait_for(sign);
    screen.kill();
    assert_eq!(world.processes_left(), [] as [u32; 0]);
    let server = Server::start([Reply::text("All done.")]);
    world.use_server(&server);
    (world, server)
}

#[test]
fn a_run_that_was_cut_off_says_so_and_goes_on() {
    let (_open, held) = gate();
    let call = json!({"command": "echo beg''un; sleep 100"});
    let half = Reply::text("Half").then_wait(held);
    let tool = Reply::tool("call_1", "bash", &call);
    for (reply, sign, told) in [
        (half, "Half", "The last prompt got no answer"),
        (tool, "begun", "The last run was cut off during a tool call, which may have done its work"),
    ] {
        let (world, server) = killed_during([Reply::text("One."), reply], sign);
        let screen = Screen::start(world.pi().words("--model mock/m1 -c"));
        let text = screen.wait_for("Enter on the empty editor goes on with it.");
        assert!(text.replace("\n ", " ").contains(told), "{text}");
        // A whole turn is shown.
        assert!(text.contains("second"), "{text}");
        screen.type_keys(ENTER);
        screen.wait_for("All done.");
        screen.quit();
        let requests = server.requests();
        assert_eq!(requests.len(), 1);
        let messages = serde_json::to_string(requests[0].messages()).unwrap();
        assert_eq!(messages.matches("second").count(), 1, "{messages}");
        assert_eq!(world.session().last().unwrap()["message"]["content"][0]["text"], "All done.");
        let screen = Screen::start(world.pi().words("--model mock/m1 -c"));
        let text = screen.wait_for("All done.");
        assert!(!text.contains("goes on with it"), "{text}");
        screen.quit();
    }
}

#[test]
fn print_mode_tells_that_a_run_was_cut_off() {
    let (_open, held) = gate();
    let (world, _server) = killed_during([Reply::text("One."), Reply::text("Half").then_wait(held)], "Half");
    let pi = || world.pi().words("--model mock/m1 -p -c third");
    pi().run().success().stderr_has("The last prompt got no answer").stdout_is("All done.\n");
}

#[test]
fn prompts_are_found_again_in_later_sessions() {
    let (world, _server) = world([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let key = format!("sk-ant-{}", "a1".repeat(20));
    let screen = started(&world, "");
    screen.send("here first");
    screen.wait_for("One.");
    screen.send(&format!("use {key}"));
    screen.wait_for("Two.");
    screen.quit();
    let history = world.agent_dir().join("prompt-history.jsonl");
    assert_eq!(history.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&history).unwrap();
    assert!(text.contains("here first") && !text.contains(&key), "{text}");
    let other = world.work().join("elsewhere");
    fs::create_dir(&other).unwrap();
    let row = json!({"timestamp": 1, "cwd": other, "prompt": "there later"});
    fs::write(&history, format!("{text}{row}\n")).unwrap();

    let screen = started(&world, "");
    // Those of the folder come first.
    for prompt in ["/quit", "use [redacted]", "here first", "there later"] {
        screen.type_keys(UP);
        screen.wait_for(prompt);
    }
    screen.type_keys(CTRL_C);
    screen.wait_until_gone("there later");
    screen.type_keys("draft");
    screen.type_keys(CTRL_R);
    screen.wait_for("History: type to search");
    screen.type_keys("ER");
    // What was dropped last is the newest.
    screen.wait_for("History: ER · 1/2");
    let text = screen.wait_for("there later");
    assert!(text.contains("ctrl+r older"), "{text}");
    screen.type_keys(CTRL_R);
    screen.wait_for("2/2");
    screen.wait_for("here first");
    screen.type_keys("zz");
    screen.wait_for("no match");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("History:");
    screen.wait_for("draft");
    screen.type_keys(CTRL_R);
    screen.type_keys("here f");
    screen.wait_for("1/1");
    screen.type_keys(ENTER);
    screen.wait_until_gone("History:");
    screen.type_keys(ENTER);
    screen.wait_for("Three.");
    screen.quit();

    // Not kept, and not read.
    world.write_config("settings.json", r#"{"promptHistory": false}"#);
    let before = fs::read(&history).unwrap();
    let screen = started(&world, "");
    screen.type_keys(UP);
    screen.type_keys("nothing above");
    screen.wait_for("nothing above");
    screen.type_keys(CTRL_C);
    screen.quit();
    assert_eq!(fs::read(&history).unwrap(), before);
}

#[test]
fn without_a_session_nothing_typed_is_kept() {
    let (world, _server) = world([Reply::text("One.")]);
    let screen = started(&world, "--no-session");
    screen.send("secret plan");
    screen.wait_for("One.");
    screen.type_keys("more of it");
    screen.wait_for("more of it");
    screen.hang_up();
    assert_eq!(world.processes_left(), [] as [u32; 0]);
    assert!(!world.agent_dir().join("prompt-history.jsonl").exists());
    assert_eq!(world.session_files(), [] as [PathBuf; 0]);
}

#[test]
fn the_newest_session_in_use_is_asked_about_on_continue() {
    let (open, held) = gate();
    let (world, server) = world([Reply::text("half").then_wait(held), Reply::text("copied")]);
    stored(&world, &world.work(), "abc", "apple pie");
    let holder = world.pi().words("--model mock/m1 -p go --session abc").spawn();
    server.wait_for(1);
    for mode in ["--mode json go", "--mode rpc"] {
        let outcome = world.pi().words("--model mock/m1 -c").words(mode).run().fails_with(1);
        assert!(outcome.stderr.contains("Name another one with --session"), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
    let screen = Screen::start(world.pi().words("--model mock/m1 -c"));
    screen.wait_for("Session in use");
    screen.type_keys(ENTER);
    screen.wait_for("answer to apple pie");
    screen.quit();
    open.send(()).unwrap();
    holder.wait().success();
}

#[test]
fn the_list_of_completions_leaves_nothing_behind() {
    let text = |numbers: std::ops::Range<u32>| -> String {
        numbers.map(|number| format!("line {number}\n\n")).collect()
    };
    let (open, held) = gate();
    let more = Reply::stream().then_wait(held).then_text(&text(40..60)).finish("stop");
    let (world, _server) = world([Reply::text(&text(0..40)), more]);
    let screen = started(&world, "");
    screen.send("go");
    screen.wait_for("line 39");
    screen.wait_until_gone("Working");
    let before = screen.wait_for("Worked");
    let scrolled = screen.everything();
    for _ in 0..2 {
        screen.type_keys("/");
        let open = screen.wait_for("(1/");
        assert_eq!(open.lines().last(), before.lines().last(), "the footer stays");
        screen.type_keys("\x7f");
        screen.wait_until_gone("(1/");
        assert_eq!(screen.text(), before);
    }
    assert_eq!(screen.everything(), scrolled);
    // Printed while it is open.
    screen.send("again");
    screen.wait_for("Working");
    screen.type_keys("/");
    screen.wait_for("(1/");
    open.send(()).unwrap();
    screen.wait_until_gone("Working");
    screen.type_keys("\x7f");
    screen.wait_until_gone("(1/");
    let all = screen.everything();
    let said: Vec<&str> = all.iter().map(|row| row.trim()).filter(|row| row.starts_with("line ")).collect();
    let expected: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    assert_eq!(said, expected);
    screen.quit();
}

#[test]
fn the_footer_can_be_the_user_s_own() {
    let (world, _server) = world([Reply::text("One.")]);
    world.write_config("settings.json", r#"{"statusLine": "<{model}> {context} of {window} {nothing}"}"#);
    let screen = started(&world, "");
    let text = screen.wait_for("<m1> 0.0% of");
    assert!(text.contains("there is no {nothing}"), "{text}");
    screen.quit();

    let told = world.home().join("told");
    let command = format!("cat >{}; echo \"\\033[31mmine $((1 + 1))\\033[0m\"; echo second", told.display());
    world.write_config("settings.json", &json!({"statusLine": format!("!{command}")}).to_string());
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    let text = screen.wait_for("mine 2");
    assert!(!text.contains("second"), "{text}");
    let state: Value = serde_json::from_str(&fs::read_to_string(&told).unwrap()).unwrap();
    assert_eq!(state["model"]["id"], "m1");
    assert_eq!(state["cwd"], world.work().to_str().unwrap());
    screen.send("go");
    screen.wait_for("One.");
    screen.wait_until("the command was told", |_| {
        let state: Value = serde_json::from_slice(&fs::read(&told).unwrap()).unwrap_or_default();
        state["busy"] == false && state["usage"]["output"].as_u64() > Some(0)
    });
    screen.quit();

    world.write_config("settings.json", r#"{"statusLine": "!echo broken >&2; exit 3"}"#);
    let screen = started(&world, "");
    let text = screen.wait_for("failed with exit code 3:");
    assert!(text.contains("broken; the usual footer is shown"), "{text}");
    // The usual one.
    assert!(text.contains("m1"), "{text}");
    screen.quit();

    // A project that is not trusted runs nothing.
    world.write_config("settings.json", "{}");
    let mark = world.home().join("ran");
    world.write(".pi/settings.json", json!({"statusLine": format!("!touch {}", mark.display())}).to_string());
    let screen = started(&world, "--no-approve");
    screen.quit();
    assert!(!mark.exists());
    let screen = started(&world, "--approve");
    screen.wait_until("it ran", |_| mark.exists());
    screen.quit();
}
