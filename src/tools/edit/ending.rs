//! Line endings of a replacement.
//!
//! A model writes `\n`, whatever the file uses. Kept lines keep their endings, the others get those of the
//! lines that they replace, or of their neighbours: a file with one kind of ending keeps it, and a mixed file
//! stays mixed only where it was.

use memchr::{memchr, memrchr};
use std::ops::Range;

/// A line, and the ending after it: empty for the last one.
struct Line<'a> {
    text: &'a [u8],
    ending: &'a [u8],
}

/// `new` with the line endings for replacing `span`.
pub fn adapt(new: &str, body: &[u8], span: &Range<usize>) -> Vec<u8> {
    let new_lines = lines(new.as_bytes(), false);
    if new_lines.len() == 1 {
        return new.as_bytes().to_vec();
    }
    // Lone carriage returns end lines only in files that have nothing else.
    let lone_cr = memchr(b'\n', body).is_none();
    let old_lines = lines(body.get(span.clone()).unwrap_or_default(), lone_cr);
    let shorter = old_lines.len().min(new_lines.len());
    let same = |(old, new): &(&Line<'_>, &Line<'_>)| old.text == new.text;
    let pairs = old_lines.iter().zip(&new_lines);
    let first = pairs.take_while(same).count();
    let pairs = old_lines.iter().rev().zip(new_lines.iter().rev());
    let last = pairs.take_while(same).count().min(shorter - first);
    let replaced = old_lines.get(first..old_lines.len() - last).unwrap_or_default();
    let ended = |line: &&Line<'_>| !line.ending.is_empty();
    let neighbour = replaced
        .iter()
        .rfind(ended)
        .or_else(|| old_lines.iter().take(first).rfind(ended))
        .or_else(|| old_lines.iter().find(ended))
        .map(|line| line.ending)
        .or_else(|| ending_near(body, span, lone_cr));

    let mut out = Vec::with_capacity(new.len());
    for (at, line) in new_lines.iter().enumerate() {
        out.extend_from_slice(line.text);
        if line.ending.is_empty() {
            continue;
        }
        let old = if at < first {
            old_lines.get(at)
        } else if at + last >= new_lines.len() {
            old_lines.get(at + old_lines.len() - new_lines.len())
        } else {
            replaced.get(at - first)
        };
        let old = old.filter(ended).map(|line| line.ending);
        out.extend_from_slice(old.or(neighbour).unwrap_or(line.ending));
    }
    out
}

/// The lines of a text; the last one is without an ending.
fn lines(mut text: &[u8], lone_cr: bool) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    while let Some(at) = memchr(if lone_cr { b'\r' } else { b'\n' }, text) {
        let (line, rest) = text.split_at(at + 1);
        let length = if line.ends_with(b"\r\n") { 2 } else { 1 };
        let (line, ending) = line.split_at(line.len() - length);
        lines.push(Line { text: line, ending });
        text = rest;
    }
    lines.push(Line { text, ending: b"" });
    lines
}

/// The ending of the line in which the span ends, otherwise of the previous line.
fn ending_near<'a>(body: &'a [u8], span: &Range<usize>, lone_cr: bool) -> Option<&'a [u8]> {
    let sign = if lone_cr { b'\r' } else { b'\n' };
    let after = memchr(sign, body.get(span.end..)?).map(|at| span.end + at);
    let end = after.or_else(|| memrchr(sign, body.get(..span.start)?))? + 1;
    let start = match body.get(..end)?.ends_with(b"\r\n") {
        true => end - 2,
        false => end - 1,
    };
    body.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces `[…]` in `body` by `new`.
    #[track_caller]
    fn check(body: &str, new: &str, expected: &str) {
        let (before, rest) = body.split_once('[').unwrap();
        let (old, after) = rest.split_once(']').unwrap();
        let span = before.len()..before.len() + old.len();
        let body = format!("{before}{old}{after}");
        let new = String::from_utf8(adapt(new, body.as_bytes(), &span)).unwrap();
        assert_eq!(format!("{before}{new}{after}"), expected);
    }

    #[test]
    fn new_lines_end_as_their_neighbours() {
        check("a\r\n[b]\r\nc", "1\n2", "a\r\n1\r\n2\r\nc");
        check("a\r\n[b]", "1\n2", "a\r\n1\r\n2");
        check("a\n[b]\nc", "1\r\n2", "a\n1\n2\nc");
        check("[b]\r\nc\nd", "1\n2", "1\r\n2\r\nc\nd");
        check("a\r[b]\rc", "1\n2", "a\r1\r2\rc");
        check("a\r[b]\nc", "1\n2", "a\r1\n2\nc");
    }

    #[test]
    fn a_file_without_endings_takes_those_given() {
        check("[a]", "1\r\n2\n3", "1\r\n2\n3");
        check("[a]", "1\r2", "1\r2");
    }

    #[test]
    fn lines_that_stay_keep_their_endings() {
        check("[a\r\nb\nc\r\nd\n]e", "a\nB\nc\nd\n", "a\r\nB\nc\r\nd\ne");
        check("[a\r\nb\nc\r\n]", "a\nb\nnew\nc\n", "a\r\nb\nnew\nc\r\n");
        check("[a\nb\r\nc\n]", "a\n1\n2\n3\nc\n", "a\n1\r\n2\r\n3\r\nc\n");
        check("[a\r\nb\n]", "b\n", "b\n");
        check("[a\r\nb\n]", "", "");
        check("[a\nb]\r\n", "a\nb\nc", "a\nb\nc\r\n");
    }
}
