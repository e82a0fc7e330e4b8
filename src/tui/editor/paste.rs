//! Pastes: cleaned, and folded into a marker when they are large.
//!
//! A marker such as `[paste #1 +42 lines]` represents the pasted text, acts as one character, and is expanded
//! when the text leaves the editor.

use std::ops::Range;

/// A paste with more lines or characters is folded.
const LINES_MAX: usize = 10;
const CHARS_MAX: usize = 1000;

const TAB: &str = "    ";
const BEGIN: &str = "[paste #";

/// Pastes folded since the text was last sent.
#[derive(Debug, Default)]
pub struct Pastes {
    /// Markers and texts; the first is number 1.
    folded: Vec<(String, String)>,
}

impl Pastes {
    /// Stores `text` and returns its marker, if it is large.
    pub fn fold(&mut self, text: &str) -> Option<String> {
        let lines = text.split('\n').count();
        let size = if lines > LINES_MAX {
            format!("+{lines} lines")
        } else {
            let chars = text.chars().count();
            if chars <= CHARS_MAX {
                return None;
            }
            format!("{chars} chars")
        };
        let marker = format!("{BEGIN}{} {size}]", self.folded.len() + 1);
        self.folded.push((marker.clone(), text.to_owned()));
        Some(marker)
    }

    /// Positions of markers in a text.
    pub fn markers(&self, text: &str) -> Vec<Range<usize>> {
        self.found(text).map(|(range, _)| range).collect()
    }

    /// The text with all markers expanded.
    pub fn expand(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        let mut at = 0;
        for (range, folded) in self.found(text) {
            whole.push_str(text.get(at..range.start).unwrap_or_default());
            whole.push_str(folded);
            at = range.end;
        }
        whole.push_str(text.get(at..).unwrap_or_default());
        whole
    }

    fn found<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, &'a str)> {
        // Nothing to look for without a paste: text of any length costs nothing here.
        let text = if self.folded.is_empty() { "" } else { text };
        text.match_indices(BEGIN).filter_map(|(start, _)| {
            let rest = text.get(start..)?;
            let number = rest.strip_prefix(BEGIN)?.split_once(' ')?.0;
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            let (marker, folded) = self.folded.get(index)?;
            let is_marker = rest.starts_with(marker.as_str());
            is_marker.then(|| (start..start + marker.len(), folded.as_str()))
        })
    }
}

/// Normalises text for the editor: line ends become `\n`, tabs spaces, other control characters are removed.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => {
                letters.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\n' => clean.push('\n'),
            '\t' => clean.push_str(TAB),
            _ if letter.is_control() => {}
            _ => clean.push(letter),
        }
    }
    clean
}

/// True if pasted text is a path, or begins like one.
pub fn is_path_like(text: &str) -> bool {
    text.starts_with(['/', '~', '.'])
}
