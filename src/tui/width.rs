//! Width of text in cells.
//!
//! Text is measured in grapheme clusters: an emoji of several code points, a flag, a letter with its accents
//! are one each. Some terminals count otherwise; the renderer never relies on the cursor position after a
//! line.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Width of a text without control characters, in cells.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(cluster_width).sum()
}

/// The clusters of a text, each with its byte offset and width in cells.
pub fn clusters(text: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let cluster = match *rest.as_bytes() {
            // Between two such characters every text can be cut.
            [b' '..=b'~'] | [b' '..=b'~', b' '..=b'~', ..] => rest.get(..1)?,
            _ => rest.graphemes(true).next()?,
        };
        let start = at;
        at += cluster.len();
        Some((start, cluster, cluster_width(cluster)))
    })
}

fn cluster_width(cluster: &str) -> usize {
    match cluster.len() {
        1 => 1,
        // Half of a flag: drawn as wide as the flag, which it becomes with the next chunk of an answer.
        4 if cluster.starts_with(|c| ('\u{1f1e6}'..='\u{1f1ff}').contains(&c)) => 2,
        // No cluster is wider than two cells in terminals that draw one as a character.
        _ => cluster.width().min(2),
    }
}

/// The longest prefix of `text` that fits into `cells`, and its width.
pub fn fit(text: &str, cells: usize) -> (&str, usize) {
    if text.is_ascii() {
        let end = text.len().min(cells);
        return (text.get(..end).unwrap_or(text), end);
    }
    let mut taken = 0;
    for (start, _, width) in clusters(text) {
        if taken + width > cells {
            return (text.get(..start).unwrap_or(text), taken);
        }
        taken += width;
    }
    (text, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_take_the_cells_that_people_see() {
        for (text, cells) in [
            ("", 0),
            ("abc", 3),
            ("日本", 4),
            ("e\u{301}", 1),
            ("👨\u{200d}👩\u{200d}👧", 2),
            ("🇩🇪", 2),
            ("🇩", 2),
            ("❤\u{fe0f}", 2),
            ("a\u{200b}b", 2),
            ("👍🏽", 2),
            ("한국", 4),
            ("ｱ", 1),
        ] {
            assert_eq!(width(text), cells, "{text:?}");
            assert_eq!(clusters(text).map(|(.., width)| width).sum::<usize>(), cells);
        }
    }

    #[test]
    fn clusters_are_those_of_unicode() {
        for text in
            ["", "ab", "a\r\nb", "ae\u{301}b ", " \u{301}", "🇩🇪🇩🇪🇩a", "👨\u{200d}👩x", "한국 y", "\u{600}a b"]
        {
            let expected: Vec<_> = text.grapheme_indices(true).collect();
            let found: Vec<_> = clusters(text).map(|(start, cluster, _)| (start, cluster)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_fits_is_never_wider_and_never_a_part_of_a_character() {
        let text = "a日e\u{301}👨\u{200d}👩\u{200d}👧z";
        for cells in 0..10 {
            let (part, taken) = fit(text, cells);
            assert_eq!(width(part), taken);
            assert!(taken <= cells);
            assert!(text.starts_with(part));
        }
        assert_eq!(fit("abc", 2), ("ab", 2));
        assert_eq!(fit("日本", 3), ("日", 2));
    }
}
