//! The conversation on screen: the log, the unfinished part, and scrolled views.

use super::card::{Call, Pictures, Shell, Weight, notice};
use super::conversation::{Conversation, Item};
use super::feed::{Feed, News};
use super::keymap::AppAction;
use super::look::{Layout, Look};
use super::scroll::{Pages, Scroll};
use super::transcript::{Printed, Transcript};
use super::viewer::{Asked, Viewer};
use crate::runtime::Describer;
use crate::runtime::control::Control;
use crate::tui::key::Key;
use crate::tui::keymap::Keymap;
use crate::tui::line::Line;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct View {
    control: Control,
    transcript: Transcript,
    /// The whole conversation, including what has scrolled away.
    conversation: Conversation,
    /// The conversation's scroll state in fullscreen mode.
    window: Scroll,
    /// The viewer, if it is open.
    viewer: Option<Viewer>,
    /// The end of a conversation that was opened, until extensions have drawn their parts of it.
    unprinted: Option<End>,
}

/// The end of a conversation: of these items, in about as many rows.
struct End {
    items: Range<usize>,
    rows: usize,
    /// False if the program ends.
    goes_on: bool,
}

impl View {
    pub fn new(control: Control) -> Self {
        Self {
            control,
            transcript: Transcript::default(),
            conversation: Conversation::default(),
            window: Scroll::default(),
            viewer: None,
            unprinted: None,
        }
    }

    pub fn say(&mut self, weight: Weight, text: &str, look: &Look<'_>) {
        self.conversation.follow(&self.control);
        self.conversation.push(Item::Notice(weight, text.into()));
        self.transcript.say(weight, text, look);
    }

    pub fn print(&mut self, lines: Vec<Line>) {
        self.conversation.follow(&self.control);
        self.conversation.push(Item::Printed(lines.as_slice().into()));
        self.transcript.add(lines);
    }

    /// Adds lines that the log has in another form.
    pub fn show(&mut self, lines: Vec<Line>) {
        self.transcript.add(lines);
    }

    /// Handles news.
    pub fn take(&mut self, news: &mut News, look: &Look<'_>, now: Instant) {
        self.transcript.take(news, look, now);
    }

    /// Drops what is not printed, for another conversation.
    pub fn clear(&mut self) {
        self.unprinted = None;
        self.transcript.clear();
    }

    /// Reads the log of another conversation. Returns its first item.
    pub fn begin(&mut self) -> usize {
        self.conversation.begin(&self.control)
    }

    /// Prints the end of the conversation from an item on, and how to see the part above.
    pub fn print_end(&mut self, from: Option<usize>, rows: usize, goes_on: bool, look: &Look<'_>) {
        if from.is_none() {
            self.conversation.follow(&self.control);
        }
        // What is said later is shown where it is said.
        let items = from.unwrap_or(0)..self.conversation.items().len();
        self.unprinted = Some(End { items, rows, goes_on });
        self.print_drawn(look);
    }

    /// Prints the end of a conversation that was opened, if no extension has yet to draw a part of it.
    fn print_drawn(&mut self, look: &Look<'_>) {
        let Some(end) = &self.unprinted else { return };
        let awaited = look.drawings.awaited();
        let (lines, above) = self.conversation.end(end.items.clone(), end.rows, &self.control, look);
        let mut all = Vec::new();
        if above > 0 {
            let key = look.key(AppAction::TOOLS_EXPAND).filter(|_| end.goes_on);
            let how = key.map_or_else(String::new, |key| format!(" ({key} shows them)"));
            let text = format!("↑ {above} earlier messages{how}");
            all = notice(Weight::Info, &text, look);
        }
        all.extend(lines);
        let may_change = !end.items.is_empty() && self.control.has_hooks_to_come();
        if end.goes_on && (may_change || look.drawings.awaited() > awaited) {
            return self.transcript.hold(all);
        }
        self.unprinted = None;
        self.transcript.release(all);
    }

    /// Lines to print into the scrollback.
    pub fn take_finished(
        &mut self,
        look: &Look<'_>,
        now: Instant,
        pictures: Option<&Pictures>,
    ) -> Vec<Printed> {
        self.print_drawn(look);
        self.transcript.take_finished(look, now, pictures)
    }

    /// The last `rows` printed lines.
    pub fn tail(&self, rows: usize) -> Vec<Line> {
        self.transcript.tail(rows)
    }

    /// The last `rows` unprinted lines, or slightly more.
    pub fn live(&self, look: &Look<'_>, now: Instant, rows: usize) -> Vec<Line> {
        self.transcript.live(look, now, rows)
    }

    /// Drops parts that a view of the whole conversation shows anyway.
    pub fn drop_stored(&mut self) {
        self.unprinted = None;
        self.transcript.drop_stored();
    }

    /// True if folding changes something that is not printed yet.
    pub fn has_calls(&self) -> bool {
        self.transcript.has_calls()
    }

    /// True if a running time is shown.
    pub fn is_running(&self) -> bool {
        self.transcript.is_running()
    }

    pub fn begin_shell(&mut self, shell: Shell) {
        self.transcript.begin_shell(shell);
    }

    /// The running command of the user.
    pub fn shell(&mut self) -> Option<&mut Shell> {
        self.transcript.shell()
    }

    /// Marks finished user commands as held by the log.
    pub fn store_shells(&mut self) {
        self.transcript.store_shells();
    }

    /// The unfinished call with this id.
    pub fn open_call(&mut self, id: &str) -> Option<&mut Call> {
        self.transcript.open_call(id)
    }

    /// Id and arguments of a call that can be previewed before it runs.
    pub fn edit_to_preview(&self, describer: &Describer) -> Option<(String, Map<String, Value>)> {
        self.transcript.edit_to_preview(describer)
    }

    /// Reads new entries, and lays out the parts that a view needs.
    pub fn pages<'a>(&'a mut self, scroll: &mut Scroll, look: Look<'a>, now: Instant) -> Pages<'a> {
        if self.conversation.follow(&self.control) {
            scroll.forget();
            scroll.go_to_end();
        }
        self.transcript.lay_out(&look);
        let live = self.transcript.live_parts(look, now);
        scroll.follow(self.conversation.items().len(), live.iter().map(|part| part.id).collect());
        if !scroll.laid_out.as_ref().is_some_and(|layout| layout.is_of(&look)) {
            scroll.laid_out = Some(Layout::of(&look));
            scroll.forget();
        }
        Pages {
            conversation: &self.conversation,
            control: &self.control,
            transcript: &self.transcript,
            look,
            now,
            live,
            is_busy: !self.control.is_idle(),
        }
    }

    /// Calls `f` with the scroll state of the fullscreen mode and its pages.
    pub fn with_window<T>(
        &mut self,
        look: Look<'_>,
        now: Instant,
        then: impl FnOnce(&mut Scroll, &Pages<'_>) -> T,
    ) -> T {
        let mut window = std::mem::take(&mut self.window);
        let pages = self.pages(&mut window, look, now);
        let done = then(&mut window, &pages);
        drop(pages);
        self.window = window;
        done
    }

    /// Time until a selection at the edge of the window goes on.
    pub fn drags_in(&self, now: Instant) -> Option<Duration> {
        self.window.drags_in(now)
    }

    /// Takes away what is selected in fullscreen mode. True if there was something to see.
    pub fn deselect(&mut self) -> bool {
        self.window.deselect()
    }

    /// True if a row of the screen is the conversation's in fullscreen mode.
    pub fn has_window_at(&self, row: u16) -> bool {
        self.window.has_row(usize::from(row))
    }

    /// The search row of the fullscreen mode.
    pub fn search_line(&mut self, look: &Look<'_>) -> Option<Line> {
        self.window.search.as_mut().map(|search| search.line(look))
    }

    pub fn has_viewer(&self) -> bool {
        self.viewer.is_some()
    }

    pub fn open_viewer(&mut self) {
        self.viewer = Some(Viewer::new());
    }

    pub fn close_viewer(&mut self) {
        self.viewer = None;
    }

    pub fn paste_into_viewer(&mut self, text: &str) {
        if let Some(viewer) = &mut self.viewer {
            viewer.paste(text);
        }
    }

    /// The screen of the viewer, as wide as `look`.
    pub fn viewer_lines(&mut self, look: Look<'_>, rows: usize, now: Instant, feed: &Arc<Feed>) -> Vec<Line> {
        let Some(mut viewer) = self.viewer.take() else {
            return Vec::new();
        };
        let look = Look { is_open: viewer.is_open(), ..look };
        let pages = self.pages(&mut viewer.scroll, look, now);
        let lines = viewer.lines(&pages, rows, feed);
        drop(pages);
        self.viewer = Some(viewer);
        lines
    }

    /// Passes a key to the viewer.
    pub fn viewer_key(&mut self, key: &Key, keymap: &Keymap, look: Look<'_>, now: Instant) -> Asked {
        let Some(mut viewer) = self.viewer.take() else {
            return Asked::Nothing;
        };
        let look = Look { is_open: viewer.is_open(), ..look };
        let pages = self.pages(&mut viewer.scroll, look, now);
        let asked = viewer.key(key, keymap, &pages);
        drop(pages);
        if !matches!(asked, Asked::Close) {
            self.viewer = Some(viewer);
        }
        asked
    }
}

#[cfg(test)]
impl View {
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }
}
