//! The list of `/fork`: the prompts to fork before.

use super::frame::inside;
use super::list::{ListDialog, Rows};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::look::Look;
use crate::runtime::outline::ForkPoint;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;

/// Characters of a prompt that a row can show.
const TEXT_MAX: usize = 300;

pub struct Fork;

/// The list, with the last prompt selected.
pub fn fork(points: &[ForkPoint]) -> ListDialog<Fork> {
    let items = points.iter().map(|point| {
        let words = point.text.chars().take(TEXT_MAX).collect::<String>();
        let words: Vec<&str> = words.split_whitespace().collect();
        Item::new(&point.entry_id, &words.join(" "))
    });
    let mut list = List::new(items.collect()).searchable();
    list.select(points.len().saturating_sub(1));
    ListDialog::new(list, Fork)
}

impl Rows for Fork {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let title = look.style(Role::Text).with(Attributes::BOLD);
        let about = "Select a user message to copy the active path up to that point into a new session";
        vec![
            Line::of("Fork from Message", title),
            Line::of(about, look.style(Role::Muted)).cut(inside(look)),
            Line::new(),
        ]
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "fork"), (Action::SELECT_CANCEL, "cancel")]
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        let id = list.selected().map(|item| Effect::Fork(item.value.clone()));
        std::iter::once(Effect::Close).chain(id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn the_last_prompt_is_selected_and_a_search_finds_another() {
        let point = |id: &str, text: &str| ForkPoint { entry_id: id.to_owned(), text: text.to_owned() };
        let points = [point("a", "first\n  words"), point("b", "second")];
        let forked = |typed: &str| {
            let mut shown = Shown::new(|_| fork(&points));
            assert!(shown.text(60).contains("→ second"));
            shown.type_text(typed);
            match shown.press("enter").pop() {
                Some(Effect::Fork(id)) => id,
                _ => String::new(),
            }
        };
        assert_eq!((forked("").as_str(), forked("first words").as_str()), ("b", "a"));
    }
}
