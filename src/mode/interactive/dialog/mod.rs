//! What takes the editor's place: lists, questions, forms. The one on top gets the keys.

pub mod approve;
pub mod compose;
pub mod fork;
mod frame;
pub mod login;
pub mod model;
mod model_levels;
mod question;
pub mod scope;
pub mod sessions;
pub mod settings;
mod theme;
pub mod thinking;
pub mod tools;
pub mod tree;
pub mod trust;
mod viewer;

pub use question::{Choice, Question};
pub use viewer::Viewer;

use super::app::App;
use super::look::Look;
use crate::tui::key::Key;
use crate::tui::line::Line;
use std::any::Any;
use std::time::Instant;

/// What becomes of a dialog after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Stay,
    Close,
}

pub trait Dialog {
    /// At most `rows` lines, each no wider than the look says.
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line>;

    /// Takes a key. The dialog is not among those of `app` meanwhile: what it opens comes on top of it, and of
    /// it nothing remains if it closes.
    fn key(&mut self, key: &Key, app: &mut App) -> Step;

    fn paste(&mut self, text: &str, app: &mut App) {
        let _ = (text, app);
    }

    /// It is drawn on a screen of its own, as high as the terminal.
    fn is_full(&self) -> bool {
        false
    }

    /// The whole screen, for one that has it.
    fn screen(&mut self, app: &mut App, now: Instant) -> Vec<Line> {
        let _ = now;
        self.lines(&app.stage.look(), app.stage.size.rows)
    }

    /// It is taken away unasked, such as by the end of the program.
    fn dismiss(&mut self, app: &mut App) {
        let _ = app;
    }

    /// For tasks that bring it something later.
    fn as_any(&mut self) -> &mut dyn Any;
}
