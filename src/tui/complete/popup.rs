//! The list of completions below the editor.

use super::{Change, Wanted};
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Looks, Picked};

#[derive(Debug)]
pub struct Popup {
    pub wanted: Wanted,
    list: List,
}

/// Result of a key in the popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The key is left to the editor.
    Ignored,
    Handled,
    /// Insert the item. `sends`: Enter also sends the line.
    Chosen {
        item: Item,
        sends: bool,
    },
    Closed,
}

impl Popup {
    /// Selects the item that is already typed. `None` if there are no items.
    pub fn new(wanted: Wanted, items: Vec<Item>, rows: usize) -> Option<Self> {
        if items.is_empty() {
            return None;
        }
        let typed = wanted.typed();
        let exact = items.iter().position(|item| item.value == typed);
        let first = exact.or_else(|| items.iter().position(|item| item.value.starts_with(typed)));
        let first = first.filter(|_| !typed.is_empty()).unwrap_or(0);
        let mut list = List::new(items).rows(rows);
        list.select(first);
        Some(Self { wanted, list })
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Answer {
        let chosen = |list: &List, sends| match list.selected() {
            Some(item) => Answer::Chosen { item: item.clone(), sends },
            None => Answer::Closed,
        };
        if keymap.is(key, Action::TAB) {
            return chosen(&self.list, false);
        }
        match self.list.handle(key, keymap) {
            Picked::Ignored => Answer::Ignored,
            Picked::Moved => Answer::Handled,
            Picked::Chosen(_) => chosen(&self.list, self.sends()),
            Picked::Cancelled => Answer::Closed,
        }
    }

    /// True if Enter also sends the line: after a command, or an argument that was begun.
    fn sends(&self) -> bool {
        match &self.wanted {
            Wanted::Command(_) => true,
            Wanted::Argument { text, .. } => !text.is_empty(),
            Wanted::File(_) | Wanted::Path(_) | Wanted::Text { .. } => false,
        }
    }

    /// The change of the line around the cursor for the selected item.
    pub fn apply(&self, item: &Item, before: &str, behind: &str) -> Change {
        self.wanted.apply(item, before, behind)
    }

    pub fn render(&mut self, width: usize, looks: &Looks) -> Vec<Line> {
        self.list.render(width, looks)
    }
}
