//! Edit distance between names, used for every "Did you mean".

/// Maximum characters that are compared.
const COMPARED_CHARS_MAX: usize = 64;

/// The compared characters of a text.
pub fn letters(text: &str) -> Vec<char> {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.take(COMPARED_CHARS_MAX).collect()
}

#[derive(Clone, Copy, PartialEq)]
pub enum Compare {
    Whole,
    /// With the most similar part of the other text.
    Within,
}

/// Number of insertions, deletions, changes and swaps of neighbours between `wanted` and `other`.
pub fn between(wanted: &[char], other: &[char], compare: Compare) -> usize {
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

    fn whole(a: &str, b: &str) -> usize {
        between(&letters(a), &letters(b), Compare::Whole)
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
            assert_eq!(whole(a, b), expected, "{a} {b}");
        }
        for (a, b, expected) in
            [("", "abc", 0), ("sonet", "claude-sonnet-5", 1), ("xyz", "abc", 3), ("bca", "xabcx", 1)]
        {
            let within = between(&letters(a), &letters(b), Compare::Within);
            assert_eq!(within, expected, "{a} within {b}");
        }
        let (long, longer) = ("a".repeat(100_000), "a".repeat(200_000));
        assert_eq!(whole(&long, &longer), 0);
    }

    proptest! {
        #[test]
        fn a_distance_is_symmetric_and_bounded(a in "[ab]{0,6}", b in "[ab]{0,6}") {
            prop_assert_eq!(whole(&a, &b), whole(&b, &a));
            prop_assert!(whole(&a, &b) <= a.len().max(b.len()));
            prop_assert_eq!(whole(&a, &b) == 0, a == b);
        }
    }
}
