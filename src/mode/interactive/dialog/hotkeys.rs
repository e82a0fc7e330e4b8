//! The list of `/hotkeys`: what matters first, then all keys by what they are for.

use super::frame::{text, title};
use super::list::{ListDialog, Rows};
use crate::base::order::Order;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::tui::keymap::{Action, Keymap, shown};
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

/// What to know first: an action whose key is shown, or what is typed; and what it is for.
const FIRST: &[(Result<Action, &str>, &str)] = &[
    (Err("/"), "Commands: what is typed narrows the list down"),
    (Err("@"), "Name a file: Tab completes it"),
    (Err("!"), "Run a command, and let the model see it; !! without that"),
    (Ok(Action::SUBMIT), "Send; while the model works: steer it"),
    (Ok(AppAction::MESSAGE_FOLLOW_UP), "Send when all is done"),
    (Ok(AppAction::MESSAGE_DEQUEUE), "Take back what waits"),
    (Ok(Action::NEW_LINE), "New line"),
    (Ok(AppAction::INTERRUPT), "Stop what runs; twice: to an earlier message"),
    (Ok(AppAction::CLEAR), "Empty the editor; twice: quit"),
    (Ok(AppAction::EXIT), "Quit, if the editor is empty"),
    (Ok(Action::CURSOR_UP), "Older prompts"),
    (Ok(Action::HISTORY_SEARCH), "Search the prompts"),
    (Ok(AppAction::TOOLS_EXPAND), "Open what is folded; the whole conversation"),
    (Ok(AppAction::THINKING_TOGGLE), "Fold or open thinking"),
    (Ok(AppAction::MODEL_SELECT), "Choose a model"),
    (Ok(AppAction::MODEL_CYCLE_FORWARD), "Next model"),
    (Ok(AppAction::THINKING_CYCLE), "Next thinking level"),
    (Ok(AppAction::PERMISSIONS_CYCLE), "What is asked about: changes, all, nothing; read only"),
    (Ok(AppAction::EXTERNAL_EDITOR), "Write in an editor of your own"),
    (Ok(AppAction::PASTE_IMAGE), "Paste an image, or else text"),
];

/// Groups of actions in the order of what they are for; groups that are not named follow.
const ORDER: [&str; 5] = ["Application", "Input", "Messages and display", "Models and thinking", "Editing"];

pub struct Hotkeys;

pub fn hotkeys(keymap: &Keymap) -> ListDialog<Hotkeys> {
    let row = |keys: &str, about: &str, group: &'static str| {
        Item::new(about, keys).about(about).group(group).search(format!("{keys} {about} {group}"))
    };
    let first = FIRST.iter().filter_map(|(key, about)| match key {
        Ok(action) => keymap.keys(*action).first().map(|key| row(&shown(key), about, "First")),
        Err(typed) => Some(row(typed, about, "First")),
    });
    let mut others: Vec<_> = keymap.hotkeys().collect();
    others.order_by_key(|(group, ..)| ORDER.iter().position(|known| known == group).unwrap_or(ORDER.len()));
    let others = others.into_iter().map(|(group, keys, about)| row(&keys, about, group));
    ListDialog::new(List::new(first.chain(others).collect()).searchable(), Hotkeys)
}

impl Rows for Hotkeys {
    fn rows_max(&self) -> usize {
        FIRST.len()
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        vec![title("Keys", look)]
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let about = selected.and_then(|item| item.about.clone()).unwrap_or_default();
        text(&about, Role::Muted, look)
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_PAGE_DOWN, "more"), (Action::SELECT_CANCEL, "leave")]
    }

    fn other_rows(&self, detail: usize) -> usize {
        // A heading takes a row, too.
        7 + detail
    }

    fn choose(&mut self, _: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn what_matters_is_first_and_everything_can_be_searched_for() {
        let mut shown = Shown::new(|config| hotkeys(&config.keymap));
        let text = shown.text(80);
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        for part in ["/ ", "@ ", "! ", "Alt+M", "Shift+Tab"] {
            assert!(rows.iter().any(|row| row.trim_start_matches("→ ").starts_with(part)), "{part}: {text}");
        }
        assert_eq!(FIRST.len(), 20);
        shown.type_text("yank");
        assert!(shown.text(80).contains("Nothing found"));
        for _ in 0..4 {
            shown.press("backspace");
        }
        shown.type_text("deleted last");
        assert!(shown.text(80).contains("Ctrl+Y"));
    }
}
