//! The table of actions, and changes by a user's file.

use super::*;
use crate::tui::key::{Action as Event, Code, Key, Modifiers};
use crate::tui::keymap;
use serde_json::json;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn load(file: &serde_json::Value) -> (Keymap, Vec<String>) {
    Keymap::load(file, Platform::Unix, &APPLICATION)
}

#[test]
fn the_table_is_sound() {
    let rows = || keymap::ROWS.iter().chain(ROWS);
    for row in rows() {
        let keys = row.keys.iter().chain(row.wsl.unwrap_or_default());
        for text in keys {
            assert!(Key::parse(text).is_some(), "{}: {text}", row.id);
        }
        assert_eq!(rows().filter(|other| other.id == row.id).count(), 1);
        let mut placed = TOGETHER.iter().copied().flatten().copied().flatten();
        assert!(placed.any(|action| action.id() == row.id), "{} is in no scope", row.id);
    }
    for (old, id) in keymap::OLD_IDS.iter().chain(OLD_IDS) {
        assert!(rows().any(|row| row.id == *id), "{old}");
    }
}

#[test]
fn a_file_may_name_its_schema_and_what_is_invalid_is_left_out() {
    let (keymap, problems) =
        load(&json!({"$schema": "https://pi.dev/x.json", "app.exit": "ctrl+q", "app.clear": 5}));
    assert_eq!(problems, ["app.clear: must be a key or a list of keys"]);
    assert!(keymap.is(&key("ctrl+q"), AppAction::EXIT) && !keymap.is(&key("ctrl+d"), AppAction::EXIT));
    assert!(keymap.is(&key("ctrl+c"), AppAction::CLEAR));
}

#[test]
fn home_and_end_are_the_editors_and_with_control_the_transcripts() {
    let keymap = defaults();
    for (text, editor, viewer) in [
        ("home", Some(Action::CURSOR_LINE_START), None),
        ("end", Some(Action::CURSOR_LINE_END), None),
        ("ctrl+home", None, Some(AppAction::VIEW_TOP)),
        ("ctrl+end", None, Some(AppAction::VIEW_BOTTOM)),
    ] {
        assert_eq!(keymap.prompt_action(&key(text)), editor, "{text}");
        assert_eq!(keymap.action(&key(text), VIEWER), viewer, "{text}");
    }
    let wsl = Keymap::new(Platform::Wsl, &APPLICATION);
    for text in ["alt+v", "ctrl+v"] {
        assert!(wsl.is(&key(text), AppAction::PASTE_IMAGE), "{text}");
    }
}

#[test]
fn a_key_means_what_its_scope_says() {
    let keymap = defaults();
    for (text, scope, expected) in [
        ("ctrl+p", MAIN, Some(AppAction::MODEL_CYCLE_FORWARD)),
        ("ctrl+p", SESSIONS, Some(AppAction::SESSION_TOGGLE_PATH)),
        ("ctrl+p", MODELS, Some(AppAction::MODELS_TOGGLE_PROVIDER)),
        ("ctrl+shift+p", MAIN, Some(AppAction::MODEL_CYCLE_BACKWARD)),
        ("shift+enter", EDITOR, Some(Action::NEW_LINE)),
        ("ctrl+j", EDITOR, Some(Action::NEW_LINE)),
        ("enter", EDITOR, Some(Action::SUBMIT)),
        ("ctrl+-", EDITOR, Some(Action::UNDO)),
        ("ctrl+alt+]", EDITOR, Some(Action::JUMP_BACKWARD)),
        ("ctrl+c", SELECT, Some(Action::SELECT_CANCEL)),
        ("shift+l", TREE, Some(AppAction::TREE_EDIT_LABEL)),
        ("l", TREE, None),
        ("f5", MAIN, None),
    ] {
        assert_eq!(keymap.action(&key(text), scope), expected, "{text}");
    }
}

#[test]
fn what_terminals_send_otherwise_is_the_same_key() {
    let keymap = defaults();
    let capital = Key::plain(Code::Char('L'));
    assert!(keymap.is(&capital, AppAction::TREE_EDIT_LABEL));
    let both = Key::new(Code::Char('P'), Modifiers::CTRL | Modifiers::SHIFT);
    assert!(keymap.is(&both, AppAction::MODEL_CYCLE_BACKWARD));
    let held = Key { action: Event::Repeat, ..key("up") };
    assert!(keymap.is(&held, Action::CURSOR_UP));
    let released = Key { action: Event::Release, ..key("up") };
    assert!(!keymap.is(&released, Action::CURSOR_UP));
    assert_eq!(keymap.action(&released, EDITOR), None);
}

#[track_caller]
fn check(file: serde_json::Value, expected: &[(&'static str, &[&str])], problems: &[&str]) {
    let (keymap, found) = load(&file);
    for (id, keys) in expected {
        let texts: Vec<String> = keymap.keys(Action::named(id)).iter().map(Key::to_string).collect();
        assert_eq!(&texts, keys, "{id}");
    }
    assert_eq!(found, problems);
}

#[test]
fn the_users_keys_replace_the_defaults() {
    check(json!({}), &[("app.interrupt", &["escape"])], &[]);
    check(
        json!({"app.session.new": "Shift+Ctrl+N", "tui.input.newLine": ["alt+j", "alt+j", "pageUp"]}),
        &[("app.session.new", &["ctrl+shift+n"]), ("tui.input.newLine", &["alt+j", "pageup"])],
        &[],
    );
    check(json!({"tui.altScreen.pageUp": []}), &[("tui.altScreen.pageUp", &[])], &[]);
    check(
        json!({"cycleModelForward": "f2", "undo": "f3", "tui.editor.undo": "f4"}),
        &[("app.model.cycleForward", &["f2"]), ("tui.editor.undo", &["f4"])],
        &[],
    );
}

#[test]
fn what_is_of_no_use_is_told_and_changes_nothing() {
    check(json!([]), &[("app.exit", &["ctrl+d"])], &["must hold an object: actions with their keys"]);
    check(
        json!({"app.exit": "hyper+x", "app.clear": 3, "app.nothing": "a", "app.suspend": ["f9", "ctrl+"]}),
        &[("app.exit", &["ctrl+d"]), ("app.clear", &["ctrl+c"]), ("app.suspend", &["f9"])],
        &[
            "app.exit: \"hyper+x\" is no key",
            "app.clear: must be a key or a list of keys",
            "app.nothing: no such action",
            "app.suspend: \"ctrl+\" is no key",
        ],
    );
    check(
        json!({"app.model.select": "f2", "app.thinking.cycle": "f2", "app.session.rename": "f2"}),
        &[],
        &["f2: both app.model.select and app.thinking.cycle"],
    );
}

#[test]
fn a_users_key_wins_over_a_default() {
    let file = json!({"app.session.new": "ctrl+p"});
    let (keymap, problems) = load(&file);
    assert_eq!(problems, [""; 0]);
    assert_eq!(keymap.action(&key("ctrl+p"), MAIN), Some(AppAction::SESSION_NEW));
}

#[test]
fn linux_inside_of_windows_has_its_own_defaults() {
    let platform = Platform::detect(|name| (name == "WSL_INTEROP").then(|| "/run/x".to_owned()));
    let keymap = Keymap::new(platform, &APPLICATION);
    assert!(keymap.is(&key("alt+p"), AppAction::MODEL_CYCLE_BACKWARD));
    assert!(keymap.is(&key("ctrl+q"), AppAction::MESSAGE_FOLLOW_UP));
    assert_eq!(keymap.action(&key("alt+p"), EDITOR), None);
    assert_eq!(Platform::detect(|_| None), Platform::Unix);
}

#[test]
fn the_keys_are_listed_as_they_are() {
    let file = json!({"app.exit": ["f10", "ctrl+|"], "app.clear": []});
    let keymap = load(&file).0;
    let rows: Vec<_> = keymap.hotkeys().collect();
    assert!(rows.contains(&("Application", "F10 / Ctrl+|".to_owned(), "Quit, if the editor is empty")));
    assert!(rows.contains(&("Cursor", "PageUp / Ctrl+PageUp".to_owned(), "Up a page")));
    assert!(!rows.iter().any(|(_, _, about)| about.contains("Empty the editor")));
}

#[test]
fn a_control_character_that_two_keys_send_finds_the_binding_of_either() {
    let file = json!({"app.tools.expand": "ctrl+h", "app.model.select": "ctrl+_"});
    let (keymap, problems) = load(&file);
    assert_eq!(problems, Vec::<String>::new());
    let backspace = Key { is_ambiguous: true, ..Key::plain(Code::Backspace) };
    let underscore = Key { is_ambiguous: true, ..key("ctrl+-") };
    assert_eq!(keymap.action(&backspace, MAIN), Some(AppAction::TOOLS_EXPAND));
    assert_eq!(keymap.action(&underscore, MAIN), Some(AppAction::MODEL_SELECT));
    // What the user has said wins over the editor's own use of the key.
    assert_eq!(keymap.prompt_action(&backspace), None);
    assert_eq!(keymap.prompt_action(&underscore), None);
    // A terminal that tells them apart is believed.
    assert_eq!(keymap.prompt_action(&key("backspace")), Some(Action::DELETE_CHAR_BACKWARD));
    assert_eq!(keymap.prompt_action(&key("ctrl+-")), Some(Action::UNDO));
    let usual = defaults();
    assert_eq!(usual.prompt_action(&backspace), Some(Action::DELETE_CHAR_BACKWARD));
    assert_eq!(usual.prompt_action(&underscore), Some(Action::UNDO));
}

#[test]
fn a_key_that_the_user_gives_to_the_application_is_no_default_of_the_editor() {
    let (keymap, _) = load(&json!({"app.tools.expand": "ctrl+k"}));
    assert_eq!(keymap.prompt_action(&key("ctrl+k")), None);
    let both = json!({"app.tools.expand": "ctrl+k", "tui.editor.undo": "ctrl+k"});
    let (keymap, _) = load(&both);
    assert_eq!(keymap.prompt_action(&key("ctrl+k")), Some(Action::UNDO));
}
