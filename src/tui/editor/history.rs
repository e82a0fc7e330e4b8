//! The history of prompts.

use std::collections::VecDeque;

const PROMPTS_MAX: usize = 100;

#[derive(Debug, Default)]
pub struct History {
    /// Prompts, the newest first.
    prompts: VecDeque<String>,
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
        self.prompts.push_front(prompt.to_owned());
        self.prompts.truncate(PROMPTS_MAX);
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        self.prompts.get(index).map(String::as_str)
    }

    /// The next prompt that begins with `prefix` and differs from the one shown.
    pub fn step(&self, from: Option<usize>, direction: Direction, prefix: &str) -> Option<usize> {
        let shown = from.and_then(|index| self.get(index)).unwrap_or(prefix);
        let fits = |index: &usize| {
            let prompt = self.get(*index).unwrap_or_default();
            prompt.starts_with(prefix) && (prefix.is_empty() || prompt != shown)
        };
        match (direction, from) {
            (Direction::Older, _) => (from.map_or(0, |index| index + 1)..self.prompts.len()).find(fits),
            (Direction::Newer, from) => (0..from?).rev().find(fits),
        }
    }

    /// The newest prompt from `first` on that contains `query`, ignoring case.
    pub fn search(&self, first: usize, query: &str) -> Option<usize> {
        let query = query.to_lowercase();
        let fits =
            |index: &usize| self.get(*index).is_some_and(|prompt| prompt.to_lowercase().contains(&query));
        (first..self.prompts.len()).find(fits)
    }
}
