//! A helper, seen live: its turns, and the answer that it is writing.

use super::frame::{indented, inside, text, title};
use super::{Dialog, Step};
use crate::base::file;
use crate::base::thread::Thread;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Opened, Update};
use crate::mode::interactive::feed::{Feed, Kind, News};
use crate::mode::interactive::look::{Layout, Look};
use crate::mode::interactive::transcript::{Transcript, stored_lines};
use crate::runtime::helpers::Member;
use crate::runtime::reading::{self, Messages};
use crate::runtime::{AgentMessage, ToolResult, plain_text};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::theme::Role;
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a diff that is shown, in bytes.
const DIFF_MAX: u64 = 4 << 20;

pub struct HelperView {
    member: Arc<Member>,
    feed: Arc<Feed>,
    turns: Vec<Turn>,
    /// The last entry that was read.
    leaf: Option<Arc<str>>,
    /// Why there are no messages.
    problem: String,
    /// What the lines of the turns were laid out by.
    layout: Option<Layout>,
    /// The message that is being written, and how much of it was taken in.
    partial: Transcript,
    taken: Option<(u64, usize)>,
    /// The number of messages that had ended when the session was read last, and whether all had.
    read: Option<(u64, bool)>,
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
}

/// A message with the results of its calls.
struct Turn {
    message: AgentMessage,
    results: Vec<Arc<ToolResult>>,
    /// `None` if they may have changed.
    lines: Option<Vec<Line>>,
}

impl HelperView {
    pub fn new(member: Arc<Member>, feed: Arc<Feed>) -> Self {
        let told = feed.clone();
        member.watch(Some(Arc::new(move || told.effect(Effect::Draw))));
        let mut view = Self {
            member,
            feed,
            turns: Vec::new(),
            leaf: None,
            problem: String::new(),
            layout: None,
            partial: Transcript::default(),
            taken: None,
            read: None,
            top: None,
            last: 0,
            page: 1,
            said: String::new(),
            diff: None,
            is_reading: false,
        };
        view.read();
        view
    }

    /// Reads what is new in the session on a thread, if a message has ended since it was read.
    fn read(&mut self) {
        let (ended, _) = self.member.partial(0, usize::MAX);
        let now = (ended, !self.member.is_open());
        if self.is_reading || self.read == Some(now) {
            return;
        }
        (self.is_reading, self.read) = (true, Some(now));
        let (member, feed, leaf) = (self.member.clone(), self.feed.clone(), self.leaf.clone());
        let read = move || {
            let none = || Messages { messages: Vec::new(), leaf: None, is_whole: true };
            let messages = match member.report().session {
                Some(path) => reading::messages(&path, leaf.as_deref()),
                None if member.report().turns == 0 => Ok(none()),
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

    /// Adds what was read.
    fn add(&mut self, new: &mut Messages) {
        if new.is_whole {
            self.turns.clear();
        }
        self.leaf = new.leaf.take().or(self.leaf.take());
        for message in new.messages.drain(..) {
            match (message, self.turns.last_mut()) {
                (AgentMessage::ToolResult(result), Some(turn)) => {
                    turn.results.push(result);
                    turn.lines = None;
                }
                (message, _) => self.turns.push(Turn { message, results: Vec::new(), lines: None }),
            }
        }
        // What is still written begins anew.
        (self.partial, self.taken) = (Transcript::default(), None);
    }

    /// Takes in what was written since.
    fn follow(&mut self, look: &Look<'_>) {
        let (known, taken) = self.taken.unwrap_or((u64::MAX, 0));
        let (ended, text) = self.member.partial(known, taken);
        if ended != known {
            // What has ended is shown until it is read from the session.
            self.read();
        }
        if text.is_empty() {
            return;
        }
        let (index, now) = (usize::try_from(ended).unwrap_or(usize::MAX), Instant::now());
        if ended != known {
            let (kind, id, name) = (Kind::Text, String::new(), String::new());
            self.partial.take(&mut News::BlockStarted { index, kind, id, name }, look, now);
        }
        let taken = if ended == known { taken } else { 0 };
        self.taken = Some((ended, taken + text.len()));
        self.partial.take(&mut News::Piece { index, kind: Kind::Text, text }, look, now);
    }

    /// Lays out the turns whose lines may have changed.
    fn lay_out(&mut self, look: &Look<'_>) {
        if !self.layout.as_ref().is_some_and(|layout| layout.is_of(look)) {
            self.layout = Some(Layout::of(look));
            self.turns.iter_mut().for_each(|turn| turn.lines = None);
        }
        let is_open = self.member.is_open();
        for turn in self.turns.iter_mut().filter(|turn| turn.lines.is_none()) {
            let message = [(turn.message.clone(), turn.results.clone())];
            turn.lines = Some(stored_lines(message, look, &mut |call| {
                if !is_open {
                    call.fail("No result", None);
                }
                None
            }));
        }
        self.partial.lay_out(look);
    }

    /// A page of the lines, from row `top` or the last page on, and their number.
    fn seen(&mut self, look: &Look<'_>, top: Option<usize>, rows: usize) -> (Vec<Line>, usize) {
        let cut = |parts: &[&[Line]]| {
            let count = parts.iter().map(|lines| lines.len()).sum::<usize>();
            let last = count.saturating_sub(rows);
            let lines = parts.iter().copied().flatten().skip(top.unwrap_or(last).min(last));
            (lines.take(rows).cloned().collect(), count)
        };
        if let Some(diff) = &self.diff {
            return cut(&[&Self::draw_diff(diff, look)]);
        }
        let look = look.within(inside(look));
        self.follow(&look);
        self.lay_out(&look);
        let live = self.partial.live_parts(look, Instant::now());
        let turns = self.turns.iter().filter_map(|turn| turn.lines.as_deref());
        let parts: Vec<&[Line]> =
            turns.chain(live.iter().flat_map(|live| [live.ready, live.open.as_slice()])).collect();
        cut(&parts)
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
        // Two rules take rows, too.
        self.page = rows.saturating_sub(head.len() + foot.len() + 2).max(1);
        let (lines, count) = self.seen(look, self.top, self.page);
        self.last = count.saturating_sub(self.page);
        self.scroll(0);
        let mut body = head;
        body.extend(lines);
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
            Update::Helpers => {
                // Its calls are over if it is.
                self.turns.last_mut().into_iter().for_each(|turn| turn.lines = None);
                self.read();
            }
            Update::HelperTurns(name, messages) if *name == self.member.name => {
                match messages {
                    Ok(messages) => {
                        self.add(messages);
                        self.problem.clear();
                    }
                    Err(reason) => self.problem.clone_from(reason),
                }
                self.is_reading = false;
                self.read();
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
    fn a_message_that_ended_is_shown_until_it_is_read_and_once() {
        let (member, mut shown) = shown(Report::default());
        assert!(shown.text(80).contains("row 99 end"));
        member.write(None);
        member.write(Some("another"));
        let text = shown.text(80);
        assert!(text.contains("row 99 end") && text.contains("another"), "{text}");
        let message = |text: &str| {
            serde_json::from_value(
                serde_json::json!({"role": "assistant", "api": "", "provider": "", "model": "",
                "stopReason": "stop", "content": [{"type": "text", "text": text}]}),
            )
            .unwrap()
        };
        let mut read = |text: &str, is_whole| {
            let messages = vec![message(text)];
            let turns = Messages { messages, leaf: Some(text.into()), is_whole };
            shown.update(Update::HelperTurns(String::new(), Ok(turns)));
            shown.text(80)
        };
        let text = read("row 99 end", true);
        assert_eq!((text.matches("row 99 end").count(), text.matches("another").count()), (1, 1), "{text}");
        member.write(None);
        let text = read("another", false);
        assert_eq!((text.matches("row 99 end").count(), text.matches("another").count()), (1, 1), "{text}");
        assert_eq!(read("the rest", true).matches("another").count(), 0);
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
