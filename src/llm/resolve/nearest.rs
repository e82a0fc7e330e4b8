//! What to say when there is no such model: the names that come near.

use super::Usable;
use crate::llm::models::ModelName;
use std::collections::HashSet;

const SHOWN_MAX: usize = 5;

/// What comes after this is not compared.
const COMPARED_CHARS_MAX: usize = 64;

const HOW_TO_LIST: &str = "\"pi --list-models\" shows the models that can be used.";

pub fn unknown_model(text: &str, names: &[ModelName], usable: Usable<'_>) -> String {
    let near = among(text, names, usable);
    let near = if near.is_empty() {
        near
    } else {
        format!("Did you mean {near}? ")
    };
    format!("Model \"{text}\" not found. {near}{HOW_TO_LIST}")
}

pub fn unknown_provider(text: &str, providers: &[&str]) -> String {
    let wanted = letters(text);
    let mut near: Vec<(usize, &str)> = providers
        .iter()
        .map(|name| (distance(&wanted, &letters(name), Compare::Whole), *name))
        .filter(|(distance, _)| *distance <= wanted.len() / 3)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let near: Vec<&str> = near.iter().take(SHOWN_MAX).map(|(_, name)| *name).collect();
    let near = if near.is_empty() {
        format!("There are {}.", providers.join(", "))
    } else {
        format!("Did you mean {}?", near.join(", "))
    };
    format!("Unknown provider \"{text}\". {near} {HOW_TO_LIST}")
}

/// The models in whose `provider/id` something like `text` occurs, those that can be used first, then
/// the nearest; a model that several providers have is shown once.
pub fn among(text: &str, names: &[ModelName], usable: Usable<'_>) -> String {
    let text = super::split_level(text).map_or(text, |(id, _)| id);
    let wanted = letters(text.trim());
    if wanted.is_empty() {
        return String::new();
    }
    let mut near: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let full = letters(&name.full());
            let within = distance(&wanted, &full, Compare::Within);
            (within <= wanted.len() / 5).then(|| {
                let whole = distance(&wanted, &full, Compare::Whole);
                ((!usable(&name.provider), within, whole), name)
            })
        })
        .collect();
    near.sort_by_key(|(key, _)| *key);
    let mut seen = HashSet::new();
    near.retain(|(_, name)| seen.insert(own_part(&name.id).to_lowercase()));
    let shown: Vec<String> = near
        .iter()
        .take(SHOWN_MAX)
        .map(|(_, name)| name.full())
        .collect();
    shown.join(", ")
}

/// An id without the maker that routers put before it.
fn own_part(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(_, part)| part)
}

fn letters(text: &str) -> Vec<char> {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.take(COMPARED_CHARS_MAX).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Compare {
    Whole,
    /// With that part of the other text which is nearest.
    Within,
}

/// How many letters of `wanted` must be put in, taken out, changed, or exchanged with their neighbour.
fn distance(wanted: &[char], other: &[char], compare: Compare) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut row: Vec<usize> = match compare {
        Compare::Whole => (0..=other.len()).collect(),
        Compare::Within => before.clone(),
    };
    let mut last = None;
    for (i, &x) in wanted.iter().enumerate() {
        let mut next = vec![i + 1; other.len() + 1];
        for (j, &y) in other.iter().enumerate() {
            let change = row[j] + usize::from(x != y);
            next[j + 1] = change.min(row[j + 1] + 1).min(next[j] + 1);
            if j > 0 && last == Some(y) && other[j - 1] == x {
                next[j + 1] = next[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
        last = Some(x);
    }
    match compare {
        Compare::Whole => row[other.len()],
        Compare::Within => row.into_iter().min().unwrap_or(wanted.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn between(a: &str, b: &str) -> usize {
        distance(&letters(a), &letters(b), Compare::Whole)
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("ABC", "abc", 0),
            ("kitten", "sitting", 3),
            ("gtp", "gpt", 1),
            ("cladue", "claude", 1),
            ("é", "e", 1),
        ] {
            assert_eq!(between(a, b), expected, "{a} {b}");
        }
        for (a, b, expected) in [
            ("", "abc", 0),
            ("sonet", "claude-sonnet-5", 1),
            ("xyz", "abc", 3),
            ("bca", "xabcx", 1),
        ] {
            let within = distance(&letters(a), &letters(b), Compare::Within);
            assert_eq!(within, expected, "{a} within {b}");
        }
        let (long, longer) = ("a".repeat(100_000), "a".repeat(200_000));
        assert_eq!(between(&long, &longer), 0);
    }

    proptest! {
        #[test]
        fn a_distance_is_symmetric_and_bounded(a in "[ab]{0,6}", b in "[ab]{0,6}") {
            prop_assert_eq!(between(&a, &b), between(&b, &a));
            prop_assert!(between(&a, &b) <= a.len().max(b.len()));
            prop_assert_eq!(between(&a, &b) == 0, a == b);
        }
    }
}
