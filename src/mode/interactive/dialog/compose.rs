//! A text of some lines to be written.

use super::{Dialog, Step, frame};
use crate::mode::interactive::app::App;
use crate::mode::interactive::look::Look;
use crate::tui::editor::{Editor, Outcome};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::hints;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use std::any::Any;

/// What is done with the text; none when it was not to be written.
type Then = Box<dyn FnOnce(&mut App, Option<String>)>;

pub struct Compose {
    title: String,
    editor: Editor,
    then: Option<Then>,
}

impl Compose {
    pub fn new(title: &str, then: impl FnOnce(&mut App, Option<String>) + 'static) -> Self {
        Self { title: title.to_owned(), editor: Editor::new(), then: Some(Box::new(then)) }
    }
}

impl Dialog for Compose {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let title = look.style(Role::Accent).with(Attributes::BOLD);
        let mut body = vec![Line::of(&self.title, title), Line::new()];
        let width = look.width.saturating_sub(2).max(1);
        let height = rows.saturating_sub(6).max(1);
        let text = look.style(Role::Text);
        let view = self.editor.render(width, height, text, look.style(Role::Accent));
        body.extend(view.lines);
        let keys =
            [(Action::SUBMIT, "done"), (Action::NEW_LINE, "new line"), (Action::SELECT_CANCEL, "cancel")];
        body.push(Line::new());
        body.push(hints(&keys, look.keymap, &look.looks()));
        frame::indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let text = if app.stage.keymap.is(key, Action::SELECT_CANCEL) {
            None
        } else {
            match self.editor.handle(key, &app.stage.keymap) {
                Outcome::Submit(text) => Some(text),
                _ => return Step::Stay,
            }
        };
        if let Some(then) = self.then.take() {
            then(app, text);
        }
        Step::Close
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        self.editor.paste(text);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
