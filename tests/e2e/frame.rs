//! What is written to the terminal: how much for a change, whole frames only, and after a panic what it was about.

use crate::agent::lines;
use crate::screen::{Screen, started};
use crate::server::{Reply, Step, gate};
use crate::world;
use std::fs;
use std::io::Write;
use std::process::Stdio;

const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// Each frame that has begun has ended, and none begins in another.
#[track_caller]
fn assert_whole_frames(raw: &str) {
    let mut rest = raw;
    while let Some((_, begun)) = rest.split_once(BEGIN) {
        let (frame, after) = begun.split_once(END).expect("a frame ends");
        assert!(!frame.contains(BEGIN), "a frame in a frame: {frame:?}");
        rest = after;
    }
}

#[test]
fn a_key_and_a_piece_of_an_answer_cost_a_few_bytes() {
    const KEYS: usize = 40;
    const PIECES: usize = 60;
    let (mut answer, mut gates) =
        (Reply::stream().then_text(&"A line that stays.\n\n".repeat(8)), Vec::new());
    for n in 0..PIECES {
        let (open, held) = gate();
        gates.push(open);
        answer = answer.then_wait(held).then_text(&format!("w{n}. "));
    }
    let (world, _server) =
        world([Reply::text(&"What was said before.\n\n".repeat(30)), answer.finish("stop")]);
    let screen = started(&world, "");
    screen.send("hello");
    screen.wait_for("Worked");
    let before = screen.raw().len();
    for n in 1..=KEYS {
        screen.type_keys("k");
        screen.wait_for(&"k".repeat(n));
    }
    let written = screen.raw().len() - before;
    assert!(written < KEYS * 200, "{written} bytes for {KEYS} keys");
    screen.type_keys("\x15");
    screen.wait_until_gone("kkk");
    screen.send("go on");
    screen.wait_for("A line that stays.");
    let before = screen.raw();
    for (n, open) in gates.into_iter().enumerate() {
        open.send(()).unwrap();
        screen.wait_for(&format!("w{n}."));
    }
    let text = String::from_utf8_lossy(&screen.raw()[before.len()..]).into_owned();
    // The state above the editor moves meanwhile, as often as the machine is slow: what counts is that no frame
    // draws the screen anew.
    let frames = text.matches(BEGIN).count();
    assert!(frames > 0 && text.len() < frames * 400, "{} bytes in {frames} frames", text.len());
    screen.wait_for("Worked");
    assert_whole_frames(&screen.quit());
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    let (world, server) = world([Reply::text("answer")]);
    let screen = started(&world, "");
    screen.send("hello");
    screen.wait_for("Worked");
    // What a key shows comes after all that was still to be written.
    screen.type_keys("a");
    screen.wait_for("a");
    // Keys that change nothing: the ends of the line, undo of nothing.
    let raw = screen.raw().len();
    for key in ["\x05", "\x1b[F", "\x1b[C", "\x04"] {
        screen.type_keys(key);
    }
    screen.type_keys("b");
    screen.wait_for("ab");
    let written = screen.raw().len() - raw;
    assert!(written < 400, "{written} bytes: {:?}", String::from_utf8_lossy(&screen.raw()[raw..]));
    assert_eq!(server.requests().len(), 1);
    screen.type_keys("\x03");
    screen.quit();
}

#[test]
fn a_kill_leaves_whole_frames() {
    let pieces = (0..200).fold(Reply::stream(), |reply, n| reply.then_text(&format!("word {n} ")));
    let (world, _server) = world([pieces.then(Step::Stall)]);
    let screen = started(&world, "");
    screen.send("hello");
    screen.wait_for("word 1");
    world.wait_until_watched();
    let raw = screen.kill();
    // What gives the terminal back ends an open frame, too.
    let (begun, ended) = (raw.rfind(BEGIN), raw.rfind(END));
    assert!(begun < ended, "{begun:?} {ended:?}");
    assert_eq!(world.processes_left(), [0u32; 0]);
}

/// The prompt is in the session's file or its draft, and the session can be gone on with.
#[track_caller]
fn assert_kept(world: &crate::agent::World, prompt: &str) {
    let files = world.session_files();
    let texts: Vec<String> = files
        .iter()
        .filter(|path| path.to_string_lossy().contains(".jsonl"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(texts.iter().any(|text| text.contains(prompt)), "{files:?}");
    texts.iter().for_each(|text| drop(lines(text)));
}

#[test]
fn a_panic_while_drawing_ends_with_a_message_on_a_terminal_as_it_was() {
    for words in ["", "--tui-mode fullscreen"] {
        // The second is passed while the answer stalls, and what shows that it is awaited moves.
        for k in [1, 30] {
            let (world, _server) = world([Reply::text("half an answer").then(Step::Stall)]);
            let pi = world.pi().words("--model mock/m1").words(words);
            let screen = Screen::start(pi.env("PI_FAIL", format!("screen.paint:{k}:panic")));
            if k > 1 {
                screen.wait_for("m1");
                screen.type_keys("remember me\r");
            }
            let (status, raw) = screen.wait();
            assert_eq!(status.code(), Some(101), "{raw}");
            let (_, after) = raw.rsplit_once("\x1b[?25h").expect("the cursor is shown again");
            assert!(after.contains("panicked") && after.contains("failpoint screen.paint"), "{after:?}");
            assert!(!after.contains('\x1b'), "{after:?}");
            if k > 1 {
                assert_kept(&world, "remember me");
            }
            assert_eq!(world.processes_left(), [0u32; 0]);
        }
    }
}

#[test]
fn a_panic_of_a_worker_is_told_and_the_session_is_safe() {
    let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let pi = world.pi().words("--model mock/m1").env("PI_FAIL", "session.write:3:panic");
    let screen = Screen::start(pi);
    screen.wait_for("m1");
    screen.send("remember me");
    // It ends: there is nobody to go on with.
    let (status, raw) = screen.wait();
    assert_eq!(status.code(), Some(1), "{raw}");
    assert!(raw.contains("panicked") && raw.contains("The session failed inside"), "{raw}");
    assert!(!server.requests().is_empty());
    assert_eq!(world.processes_left(), [0u32; 0]);
    assert_kept(&world, "remember me");
}

#[test]
fn a_panic_of_a_worker_ends_rpc_mode() {
    let (world, _server) = world([Reply::text("one"), Reply::text("two")]);
    let mut pi = world.pi().words("--mode rpc --model mock/m1").env("PI_FAIL", "session.write:3:panic");
    pi.command().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = pi.command().spawn().unwrap();
    // It stays open.
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, r#"{{"type": "prompt", "message": "remember me"}}"#).unwrap();
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("panicked") && said.contains("The session failed inside"), "{said}");
    assert_eq!(world.processes_left(), [0u32; 0]);
    assert_kept(&world, "remember me");
}

/// A text of a megabyte without a break, one of 100,000 lines, and pastes of ten megabytes and of one.
#[test]
fn long_lines_many_lines_and_large_pastes_are_worked_off() {
    let long = format!("BEGIN{}END", "x".repeat(1 << 20));
    let many: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let replies = [&long, &format!("```\n{many}```\n"), "got it"].map(Reply::text);
    let (world, server) = world(replies);
    let screen = started(&world, "");
    for (prompt, end) in [("first", "xEND"), ("second", "99999")] {
        screen.send(prompt);
        screen.wait_for(end);
        screen.wait_for("Worked");
    }
    let paste = |bytes: usize, number: usize| {
        let text = "0123456789abcdef".repeat(bytes / 16);
        screen.type_keys(&format!("\x1b[200~{text}\x1b[201~"));
        screen.wait_for(&format!("[paste #{number} {bytes} chars]"));
        text
    };
    paste(10 << 20, 1);
    // It is one character.
    screen.type_keys("\x7f");
    screen.wait_until_gone("[paste");
    let pasted = paste(1 << 20, 2);
    screen.type_keys("\r");
    screen.wait_for("got it");
    assert_eq!(server.requests()[2].last_text(), pasted);
    assert_whole_frames(&screen.quit());
}
