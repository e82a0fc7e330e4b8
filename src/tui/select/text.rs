//! Input of one line of text.

use crate::tui::editor::{Editor, Outcome};
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::looks::Looks;
use crate::tui::width;

#[derive(Debug)]
pub struct TextInput {
    label: String,
    editor: Editor,
    is_secret: bool,
}

/// Result of a key in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    Ignored,
    Handled,
    Text(String),
    Cancelled,
}

impl TextInput {
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), editor: Editor::single_line(), is_secret: false }
    }

    /// Shows dots instead of the typed text.
    pub fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    pub fn text(&self) -> String {
        self.editor.text()
    }

    pub fn set_text(&mut self, text: &str) {
        self.editor.set_text(text);
    }

    pub fn paste(&mut self, text: &str) {
        self.editor.paste(text);
    }

    /// Passes the key to the text; false if it has no meaning there.
    pub(super) fn edit(&mut self, key: &Key, keymap: &Keymap) -> bool {
        if keymap.is(key, Action::SUBMIT) {
            return false;
        }
        self.editor.handle(key, keymap) != Outcome::Ignored
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Entered {
        if keymap.is(key, Action::SELECT_CONFIRM) {
            Entered::Text(self.text())
        } else if keymap.is(key, Action::SELECT_CANCEL) {
            Entered::Cancelled
        } else if self.edit(key, keymap) {
            Entered::Handled
        } else {
            Entered::Ignored
        }
    }

    pub fn render(&mut self, width: usize, looks: &Looks) -> Line {
        let mut line = Line::of(&self.label, looks.accent).cut(width.saturating_sub(1));
        let room = width.saturating_sub(line.width()).max(1);
        if self.is_secret {
            // The cursor stays at the end: where it is in a secret is nobody's business.
            let dots = "•".repeat(width::width(&self.text()).min(room - 1));
            line.push(&dots, looks.text);
            line.cursor = Some(line.width());
        } else {
            let view = self.editor.render(room, 1, looks.text, looks.text);
            for shown in &view.lines {
                line.append(shown);
            }
        }
        line.cut(width)
    }
}
