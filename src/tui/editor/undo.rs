//! Undo and redo of changes.

use super::buffer::Position;
use std::collections::VecDeque;

/// Maximum bytes kept for undo; the oldest edits are dropped.
const BYTES_MAX: usize = 16 << 20;
const EDITS_MAX: usize = 10_000;

/// One replacement: `inserted` replaced `removed`.
#[derive(Clone, Debug)]
pub struct Edit {
    pub at: Position,
    pub removed: String,
    pub inserted: String,
    /// Position of the cursor before and after the edit.
    pub before: Position,
    pub after: Position,
}

impl Edit {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }
}

#[derive(Debug, Default)]
pub struct Undo {
    done: VecDeque<Edit>,
    undone: Vec<Edit>,
    bytes: usize,
}

impl Undo {
    pub fn push(&mut self, edit: Edit) {
        self.undone.clear();
        self.keep(edit);
    }

    fn keep(&mut self, edit: Edit) {
        self.bytes += edit.bytes();
        self.done.push_back(edit);
        while self.done.len() > 1 && (self.bytes > BYTES_MAX || self.done.len() > EDITS_MAX) {
            let oldest = self.done.pop_front();
            self.bytes -= oldest.map_or(0, |edit| edit.bytes());
        }
    }

    /// Adds typed text to the last edit, if that edit ends at `at`.
    pub fn join(&mut self, at: Position, text: &str, after: Position) -> bool {
        let Some(last) = self.done.back_mut() else {
            return false;
        };
        if last.at.after(&last.inserted) != at {
            return false;
        }
        last.inserted.push_str(text);
        last.after = after;
        self.bytes += text.len();
        self.undone.clear();
        true
    }

    /// Removes and returns the last edit, to undo it without redo.
    pub fn pop(&mut self) -> Option<Edit> {
        let edit = self.done.pop_back()?;
        self.bytes -= edit.bytes();
        Some(edit)
    }

    pub fn undo(&mut self) -> Option<Edit> {
        let edit = self.pop()?;
        self.undone.push(edit.clone());
        Some(edit)
    }

    pub fn redo(&mut self) -> Option<Edit> {
        let edit = self.undone.pop()?;
        self.keep(edit.clone());
        Some(edit)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
