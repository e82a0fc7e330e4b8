//! Recalls earlier prompts in place of the current draft.
//!
//! The draft is not lost: a recalled prompt is one edit on top of it, undone when another prompt is shown or
//! when the user moves past the newest.

use super::buffer::Position;
use super::history::Direction;
use super::{Editor, Outcome};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::{Action, Keymap};

#[derive(Debug, Default)]
pub(super) struct Recall {
    /// Index of the recalled prompt.
    shown: Option<usize>,
    /// Prefix of the prompts to recall.
    prefix: String,
    search: Option<Search>,
}

#[derive(Debug, Default)]
struct Search {
    query: String,
    /// The prompts that contain the query.
    found: Vec<usize>,
    /// The shown one of them.
    at: usize,
}

/// A search of the history, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searching<'a> {
    pub query: &'a str,
    /// Number of the shown prompt, counted from 1, and of all that were found; `None` if there is none.
    pub place: Option<(usize, usize)>,
}

impl Recall {
    pub(super) fn is_browsing(&self) -> bool {
        self.shown.is_some()
    }

    pub(super) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Keeps the recalled text as the current one.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }
}

impl Editor {
    pub(super) fn browse(&mut self, direction: Direction, has_prefix: bool) {
        self.settle();
        if !self.recall.is_browsing() {
            if direction == Direction::Newer {
                return;
            }
            self.recall.prefix = match has_prefix {
                true => self.buffer.slice(Position::default()..self.cursor),
                false => String::new(),
            };
        }
        let shown = self.recall.shown;
        match (self.history.step(shown, direction, &self.recall.prefix), direction) {
            (Some(index), _) => {
                self.show(index);
                if direction == Direction::Older && !has_prefix {
                    self.cursor = Position::default();
                }
            }
            (None, Direction::Newer) => {
                self.show_draft();
                self.recall.stop();
            }
            (None, Direction::Older) => {}
        }
    }

    fn show(&mut self, index: usize) {
        self.show_draft();
        let prompt = self.history.get(index).unwrap_or_default();
        let prompt = super::paste::clean(prompt);
        // Even what looks the same is an edit, or there would be none to take back.
        let range = Position::default()..self.buffer.end();
        let before = self.cursor;
        let removed = self.apply(range, &prompt);
        self.undo.push(super::Edit {
            at: Position::default(),
            removed,
            inserted: prompt,
            before,
            after: self.cursor,
        });
        self.recall.shown = Some(index);
    }

    fn show_draft(&mut self) {
        if self.recall.shown.take().is_some()
            && let Some(edit) = self.undo.pop()
        {
            self.revert(&edit);
        }
    }

    pub(super) fn begin_search(&mut self) {
        self.settle();
        self.recall.search = Some(Search::default());
    }

    /// Handles a key during a search of the history. `None`: the search has ended, and the key keeps its
    /// usual meaning.
    pub(super) fn search_key(
        &mut self,
        key: &Key,
        action: Option<Action>,
        keymap: &Keymap,
    ) -> Option<Outcome> {
        if keymap.leaves(key) {
            self.show_draft();
            self.recall.stop();
            return Some(Outcome::Handled);
        }
        match action {
            Some(Action::HISTORY_SEARCH | Action::CURSOR_UP | Action::HISTORY_PREVIOUS) => {
                self.step_found(Direction::Older);
            }
            Some(Action::CURSOR_DOWN | Action::HISTORY_NEXT) => self.step_found(Direction::Newer),
            Some(Action::DELETE_CHAR_BACKWARD) => {
                if let Some(search) = &mut self.recall.search {
                    search.query.pop();
                }
                self.find(0);
            }
            None if key.typed().is_some() => {
                if let Some(search) = &mut self.recall.search {
                    search.query.extend(key.typed());
                }
                self.find(self.recall.shown.unwrap_or(0));
            }
            // What was found is the text; it is not sent before it was seen as such.
            _ => {
                self.recall.stop();
                return (key.code == Code::Enter).then_some(Outcome::Handled);
            }
        }
        Some(Outcome::Handled)
    }

    /// Shows the newest prompt that contains the query, from `first` on if there is one.
    fn find(&mut self, first: usize) {
        let Some(search) = &mut self.recall.search else {
            return;
        };
        search.found = match search.query.is_empty() {
            true => Vec::new(),
            false => self.history.search(&search.query),
        };
        search.at = search.found.iter().position(|index| *index >= first).unwrap_or(0);
        self.show_found();
    }

    fn step_found(&mut self, direction: Direction) {
        if let Some(search) = &mut self.recall.search {
            search.at = match direction {
                Direction::Older => (search.at + 1).min(search.found.len().saturating_sub(1)),
                Direction::Newer => search.at.saturating_sub(1),
            };
            self.show_found();
        }
    }

    fn show_found(&mut self) {
        let search = self.recall.search.as_ref();
        match search.and_then(|search| search.found.get(search.at)) {
            Some(&index) => self.show(index),
            None => self.show_draft(),
        }
    }

    /// The search of the history under way.
    pub fn searching(&self) -> Option<Searching<'_>> {
        let search = self.recall.search.as_ref()?;
        let count = search.found.len();
        Some(Searching { query: &search.query, place: (count > 0).then_some((search.at + 1, count)) })
    }
}
