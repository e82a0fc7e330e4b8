//! A helper, seen live: its turns, and the answer that it is writing.

use super::frame::{indented, inside, text, title};
use super::{Dialog, Step};
use crate::base::file;
use crate::base::thread::Thread;
use crate::mode::interactive::card;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Opened, Update};
use crate::mode::interactive::feed::Feed;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::transcript::stored_lines;
use crate::runtime::helpers::Member;
use crate::runtime::{AgentMessage, plain_text, reading};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::theme::Role;
use std::sync::Arc;

/// Maximum size of a diff that is shown, in bytes.
const DIFF_MAX: u64 = 4 << 20;

pub struct HelperView {
    member: Arc<Member>,
    feed: Arc<Feed>,
    messages: Vec<AgentMessage>,
    /// Why there are no messages.
    problem: String,
    /// Lines of the messages, for a width.
    drawn: Option<(usize, Vec<Line>)>,
    /// The first visible row; `None` if the end is followed.
    top: Option<usize>,
    /// The first row of the last page when last drawn.
    last: usize,
    /// Rows of a page when last drawn.
    page: usize,
    said: String,
    /// The diff of its changes, if it is shown.
    diff: Option<String>,
    is_reading: bool,
    /// True if the session has changed since it was read.
    is_stale: bool,
}

impl HelperView {
    pub fn new(member: Arc<Member>, feed: Arc<Feed>) -> Self {
        let told = feed.clone();
        member.watch(Some(Arc::new(move || told.effect(Effect::Draw))));
        let mut view = Self {
            member,
            feed,
            messages: Vec::new(),
            problem: String::new(),
            drawn: None,
            top: None,
            last: 0,
            page: 1,
            said: String::new(),
            diff: None,
            is_reading: false,
            is_stale: false,
        };
        view.read();
        view
    }

    /// Reads the session on a thread.
    fn read(&mut self) {
        if std::mem::replace(&mut self.is_reading, true) {
            self.is_stale = true;
            return;
        }
        self.is_stale = false;
        let (member, feed) = (self.member.clone(), self.feed.clone());
        let read = move || {
            let messages = match member.report().session {
                Some(path) => reading::messages(&path),
                None if member.report().turns == 0 => Ok(Vec::new()),
                None => Err("Its session is not stored (--no-session)".to_owned()),
            };
            feed.effect(Effect::Update(Update::HelperTurns(member.name.clone(), messages)));
        };
        if let Err(error) = Thread::named("helper-view").start(read) {
            self.is_reading = false;
            self.problem = format!("Cannot start a thread: {error}");
        }
    }

    fn draw_diff(diff: &str, look: &Look<'_>) -> Vec<Line> {
        let role = |line: &str| match line.as_bytes().first() {
            Some(b'+') => Role::ToolDiffAdded,
            Some(b'-') => Role::ToolDiffRemoved,
            _ => Role::ToolDiffContext,
        };
        let lines = diff.lines().map(|line| Line::of(line, look.style(role(line))).cut(inside(look)));
        lines.collect()
    }

    /// Shows the diff of the helper's changes, or its turns again.
    fn toggle_diff(&mut self) {
        if self.diff.take().is_some() {
            self.top = None;
            return;
        }
        let patch = self.member.report().changes.and_then(|changes| changes.patch);
        match patch.map(|path| file::read(&path, DIFF_MAX)) {
            None => {
                self.said = "There is no diff: only a helper with isolated has one, at its end".to_owned()
            }
            Some(Err(error)) => self.said = format!("The diff cannot be read: {error}"),
            Some(Ok(bytes)) => {
                // How long the diff is shows when it is drawn.
                (self.top, self.last) = (Some(0), usize::MAX);
                self.diff = Some(plain_text(&bytes));
            }
        }
    }

    /// Scrolls by rows; up if negative.
    fn scroll(&mut self, by: isize) {
        let top = self.top.unwrap_or(self.last).saturating_add_signed(by);
        self.top = Some(top).filter(|top| *top < self.last);
    }

    fn draw(&mut self, look: &Look<'_>) -> Vec<Line> {
        if let Some(diff) = &self.diff {
            return Self::draw_diff(diff, look);
        }
        let width = inside(look);
        if self.drawn.as_ref().is_none_or(|(drawn, _)| *drawn != width) {
            let is_open = self.member.report().status.is_open();
            let mut messages = Vec::new();
            for message in &self.messages {
                match (message, messages.last_mut()) {
                    (AgentMessage::ToolResult(result), Some((_, results))) => {
                        Vec::push(results, result.clone());
                    }
                    (message, _) => messages.push((message.clone(), Vec::new())),
                }
            }
            let lines = stored_lines(messages, &look.within(width), &mut |call| {
                if !is_open {
                    call.fail("No result", None);
                }
                None
            });
            self.drawn = Some((width, lines));
        }
        let mut lines = self.drawn.as_ref().map(|(_, lines)| lines.clone()).unwrap_or_default();
        let partial = self.member.partial();
        if !partial.trim().is_empty() {
            lines.extend(card::text(&partial, &look.within(width)));
        }
        lines
    }
}

/// What a key does with a helper; `None` if it has no meaning.
pub fn act(member: &Arc<Member>, key: &Key) -> Option<Result<Vec<Effect>, String>> {
    let report = member.report();
    let is_open = report.status.is_open();
    Some(match key.typed()? {
        'm' if is_open => Ok(vec![Effect::WriteToHelper(member.clone())]),
        's' => member.stop().map(|()| Vec::new()),
        'g' if is_open => Err(format!("{} is still at work", member.name)),
        'm' => Err(format!("{} has ended; g goes on with its session", member.name)),
        'g' => match report.session {
            Some(path) => {
                let done = format!("Going on with the session of {}", member.name);
                Ok(vec![Effect::Dismiss, Effect::Open(Opened::new(path, &done))])
            }
            None => Err(format!("The session of {} is not stored", member.name)),
        },
        _ => return None,
    })
}

impl Dialog for HelperView {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let report = self.member.report();
        let mut head = vec![title(&report.line(), look).cut(inside(look))];
        head.extend(text(report.note.as_deref().unwrap_or_default(), Role::Warning, look));
        let changes = report.changes.map(|changes| changes.summary()).unwrap_or_default();
        head.extend(text(&changes, Role::Muted, look));
        head.extend(text(&self.problem, Role::Warning, look));
        // Most of the room is the helper's turns'.
        let most = (rows / 3).max(1);
        if head.len() > most {
            let left_out = head.len() - (most - 1);
            head.truncate(most - 1);
            let more = format!("… {left_out} more rows");
            head.push(Line::of(&more, look.style(Role::Dim)).cut(inside(look)));
        }
        head.push(Line::new());
        let mut foot = text(&self.said, Role::Error, look);
        let keys = "↑↓ scroll  d diff  m message  s stop  g go on with its session  Esc leave";
        foot.push(Line::of(keys, look.style(Role::Dim)).cut(inside(look)));
        let lines = self.draw(look);
        // Two rules take rows, too.
        self.page = rows.saturating_sub(head.len() + foot.len() + 2).max(1);
        self.last = lines.len().saturating_sub(self.page);
        self.scroll(0);
        let mut body = head;
        body.extend(lines.into_iter().skip(self.top.unwrap_or(self.last)).take(self.page));
        body.extend(foot);
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        if config.keymap.is(key, Action::SELECT_CANCEL) {
            self.member.watch(None);
            return vec![Effect::Close];
        }
        self.said.clear();
        let page = self.page.cast_signed();
        match key.code {
            Code::Up => self.scroll(-1),
            Code::Down => self.scroll(1),
            Code::PageUp => self.scroll(-page),
            Code::PageDown => self.scroll(page),
            Code::Home => self.top = Some(0),
            Code::End => self.top = None,
            _ if key.typed() == Some('d') => self.toggle_diff(),
            _ => match act(&self.member, key) {
                Some(Ok(effects)) => return effects,
                Some(Err(reason)) => self.said = reason,
                None => {}
            },
        }
        Vec::new()
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        match update {
            Update::Helpers => self.read(),
            Update::HelperTurns(name, messages) if *name == self.member.name => {
                match messages {
                    Ok(messages) => {
                        (self.messages, self.drawn) = (std::mem::take(messages), None);
                        self.problem.clear();
                    }
                    Err(reason) => self.problem.clone_from(reason),
                }
                self.is_reading = false;
                if self.is_stale {
                    self.read();
                }
            }
            _ => {}
        }
        Step::Stay
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        self.member.watch(None);
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;
    use crate::runtime::CancelToken;
    use crate::runtime::helpers::{Helpers, Report};

    fn shown(report: Report) -> (Arc<Member>, Shown) {
        let cancel = CancelToken::new();
        let member = Helpers::new(&cancel).add(report, cancel.child());
        for row in 0..100 {
            member.write(Some(&format!("row {row} end\n\n")));
        }
        let mut shown = Shown::new(|_| HelperView::new(member.clone(), Arc::new(Feed::new())));
        shown.set_rows(20);
        (member, shown)
    }

    #[test]
    fn the_reader_stays_at_a_row_and_follows_only_the_end() {
        let (member, mut shown) = shown(Report::default());
        assert!(shown.text(80).contains("row 99 end"));
        member.write(Some("row 100 end\n\n"));
        assert!(shown.text(80).contains("row 100 end"));
        // Without a frame between the keys.
        shown.press("home up pageup");
        assert!(shown.text(80).contains("row 0 end"));
        shown.press("pagedown down");
        let before = shown.text(80);
        assert!(!before.contains("row 0 end"));
        member.write(Some("row 101 end\n\n"));
        assert_eq!(shown.text(80), before);
        shown.press("end");
        assert!(shown.text(80).contains("row 101 end"));
    }

    #[test]
    fn what_a_key_came_to_is_said_until_the_next_key() {
        let (_member, mut shown) = shown(Report::default());
        shown.press("d");
        assert!(shown.text(80).contains("There is no diff"));
        shown.press("up");
        assert!(!shown.text(80).contains("There is no diff"));
    }

    #[test]
    fn a_long_note_leaves_room_for_the_turns() {
        let note = Some("note ".repeat(1_000));
        let (_member, mut shown) = shown(Report { note, ..Report::default() });
        let text = shown.text(80);
        assert!(text.contains("row 99 end") && text.contains("more rows"), "{text}");
        assert!(text.contains("row 95 end"), "{text}");
    }
}
