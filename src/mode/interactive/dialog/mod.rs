//! What takes the editor's place: lists, questions, forms. The one on top gets the keys.
//!
//! A dialog knows nothing of sessions: it is made of data, asks for what is to be done as [`Effect`]s, and is
//! told of changes as [`Update`]s.

pub mod approve;
pub mod compose;
pub mod fork;
mod frame;
pub mod list;
pub mod login;
pub mod model;
pub mod model_levels;
pub mod question;
pub mod scope;
pub mod sessions;
pub mod settings;
pub mod sign_in;
#[cfg(test)]
pub mod testing;
pub mod theme;
pub mod thinking;
pub mod tools;
pub mod tree;

use super::config::UiConfig;
use super::effect::{Effect, Update};
use super::look::Look;
use crate::tui::key::Key;
use crate::tui::line::Line;

/// What becomes of a dialog after an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Stay,
    Close,
}

pub trait Dialog {
    /// At most `rows` lines, each no wider than the look says.
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line>;

    /// Takes a key. What is asked for is done in this order; [`Effect::Close`] closes this dialog.
    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect>;

    fn paste(&mut self, text: &str) {
        let _ = text;
    }

    /// Takes up a change, as far as it is one for this dialog.
    fn update(&mut self, update: &mut Update, config: &UiConfig) -> Step {
        let _ = (update, config);
        Step::Stay
    }

    /// The dialog is taken away unasked, such as by the end of the program.
    fn dismiss(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}

/// The open dialogs, one upon the other.
#[derive(Default)]
pub struct Dialogs {
    open: Vec<Box<dyn Dialog>>,
}

impl Dialogs {
    pub fn open(&mut self, dialog: impl Dialog + 'static) {
        self.open.push(Box::new(dialog));
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Gives a key to the dialog on top, and takes it away if it closes.
    pub fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let Some(dialog) = self.open.last_mut() else {
            return Vec::new();
        };
        let mut effects = dialog.key(key, config);
        let count = effects.len();
        effects.retain(|effect| !matches!(effect, Effect::Close));
        if effects.len() < count {
            self.open.pop();
        }
        effects
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(dialog) = self.open.last_mut() {
            dialog.paste(text);
        }
    }

    pub fn update(&mut self, mut update: Update, config: &UiConfig) {
        self.open.retain_mut(|dialog| dialog.update(&mut update, config) == Step::Stay);
    }

    /// The dialog on top.
    pub fn lines(&mut self, look: &Look<'_>, rows: usize) -> Option<Vec<Line>> {
        self.open.last_mut().map(|dialog| dialog.lines(look, rows))
    }

    /// Takes all dialogs away, the topmost first.
    pub fn dismiss(&mut self) -> Vec<Effect> {
        let open = std::mem::take(&mut self.open).into_iter().rev();
        open.flat_map(|mut dialog| dialog.dismiss()).collect()
    }
}
