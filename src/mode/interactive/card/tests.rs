//! The text of each card, and that none is wider than the screen.

use super::*;
use crate::mode::interactive::keymap::defaults;
use crate::mode::interactive::look::Look;
use crate::runtime::shell::ShellResult;
use crate::runtime::{AgentMessage, Block, ToolOutput};
use crate::tui::line::Line;
use crate::tui::theme::Theme;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Checks that a card fits every width, and its text at 60 columns: rows without trailing spaces and without
/// leading empty rows.
#[track_caller]
fn check(draw: &dyn Fn(&Look<'_>) -> Vec<Line>, expected: &[&str]) {
    let (theme, keymap) = (Theme::dark(), defaults());
    for width in [1, 2, 7, 20, 40, 80, 120] {
        for kind in 0..6 {
            let (is_open, is_plain, is_compact) = (kind == 1, kind == 2, kind >= 3);
            let (is_open, has_backgrounds) = (is_open || kind == 5, kind < 4);
            let look = Look::testing(&theme, &keymap, width);
            let lines = draw(&Look { is_open, is_plain, is_compact, has_backgrounds, ..look });
            assert!(lines.first().is_none_or(Line::is_empty), "{width}");
            for line in lines {
                // A single wide character has nowhere else to go.
                assert!(line.width() <= width.max(7), "{width}: {:?}", line.text());
            }
        }
    }
    assert_eq!(shown(draw, false), expected);
}

fn shown(draw: &dyn Fn(&Look<'_>) -> Vec<Line>, is_open: bool) -> Vec<String> {
    let (theme, keymap) = (Theme::dark(), defaults());
    let look = Look { is_open, ..Look::testing(&theme, &keymap, 60) };
    let lines = draw(&look);
    let texts = lines.iter().map(|line| line.text().trim_end().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn call(name: &str, arguments: Value, text: &str, details: Value) -> Call {
    let mut call = Call::new("1", name);
    call.set_arguments(object(arguments));
    call.set_output(ToolOutput { details: Some(details), ..ToolOutput::text(text) });
    call.end(false, None);
    call
}

#[track_caller]
fn check_call(call: &Call, expected: &[&str]) {
    check(&|look| call.lines(look, None, None), expected);
}

fn numbers(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_read_shows_what_is_read() {
    let text = "fn main() {}\n// end";
    let read = |arguments| call("read", arguments, text, Value::Null);
    check_call(&read(json!({"path": "src/main.rs"})), &[" ✓ read src/main.rs"]);
    check_call(&read(json!({"path": "/home/u/p/a.rs", "offset": 5, "limit": 10})), &[" ✓ read a.rs:5-14"]);
    check_call(&read(json!({"file_path": "~/a", "offset": 5})), &[" ✓ read ~/a:5"]);
    check_call(&read(json!({"path": "/x", "limit": 3})), &[" ✓ read /x:1-3"]);
    check_call(&read(json!({})), &[" ✓ read ..."]);
    check_call(&read(json!({"path": 1})), &[" ✓ read [invalid arg]"]);
    check_call(&read(json!({"path": "/s/deploy/SKILL.md"})), &[" ✓ [skill] deploy"]);
    let cut = json!({"truncation": {"truncated": true, "truncatedBy": "lines", "outputLines": 2,
        "totalLines": 9, "maxLines": 2}});
    let cut = call("read", json!({"path": "a.rs"}), text, cut);
    assert_eq!(
        shown(&|look| cut.lines(look, None, None), true),
        [" ✓ read a.rs", " fn main() {}", " // end", " [Truncated: showing 2 of 9 lines (2 line limit)]"]
    );
    let mut failed = call("read", json!({"path": "a"}), "ENOENT: no such file", Value::Null);
    failed.end(true, None);
    check_call(&failed, &[" ✗ read a", " ENOENT: no such file"]);
}

#[test]
fn a_command_shows_the_end_of_its_output() {
    let mut bash = call("bash", json!({"command": "make", "timeout": 9}), &numbers(9), Value::Null);
    let tail = [" line 5", " line 6", " line 7", " line 8", " line 9"];
    let mut expected = vec![" ✓ $ make (timeout 9s)", " ... (4 earlier lines, ctrl+o to expand)"];
    expected.extend(tail);
    check_call(&bash, &expected);
    let now = Instant::now();
    bash.state = State::Running { since: now };
    let later = now + Duration::from_millis(61_500);
    expected[0] = " • $ make (timeout 9s)  1m 1s";
    check(
        &|look| match look.is_plain {
            true => Vec::new(),
            false => bash.lines(look, Some(later), None),
        },
        &expected,
    );
    bash.end(false, Some(now + Duration::from_millis(1234)));
    expected[0] = " ✓ $ make (timeout 9s)  1.2s";
    check_call(&bash, &expected);

    let details = json!({"truncation": {"truncated": true, "truncatedBy": "bytes", "outputLines": 1,
        "maxBytes": 51200}, "fullOutputPath": "/tmp/o.log"});
    let text = "end\n\n[Showing the last line. Full output: /tmp/o.log]";
    check_call(
        &call("bash", json!({"command": "cat x\ncat y"}), text, details),
        &[
            " ✓ $ cat x",
            "   cat y",
            " end",
            " [Full output: /tmp/o.log. Truncated: 1 lines shown (50.0KB",
            " limit)]",
        ],
    );
}

#[test]
fn a_file_is_seen_while_it_is_written() {
    let mut write = Call::new("1", "write");
    write.write("{\"path\":\"a.txt\",\"content\":\"one\\ntw");
    check_call(&write, &[" • write a.txt", " one", " tw"]);
    write.write("o\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12\"}");
    write.written();
    check_call(
        &write,
        &[
            " • write a.txt",
            " one",
            " two",
            " 3",
            " 4",
            " 5",
            " 6",
            " 7",
            " 8",
            " 9",
            " 10",
            " ... (2 more lines, 12 total, ctrl+o to expand)",
        ],
    );
    write.fail("Operation aborted", None);
    let all = shown(&|look| write.lines(look, None, None), true);
    assert_eq!(all.len(), 14);
    assert_eq!(all.last().map(String::as_str), Some(" Operation aborted"));
    check_call(
        &call("write", json!({"path": "a", "content": 1}), "", Value::Null),
        &[" ✓ write a", " [invalid content arg - expected string]"],
    );
}

#[test]
fn an_edit_shows_its_change_before_it_is_made() {
    let arguments = json!({"path": "a.rs", "edits": [{"oldText": "old\ntext", "newText": "new"}]});
    let mut edit = Call::new("1", "edit");
    edit.set_arguments(object(arguments));
    check_call(&edit, &[" • edit a.rs", " - old", " - text", " + new"]);
    edit.preview = Some(" 1 a\n-2 old\n+2 new".into());
    check_call(&edit, &[" • edit a.rs", "  1 a", " -2 old", " +2 new"]);
    edit.set_output(ToolOutput::text("done").with_details(json!({"diff": "-7 old\n+7 new"})));
    edit.end(false, None);
    check_call(&edit, &[" ✓ edit a.rs", " -7 old", " +7 new"]);
    let mut failed = Call::new("1", "edit");
    failed.set_arguments(object(json!({"path": "a.rs"})));
    failed.fail("Could not find the exact text", None);
    check_call(&failed, &[" ✗ edit a.rs", " Could not find the exact text"]);
}

#[test]
fn searches_and_lists_show_their_beginning() {
    let grep = json!({"pattern": "fn x", "path": "src", "glob": "*.rs", "limit": 5});
    let details = json!({"matchLimitReached": 5, "linesTruncated": true});
    check_call(
        &call("grep", grep, "a.rs:1: fn x", details),
        &[
            " ✓ grep /fn x/ in src (*.rs) limit 5",
            " a.rs:1: fn x",
            " [Truncated: 5 matches limit, some lines truncated]",
        ],
    );
    for (name, arguments, title, folded) in [
        ("grep", json!({"pattern": "x"}), " ✓ grep /x/ in .", 15),
        ("find", json!({"pattern": "*.rs", "limit": 3}), " ✓ find *.rs in . (limit 3)", 20),
        ("ls", json!({}), " ✓ ls .", 20),
        ("ls", json!({"path": "/etc"}), " ✓ ls /etc", 20),
        ("other", json!({"a": 1, "b": ["x"]}), " ✓ other a=1 b=[\"x\"]", 10),
    ] {
        let listed = call(name, arguments, &numbers(22), Value::Null);
        let lines = shown(&|look| listed.lines(look, None, None), false);
        assert_eq!(lines.first().map(String::as_str), Some(title));
        assert_eq!(lines.len(), folded + 2);
        let left = 22 - folded;
        let hint = format!(" ... ({left} more lines, ctrl+o to expand)");
        assert_eq!(lines.last(), Some(&hint));
        let all = shown(&|look| listed.lines(look, None, None), true);
        assert!(all.ends_with(&[" line 22".to_owned()]), "{all:?}");
        check(&|look| listed.lines(look, None, None), &lines.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_live_costs_no_more_than_is_seen() {
    let (theme, keymap) = (Theme::dark(), defaults());
    let look = Look { is_open: true, ..Look::testing(&theme, &keymap, 60) };
    let text = numbers(100_000);
    for name in ["bash", "write", "read", "grep", "other"] {
        let arguments = json!({"path": "a.rs", "content": text, "command": "x"});
        let call = call(name, arguments, &text, Value::Null);
        let lines = call.lines(&look, None, Some(30));
        assert!(lines.len() < 80, "{name}: {}", lines.len());
        assert!(lines.iter().any(|line| line.text().contains("line 100000")), "{name}");
    }
}

#[test]
fn commands_of_the_user_say_how_they_ended() {
    let now = Instant::now();
    let draw = |shell: &Shell| -> Vec<String> {
        let lines = shown(&|look| shell.lines(look, Some(now), None), false);
        check(
            &|look| shell.lines(look, Some(now), None),
            &lines.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        lines.into_iter().filter(|line| !line.starts_with('─')).collect()
    };
    let mut shell = Shell::new("ls", true, now);
    shell.print("a\nb");
    assert_eq!(
        draw(&shell),
        [" $ ls", " Not sent to the model", " a", " b", " Running... (escape to cancel)"]
    );
    let result = |exit_code, cancelled, path: Option<&str>| ShellResult {
        output: numbers(22),
        exit_code,
        cancelled,
        truncated: path.is_some(),
        full_output_path: path.map(str::to_owned),
    };
    shell.end(&result(Some(2), false, Some("/tmp/o")), now + Duration::from_secs(2));
    let lines = draw(&shell);
    assert_eq!(lines.len(), 26);
    assert_eq!(
        lines.get(22..).unwrap_or_default(),
        [
            " ... 2 more lines (ctrl+o to expand)",
            " (exit 2)",
            " Output truncated. Full output: /tmp/o",
            " Took 2.0s"
        ]
    );
    shell.end(&result(None, true, None), now);
    assert!(draw(&shell).contains(&" (cancelled)".to_owned()));
    shell.fail("no shell", now);
    assert!(draw(&shell).contains(&" no shell".to_owned()));
    let mut long = Shell::new("yes", false, now);
    for _ in 0..300_000 {
        long.print("yyyyyyy\n");
    }
    assert!(draw(&long).contains(&" ... 299980 more lines (ctrl+o to expand)".to_owned()));
}

#[test]
fn messages_have_boxes_of_their_own() {
    let of = |value: Value| -> AgentMessage { serde_json::from_value(value).unwrap() };
    let skill = "<skill name=\"go\" location=\"/s/SKILL.md\">\nSteps\n</skill>\n\nnow";
    for (value, closed, open) in [
        (json!({"role": "user", "content": "**hi**\nyou"}), vec![" hi", " you"], vec![" hi", " you"]),
        (
            json!({"role": "user", "content": skill}),
            vec![" [skill] go (ctrl+o to expand)", " now"],
            vec![" [skill]", " go", " Steps", " now"],
        ),
        (
            json!({"role": "custom", "customType": "ext", "content": "said", "display": true}),
            vec![" [ext]", " said"],
            vec![" [ext]", " said"],
        ),
        (json!({"role": "custom", "customType": "ext", "content": "x", "display": false}), vec![], vec![]),
        (
            json!({"role": "compactionSummary", "summary": "sum", "tokensBefore": 12345}),
            vec![" [compaction]", " Compacted from 12,345 tokens (ctrl+o to expand)"],
            vec![" [compaction]", " Compacted from 12,345 tokens", " sum"],
        ),
        (
            json!({"role": "branchSummary", "summary": "sum", "fromId": "x"}),
            vec![" [branch]", " Branch summary (ctrl+o to expand)"],
            vec![" [branch]", " Branch Summary", " sum"],
        ),
        (json!({"role": "toolResult", "toolCallId": "1", "toolName": "x", "isError": false}), vec![], vec![]),
        (json!({"role": "hologram"}), vec![], vec![]),
    ] {
        let value = of(value);
        check(&|look| message(&value, look), &closed);
        assert_eq!(shown(&|look| message(&value, look), true), open);
    }
}

#[test]
fn answers_say_how_they_ended_and_what_can_be_done() {
    for (value, expected) in [
        (json!({"stopReason": "stop"}), vec![]),
        (json!({"stopReason": "aborted"}), vec![" Operation aborted"]),
        (json!({"stopReason": "aborted", "errorMessage": "Request was aborted"}), vec![" Operation aborted"]),
        (
            json!({"stopReason": "error", "errorMessage": "401 invalid x-api-key"}),
            vec![
                " Error: 401 invalid x-api-key",
                " Sign in with /login, or set the provider's key, and send",
                " the prompt again.",
            ],
        ),
        (json!({"stopReason": "error"}), vec![" Error: Unknown error"]),
        (
            json!({"stopReason": "length"}),
            vec![
                " Response was truncated before completion: it reached the",
                " output limit. Send \"continue\" for the rest.",
            ],
        ),
    ] {
        let mut answer = json!({"content": [], "api": "", "provider": "", "model": ""});
        answer.as_object_mut().unwrap().extend(object(value));
        let answer: crate::runtime::AssistantMessage = serde_json::from_value(answer).unwrap();
        check(&|look| ending(&answer, look), &expected);
    }
}

#[test]
fn images_that_cannot_be_drawn_have_a_box() {
    let mut image = call("read", json!({"path": "pics/a.png"}), "Read image file", Value::Null);
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6BAAAAAElFTkSuQmCC";
    image.set_output(ToolOutput { content: vec![Block::image(png, "image/png")], ..ToolOutput::default() });
    check_call(
        &image,
        &[
            " ✓ read pics/a.png",
            " ┌─────────────────────┐",
            " │ a.png image/png 2×3 │",
            " └─────────────────────┘",
        ],
    );
}

/// The rows of a call in a compact look of 60 columns.
fn compact(call: &Call, is_plain: bool) -> Vec<String> {
    let (theme, keymap) = (Theme::dark(), defaults());
    let look = Look { is_compact: true, is_plain, ..Look::testing(&theme, &keymap, 60) };
    let lines = call.lines(&look, None, None);
    lines.iter().skip(1).map(|line| line.text().trim_end().to_owned()).collect()
}

#[test]
fn a_call_that_went_well_is_one_row_where_that_says_enough() {
    let bash = call("bash", json!({"command": "make"}), "one\n\ntwo", Value::Null);
    assert_eq!(compact(&bash, false), [" ✓ $ make", "   one", "", "   two"]);
    assert_eq!(compact(&bash, true), [" $ make (done)", " one", "", " two"]);
    let mut failed =
        call("bash", json!({"command": "make"}), "one\n\nCommand exited with code 101", Value::Null);
    failed.end(true, None);
    assert_eq!(compact(&failed, false), [" ✗ exit 101 $ make", "   one"]);
    assert_eq!(compact(&failed, true), [" exit 101 $ make (failed)", " one"]);
    let mut late =
        call("bash", json!({"command": "make"}), "one\n\nCommand timed out after 3 seconds", Value::Null);
    late.end(true, None);
    assert_eq!(compact(&late, false), [" ✗ $ make", "   one", "   Command timed out after 3 seconds"]);
    for (name, arguments, title) in [
        ("read", json!({"path": "a.rs", "offset": 5, "limit": 10}), " ✓ read a.rs:5-14"),
        ("grep", json!({"pattern": "x"}), " ✓ grep /x/ in ."),
        ("find", json!({"pattern": "*.rs"}), " ✓ find *.rs in ."),
        ("ls", json!({"path": "/etc"}), " ✓ ls /etc"),
    ] {
        assert_eq!(compact(&call(name, arguments.clone(), "text", Value::Null), false), [title]);
        let mut failed = call(name, arguments, "no such file", Value::Null);
        failed.end(true, None);
        let rows = compact(&failed, false);
        assert_eq!(rows, [title.replace('✓', "✗").as_str(), "   no such file"]);
    }
}

#[test]
fn calls_that_went_well_are_summed_up() {
    let (theme, keymap) = (Theme::dark(), defaults());
    let look = Look { is_compact: true, ..Look::testing(&theme, &keymap, 60) };
    let of = |name: &str, arguments: Value| call(name, arguments, "text", Value::Null);
    let read = |path: &str| of("read", json!({"path": path}));
    let grep = |pattern: &str| of("grep", json!({"pattern": pattern}));
    let sum = |calls: &[Call]| {
        let summaries: Vec<Summary> = calls.iter().filter_map(|call| call.summary(&look)).collect();
        summed(&summaries, &look).text().to_owned()
    };
    assert_eq!(sum(&[read("a"), read("b"), grep("parse")]), "✓ read 2 files, searched \"parse\"");
    assert_eq!(sum(&[grep("x"), read("a"), grep("x")]), "✓ searched \"x\" (2), read a");
    assert_eq!(
        sum(&[of("ls", json!({})), of("ls", json!({"path": "x"})), of("find", json!({"pattern": "*.c"}))]),
        "✓ listed 2 folders, found *.c"
    );
    // Whatever has more to show stays by itself.
    let mut failed = read("a");
    failed.end(true, None);
    let limited = call("grep", json!({"pattern": "x"}), "text", json!({"matchLimitReached": 5}));
    let cut = call("read", json!({"path": "a"}), "text", json!({"truncation": {"truncated": true}}));
    let skill = read("/s/deploy/SKILL.md");
    for call in [failed, limited, cut, skill, of("bash", json!({"command": "ls"})), Call::new("1", "read")] {
        assert_eq!(call.summary(&look), None, "{}", call.name);
    }
    assert_eq!(read("a").summary(&Look { is_compact: false, ..look }), None);
    assert_eq!(read("a").summary(&Look { is_open: true, ..look }), None);
}

#[test]
fn a_failed_call_differs_from_a_good_one_on_every_terminal() {
    use crate::tui::style::Depth;
    let keymap = defaults();
    let good = call("bash", json!({"command": "make"}), "text", Value::Null);
    let mut failed =
        call("bash", json!({"command": "make"}), "text\n\nCommand exited with code 1", Value::Null);
    failed.end(true, None);
    let mut running = Call::new("1", "bash");
    running.set_arguments(object(json!({"command": "make"})));
    running.state = State::Running { since: Instant::now() };
    for depth in [Depth::True, Depth::Indexed, Depth::Sixteen, Depth::None] {
        for theme in [Theme::dark(), Theme::light()] {
            for is_compact in [false, true] {
                let theme = theme.clone().within(depth);
                let has_backgrounds = depth >= Depth::Indexed;
                let look = Look::testing(&theme, &keymap, 60);
                let look = Look { is_compact, has_backgrounds, ..look };
                let draw = |call: &Call| {
                    let lines = call.lines(&look, None, None);
                    let title = lines.iter().find(|line| line.text().contains("make")).unwrap();
                    let mut out = String::new();
                    title.write(depth, false, &mut out);
                    let spans = title.spans().find(|span| !span.text.trim().is_empty());
                    (title.text().trim().to_owned(), spans.unwrap().style.foreground.within(depth))
                };
                let all = [draw(&good), draw(&failed), draw(&running)];
                let texts = all.each_ref().map(|(text, _)| text.as_str());
                assert_eq!(texts, ["✓ $ make", "✗ exit 1 $ make", "• $ make"], "{depth:?}");
                if depth != Depth::None {
                    let [good, failed, running] = all.map(|(_, color)| color);
                    assert!(good != failed && good != running && failed != running, "{depth:?} {good:?}");
                }
                // Without backgrounds no row is there for them.
                let rows = good.lines(&look, None, None).len();
                assert_eq!(
                    rows,
                    if is_compact {
                        3
                    } else if has_backgrounds {
                        6
                    } else {
                        4
                    },
                    "{depth:?}"
                );
                let prompt: AgentMessage =
                    serde_json::from_value(json!({"role": "user", "content": "hi"})).unwrap();
                let rows = message(&prompt, &look);
                let text = if has_backgrounds { "hi" } else { "> hi" };
                assert!(rows.iter().any(|row| row.text().trim() == text), "{depth:?}");
            }
        }
    }
}
