//! Keys as input, choices and lines as output.

use super::*;
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Application, Keymap, Platform};
use crate::tui::line::Line;
use proptest::prelude::*;
use std::time::Duration;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(Line::text).collect()
}

fn list(count: usize) -> List {
    List::new((0..count).map(|n| Item::new(&n.to_string(), &format!("item {n}"))).collect())
}

#[test]
fn the_choice_moves_and_stays_in_sight() {
    let keymap = Keymap::default();
    let mut list = list(20).rows(5);
    for (pressed, chosen, first) in [
        ("down", 1, "  item 0"),
        ("down", 2, "  item 0"),
        ("down", 3, "  item 1"),
        ("pagedown", 8, "  item 6"),
        ("up", 7, "  item 5"),
        ("pagedown", 12, "  item 10"),
        ("pagedown", 17, "  item 15"),
        ("pagedown", 19, "  item 15"),
        ("down", 0, "→ item 0"),
        ("up", 19, "  item 15"),
        ("pageup", 14, "  item 12"),
    ] {
        assert_eq!(list.handle(&key(pressed), &keymap), Picked::Moved);
        assert_eq!(list.selected_index(), Some(chosen), "{pressed}");
        let lines = list.render(40, &Looks::default());
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0].text(), first, "{pressed}");
        assert_eq!(lines[5].text(), format!("  ({}/20)", chosen + 1));
    }
    assert_eq!(list.handle(&key("enter"), &keymap), Picked::Chosen(14));
    assert_eq!(list.handle(&key("ctrl+c"), &keymap), Picked::Cancelled);
    assert_eq!(list.handle(&key("x"), &keymap), Picked::Ignored);
}

#[test]
fn a_search_narrows_the_list() {
    let keymap = Keymap::default();
    let mut list = list(20).rows(3).searchable();
    for letter in ["1", "9"] {
        list.handle(&key(letter), &keymap);
    }
    assert_eq!(texts(&list.render(40, &Looks::default())), ["Type to search: 19", "→ item 19"]);
    assert_eq!(list.handle(&key("enter"), &keymap), Picked::Chosen(19));
    list.handle(&key("x"), &keymap);
    assert_eq!(list.selected(), None);
    assert_eq!(list.handle(&key("down"), &keymap), Picked::Moved);
    assert_eq!(list.handle(&key("enter"), &keymap), Picked::Ignored);
    assert_eq!(texts(&list.render(40, &Looks::default())), ["Type to search: 19x", "  Nothing found"]);
    list.set_query("7");
    list.handle(&key("down"), &keymap);
    assert_eq!(list.selected_index(), Some(17));
    list.set_items((10..20).map(|n| Item::new(&n.to_string(), &format!("item {n}"))).collect());
    assert_eq!(list.selected().map(|item| &*item.value), Some("17"));
}

#[test]
fn descriptions_stand_in_a_column() {
    let items = vec![
        Item::new("a", "a").about("first\n  line"),
        Item::new("b", "a-very-long-label-that-is-cut-somewhere").about("second"),
        Item::new("c", "日本"),
    ];
    let mut list = List::new(items);
    assert_eq!(
        texts(&list.render(60, &Looks::default()))[1],
        "  a-very-long-label-that-is-cut-somewhere  second"
    );
    assert_eq!(
        texts(&list.render(45, &Looks::default())),
        [
            "→ a                               first line",
            "  a-very-long-label-that-is-cut…  second",
            "  日本",
        ]
    );
    assert_eq!(texts(&list.render(20, &Looks::default())), ["→ a", "  a-very-long-label…", "  日本"]);
    let plain = Looks { is_plain: true, ..Looks::default() };
    assert_eq!(list.render(20, &plain)[0].text(), "selected: a");
}

#[test]
fn values_stand_in_a_column_under_their_headings() {
    let items = vec![
        Item::new("a", "theme").setting("dark"),
        Item::new("b", "model").setting("none").about("project: x"),
        Item::new("c", "steering").setting("one").group("Queues"),
    ];
    let mut list = List::new(items).searchable();
    assert_eq!(
        texts(&list.render(40, &Looks::default())),
        ["Type to search: ", "→ theme     dark", "  model     none  project: x", "Queues", "  steering  one"]
    );
    list.set_query("steer");
    assert_eq!(texts(&list.render(40, &Looks::default()))[1..], ["→ steering  one"]);
}

#[test]
fn a_line_of_text_is_entered() {
    let keymap = Keymap::default();
    let mut input = TextInput::new("Name: ");
    input.set_text("old");
    for pressed in ["ctrl+u", "a", "b"] {
        assert_eq!(input.handle(&key(pressed), &keymap), Entered::Handled);
    }
    let line = input.render(20, &Looks::default());
    assert_eq!((line.text(), line.cursor), ("Name: ab", Some(8)));
    assert_eq!(input.handle(&key("f5"), &keymap), Entered::Ignored);
    assert_eq!(input.handle(&key("enter"), &keymap), Entered::Text("ab".to_owned()));
    assert_eq!(input.handle(&key("escape"), &keymap), Entered::Cancelled);
    let mut secret = TextInput::new("Key: ").secret();
    secret.paste("sk-123\n");
    let line = secret.render(20, &Looks::default());
    assert_eq!(line.text(), "Key: •••••••");
}

#[test]
fn waiting_shows_how_long() {
    let looks = Looks::default();
    let plain = Looks { is_plain: true, ..looks };
    for (millis, expected) in [
        (0, "⠋ Working"),
        (80, "⠙ Working"),
        (800, "⠋ Working"),
        (1000, "⠹ Working 1s"),
        (65_000, "⠹ Working 1m 05s"),
        (7_380_000, "⠋ Working 2h 03m"),
    ] {
        let running = Duration::from_millis(millis);
        assert_eq!(loader("Working", running, true, &looks).text(), expected);
        assert_eq!(loader("Working", running, true, &plain).text(), "Working");
        assert_eq!(loader_changes_in(running, &plain), None);
        let next = running + loader_changes_in(running, &looks).unwrap();
        assert!(next > running && next.as_millis().is_multiple_of(80));
    }
}

#[test]
fn hints_name_the_keys_that_there_are() {
    let file = serde_json::json!({"tui.select.up": []});
    let keymap = Keymap::load(&file, Platform::Unix, Application::NONE).0;
    let keys =
        [(Action::SELECT_UP, "up"), (Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, "leave")];
    let line = hints(&keys, &keymap, &Looks::default());
    assert_eq!(line.text(), "enter choose · escape leave");
}

const KEYS: [&str; 14] = [
    "up",
    "down",
    "pageup",
    "pagedown",
    "a",
    "1",
    "space",
    "日",
    "backspace",
    "left",
    "right",
    "ctrl+u",
    "home",
    "delete",
];

proptest! {
    #[test]
    fn nothing_is_wider_than_its_place(
        keys in prop::collection::vec(0..KEYS.len(), 0..30),
        labels in prop::collection::vec("\\PC{0,20}", 0..12),
        width in 0usize..70,
        is_plain: bool,
    ) {
        let keymap = Keymap::default();
        let looks = Looks { is_plain, ..Looks::default() };
        let setting = |label: &String| Item::new(label, label).setting(label).about(label).group("x");
        let mut settings = List::new(labels.iter().map(setting).collect());
        let items = labels.iter().map(|label| Item::new(label, label).about(label)).collect();
        let mut list = List::new(items).rows(4).searchable();
        for name in keys {
            let key = key(KEYS[name]);
            list.handle(&key, &keymap);
            settings.handle(&key, &keymap);
            let lines = [
                list.render(width, &looks),
                settings.render(width, &looks),
            ];
            for line in lines.iter().flatten() {
                prop_assert!(line.width() <= width, "{:?} in {}", line, width);
            }
        }
    }
}
