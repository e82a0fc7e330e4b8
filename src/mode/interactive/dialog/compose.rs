//! Input of a text with several lines.

use super::{Dialog, frame};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::look::Look;
use crate::tui::editor::{Editor, Outcome};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::hints;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;

/// Effect of the entered text; `None` if the dialog was left.
type Then = Box<dyn FnOnce(Option<String>) -> Effect>;

pub struct Compose {
    title: String,
    editor: Editor,
    then: Option<Then>,
}

impl Compose {
    pub fn new(title: &str, then: impl FnOnce(Option<String>) -> Effect + 'static) -> Self {
        Self { title: title.to_owned(), editor: Editor::new(), then: Some(Box::new(then)) }
    }

    /// Begins with this text.
    pub fn with_text(mut self, text: &str) -> Self {
        self.editor.set_text(text);
        self
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

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let text = if config.keymap.is(key, Action::SELECT_CANCEL) {
            None
        } else {
            match self.editor.handle(key, &config.keymap) {
                Outcome::Submit(text) => Some(text),
                _ => return Vec::new(),
            }
        };
        let then = self.then.take().map(|then| then(text));
        std::iter::once(Effect::Close).chain(then).collect()
    }

    fn paste(&mut self, text: &str) {
        self.editor.paste(text);
    }
}
