//! A dialog that is a list: rows, a search if there are many, and actions of keys on a row.
//!
//! Moving, searching, scrolling and drawing are implemented here. A list brings its [`Rows`].

use super::frame::{indented, inside, keys};
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
        let others = self.other_rows(detail.len()) + hints.len().saturating_sub(1) + body.len();
        let most = self.rows_max();
        let nothing = self.nothing(look);
        if nothing.is_none() && rows.saturating_sub(others) < most.min(list.shown().count().max(1)).min(FEW) {
            return short_body(list, most, [body, detail, hints], look, rows.saturating_sub(2));
        }
        list.set_rows(rows.saturating_sub(others).clamp(1, most));
        match nothing {
            Some(text) => {
                if body.len() + text.len() + hints.len() + 2 > rows {
                    body.clear();
                }
                body.extend(text);
            }
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

/// A list with fewer rows for its items than that gets the rows of what is above and below it.
const FEW: usize = 3;

/// The list between what there is room for: what is typed, key hints, `detail` and `head`, in this order.
fn short_body(
    list: &mut List,
    most: usize,
    [head, detail, hints]: [Vec<Line>; 3],
    look: &Look<'_>,
    rows: usize,
) -> Vec<Line> {
    let needed = typed(detail.clone());
    let room = rows.saturating_sub(needed.len() + hints.len());
    let mut count = most.min(room);
    let mut lines = loop {
        list.set_rows(count);
        let lines = list.render(inside(look), &look.looks());
        match lines.len().saturating_sub(room) {
            over if over > 0 && count > 1 => count = count.saturating_sub(over).max(1),
            _ => break lines,
        }
    };
    let has_detail = lines.len() + detail.len() <= room + needed.len();
    lines.extend(if has_detail { detail } else { needed });
    lines.extend(hints);
    let mut body = if head.len() + lines.len() <= rows { head } else { Vec::new() };
    body.extend(lines);
    body
}

/// Lines from the one on that is typed into.
fn typed(mut lines: Vec<Line>) -> Vec<Line> {
    let typed = lines.iter().position(|line| line.cursor.is_some());
    typed.map(|at| lines.split_off(at)).unwrap_or_default()
}

impl<R: Rows> ListDialog<R> {
    pub fn new(list: List, rows: R) -> Self {
        Self { list, rows }
    }

    /// The dialog in so few rows that only the list has room, or what is typed besides it.
    fn low(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let detail = typed(self.rows.detail(self.list.selected(), look));
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
