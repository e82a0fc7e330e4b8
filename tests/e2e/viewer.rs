//! The viewer of the whole conversation, and the fullscreen mode.

use crate::screen::{ESCAPE, Screen};
use crate::server::{Reply, gate};
use crate::world;
use serde_json::json;

const CTRL_O: &str = "\x0f";
const PAGE_UP: &str = "\x1b[5~";
const CTRL_END: &str = "\x1b[1;5F";
const CTRL_HOME: &str = "\x1b[1;5H";
const WHEEL_UP: &str = "\x1b[<64;5;5M";

fn numbered(count: usize) -> String {
    (1..=count).map(|line| format!("row {line}\n\n")).collect()
}

fn count(raw: &str, part: &str) -> usize {
    raw.matches(part).count()
}

#[test]
fn the_viewer_opens_what_is_folded_and_the_screen_comes_back() {
    let call = json!({"command": "seq 100 140"});
    let (world, _server) = world([
        Reply::stream().then_tool(0, "call_1", "bash", &call).finish("tool_calls"),
        Reply::text("Counted."),
    ]);
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen.send("count for me");
    screen.wait_for("Counted.");
    let before = screen.wait_for("... (36 earlier lines, ctrl+o to expand)");
    assert!(!before.contains("\n 125"), "{before}");
    screen.type_keys(CTRL_O);
    screen.wait_for("Transcript");
    screen.wait_for(" 125");
    // To the prompt, which is at the very beginning.
    screen.type_keys("p");
    screen.wait_until("the beginning is shown", |text| {
        text.contains("count for me") && text.contains("$ seq 100 140")
    });
    screen.type_keys("/133");
    screen.wait_until("the match is found", |text| text.contains(" 133") && text.contains("1/1"));
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Search:");
    screen.resize(60, 20);
    screen.type_keys("f");
    screen.wait_for("... (36 earlier lines, ctrl+o to expand)");
    screen.resize(80, 24);
    screen.type_keys("q");
    let after = screen.wait_until("the conversation is back", |text| {
        !text.contains("Transcript") && text.contains("Counted.")
    });
    assert!(after.contains("... (36 earlier lines"), "{after}");
    let raw = screen.quit();
    assert_eq!(count(&raw, "\x1b[?1049h"), count(&raw, "\x1b[?1049l"));
}

#[test]
fn the_viewer_follows_what_comes() {
    let (open, wait) = gate();
    let (world, _server) = world([Reply::stream()
        .then_text(&numbered(40))
        .then_wait(wait)
        .then_text("the last row")
        .finish("stop")]);
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen.send("go");
    screen.wait_for("row 40");
    screen.type_keys(CTRL_O);
    screen.wait_for("Transcript end");
    screen.wait_for("row 40");
    screen.type_keys("g");
    // What was printed while it streamed is there too.
    screen.wait_until("the beginning is shown", |text| text.contains("row 1\n") && text.contains("go"));
    screen.type_keys("G");
    drop(open);
    screen.wait_for("the last row");
    screen.type_keys(CTRL_O);
    screen.wait_until_gone("Transcript");
    screen.wait_for("the last row");
    let all = screen.everything();
    let rows = |row: &str| all.iter().filter(|line| line.trim() == row).count();
    // Each was printed once, whatever was shown meanwhile.
    assert_eq!((rows("row 1"), rows("row 40"), rows("the last row")), (1, 1, 1));
    screen.quit();
}

#[test]
fn in_fullscreen_mode_the_conversation_scrolls_above_the_editor() {
    let (world, _server) = world([Reply::text(&numbered(60)), Reply::text("Again.")]);
    let screen = Screen::start(world.pi().words("--model mock/m1 --tui-mode fullscreen"));
    screen.wait_for("m1");
    screen.send("many rows");
    screen.wait_for("row 60");
    screen.type_keys(PAGE_UP);
    let up = screen.wait_for("Jump to latest message · Ctrl+End");
    assert!(!up.contains("row 60"), "{up}");
    screen.type_keys(WHEEL_UP);
    screen.type_keys(CTRL_HOME);
    screen.wait_until("the beginning is shown", |text| text.contains("many rows") && text.contains("row 2 "));
    // What comes does not move what is read.
    screen.send("one more");
    screen.wait_until("the answer has come", |text| text.contains("row 2 ") && !text.contains("Working"));
    screen.type_keys(CTRL_END);
    screen.wait_for("Again.");
    screen.wait_until_gone("Jump to latest message");
    screen.resize(50, 20);
    screen.wait_for("Again.");
    let raw = screen.quit();
    let (_, after) = raw.rsplit_once("\x1b[?1049l").unwrap();
    assert!(raw.contains("\x1b[?1049h") && raw.contains("\x1b[?1006h"));
    assert!(after.contains("row 60") && after.contains("Again."), "{after}");
    assert!(after.contains("To resume this session"), "{after}");
}

#[test]
fn a_step_of_the_wheel_is_as_long_as_the_setting_says() {
    let (world, _server) = world([Reply::text(&numbered(60))]);
    world.write_config("settings.json", r#"{"fullscreenWheelScrollLines": 40}"#);
    let screen = Screen::start(world.pi().words("--model mock/m1 --tui-mode fullscreen"));
    screen.wait_for("m1");
    screen.send("many rows");
    screen.wait_for("row 60");
    screen.type_keys(WHEEL_UP);
    screen.wait_until("twenty rows are passed", |text| text.contains("row 38") && !text.contains("row 43"));
    // With Alt, and so past the beginning.
    screen.type_keys("\x1b[<72;10;10M");
    screen.wait_until("the beginning is shown", |text| text.contains("many rows"));
    screen.quit();
}

#[test]
fn in_fullscreen_mode_the_mouse_selects_and_copies() {
    let (world, _server) = world([Reply::text("Take apple pie.")]);
    let screen = Screen::start(world.pi().words("--model mock/m1 --tui-mode fullscreen"));
    screen.wait_for("m1");
    screen.send("hello");
    let shown = screen.wait_for("Worked");
    let row = shown.lines().position(|line| line.contains("apple")).unwrap() + 1;
    let column = shown.lines().find_map(|line| line.find("apple")).unwrap() + 1;
    screen.type_keys(&format!("\x1b[<0;{column};{row}M\x1b[<32;{};{row}M", column + 8));
    screen.type_keys(&format!("\x1b[<0;{};{row}m", column + 8));
    screen.wait_for("Copied 9 characters to clipboard");
    let raw = String::from_utf8_lossy(&screen.raw()).into_owned();
    // "apple pie", in inverse and in the terminal's clipboard.
    assert!(raw.contains("\x1b]52;c;YXBwbGUgcGll\x07"), "{raw}");
    assert!(raw.contains("\x1b[0;7mapple pie\x1b[0"), "{raw}");
    // Escape, which can be told from the beginning of a sequence.
    screen.type_keys("\x1b[27udraft");
    screen.wait_for("draft");
    // Ctrl+U.
    screen.type_keys("\x15");
    let raw = screen.quit();
    let (_, after) = raw.split_once("\x1b]52;c;").unwrap();
    let (after, _) = after.rsplit_once("\x1b[?1049l").unwrap();
    assert!(after.contains("apple pie."), "it is drawn without a selection: {after}");
}

#[test]
fn fullscreen_mode_can_be_left_without_a_trace() {
    let (world, _server) = world([Reply::text("Seen once.")]);
    let settings = json!({"tuiMode": "fullscreen", "fullscreenExitOutput": "resume-hint"});
    world.write_config("settings.json", &settings.to_string());
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen.send("hello");
    screen.wait_for("Seen once.");
    let raw = screen.quit();
    let (_, after) = raw.rsplit_once("\x1b[?1049l").unwrap();
    assert!(!after.contains("Seen once."), "{after}");
    assert!(after.contains("To resume this session"), "{after}");
}

#[test]
fn an_unknown_mode_is_refused() {
    let (world, _server) = world([]);
    let outcome = world.pi().words("-p --tui-mode tiny x").run();
    assert_ne!(outcome.code(), 0);
    outcome.stderr_has("Invalid TUI mode \"tiny\". Valid values: regular, fullscreen");
}
