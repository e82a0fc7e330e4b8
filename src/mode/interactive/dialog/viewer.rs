//! The viewer: the whole conversation on a screen of its own, with what is folded opened.
//!
//! It shows what has scrolled away, what a compaction has taken from the model, and what still comes.

use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::scroll::{Pages, Scroll};
use crate::mode::interactive::search::Search;
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::theme::Role;
use std::any::Any;
use std::time::Instant;

pub struct Viewer {
    scroll: Scroll,
    /// Folded as in the conversation.
    is_folded: bool,
    /// What was done, until the next key.
    told: Option<String>,
}

impl Viewer {
    pub fn new() -> Self {
        Self { scroll: Scroll::default(), is_folded: false, told: None }
    }

    /// Copies what the topmost row is part of.
    fn copy(&mut self, app: &mut App) {
        let at = self.scroll.first_item();
        let text = app.conversation.text(at, &app.control);
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                app.copy(text, "Copied to clipboard");
                self.told = Some("Copied to clipboard".to_owned());
            }
            None => self.told = Some("Nothing to copy here".to_owned()),
        }
    }

    fn below(&self, percent: usize, look: &Look<'_>) -> [Line; 2] {
        let (dim, muted) = (look.style(Role::Dim), look.style(Role::Muted));
        let rule = look.style(Role::BorderMuted);
        let mark = if look.is_plain { "-" } else { "─" };
        let mut line = Line::of(&mark.repeat(2), rule);
        line.push(" Transcript ", look.style(Role::Accent));
        let place = match self.scroll.is_at_end() {
            true => "end".to_owned(),
            false => format!("{percent}%"),
        };
        line.push(&format!("{place} "), muted);
        if let Some(told) = &self.told {
            line.push(&format!("{mark} "), rule);
            line.push(&format!("{told} "), muted);
        }
        let left = look.width.saturating_sub(line.width());
        line.push(&mark.repeat(left), rule);
        let mut keys = Line::new();
        let fold = if self.is_folded { "open" } else { "fold" };
        for (key, about) in [("/", "search"), ("p/n", "prompts"), ("f", fold), ("y", "copy"), ("q", "leave")]
        {
            if !keys.is_empty() {
                keys.push(if look.is_plain { ", " } else { " · " }, dim);
            }
            keys.push(key, muted);
            keys.push(&format!(" {about}"), dim);
        }
        let width = look.width;
        [line.cut(width), keys.cut(width)]
    }
}

impl Dialog for Viewer {
    fn lines(&mut self, _: &Look<'_>, _: usize) -> Vec<Line> {
        Vec::new()
    }

    fn is_full(&self) -> bool {
        true
    }

    fn screen(&mut self, app: &mut App, now: Instant) -> Vec<Line> {
        let size = app.stage.size;
        let rows = size.rows.saturating_sub(2).max(1);
        app.search(&mut self.scroll, !self.is_folded, size.columns);
        let (mut lines, percent) =
            app.with_pages(&mut self.scroll, !self.is_folded, size.columns, now, |scroll, pages| {
                (scroll.frame(pages, rows), scroll.percent(pages))
            });
        lines.resize_with(rows, Line::new);
        let look = app.stage.look();
        let [rule, keys] = self.below(percent, &look);
        lines.push(rule);
        lines.push(match &mut self.scroll.search {
            Some(search) => search.line(&look),
            None => keys,
        });
        lines.truncate(size.rows);
        lines
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        self.told = None;
        let now = Instant::now();
        let width = app.stage.size.columns;
        if app.view_key(&mut self.scroll, key, !self.is_folded, width, now) {
            return Step::Stay;
        }
        let keymap = &app.stage.keymap;
        if keymap.is(key, AppAction::TOOLS_EXPAND) || keymap.is(key, Action::SELECT_CANCEL) {
            return Step::Close;
        }
        if keymap.is(key, AppAction::THINKING_TOGGLE) {
            app.stage.hides_thinking = !app.stage.hides_thinking;
            return Step::Stay;
        }
        let page = self.scroll.page();
        let (is_open, scroll) = (!self.is_folded, &mut self.scroll);
        let mut with = |app: &mut App, then: &dyn Fn(&mut Scroll, &Pages<'_>)| {
            app.with_pages(scroll, is_open, width, now, |scroll, pages| {
                then(scroll, pages);
            });
        };
        match (key.code, key.typed()) {
            (Code::Up, _) | (_, Some('k')) => with(app, &|scroll, pages| scroll.scroll(-1, pages)),
            (Code::Down, _) | (_, Some('j')) => with(app, &|scroll, pages| scroll.scroll(1, pages)),
            (_, Some('b')) => with(app, &|scroll, pages| scroll.scroll(-page, pages)),
            (_, Some(' ')) => with(app, &|scroll, pages| scroll.scroll(page, pages)),
            (_, Some('p')) => with(app, &|scroll, pages| scroll.go_to_prompt(false, pages)),
            (_, Some('n')) => with(app, &|scroll, pages| scroll.go_to_prompt(true, pages)),
            (_, Some('g')) => self.scroll.go_to_start(),
            (_, Some('G')) => self.scroll.go_to_end(),
            (_, Some('/')) => self.scroll.search = Some(Search::new()),
            (_, Some('f')) => self.is_folded = !self.is_folded,
            (_, Some('y')) => self.copy(app),
            (_, Some('q')) => return Step::Close,
            _ => {}
        }
        Step::Stay
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        if let Some(search) = &mut self.scroll.search {
            search.input.paste(text);
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
