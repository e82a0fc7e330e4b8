//! Dialogs in place of the editor: lists, questions, forms. The top one receives the keys.
//!
//! A dialog knows nothing of sessions: it is made from data, requests actions as [`Effect`]s, and receives
//! changes as [`Update`]s.

pub mod agents;
pub mod approve;
pub mod compose;
pub mod context;
pub mod fork;
mod frame;
pub mod helper;
pub mod hotkeys;
pub mod list;
pub mod login;
pub mod model;
pub mod model_levels;
pub mod permissions;
pub mod question;
pub mod scope;
pub mod sessions;
mod setting_value;
pub mod settings;
pub mod sign_in;
pub mod switches;
#[cfg(test)]
pub mod testing;
pub mod theme;
pub mod thinking;
pub mod tools;
pub mod tree;

use super::config::UiConfig;
use super::effect::{Effect, Update};
use super::look::Look;
use super::program_status::Blocked;
use crate::tui::key::Key;
use crate::tui::line::Line;

/// Whether a dialog stays open after an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Stay,
    Close,
}

pub trait Dialog {
    /// At most `rows` lines, each no wider than `look`.
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line>;

    /// Handles a key. The effects are applied in order; [`Effect::Close`] closes this dialog.
    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect>;

    fn paste(&mut self, text: &str) {
        let _ = text;
    }

    /// Applies a change, if it concerns this dialog.
    fn update(&mut self, update: &mut Update, config: &UiConfig) -> Step {
        let _ = (update, config);
        Step::Stay
    }

    /// What the user is waited for, if the dialog was not opened by the user or waits for another program.
    fn blocked(&self) -> Option<Blocked> {
        None
    }

    /// Called when the dialog is removed by the program, such as at its end.
    fn dismiss(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}

/// The stack of open dialogs.
#[derive(Default)]
pub struct Dialogs {
    open: Vec<Box<dyn Dialog>>,
    /// True once a dialog was too high for the normal screen, until all are closed.
    pub is_full: bool,
}

impl Dialogs {
    pub fn open(&mut self, dialog: impl Dialog + 'static) {
        self.is_full &= !self.open.is_empty();
        self.open.push(Box::new(dialog));
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// True if work waits for the answer of an open dialog.
    pub fn asks(&self) -> bool {
        self.open.iter().any(|dialog| dialog.blocked().is_some())
    }

    /// Passes a key to the top dialog, and removes the dialog if it closes.
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

    /// What the top dialog waits for.
    pub fn blocked(&self) -> Option<Blocked> {
        self.open.last()?.blocked()
    }

    /// Lines of the top dialog.
    pub fn lines(&mut self, look: &Look<'_>, rows: usize) -> Option<Vec<Line>> {
        self.open.last_mut().map(|dialog| dialog.lines(look, rows))
    }

    /// Removes all dialogs, the topmost first.
    pub fn dismiss(&mut self) -> Vec<Effect> {
        let open = std::mem::take(&mut self.open).into_iter().rev();
        open.flat_map(|mut dialog| dialog.dismiss()).collect()
    }
}
