//! A scrolled view of the whole conversation, for the viewer and the fullscreen mode.
//!
//! Only visible items are laid out, from the end or from the current position on, so that a conversation of
//! any length opens immediately. At the end the view follows new items. A search lays out everything once, on
//! a separate thread.

mod selection;

use super::conversation::Conversation;
use super::feed::Feed;
use super::keymap::{AppAction, VIEWER, VIEWER_SEARCH};
use super::look::{Kept, Layout, Look};
use super::search::{Field, Search};
use super::transcript::{Live, Transcript};
use crate::runtime::CancelToken;
use crate::runtime::control::Control;
use crate::tui::key::{Key, Mouse, MouseKind};
use crate::tui::keymap::Keymap;
use crate::tui::line::Line;
use crate::tui::select::Entered;
use selection::{Row, Selected, Selection};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two rows that are scrolled while the mouse is dragged and stands still at an edge.
const EDGE_PACE: Duration = Duration::from_millis(50);

/// Maximum items whose lines are cached.
const CACHED_MAX: usize = 256;

#[derive(Default)]
pub struct Scroll {
    top: Top,
    /// Item and line of the topmost row when last drawn, or where the view was moved to since.
    first: (usize, usize),
    /// Number of rows when last drawn.
    rows: usize,
    /// Item and line of each row when last drawn.
    seen: Vec<Row>,
    selection: Option<Selection>,
    /// Cancels the thread that reads a selection.
    copying: CancelToken,
    /// True while the mouse is dragged along the topmost row in which it was pressed.
    is_along_top: bool,
    /// The mouse while it is dragged at an edge beyond which there is more, and when it was looked at last.
    at_edge: Option<(Mouse, Instant)>,
    /// Number of stored items, and the parts behind them, when last drawn.
    stored: usize,
    live: Vec<u64>,
    pub laid_out: Option<Layout>,
    cache: HashMap<usize, Rc<[Line]>>,
    pub search: Option<Search>,
}

/// Position of the topmost row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Top {
    /// The line that makes the end visible.
    #[default]
    End,
    At {
        item: usize,
        line: usize,
    },
}

/// Source of the items.
pub struct Pages<'a> {
    pub conversation: &'a Conversation,
    pub control: &'a Control,
    pub transcript: &'a Transcript,
    pub look: Look<'a>,
    pub now: Instant,
    /// Parts that are not in the conversation yet.
    pub live: Vec<Live<'a>>,
    pub is_busy: bool,
}

/// The lines of an item.
enum Lines<'a> {
    Held(Rc<[Line]>),
    Live(&'a [Line], &'a [Line]),
}

impl Lines<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Held(lines) => lines.len(),
            Self::Live(ready, open) => ready.len() + open.len(),
        }
    }

    fn get(&self, at: usize) -> Option<&Line> {
        match self {
            Self::Held(lines) => lines.get(at),
            Self::Live(ready, open) => ready.get(at).or_else(|| open.get(at.checked_sub(ready.len())?)),
        }
    }
}

impl Pages<'_> {
    /// The text of an item.
    pub fn text(&self, at: usize) -> Option<String> {
        self.conversation.text(at, self.control)
    }

    fn count(&self) -> usize {
        self.conversation.items().len() + self.live.len()
    }

    fn stored(&self) -> usize {
        self.conversation.items().len()
    }
}

impl Scroll {
    pub fn forget(&mut self) {
        self.cache.clear();
        self.selection = None;
        // What was found was found in other lines.
        if let Some(search) = &mut self.search {
            search.is_stale = true;
        }
    }

    /// Takes the items that there are now: the number of stored ones, and the unfinished parts behind them. A
    /// selection stays with its parts. It ends when one of them is stored: it is cut differently then.
    pub fn follow(&mut self, stored: usize, live: Vec<u64>) {
        let (stored_before, live_before) =
            (std::mem::replace(&mut self.stored, stored), std::mem::replace(&mut self.live, live));
        let place = |item: usize| {
            let Some(behind) = item.checked_sub(stored_before) else { return Some(item) };
            let part = live_before.get(behind)?;
            Some(stored + self.live.iter().position(|id| id == part)?)
        };
        self.selection = self.selection.and_then(|selection| selection.moved(place));
    }

    /// Starts the search for the typed text, if it has changed.
    pub fn look_for(&mut self, pages: &Pages<'_>, feed: &Arc<Feed>) {
        if let Some(search) = self.search.as_mut().filter(|search| search.is_due()) {
            let field = Field {
                conversation: pages.conversation.clone(),
                control: pages.control.clone(),
                look: Kept::of(&pages.look),
            };
            search.begin(field, feed);
        }
    }

    /// Opens a search from the topmost row on.
    pub fn begin_search(&mut self) {
        self.search = Some(Search::new(match self.top {
            Top::End => self.first,
            Top::At { item, line } => (item, line),
        }));
    }

    /// Handles a key; false if it has no meaning for the view.
    pub fn key(&mut self, key: &Key, keymap: &Keymap, pages: &Pages<'_>) -> bool {
        let action = match &mut self.search {
            None => keymap.action(key, VIEWER),
            Some(search) => match keymap.action(key, VIEWER_SEARCH) {
                Some(action) => Some(action),
                None if search.input.handle(key, keymap) == Entered::Handled => return true,
                None => keymap.action(key, VIEWER),
            },
        };
        let Some(action) = action else {
            return self.search.is_some();
        };
        let half = (self.page() / 2).max(1);
        match action {
            AppAction::VIEW_PAGE_UP => self.scroll(-self.page(), pages),
            AppAction::VIEW_PAGE_DOWN => self.scroll(self.page(), pages),
            AppAction::VIEW_HALF_PAGE_UP => self.scroll(-half, pages),
            AppAction::VIEW_HALF_PAGE_DOWN => self.scroll(half, pages),
            AppAction::VIEW_LINE_UP => self.scroll(-1, pages),
            AppAction::VIEW_LINE_DOWN => self.scroll(1, pages),
            AppAction::VIEW_TOP => self.go_to_start(),
            AppAction::VIEW_BOTTOM => self.go_to_end(),
            AppAction::VIEW_PREVIOUS_PROMPT => self.go_to_prompt(false, pages),
            AppAction::VIEW_NEXT_PROMPT => self.go_to_prompt(true, pages),
            AppAction::VIEW_SEARCH => self.begin_search(),
            AppAction::VIEW_SEARCH_NEXT => self.go_to_match(true, pages),
            AppAction::VIEW_SEARCH_PREVIOUS => self.go_to_match(false, pages),
            AppAction::VIEW_SEARCH_CLOSE => self.search = None,
            _ => {}
        }
        true
    }

    pub fn go_to_end(&mut self) {
        self.top = Top::End;
    }

    pub fn go_to_start(&mut self) {
        self.go_to(0, 0);
    }

    fn go_to(&mut self, item: usize, line: usize) {
        self.top = Top::At { item, line };
        self.first = (item, line);
    }

    pub fn is_at_end(&self) -> bool {
        self.top == Top::End
    }

    /// The item of the topmost row.
    pub fn first_item(&self) -> usize {
        self.first.0
    }

    /// Share of the conversation above the window, in percent.
    pub fn percent(&self, pages: &Pages<'_>) -> usize {
        let Top::At { item, line } = self.top else {
            return 100;
        };
        // As far as it is known: items above may be of any length.
        let length = self.cache.get(&item).map_or(1, |lines| lines.len().max(1));
        (item * 100 + line.min(length) * 100 / length) / pages.count().max(1)
    }

    pub fn page(&self) -> isize {
        isize::try_from(self.rows.saturating_sub(2).max(1)).unwrap_or(1)
    }

    fn lines<'p>(&mut self, at: usize, pages: &'p Pages<'_>) -> Lines<'p> {
        if let Some(lines) = self.cache.get(&at) {
            return Lines::Held(lines.clone());
        }
        let Some(behind) = at.checked_sub(pages.stored()) else {
            let mut live = |id: &str| pages.transcript.call_lines(id, &pages.look, pages.now);
            let (lines, is_final) =
                pages.conversation.lines(at, pages.control, &pages.look, pages.is_busy, &mut live);
            let lines: Rc<[Line]> = lines.into();
            if is_final {
                if self.cache.len() >= CACHED_MAX {
                    let around = at.saturating_sub(CACHED_MAX / 4)..at + CACHED_MAX / 4;
                    self.cache.retain(|item, _| around.contains(item));
                }
                self.cache.insert(at, lines.clone());
            }
            return Lines::Held(lines);
        };
        match pages.live.get(behind) {
            Some(live) => Lines::Live(live.ready, &live.open),
            None => Lines::Live(&[], &[]),
        }
    }

    /// The rows of the window, each with its item and line number.
    fn seen(&mut self, pages: &Pages<'_>, rows: usize) -> Vec<(usize, usize, Line)> {
        let mut seen = Vec::new();
        if let Top::At { item, line } = self.top {
            let mut skip = line;
            for at in item..pages.count() {
                let lines = self.lines(at, pages);
                // Less of it may be there than before.
                if at == item {
                    skip = skip.min(lines.len().saturating_sub(1));
                }
                for number in skip..lines.len() {
                    if seen.len() == rows {
                        break;
                    }
                    seen.extend(lines.get(number).map(|line| (at, number, line.clone())));
                }
                skip = 0;
                if seen.len() == rows {
                    return seen;
                }
            }
            // The end is reached: there is no looking past it.
            seen.clear();
            self.top = Top::End;
        }
        for at in (0..pages.count()).rev() {
            let lines = self.lines(at, pages);
            for number in (0..lines.len()).rev() {
                seen.extend(lines.get(number).map(|line| (at, number, line.clone())));
                if seen.len() == rows {
                    break;
                }
            }
            if seen.len() == rows {
                break;
            }
        }
        seen.reverse();
        seen
    }

    /// The visible rows and the search row, at most `rows` lines.
    pub fn frame(&mut self, pages: &Pages<'_>, rows: usize) -> Vec<Line> {
        self.rows = rows;
        if let Some(mut search) = self.search.take() {
            for at in search.unsearched(pages.stored()) {
                let lines = self.lines(at, pages);
                let texts = (0..lines.len()).filter_map(|number| lines.get(number));
                search.look_through(at, texts);
            }
            let found = search.take();
            self.search = Some(search);
            if let Some((item, line)) = found {
                self.show(item, line, pages);
            }
        }
        let seen = self.seen(pages, rows);
        self.first = seen.first().map_or((0, 0), |&(item, line, _)| (item, line));
        self.seen = seen.iter().map(|&(item, line, _)| (item, line)).collect();
        let (search, selection) = (self.search.as_ref(), self.selection.as_ref());
        let marked = |(item, number, line): (usize, usize, Line)| {
            let line = match search {
                Some(search) => search.mark(item, number, line, &pages.look),
                None => line,
            };
            match selection {
                Some(selection) => selection.mark((item, number), line),
                None => line,
            }
        };
        seen.into_iter().map(marked).collect()
    }

    /// Scrolls by lines; up if negative.
    pub fn scroll(&mut self, by: isize, pages: &Pages<'_>) {
        let (mut item, mut line) = self.first;
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > line {
                let Some(before) = item.checked_sub(1) else {
                    return self.go_to_start();
                };
                left -= line;
                item = before;
                line = self.lines(item, pages).len();
            }
            line -= left;
        } else {
            if self.is_at_end() {
                return;
            }
            loop {
                let below = self.lines(item, pages).len().saturating_sub(line);
                if left < below {
                    line += left;
                    break;
                }
                left -= below;
                (item, line) = (item + 1, 0);
                if item >= pages.count() {
                    return self.go_to_end();
                }
            }
        }
        self.go_to(item, line);
    }

    /// Time until a drag that stands still at the edge goes on.
    pub fn drags_in(&self, now: Instant) -> Option<Duration> {
        self.at_edge.map(|(_, since)| (since + EDGE_PACE).saturating_duration_since(now))
    }

    /// Goes on with a drag that stands still at the edge, if it is time.
    pub fn drag_on(&mut self, pages: &Pages<'_>, now: Instant) {
        if let Some((mouse, since)) = self.at_edge
            && since + EDGE_PACE <= now
        {
            self.select(mouse, pages, now);
        }
    }

    /// Selects with the mouse. True if a selection was completed.
    pub fn select(&mut self, mouse: Mouse, pages: &Pages<'_>, now: Instant) -> bool {
        let row = usize::from(mouse.row);
        self.at_edge = None;
        match mouse.kind {
            MouseKind::Release(_) => return self.selection.as_mut().is_some_and(Selection::release),
            MouseKind::Press(0) if row >= self.rows => self.selection = None,
            MouseKind::Press(0) | MouseKind::Drag(0) => {
                let Some(&place) = self.seen.get(row).or(self.seen.last()) else {
                    return false;
                };
                // Below the last line is its end.
                let cell = if row < self.seen.len() { usize::from(mouse.column) } else { usize::MAX };
                let line = self.lines(place.0, pages).get(place.1).cloned().unwrap_or_default();
                let is_press = mouse.kind == MouseKind::Press(0);
                self.is_along_top = row == 0 && (is_press || self.is_along_top);
                if is_press {
                    let last = self.selection.as_ref();
                    self.selection = Some(Selection::press(last, place, cell, &line, now));
                } else if let Some(selection) = &mut self.selection {
                    selection.drag(place, cell, &line);
                    let by = match row {
                        0 if !self.is_along_top => -1,
                        row if row >= self.rows => 1,
                        _ => return false,
                    };
                    let before = self.top;
                    self.scroll(by, pages);
                    self.at_edge = (self.top != before).then_some((mouse, now));
                }
            }
            _ => {}
        }
        false
    }

    /// True if a row of the screen was in the window when last drawn.
    pub fn has_row(&self, row: usize) -> bool {
        row < self.rows
    }

    /// What is selected, to be read on another thread; `None` for blanks alone. Another one that is still read is not
    /// wanted any more.
    pub fn selected(&mut self, pages: &Pages<'_>) -> Option<Selected> {
        let selection = self.selection.filter(|selection| selection.is_shown)?;
        let (first, last) = selection.rows();
        let has_text = |at: usize| {
            let lines = self.lines(at, pages);
            let mut texts =
                (0..lines.len()).filter_map(|line| Some(selection.text((at, line), lines.get(line)?)));
            texts.any(|text| !text.is_empty())
        };
        if !(first.0..=last.0).any(has_text) {
            return None;
        }
        let cancel = CancelToken::new();
        std::mem::replace(&mut self.copying, cancel.clone()).cancel();
        let first = first.0.max(pages.conversation.last_message());
        let open = (first..=last.0).map(|at| {
            let lines = self.lines(at, pages);
            (at, (0..lines.len()).filter_map(|number| lines.get(number)).cloned().collect())
        });
        let open = open.collect();
        let field = Field {
            conversation: pages.conversation.clone(),
            control: pages.control.clone(),
            look: Kept::of(&pages.look),
        };
        Some(Selected { selection, field, is_busy: pages.is_busy, open, cancel })
    }

    /// Takes the selection away. True if there was one to see.
    pub fn deselect(&mut self) -> bool {
        self.selection.take().is_some_and(|selection| selection.is_shown)
    }

    /// Scrolls to the prompt above the topmost row, or the next below.
    pub fn go_to_prompt(&mut self, is_next: bool, pages: &Pages<'_>) {
        let (item, line) = self.first;
        let is_prompt = |at: &usize| pages.conversation.is_prompt(*at);
        let found = match is_next {
            true => (item + 1..pages.stored()).find(is_prompt),
            // The row above a prompt is empty.
            false => (0..item + usize::from(line > 1)).rev().find(is_prompt),
        };
        match found {
            Some(item) => self.go_to(item, 0),
            None if is_next => self.go_to_end(),
            None => self.go_to_start(),
        }
    }

    /// Brings a line into view, with some of what is above it.
    fn show(&mut self, item: usize, line: usize, pages: &Pages<'_>) {
        self.go_to(item, line);
        let above = isize::try_from(self.rows / 3).unwrap_or(0);
        self.scroll(-above, pages);
    }

    /// Scrolls to the next or previous match from the visible part on; wraps around.
    pub fn go_to_match(&mut self, is_next: bool, pages: &Pages<'_>) {
        let first = self.first;
        let Some(search) = &mut self.search else {
            return;
        };
        if let Some((item, line)) = search.step(is_next, first) {
            self.show(item, line, pages);
        }
    }
}

#[cfg(test)]
mod tests;
