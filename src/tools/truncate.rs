//! Truncates the output of tools for a model.
//!
//! Two limits apply, lines and bytes; the first to be exceeded truncates. Only whole lines are kept, except
//! that [`tail()`] shows the end of a last line that alone exceeds the limit. Lines are counted without the
//! empty piece after a final newline. [`Truncation`] is the `details.truncation` of the reference, field for
//! field.

use serde::Serialize;
use std::borrow::Cow;

/// Maximum lines of a result.
pub const MAX_LINES: usize = 2000;
/// Maximum bytes of a result.
pub const MAX_BYTES: usize = 50 * 1024;
/// Maximum characters (UTF-16 units) of a matching line in `grep`.
pub const MAX_MATCH_CHARS: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

impl Limits {
    pub const DEFAULT: Self = Self { lines: MAX_LINES, bytes: MAX_BYTES };

    /// For lists with a limit of their own. The number is JavaScript's largest safe integer, which the
    /// reference puts into `details`.
    pub const BYTES_ONLY: Self = Self { lines: 9_007_199_254_740_991, bytes: MAX_BYTES };
}

/// Size of a text that need not be in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines, without the empty one after a final newline.
    pub lines: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    pub content: String,
    pub truncated: bool,
    pub truncated_by: Option<TruncatedBy>,
    pub total_lines: u64,
    pub total_bytes: u64,
    pub output_lines: usize,
    pub output_bytes: usize,
    /// True if the one shown line is the end of a longer one.
    pub last_line_partial: bool,
    /// True if nothing is shown, since the first line alone is too long.
    pub first_line_exceeds_limit: bool,
    pub max_lines: usize,
    pub max_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TruncatedBy {
    Lines,
    Bytes,
}

/// Keeps the first lines of a text. `start` is all of it, or more than its first `limits.bytes` bytes.
pub fn head_of(start: &str, totals: Totals, limits: Limits) -> Truncation {
    if fits(totals, limits) {
        return whole(start, totals, limits);
    }
    let mut end = 0;
    let mut shown = 0;
    let mut by = TruncatedBy::Lines;
    let mut from = 0;
    for line in lines(start).take(limits.lines) {
        if from + line.len() > limits.bytes {
            by = TruncatedBy::Bytes;
            break;
        }
        end = from + line.len();
        from = end + 1;
        shown += 1;
    }
    let mut cut = cut(start[..end].to_owned(), shown, by, totals, limits);
    cut.first_line_exceeds_limit = shown == 0 && by == TruncatedBy::Bytes;
    cut
}

/// Keeps the last lines of a text. `end` is all of it, or more than its last `limits.bytes` bytes besides a
/// final newline.
pub fn tail_of(end: &str, totals: Totals, limits: Limits) -> Truncation {
    if fits(totals, limits) {
        return whole(end, totals, limits);
    }
    let text = end.strip_suffix('\n').unwrap_or(end);
    let mut start = text.len();
    let mut shown = 0;
    let mut by = TruncatedBy::Lines;
    let mut partial = false;
    for line in text.rsplit('\n').take(limits.lines) {
        let line_start = start - line.len() - usize::from(shown > 0);
        if text.len() - line_start > limits.bytes {
            by = TruncatedBy::Bytes;
            if shown == 0 {
                let least = text.len() - limits.bytes;
                start = (least..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
                shown = 1;
                partial = true;
            }
            break;
        }
        start = line_start;
        shown += 1;
    }
    let mut cut = cut(text[start..].to_owned(), shown, by, totals, limits);
    cut.last_line_partial = partial;
    cut
}

/// Truncates a line of `grep`; true if it was truncated.
pub fn line(line: &str, max_chars: usize) -> (Cow<'_, str>, bool) {
    if line.len() <= max_chars {
        return (Cow::Borrowed(line), false);
    }
    let mut units = 0;
    for (at, char) in line.char_indices() {
        units += char.len_utf16();
        if units > max_chars {
            return (Cow::Owned(format!("{}... [truncated]", &line[..at])), true);
        }
    }
    (Cow::Borrowed(line), false)
}

/// A size as `512B`, `50.0KB`, `1.2MB`.
pub fn size(bytes: u64) -> String {
    const KB: u64 = 1024;
    const MB: u64 = KB * KB;
    let tenths = |unit: u64| {
        let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..KB => format!("{bytes}B"),
        KB..MB => format!("{}KB", tenths(KB)),
        MB.. => format!("{}MB", tenths(MB)),
    }
}

/// The lines of `text`, without the empty one after a final newline. A `\r` stays in its line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let count = if text.is_empty() { 0 } else { usize::MAX };
    body.split('\n').take(count)
}

fn fits(totals: Totals, limits: Limits) -> bool {
    totals.lines <= limits.lines as u64 && totals.bytes <= limits.bytes as u64
}

fn whole(text: &str, totals: Totals, limits: Limits) -> Truncation {
    Truncation {
        content: text.to_owned(),
        truncated: false,
        truncated_by: None,
        total_lines: totals.lines,
        total_bytes: totals.bytes,
        output_lines: usize::try_from(totals.lines).unwrap_or(usize::MAX),
        output_bytes: text.len(),
        last_line_partial: false,
        first_line_exceeds_limit: false,
        max_lines: limits.lines,
        max_bytes: limits.bytes,
    }
}

fn cut(content: String, lines: usize, by: TruncatedBy, totals: Totals, limits: Limits) -> Truncation {
    Truncation {
        truncated: true,
        truncated_by: Some(by),
        output_lines: lines,
        output_bytes: content.len(),
        ..whole(&content, totals, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Limits = Limits { lines: 3, bytes: 10 };

    fn totals(text: &str) -> Totals {
        Totals { lines: lines(text).count() as u64, bytes: text.len() as u64 }
    }

    fn head(text: &str) -> Truncation {
        head_of(text, totals(text), SMALL)
    }

    fn tail(text: &str) -> Truncation {
        tail_of(text, totals(text), SMALL)
    }

    /// Checks the invariants of both ends, then the kept content and the limit that truncated it.
    #[track_caller]
    fn check(text: &str, expected_head: (&str, &str), expected_tail: (&str, &str)) {
        let describe = |cut: &Truncation| match cut.truncated_by {
            None => "-",
            Some(_) if cut.first_line_exceeds_limit => "first line",
            Some(_) if cut.last_line_partial => "part",
            Some(TruncatedBy::Lines) => "lines",
            Some(TruncatedBy::Bytes) => "bytes",
        };
        let (head, tail) = (head(text), tail(text));
        for cut in [&head, &tail] {
            assert_eq!(cut.truncated, cut.truncated_by.is_some());
            assert_eq!(cut.total_bytes, text.len() as u64);
            assert!(!cut.truncated || cut.output_bytes <= SMALL.bytes);
        }
        assert_eq!((head.content.as_str(), describe(&head)), expected_head);
        assert_eq!((tail.content.as_str(), describe(&tail)), expected_tail);
    }

    #[test]
    fn whole_lines_are_kept_from_either_end() {
        check("", ("", "-"), ("", "-"));
        check("a\nb\nc\n", ("a\nb\nc\n", "-"), ("a\nb\nc\n", "-"));
        check("a\nb\nc\nd", ("a\nb\nc", "lines"), ("b\nc\nd", "lines"));
        check("a\nb\nc\nd\n", ("a\nb\nc", "lines"), ("b\nc\nd", "lines"));
        check("aaaa\nbbbb\ncccc", ("aaaa\nbbbb", "bytes"), ("bbbb\ncccc", "bytes"));
        check("aaaaaaaaaaa\nb", ("", "first line"), ("b", "bytes"));
        check("a\nbbbbbbbbbbbc", ("a", "bytes"), ("bbbbbbbbbc", "part"));
        // A character is never split: the 10-byte limit falls inside the first `é`.
        check("éééééé", ("", "first line"), ("ééééé", "part"));
        check("aéééééé", ("", "first line"), ("ééééé", "part"));
        check("éééééa", ("", "first line"), ("éééé\u{61}", "part"));
        // Only the final newline passes the limit.
        check("0123456789\n", ("0123456789", "lines"), ("0123456789", "lines"));
    }

    #[test]
    fn the_json_is_that_of_the_reference() {
        let json = serde_json::to_string(&head("a\nb\nc\nd")).unwrap();
        assert_eq!(
            json,
            r#"{"content":"a\nb\nc","truncated":true,"truncatedBy":"lines","totalLines":4,"totalBytes":7,"outputLines":3,"outputBytes":5,"lastLinePartial":false,"firstLineExceedsLimit":false,"maxLines":3,"maxBytes":10}"#
        );
    }

    #[test]
    fn sizes_read_as_in_the_reference() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KB"),
            (1280, "1.3KB"),
            (51200, "50.0KB"),
            (1_048_575, "1024.0KB"),
            (1_258_291, "1.2MB"),
            (u64::MAX, "17592186044416.0MB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(line("abc", 3), (Cow::Borrowed("abc"), false));
        assert_eq!(line("ééé", 3), (Cow::Borrowed("ééé"), false));
        assert_eq!(line("abcd", 3).0, "abc... [truncated]");
        assert_eq!(line("ab😀", 3).0, "ab... [truncated]");
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_part_of_the_text(text in "[a-é\n]{0,40}") {
            let head = head(&text);
            prop_assert!(text.starts_with(&head.content));
            prop_assert!(head.output_lines <= SMALL.lines);
            let tail = tail(&text);
            prop_assert!(text.strip_suffix('\n').unwrap_or(&text).ends_with(&tail.content) || !tail.truncated);
            prop_assert!(tail.output_lines <= SMALL.lines);
            prop_assert_eq!(head.truncated, tail.truncated);
        }
    }
}
