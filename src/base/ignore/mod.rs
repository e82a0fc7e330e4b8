//! The rules of one ignore file, indexed so that only a few are tried for an entry.

mod pattern;
#[cfg(test)]
mod tests;

use pattern::{Name, Pattern};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Rules {
    patterns: Vec<Pattern>,
    /// Indices into `patterns`, in ascending order.
    by_name: HashMap<Vec<u8>, Vec<u32>>,
    by_extension: HashMap<Vec<u8>, Vec<u32>>,
    others: Vec<u32>,
}

impl Rules {
    pub fn parse(text: &[u8]) -> Self {
        let mut rules = Self::default();
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for pattern in text.split(|byte| *byte == b'\n').filter_map(Pattern::parse) {
            let Ok(place) = u32::try_from(rules.patterns.len()) else {
                break;
            };
            let list = match pattern.name() {
                Name::Exactly(name) => rules.by_name.entry(name).or_default(),
                Name::Extension(extension) => rules.by_extension.entry(extension).or_default(),
                Name::Unknown => &mut rules.others,
            };
            list.push(place);
            rules.patterns.push(pattern);
        }
        rules
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether the last matching rule ignores an entry; `None` if no rule matches. `path` is relative to the
    /// folder of the rules and ends in `name`.
    pub fn verdict(&self, path: &[u8], name: &[u8], is_dir: bool) -> Option<bool> {
        let mut last: Option<u32> = None;
        let mut look = |places: &[u32]| {
            for &place in places.iter().rev() {
                if last.is_some_and(|last| place < last) {
                    break;
                }
                if self.patterns[place as usize].matches(path, name, is_dir) {
                    last = Some(place);
                    break;
                }
            }
        };
        if let Some(places) = self.by_name.get(name) {
            look(places);
        }
        if !self.by_extension.is_empty()
            && let Some(dot) = memchr::memrchr(b'.', name)
            && let Some(places) = self.by_extension.get(&name[dot + 1..])
        {
            look(places);
        }
        look(&self.others);
        last.map(|place| !self.patterns[place as usize].negated)
    }
}
