//! A question with answers to choose from.

use super::list::{ListDialog, Rows};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::look::Look;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

/// Effects of the answer with an index; `None` if the question was left.
type Then = Box<dyn FnOnce(Option<usize>) -> Vec<Effect>>;

pub struct Question {
    title: String,
    /// Lines below the title.
    text: String,
    then: Option<Then>,
}

pub fn question<T: AsRef<str>>(
    title: &str,
    text: &str,
    answers: &[T],
    then: impl FnOnce(Option<usize>) -> Vec<Effect> + 'static,
) -> ListDialog<Question> {
    let items = answers.iter().map(|answer| Item::new(answer.as_ref(), answer.as_ref()));
    let list = List::new(items.collect());
    let then: Then = Box::new(then);
    ListDialog::new(list, Question { title: title.to_owned(), text: text.to_owned(), then: Some(then) })
}

impl Question {
    fn answered(&mut self, answer: Option<usize>) -> Vec<Effect> {
        let then = self.then.take().map(|then| then(answer));
        std::iter::once(Effect::Close).chain(then.into_iter().flatten()).collect()
    }
}

impl Rows for Question {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let width = look.width.saturating_sub(2).max(1);
        let wrapped = |text: &str, style| -> Vec<Line> {
            let lines = text.lines().map(|line| Line::of(line, style));
            lines.flat_map(|line| wrap(&line, width)).collect()
        };
        let mut head = wrapped(&self.title, look.style(Role::Accent).with(Attributes::BOLD));
        head.extend(wrapped(&self.text, look.style(Role::Text)));
        head.push(Line::new());
        head
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, "cancel")]
    }

    fn body(&mut self, list: &mut List, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let width = look.width.saturating_sub(2).max(1);
        let mut body = self.head(look);
        let answers = list.render(width, &look.looks());
        // A long text must not push the answers off the screen.
        let room = rows.saturating_sub(answers.len() + 4).max(1);
        if body.len() > room {
            let hidden = body.len() - (room - 1);
            body.truncate(room - 1);
            body.push(Line::of(&format!("… ({hidden} more lines)"), look.style(Role::Warning)).cut(width));
        }
        body.extend(answers);
        body.push(Line::new());
        body.push(hints(self.hints(), look.keymap, &look.looks()));
        body
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.answered(Some(index))
    }

    fn cancelled(&mut self) -> Vec<Effect> {
        self.answered(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::card::Weight;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn an_answer_and_none_ask_for_different_things() {
        for (keys, expected) in [("down enter", "Some(1)"), ("escape", "None")] {
            let text = "line\n".repeat(60);
            let mut shown = Shown::new(|_| {
                let then = |answer| vec![Effect::Say(Weight::Info, format!("{answer:?}"))];
                question("Which?", &text, &["One", "Two"], then)
            });
            let screen = shown.text(40);
            assert!(screen.contains("more lines)") && screen.contains("→ One"), "{screen}");
            let effects = shown.press(keys);
            assert!(matches!(&effects[..], [Effect::Close, Effect::Say(_, said)] if said == expected));
        }
    }
}
