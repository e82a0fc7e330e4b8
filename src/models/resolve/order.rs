//! The order of model names, which also decides which of several is the highest.
//!
//! The reference sorts with JavaScript's `localeCompare`, by the Unicode collation: punctuation, then digits,
//! then letters regardless of case; lower case precedes upper case if names are otherwise equal. Implemented
//! for ASCII; other characters come last, by code point.

use std::cmp::Ordering;

/// ASCII characters that are neither letters nor digits, in collation order.
const PUNCTUATION: &[u8] = br##" _-,;:!?.'"()[]{}@*/\&#%`^+<=>|~$"##;

pub fn compare(a: &str, b: &str) -> Ordering {
    let weights = |text: &'_ str| text.chars().map(weight).collect::<Vec<u32>>();
    let by_case = || {
        // Lower-case letters have the greater code points.
        b.chars().cmp(a.chars())
    };
    weights(a).cmp(&weights(b)).then_with(by_case)
}

/// The rank of a character, ignoring its case.
fn weight(c: char) -> u32 {
    let c = c.to_ascii_lowercase();
    match u8::try_from(c) {
        Ok(b'0'..=b'9' | b'a'..=b'z') => 0x80 + u32::from(c),
        Ok(byte) => match memchr::memchr(byte, PUNCTUATION) {
            Some(place) => 1 + u32::try_from(place).unwrap_or(0),
            None => 0x100 + u32::from(c),
        },
        Err(_) => 0x100 + u32::from(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_in_the_order_of_the_reference() {
        // Sorted by `localeCompare`.
        let sorted = [
            "",
            "_a",
            "-a",
            ":a",
            ".a",
            "@cf/x",
            "/",
            "~anthropic/x",
            "0",
            "10",
            "2",
            "a",
            "A",
            "a-b",
            "a.b",
            "a/b",
            "a1",
            "aa",
            "aA",
            "Aa",
            "AA",
            "ab",
            "b",
            "gpt-4.1",
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-4o:batch",
            "gpt-5",
            "GPT-5",
            "gpt-5.1",
            "Z",
            "é",
        ];
        let mut wrong = sorted;
        wrong.reverse();
        wrong.sort_by(|a, b| compare(a, b));
        assert_eq!(wrong, sorted);
    }

    proptest! {
        #[test]
        fn only_equal_names_are_equal(a in "[a-cA-C1_.é-]{0,4}", b in "[a-cA-C1_.é-]{0,4}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b).is_eq(), a == b);
        }
    }
}
