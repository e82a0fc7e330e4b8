//! Finds what can be completed at the cursor, and applies a completion to the line.
//!
//! Nothing is read here: the caller lists the folder or the files, and passes their names. First [`wanted`]
//! classifies the text before the cursor, then [`Token::path_items`], [`rank()`] or a list of commands makes
//! items, and [`Wanted::apply`] inserts the chosen one.

mod popup;
mod rank;

pub use popup::{Answer, Popup};
pub use rank::{Candidate, rank};

use super::fuzzy;
use super::select::Item;
use crate::base::order::Order;
use std::ops::Range;

/// The kind of completion that the text before the cursor needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A slash command with this prefix.
    Command(String),
    /// Argument of a command; it begins at byte `at` of the line.
    Argument { command: String, text: String, at: usize },
    /// A file of the project, after `@`.
    File(Token),
    /// An entry of a folder.
    Path(Token),
    /// Text that others complete; it begins at byte `at` of the line.
    Text { text: String, at: usize },
}

/// The typed part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Byte of the line at which the token begins, including `@` and quote.
    pub at: usize,
    /// The path without `@` and quote.
    pub path: String,
    is_file: bool,
    is_quoted: bool,
}

/// A change of the line: for [`super::editor::Editor::complete`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub range: Range<usize>,
    pub text: String,
    /// Byte offset in the text.
    pub cursor: usize,
}

/// What to complete after `before`, the cursor's line up to the cursor. `is_asked`: Tab was pressed;
/// otherwise only an unambiguous beginning is completed.
pub fn wanted(before: &str, is_first_line: bool, is_asked: bool) -> Option<Wanted> {
    let token = token(before);
    if token.is_file {
        return Some(Wanted::File(token));
    }
    if is_first_line && let Some(command) = before.strip_prefix('/') {
        match command.split_once(' ') {
            // `/usr/bin` is a path.
            None if !command.contains('/') => return Some(Wanted::Command(command.to_owned())),
            None => {}
            Some((command, text)) if !is_asked => {
                return Some(Wanted::Argument {
                    command: command.to_owned(),
                    text: text.to_owned(),
                    at: before.len() - text.len(),
                });
            }
            Some(_) => {}
        }
    }
    let path = &token.path;
    let is_begun = token.is_quoted || path.contains('/') || path.starts_with('.') || path.starts_with("~/");
    (is_asked || is_begun).then_some(Wanted::Path(token))
}

/// True for a letter that ends an unquoted path.
fn is_delimiter(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '=') || is_separator(letter)
}

/// True for white space and punctuation of scripts written without spaces.
fn is_separator(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(letter, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{30fb}')
        || "，．：；！？（）［］｛｝“”‘’…—".contains(letter)
}

fn token(before: &str) -> Token {
    let quotes: Vec<usize> = before.match_indices('"').map(|(at, _)| at).collect();
    if quotes.len() % 2 == 1
        && let Some(&quote) = quotes.last()
    {
        let (outside, inside) = (before.get(..quote), before.get(quote + 1..));
        let outside = outside.unwrap_or_default();
        let start = outside.strip_suffix('@');
        if start.unwrap_or(outside).chars().next_back().is_none_or(is_delimiter) {
            return Token {
                at: quote - usize::from(start.is_some()),
                path: inside.unwrap_or_default().to_owned(),
                is_file: start.is_some(),
                is_quoted: true,
            };
        }
    }
    let delimiters = before.char_indices().rev();
    let last = delimiters.into_iter().find(|(_, letter)| is_delimiter(*letter));
    let at = last.map_or(0, |(at, letter)| at + letter.len_utf8());
    let text = before.get(at..).unwrap_or_default();
    let path = text.strip_prefix('@');
    Token { at, path: path.unwrap_or(text).to_owned(), is_file: path.is_some(), is_quoted: false }
}

impl Token {
    /// The folder to list, as typed and with its slash, and the prefix of names in it.
    pub fn parts(&self) -> (&str, &str) {
        match self.path.rfind('/') {
            Some(slash) => self.path.split_at(slash + 1),
            None if self.path == "~" => ("~/", ""),
            None => ("", &self.path),
        }
    }

    /// Matching entries of the folder, given as names and whether each is a folder; folders first.
    pub fn path_items(&self, entries: impl Iterator<Item = (String, bool)>) -> Vec<Item> {
        let (folder, begin) = self.parts();
        let begin = begin.to_lowercase();
        let mut found: Vec<(bool, String, String)> = entries
            .map(|(name, is_folder)| (!is_folder, name.to_lowercase(), name))
            .filter(|(_, lower, name)| lower.starts_with(&begin) && is_typeable(name))
            .collect();
        found.order();
        let item = |(is_file, _, name): (bool, String, String)| {
            let label = if is_file { name } else { format!("{name}/") };
            Item::new(&self.written(&format!("{folder}{label}")), &label)
        };
        found.into_iter().map(item).collect()
    }

    /// Items for the files that [`rank()`] chose below `folder`, which is written as typed.
    pub fn file_items<'a>(&self, folder: &str, found: impl Iterator<Item = Candidate<'a>>) -> Vec<Item> {
        found
            .filter(|candidate| is_typeable(candidate.path))
            .map(|Candidate { path, is_folder }| {
                let slash = if is_folder { "/" } else { "" };
                let name = path.rsplit('/').next().unwrap_or(path);
                let whole = format!("{folder}{path}");
                let value = self.written(&format!("{whole}{slash}"));
                Item::new(&value, &format!("{name}{slash}")).about(&whole)
            })
            .collect()
    }

    /// A path as it must be written in the line, with quotes if needed.
    fn written(&self, path: &str) -> String {
        let at = if self.is_file { "@" } else { "" };
        match self.is_quoted || path.contains(is_separator) {
            true => format!("{at}\"{path}\""),
            false => format!("{at}{path}"),
        }
    }
}

/// True if a name has no control characters, which the editor drops.
fn is_typeable(name: &str) -> bool {
    !name.contains(char::is_control)
}

/// Matching commands: name, argument hint, description. A skill also matches without `skill:`.
pub fn commands<'a>(
    query: &str,
    all: impl Iterator<Item = (&'a str, Option<&'a str>, &'a str)>,
) -> Vec<Item> {
    let all: Vec<_> = all.collect();
    let is_skill = query.starts_with("skill:");
    let names = all.iter().map(|(name, ..)| match is_skill {
        true => *name,
        false => name.strip_prefix("skill:").unwrap_or(name),
    });
    let found = fuzzy::filter(query, names).into_iter();
    found
        .filter_map(|index| all.get(index))
        .map(|(name, hint, about)| {
            let about = match hint {
                Some(hint) if about.is_empty() => (*hint).to_owned(),
                Some(hint) => format!("{hint} — {about}"),
                None => (*about).to_owned(),
            };
            Item::new(name, name).about(&about)
        })
        .collect()
}

impl Wanted {
    /// The typed text, to find the item that equals it.
    pub fn typed(&self) -> &str {
        match self {
            Self::Command(text) | Self::Argument { text, .. } | Self::Text { text, .. } => text,
            Self::File(token) | Self::Path(token) => &token.path,
        }
    }

    /// Replaces the typed text with an item; `before` and `behind` are the line around the cursor.
    pub fn apply(&self, item: &Item, before: &str, behind: &str) -> Change {
        let mut end = before.len();
        let mut text = item.value.clone();
        let mut cursor = text.len();
        let start = match self {
            Self::Command(_) => {
                text = format!("/{} ", item.value);
                cursor = text.len();
                end += usize::from(behind.starts_with(' '));
                0
            }
            Self::Argument { at, .. } | Self::Text { at, .. } => *at,
            Self::File(token) | Self::Path(token) => {
                let is_folder = item.label.ends_with('/');
                let is_quoted = text.ends_with('"');
                end += usize::from(token.is_quoted && is_quoted && behind.starts_with('"'));
                // In a folder one goes on.
                cursor -= usize::from(is_folder && is_quoted);
                if matches!(self, Self::File(_)) && !is_folder {
                    text.push(' ');
                    cursor += 1;
                }
                token.at
            }
        };
        Change { range: start..end, text, cursor }
    }
}

#[cfg(test)]
mod tests;
