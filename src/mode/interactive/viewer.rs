//! The viewer: the whole conversation on the alternate screen, with folded parts expanded.
//!
//! It includes lines that have scrolled away, messages that a compaction removed from the context, and the
//! unfinished part.

use super::feed::Feed;
use super::keymap::AppAction;
use super::look::Look;
use super::scroll::{Pages, Scroll};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::theme::Role;
use std::sync::Arc;

#[derive(Default)]
pub struct Viewer {
    pub scroll: Scroll,
    /// True if parts are folded as in the conversation.
    is_folded: bool,
    /// Result of the last key.
    notice: Option<&'static str>,
}

/// Request of a key in the viewer.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Nothing,
    Close,
    ToggleThinking,
    Copy(String),
}

impl Viewer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_open(&self) -> bool {
        !self.is_folded
    }

    /// Copies the text of the topmost row's item.
    fn copy(&mut self, pages: &Pages<'_>) -> Asked {
        let text = pages.text(self.scroll.first_item());
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                self.notice = Some("Copied to clipboard");
                Asked::Copy(text)
            }
            None => {
                self.notice = Some("Nothing to copy here");
                Asked::Nothing
            }
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
        if let Some(notice) = &self.notice {
            line.push(&format!("{mark} "), rule);
            line.push(&format!("{notice} "), muted);
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

    /// All lines of the screen.
    pub fn lines(&mut self, pages: &Pages<'_>, rows: usize, feed: &Arc<Feed>) -> Vec<Line> {
        let height = rows.saturating_sub(2).max(1);
        self.scroll.look_for(pages, feed);
        let mut lines = self.scroll.frame(pages, height);
        let percent = self.scroll.percent(pages);
        lines.resize_with(height, Line::new);
        let [rule, keys] = self.below(percent, &pages.look);
        lines.push(rule);
        lines.push(match &mut self.scroll.search {
            Some(search) => search.line(&pages.look),
            None => keys,
        });
        lines.truncate(rows);
        lines
    }

    pub fn key(&mut self, key: &Key, keymap: &Keymap, pages: &Pages<'_>) -> Asked {
        self.notice = None;
        if self.scroll.key(key, keymap, pages) {
            return Asked::Nothing;
        }
        if keymap.is(key, AppAction::TOOLS_EXPAND) || keymap.is(key, Action::SELECT_CANCEL) {
            return Asked::Close;
        }
        if keymap.is(key, AppAction::THINKING_TOGGLE) {
            return Asked::ToggleThinking;
        }
        let (page, scroll) = (self.scroll.page(), &mut self.scroll);
        match (key.code, key.typed()) {
            (Code::Up, _) | (_, Some('k')) => scroll.scroll(-1, pages),
            (Code::Down, _) | (_, Some('j')) => scroll.scroll(1, pages),
            (_, Some('b')) => scroll.scroll(-page, pages),
            (_, Some(' ')) => scroll.scroll(page, pages),
            (_, Some('p')) => scroll.go_to_prompt(false, pages),
            (_, Some('n')) => scroll.go_to_prompt(true, pages),
            (Code::Home, _) | (_, Some('g')) => scroll.go_to_start(),
            (Code::End, _) | (_, Some('G')) => scroll.go_to_end(),
            (_, Some('/')) => scroll.begin_search(),
            (_, Some('f')) => self.is_folded = !self.is_folded,
            (_, Some('y')) => return self.copy(pages),
            (_, Some('q')) => return Asked::Close,
            _ => {}
        }
        Asked::Nothing
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.scroll.search {
            search.input.paste(text);
        }
    }
}
