//! A search through the lines of the conversation.
//!
//! A thread lays out all lines, from the end to the beginning, and reports matches in batches. ASCII letters
//! match in either case.

use super::conversation::Conversation;
use super::effect::Effect;
use super::feed::Feed;
use super::look::{Kept, Look};
use crate::base::thread::Thread;
use crate::runtime::CancelToken;
use crate::runtime::control::Control;
use crate::tui::line::Line;
use crate::tui::select::TextInput;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Items searched per batch.
const PIECE: usize = 64;

pub struct Search {
    pub input: TextInput,
    /// The search text, in lower case.
    query: String,
    /// Items and lines of matches, the last first.
    hits: Vec<(usize, usize)>,
    current: Option<usize>,
    /// Item and line of the topmost row when the search began.
    from: (usize, usize),
    /// Number of items when the thread began; later items are searched as they come.
    searched: usize,
    /// True while the thread is searching.
    is_under_way: bool,
    /// Matches of the thread that are not collected yet.
    inbox: Arc<Mutex<Vec<Found>>>,
    /// True if the lines have changed since they were searched.
    pub is_stale: bool,
    /// Cancels the thread.
    cancel: CancelToken,
    number: u64,
}

/// Result of a thread.
struct Found {
    /// Number of the search.
    number: u64,
    hits: Vec<(usize, usize)>,
    is_over: bool,
}

/// The conversation to search, and its layout.
pub struct Field {
    pub conversation: Conversation,
    pub control: Control,
    pub look: Kept,
}

impl Search {
    /// Begins a search in a view whose topmost row is that of an item and a line.
    pub fn new(from: (usize, usize)) -> Self {
        Self {
            from,
            input: TextInput::new("Search: "),
            query: String::new(),
            hits: Vec::new(),
            current: None,
            searched: 0,
            is_under_way: false,
            inbox: Arc::default(),
            is_stale: false,
            cancel: CancelToken::new(),
            number: 0,
        }
    }

    /// True if the typed text differs from the one searched.
    pub fn is_due(&self) -> bool {
        self.is_stale || self.input.text().to_ascii_lowercase() != self.query
    }

    /// Starts the search for the typed text. The screen is woken when there are matches.
    pub fn begin(&mut self, field: Field, feed: &Arc<Feed>) {
        self.cancel.cancel();
        self.cancel = CancelToken::new();
        self.query = self.input.text().to_ascii_lowercase();
        self.hits.clear();
        self.current = None;
        self.is_stale = false;
        self.searched = field.conversation.items().len();
        let is_empty = self.searched == 0;
        self.number += 1;
        self.is_under_way = !self.query.is_empty() && !is_empty;
        if !self.is_under_way {
            return;
        }
        let (query, number, cancel) = (self.query.clone(), self.number, self.cancel.clone());
        let (feed, inbox) = (feed.clone(), self.inbox.clone());
        let look_through = move || {
            let mut hits = Vec::new();
            let look = field.look.look();
            for at in (0..field.conversation.items().len()).rev() {
                if cancel.is_cancelled() {
                    return;
                }
                let (lines, _) = field.conversation.lines(at, &field.control, &look, true, &mut |_| None);
                let found = (0..lines.len()).rev().filter(|&number| {
                    let line = lines.get(number);
                    line.is_some_and(|line| !matches_in(line.text(), &query).is_empty())
                });
                hits.extend(found.map(|number| (at, number)));
                let is_over = at == 0;
                if is_over || (at % PIECE == 0 && !hits.is_empty()) {
                    let found = Found { number, hits: std::mem::take(&mut hits), is_over };
                    inbox.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                    feed.effect(Effect::Draw);
                }
            }
        };
        let started = Thread::named("search").start(look_through);
        self.is_under_way = started.is_ok();
    }

    /// Collects matches; returns the one to show, if none is shown yet: the first from the topmost row of the view
    /// on, or else the last.
    pub fn take(&mut self) -> Option<(usize, usize)> {
        let inbox = std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        for found in inbox {
            if found.number == self.number {
                self.hits.extend(found.hits);
                self.is_under_way = !found.is_over;
            }
        }
        // Those behind were found first.
        let behind = self.hits.partition_point(|hit| *hit >= self.from);
        if self.current.is_none() && (behind < self.hits.len() || (behind > 0 && !self.is_under_way)) {
            self.current = Some(behind.saturating_sub(1));
            return self.hits.get(behind.saturating_sub(1)).copied();
        }
        None
    }

    /// The items that still have to be searched.
    pub fn unsearched(&mut self, count: usize) -> Range<usize> {
        let first = self.searched;
        self.searched = count.max(first);
        match self.query.is_empty() {
            true => count..count,
            false => first..count,
        }
    }

    pub fn look_through<'l>(&mut self, at: usize, lines: impl Iterator<Item = &'l Line>) {
        for (number, line) in lines.enumerate() {
            if !matches_in(line.text(), &self.query).is_empty() {
                self.hits.insert(0, (at, number));
                self.current = self.current.map(|current| current + 1);
            }
        }
    }

    /// The next or previous match; on the first call the one nearest to `from`.
    pub fn step(&mut self, is_next: bool, from: (usize, usize)) -> Option<(usize, usize)> {
        let last = self.hits.len().checked_sub(1)?;
        let next = match (self.current, is_next) {
            // The hits begin with the last.
            (Some(0), true) => last,
            (Some(current), true) => current - 1,
            (Some(current), false) if current >= last => 0,
            (Some(current), false) => current + 1,
            (None, _) => self.hits.iter().position(|hit| *hit <= from).unwrap_or(last),
        };
        self.current = Some(next);
        self.hits.get(next).copied()
    }

    /// Text such as `3/17`, or why there is no match.
    pub fn counter(&self) -> String {
        let count = self.hits.len();
        let more = if self.is_under_way { "…" } else { "" };
        match self.current {
            Some(current) => format!("{}/{count}{more}", count.saturating_sub(current)),
            None if self.query.is_empty() => String::new(),
            None if self.is_under_way => "…".to_owned(),
            None => "No matches".to_owned(),
        }
    }

    /// The row of the search input.
    pub fn line(&mut self, look: &Look<'_>) -> Line {
        let counter = self.counter();
        let room = look.width.saturating_sub(counter.len() + 2);
        let mut line = self.input.render(room.max(1), &look.looks());
        line.pad_to(room, Style::PLAIN);
        line.push(&format!(" {counter}"), look.style(Role::Muted));
        line.cut(look.width)
    }

    /// The line with its matches highlighted.
    pub fn mark(&self, item: usize, number: usize, line: Line, look: &Look<'_>) -> Line {
        let matches = matches_in(line.text(), &self.query);
        if matches.is_empty() {
            return line;
        }
        let current = self.current.and_then(|current| self.hits.get(current));
        let marked = look.style(Role::SearchMatchText).over(look.style(Role::SearchMatchBg));
        let style = match current == Some(&(item, number)) {
            true => marked.with(Attributes::BOLD | Attributes::INVERSE),
            false => marked.with(Attributes::UNDERLINE),
        };
        let mut out = Line::new();
        let mut end = 0;
        for found in matches {
            out.append(&line.slice(end..found.start));
            out.push(line.text().get(found.clone()).unwrap_or_default(), style);
            end = found.end;
        }
        out.append(&line.slice(end..line.text().len()));
        out
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Positions of `query`, which is in lower case, in a text.
fn matches_in(text: &str, query: &str) -> Vec<Range<usize>> {
    if query.is_empty() {
        return Vec::new();
    }
    let lower = text.to_ascii_lowercase();
    let found = lower.match_indices(query);
    found.map(|(at, part)| at..at + part.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_found_in_either_case() {
        for (text, query, expected) in [
            ("Ab aB", "ab", &[(0, 2), (3, 5)][..]),
            ("aaa", "aa", &[(0, 2)]),
            ("日本", "本", &[(3, 6)]),
            ("x", "", &[]),
            ("x", "y", &[]),
        ] {
            let found = matches_in(text, query).into_iter();
            let found: Vec<(usize, usize)> = found.map(|part| (part.start, part.end)).collect();
            assert_eq!(found, expected, "{text} {query}");
        }
    }

    #[test]
    fn matches_are_gone_through_in_a_circle() {
        let mut search = Search::new((0, 0));
        search.hits = vec![(9, 1), (5, 3), (2, 0)];
        let mut steps = |is_next, from| search.step(is_next, from).unwrap();
        assert_eq!(steps(true, (6, 0)), (5, 3));
        assert_eq!(steps(true, (6, 0)), (9, 1));
        assert_eq!(steps(true, (6, 0)), (2, 0));
        assert_eq!(steps(false, (6, 0)), (9, 1));
        assert_eq!(steps(false, (6, 0)), (5, 3));
        assert_eq!(search.counter(), "2/3");
    }

    #[test]
    fn a_search_begins_at_what_is_seen() {
        for (from, shown) in [((0, 0), (2, 0)), ((2, 1), (5, 3)), ((5, 3), (5, 3)), ((9, 2), (9, 1))] {
            let mut search = Search::new(from);
            search.hits = vec![(9, 1), (5, 3), (2, 0)];
            assert_eq!(search.take(), Some(shown), "{from:?}");
            assert_eq!(search.take(), None);
        }
        // What is not searched yet may be nearer.
        let mut search = Search::new((1, 0));
        search.is_under_way = true;
        search.hits = vec![(9, 1), (5, 3)];
        assert_eq!(search.take(), None);
        search.hits.push((0, 4));
        assert_eq!(search.take(), Some((5, 3)));
    }
}
