//! The list of `/tree`: browses the session's tree, and goes to another entry.

mod row;
mod shape;

use super::{Dialog, Step, frame};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::keymap::{AppAction, TREE};
use crate::mode::interactive::look::Look;
use crate::runtime::now_iso;
use crate::runtime::outline::Outline;
use crate::tui::key::{Code, Key, Modifiers};
use crate::tui::keymap::{self, Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Entered, TextInput, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
pub use shape::Filter;
use shape::Shape;

const ROWS_MIN: usize = 5;

pub struct Tree {
    /// `None` until the tree has been read.
    shape: Option<Shape>,
    filter: Filter,
    /// The selected row.
    at: usize,
    /// Height of the list when last drawn.
    height: usize,
    shows_times: bool,
    /// Input of a label for the selected entry.
    label: Option<TextInput>,
    /// Id of the entry selected at first.
    begin: Option<String>,
}

impl Tree {
    pub fn new(filter: Filter, begin: Option<String>) -> Self {
        Self { shape: None, filter, at: 0, height: ROWS_MIN, shows_times: false, label: None, begin }
    }

    pub fn take(&mut self, outline: Outline) {
        let shape = Shape::new(outline, self.filter);
        let begin = self.begin.take().and_then(|id| shape.position(&id));
        self.at = shape.nearest(begin.or(shape.outline().leaf));
        self.shape = Some(shape);
    }

    /// Changes which entries are shown; the cursor stays on its entry, or moves to the nearest one above.
    fn change(&mut self, change: impl FnOnce(&mut Shape)) {
        if let Some(shape) = &mut self.shape {
            let item = shape.rows.get(self.at).map(|row| row.item);
            change(shape);
            shape.lay_out();
            self.at = shape.nearest(item.or(shape.outline().leaf));
        }
    }

    fn set_filter(&mut self, filter: Filter) {
        self.change(|shape| {
            shape.unfold_all();
            shape.filter = filter;
        });
    }

    fn search(&mut self, edit: impl FnOnce(&mut String)) {
        self.change(|shape| {
            shape.unfold_all();
            edit(&mut shape.query);
        });
    }

    fn selected(&self) -> Option<(u32, &str)> {
        let shape = self.shape.as_ref()?;
        let item = shape.rows.get(self.at)?.item;
        Some((item, &shape.item(item)?.id))
    }

    fn handle(&mut self, key: &Key, keymap: &Keymap) -> Vec<Effect> {
        if let Some(label) = &mut self.label {
            match label.handle(key, keymap) {
                Entered::Text(text) => {
                    self.label = None;
                    return self.named(text.trim());
                }
                Entered::Cancelled => self.label = None,
                Entered::Ignored | Entered::Handled => {}
            }
            return Vec::new();
        }
        let Some(shape) = &mut self.shape else {
            return match keymap.is(key, Action::SELECT_CANCEL) {
                true => vec![Effect::Close],
                false => Vec::new(),
            };
        };
        let last = shape.rows.len().saturating_sub(1);
        match keymap.action(key, keymap::SELECT) {
            Some(Action::SELECT_UP) => self.at = self.at.checked_sub(1).unwrap_or(last),
            Some(Action::SELECT_DOWN) => self.at = if self.at >= last { 0 } else { self.at + 1 },
            Some(Action::SELECT_PAGE_UP) => self.at = self.at.saturating_sub(self.height),
            Some(Action::SELECT_PAGE_DOWN) => self.at = (self.at + self.height).min(last),
            Some(Action::SELECT_CONFIRM) => {
                return match self.selected() {
                    Some((_, id)) => vec![Effect::Close, Effect::GoTo(id.to_owned())],
                    None => Vec::new(),
                };
            }
            Some(Action::SELECT_CANCEL) if shape.query.is_empty() => return vec![Effect::Close],
            Some(Action::SELECT_CANCEL) => self.search(String::clear),
            _ => return self.tree_key(key, keymap),
        }
        Vec::new()
    }

    fn tree_key(&mut self, key: &Key, keymap: &Keymap) -> Vec<Effect> {
        let Some(shape) = &mut self.shape else {
            return Vec::new();
        };
        let filter = shape.filter;
        let toggled = |wanted: Filter| match filter == wanted {
            true => Filter::Default,
            false => wanted,
        };
        match keymap.action(key, TREE) {
            Some(AppAction::MESSAGE_COPY) => {
                return match self.selected() {
                    Some((_, id)) => vec![Effect::CopyEntry(id.to_owned())],
                    None => Vec::new(),
                };
            }
            Some(AppAction::TREE_FOLD_OR_UP) => self.fold_or_up(),
            Some(AppAction::TREE_UNFOLD_OR_DOWN) => self.unfold_or_down(),
            Some(AppAction::TREE_EDIT_LABEL) => {
                let item = shape.rows.get(self.at).and_then(|row| shape.item(row.item));
                self.label = item.map(|item| {
                    let mut input = TextInput::new("");
                    if let Some(bookmark) = &item.bookmark {
                        input.set_text(&bookmark.label);
                    }
                    input
                });
            }
            Some(AppAction::TREE_TOGGLE_LABEL_TIMESTAMP) => self.shows_times = !self.shows_times,
            Some(AppAction::TREE_FILTER_DEFAULT) => self.set_filter(Filter::Default),
            Some(AppAction::TREE_FILTER_NO_TOOLS) => self.set_filter(toggled(Filter::NoTools)),
            Some(AppAction::TREE_FILTER_USER_ONLY) => self.set_filter(toggled(Filter::UserOnly)),
            Some(AppAction::TREE_FILTER_LABELED_ONLY) => self.set_filter(toggled(Filter::LabeledOnly)),
            Some(AppAction::TREE_FILTER_ALL) => self.set_filter(toggled(Filter::All)),
            Some(AppAction::TREE_FILTER_CYCLE_FORWARD) => self.set_filter(filter.turned(true)),
            Some(AppAction::TREE_FILTER_CYCLE_BACKWARD) => self.set_filter(filter.turned(false)),
            _ if keymap.is(key, Action::CURSOR_LEFT) => {
                self.at = self.at.saturating_sub(self.height);
            }
            _ if keymap.is(key, Action::CURSOR_RIGHT) => {
                let last = shape.rows.len().saturating_sub(1);
                self.at = (self.at + self.height).min(last);
            }
            _ if keymap.is(key, Action::DELETE_CHAR_BACKWARD) => {
                if !shape.query.is_empty() {
                    self.search(|query| {
                        query.pop();
                    });
                }
            }
            _ => {
                if let Some(letter) = key.typed().filter(|letter| !letter.is_control()) {
                    self.search(|query| query.push(letter));
                }
            }
        }
        Vec::new()
    }

    fn fold_or_up(&mut self) {
        let at = self.at;
        let Some(shape) = &mut self.shape else {
            return;
        };
        let item = shape.rows.get(at).map(|row| row.item);
        match item.filter(|&item| shape.can_fold(at) && !shape.is_folded(item)) {
            Some(item) => shape.fold(item, true),
            None => self.at = shape.branch_above(at),
        }
    }

    fn unfold_or_down(&mut self) {
        let at = self.at;
        let Some(shape) = &mut self.shape else {
            return;
        };
        let item = shape.rows.get(at).map(|row| row.item);
        match item.filter(|&item| shape.is_folded(item)) {
            Some(item) => shape.fold(item, false),
            None => self.at = shape.branch_below(at),
        }
    }

    /// Sets or clears the label of the selected entry.
    fn named(&mut self, label: &str) -> Vec<Effect> {
        let Some((item, id)) = self.selected() else {
            return Vec::new();
        };
        let id = id.to_owned();
        let label = Some(label).filter(|label| !label.is_empty());
        self.change(|shape| shape.set_label(item, label, now_iso()));
        vec![Effect::Label { id, label: label.map(str::to_owned) }]
    }

    fn draw(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let looks = look.looks();
        let muted = look.style(Role::Muted);
        let title = look.style(Role::Text).with(Attributes::BOLD);
        let mut head = vec![Line::of("Session Tree", title)];
        let help = help(look);
        // The tree matters more than the help.
        if rows >= ROWS_MIN + help.len() + 7 {
            head.extend(help);
        }
        let mut search = Line::of("Type to search: ", muted);
        let query = self.shape.as_ref().map_or("", |shape| &shape.query);
        search.push(query, look.style(Role::Accent));
        head.push(search);
        head.push(Line::new());
        let used = head.len() + 3;
        let height = (rows / 2).max(ROWS_MIN).min(rows.saturating_sub(used)).max(1);
        self.height = height;
        let mut body = head;
        if let Some(label) = &mut self.label {
            body.push(Line::of("Label (empty to remove):", muted));
            body.push(label.render(look.width.saturating_sub(2).max(1), &looks));
            let keys = [(Action::SELECT_CONFIRM, "save"), (Action::SELECT_CANCEL, "cancel")];
            body.push(hints(&keys, look.keymap, &looks));
            return frame::indented(body, look, rows);
        }
        let Some(shape) = &self.shape else {
            body.push(Line::of("Loading...", muted));
            return frame::indented(body, look, rows);
        };
        if shape.rows.is_empty() {
            body.push(Line::of("No entries found", muted));
            body.push(Line::of(&format!("(0/0){}", shape.filter.mark()), muted));
            return frame::indented(body, look, rows);
        }
        body.extend(row::rows(
            shape,
            shape.window(self.at, height),
            self.at,
            self.shows_times,
            &look.within(look.width.saturating_sub(1)),
        ));
        let times = if self.shows_times { " [+label time]" } else { "" };
        let counter = format!("({}/{}){}{times}", self.at + 1, shape.rows.len(), shape.filter.mark());
        body.push(Line::of(&counter, muted));
        frame::indented(body, look, rows)
    }
}

/// Key hints, in as many rows as needed.
fn help(look: &Look<'_>) -> Vec<Line> {
    const KEYS: [(&[Action], &str); 8] = [
        (&[Action::SELECT_UP, Action::SELECT_DOWN], "move"),
        (&[Action::CURSOR_LEFT, Action::CURSOR_RIGHT], "page"),
        (&[AppAction::TREE_FOLD_OR_UP, AppAction::TREE_UNFOLD_OR_DOWN], "branch"),
        (&[AppAction::MESSAGE_COPY], "copy"),
        (&[AppAction::TREE_EDIT_LABEL], "label"),
        (&[AppAction::TREE_TOGGLE_LABEL_TIMESTAMP], "label time"),
        (
            &[
                AppAction::TREE_FILTER_DEFAULT,
                AppAction::TREE_FILTER_NO_TOOLS,
                AppAction::TREE_FILTER_USER_ONLY,
                AppAction::TREE_FILTER_LABELED_ONLY,
                AppAction::TREE_FILTER_ALL,
            ],
            "filters",
        ),
        (&[AppAction::TREE_FILTER_CYCLE_FORWARD, AppAction::TREE_FILTER_CYCLE_BACKWARD], "cycle"),
    ];
    let muted = look.style(Role::Muted);
    let parts = KEYS.iter().filter_map(|(actions, about)| {
        let keys = keys(actions, look)?;
        Some(format!("{keys} {about}"))
    });
    let text = parts.collect::<Vec<_>>().join(" · ");
    wrap(&Line::of(&text, muted), look.width.saturating_sub(2).max(1))
}

/// The first keys of some actions, with shared modifiers written once: `ctrl+d/t/u`.
fn keys(actions: &[Action], look: &Look<'_>) -> Option<String> {
    let keys: Vec<Key> =
        actions.iter().filter_map(|action| look.keymap.keys(*action).first().copied()).collect();
    let first = keys.first()?;
    let shared = first.modifiers;
    let name = |key: &Key| match key.code {
        Code::Up if !look.is_plain => "↑".to_owned(),
        Code::Down if !look.is_plain => "↓".to_owned(),
        Code::Left if !look.is_plain => "←".to_owned(),
        Code::Right if !look.is_plain => "→".to_owned(),
        code => Key::plain(code).to_string(),
    };
    if shared != Modifiers::NONE && keys.iter().all(|key| key.modifiers == shared) {
        let whole = first.to_string();
        let prefix_len = whole.len() - Key::plain(first.code).to_string().len();
        let prefix = whole.get(..prefix_len).unwrap_or_default();
        let names: Vec<String> = keys.iter().map(name).collect();
        return Some(format!("{prefix}{}", names.join("/")));
    }
    let names = keys.iter().map(|key| match key.modifiers {
        Modifiers::NONE => name(key),
        _ => key.to_string(),
    });
    Some(names.collect::<Vec<_>>().join("/"))
}

impl Dialog for Tree {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        self.draw(look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        self.handle(key, &config.keymap)
    }

    fn paste(&mut self, text: &str) {
        match &mut self.label {
            Some(label) => label.paste(text),
            None => {
                let line = text.lines().next().unwrap_or_default().to_owned();
                self.search(|query| query.push_str(&line));
            }
        }
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        if let Update::Outline(outline) = update
            && let Some(outline) = outline.take()
        {
            self.take(outline);
        }
        Step::Stay
    }
}

#[cfg(test)]
mod tests;
