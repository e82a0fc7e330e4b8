//! `/fork`: which prompt to begin anew at.

use super::{Dialog, Step, frame};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::navigate;
use crate::runtime::outline::ForkPoint;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use std::any::Any;

/// Characters of a prompt that a row can show.
const TEXT_MAX: usize = 300;

pub struct Fork {
    list: List,
}

/// Opens the list, with the last prompt chosen.
pub fn open(app: &mut App, points: Vec<ForkPoint>) {
    if points.is_empty() {
        return app.say(Weight::Info, "No messages to fork from");
    }
    app.open(Fork::new(&points));
}

impl Fork {
    fn new(points: &[ForkPoint]) -> Self {
        let items = points.iter().map(|point| {
            let words = point.text.chars().take(TEXT_MAX).collect::<String>();
            let words: Vec<&str> = words.split_whitespace().collect();
            Item::new(&point.entry_id, &words.join(" "))
        });
        let mut list = List::new(items.collect()).searchable();
        list.select(points.len().saturating_sub(1));
        Self { list }
    }
}

impl Dialog for Fork {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let width = look.width.saturating_sub(2).max(1);
        let title = look.style(Role::Text).with(Attributes::BOLD);
        let about = "Select a user message to copy the active path up to that point into a new session";
        let mut body = vec![
            Line::of("Fork from Message", title),
            Line::of(about, look.style(Role::Muted)).cut(width),
            Line::new(),
        ];
        self.list.set_rows(rows.saturating_sub(9).clamp(3, 10));
        body.extend(self.list.render(width, &look.looks()));
        let keys = [(Action::SELECT_CONFIRM, "fork"), (Action::SELECT_CANCEL, "cancel")];
        body.push(Line::new());
        body.push(hints(&keys, look.keymap, &look.looks()));
        frame::indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        match self.list.handle(key, &app.stage.keymap) {
            Picked::Chosen(_) => {
                if let Some(id) = self.list.selected().map(|item| item.value.clone()) {
                    navigate::fork_at(app, id);
                }
                Step::Close
            }
            Picked::Cancelled => Step::Close,
            Picked::Ignored | Picked::Moved => Step::Stay,
        }
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        self.list.paste(text);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
