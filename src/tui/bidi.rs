//! Right-to-left text in the order in which it is read, for terminals that show characters as they come.
//!
//! The implicit part of Unicode's algorithm (UAX #9), for a row: levels of letters and numbers, neutral
//! characters, paired brackets, mirrored characters. The first strong letter gives the direction. Between lines
//! of a table or a frame, and between the blanks at the ends of a row, everything keeps its place.
//!
//! Not covered: explicit directions (their characters are shown as `�`, see `visible`), rows of one paragraph
//! that begin with letters of another direction than the paragraph, rows flush right, the joining of Arabic
//! letters, and selecting with the mouse, which follows the order of the text.

use super::line::Line;
use super::style::Style;
use super::width::clusters;
use crate::base::order::Order;
use std::sync::Arc;

/// The classes of UAX #9 that matter here; spaces and all others are neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Left,
    Right,
    /// A letter of Arabic.
    Arabic,
    European,
    /// A number in Arabic's digits.
    ArabicNumber,
    /// `+` and `-`.
    Sign,
    /// What stands at a number, such as `%`.
    Terminator,
    /// What separates digits, such as `,`.
    Separator,
    Neutral,
}

use Class::{Arabic, ArabicNumber, European, Left, Neutral, Right, Separator, Sign, Terminator};

/// The end of each range, and its class; a range begins where the one before ends. `None`: by what the character
/// is. From the data of Unicode 16, in runs of what is assigned.
const RANGES: &[(u32, Option<Class>)] = &[
    (0x0590, None),
    (0x0600, Some(Right)),
    (0x0606, Some(ArabicNumber)),
    (0x0608, Some(Neutral)),
    (0x0609, Some(Arabic)),
    (0x060b, Some(Terminator)),
    (0x060c, Some(Arabic)),
    (0x060d, Some(Separator)),
    (0x0610, Some(Neutral)),
    (0x0660, Some(Arabic)),
    (0x066a, Some(ArabicNumber)),
    (0x066b, Some(Terminator)),
    (0x066d, Some(ArabicNumber)),
    (0x06dd, Some(Arabic)),
    (0x06de, Some(ArabicNumber)),
    (0x06df, Some(Neutral)),
    (0x06e9, Some(Arabic)),
    (0x06ea, Some(Neutral)),
    (0x06f0, Some(Arabic)),
    (0x06fa, Some(European)),
    (0x07c0, Some(Arabic)),
    (0x0860, Some(Right)),
    (0x08e2, Some(Arabic)),
    (0x08e3, Some(ArabicNumber)),
    (0x0900, Some(Arabic)),
    (0xfb1d, None),
    (0xfb29, Some(Right)),
    (0xfb2a, Some(Sign)),
    (0xfb50, Some(Right)),
    (0xfd3e, Some(Arabic)),
    (0xfd50, Some(Neutral)),
    (0xfdcf, Some(Arabic)),
    (0xfdf0, Some(Neutral)),
    (0xfdfd, Some(Arabic)),
    (0xfe70, None),
    (0xfeff, Some(Arabic)),
    (0x10800, None),
    (0x10d00, Some(Right)),
    (0x10d30, Some(Arabic)),
    (0x10d3a, Some(ArabicNumber)),
    (0x10e60, Some(Right)),
    (0x10e7f, Some(ArabicNumber)),
    (0x10ec0, Some(Right)),
    (0x10f00, Some(Arabic)),
    (0x10f30, Some(Right)),
    (0x10f70, Some(Arabic)),
    (0x11000, Some(Right)),
    (0x1e800, None),
    (0x1ec70, Some(Right)),
    (0x1ecc0, Some(Arabic)),
    (0x1ed00, Some(Right)),
    (0x1ed50, Some(Arabic)),
    (0x1ee00, Some(Right)),
    (0x1ef00, Some(Arabic)),
    (0x1f000, Some(Right)),
];

/// Brackets and signs with their mirror images.
const MIRRORED: &str = "()[]{}<>«»‹›≤≥⟨⟩⟪⟫⟦⟧〈〉《》「」『』【】";
/// The first of [`MIRRORED`] that are no pair of brackets.
const SIGNS: &str = "<>«»‹›≤≥";

fn range(letter: char) -> Option<Class> {
    let at = RANGES.partition_point(|(end, _)| *end <= u32::from(letter));
    RANGES.get(at).and_then(|(_, class)| *class)
}

fn class(letter: char) -> Class {
    match letter {
        '0'..='9' | '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '０'..='９' => European,
        '+' | '-' | '−' | '⁺' | '⁻' => Sign,
        '#' | '$' | '%' | '¢'..='¥' | '°' | '±' | '‰'..='‴' | '₠'..='⃀' => Terminator,
        ',' | '.' | '/' | ':' | '\u{a0}' | '\u{202f}' => Separator,
        _ => range(letter).unwrap_or(if letter.is_alphanumeric() { Left } else { Neutral }),
    }
}

fn is_right(class: Class) -> bool {
    matches!(class, Right | Arabic)
}

fn mirror(letter: char) -> Option<char> {
    let at = MIRRORED.chars().position(|known| known == letter)?;
    MIRRORED.chars().nth(at ^ 1)
}

/// A cluster, and where its style and link are in the line.
struct Unit<'a> {
    text: &'a str,
    cells: usize,
    /// The first cell in the line.
    cell: usize,
    style: Style,
    link: Option<&'a Arc<str>>,
}

impl Unit<'_> {
    fn first(&self) -> char {
        self.text.chars().next().unwrap_or(' ')
    }

    /// True for lines of tables and frames.
    fn is_frame(&self) -> bool {
        ('\u{2500}'..'\u{2580}').contains(&self.first())
    }
}

/// The row as it is to be seen; `None` if that is as it is.
pub fn reordered(line: &Line) -> Option<Line> {
    let text = line.text();
    if text.is_ascii() || !text.chars().any(|letter| range(letter).is_some_and(is_right)) {
        return None;
    }
    let mut units = Vec::new();
    let mut cell = 0;
    for span in line.spans() {
        for (_, text, cells) in clusters(span.text) {
            units.push(Unit { text, cells, cell, style: span.style, link: span.link });
            cell += cells;
        }
    }
    let mut out = Line::new();
    let mut cursor = line.cursor.filter(|cursor| *cursor >= cell);
    for part in units.chunk_by(|a, b| !a.is_frame() && !b.is_frame()) {
        let is_blank = |unit: &&Unit<'_>| unit.text == " ";
        let before = part.iter().take_while(is_blank).count();
        let behind = part.iter().rev().take_while(is_blank).count().min(part.len() - before);
        let inner = part.get(before..part.len() - behind).unwrap_or_default();
        let classes: Vec<Class> = inner.iter().map(|unit| class(unit.first())).collect();
        let levels = levels(inner, classes);
        let order = (0..before)
            .map(|at| (at, false))
            .chain(
                order(&levels)
                    .into_iter()
                    .map(|at| (before + at, levels.get(at).is_some_and(|l| l % 2 == 1))),
            )
            .chain((part.len() - behind..part.len()).map(|at| (at, false)));
        for (at, is_right) in order {
            let Some(unit) = part.get(at) else { continue };
            if line.cursor.is_some_and(|cursor| (unit.cell..unit.cell + unit.cells).contains(&cursor)) {
                cursor = Some(out.width());
            }
            match Some(unit.first()).filter(|_| is_right && unit.text.chars().count() == 1).and_then(mirror) {
                Some(mirrored) => out.push_link(mirrored.encode_utf8(&mut [0; 4]), unit.style, unit.link),
                None => out.push_link(unit.text, unit.style, unit.link),
            }
        }
    }
    out.cursor = cursor;
    // Neighbours may join to other clusters.
    (out.width() == line.width()).then_some(out)
}

/// The level of each unit (rules P2 to I2).
fn levels(units: &[Unit<'_>], mut classes: Vec<Class>) -> Vec<u8> {
    let strong = classes.iter().find(|class| matches!(class, Left | Right | Arabic));
    let base = if strong.is_some_and(|class| is_right(*class)) { Right } else { Left };
    resolve_numbers(&mut classes, base);
    resolve_brackets(units, &mut classes, base);
    resolve_neutrals(&mut classes, base);
    let even = u8::from(base == Right);
    let level = |class: &Class| match (class, even) {
        (Right, 0) => 1,
        (European | ArabicNumber, _) | (Left, 1) => 2,
        (_, even) => even,
    };
    classes.iter().map(level).collect()
}

/// Rules W2 to W7.
fn resolve_numbers(classes: &mut [Class], base: Class) {
    let mut strong = base;
    for class in classes.iter_mut() {
        match *class {
            Left | Right | Arabic => strong = *class,
            European if strong == Arabic => *class = ArabicNumber,
            _ => {}
        }
        if *class == Arabic {
            *class = Right;
        }
    }
    let at = |classes: &[Class], index: usize| classes.get(index).copied();
    for index in 1..classes.len() {
        let (before, behind) = (at(classes, index - 1), at(classes, index + 1));
        let joins = match at(classes, index) {
            Some(Sign) => before == Some(European),
            Some(Separator) => matches!(before, Some(European | ArabicNumber)),
            _ => false,
        };
        if let (true, Some(number), Some(class)) = (joins && before == behind, before, classes.get_mut(index))
        {
            *class = number;
        }
    }
    for group in classes.chunk_by_mut(|a, b| matches!((a, b), (Terminator | European, Terminator | European)))
    {
        if group.contains(&European) {
            group.fill(European);
        }
    }
    let mut strong = base;
    for class in classes {
        match *class {
            Left | Right => strong = *class,
            European if strong == Left => *class = Left,
            Sign | Terminator | Separator => *class = Neutral,
            _ => {}
        }
    }
}

/// The direction that a class has for neutral characters beside it.
fn direction(class: Class) -> Option<Class> {
    match class {
        Left => Some(Left),
        Right | European | ArabicNumber => Some(Right),
        _ => None,
    }
}

/// Rule N0: a pair of brackets has the direction of what is in it.
fn resolve_brackets(units: &[Unit<'_>], classes: &mut [Class], base: Class) {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut pairs = Vec::new();
    for (at, unit) in units.iter().enumerate() {
        let letter = unit.first();
        let Some(other) = mirror(letter).filter(|_| !SIGNS.contains(letter)) else { continue };
        let opens = MIRRORED.chars().position(|known| known == letter).is_some_and(|at| at % 2 == 0);
        if opens {
            open.push((other, at));
        } else if let Some(found) = open.iter().rposition(|(close, _)| *close == letter) {
            pairs.extend(open.get(found).map(|(_, start)| (*start, at)));
            open.truncate(found);
        }
    }
    pairs.order();
    for (start, end) in pairs {
        let inner = classes.get(start + 1..end).unwrap_or_default();
        let found: Vec<Class> = inner.iter().filter_map(|class| direction(*class)).collect();
        let context = classes.get(..start).unwrap_or_default();
        let before = context.iter().rev().find_map(|class| direction(*class)).unwrap_or(base);
        let class = match found.as_slice() {
            [] => continue,
            found if found.contains(&base) => base,
            _ => before,
        };
        for at in [start, end] {
            if let Some(bracket) = classes.get_mut(at) {
                *bracket = class;
            }
        }
    }
}

/// Rules N1 and N2.
fn resolve_neutrals(classes: &mut [Class], base: Class) {
    let mut before = base;
    let mut start = 0;
    while start < classes.len() {
        let rest = classes.get_mut(start..).unwrap_or_default();
        let count = rest.iter().take_while(|class| direction(**class).is_none()).count();
        let behind = rest.get(count).and_then(|class| direction(*class));
        let class = if behind.unwrap_or(base) == before { before } else { base };
        rest.iter_mut().take(count).for_each(|neutral| *neutral = class);
        before = behind.unwrap_or(base);
        start += count + 1;
    }
}

/// Rule L2: the units from left to right.
fn order(levels: &[u8]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    for level in [2, 1] {
        for run in order.chunk_by_mut(|a, b| {
            let reaches = |at: &usize| levels.get(*at).is_some_and(|own| *own >= level);
            reaches(a) == reaches(b)
        }) {
            if run.first().and_then(|at| levels.get(*at)).is_some_and(|own| *own >= level) {
                run.reverse();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &str) -> String {
        let line = Line::of(text, Style::PLAIN);
        reordered(&line).unwrap_or(line).text().to_owned()
    }

    /// Hebrew letters stand for themselves; of the results the first character is at the left.
    #[test]
    fn rows_are_in_the_order_in_which_they_are_read() {
        for (text, expected) in [
            ("abc def", "abc def"),
            ("日本 é", "日本 é"),
            ("אבג", "גבא"),
            (" אבג דה ", " הד גבא "),
            ("see אבג דה now", "see הד גבא now"),
            ("אבג foo bar דה", "הד foo bar גבא"),
            ("אבג 123 דה", "הד 123 גבא"),
            ("אבג 1,234.50 דה", "הד 1,234.50 גבא"),
            ("אבג -5% דה", "הד 5%- גבא"),
            ("v1.2 אבג", "v1.2 גבא"),
            ("אבג.", ".גבא"),
            ("see אבג.", "see גבא."),
            ("אב (גד) ה", "ה (דג) בא"),
            ("אב (foo) ג", "ג (foo) בא"),
            ("a (אב) b", "a (בא) b"),
            ("f(אב, גד)", "f(דג ,בא)"),
            ("אב < גד", "דג > בא"),
            ("السعر 25 ريال", "لاير 25 رعسلا"),
            ("٣٫٥", "٣٫٥"),
            ("אב ٣٤ ג", "ג ٣٤ בא"),
            ("│ אבג │ x │ דה │", "│ גבא │ x │ הד │"),
            ("- אבג", "גבא -"),
            ("שָׁלוֹם", "םוֹלשָׁ"),
        ] {
            assert_eq!(seen(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_cursor_stays_on_its_character() {
        for (text, cursor, expected) in [("a אבג", 2, 4), ("a אבג", 4, 2), ("a אבג", 0, 0), ("a אבג", 5, 5)]
        {
            let mut line = Line::of(text, Style::PLAIN);
            line.cursor = Some(cursor);
            assert_eq!(reordered(&line).unwrap().cursor, Some(expected), "{text} {cursor}");
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(RANGES.is_sorted_by(|(a, _), (b, _)| a < b));
        for (letter, expected) in [('א', Right), ('ﬡ', Right), ('ا', Arabic), ('ﺍ', Arabic), ('ߊ', Right)]
        {
            assert_eq!(class(letter), expected, "{letter}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_added_or_lost(parts in prop::collection::vec("[a-z0-9 .,()%│<-]{0,5}|[א-ת]{1,4}|[ا-ي٠-٩]{1,3}|日|e\u{301}", 0..12)) {
            let text = parts.concat();
            let line = Line::of(&text, Style::PLAIN);
            let shown = seen(&text);
            prop_assert_eq!(crate::tui::width::width(&shown), line.width());
            let letters = |text: &str| {
                let mut letters: Vec<char> = text.chars().map(|letter| match mirror(letter) {
                    Some(other) => letter.min(other),
                    None => letter,
                }).collect();
                letters.sort_unstable();
                letters
            };
            prop_assert_eq!(letters(&shown), letters(&text));
        }

        #[test]
        fn ascii_is_left_alone(text in "[ -~]{0,40}") {
            prop_assert!(reordered(&Line::of(&text, Style::PLAIN)).is_none());
        }
    }
}
