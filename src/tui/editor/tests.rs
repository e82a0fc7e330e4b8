//! Keys as input, text and cursor as output. `|` is the cursor.

use super::*;
use crate::tui::style::Style;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An editor with the text of `state`, and the cursor where its `|` is.
fn editor(state: &str) -> Editor {
    let (before, behind) = state.split_once('|').unwrap();
    let mut editor = Editor::new();
    editor.set_text(&format!("{before}{behind}"));
    editor.cursor = Position::default().after(before);
    editor
}

fn state(editor: &Editor) -> String {
    let before = editor.buffer.slice(Position::default()..editor.cursor);
    let behind = editor.buffer.slice(editor.cursor..editor.buffer.end());
    format!("{before}|{behind}")
}

/// Keys by name, between spaces; `'text` types text.
fn press(editor: &mut Editor, keys: &str) -> Outcome {
    let keymap = Keymap::default();
    let mut outcome = Outcome::Ignored;
    for name in keys.split(' ') {
        match name.strip_prefix('\'') {
            Some(text) => {
                for letter in text.replace('_', " ").chars() {
                    outcome = editor.handle(&Key::plain(Code::Char(letter)), &keymap);
                }
            }
            None => {
                let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
                outcome = editor.handle(&key, &keymap);
            }
        }
        check_cursor(editor);
    }
    outcome
}

fn check_cursor(editor: &Editor) {
    let line = editor.buffer.line(editor.cursor.line);
    assert!(editor.cursor.line < editor.buffer.lines());
    assert_eq!(unit::snap(line, editor.cursor.byte, &editor.pastes), editor.cursor.byte, "{line:?}");
}

#[track_caller]
fn check(before: &str, keys: &str, after: &str) {
    let mut editor = editor(before);
    press(&mut editor, keys);
    assert_eq!(state(&editor), after, "{before:?} {keys}");
}

#[test]
fn text_is_typed_and_deleted() {
    check("|", "'ab shift+enter 'c", "ab\nc|");
    check("ab|c", "backspace delete", "a|");
    check("a\n|b", "backspace", "a|b");
    check("a|\nb", "delete", "a|b");
    check("ab|", "shift+backspace", "a|");
    check("|", "backspace delete ctrl+w ctrl+k", "|");
    check("ae\u{301}|", "backspace", "a|");
    check("👨\u{200d}👩\u{200d}👧|x", "backspace", "|x");
    check("🇩🇪🇫🇷|", "backspace", "🇩🇪|");
    check("|", "'日本 left 'x", "日x|本");
    check("|\u{301}", "'e", "e\u{301}|");
}

#[test]
fn the_cursor_moves() {
    check("ab|c", "left left left left", "|abc");
    check("a\n|b", "left", "a|\nb");
    check("a|\nb", "right right right", "a\nb|");
    check("|👍🏽x", "right", "👍🏽|x");
    check("one two|", "home", "|one two");
    check("one\ntwo|", "home", "one\n|two");
    check("one\n|two", "end", "one\ntwo|");
    check("one\n|two", "home left end", "one|\ntwo");
}

#[test]
fn words_are_what_people_take_for_them() {
    check("one two|", "alt+b", "one |two");
    check("one two  |", "alt+b", "one |two  ");
    check("foo.bar|", "alt+b", "foo.|bar");
    check("foo.|bar", "alt+b", "foo|.bar");
    check("foo_bar|", "alt+b", "|foo_bar");
    check("don't|", "alt+b", "don'|t");
    check("a --|", "alt+b", "a |--");
    check("a\n|b", "alt+b", "a|\nb");
    check("|one two", "alt+f", "one| two");
    check("one| two", "alt+f", "one two|");
    check("|a/b/c", "alt+f", "a|/b/c");
    check("|=== x", "alt+f", "===| x");
    check("a|\nb", "alt+f", "a\n|b");
    check("a  |  ", "alt+f", "a    |");
    check("  |", "alt+b", "|  ");
}

#[test]
fn what_is_killed_can_be_yanked() {
    check("one two three|", "ctrl+w ctrl+w ctrl+y", "one two three|");
    check("one two|", "ctrl+w left ctrl+w ctrl+y", "one| ");
    check("a|b\nc", "ctrl+k ctrl+k ctrl+y", "ab\n|c");
    check("a\nb|c", "ctrl+u ctrl+u ctrl+y", "a\nb|c");
    check("|one two", "alt+d alt+d ctrl+y", "one two|");
    check("x y|", "ctrl+w left ctrl+w ctrl+y alt+y", "y| ");
    check("x y|", "ctrl+w left ctrl+w ctrl+y alt+y alt+y", "x| ");
    check("x y|", "ctrl+w left alt+y", "x| ");
    check("x y|", "ctrl+w left ctrl+w ctrl+y alt+y ctrl+- ctrl+-", "| ");
    check("a|", "ctrl+w ctrl+y alt+y", "a|");
    check("a|", "ctrl+y", "a|");
}

#[test]
fn typing_is_undone_by_words() {
    check("|", "'ab_cd ctrl+-", "ab|");
    check("|", "'ab_cd ctrl+- ctrl+-", "|");
    check("|", "'a__b ctrl+- ctrl+-", "a|");
    check("|", "'ab left 'c ctrl+-", "a|b");
    check("|", "'ab ctrl+- alt+-", "ab|");
    check("|", "'a_b ctrl+- ctrl+- alt+- alt+- alt+-", "a b|");
    check("|", "'a ctrl+- 'b alt+-", "b|");
    check("one|", "ctrl+w ctrl+-", "one|");
    check("|", "'ab enter ctrl+-", "|");
}

#[test]
fn everything_that_was_there_can_come_back() {
    let mut editor = editor("some|");
    editor.set_text("other\ntext");
    press(&mut editor, "ctrl+-");
    assert_eq!(state(&editor), "some|");
    press(&mut editor, "alt+-");
    assert_eq!(state(&editor), "other\ntext|");
}

#[test]
fn enter_sends_and_makes_lines() {
    let mut editor = editor("  one\ntwo |");
    assert_eq!(press(&mut editor, "enter"), Outcome::Submit("one\ntwo".to_owned()));
    assert_eq!(state(&editor), "|");
    press(&mut editor, "'_");
    assert_eq!(press(&mut editor, "enter"), Outcome::Edited);
    check("a\\|", "enter 'b", "a\nb|");
    check("a\\|b", "enter", "a\n|b");
    check("a|", "ctrl+j", "a\n|");
    let swapped = serde_json::json!({"tui.input.submit": "shift+enter", "tui.input.newLine": "enter"});
    let keymap = Keymap::load(&swapped, keymap::Platform::Unix, keymap::Application::NONE).0;
    let mut editor = self::editor("a\\|");
    let enter = Key::plain(Code::Enter);
    assert_eq!(editor.handle(&enter, &keymap), Outcome::Submit("a".to_owned()));
    let mut editor = self::editor("a|");
    assert_eq!(editor.handle(&enter, &keymap), Outcome::Edited);
}

#[test]
fn jumps_go_to_the_next_such_character() {
    check("|abcabc", "ctrl+] 'c", "ab|cabc");
    check("ab|cabc", "ctrl+] 'c", "abcab|c");
    check("a|b\nxb", "ctrl+] 'b", "ab\nx|b");
    check("ab\nxb|", "ctrl+alt+] 'a", "|ab\nxb");
    check("a|bc", "ctrl+] ctrl+] 'c", "ac|bc");
    check("a|bc", "ctrl+] right 'x", "abx|c");
    check("a|bc", "ctrl+] 'z", "a|bc");
}

#[test]
fn up_and_down_keep_the_column() {
    check("abcdef\nab\nabcdef|", "up up", "abcdef|\nab\nabcdef");
    check("abc|def\na\nabcdef", "down down 'x", "abcdef\na\nabcx|def");
    check("abc\na|", "up up", "|abc\na");
    check("|a", "down", "a|");
    check("日本|\nabcdef", "down", "日本\nabcd|ef");
    check("abc|\n日本", "down", "abc\n日|本");
    let mut editor = editor("one two three four|");
    editor.render(9, 5, Style::PLAIN, Style::PLAIN);
    press(&mut editor, "up");
    assert_eq!(state(&editor), "one two thre|e four");
    press(&mut editor, "up");
    assert_eq!(state(&editor), "one |two three four");
}

#[test]
fn pages_are_as_high_as_what_is_shown() {
    let mut editor = editor("1\n2\n3\n4\n5\n6\n7\n8|");
    editor.render(10, 3, Style::PLAIN, Style::PLAIN);
    press(&mut editor, "pageup");
    assert_eq!(state(&editor), "1\n2\n3\n4\n5|\n6\n7\n8");
    press(&mut editor, "pageup pageup");
    assert_eq!(state(&editor), "1|\n2\n3\n4\n5\n6\n7\n8");
    press(&mut editor, "pagedown");
    assert_eq!(state(&editor), "1\n2\n3\n4|\n5\n6\n7\n8");
}

fn with_history(state: &str) -> Editor {
    let mut editor = editor(state);
    for prompt in ["fix the test", "run it", "run it", "fix the docs", " "] {
        editor.remember(prompt);
    }
    editor
}

#[track_caller]
fn check_history(before: &str, keys: &str, after: &str) {
    let mut editor = with_history(before);
    press(&mut editor, keys);
    assert_eq!(state(&editor), after, "{before:?} {keys}");
}

#[test]
fn prompts_come_back() {
    check_history("|", "up", "|fix the docs");
    check_history("|", "up up", "|run it");
    check_history("|", "up up up up", "|fix the test");
    check_history("|", "up up down", "fix the docs|");
    check_history("|draft", "up up down down", "|draft");
    check_history("dra|ft", "up", "|draft");
    check_history("dra|ft", "up up", "|fix the docs");
    check_history("|draft", "up ctrl+-", "|draft");
    check_history("|draft", "up up ctrl+- alt+-", "run it|");
    check_history("|", "up end '! down", "fix the docs!|");
    check_history("one\n|two", "up", "|one\ntwo");
    check_history("fix|", "alt+p alt+p", "fix the test|");
    check_history("fix|", "alt+p alt+p alt+n alt+n", "fix|");
    check_history("nothing|", "alt+p", "nothing|");
    check_history("|", "down", "|");
}

#[test]
fn a_thousand_prompts_are_kept() {
    let mut editor = Editor::new();
    for number in 0..1050 {
        editor.remember(&number.to_string());
    }
    for _ in 0..1100 {
        press(&mut editor, "up");
    }
    assert_eq!(editor.text(), "50");
}

#[test]
fn earlier_prompts_follow_near_ones_first_and_are_read_as_far_as_needed() {
    let mut editor = with_history("draft|");
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let earlier = [(false, "far"), (true, "near"), (true, "run it"), (true, "near"), (false, "farther")];
    let earlier = earlier.into_iter().map(|(is_near, text)| (is_near, text.to_owned()));
    editor.add_earlier(Box::new(earlier.inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    })));
    let read = || count.load(Ordering::Relaxed);
    press(&mut editor, "home up up up");
    assert_eq!((state(&editor), read()), ("|fix the test".to_owned(), 0));
    press(&mut editor, "up");
    assert_eq!((state(&editor), read()), ("|near".to_owned(), 2));
    press(&mut editor, "up");
    assert_eq!((state(&editor), read()), ("|far".to_owned(), 5));
    press(&mut editor, "up up");
    assert_eq!(state(&editor), "|farther");
    press(&mut editor, "down down down");
    assert_eq!(editor.text(), "fix the test");
}

#[test]
fn a_search_tells_what_it_finds() {
    let mut editor = with_history("draft|");
    assert_eq!(editor.searching(), None);
    for (keys, query, place, text) in [
        ("ctrl+r", "", None, "draft"),
        ("'fix", "fix", Some((1, 2)), "fix the docs"),
        ("ctrl+r", "fix", Some((2, 2)), "fix the test"),
        ("up", "fix", Some((2, 2)), "fix the test"),
        ("down", "fix", Some((1, 2)), "fix the docs"),
        ("'xx", "fixxx", None, "draft"),
        ("ctrl+r", "fixxx", None, "draft"),
        ("backspace backspace", "fix", Some((1, 2)), "fix the docs"),
    ] {
        press(&mut editor, keys);
        assert_eq!(editor.searching(), Some(Searching { query, place }), "{keys}");
        assert_eq!(editor.text(), text, "{keys}");
    }
    press(&mut editor, "escape");
    assert_eq!((editor.searching(), state(&editor)), (None, "draft|".to_owned()));
}

#[test]
fn prompts_are_searched() {
    check_history("draft|", "ctrl+r 'TEST", "fix the test|");
    check_history("draft|", "ctrl+r 'fix ctrl+r", "fix the test|");
    check_history("draft|", "ctrl+r 'fix ctrl+r ctrl+r", "fix the test|");
    check_history("draft|", "ctrl+r 'run escape", "draft|");
    check_history("draft|", "ctrl+r 'run enter '!", "run it!|");
    check_history("draft|", "ctrl+r 'run left", "run i|t");
    check_history("draft|", "ctrl+r 'run backspace backspace backspace", "draft|");
    check_history("draft|", "ctrl+r 'run enter ctrl+-", "draft|");
    let mut editor = with_history("|");
    press(&mut editor, "ctrl+r 'zz");
    assert!(editor.recall.is_searching());
    press(&mut editor, "backspace backspace 'run");
    assert!(editor.recall.is_searching());
    press(&mut editor, "enter");
    assert!(!editor.recall.is_searching());
}

#[test]
fn pastes_are_cleaned() {
    for (before, pasted, after) in [
        ("|", "a\r\nb\rc", "a\nb\nc|"),
        ("|", "a\tb", "a    b|"),
        ("|", "a\x1b[31m\x07b\u{9b}\u{7f}", "a[31mb|"),
        ("see|", "/tmp/x", "see /tmp/x|"),
        ("see |", "/tmp/x", "see /tmp/x|"),
        ("(|)", "./x", "(./x|)"),
        ("a|", "~/x", "a ~/x|"),
        ("a|", "x", "ax|"),
    ] {
        let mut editor = editor(before);
        assert_eq!(editor.paste(pasted), Outcome::Edited);
        assert_eq!(state(&editor), after, "{pasted:?}");
        press(&mut editor, "ctrl+-");
        assert_eq!(state(&editor), before);
    }
    assert_eq!(Editor::new().paste("\x07"), Outcome::Handled);
}

#[test]
fn a_large_paste_is_one_character() {
    let lines = ["line"; 11].join("\n");
    let long = "x".repeat(1001);
    let mut editor = editor("a|b");
    editor.paste(&lines);
    assert_eq!(state(&editor), "a[paste #1 +11 lines]|b");
    editor.paste(&long);
    assert_eq!(state(&editor), "a[paste #1 +11 lines][paste #2 1001 chars]|b");
    press(&mut editor, "left left");
    assert_eq!(state(&editor), "a|[paste #1 +11 lines][paste #2 1001 chars]b");
    press(&mut editor, "alt+f delete");
    assert_eq!(state(&editor), "a[paste #1 +11 lines]|b");
    assert_eq!(editor.expanded(), format!("a{lines}b"));
    press(&mut editor, "ctrl+w");
    assert_eq!(state(&editor), "a|b");
    press(&mut editor, "ctrl+-");
    assert_eq!(editor.expanded(), format!("a{lines}b"));
    press(&mut editor, "ctrl+w ctrl+y");
    assert_eq!(press(&mut editor, "enter"), Outcome::Submit(format!("a{lines}b")));
    // What was killed before is still what it was, and a marker of then is only text.
    press(&mut editor, "ctrl+y");
    assert_eq!(editor.text(), lines);
    let mut editor = self::editor("[paste #1 +11 lines]|");
    press(&mut editor, "left");
    assert_eq!(state(&editor), "[paste #1 +11 lines|]");
}

#[test]
fn a_paste_at_the_limit_stays_as_it_is() {
    for text in [["line"; 10].join("\n"), "x".repeat(1000)] {
        let mut editor = Editor::new();
        editor.paste(&text);
        assert_eq!(editor.text(), text);
    }
}

#[track_caller]
fn check_view(state: &str, width: usize, expected: &[&str], cursor: (usize, usize)) {
    let mut editor = editor(state);
    let view = editor.render(width, 20, Style::PLAIN, Style::PLAIN);
    let rows: Vec<&str> = view.lines.iter().map(Line::text).collect();
    assert_eq!(rows, expected, "{state:?} at {width}");
    let found = view.lines.iter().enumerate();
    let found: Vec<_> = found.filter_map(|(row, line)| Some((row, line.cursor?))).collect();
    assert_eq!(found, [cursor], "{state:?} at {width}");
}

use crate::tui::line::Line;

#[test]
fn rows_break_at_words() {
    check_view("|", 10, &[""], (0, 0));
    check_view("one two|", 8, &["one two"], (0, 7));
    check_view("one two|", 7, &["one ", "two"], (1, 3));
    check_view("one |two", 7, &["one ", "two"], (1, 0));
    check_view("abcdefgh|", 4, &["abc", "def", "gh"], (2, 2));
    check_view("日本語|です", 6, &["日本", "語で", "す"], (1, 2));
    check_view("see 日本語|", 8, &["see 日", "本語"], (1, 4));
    check_view("a\n\nb|", 5, &["a", "", "b"], (2, 1));
    check_view("a\u{202e}b|", 9, &["a�b"], (0, 3));
    check_view("日|", 1, &["…"], (0, 0));
    check_view("abc|", 0, &["a", "b", "c"], (2, 0));
}

#[test]
fn a_marker_wider_than_the_editor_is_still_one() {
    let mut editor = editor("a|b");
    editor.paste(&"x\n".repeat(20));
    let view = editor.render(10, 20, Style::PLAIN, Style::PLAIN);
    let rows: Vec<&str> = view.lines.iter().map(Line::text).collect();
    assert_eq!(rows, ["a", "[paste #1", " +21 line", "s]b"]);
}

#[test]
fn the_cursor_is_always_shown() {
    let mut editor = editor("1\n2\n3\n4\n5\n6|");
    let view = editor.render(10, 3, Style::PLAIN, Style::PLAIN);
    assert_eq!((view.above, view.below), (3, 0));
    press(&mut editor, "up up up");
    let view = editor.render(10, 3, Style::PLAIN, Style::PLAIN);
    assert_eq!((view.above, view.below), (2, 1));
    assert_eq!(view.lines[0].cursor, Some(1));
    press(&mut editor, "down");
    let view = editor.render(10, 3, Style::PLAIN, Style::PLAIN);
    assert_eq!((view.above, view.below), (2, 1));
}

#[test]
fn an_editor_of_one_line_stays_one() {
    let mut editor = Editor::single_line();
    editor.paste("one\ntwo");
    assert_eq!(editor.text(), "one two");
    for key in ["ctrl+j", "up", "pageup", "tab", "ctrl+r"] {
        assert_eq!(press(&mut editor, key), Outcome::Ignored, "{key}");
    }
    let view = editor.render(5, 1, Style::PLAIN, Style::PLAIN);
    assert_eq!(view.lines[0].text(), " two");
    assert_eq!(view.lines[0].cursor, Some(4));
    press(&mut editor, "home");
    let view = editor.render(5, 1, Style::PLAIN, Style::PLAIN);
    assert_eq!(view.lines[0].text(), "one t");
    assert_eq!(view.lines[0].cursor, Some(0));
    assert_eq!(press(&mut editor, "enter"), Outcome::Submit("one two".to_owned()));
}

#[test]
fn keys_of_others_are_left_to_them() {
    let mut editor = editor("a|");
    for key in ["ctrl+c", "escape", "ctrl+o", "f5", "alt+x", "ctrl+l"] {
        assert_eq!(press(&mut editor, key), Outcome::Ignored, "{key}");
    }
    assert_eq!(press(&mut editor, "tab"), Outcome::Complete);
    assert_eq!(press(&mut editor, "left"), Outcome::Handled);
    assert_eq!(press(&mut editor, "'x"), Outcome::Edited);
    let released = Key { action: Event::Release, ..Key::plain(Code::Char('y')) };
    assert_eq!(editor.handle(&released, &Keymap::default()), Outcome::Ignored);
}

#[test]
fn a_completion_is_put_in_place() {
    let mut editor = editor("see @sr| now");
    assert_eq!(editor.around_cursor(), ("see @sr", " now"));
    editor.complete(4..7, "@src/", 5);
    assert_eq!(state(&editor), "see @src/| now");
    press(&mut editor, "ctrl+-");
    assert_eq!(state(&editor), "see @sr| now");
    editor.complete(4..99, "x", 1);
    assert_eq!(state(&editor), "see @sr| now");
}

const KEYS: &[&str] = &[
    "left",
    "right",
    "up",
    "down",
    "home",
    "end",
    "pageup",
    "pagedown",
    "alt+b",
    "alt+f",
    "backspace",
    "delete",
    "ctrl+w",
    "alt+d",
    "ctrl+u",
    "ctrl+k",
    "ctrl+y",
    "alt+y",
    "ctrl+-",
    "alt+-",
    "ctrl+j",
    "ctrl+]",
    "ctrl+alt+]",
    "ctrl+r",
    "alt+p",
    "alt+n",
    "escape",
    "'a",
    "'_",
    "'日",
    "'\u{301}",
    "'👍",
    "'🏽",
    "'🇩",
    "'\u{200d}",
    "'\\",
    "'[",
    "enter",
];

proptest! {
    #[test]
    fn nothing_typed_breaks_it(
        keys in prop::collection::vec(0..KEYS.len() + 3, 0..80),
        width in 0usize..30,
        rows in 0usize..6,
    ) {
        let mut editor = Editor::new();
        editor.remember("one\ntwo 日本");
        editor.remember("three");
        for key in keys {
            match KEYS.get(key) {
                Some(key) => { press(&mut editor, key); }
                None if key == KEYS.len() => { editor.paste(&"line 日\n".repeat(12)); }
                None if key == KEYS.len() + 1 => { editor.paste("a\u{301}\tb\x1b\r\n"); }
                None => editor.set_text("x 日本 [paste #1 +13 lines] y"),
            }
            check_cursor(&editor);
            prop_assert!(!editor.text().contains(|letter: char| letter.is_control() && letter != '\n'));
            let view = editor.render(width, rows, Style::PLAIN, Style::PLAIN);
            prop_assert!(!view.lines.is_empty() && view.lines.len() <= rows.max(1));
            prop_assert_eq!(view.lines.iter().filter(|line| line.cursor.is_some()).count(), 1);
            for line in &view.lines {
                prop_assert!(line.width() <= width.max(1), "{:?}", line);
                prop_assert!(line.cursor.is_none_or(|cursor| cursor < width.max(1)));
            }
        }
    }

    #[test]
    fn undoing_everything_gives_the_beginning(keys in prop::collection::vec(0..KEYS.len() - 1, 0..60)) {
        let mut editor = Editor::new();
        editor.remember("one\ntwo");
        for key in keys {
            press(&mut editor, KEYS[key]);
        }
        // What was undone on the way is gone with the next change.
        press(&mut editor, "escape 'x");
        let last = editor.text();
        for _ in 0..70 {
            press(&mut editor, "ctrl+-");
        }
        prop_assert_eq!(editor.text(), "");
        for _ in 0..70 {
            press(&mut editor, "alt+-");
        }
        prop_assert_eq!(editor.text(), last);
    }

    #[test]
    fn rows_together_are_the_line(text in "[a-c 日é👨\u{301}]{0,40}", cells in 1usize..12) {
        let mut buffer = Buffer::default();
        buffer.replace(Position::default()..Position::default(), &text);
        let mut end = 0;
        for row in buffer.rows(0, cells, &Pastes::default()) {
            prop_assert_eq!(row.start, end);
            prop_assert!(crate::tui::width::width(&text[row.clone()]) <= cells.max(2));
            end = row.end;
        }
        prop_assert_eq!(end, text.len());
    }
}
