//! Keys and drawing of the tree.

use super::*;
use crate::mode::interactive::keymap::defaults;
use crate::mode::interactive::testing::Bench;
use crate::runtime::control::user_message;
use crate::runtime::outline::{Item, Preview};
use crate::tui::markdown_view::Diagrams;
use crate::tui::theme::Theme;
use std::path::Path;

fn tree() -> Tree {
    let item = |id: &str, children: &[u32], preview: Preview| {
        Some(Item { id: id.to_owned(), children: children.to_vec(), preview, bookmark: None })
    };
    let mut tree = Tree::new(Filter::Default, None);
    tree.take(Outline {
        items: vec![
            item("a", &[1], Preview::User("first prompt".into())),
            item("b", &[2, 4], Preview::Answer("an answer".into())),
            item("c", &[3], Preview::User("left".into())),
            item("d", &[], Preview::Aborted),
            item("e", &[5], Preview::User("right".into())),
            item("f", &[], Preview::Answer("the end".into())),
        ],
        roots: vec![0],
        leaf: Some(5),
    });
    tree
}

/// Effects of the last of the keys, as short text.
fn press(tree: &mut Tree, keys: &str) -> String {
    let keymap = defaults();
    let keys = keys.split_whitespace().map(|key| Key::parse(key).unwrap());
    let asked = keys.map(|key| tree.handle(&key, &keymap)).last().unwrap();
    let words = asked.into_iter().map(|effect| match effect {
        Effect::Close => "close".to_owned(),
        Effect::GoTo(id) => format!("go to {id}"),
        Effect::CopyEntry(id) => format!("copy {id}"),
        Effect::Label { id, label } => format!("label {id} {label:?}"),
        _ => "something else".to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn text(tree: &mut Tree, columns: usize, rows: usize) -> Vec<String> {
    let (theme, keymap) = (Theme::dark(), defaults());
    let look = Look {
        code_indent: "",
        diagrams: Diagrams::Final,
        cwd: Path::new("/"),
        home: Path::new("/"),
        ..Look::testing(&theme, &keymap, columns)
    };
    let lines = tree.draw(&look, rows);
    for line in &lines {
        assert!(line.width() <= columns, "{:?}", line.text());
    }
    assert!(lines.len() <= rows.max(12), "{}", lines.len());
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
}

#[test]
fn it_is_drawn_with_the_cursor_where_one_is() {
    let lines = text(&mut tree(), 60, 30);
    let from = lines.iter().position(|line| line.contains("first")).unwrap();
    assert_eq!(
        lines[from..],
        [
            "   • user: first prompt",
            "   • assistant: an answer",
            "   ├⊟ • user: right",
            " › │     • assistant: the end",
            "   └⊟ user: left",
            "         assistant: (aborted)",
            " (4/6)",
            &"─".repeat(60),
        ]
    );
    assert_eq!(lines[1], " Session Tree");
    assert!(lines.iter().any(|line| line.contains("ctrl+x copy")), "{lines:?}");
    for (columns, rows) in [(1, 1), (7, 5), (20, 12), (200, 80)] {
        text(&mut tree(), columns, rows);
    }
}

#[test]
fn keys_move_search_fold_and_choose() {
    for (keys, expected) in [
        ("enter", "close, go to f"),
        ("up enter", "close, go to e"),
        ("down down down enter", "close, go to a"),
        ("ctrl+left enter", "close, go to e"),
        ("l e f t enter", "close, go to c"),
        ("l x backspace e f t enter", "close, go to c"),
        ("z z enter", ""),
        ("z escape enter", "close, go to f"),
        ("escape", "close"),
        ("ctrl+x", "copy f"),
        ("ctrl+u enter", "close, go to e"),
        ("left enter", "close, go to a"),
    ] {
        assert_eq!(press(&mut tree(), keys), expected, "{keys}");
    }
}

#[test]
fn entries_are_named() {
    let mut tree = tree();
    press(&mut tree, "shift+l m y");
    assert!(text(&mut tree, 60, 30).join("\n").contains("Label (empty to remove):"));
    assert_eq!(press(&mut tree, "enter"), "label f Some(\"my\")");
    assert!(text(&mut tree, 60, 30).join("\n").contains("[my] assistant: the end"));
    press(&mut tree, "shift+t");
    let lines = text(&mut tree, 60, 30).join("\n");
    assert!(lines.contains("[+label time]") && lines.contains(':'), "{lines}");
    press(&mut tree, "ctrl+l");
    assert!(text(&mut tree, 60, 30).join("\n").contains("(1/1) [labeled]"));
    assert_eq!(press(&mut tree, "shift+l escape enter"), "close, go to f");
    press(&mut tree, "shift+l backspace backspace");
    assert_eq!(press(&mut tree, "enter"), "label f None");
    assert!(text(&mut tree, 60, 30).join("\n").contains("No entries found"));
}

/// A bench with a session of these prompts, each the child of the previous one.
fn bench(prompts: &[&str]) -> Bench {
    let bench = Bench::new();
    for prompt in prompts {
        let message = user_message((*prompt).to_owned(), Vec::new());
        bench.app.control.log().append_message(&message).unwrap();
    }
    bench
}

#[test]
fn a_choice_is_asked_about_and_each_question_leads_back_to_the_one_before() {
    let mut bench = bench(&["first", "second"]);
    bench.send("/tree");
    assert!(bench.screen(80).contains("› • user: second"));
    bench.press("up enter");
    assert!(bench.screen(80).contains("Summarize with custom prompt"));
    bench.press("up enter");
    assert!(bench.screen(80).contains("Custom summarization instructions"));
    bench.type_text("the numbers");
    assert!(bench.screen(80).contains("the numbers"));
    bench.press("escape");
    assert!(bench.screen(80).contains("Summarize branch?"));
    bench.press("escape");
    assert!(bench.screen(80).contains("› • user: first"));
    bench.press("enter enter");
    assert!(!bench.app.has_dialog());
    assert_eq!(bench.app.composer.editor.text(), "first");
    assert!(bench.printed().contains("Navigated to selected point"));
}

#[test]
fn the_setting_goes_without_asking() {
    let mut bench = Bench::with(&[("settings.json", r#"{"branchSummary": {"skipPrompt": true}}"#)]);
    for prompt in ["first", "second"] {
        let message = user_message(prompt.to_owned(), Vec::new());
        bench.app.control.log().append_message(&message).unwrap();
    }
    bench.app.composer.editor.set_text("kept");
    crate::mode::interactive::command::tree::open(&mut bench.app, None);
    bench.press("up enter");
    assert!(!bench.app.has_dialog());
    assert_eq!(bench.app.composer.editor.text(), "kept", "what was typed stays");
}

#[test]
fn a_label_is_stored_and_a_text_is_copied() {
    let mut bench = bench(&["first"]);
    bench.send("/tree");
    bench.press("shift+l");
    bench.type_text("Here");
    bench.press("enter");
    assert!(bench.screen(80).contains("[Here] user: first"));
    let marks: Vec<String> =
        bench.app.control.log().bookmarks().into_values().map(|mark| mark.label).collect();
    assert_eq!(marks, ["Here"]);
    bench.press("escape");
    bench.send("/fork");
    assert!(bench.screen(80).contains("Fork from Message"));
    bench.type_text("nothing of this");
    assert!(bench.screen(80).contains("Nothing found"));
}
