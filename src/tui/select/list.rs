//! A list to choose from, with a search if it is long.

use super::{Looks, TextInput};
use crate::tui::fuzzy;
use crate::tui::key::Key;
use crate::tui::keymap::{self, Action, Keymap};
use crate::tui::line::Line;
use crate::tui::width;
use std::ops::Range;

const LABEL_CELLS: Range<usize> = 12..32;
/// Narrower lists have no room for descriptions.
const ABOUT_CELLS_MIN: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub value: String,
    pub label: String,
    pub about: Option<String>,
}

impl Item {
    pub fn new(value: &str, label: &str) -> Self {
        Self {
            value: value.to_owned(),
            label: label.to_owned(),
            about: None,
        }
    }

    /// With a description, of which one line is shown.
    pub fn about(self, about: &str) -> Self {
        let line = about.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            about: (!line.is_empty()).then_some(line),
            ..self
        }
    }
}

/// What a key did to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    Ignored,
    Moved,
    /// The item with this index, among all.
    Chosen(usize),
    Cancelled,
}

#[derive(Debug)]
pub struct List {
    items: Vec<Item>,
    /// Those that fit the search.
    shown: Vec<usize>,
    roll: Roll,
    search: Option<TextInput>,
}

/// A choice in a list of which only some rows are shown.
#[derive(Debug)]
pub(super) struct Roll {
    pub(super) at: usize,
    pub(super) rows: usize,
}

impl Roll {
    /// Moves as an action says; past an end to the other one, but not by pages.
    pub(super) fn act(&mut self, action: Action, count: usize) -> bool {
        let last = count.saturating_sub(1);
        self.at = match action {
            Action::SelectUp => self.at.checked_sub(1).unwrap_or(last),
            Action::SelectDown if self.at >= last => 0,
            Action::SelectDown => self.at + 1,
            Action::SelectPageUp => self.at.saturating_sub(self.rows),
            Action::SelectPageDown => (self.at + self.rows).min(last),
            _ => return false,
        };
        true
    }

    /// The rows that are shown, the chosen one in the middle where there are more.
    pub(super) fn window(&self, count: usize) -> Range<usize> {
        let rows = self.rows.min(count);
        let start = self.at.saturating_sub(rows / 2).min(count - rows);
        start..start + rows
    }
}

impl List {
    pub fn new(items: Vec<Item>) -> Self {
        Self {
            shown: (0..items.len()).collect(),
            items,
            roll: Roll { at: 0, rows: 10 },
            search: None,
        }
    }

    /// Shows so many at once.
    pub fn rows(mut self, rows: usize) -> Self {
        self.roll.rows = rows.max(1);
        self
    }

    /// What is typed narrows it down.
    pub fn searchable(mut self) -> Self {
        self.search = Some(TextInput::new("Type to search: "));
        self
    }

    /// Other items; the search stays, and what was chosen if it is still there.
    pub fn set_items(&mut self, items: Vec<Item>) {
        let before = self.selected().map(|item| item.value.clone());
        self.items = items;
        self.narrow();
        let again = self.shown.iter().position(|&index| {
            let value = self.items.get(index).map(|item| &item.value);
            value.is_some() && value == before.as_ref()
        });
        self.roll.at = again.unwrap_or(0);
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The chosen one, unless nothing fits the search.
    pub fn selected(&self) -> Option<&Item> {
        self.items.get(self.selected_index()?)
    }

    /// Among all.
    pub fn selected_index(&self) -> Option<usize> {
        self.shown.get(self.roll.at).copied()
    }

    /// Chooses an item by its index among all, if it is shown.
    pub fn select(&mut self, index: usize) {
        if let Some(at) = self.shown.iter().position(|&shown| shown == index) {
            self.roll.at = at;
        }
    }

    pub fn query(&self) -> String {
        self.search
            .as_ref()
            .map_or_else(String::new, TextInput::text)
    }

    pub fn set_query(&mut self, query: &str) {
        if let Some(search) = &mut self.search {
            search.set_text(query);
            self.narrow();
        }
    }

    fn narrow(&mut self) {
        let texts: Vec<String> = self
            .items
            .iter()
            .map(|item| {
                format!(
                    "{} {}",
                    item.label,
                    item.about.as_deref().unwrap_or_default()
                )
            })
            .collect();
        self.shown = fuzzy::filter(&self.query(), texts.iter().map(String::as_str));
        self.roll.at = 0;
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Picked {
        match keymap.action(key, keymap::SELECT) {
            Some(Action::SelectCancel) => Picked::Cancelled,
            Some(Action::SelectConfirm) => match self.selected_index() {
                Some(index) => Picked::Chosen(index),
                None => Picked::Ignored,
            },
            Some(action) if self.roll.act(action, self.shown.len()) => Picked::Moved,
            _ => self.search_key(key, keymap),
        }
    }

    fn search_key(&mut self, key: &Key, keymap: &Keymap) -> Picked {
        let Some(search) = &mut self.search else {
            return Picked::Ignored;
        };
        let before = search.text();
        if !search.edit(key, keymap) {
            return Picked::Ignored;
        }
        if search.text() != before {
            self.narrow();
        }
        Picked::Moved
    }

    /// Pasted text is searched for.
    pub fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            search.paste(text);
            self.narrow();
        }
    }

    /// The search, the rows, and where they are in the whole.
    pub fn render(&mut self, width: usize, looks: &Looks) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(search) = &mut self.search {
            lines.push(search.render(width, looks));
        }
        if self.shown.is_empty() {
            lines.push(Line::of("  Nothing found", looks.muted).cut(width));
            return lines;
        }
        let window = self.roll.window(self.shown.len());
        let rows = self.shown.get(window.clone()).unwrap_or_default();
        let labels = rows.iter().filter_map(|&index| self.items.get(index));
        let widest = labels.clone().map(|item| width::width(&item.label)).max();
        let column = (widest.unwrap_or(0) + 2).clamp(LABEL_CELLS.start, LABEL_CELLS.end);
        for (at, item) in window.clone().zip(labels) {
            lines.push(row(item, at == self.roll.at, column, width, looks));
        }
        if window.len() < self.shown.len() {
            let counter = format!("  ({}/{})", self.roll.at + 1, self.shown.len());
            lines.push(Line::of(&counter, looks.muted).cut(width));
        }
        lines
    }
}

fn row(item: &Item, is_selected: bool, column: usize, width: usize, looks: &Looks) -> Line {
    let style = if is_selected {
        looks.selected
    } else {
        looks.text
    };
    let mut line = Line::of(mark(is_selected, looks), style);
    let begin = line.width();
    let has_about = width > begin + column + ABOUT_CELLS_MIN;
    match item.about.as_ref().filter(|_| has_about) {
        Some(about) => {
            line.append(&Line::of(&item.label, style).cut(column - 2));
            line.pad_to(begin + column, style);
            line.push(about, if is_selected { style } else { looks.muted });
        }
        None => line.push(&item.label, style),
    }
    line.cut(width)
}

/// What is before a row.
pub(super) fn mark(is_selected: bool, looks: &Looks) -> &'static str {
    match (is_selected, looks.is_plain) {
        (true, false) => "→ ",
        (true, true) => "selected: ",
        (false, _) => "  ",
    }
}
