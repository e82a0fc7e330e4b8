//! Joins parts of a formula in one row.
//!
//! Parts contain private use characters at possible spaces; [`tidy`] decides on them once the neighbours are
//! known.

use super::table::{ABOVE, BELOW, BIG, LIMITS};

/// Marks start and end of a function's name: `2\sin x` is `2 sin x`, `\sin(x)` is `sin(x)`.
pub(super) const NAME: char = '\u{f0000}';
pub(super) const NAME_END: char = '\u{f0001}';
/// Separates parts that would be read as one: `x\frac12y` is `x 1/2 y`.
pub(super) const GAP: char = '\u{f0002}';
pub(super) const MARKS: [char; 3] = [NAME, NAME_END, GAP];
/// A blank that is always kept.
pub(super) const BLANK: char = '\u{f0003}';
/// Placeholder for a drawing of several rows.
pub(super) const DRAWING: char = '\u{f0004}';

/// A base with a script above or below.
pub(super) fn scripted(base: &str, script: &str, mark: char) -> String {
    let script = raised(&tight(script), mark);
    // The limit of an operator belongs to its name, and a blank behind it.
    let is_spaced = base.starts_with(' ');
    let base = base.trim_end_matches(' ');
    if let Some(name) = base.strip_suffix(NAME_END) {
        let has_limit = mark == '_' && LIMITS.contains(&name.trim_start_matches(NAME));
        return format!("{name}{script}{}", if has_limit { GAP } else { NAME_END });
    }
    let plain = base.trim_matches(GAP);
    if plain.contains('/') && plain.len() < base.len() {
        return format!("{}{script}", bracketed(plain));
    }
    let is_big = BIG.iter().any(|(_, sign)| base.starts_with(sign));
    let behind = match (is_big, is_spaced) {
        (true, _) => GAP.to_string(),
        (false, true) => " ".to_owned(),
        (false, false) => String::new(),
    };
    format!("{}{script}{behind}", base.trim_end_matches(GAP))
}

pub(super) fn raised(text: &str, mark: char) -> String {
    let table = if mark == '^' { ABOVE } else { BELOW };
    let small: Option<String> = text.chars().map(|letter| pick(table, letter)).collect();
    small.unwrap_or_else(|| match text.chars().count() {
        1 => format!("{mark}{text}"),
        _ => format!("{mark}({text})"),
    })
}

/// A script without blanks around its signs.
pub(super) fn tight(text: &str) -> String {
    let text = finished(text);
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split(' ').peekable();
    while let Some(part) = parts.next() {
        out.push_str(part);
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == ',');
        if word(out.chars().next_back())
            && parts.peek().is_some_and(|next| word(next.chars().next()))
            && !out.ends_with(',')
        {
            out.push(' ');
        }
    }
    out
}

pub(super) fn accented(text: &str, (name, mark): (&str, char)) -> String {
    let is_line = matches!(name, "overline" | "underline" | "bar");
    match text.chars().count() {
        1 => format!("{text}{mark}"),
        // A line goes over all letters.
        _ if is_line && text.chars().all(char::is_alphanumeric) => {
            text.chars().flat_map(|letter| [letter, mark]).collect()
        }
        _ => format!("{name}({text})"),
    }
}

pub(super) fn bracketed(text: &str) -> String {
    format!("({text})")
}

/// True for a number or one letter.
pub(super) fn is_single(text: &str) -> bool {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut letters = text.chars();
    is_number
        || (letters.next().is_some_and(|c| c.is_alphanumeric() || "∞∅∇".contains(c))
            && letters.next().is_none())
}

/// A numerator; in brackets unless it is letters and digits.
pub(super) fn factor(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || ".∂∇∞".contains(c));
    if is_plain { text.to_owned() } else { bracketed(text) }
}

/// A denominator; in brackets unless it is one item: `x²`, `dx`, `12`.
pub(super) fn divisor(text: &str) -> String {
    let is_script = |c: char| ABOVE.iter().chain(BELOW).any(|(_, small)| *small == c) && !c.is_ascii();
    let base = text.trim_end_matches(is_script);
    let differential = base.strip_prefix(['d', '∂']).unwrap_or(base);
    let is_one = is_single(base) || is_single(differential);
    if is_one { text.to_owned() } else { bracketed(text) }
}

pub(super) fn pick(table: &[(char, char)], letter: char) -> Option<char> {
    let found = table.iter().find(|(known, _)| *known == letter);
    found.map(|(_, other)| *other)
}

/// Replaces marks with single blanks where needed.
pub(super) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_due, mut mark) = (false, None);
    for letter in text.chars() {
        match letter {
            ' ' => is_due = true,
            // What stands before the group may need it.
            NAME | NAME_END | GAP if out.is_empty() => out.push(letter),
            NAME | NAME_END | GAP => mark = mark.max(Some(letter)),
            _ => {
                let before = out.chars().rev().find(|c| !MARKS.contains(c));
                let is_word = |c: char| c.is_alphanumeric() || c == DRAWING;
                let ends = before.is_some_and(|c| is_word(c) || ")]}⟩⌋⌉|".contains(c));
                let begins = is_word(letter) || "√∛∜∑∏∫∂∇∞".contains(letter);
                let opens = "([{⟨⌊⌈".contains(letter);
                let parts = match mark.take() {
                    Some(GAP) => ends && (begins || opens),
                    Some(NAME_END) => begins,
                    Some(_) => ends && begins,
                    None => false,
                };
                let is_after_open = before.is_none_or(|c| "([{⟨⌊⌈ ".contains(c) || c == BLANK);
                let is_closing = ")]},;⟩⌋⌉".contains(letter) || letter == BLANK;
                if (is_due || parts) && !is_after_open && !is_closing {
                    out.push(' ');
                }
                is_due = false;
                out.push(letter);
            }
        }
    }
    // What stands behind the group may need it.
    out.extend(mark);
    out
}

/// The row in its displayed form.
pub(super) fn finished(text: &str) -> String {
    without_marks(&tidy(text)).trim_matches(' ').to_owned()
}

pub(super) fn without_marks(text: &str) -> String {
    text.replace(MARKS, "").replace(BLANK, " ")
}
