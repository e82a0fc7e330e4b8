//! The kill ring: deleted text that can be yanked.

use std::collections::VecDeque;

const ENTRIES_MAX: usize = 60;

#[derive(Debug, Default)]
pub struct KillRing {
    /// Killed texts; the last is yanked next.
    entries: VecDeque<String>,
}

impl KillRing {
    /// Stores killed text; consecutive kills are joined into one entry, in the order of the text.
    pub fn push(&mut self, text: &str, is_backward: bool, joins: bool) {
        match self.entries.back_mut().filter(|_| joins) {
            Some(last) if is_backward => last.insert_str(0, text),
            Some(last) => last.push_str(text),
            None => {
                self.entries.push_back(text.to_owned());
                if self.entries.len() > ENTRIES_MAX {
                    self.entries.pop_front();
                }
            }
        }
    }

    pub fn last(&self) -> Option<&str> {
        self.entries.back().map(String::as_str)
    }

    /// Rotates the ring by one entry; false if there is only one.
    pub fn rotate(&mut self) -> bool {
        self.entries.rotate_right(usize::from(self.entries.len() > 1));
        self.entries.len() > 1
    }

    pub fn for_each(&mut self, change: impl FnMut(&mut String)) {
        self.entries.iter_mut().for_each(change);
    }
}
