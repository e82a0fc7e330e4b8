//! Units that the cursor moves over: grapheme clusters, and each marker of a paste as one.

use super::paste::Pastes;
use crate::tui::width;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub range: Range<usize>,
    pub cells: usize,
}

/// The units of a line.
pub fn units(text: &str, pastes: &Pastes) -> impl Iterator<Item = Unit> {
    let mut markers = pastes.markers(text).into_iter().peekable();
    let mut at = 0;
    std::iter::from_fn(move || {
        let range = match markers.next_if(|marker| marker.start <= at) {
            Some(marker) => marker,
            None => {
                let limit = markers.peek().map_or(text.len(), |marker| marker.start);
                let cluster = text.get(at..limit)?.graphemes(true).next()?;
                at..at + cluster.len()
            }
        };
        at = range.end;
        let cells = width::width(text.get(range.clone()).unwrap_or_default());
        Some(Unit { range, cells })
    })
}

/// Start of the unit before an offset.
pub fn before(text: &str, byte: usize, pastes: &Pastes) -> usize {
    let markers = pastes.markers(text);
    let last = markers.iter().rfind(|marker| marker.start < byte);
    let from = match last {
        Some(marker) if marker.end >= byte => return marker.start,
        Some(marker) => marker.end,
        None => 0,
    };
    let cluster = text.get(from..byte).and_then(|text| text.graphemes(true).next_back());
    byte - cluster.map_or(0, str::len)
}

/// End of the unit after an offset.
pub fn behind(text: &str, byte: usize, pastes: &Pastes) -> usize {
    let markers = pastes.markers(text);
    let next = markers.iter().find(|marker| marker.end > byte);
    let limit = match next {
        Some(marker) if marker.start <= byte => return marker.end,
        Some(marker) => marker.start,
        None => text.len(),
    };
    let cluster = text.get(byte..limit).and_then(|text| text.graphemes(true).next());
    byte + cluster.map_or(0, str::len)
}

/// The offset, or the end of the unit that contains it.
pub fn snap(text: &str, byte: usize, pastes: &Pastes) -> usize {
    let is_begin = |byte: &usize| text.is_char_boundary(*byte);
    let byte = (byte..text.len()).find(is_begin).unwrap_or(text.len());
    // Text on both sides of a marker stays apart from it, whatever the characters are.
    let (mut from, mut to) = (0, text.len());
    for marker in pastes.markers(text) {
        if marker.end <= byte {
            from = marker.end;
        } else if marker.start < byte {
            return marker.end;
        } else {
            to = marker.start;
            break;
        }
    }
    let part = text.get(from..to).unwrap_or_default();
    let mut cursor = unicode_segmentation::GraphemeCursor::new(byte - from, part.len(), true);
    match cursor.is_boundary(part, 0) {
        Ok(false) => match cursor.next_boundary(part, 0) {
            Ok(Some(next)) => from + next,
            _ => byte,
        },
        _ => byte,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Marker,
    Other,
}

/// Splits a line into pieces of one kind. In scripts without spaces a piece is a character or a run of them,
/// by Unicode's word breaks: real words would need a dictionary of some megabytes.
fn pieces(text: &str, pastes: &Pastes) -> Vec<(Range<usize>, Kind)> {
    let mut found = Vec::new();
    let mut at = 0;
    for marker in pastes.markers(text) {
        plain_pieces(text, at..marker.start, &mut found);
        at = marker.end;
        found.push((marker, Kind::Marker));
    }
    plain_pieces(text, at..text.len(), &mut found);
    found
}

fn plain_pieces(text: &str, range: Range<usize>, found: &mut Vec<(Range<usize>, Kind)>) {
    let part = text.get(range.clone()).unwrap_or_default();
    for (start, segment) in part.split_word_bound_indices() {
        let start = range.start + start;
        let kind = if segment.chars().all(char::is_whitespace) {
            Kind::Space
        } else if segment.chars().any(char::is_alphanumeric) {
            Kind::Word
        } else {
            Kind::Other
        };
        if kind != Kind::Word {
            found.push((start..start + segment.len(), kind));
            continue;
        }
        // `don't` and `a.b` are one word to Unicode, but not to who edits paths and code.
        let mut from = 0;
        for (at, mark) in segment.match_indices(is_mark) {
            if at > from {
                found.push((start + from..start + at, Kind::Word));
            }
            from = at + mark.len();
            found.push((start + at..start + from, Kind::Other));
        }
        if from < segment.len() {
            found.push((start + from..start + segment.len(), Kind::Word));
        }
    }
}

fn is_mark(letter: char) -> bool {
    letter.is_ascii_punctuation() && letter != '_'
}

/// Start of the word before an offset in the line, skipping spaces.
pub fn word_before(text: &str, byte: usize, pastes: &Pastes) -> usize {
    let pieces = pieces(text, pastes);
    let before = pieces.iter().rev().filter(|(range, _)| range.start < byte);
    let before = before.map(|(range, kind)| (range.start, *kind));
    word(before).unwrap_or(0)
}

/// End of the word after an offset in the line.
pub fn word_behind(text: &str, byte: usize, pastes: &Pastes) -> usize {
    let pieces = pieces(text, pastes);
    let behind = pieces.iter().filter(|(range, _)| range.end > byte);
    let behind = behind.map(|(range, kind)| (range.end, *kind));
    word(behind).unwrap_or(text.len())
}

/// Skips spaces, then a word, a marker, or a run of other characters. `None` at the end of the line.
fn word(pieces: impl Iterator<Item = (usize, Kind)>) -> Option<usize> {
    let mut pieces = pieces.skip_while(|(_, kind)| *kind == Kind::Space);
    let (mut place, kind) = pieces.next()?;
    if kind == Kind::Other {
        for (next, _) in pieces.take_while(|(_, kind)| *kind == Kind::Other) {
            place = next;
        }
    }
    Some(place)
}
