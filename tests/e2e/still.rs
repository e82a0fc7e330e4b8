//! What stays where it is on the screen, and how many rows things take.

use crate::screen::{ESCAPE, Screen, started};
use crate::server::{Reply, gate};
use crate::world;
use serde_json::json;

/// The row of the footer, from 1 on.
fn footer(text: &str) -> usize {
    text.lines().collect::<Vec<_>>().iter().rposition(|row| row.ends_with("m1")).map_or(0, |row| row + 1)
}

fn text_of(rows: usize) -> String {
    (0..rows).map(|row| format!("row {row}\n\n")).collect()
}

#[test]
fn the_footer_stays_on_the_last_row() {
    let tool = |id: &str, command: &str| Reply::tool(id, "bash", &json!({"command": command}));
    let (world, _server) = world([
        Reply::text(&text_of(20)),
        tool("1", "seq 1 3"),
        Reply::text("second end"),
        Reply::text("third end\n\n| a |\n|---|\n| b |\n"),
        Reply::text("fourth end"),
    ]);
    let screen = started(&world, "");
    screen.send("first");
    screen.wait_for("row 19");
    screen.wait_for("Worked");
    for end in ["second end", "third end", "fourth end"] {
        screen.send("go on");
        let text = screen.wait_until("the answer is there", |text| {
            text.rfind("Worked").is_some_and(|worked| text.find(end).is_some_and(|end| end < worked))
        });
        assert_eq!(footer(&text), 24, "{text}");
    }
    let before = screen.text();
    // What needs more room is on the other screen, and what was there comes back.
    screen.send("/settings");
    screen.wait_for("Auto-compact");
    screen.type_keys(ESCAPE);
    screen.wait_until_gone("Auto-compact");
    let after = screen.wait_until_gone("/settings");
    let rows = |text: &str| text.lines().filter(|row| !row.is_empty()).map(String::from).collect::<Vec<_>>();
    assert_eq!(footer(&after), 24, "{after}");
    assert_eq!(rows(&before), rows(&after));
    // The list of commands is below the editor, and leaves nothing behind either.
    screen.type_keys("/");
    screen.wait_for("Start a new session");
    screen.type_keys("\x7f");
    let after = screen.wait_until_gone("Start a new session");
    assert_eq!(footer(&after), 24, "{after}");
    screen.quit();
}

#[test]
fn notices_share_one_row_until_the_next_prompt() {
    let (world, _server) = world([Reply::text("an answer")]);
    let screen = started(&world, "");
    let before = footer(&screen.text());
    screen.type_keys("\x14");
    screen.wait_for("Thinking blocks: hidden");
    screen.type_keys("\x14");
    let text = screen.wait_for("Thinking blocks: shown");
    assert!(!text.contains("hidden"), "{text}");
    assert_eq!(footer(&text), before, "{text}");
    screen.send("hello");
    let text = screen.wait_for("Worked");
    assert!(!text.contains("Thinking blocks"), "{text}");
    screen.quit();
}

#[test]
fn a_retry_is_one_row_and_then_one_line() {
    let (world, server) =
        world([Reply::error(529, "Overloaded"), Reply::error(529, "Overloaded"), Reply::text("Back again.")]);
    world.write_config("settings.json", r#"{"retry": {"enabled": true, "baseDelayMs": 300}}"#);
    let screen = started(&world, "");
    screen.send("hello");
    let text = screen.wait_for("Retrying (2/3)");
    assert!(text.contains("escape stops") && !text.contains("continue"), "{text}");
    screen.wait_for("Back again.");
    let text = screen.wait_for("Worked");
    assert!(text.contains("retried 2 times (529 Overloaded"), "{text}");
    assert!(!text.contains("Error"), "{text}");
    screen.quit();
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_retry_that_is_ended_says_so_and_one_that_fails_gives_advice() {
    let (world, _server) = world((0..3).map(|_| Reply::error(529, "Overloaded")));
    world.write_config("settings.json", r#"{"retry": {"enabled": true, "baseDelayMs": 1, "maxRetries": 1}}"#);
    let screen = started(&world, "");
    screen.send("hello");
    let text = screen.wait_for("Gave up after");
    assert_eq!(text.matches("529 Overloaded").count(), 1, "{text}");
    assert!(text.contains("send \"continue\""), "{text}");
    screen.quit();
}

#[test]
fn a_simple_session_takes_few_rows() {
    let bash = |id: &str, command: &str| Reply::tool(id, "bash", &json!({"command": command}));
    let read = |id: &str, path: &str| Reply::tool(id, "read", &json!({"path": path}));
    let (open, wait) = gate();
    let (world, _server) = world([
        bash("1", "echo one; echo two; exit 0"),
        read("2", "a.rs"),
        read("3", "b.rs"),
        bash("4", "echo broken; exit 101"),
        Reply::stream().then_text("It **fails** since").then_wait(wait).then_text(" of `b`.").finish("stop"),
    ]);
    world.write("a.rs", "fn a() {}\n");
    world.write("b.rs", "fn b() {}\n");
    let screen = started(&world, "");
    screen.send("why does it fail?");
    let text = screen.wait_for("It fails since");
    assert!(text.contains("escape to interrupt") && text.contains("tokens"), "{text}");
    drop(open);
    let text = screen.wait_for("Worked");
    for part in
        ["✓ $ echo one; echo two", "✓ read 2 files", "✗ exit 101 $ echo broken", "It fails since of b."]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let first = text.lines().position(|row| row.contains("why does it fail?")).unwrap();
    assert!(footer(&text) - first <= 24, "{text}");
    screen.quit();
}

#[test]
fn a_command_that_is_not_known_is_asked_about() {
    let (world, server) = world([Reply::text("an answer")]);
    let screen = started(&world, "");
    screen.type_keys("/modle");
    screen.wait_for("/modle");
    screen.type_keys("\r");
    screen.wait_for("No command /modle (did you mean /model?). Enter again sends it");
    screen.type_keys("\r");
    screen.wait_for("an answer");
    assert_eq!(server.requests().len(), 1);
    screen.send("?");
    screen.wait_for("pi docs has the manual");
    // Ctrl+C empties the editor though a list is open.
    screen.type_keys("/ses");
    screen.wait_for("What this session came to");
    screen.type_keys("\x03");
    screen.wait_until_gone("/ses ");
    screen.type_keys("/exit\r");
    let (status, _) = screen.wait();
    assert!(status.success());
}

#[test]
fn a_reader_by_voice_is_told_whose_text_it_is() {
    let (world, _server) = world([Reply::text("> quoted\n\n| a |\n|---|\n| b |\n")]);
    let screen = Screen::start(world.pi().words("--model mock/m1").env("PI_TUI_PLAIN", "1"));
    screen.wait_for("m1");
    screen.send("hello");
    let text = screen.wait_for("Worked");
    for part in ["You: hello", "Answer:", "> quoted", "| b |"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains(['│', '─', '┌', '✓']), "{text}");
    screen.quit();
}
