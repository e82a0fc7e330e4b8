//! The history of prompts: those typed here, then earlier ones from a source, which is read as far as needed.
//!
//! Of earlier prompts those that are near (of the same folder, say) come first, then all others. Each text
//! comes once.

use std::collections::{HashSet, VecDeque};
use std::fmt;

/// Maximum number of prompts typed here.
const PROMPTS_MAX: usize = 1000;

/// Earlier prompts, the newest first, each with whether it is near.
pub type Earlier = Box<dyn Iterator<Item = (bool, String)> + Send>;

#[derive(Default)]
pub struct History {
    /// Prompts, the newest first: those typed here, then near ones of the source, at its end all others.
    prompts: VecDeque<String>,
    earlier: Option<Earlier>,
    /// Prompts of the source that are not near.
    far: Vec<String>,
    /// Texts that a prompt of the source may not repeat; empty until the source is read.
    seen: HashSet<String>,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("prompts", &self.prompts).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Older,
    Newer,
}

impl History {
    pub fn add(&mut self, prompt: &str) {
        let prompt = prompt.trim();
        if prompt.is_empty() || self.prompts.front().is_some_and(|last| last == prompt) {
            return;
        }
        // Where it was before, it would be met a second time.
        if !self.seen.is_empty() {
            self.prompts.retain(|earlier| earlier != prompt);
        }
        self.prompts.push_front(prompt.to_owned());
        // What the source gave stands behind what was typed.
        if self.seen.is_empty() {
            self.prompts.truncate(PROMPTS_MAX);
        }
    }

    pub fn add_earlier(&mut self, earlier: Earlier) {
        self.earlier = Some(earlier);
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        self.prompts.get(index).map(String::as_str)
    }

    /// Reads the source until there are `count` prompts, or to its end.
    fn fill(&mut self, count: usize) {
        let Some(earlier) = &mut self.earlier else { return };
        if self.prompts.len() >= count {
            return;
        }
        if self.seen.is_empty() {
            self.seen.extend(self.prompts.iter().cloned());
        }
        while self.prompts.len() < count {
            match earlier.next() {
                Some((_, text)) if !self.seen.insert(text.clone()) => {}
                Some((true, text)) => self.prompts.push_back(text),
                Some((false, text)) => self.far.push(text),
                None => {
                    self.earlier = None;
                    self.prompts.extend(std::mem::take(&mut self.far));
                    return;
                }
            }
        }
    }

    /// The next prompt that begins with `prefix` and differs from the one shown.
    pub fn step(&mut self, from: Option<usize>, direction: Direction, prefix: &str) -> Option<usize> {
        let shown = from.and_then(|index| self.get(index)).unwrap_or(prefix).to_owned();
        let mut index = from;
        loop {
            index = match direction {
                Direction::Older => Some(index.map_or(0, |index| index + 1)),
                Direction::Newer => index?.checked_sub(1),
            };
            self.fill(index? + 1);
            let prompt = self.get(index?)?;
            if prompt.starts_with(prefix) && (prefix.is_empty() || prompt != shown) {
                return index;
            }
        }
    }

    /// The prompts that contain `query`, ignoring case, the newest first.
    pub fn search(&mut self, query: &str) -> Vec<usize> {
        self.fill(usize::MAX);
        let query = query.to_lowercase();
        let prompts = self.prompts.iter().enumerate();
        prompts.filter(|(_, prompt)| prompt.to_lowercase().contains(&query)).map(|(index, _)| index).collect()
    }
}
