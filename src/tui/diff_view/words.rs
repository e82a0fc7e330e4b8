//! The words in which two lines differ.
//!
//! A common prefix and suffix are set aside first. In the middle the longest common subsequence of words is
//! found, if it is short enough; otherwise all of it differs. Lines with hardly anything in common get no
//! marks, which would only be noise.

use std::ops::Range;

/// Pairs of words compared for one pair of lines.
const PAIRS_MAX: usize = 1 << 14;

/// The bytes that differ, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub old: Vec<Range<usize>>,
    pub new: Vec<Range<usize>>,
}

pub fn compare(old: &str, new: &str) -> Marks {
    let (olds, news) = (words(old), words(new));
    let alike = |(a, b): &(&Word<'_>, &Word<'_>)| a.text == b.text;
    let before = olds.iter().zip(&news).take_while(alike).count();
    let (_, olds) = olds.split_at(before);
    let (_, news) = news.split_at(before);
    let after = olds.iter().rev().zip(news.iter().rev()).take_while(alike).count();
    let (olds, _) = olds.split_at(olds.len() - after);
    let (news, _) = news.split_at(news.len() - after);
    let (kept_old, kept_new) = match olds.len().saturating_mul(news.len()) <= PAIRS_MAX {
        true => common(olds, news),
        false => (vec![false; olds.len()], vec![false; news.len()]),
    };
    let marks = Marks { old: marks(olds, &kept_old, old), new: marks(news, &kept_new, new) };
    let size = |text: &str| text.bytes().filter(|byte| *byte != b' ').count();
    let changed = |marks: &[Range<usize>], text: &str| -> usize {
        let parts = marks.iter().filter_map(|mark| text.get(mark.clone()));
        parts.map(size).sum()
    };
    let is_noise = |marks: &[Range<usize>], text: &str| changed(marks, text) * 4 > size(text) * 3;
    match is_noise(&marks.old, old) && is_noise(&marks.new, new) {
        true => Marks::default(),
        false => marks,
    }
}

#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    start: usize,
    text: &'a str,
}

/// Splits a text into words, runs of white space, and other single characters.
fn words(text: &str) -> Vec<Word<'_>> {
    let class = |letter: char| match letter {
        _ if letter.is_alphanumeric() || letter == '_' => 1,
        _ if letter.is_whitespace() => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut letters = text.char_indices().peekable();
    while let Some((start, letter)) = letters.next() {
        let mut end = start + letter.len_utf8();
        let kind = class(letter);
        while let Some((at, next)) = letters.next_if(|(_, next)| kind > 0 && class(*next) == kind) {
            end = at + next.len_utf8();
        }
        let text = text.get(start..end).unwrap_or_default();
        words.push(Word { start, text });
    }
    words
}

/// Flags the words that belong to the longest common subsequence.
fn common(old: &[Word<'_>], new: &[Word<'_>]) -> (Vec<bool>, Vec<bool>) {
    let columns = new.len() + 1;
    // The length of the sequence from each pair of places on.
    let mut lengths = vec![0_u32; (old.len() + 1) * columns];
    let at = |lengths: &[u32], i: usize, j: usize| lengths.get(i * columns + j).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let longest = match a.text == b.text {
                true => at(&lengths, i + 1, j + 1) + 1,
                false => at(&lengths, i + 1, j).max(at(&lengths, i, j + 1)),
            };
            if let Some(length) = lengths.get_mut(i * columns + j) {
                *length = longest;
            }
        }
    }
    let (mut kept_old, mut kept_new) = (vec![false; old.len()], vec![false; new.len()]);
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (old.get(i), new.get(j)) {
        if a.text == b.text {
            if let (Some(old), Some(new)) = (kept_old.get_mut(i), kept_new.get_mut(j)) {
                (*old, *new) = (true, true);
            }
            (i, j) = (i + 1, j + 1);
        } else if at(&lengths, i + 1, j) >= at(&lengths, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    (kept_old, kept_new)
}

/// The bytes of words that were not kept, joined across blanks; without the indent.
fn marks(words: &[Word<'_>], kept: &[bool], text: &str) -> Vec<Range<usize>> {
    let indent = text.len() - text.trim_start().len();
    let mut marks: Vec<Range<usize>> = Vec::new();
    for (word, _) in words.iter().zip(kept).filter(|(_, kept)| !**kept) {
        let range = word.start.max(indent)..word.start + word.text.len();
        if range.is_empty() {
            continue;
        }
        match marks.last_mut() {
            Some(last) if is_blank(text, last.end..range.start) => last.end = range.end,
            _ => marks.push(range),
        }
    }
    marks
}

fn is_blank(text: &str, range: Range<usize>) -> bool {
    text.get(range).is_some_and(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(old: &str, new: &str, olds: &[&str], news: &[&str]) {
        let marks = compare(old, new);
        let parts = |marks: &[Range<usize>], text: &str| -> Vec<String> {
            marks.iter().map(|mark| text[mark.clone()].to_owned()).collect()
        };
        assert_eq!(parts(&marks.old, old), olds);
        assert_eq!(parts(&marks.new, new), news);
    }

    #[test]
    fn words_that_differ_are_found() {
        check("let a = 1;", "let a = 2;", &["1"], &["2"]);
        check("foo(a, b)", "foo(a, b, c)", &[], &[", c"]);
        check("the old one here now", "the new two here now", &["old one"], &["new two"]);
        check("  a b c", "    a b c", &[], &[]);
        check("x = f(a) + g(b)", "x = h(a) + g(c)", &["f", "b"], &["h", "c"]);
        check("same", "same", &[], &[]);
        check("", "", &[], &[]);
        // Nothing in common worth telling.
        check("alpha beta", "gamma delta", &[], &[]);
        check("a日b 日本 x y z", "a日b 本日 x y z", &["日本"], &["本日"]);
    }

    #[test]
    fn long_lines_are_bounded() {
        let old = "a b ".repeat(50_000);
        let new = format!("x {} y", "b a ".repeat(50_000));
        let marks = compare(&old, &new);
        assert!(marks.old.len() <= 1 && marks.new.len() <= 1);
    }

    proptest! {
        #[test]
        fn marks_are_in_order_and_what_is_left_is_the_same(
            old in "[ab ]{0,12}( ,日)?[ab ]{0,8}", new in "[ab ]{0,12}( ,日)?[ab ]{0,8}",
        ) {
            let marks = compare(&old, &new);
            let left = |marks: &[Range<usize>], text: &str| {
                let (mut left, mut at) = (String::new(), 0);
                for mark in marks {
                    assert!(mark.start >= at && mark.start < mark.end);
                    left += &text[at..mark.start];
                    at = mark.end;
                }
                left + &text[at..]
            };
            if marks != Marks::default() {
                let words = |text: String| text.replace(' ', "");
                prop_assert_eq!(words(left(&marks.old, &old)), words(left(&marks.new, &new)));
            }
        }
    }
}
