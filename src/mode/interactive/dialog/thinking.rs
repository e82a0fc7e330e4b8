//! The list of thinking levels.

use super::frame::title;
use super::list::{ListDialog, Rows, marks};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::keymap::{AppAction, THINKING};
use crate::mode::interactive::look::Look;
use crate::runtime::ThinkingLevel;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

/// The row of a level.
pub fn item(level: ThinkingLevel) -> Item {
    Item::new(level.name(), level.name()).about(about(level)).search(level.name().to_owned())
}

fn about(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "answers at once",
        ThinkingLevel::Minimal => "hardly any, about 1k tokens",
        ThinkingLevel::Low => "a little, about 2k tokens",
        ThinkingLevel::Medium => "some, about 8k tokens",
        ThinkingLevel::High => "much, about 16k tokens",
        ThinkingLevel::Xhigh => "very much, about 32k tokens",
        ThinkingLevel::Max => "as much as the model can",
    }
}

pub struct Levels(Vec<ThinkingLevel>);

/// The levels of a model, the current one selected.
pub fn levels(
    levels: Vec<ThinkingLevel>,
    current: ThinkingLevel,
    default: ThinkingLevel,
    config: &UiConfig,
) -> ListDialog<Levels> {
    let (mark, blank) = marks(config, ("current: ", ""));
    let items = levels.iter().map(|level| {
        let mark = if *level == current { mark } else { blank };
        let note = if *level == default { " · default" } else { "" };
        Item { label: format!("{mark}{}", level.name()), ..item(*level) }
            .about(&format!("{}{note}", about(*level)))
    });
    let mut list = List::new(items.collect()).searchable();
    if let Some(at) = levels.iter().position(|level| *level == current) {
        list.select(at);
    }
    ListDialog::new(list, Levels(levels))
}

impl Levels {
    fn take(&self, index: Option<usize>, saves: bool) -> Vec<Effect> {
        match index.and_then(|index| self.0.get(index)) {
            Some(&level) => vec![Effect::Close, Effect::UseThinking { level, saves }],
            None => Vec::new(),
        }
    }
}

impl Rows for Levels {
    fn rows_max(&self) -> usize {
        self.0.len().max(1)
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let mut head = vec![title("Thinking Level", look)];
        if let Some(key) = look.keymap.shown(AppAction::THINKING_CYCLE) {
            let hint = format!("{key} goes through the levels without this list");
            head.push(Line::of(&hint, look.style(Role::Dim)));
        }
        head.push(Line::new());
        head
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[
            (Action::SELECT_CONFIRM, "to select"),
            (AppAction::THINKING_SAVE, "to set as default"),
            (Action::SELECT_CANCEL, "to cancel"),
        ]
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.take(Some(index), false)
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        let saves = config.keymap.action(key, THINKING) == Some(AppAction::THINKING_SAVE);
        saves.then(|| self.take(list.selected_index(), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn the_level_in_use_is_selected_and_another_is_asked_for() {
        use ThinkingLevel::{High, Low, Off};
        for (keys, expected) in [
            ("enter", Some((Low, false))),
            ("down enter", Some((High, false))),
            ("up ctrl+s", Some((Off, true))),
            ("escape", None),
        ] {
            let mut shown = Shown::new(|config| levels(vec![Off, Low, High], Low, High, config));
            assert!(shown.text(80).contains("→ ✓ low") && shown.text(80).contains("· default"));
            let effects = shown.press(keys);
            assert!(matches!(effects[0], Effect::Close));
            let used = effects.iter().find_map(|effect| match effect {
                Effect::UseThinking { level, saves } => Some((*level, *saves)),
                _ => None,
            });
            assert_eq!(used, expected, "{keys}");
        }
    }
}
