//! A dialog that is a list: rows, a search if there are many, and actions of keys on a row.
//!
//! Moving, searching, scrolling and drawing are implemented here. A list brings its [`Rows`].

use super::frame::{indented, inside, keys, list_rows};
use super::{Dialog, Step};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::look::Look;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::wrap::wrap;

/// Content and actions of a list.
pub trait Rows {
    /// Maximum rows of the list.
    fn rows_max(&self) -> usize {
        10
    }

    /// Lines above the list.
    fn head(&self, look: &Look<'_>) -> Vec<Line>;

    /// Lines below the list, about the selected row.
    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let _ = (selected, look);
        Vec::new()
    }

    /// Key hints for the last line.
    fn hints(&self) -> &[(Action, &'static str)];

    /// The last lines: the key hints.
    fn hint_lines(&self, look: &Look<'_>) -> Vec<Line> {
        wrap(&keys(self.hints(), look), inside(look))
    }

    /// Rows taken by everything except the list and its head: rules, search, counter, a blank, detail, hints.
    fn other_rows(&self, detail: usize) -> usize {
        6 + detail
    }

    /// Text in place of a list without rows.
    fn nothing(&self, look: &Look<'_>) -> Option<Vec<Line>> {
        let _ = look;
        None
    }

    /// All lines between the rules.
    fn body(&mut self, list: &mut List, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = self.head(look);
        let detail = self.detail(list.selected(), look);
        let hints = self.hint_lines(look);
        let others = self.other_rows(detail.len()) + hints.len().saturating_sub(1);
        list.set_rows(list_rows(rows, &mut body, others, self.rows_max()));
        match self.nothing(look) {
            Some(text) => body.extend(text),
            None => {
                body.extend(list.render(inside(look), &look.looks()));
                body.push(Line::new());
                body.extend(detail);
            }
        }
        body.extend(hints);
        body
    }

    /// Applies the choice of the row `index`.
    fn choose(&mut self, index: usize, list: &mut List, config: &UiConfig) -> Vec<Effect>;

    /// Handles a key before the list; `None` passes the key on to the list.
    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        let _ = (key, list, config);
        None
    }

    /// Called when another row is selected or the search changes.
    fn moved(&mut self, list: &List) -> Vec<Effect> {
        let _ = list;
        Vec::new()
    }

    /// Called when the list is left without a choice.
    fn cancelled(&mut self) -> Vec<Effect> {
        vec![Effect::Close]
    }

    /// Handles pasted text before the search; true if handled.
    fn paste(&mut self, text: &str) -> bool {
        let _ = text;
        false
    }

    fn update(&mut self, update: &mut Update, list: &mut List, config: &UiConfig) {
        let _ = (update, list, config);
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}

pub struct ListDialog<R> {
    pub list: List,
    pub rows: R,
}

/// Screens with no more rows show the list and what is typed, nothing else.
const LOW: usize = 7;

impl<R: Rows> ListDialog<R> {
    pub fn new(list: List, rows: R) -> Self {
        Self { list, rows }
    }

    /// The dialog in so few rows that only the list has room, or what is typed besides it.
    fn low(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut detail = self.rows.detail(self.list.selected(), look);
        let typed = detail.iter().position(|line| line.cursor.is_some());
        let detail = typed.map(|at| detail.split_off(at)).unwrap_or_default();
        // The search, a heading and the position take rows, too.
        self.list.set_rows(rows.saturating_sub(detail.len() + 3).max(1));
        let mut lines = match self.rows.nothing(look) {
            Some(text) => text,
            None => self.list.render(look.width, &look.looks()),
        };
        lines.truncate(rows.saturating_sub(detail.len()).max(1));
        lines.extend(detail);
        lines.iter().map(|line| line.cut(look.width)).collect()
    }
}

impl<R: Rows> Dialog for ListDialog<R> {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        if rows <= LOW {
            return self.low(look, rows);
        }
        indented(self.rows.body(&mut self.list, look, rows), look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        if let Some(effects) = self.rows.key(key, &mut self.list, config) {
            return effects;
        }
        match self.list.handle(key, &config.keymap) {
            Picked::Chosen(index) => self.rows.choose(index, &mut self.list, config),
            Picked::Cancelled => self.rows.cancelled(),
            Picked::Moved => self.rows.moved(&self.list),
            Picked::Ignored => Vec::new(),
        }
    }

    fn paste(&mut self, text: &str) {
        if !self.rows.paste(text) {
            self.list.paste(text);
        }
    }

    fn update(&mut self, update: &mut Update, config: &UiConfig) -> Step {
        self.rows.update(update, &mut self.list, config);
        Step::Stay
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        self.rows.dismiss()
    }
}

/// The marks before rows that are active, and before the others.
pub fn marks(config: &UiConfig, plain: (&'static str, &'static str)) -> (&'static str, &'static str) {
    match config.is_plain {
        true => plain,
        false => ("✓ ", "  "),
    }
}
