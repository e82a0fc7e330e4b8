//! The lists of `/fork` and `/rewind`: the prompts of the session.

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

/// What a list of prompts is for.
pub struct Prompts {
    title: &'static str,
    about: &'static str,
    hints: [(Action, &'static str); 2],
    then: fn(String) -> Effect,
}

/// The prompts to fork before, with the last one selected.
pub fn fork(points: &[ForkPoint]) -> ListDialog<Prompts> {
    list(
        points,
        Prompts {
            title: "Fork from Message",
            about: "Select a user message to copy the active path up to that point into a new session",
            hints: [(Action::SELECT_CONFIRM, "fork"), (Action::SELECT_CANCEL, "cancel")],
            then: Effect::Fork,
        },
    )
}

/// The prompts to go back to, with the last one selected.
pub fn rewind(points: &[ForkPoint]) -> ListDialog<Prompts> {
    list(
        points,
        Prompts {
            title: "Rewind",
            about: "Conversation, files or both go back to before a prompt",
            hints: [(Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, "cancel")],
            then: Effect::AskRewind,
        },
    )
}

fn list(points: &[ForkPoint], prompts: Prompts) -> ListDialog<Prompts> {
    let items = points.iter().map(|point| {
        let words = point.text.chars().take(TEXT_MAX).collect::<String>();
        let words: Vec<&str> = words.split_whitespace().collect();
        Item::new(&point.entry_id, &words.join(" "))
    });
    let mut list = List::new(items.collect()).searchable();
    list.select(points.len().saturating_sub(1));
    ListDialog::new(list, prompts)
}

impl Rows for Prompts {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let title = look.style(Role::Text).with(Attributes::BOLD);
        vec![
            Line::of(self.title, title),
            Line::of(self.about, look.style(Role::Muted)).cut(inside(look)),
            Line::new(),
        ]
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &self.hints
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        let chosen = list.selected().map(|item| (self.then)(item.value.clone()));
        std::iter::once(Effect::Close).chain(chosen).collect()
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
