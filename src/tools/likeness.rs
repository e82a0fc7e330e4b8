//! Similarity of two short texts, for "did you mean".

use std::collections::HashMap;

/// Compares many texts with one, by shared pairs of adjacent characters.
pub struct Likeness {
    pairs: HashMap<(char, char), usize>,
    count: usize,
}

impl Likeness {
    pub fn to(text: &str) -> Self {
        let mut pairs = HashMap::new();
        let mut count = 0;
        for pair in pairs_of(text) {
            *pairs.entry(pair).or_default() += 1;
            count += 1;
        }
        Self { pairs, count }
    }

    /// Similarity of `text` from 0 to 100 (100: equal pairs).
    pub fn percent(&self, text: &str) -> usize {
        let mut used: HashMap<(char, char), usize> = HashMap::new();
        let (mut shared, mut count) = (0, 0);
        for pair in pairs_of(text) {
            count += 1;
            if let Some(&known) = self.pairs.get(&pair) {
                let used = used.entry(pair).or_default();
                shared += usize::from(*used < known);
                *used += 1;
            }
        }
        200 * shared / (count + self.count).max(1)
    }
}

fn pairs_of(text: &str) -> impl Iterator<Item = (char, char)> {
    text.chars().zip(text.chars().skip(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pairs_make_texts_alike() {
        for (one, other, percent) in [
            ("read.rs", "read.rs", 100),
            ("night", "nacht", 25),
            ("aaaa", "aa", 50),
            ("aa", "aaaa", 50),
            ("abc", "xyz", 0),
            ("a", "a", 0),
            ("", "", 0),
        ] {
            assert_eq!(Likeness::to(one).percent(other), percent, "{one} {other}");
        }
    }
}
