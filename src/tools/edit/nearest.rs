//! Finds the text of a file that is most similar to a missing one, and the difference.

use crate::agent::CancelToken;
use crate::tools::fold;
use crate::tools::likeness::Likeness;
use std::collections::HashMap;

/// Maximum bytes of a file that are searched.
const MAX_SEARCHED: usize = 4 << 20;
/// Maximum characters of a line that are compared and shown.
const MAX_COMPARED: usize = 400;
const MAX_SHOWN: usize = 80;
/// Letter pairs that a line must share to count as similar, in percent.
const MIN_LIKENESS: usize = 50;

/// A sentence about the text in `body` that is most similar to `wanted`; `None` if none is similar, or when
/// cancelled.
pub fn describe(body: &str, wanted: &str, cancel: &CancelToken) -> Option<String> {
    let mut end = body.len().min(MAX_SEARCHED);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    let have: Vec<&str> = body[..end].split('\n').map(without_cr).collect();
    let want: Vec<&str> = wanted.split('\n').map(without_cr).collect();
    let pair = by_equal_lines(&have, &want, cancel).or_else(|| by_likeness(&have, &want, cancel))?;
    // The line of the file that the first wanted line would be, counted from 0; it may not exist.
    let start = i64::try_from(pair.0).ok()? - i64::try_from(pair.1).ok()?;
    let last = want.len() - 1;
    for (at, want) in want.iter().enumerate() {
        let number = start + i64::try_from(at).ok()?;
        let line = usize::try_from(number).ok().and_then(|line| have.get(line));
        let Some(line) = line else {
            // Before the file there is nothing to compare with.
            if number < 0 {
                continue;
            }
            return Some(format!(
                "The nearest place is the end of the file, where oldText goes on with {}.",
                shown(want, 0)
            ));
        };
        // The first and the last line of a text may be parts of lines.
        let same = match (at == 0, at == last) {
            (true, true) => line.contains(want),
            (true, false) => line.ends_with(want),
            (false, true) => line.starts_with(want),
            (false, false) => line == want,
        };
        if !same {
            return Some(difference(number + 1, line, want));
        }
    }
    None
}

fn difference(number: i64, line: &str, want: &str) -> String {
    let place = format!("The nearest place is line {number}");
    let indent = |text: &str| text[..text.len() - text.trim_start().len()].to_owned();
    if line.trim() == want.trim() {
        let (part, have, want) = match indent(line) == indent(want) {
            false => ("indentation", indent(line), indent(want)),
            true => ("blanks at the end", after(line), after(want)),
        };
        return format!("{place}, with other {part}: {have:?} in the file, {want:?} in oldText.");
    }
    // The wanted line may be a part of the line, so that only what follows the indentation is at the
    // same place in both.
    let (line_text, want_text) = (line.trim_start(), want.trim_start());
    let same = line_text.chars().zip(want_text.chars());
    let same = same.take_while(|(have, want)| have == want).count();
    let sign = |text: &str| match text.chars().nth(same) {
        Some(char) if char.is_ascii_graphic() => format!("{char:?}"),
        Some(char) => format!("{char:?} (U+{:04X})", char as u32),
        None => "the end of the line".to_owned(),
    };
    format!(
        "{place}: the file has {}, oldText has {}. They first differ in {} against {}.",
        shown(line_text, same),
        shown(want_text, same),
        sign(line_text),
        sign(want_text),
    )
}

/// Describes the trailing blanks of a line.
fn after(line: &str) -> String {
    line[line.trim_end().len()..].to_owned()
}

/// A line in quotes with unusual characters escaped, cut to the part around `at` (in characters).
fn shown(line: &str, at: usize) -> String {
    let from = (at + MAX_SHOWN / 2).saturating_sub(MAX_SHOWN);
    let part: String = line.chars().skip(from).take(MAX_SHOWN).collect();
    let before = if from > 0 { "…" } else { "" };
    let cut = line.chars().nth(from + MAX_SHOWN).is_some();
    format!("{before}{part:?}{}", if cut { "…" } else { "" })
}

fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// A line without blanks, in lower case and folded.
fn key(line: &str) -> String {
    let mut key = String::new();
    for char in line.chars().take(MAX_COMPARED).filter(|char| !char.is_whitespace()) {
        fold::fold(char, &mut |part| key.extend(part.to_lowercase()));
    }
    key
}

/// Indices of an equal line in the file and in the wanted text, at the alignment with most equal lines.
fn by_equal_lines(have: &[&str], want: &[&str], cancel: &CancelToken) -> Option<(usize, usize)> {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for (at, line) in want.iter().enumerate() {
        wanted.entry(key(line)).or_insert(at);
    }
    wanted.remove("");
    // Each equal line votes for where the text would start; long lines say more than short ones.
    let mut votes: HashMap<i64, (usize, (usize, usize))> = HashMap::new();
    for (number, line) in have.iter().enumerate() {
        if cancel.is_cancelled() {
            return None;
        }
        let key = key(line);
        if let Some(&at) = wanted.get(&key) {
            let start = i64::try_from(number).ok()? - i64::try_from(at).ok()?;
            let vote = votes.entry(start).or_insert((0, (number, at)));
            vote.0 += key.chars().count();
        }
    }
    let best = votes.into_iter().max_by_key(|&(start, (weight, _))| (weight, -start));
    best.map(|(_, (_, pair))| pair)
}

/// Indices of the longest wanted line, and of the file's line that shares most letter pairs with it.
fn by_likeness(have: &[&str], want: &[&str], cancel: &CancelToken) -> Option<(usize, usize)> {
    let (at, longest) =
        want.iter().map(|line| key(line)).enumerate().max_by_key(|(at, key)| (key.len(), usize::MAX - at))?;
    let likeness = Likeness::to(&longest);
    let best = have
        .iter()
        .enumerate()
        .take_while(|_| !cancel.is_cancelled())
        .map(|(number, line)| (likeness.percent(&key(line)), number))
        .max_by_key(|&(likeness, number)| (likeness, usize::MAX - number))?;
    (best.0 >= MIN_LIKENESS).then_some((best.1, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        "fn one() {\n    let a = compute(1, 2);\n}\n\nfn two() {\n\tlet b = compute(3, 4);\n}\n";

    #[track_caller]
    fn check(wanted: &str, expected: Option<&str>) {
        assert_eq!(describe(BODY, wanted, &CancelToken::new()).as_deref(), expected, "{wanted:?}");
    }

    #[test]
    fn the_first_difference_is_named() {
        check(
            "    let b = compute(3, 4);",
            Some(
                r#"The nearest place is line 6, with other indentation: "\t" in the file, "    " in oldText."#,
            ),
        );
        check(
            "fn one() {\n    let a = compute(1,\u{a0}2);\n}",
            Some(
                r#"The nearest place is line 2: the file has "let a = compute(1, 2);", oldText has "let a = compute(1,\u{a0}2);". They first differ in ' ' (U+0020) against '\u{a0}' (U+00A0)."#,
            ),
        );
        check(
            "let b = compute(3, 5);",
            Some(
                r#"The nearest place is line 6: the file has "let b = compute(3, 4);", oldText has "let b = compute(3, 5);". They first differ in '4' against '5'."#,
            ),
        );
        check(
            "fn two() {\n\tlet b = compute(3, 4);\n}\n\nfn three() {",
            Some(r#"The nearest place is the end of the file, where oldText goes on with "fn three() {"."#),
        );
        check("something else altogether", None);
        check("   \n\n", None);
    }

    #[test]
    fn a_place_with_more_equal_lines_is_nearer() {
        check(
            "}\nfn two() {",
            Some(
                r#"The nearest place is line 4: the file has "", oldText has "}". They first differ in the end of the line against '}'."#,
            ),
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_difference() {
        let long = |end: &str| format!("{}{end}{}", "x".repeat(300), "y".repeat(300));
        let text = describe(&long("A"), &long("B"), &CancelToken::new()).unwrap();
        assert!(text.len() < 400, "{text}");
        assert!(text.contains("A") && text.contains("B"), "{text}");
    }
}
