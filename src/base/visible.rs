//! Invisible characters that change how a text reads.
//!
//! Some reverse the direction of writing, so that a command reads as another; some are empty, and can hide a
//! second text in a first. In text that a person must judge they are shown as `�`. Those needed by scripts
//! and emoji are kept after a character of such a script.

use std::borrow::Cow;

const MARK: char = '\u{fffd}';

/// `text` for display: a run of invisible characters becomes one `�`.
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut out = String::new();
    let (mut before, mut taken) = (' ', 0);
    for (at, letter) in text.char_indices() {
        // A byte order mark at the beginning of a file hides nothing.
        if !hides(letter, before) || (at == 0 && letter == '\u{feff}') {
            before = letter;
            continue;
        }
        let part = text.get(taken..at).unwrap_or_default();
        out.push_str(part);
        if taken == 0 || !part.is_empty() {
            out.push(MARK);
        }
        taken = at + letter.len_utf8();
        before = MARK;
    }
    match taken {
        0 => text.into(),
        _ => (out + text.get(taken..).unwrap_or_default()).into(),
    }
}

fn hides(letter: char, before: char) -> bool {
    match letter {
        // Zero-width spaces and joiners, and marks of direction.
        '\u{61c}' | '\u{200b}'..='\u{200f}' => !takes_joiners(before),
        '\u{180e}' | '\u{feff}' => true,
        // Embeddings, overrides and isolates of direction.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => true,
        // Invisible operators, annotations, tags.
        '\u{2060}'..='\u{2064}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Scripts with joiners of their own, and emoji.
fn takes_joiners(letter: char) -> bool {
    letter >= '\u{300}' && letter != MARK && !matches!(letter, '\u{61c}' | '\u{2000}'..='\u{206f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_marked_and_what_a_script_needs_stays() {
        for (text, expected) in [
            ("plain", "plain"),
            ("grün 日本 👍🏽", "grün 日本 👍🏽"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("rm\u{200b} -rf", "rm\u{fffd} -rf"),
            ("a\u{200d}\u{200c}\u{200b}b", "a\u{fffd}b"),
            ("x\u{e0041}\u{e0042}\u{e007f}y", "x\u{fffd}y"),
            ("\u{2060}x\u{feff}", "\u{fffd}x\u{fffd}"),
            ("\u{feff}text", "\u{feff}text"),
            ("👨\u{200d}👩\u{200d}👧", "👨\u{200d}👩\u{200d}👧"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            // One is enough for a script; more are a message.
            ("👨\u{200d}\u{200d}\u{200d}x", "👨\u{200d}\u{fffd}x"),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
