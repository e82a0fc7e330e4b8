//! What could be completed at the cursor, with what, and what then stands in the line.
//!
//! Nothing is read here: who completes lists the folder or the files, and gives their names. First
//! [`wanted`] says what the text before the cursor asks for, then [`Token::path_items`], [`rank`] or a list of
//! commands makes items, and [`Wanted::apply`] puts the chosen one in place.

mod popup;
mod rank;

pub use popup::{Answer, Popup};
pub use rank::{Candidate, rank};

use super::fuzzy;
use super::select::Item;
use std::ops::Range;

/// What the text before the cursor asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A slash command that begins so.
    Command(String),
    /// What may stand behind a command; bytes `at` and on of the line.
    Argument { command: String, text: String, at: usize },
    /// A file of the project, behind `@`.
    File(Token),
    /// An entry of a folder.
    Path(Token),
}

/// A path as it was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The byte of the line it begins at, with `@` and quote.
    pub at: usize,
    /// Without them.
    pub path: String,
    is_file: bool,
    is_quoted: bool,
}

/// How the line changes: for [`super::editor::Editor::complete`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub range: Range<usize>,
    pub text: String,
    /// In the text.
    pub cursor: usize,
}

/// What to complete behind `before`, the cursor's line up to the cursor. `is_asked`: Tab was pressed; else
/// only what is unmistakably begun is completed.
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

/// Ends a path that is in no quotes.
fn is_delimiter(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '=') || is_separator(letter)
}

/// White space and the marks of scripts that are written without it.
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
    /// The folder to look in, as it was typed and with its slash, and what a name in it must begin with.
    pub fn parts(&self) -> (&str, &str) {
        match self.path.rfind('/') {
            Some(slash) => self.path.split_at(slash + 1),
            None if self.path == "~" => ("~/", ""),
            None => ("", &self.path),
        }
    }

    /// The entries of that folder, names and whether each is a folder, that fit: folders first.
    pub fn path_items(&self, entries: impl Iterator<Item = (String, bool)>) -> Vec<Item> {
        let (folder, begin) = self.parts();
        let begin = begin.to_lowercase();
        let mut found: Vec<(bool, String, String)> = entries
            .map(|(name, is_folder)| (!is_folder, name.to_lowercase(), name))
            .filter(|(_, lower, name)| lower.starts_with(&begin) && is_typeable(name))
            .collect();
        found.sort_unstable();
        let item = |(is_file, _, name): (bool, String, String)| {
            let label = if is_file { name } else { format!("{name}/") };
            Item::new(&self.written(&format!("{folder}{label}")), &label)
        };
        found.into_iter().map(item).collect()
    }

    /// Files that were found below `folder`, which is as it was typed, for what [`rank`] chose.
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

    /// A path as it must stand in the line.
    fn written(&self, path: &str) -> String {
        let at = if self.is_file { "@" } else { "" };
        match self.is_quoted || path.contains(is_separator) {
            true => format!("{at}\"{path}\""),
            false => format!("{at}{path}"),
        }
    }
}

/// Control characters do not come into the editor: such a name would be another there.
fn is_typeable(name: &str) -> bool {
    !name.contains(char::is_control)
}

/// The commands that fit: name, hint for arguments, description. A skill is found without `skill:` too.
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
    /// What was typed, to find the item that it already is.
    pub fn typed(&self) -> &str {
        match self {
            Self::Command(text) | Self::Argument { text, .. } => text,
            Self::File(token) | Self::Path(token) => &token.path,
        }
    }

    /// Puts an item in the place of what was typed; `before` and `behind` are the line around the cursor.
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
            Self::Argument { at, .. } => *at,
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
