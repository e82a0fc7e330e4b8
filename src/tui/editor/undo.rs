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
    done: VecDeque<(u64, Edit)>,
    undone: Vec<(u64, Edit)>,
    bytes: usize,
    /// The group of the next edits, which are undone together. 0: each is undone alone.
    group: u64,
    /// Number of groups so far.
    groups: u64,
}

impl Undo {
    /// Begins a group of edits that are undone together, or ends grouping.
    pub fn group(&mut self, begins: bool) {
        self.groups += 1;
        self.group = if begins { self.groups } else { 0 };
    }

    pub fn push(&mut self, edit: Edit) {
        self.undone.clear();
        self.keep((self.group, edit));
    }

    fn keep(&mut self, entry: (u64, Edit)) {
        self.bytes += entry.1.bytes();
        self.done.push_back(entry);
        while self.done.len() > 1 && (self.bytes > BYTES_MAX || self.done.len() > EDITS_MAX) {
            let oldest = self.done.pop_front();
            self.bytes -= oldest.map_or(0, |(_, edit)| edit.bytes());
        }
    }

    /// Adds typed text to the last edit, if that edit ends at `at`.
    pub fn join(&mut self, at: Position, text: &str, after: Position) -> bool {
        let Some((group, last)) = self.done.back_mut() else {
            return false;
        };
        if *group != self.group || last.at.after(&last.inserted) != at {
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
        self.take().map(|(_, edit)| edit)
    }

    fn take(&mut self) -> Option<(u64, Edit)> {
        let entry = self.done.pop_back()?;
        self.bytes -= entry.1.bytes();
        Some(entry)
    }

    /// The edits to undo, in this order.
    pub fn undo(&mut self) -> Vec<Edit> {
        let mut edits = Vec::new();
        while let Some((group, edit)) = self.take() {
            self.undone.push((group, edit.clone()));
            edits.push(edit);
            if group == 0 || self.done.back().is_none_or(|(next, _)| *next != group) {
                break;
            }
        }
        edits
    }

    /// The edits to make again, in this order.
    pub fn redo(&mut self) -> Vec<Edit> {
        let mut edits = Vec::new();
        while let Some((group, edit)) = self.undone.pop() {
            self.keep((group, edit.clone()));
            edits.push(edit);
            if group == 0 || self.undone.last().is_none_or(|(next, _)| *next != group) {
                break;
            }
        }
        edits
    }

    pub fn clear(&mut self) {
        let (group, groups) = (self.group, self.groups);
        *self = Self { group, groups, ..Self::default() };
    }
}
