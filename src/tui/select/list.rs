//! A selection list, with a search if it is long.

use super::TextInput;
use crate::tui::fuzzy::Texts;
use crate::tui::key::Key;
use crate::tui::keymap::{self, Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::looks::Looks;
use crate::tui::width;
use std::ops::Range;

const LABEL_CELLS: Range<usize> = 12..32;
/// Minimum width for descriptions, in cells.
const ABOUT_CELLS_MIN: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub value: String,
    pub label: String,
    /// Muted text after the label.
    pub badge: String,
    pub about: Option<String>,
    /// Value in a column after all labels; the description follows.
    pub setting: Option<String>,
    /// Heading above the item; empty for none.
    pub group: String,
    /// Text to search instead of the displayed one.
    pub search: Option<String>,
}

impl Item {
    pub fn new(value: &str, label: &str) -> Self {
        Self { value: value.to_owned(), label: label.to_owned(), ..Self::default() }
    }

    pub fn badge(self, badge: &str) -> Self {
        let badge = badge.to_owned();
        Self { badge, ..self }
    }

    pub fn search(self, text: String) -> Self {
        let search = Some(text);
        Self { search, ..self }
    }

    /// Adds a value in a column of its own.
    pub fn setting(self, value: &str) -> Self {
        Self { setting: Some(value.to_owned()), ..self }
    }

    pub fn group(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// Adds a description, of which one line is shown.
    pub fn about(self, about: &str) -> Self {
        let line = about.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { about: (!line.is_empty()).then_some(line), ..self }
    }
}

/// Result of a key in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    Ignored,
    Moved,
    /// Index of the item among all.
    Chosen(usize),
    Cancelled,
}

#[derive(Debug)]
pub struct List {
    items: Vec<Item>,
    /// Indices of the items that match the search.
    shown: Vec<usize>,
    roll: Roll,
    search: Option<TextInput>,
    /// Texts to search; built when the user types.
    texts: Option<Texts>,
    /// Width of the label column, if descriptions follow.
    label_cells: Range<usize>,
}

/// The selection in a list of which only some rows are shown.
#[derive(Debug)]
struct Roll {
    at: usize,
    rows: usize,
}

impl Roll {
    /// Moves by an action; wraps around at the ends, except by pages.
    pub(super) fn act(&mut self, action: Action, count: usize) -> bool {
        let last = count.saturating_sub(1);
        self.at = match action {
            Action::SELECT_UP => self.at.checked_sub(1).unwrap_or(last),
            Action::SELECT_DOWN if self.at >= last => 0,
            Action::SELECT_DOWN => self.at + 1,
            Action::SELECT_PAGE_UP => self.at.saturating_sub(self.rows),
            Action::SELECT_PAGE_DOWN => (self.at + self.rows).min(last),
            _ => return false,
        };
        true
    }

    /// The visible rows, with the selected one in the middle if there are more.
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
            texts: None,
            label_cells: LABEL_CELLS,
        }
    }

    /// Sets the maximum width of labels that are followed by descriptions for which there is little room.
    pub fn label_cells(mut self, most: usize) -> Self {
        self.label_cells.end = most;
        self
    }

    /// The items that match a search, the best first.
    pub fn found(items: Vec<Item>, query: &str) -> Vec<Item> {
        let mut list = Self::new(items).searchable();
        list.set_query(query);
        list.shown().cloned().collect()
    }

    /// Sets the number of visible rows.
    pub fn rows(mut self, rows: usize) -> Self {
        self.roll.rows = rows.max(1);
        self
    }

    /// Enables the search by typing.
    pub fn searchable(mut self) -> Self {
        self.search = Some(TextInput::new("Type to search: "));
        self
    }

    /// Replaces the items; keeps the search, and the selection if still present.
    pub fn set_items(&mut self, items: Vec<Item>) {
        let before = self.selected().map(|item| item.value.clone());
        self.items = items;
        self.texts = None;
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

    /// The selected item, unless nothing matches the search.
    pub fn selected(&self) -> Option<&Item> {
        self.items.get(self.selected_index()?)
    }

    /// Index of the selected item among all.
    pub fn selected_index(&self) -> Option<usize> {
        self.shown.get(self.roll.at).copied()
    }

    /// Selects an item by its index among all, if it is visible.
    pub fn select(&mut self, index: usize) {
        if let Some(at) = self.shown.iter().position(|&shown| shown == index) {
            self.roll.at = at;
        }
    }

    pub fn set_rows(&mut self, rows: usize) {
        self.roll.rows = rows.max(1);
    }

    /// Position of the selection among the matching items.
    pub fn position(&self) -> usize {
        self.roll.at
    }

    /// Moves the selection to a position, or as near as possible.
    pub fn set_position(&mut self, at: usize) {
        self.roll.at = at.min(self.shown.len().saturating_sub(1));
    }

    /// The items that match the search.
    pub fn shown(&self) -> impl Iterator<Item = &Item> {
        self.shown.iter().filter_map(|&index| self.items.get(index))
    }

    pub fn query(&self) -> String {
        self.search.as_ref().map_or_else(String::new, TextInput::text)
    }

    pub fn set_query(&mut self, query: &str) {
        if let Some(search) = &mut self.search {
            search.set_text(query);
            self.narrow();
        }
    }

    fn narrow(&mut self) {
        let query = self.query();
        self.shown = match query.is_empty() {
            true => (0..self.items.len()).collect(),
            false => {
                let items = &self.items;
                let texts = self.texts.get_or_insert_with(|| texts(items));
                texts.filter(&query)
            }
        };
        self.roll.at = 0;
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Picked {
        match keymap.action(key, keymap::SELECT) {
            Some(Action::SELECT_CANCEL) => Picked::Cancelled,
            Some(Action::SELECT_CONFIRM) => match self.selected_index() {
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

    /// Adds pasted text to the search.
    pub fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            search.paste(text);
            self.narrow();
        }
    }

    /// Lines of the search, the rows, and the scroll position.
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
        let widest = labels.clone().map(cells).max();
        let abouts = labels.clone().filter_map(|item| item.about.as_deref());
        let widest_about = abouts.map(width::width).max().unwrap_or(0).max(ABOUT_CELLS_MIN + 1);
        // Labels may be wider where all descriptions have room besides.
        let left = width.saturating_sub(widest_about + width::width(mark(true, looks)));
        let cells = &self.label_cells;
        let column = (widest.unwrap_or(0) + 2).clamp(cells.start, cells.end.max(left));
        let settings = self.items.iter().filter(|item| item.setting.is_some());
        let widest = settings.map(|item| width::width(&item.label)).max();
        let column = widest.map_or(column, |widest| widest.min(width / 2) + 2);
        let is_searched = self.search.as_ref().is_some_and(|search| !search.text().is_empty());
        let mut group = "";
        for (at, item) in window.clone().zip(labels) {
            if item.group != group && !is_searched {
                group = &item.group;
                lines.push(Line::of(group, looks.muted).cut(width));
            }
            lines.push(row(item, at == self.roll.at, column, width, looks));
        }
        if window.len() < self.shown.len() {
            let counter = format!("  ({}/{})", self.roll.at + 1, self.shown.len());
            lines.push(Line::of(&counter, looks.muted).cut(width));
        }
        lines
    }
}

fn texts(items: &[Item]) -> Texts {
    let text = |item: &Item| match &item.search {
        Some(text) => text.clone(),
        None => {
            let about = item.about.as_deref().unwrap_or_default();
            format!("{} {} {about}", item.label, item.badge)
        }
    };
    let texts: Vec<String> = items.iter().map(text).collect();
    Texts::new(texts.iter().map(String::as_str))
}

/// Width of the label with its badge.
fn cells(item: &Item) -> usize {
    let badge = width::width(&item.badge);
    width::width(&item.label) + if badge > 0 { badge + 1 } else { 0 }
}

fn row(item: &Item, is_selected: bool, column: usize, width: usize, looks: &Looks) -> Line {
    let style = if is_selected { looks.selected } else { looks.text };
    let mut line = Line::of(mark(is_selected, looks), style);
    let begin = line.width();
    let mut label = Line::of(&item.label, style);
    if !item.badge.is_empty() {
        label.push(" ", style);
        label.push(&item.badge, looks.muted);
    }
    if let Some(value) = &item.setting {
        line.append(&label.cut(column - 2));
        line.pad_to(begin + column, style);
        line.push(value, if is_selected { style } else { looks.accent });
        if let Some(note) = &item.about {
            line.push(&format!("  {note}"), looks.muted);
        }
        return line.cut(width);
    }
    let has_about = width > begin + column + ABOUT_CELLS_MIN;
    match item.about.as_ref().filter(|_| has_about) {
        Some(about) => {
            line.append(&label.cut(column - 2));
            line.pad_to(begin + column, style);
            line.push(about, if is_selected { style } else { looks.muted });
        }
        None => line.append(&label),
    }
    line.cut(width)
}

/// The mark before a row.
fn mark(is_selected: bool, looks: &Looks) -> &'static str {
    match (is_selected, looks.is_plain) {
        (true, false) => "→ ",
        (true, true) => "selected: ",
        (false, _) => "  ",
    }
}
