//! Lays out text as screen rows, only as many as are shown.
//!
//! The cost depends on the rows shown, not on the length of the text, except for counting the hidden lines.

use crate::tui::line::Line;
use crate::tui::width::fit;
use crate::tui::wrap::wrap;
use std::collections::VecDeque;

/// The rows of a text that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    First(usize),
    Last(usize),
    All,
}

#[derive(Debug, Default)]
pub struct Rows {
    pub shown: Vec<Line>,
    /// Lines of the text that are not shown completely.
    pub hidden: usize,
}

/// Lays out `text`; `paint` colours the lines, and is called in their order.
pub fn rows(text: &str, width: usize, extent: Extent, paint: &mut dyn FnMut(&str) -> Line) -> Rows {
    let width = width.max(1);
    if text.is_empty() {
        return Rows::default();
    }
    match extent {
        Extent::All => {
            Rows { shown: text.lines().flat_map(|line| wrap(&paint(line), width)).collect(), hidden: 0 }
        }
        Extent::First(count) => first(text, width, count, paint),
        Extent::Last(count) => last(text, width, count, paint),
    }
}

fn first(text: &str, width: usize, count: usize, paint: &mut dyn FnMut(&str) -> Line) -> Rows {
    let mut shown = Vec::new();
    let mut taken = 0;
    for line in text.lines() {
        let left = count.saturating_sub(shown.len());
        if left == 0 {
            break;
        }
        let (part, _) = fit(line, (width + 1).saturating_mul(left + 1));
        let mut parts = wrap(&paint(part), width);
        let is_whole = parts.len() <= left && part.len() == line.len();
        parts.truncate(left);
        shown.append(&mut parts);
        if !is_whole {
            break;
        }
        taken += 1;
    }
    Rows { shown, hidden: text.lines().count() - taken }
}

fn last(text: &str, width: usize, count: usize, paint: &mut dyn FnMut(&str) -> Line) -> Rows {
    // Each with its line, and whether the line begins with it.
    let mut shown: VecDeque<(usize, bool, Line)> = VecDeque::new();
    let start = last_lines(text, count);
    let mut number = text.get(..start).unwrap_or_default().lines().count();
    for line in text.get(start..).unwrap_or_default().lines() {
        let part = end_of(line, width.saturating_mul(count + 1));
        let mut begins = part.len() == line.len();
        for row in wrap(&paint(part), width) {
            shown.push_back((number, std::mem::take(&mut begins), row));
        }
        while shown.len() > count {
            shown.pop_front();
        }
        number += 1;
    }
    Rows {
        hidden: match shown.front() {
            Some(&(number, begins, _)) => number + usize::from(!begins),
            None => number,
        },
        shown: shown.into_iter().map(|(.., row)| row).collect(),
    }
}

/// Byte offset at which the last `count` lines begin.
pub fn last_lines(text: &str, count: usize) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    match count.checked_sub(1) {
        None => text.len(),
        Some(breaks) => memchr::memrchr_iter(b'\n', body.as_bytes()).nth(breaks).map_or(0, |at| at + 1),
    }
}

/// Maximum bytes of a line that are laid out: of a longer line only the end, wherever its rows would begin.
const LINE_MAX: usize = 16 << 10;

/// The end of a line, at least `cells` wide if the line is.
fn end_of(line: &str, cells: usize) -> &str {
    let bytes = cells.saturating_mul(4).max(LINE_MAX);
    let mut start = line.len().saturating_sub(bytes);
    while !line.is_char_boundary(start) {
        start += 1;
    }
    line.get(start..).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::style::Style;
    use proptest::prelude::*;

    fn texts(text: &str, width: usize, extent: Extent) -> (Vec<String>, usize) {
        let rows = rows(text, width, extent, &mut |line| Line::of(line, Style::PLAIN));
        let shown = rows.shown.iter().map(|row| row.text().to_owned());
        (shown.collect(), rows.hidden)
    }

    #[track_caller]
    fn check(text: &str, width: usize, extent: Extent, expected: &[&str], hidden: usize) {
        let expected = expected.iter().map(|row| (*row).to_owned()).collect();
        assert_eq!(texts(text, width, extent), (expected, hidden), "{extent:?}");
    }

    #[test]
    fn only_some_rows_are_shown_and_the_rest_is_counted() {
        let text = "one\ntwo\nthree four\nfive";
        check(text, 20, Extent::All, &["one", "two", "three four", "five"], 0);
        check(text, 20, Extent::First(2), &["one", "two"], 2);
        check(text, 20, Extent::First(4), &["one", "two", "three four", "five"], 0);
        check(text, 5, Extent::First(3), &["one", "two", "three"], 2);
        check(text, 5, Extent::Last(2), &["four", "five"], 3);
        check(text, 5, Extent::Last(3), &["three", "four", "five"], 2);
        check(text, 20, Extent::Last(9), &["one", "two", "three four", "five"], 0);
        check("a\nb\n", 5, Extent::Last(1), &["b"], 1);
        check("", 5, Extent::First(3), &[], 0);
        check(text, 5, Extent::First(0), &[], 4);
        check(text, 5, Extent::Last(0), &[], 4);
    }

    #[test]
    fn a_line_without_an_end_costs_no_more_than_its_rows() {
        let text = "x".repeat(1 << 20);
        let mut seen = 0;
        for extent in [Extent::First(3), Extent::Last(3)] {
            let rows = rows(&text, 10, extent, &mut |line| {
                seen += line.len();
                Line::of(line, Style::PLAIN)
            });
            assert_eq!((rows.shown.len(), rows.hidden), (3, 1));
        }
        assert!(seen < 2 * LINE_MAX, "{seen}");
    }

    proptest! {
        #[test]
        fn folds_are_parts_of_the_whole(text in "([ab日]{0,6}[ \n]?[ab日]){0,12}", width in 2usize..8, count in 0usize..6) {
            let (all, _) = texts(&text, width, Extent::All);
            let (first, _) = texts(&text, width, Extent::First(count));
            prop_assert_eq!(&first[..], &all[..count.min(all.len())]);
            let (last, hidden) = texts(&text, width, Extent::Last(count));
            prop_assert_eq!(&last[..], &all[all.len() - count.min(all.len())..]);
            prop_assert_eq!(hidden == 0, count >= all.len());
        }
    }
}
