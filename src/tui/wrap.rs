//! Breaks lines at a width.
//!
//! Lines break at the last white space that fits, which is omitted; between characters of scripts without
//! spaces; or inside a word that is longer than the width. A cluster that is wider than the width gets a row
//! of its own, cut by the renderer: nothing is lost and nothing loops.

use super::line::Line;
use super::width::clusters;
use std::ops::Range;

/// The rows of `line` at a width of `cells`; at least one.
pub fn wrap(line: &Line, cells: usize) -> Vec<Line> {
    if line.width() <= cells {
        return vec![line.clone()];
    }
    rows(line.text(), cells).into_iter().map(|row| line.slice(row)).collect()
}

/// The bytes of each row, at least one row. White space at a break belongs to no row.
pub fn rows(text: &str, cells: usize) -> Vec<Range<usize>> {
    let cells = cells.max(1);
    let mut rows = Vec::new();
    let mut row = Row::begin(0);
    for (start, cluster, width) in clusters(text) {
        let is_space = is_space(cluster);
        if row.width + width > cells && !row.is_empty(start) {
            if is_space {
                // What follows begins the next row, without the spaces before it.
                rows.push(row.start..row.last_end.min(start));
                row = Row::begin(start + cluster.len());
                row.skips = true;
                continue;
            }
            let chance = row.opportunity.take();
            match chance.filter(|chance| !chance.is_indent || word_fits(text, chance.next, cells)) {
                Some(chance) if chance.end > row.start => {
                    rows.push(row.start..chance.end);
                    row = Row {
                        start: chance.next,
                        width: row.width - chance.width,
                        last_end: row.last_end,
                        opportunity: None,
                        skips: false,
                    };
                    // The part after the break may itself be as wide as a row.
                    if row.width + width > cells && !row.is_empty(start) {
                        rows.push(row.start..start);
                        row = Row::begin(start);
                    }
                }
                _ => {
                    rows.push(row.start..start);
                    row = Row::begin(start);
                }
            }
        }
        if is_space && row.skips {
            row.start = start + cluster.len();
            continue;
        }
        row.skips = false;
        row.width += width;
        let end = start + cluster.len();
        if is_space {
            // Spaces at the beginning of a row are its indent.
            let is_indent = row.last_end == row.start;
            let before = if is_indent { end } else { row.last_end };
            row.opportunity = Some(Chance { end: before, next: end, width: row.width, is_indent });
        } else {
            row.last_end = end;
            if breaks_anywhere(cluster) {
                row.opportunity = Some(Chance { end, next: end, width: row.width, is_indent: false });
            }
        }
    }
    if row.start < text.len() || rows.is_empty() {
        rows.push(row.start..text.len());
    }
    rows
}

struct Row {
    start: usize,
    width: usize,
    /// End of the last cluster that is not a space.
    last_end: usize,
    opportunity: Option<Chance>,
    /// True to omit spaces before the first character.
    skips: bool,
}

/// A possible break.
struct Chance {
    /// End of the row.
    end: usize,
    /// Start of the next row.
    next: usize,
    /// Width of the row in cells.
    width: usize,
    /// True if the row would have only its indent: used if the next word then fits into a row.
    is_indent: bool,
}

impl Row {
    fn begin(start: usize) -> Self {
        Self { start, width: 0, last_end: start, opportunity: None, skips: false }
    }

    fn is_empty(&self, at: usize) -> bool {
        at <= self.start
    }
}

/// True if the word at byte `at` is at most `cells` wide.
fn word_fits(text: &str, at: usize, cells: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let mut width = 0;
    for (_, cluster, cells_of) in clusters(rest) {
        width += cells_of;
        if is_space(cluster) || width > cells {
            return is_space(cluster);
        }
    }
    true
}

fn is_space(cluster: &str) -> bool {
    cluster.as_bytes().first() == Some(&b' ')
}

/// True for scripts without spaces between words.
pub(super) fn breaks_anywhere(cluster: &str) -> bool {
    let letter = cluster.chars().next().map_or(0, u32::from);
    matches!(letter, 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xff00..=0xffef | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::width;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, cells: usize, expected: &[&str]) {
        let rows: Vec<&str> = rows(text, cells).into_iter().map(|row| &text[row]).collect();
        assert_eq!(rows, expected, "{text:?} at {cells}");
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        check("", 5, &[""]);
        check("one two", 7, &["one two"]);
        check("one two", 6, &["one", "two"]);
        check("one two", 3, &["one", "two"]);
        check("one two three", 7, &["one two", "three"]);
        check("one  two", 4, &["one", "two"]);
        check("one two ", 7, &["one two"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("ab cdefgh", 4, &["ab", "cdef", "gh"]);
        check("  indented text", 10, &["  indented", "text"]);
        check("      aaaaaaaaaaaa", 12, &["      ", "aaaaaaaaaaaa"]);
        check("  aaaa bb", 5, &["  ", "aaaa", "bb"]);
        check("  aaaaaaa", 5, &["  aaa", "aaaa"]);
        check("  aaaaaaa b", 5, &["  aaa", "aaaa", "b"]);
        check("a       bbbb", 5, &["a", "bbbb"]);
        check("日本語です", 5, &["日本", "語で", "す"]);
        check("a日本", 3, &["a日", "本"]);
        check("日", 1, &["日"]);
        check("日本", 1, &["日", "本"]);
        check("a b c d", 1, &["a", "b", "c", "d"]);
        check("x", 0, &["x"]);
    }

    proptest! {
        #[test]
        fn rows_fit_and_lose_only_spaces(text in "[a-c 日é👨]{0,40}", cells in 2usize..12) {
            let rows = rows(&text, cells);
            let mut end = 0;
            for row in &rows {
                prop_assert!(text[end..row.start].bytes().all(|byte| byte == b' '));
                prop_assert!(width::width(text[row.clone()].trim_end()) <= cells, "{:?}", &text[row.clone()]);
                end = row.end;
            }
            prop_assert!(text[end..].bytes().all(|byte| byte == b' '));
        }
    }
}
