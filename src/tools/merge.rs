//! Three-way merge of texts, line by line.

use super::diff::replaced;
use std::ops::Range;

/// Merges the changes from `base` to `one` and from `base` to `other`. `None` if both change the same lines, or
/// lines next to each other, in different ways.
pub fn merge(base: &str, one: &str, other: &str) -> Option<String> {
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let (ones, others) = (replaced(base, one), replaced(base, other));
    let (mut left, mut right) = (ones.iter().peekable(), others.iter().peekable());
    let mut merged = String::new();
    let mut at = 0;
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => {
                right.next();
                left.next()
            }
            (Some(a), Some(b)) if touch(&a.0, &b.0) => return None,
            (Some(a), Some(b)) if a.0.start > b.0.start => right.next(),
            (Some(_), _) => left.next(),
            (None, Some(_)) => right.next(),
        };
        let (range, text) = next?;
        merged.extend(lines.get(at..range.start)?.iter().copied());
        merged.push_str(text);
        at = range.end;
    }
    merged.extend(lines.get(at..)?.iter().copied());
    Some(merged)
}

fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_lines_are_joined_and_others_are_not() {
        let base = "a\nb\nc\nd\ne\nf\n";
        let rows = [
            // The end of the file counts as a line.
            ("A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nf\ng\n", Some("A\nb\nc\nd\ne\nf\ng\n")),
            ("a\nb\nc\ne\nf\n", "x\na\nb\nc\nd\ne\nF\n", Some("x\na\nb\nc\ne\nF\n")),
            ("a\nB\nc\nd\ne\nf\n", "a\nB\nc\nd\ne\nf\n", Some("a\nB\nc\nd\ne\nf\n")),
            ("a\nB\nc\nd\ne\nf\n", "a\nX\nc\nd\ne\nf\n", None),
            ("a\nB\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", None),
            ("a\nx\nb\nc\nd\ne\nf\n", "a\ny\nb\nc\nd\ne\nf\n", None),
            ("", "a\nb\nc\nd\ne\nF\n", None),
            ("", base, Some("")),
            (base, "a\nb\nc\nd\ne\nf", Some("a\nb\nc\nd\ne\nf")),
        ];
        for (one, other, expected) in rows {
            assert_eq!(merge(base, one, other).as_deref(), expected, "{one:?} {other:?}");
            assert_eq!(merge(base, other, one).as_deref(), expected, "{other:?} {one:?}");
        }
        assert_eq!(merge("", "new\n", "").as_deref(), Some("new\n"));
    }
}
