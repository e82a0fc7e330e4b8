//! The interactive terminal, as one sees it.

use crate::agent::{World, wait_until, write_program};
use crate::screen::{CTRL_C, ENTER, ESCAPE, Screen, started};
use crate::server::{Reply, Server, gate};
use crate::world;
use serde_json::json;

const ALT_ENTER: &str = "\x1b\r";
const ALT_UP: &str = "\x1b[1;3A";
const CTRL_D: &str = "\x04";
const CTRL_G: &str = "\x07";

/// What the model was told, of the last request.
fn told(server: &Server) -> String {
    let requests = server.requests();
    serde_json::to_string(requests.last().unwrap().messages()).unwrap()
}

#[test]
fn a_quiet_start_may_leave_the_first_lines() {
    for (quiet, header, resources) in
        [("false", true, true), ("\"header\"", true, false), ("true", false, false)]
    {
        let (world, _server) = world([]);
        world.write("AGENTS.md", "Be brief.");
        world.write_config("settings.json", &format!("{{\"quietStartup\": {quiet}}}"));
        let screen = Screen::start(world.pi().words("--model mock/m1"));
        let text = screen.wait_for("m1");
        assert_eq!(
            (text.contains("pi v"), text.contains("AGENTS.md")),
            (header, resources),
            "{quiet}: {text}"
        );
        screen.quit();
    }
}

#[test]
fn the_terminal_is_told_what_pi_does_if_it_wants_to_know() {
    let conversation = |wish: Option<&str>| {
        let (open, held) = gate();
        let (world, _server) = world([Reply::text("First. ").then_wait(held).then_text("Fine.")]);
        let mut pi = world.pi().words("--model mock/m1 --name work");
        if let Some(wish) = wish {
            pi = pi.env("PI_PROGRAM_STATUS", wish);
        }
        let screen = Screen::start(pi);
        screen.wait_for("m1");
        screen.send("a question");
        screen.wait_for("First.");
        drop(open);
        screen.wait_for("Fine.");
        screen.wait_until_gone("Working");
        screen.quit()
    };
    let raw = conversation(Some("1"));
    let reports: Vec<&str> =
        raw.split("\x1b]7501;").skip(1).map(|rest| rest.split_once("\x1b\\").unwrap().0).collect();
    let named = |state: &str| format!("state={state}:app=pi:msg=d29yaw==");
    assert_eq!(reports, ["state=idle:app=pi", &named("working"), &named("done"), "state=idle:app=pi"]);
    let raw = conversation(None);
    assert!(raw.contains("\x1b]7501;?\x1b\\") && !raw.contains("state="), "{raw}");
    assert!(!conversation(Some("0")).contains("7501"));
}

#[test]
fn a_prompt_is_answered_and_the_session_can_be_resumed() {
    let (world, server) = world([Reply::text("Hello from the model.")]);
    let screen = started(&world, "");
    screen.send("What is this?");
    let text = screen.wait_for("Hello from the model.");
    assert_eq!(text.matches("! bash").count(), 1, "{text}");
    let raw = screen.quit();
    assert!(raw.contains("To resume this session: pi --session "), "{raw}");
    assert_eq!(server.requests().len(), 1);
    let screen = Screen::start(world.pi().words("--continue"));
    let text = screen.wait_for("Hello from the model.");
    assert!(text.contains("What is this?"), "{text}");
    // What was asked before can be called back.
    screen.type_keys("\x1b[A");
    screen.wait_until("the prompt is there again", |text| text.matches("What is this?").count() == 2);
    screen.type_keys(CTRL_C);
    screen.quit();
}

#[test]
fn what_is_given_on_the_command_line_is_asked_first() {
    let (world, server) = world([Reply::text("First answer."), Reply::text("Second answer.")]);
    let screen = Screen::start(world.pi().args(["--model", "mock/m1", "one question", "another one"]));
    screen.wait_for("Second answer.");
    screen.quit();
    assert_eq!(server.requests().len(), 2);
    assert!(told(&server).contains("another one"));
}

#[test]
fn enter_steers_a_run_and_alt_enter_waits_for_its_end() {
    let (open, wait) = gate();
    let (world, server) = world([
        Reply::stream()
            .then_text("Working on it")
            .then_wait(wait)
            .then_tool(1, "call_1", "bash", &json!({"command": "true"}))
            .finish("tool_calls"),
        Reply::text("Steered."),
        Reply::text("Followed."),
    ]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Working on it");
    screen.type_keys("and then this");
    screen.wait_for("and then this");
    screen.type_keys(ALT_ENTER);
    screen.wait_for("Follow-up: and then this");
    screen.send("turn left");
    screen.wait_for("Steering: turn left");
    drop(open);
    screen.wait_for("Followed.");
    screen.quit();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1].last_text(), "turn left");
    assert_eq!(requests[2].last_text(), "and then this");
}

#[test]
fn escape_ends_a_run_and_gives_back_what_waits() {
    let (_open, wait) = gate();
    let (world, server) = world([
        Reply::stream().then_text("Half an ans").then_wait(wait).finish("stop"),
        Reply::text("Whole answer."),
    ]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Half an ans");
    screen.send("wait for me");
    screen.wait_for("Steering: wait for me");
    screen.type_keys(ESCAPE);
    screen.wait_for("Operation aborted");
    let text = screen.wait_until_gone("Working");
    assert!(!text.contains("Steering:"), "{text}");
    assert!(text.contains("wait for me"), "{text}");
    screen.type_keys(ENTER);
    screen.wait_for("Whole answer.");
    screen.quit();
    assert_eq!(server.requests()[1].last_text(), "wait for me");
}

#[test]
fn alt_up_takes_back_what_waits() {
    let (open, wait) = gate();
    let (world, server) =
        world([Reply::stream().then_text("Slow").then_wait(wait).then_text(" answer").finish("stop")]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Slow");
    screen.send("first");
    screen.wait_for("Steering: first");
    screen.send("second");
    screen.wait_for("Steering: second");
    screen.type_keys(ALT_UP);
    let text = screen.wait_until_gone("Steering");
    assert!(text.contains("first") && text.contains("second"), "{text}");
    drop(open);
    screen.wait_for("Slow answer");
    screen.type_keys(CTRL_C);
    screen.wait_until_gone("second");
    screen.quit();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn control_c_empties_the_editor_and_twice_ends_and_control_d_ends_an_empty_one() {
    let (world, _server) = world([]);
    let screen = started(&world, "");
    screen.type_keys("some text");
    screen.wait_for("some text");
    // With text in it, it deletes forward: nothing here.
    screen.type_keys(CTRL_D);
    screen.type_keys(CTRL_C);
    screen.wait_until_gone("some text");
    screen.type_keys(CTRL_C);
    assert!(screen.wait().0.success());
    let screen = started(&world, "");
    screen.type_keys(CTRL_D);
    let (status, raw) = screen.wait();
    assert!(status.success());
    // Nothing was said, so there is nothing to go on with.
    assert!(!raw.contains("To resume"), "{raw}");
    assert!(world.session_files().is_empty());
}

#[test]
fn a_command_of_the_user_is_run_and_told_unless_it_is_hidden() {
    let (world, server) = world([Reply::text("I see.")]);
    let screen = started(&world, "");
    screen.send("!echo se''en");
    screen.wait_until("the command has ended", |text| text.contains("seen") && !text.contains("to cancel"));
    screen.send("!!echo hid''den");
    screen.wait_until("it has ended too", |text| text.contains("hidden") && !text.contains("to cancel"));
    screen.send("what did it say?");
    screen.wait_for("I see.");
    screen.quit();
    let told = told(&server);
    assert!(told.contains("seen") && !told.contains("hidden"), "{told}");
}

#[test]
fn escape_ends_a_command_of_the_user() {
    let (world, _server) = world([]);
    let screen = started(&world, "");
    screen.send("!echo begun; sleep 1000");
    screen.wait_for("begun");
    screen.type_keys(ESCAPE);
    screen.wait_for("cancelled");
    screen.quit();
}

#[test]
fn a_prompt_can_be_written_in_another_editor() {
    let (world, server) = world([Reply::text("Read.")]);
    let script = world.work().join("edit.sh");
    write_program(
        &script,
        "#!/bin/sh\nprintf 'was: ' >> \"$1\"; stty size >> \"$1\"; cat \"$1\" > /dev/null\n",
    );
    let pi = world.pi().words("--model mock/m1").env("EDITOR", script);
    let screen = Screen::start(pi);
    screen.wait_for("m1");
    screen.type_keys("begun ");
    screen.wait_for("begun");
    screen.type_keys(CTRL_G);
    screen.wait_for("was: 24 80");
    screen.type_keys(ENTER);
    screen.wait_for("Read.");
    screen.quit();
    assert_eq!(server.requests()[0].last_text(), "begun was: 24 80");
    let pi = world.pi().words("--model mock/m1").env("EDITOR", "false");
    let screen = Screen::start(pi);
    screen.wait_for("m1");
    screen.type_keys("kept");
    screen.wait_for("kept");
    screen.type_keys(CTRL_G);
    let text = screen.wait_for("false ended with an error");
    assert!(text.contains("kept"), "{text}");
    screen.type_keys(CTRL_C);
    screen.quit();
}

#[test]
fn calls_are_offered_for_approval() {
    let call = |id: &str| Reply::tool(id, "bash", &json!({"command": "touch made"}));
    let (world, server) =
        world([call("call_1"), Reply::text("Too bad."), call("call_2"), Reply::text("Made.")]);
    let screen = started(&world, "--ask-tools all");
    screen.send("make it");
    screen.wait_for("Allow bash?");
    screen.type_keys("\x1b[B\x1b[B\x1b[B\x1b[B\r");
    screen.wait_for("Why not?");
    screen.type_keys("not today\r");
    screen.wait_for("Too bad.");
    assert!(!world.work().join("made").exists());
    assert!(told(&server).contains("not today"));
    screen.send("make it now");
    screen.wait_for("Allow bash?");
    screen.type_keys(ENTER);
    screen.wait_for("Made.");
    screen.quit();
    assert!(world.work().join("made").exists());
}

#[test]
fn the_end_of_a_command_to_approve_is_shown() {
    let hides = [
        format!("echo hi{}touch HIDDENPART", "\n".repeat(300)),
        format!("echo hi{}; touch HIDDENPART", " ".repeat(8000)),
        format!("echo hi{}; touch HIDDENPART", "; echo ho".repeat(900)),
        format!("echo hi{}\ntouch HIDDENPART", "\necho ho".repeat(900)),
    ];
    for command in hides {
        let call = Reply::tool("call_1", "bash", &json!({"command": command}));
        let (world, _server) = world([call, Reply::text("Too bad.")]);
        let screen = started(&world, "--ask-tools all");
        screen.send("make it");
        let text = screen.wait_for("Allow bash?");
        assert!(text.contains("$ echo hi") && text.contains("touch HIDDENPART"), "{text}");
        assert!(["blank", "characters in all"].iter().any(|word| text.contains(word)), "{text}");
        screen.type_keys(ESCAPE);
        screen.wait_for("Too bad.");
        screen.quit();
    }
}

#[test]
fn files_are_completed_behind_an_at_sign() {
    let (world, server) = world([Reply::text("Read.")]);
    world.write("src/engine/piston.rs", "");
    world.write(".gitignore", "target\n");
    world.write("target/piston.o", "");
    std::fs::create_dir(world.work().join(".git")).unwrap();
    let screen = started(&world, "");
    screen.type_keys("look at @pist");
    let text = screen.wait_for("src/engine/piston.rs");
    assert!(!text.contains("piston.o"), "{text}");
    screen.type_keys("\t");
    screen.wait_for("@src/engine/piston.rs");
    screen.type_keys(ENTER);
    screen.wait_for("Read.");
    screen.quit();
    assert_eq!(server.requests()[0].last_text(), "look at @src/engine/piston.rs");
}

#[test]
fn a_link_to_a_folder_is_completed_as_a_folder_with_its_files() {
    let (world, _server) = world([]);
    world.write("src/main.rs", "");
    let elsewhere = world.tmp().with_file_name("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("crankshaft.rs"), "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.work().join("linked")).unwrap();
    let screen = started(&world, "");
    screen.type_keys("look at @link");
    screen.wait_for("linked/");
    screen.type_keys("\x15look at @crank");
    screen.wait_for("linked/crankshaft.rs");
    screen.type_keys("\t");
    screen.wait_for("@linked/crankshaft.rs");
    screen.type_keys(CTRL_C);
    screen.quit();
}

#[test]
fn without_a_model_one_can_look_around_and_is_told_what_to_do() {
    let world = World::new();
    let screen = Screen::start(world.pi());
    screen.wait_for("no-model");
    screen.send("hello?");
    let text = screen.wait_for("No model selected");
    assert!(text.contains("/login"), "{text}");
    screen.wait_for("Select authentication method");
    screen.type_keys(ESCAPE);
    // What was typed is not lost.
    screen.wait_until("the prompt is there", |text| text.contains("hello?"));
    screen.type_keys(CTRL_C);
    screen.quit();
    assert!(world.session_files().is_empty());
}

#[test]
fn errors_of_the_model_are_shown() {
    let (world, _server) = world([Reply::error(401, "bad key, bad")]);
    let screen = started(&world, "");
    screen.send("hello");
    screen.wait_for("bad key, bad");
    screen.wait_until_gone("Working");
    screen.quit();
}

#[test]
fn nothing_from_outside_drives_the_terminal() {
    let evil = "a\x1b]0;owned\x07b\x1b[2Jc\x1b[31md\u{9b}5ne";
    let (world, _server) = world([
        Reply::stream()
            .then_text(evil)
            .then_tool(1, "call_1", "bash", &json!({"command": "printf 'f\\033[2Jg\\033]52;c;eA==\\007h'"}))
            .finish("tool_calls"),
        Reply::text("done with it"),
    ]);
    let screen = started(&world, "");
    screen.send("go");
    screen.wait_for("done with it");
    let raw = screen.quit();
    for part in ["\x1b]0;owned", "\x1b[2J", "\x1b[3J", "\x1b]52", "\u{9b}"] {
        assert!(!raw.contains(part), "{part:?}");
    }
}

/// Numbers of lines that are to be found, and how often.
fn counts(screen: &Screen, count: usize) -> Vec<usize> {
    let all = screen.everything();
    let holds = |number: usize| all.iter().filter(|row| row.contains(&format!("line{number:04}"))).count();
    (0..count).map(holds).collect()
}

#[test]
fn every_line_is_in_the_scrollback_once() {
    let text: String = (0..300).map(|number| format!("line{number:04}\n\n")).collect();
    let (open, wait) = gate();
    let (world, _server) = world([
        Reply::stream().then_text(&text).then_wait(wait).then_text("\n\nthe end").finish("stop"),
        Reply::text("second answer"),
    ]);
    let screen = started(&world, "");
    screen.send("count");
    screen.wait_for("line0299");
    screen.send("steer");
    screen.wait_for("Steering: steer");
    drop(open);
    screen.wait_for("second answer");
    assert_eq!(counts(&screen, 300), vec![1; 300]);
    // Of what is on screen only what changed is written.
    let raw = screen.quit();
    assert!(raw.len() < 8 * text.len() + 20_000, "{}", raw.len());
}

/// What is switched on and not off again.
fn left_on(raw: &str) -> Vec<String> {
    let mut on: Vec<String> = Vec::new();
    for part in raw.split("\x1b[").skip(1) {
        let Some(end) = part.find(|letter: char| letter.is_ascii_alphabetic()) else {
            continue;
        };
        let (arguments, rest) = part.split_at(end);
        let kind = rest.chars().next();
        match (arguments.strip_prefix('?'), kind) {
            (Some(mode), Some('h')) => on.push(mode.to_owned()),
            (Some(mode), Some('l')) if mode == "25" => on.push(mode.to_owned()),
            (Some(mode), Some('l')) => on.retain(|known| known != mode),
            (None, Some('u')) if arguments.starts_with('>') => on.push("keyboard".into()),
            (None, Some('u')) if arguments.starts_with('<') => on.retain(|known| known != "keyboard"),
            _ => {}
        }
        if (arguments, kind) == ("?25", Some('h')) {
            on.retain(|known| known != "25");
        }
    }
    on
}

/// Ends pi in some way while an answer streams; the terminal must be as it was.
#[track_caller]
fn ends_in_order(name: &str, end: impl Fn(&Screen), code: i32) {
    let (_open, wait) = gate();
    let (world, _server) = world([Reply::stream()
        .then_text("Half an ans")
        .then_tool(1, "call_1", "bash", &json!({"command": "sleep 1000"}))
        .then_wait(wait)
        .finish("stop")]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Half an ans");
    end(&screen);
    let (status, raw) = screen.wait();
    let found = std::os::unix::process::ExitStatusExt::signal(&status)
        .map_or(status.code(), |signal| Some(128 + signal));
    assert_eq!(found, Some(code), "{name}: {status}");
    assert_eq!(left_on(&raw), [] as [String; 0], "{name}");
}

#[test]
fn the_terminal_is_as_it_was_on_every_way_out() {
    ends_in_order("quit", |screen| screen.type_keys("/quit\r"), 0);
    ends_in_order(
        "twice control c",
        |screen| {
            screen.type_keys(CTRL_C);
            screen.type_keys(CTRL_C);
        },
        0,
    );
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        ends_in_order(name, |screen| screen.signal(name), code);
    }
}

#[test]
fn a_closed_terminal_ends_the_program() {
    let (_open, wait) = gate();
    let (world, _server) = world([Reply::stream().then_text("Half").then_wait(wait).finish("stop")]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Half");
    let pid = screen.pid();
    screen.hang_up();
    wait_until("pi has ended", || !world.processes().contains(&pid));
    // What was asked is there.
    assert_eq!(world.session_files().len(), 1);
}

#[test]
fn sizes_change_at_any_moment_and_nothing_is_lost() {
    let text: String = (0..60).map(|number| format!("line{number:04}\n\n")).collect();
    let (open, wait) = gate();
    let (world, _server) = world([Reply::stream()
        .then_text(&text)
        .then_wait(wait)
        .then_text("\n\nthe end of it")
        .finish("stop")]);
    let screen = started(&world, "");
    screen.send("count");
    screen.wait_for("line0059");
    for (columns, rows) in [(40, 24), (120, 10), (20, 5), (1, 1), (2, 2), (200, 60), (80, 24)] {
        screen.resize(columns, rows);
    }
    drop(open);
    screen.wait_for("the end of it");
    // The emulator drops what a smaller screen has no room for; what is drawn again must be in order.
    let text = screen.text();
    let numbers = text.lines().filter_map(|row| row.trim().strip_prefix("line")?.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    let first = 60 - u32::try_from(numbers.len()).unwrap();
    assert_eq!(numbers, (first..60).collect::<Vec<_>>(), "{text}");
    screen.quit();
}

#[test]
fn a_dumb_terminal_is_spared_all_sequences() {
    let (world, _server) = world([Reply::text("# An **answer**")]);
    let pi = world.pi().words("--model mock/m1").env("NO_COLOR", "");
    let screen = Screen::of_kind(pi, "dumb");
    screen.wait_for("commands");
    screen.send("a question");
    screen.wait_for("An answer");
    let raw = screen.quit();
    assert!(!raw.contains('\x1b'), "{raw:?}");
}

#[test]
fn on_termux_another_height_draws_nothing_anew() {
    let (world, _server) = world([Reply::text("an answer")]);
    let pi = world.pi().words("--model mock/m1").env("TERMUX_VERSION", "1");
    let screen = Screen::start(pi);
    screen.wait_for("m1");
    screen.resize(80, 12);
    screen.resize(80, 24);
    screen.send("a question");
    screen.wait_for("an answer");
    assert_eq!(screen.text().matches("a question").count(), 1);
    screen.quit();
}

#[test]
fn the_wait_before_another_try_says_how_to_end_it() {
    let (world, server) = world([Reply::error(503, "busy")]);
    world.write_config("settings.json", r#"{"retry": {"enabled": true, "baseDelayMs": 60000}}"#);
    let screen = started(&world, "");
    screen.send("hello");
    let text = screen.wait_for("escape stops");
    assert!(text.contains("Retrying (1/"), "{text}");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Retrying");
    screen.quit();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_command_to_resume_names_a_folder_that_was_given() {
    let (world, _server) = world([Reply::text("Kept.")]);
    let folder = world.work().join("my sessions");
    let words = ["--session-dir", folder.to_str().unwrap()];
    let screen = Screen::start(world.pi().words("--model mock/m1").args(words));
    screen.wait_for("m1");
    screen.send("keep it");
    screen.wait_for("Kept.");
    let raw = screen.quit();
    let named = format!("pi --session-dir '{}' --session ", folder.display());
    assert!(raw.contains(&named), "{raw}");
}

#[test]
fn a_keyboard_of_another_script_commands_and_types() {
    let (world, server) = world([Reply::text("An answer.")]);
    let screen = started(&world, "");
    // The key of `c` on a Russian keyboard: alone, and with Ctrl.
    let (letter, with_ctrl) = ("\x1b[1089::99u", "\x1b[1089::99;5u");
    screen.type_keys(letter);
    screen.wait_for("с");
    screen.type_keys(ENTER);
    screen.wait_for("An answer.");
    assert_eq!(server.requests()[0].last_text(), "с");
    screen.type_keys(with_ctrl);
    screen.type_keys(with_ctrl);
    let (status, _) = screen.wait();
    assert!(status.success(), "{status}");
}

#[test]
fn an_escape_whose_release_comes_at_once_ends_a_run() {
    let (_open, wait) = gate();
    let (world, _server) = world([Reply::stream().then_text("Half an ans").then_wait(wait).finish("stop")]);
    let screen = started(&world, "");
    screen.send("begin");
    screen.wait_for("Half an ans");
    screen.type_keys("\x1b\x1b[27;129:3u");
    screen.wait_for("Operation aborted");
    screen.quit();
}

#[test]
fn backspace_and_shift_enter_are_known_in_the_bytes_that_some_terminals_send() {
    let (world, server) = world([Reply::text("An answer.")]);
    let screen = started(&world, "");
    screen.type_keys("onez\x08");
    screen.wait_until("the letter is gone", |text| text.contains("one") && !text.contains("onez"));
    // The terminal says that it speaks the Kitty protocol; then these bytes are no Alt+Enter.
    screen.type_keys("\x1b[?7u\x1b\rtwo");
    screen.wait_for("two");
    screen.type_keys(ENTER);
    screen.wait_for("An answer.");
    screen.quit();
    assert_eq!(server.requests()[0].last_text(), "one\ntwo");
}

#[test]
fn skills_are_offered_as_commands_unless_a_setting_says_no() {
    for (settings, is_offered) in [("{}", true), (r#"{"enableSkillCommands": false}"#, false)] {
        let (world, _server) = world([]);
        world.write_config("settings.json", settings);
        let skill = world.agent_dir().join("skills/tidy/SKILL.md");
        std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
        std::fs::write(skill, "---\nname: tidy\ndescription: Puts things away\n---\nBody").unwrap();
        let screen = started(&world, "");
        screen.type_keys("/");
        screen.wait_for("Start a new session");
        screen.type_keys("ti");
        let text = screen.wait_until("the list is narrowed", |text| !text.contains("Start a new session"));
        assert_eq!(text.contains("skill:tidy"), is_offered, "{text}");
        screen.type_keys("\x7f\x7f\x7f");
        screen.quit();
    }
}
