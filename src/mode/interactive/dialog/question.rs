//! A question with answers to choose from.

use super::{Dialog, Step, frame};
use crate::mode::interactive::app::App;
use crate::mode::interactive::look::Look;
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::any::Any;

/// The question itself, wherever it is drawn.
pub struct Choice {
    title: String,
    /// Lines below the title: what the answer depends on.
    text: String,
    answers: List,
}

impl Choice {
    pub fn new(title: &str, text: &str, answers: &[String]) -> Self {
        let items = answers.iter().map(|answer| Item::new(answer, answer)).collect();
        Self { title: title.to_owned(), text: text.to_owned(), answers: List::new(items) }
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Picked {
        self.answers.handle(key, keymap)
    }

    pub fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let width = look.width.saturating_sub(2).max(1);
        let title = look.style(Role::Accent).with(Attributes::BOLD);
        let plain = look.style(Role::Text);
        let wrapped = |text: &str, style| -> Vec<Line> {
            let lines = text.lines().map(|line| Line::of(line, style));
            lines.flat_map(|line| wrap(&line, width)).collect()
        };
        let mut body = wrapped(&self.title, title);
        body.extend(wrapped(&self.text, plain));
        body.push(Line::new());
        let answers = self.answers.render(width, &look.looks());
        let keys = [(Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, "cancel")];
        // A long text must not push the answers off the screen.
        let room = rows.saturating_sub(answers.len() + 4).max(2);
        if body.len() > room {
            let hidden = body.len() - (room - 1);
            body.truncate(room - 1);
            body.push(Line::of(&format!("… ({hidden} more lines)"), look.style(Role::Warning)).cut(width));
        }
        body.extend(answers);
        body.push(Line::new());
        body.push(hints(&keys, look.keymap, &look.looks()));
        frame::indented(body, look, rows)
    }
}

/// What is done with the answer; none when the question was left.
pub type Then = Box<dyn FnOnce(&mut App, Option<usize>)>;

/// The question in the editor's place.
pub struct Question {
    choice: Choice,
    then: Option<Then>,
}

impl Question {
    pub fn new(
        title: &str,
        text: &str,
        answers: &[&str],
        then: impl FnOnce(&mut App, Option<usize>) + 'static,
    ) -> Self {
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        Self { choice: Choice::new(title, text, &answers), then: Some(Box::new(then)) }
    }
}

impl Dialog for Question {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        self.choice.lines(look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let answer = match self.choice.handle(key, &app.stage.keymap) {
            Picked::Chosen(index) => Some(index),
            Picked::Cancelled => None,
            Picked::Ignored | Picked::Moved => return Step::Stay,
        };
        if let Some(then) = self.then.take() {
            then(app, answer);
        }
        Step::Close
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
