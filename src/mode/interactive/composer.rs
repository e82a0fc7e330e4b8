//! The prompt's input: the editor, its completions, and queued messages.

use super::activity::{Activity, Label};
use super::files::Files;
use super::keymap::AppAction;
use super::look::Look;
use crate::runtime::control::Streaming;
use crate::runtime::ui::Indicator;
use crate::runtime::{Block, CancelToken, ThinkingLevel};
use crate::tui::complete::{self, Answer, Popup, Wanted};
use crate::tui::editor::{Editor, Mode, Searching};
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Item, elapsed, loader};
use crate::tui::sgr;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::width::width;
use std::time::{Duration, Instant};

/// Minimum rows of the editor.
const EDITOR_ROWS_MIN: usize = 5;

/// Cells below which the details of a label are left out.
const ABOUT_MIN: usize = 8;

/// Two presses within this time count as a double press.
pub const DOUBLE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Composer {
    pub editor: Editor,
    popup: Option<Popup>,
    /// Rows of the popup as last drawn.
    pub popup_rows: usize,
    pub files: Files,
    /// Cancels the question to extensions that waits for an answer.
    question: Option<CancelToken>,
    /// Messages queued for the current run: steering, follow-up.
    pub queues: (Vec<String>, Vec<String>),
    /// Prompts that were entered during a compaction, or before extensions were started; they are sent afterwards.
    pub held: Vec<(String, Vec<Block>, Streaming)>,
    /// A line that was not sent since it names no command. Sent when it is entered again.
    pub refused: Option<String>,
    /// True if Enter in the empty editor continues a run that was cut off.
    pub can_go_on: bool,
    /// True if the prompt in the editor is to be sent once there is a model.
    pub waits_for_model: bool,
    pub last_clear: Press,
    pub last_escape: Press,
}

/// Time of the last press of a key that can be pressed twice.
#[derive(Default)]
pub struct Press(Option<Instant>);

impl Press {
    /// True on the second of two presses.
    pub fn is_double(&mut self, now: Instant) -> bool {
        let last = self.0.replace(now);
        last.is_some_and(|last| now.saturating_duration_since(last) < DOUBLE)
    }

    pub fn forget(&mut self) {
        self.0 = None;
    }
}

/// Effect of a key on the list of completions.
#[derive(Debug, PartialEq, Eq)]
pub enum Completed {
    /// The key is left to the editor.
    Ignored,
    Handled,
    /// A folder was chosen: its content can be offered.
    Goes,
    /// A command was chosen, to be sent immediately.
    Send,
}

impl Composer {
    /// Begins a question to extensions about the text, and cancels the one before.
    pub fn ask_anew(&mut self, cancel: &CancelToken) -> CancelToken {
        let token = cancel.child();
        if let Some(before) = self.question.replace(token.clone()) {
            before.cancel();
        }
        token
    }

    pub fn close_completion(&mut self) {
        self.popup = None;
    }

    /// True if there is text that was not sent.
    pub fn has_unsent(&self) -> bool {
        let (steering, follow_up) = &self.queues;
        !(self.editor.is_empty() && steering.is_empty() && follow_up.is_empty() && self.held.is_empty())
    }

    /// Empties the editor and returns its text.
    pub fn take_text(&mut self) -> String {
        let text = self.editor.expanded().trim().to_owned();
        self.editor.set_text("");
        self.popup = None;
        text
    }

    /// Inserts queued messages and held prompts before the typed text. Returns their number.
    pub fn take_back(&mut self, queued: impl Iterator<Item = String>) -> usize {
        self.queues = (Vec::new(), Vec::new());
        let held = std::mem::take(&mut self.held).into_iter().map(|(text, ..)| text);
        let mut texts: Vec<String> = queued.chain(held).collect();
        let count = texts.len();
        if count > 0 {
            let typed = self.editor.expanded();
            texts.extend(Some(typed).filter(|text| !text.trim().is_empty()));
            self.editor.set_text(&texts.join("\n\n"));
        }
        count
    }

    /// What can be completed before the cursor. `is_asked`: requested by Tab.
    pub fn wanted(&self, is_asked: bool) -> Option<Wanted> {
        complete::wanted(self.editor.around_cursor().0, self.editor.is_in_first_line(), is_asked)
    }

    /// Offers completions; a single one that was requested is applied immediately.
    pub fn offer(&mut self, wanted: Wanted, items: Vec<Item>, rows: usize, is_asked: bool) {
        let only = match items.as_slice() {
            [only] if is_asked => Some(only.clone()),
            _ => None,
        };
        self.popup = Popup::new(wanted, items, rows);
        if let Some(only) = only {
            self.put(&only);
        }
    }

    fn put(&mut self, item: &Item) {
        if let Some(popup) = self.popup.take() {
            let (before, behind) = self.editor.around_cursor();
            let change = popup.apply(item, before, behind);
            self.editor.complete(change.range, &change.text, change.cursor);
        }
    }

    /// Passes a key to the list of completions, if it is open.
    pub fn complete_key(&mut self, key: &Key, keymap: &Keymap) -> Completed {
        let Some(popup) = &mut self.popup else {
            return Completed::Ignored;
        };
        match popup.handle(key, keymap) {
            Answer::Ignored => Completed::Ignored,
            Answer::Handled => Completed::Handled,
            Answer::Closed => {
                self.popup = None;
                Completed::Handled
            }
            Answer::Chosen { item, sends } => {
                self.put(&item);
                if sends { Completed::Send } else { Completed::Goes }
            }
        }
    }

    /// Lines that show the queued messages and the key that takes them back.
    pub fn waiting(&self, look: &Look<'_>) -> Vec<Line> {
        let dim = look.style(Role::Dim);
        let row = |mark: &str, text: &str| {
            let first = text.lines().next().unwrap_or_default();
            Line::of(&format!(" {mark}: {first}"), dim).cut(look.width)
        };
        let (steering, follow_up) = &self.queues;
        let mut lines: Vec<Line> = steering.iter().map(|text| row("Steering", text)).collect();
        lines.extend(follow_up.iter().map(|text| row("Follow-up", text)));
        lines.extend(self.held.iter().map(|(text, ..)| row("Queued", text)));
        if !lines.is_empty() {
            lines.insert(0, Line::new());
            if let Some(key) = look.keymap.shown(AppAction::MESSAGE_DEQUEUE) {
                lines.push(Line::of(&format!(" ↳ {key} to edit all queued messages"), dim));
            }
        }
        lines
    }

    /// The editor on a screen of `rows` rows, between rules with status labels; the completions below.
    pub fn lines(
        &mut self,
        look: &Look<'_>,
        rows: usize,
        padding: usize,
        (activity, thinking): (&Activity, ThinkingLevel),
        now: Instant,
    ) -> Vec<Line> {
        let is_shell = self.editor.text().starts_with('!');
        let border = look.style(match is_shell {
            true => Role::BashMode,
            false => of_level(thinking),
        });
        let padding = padding.min(look.width / 4);
        let columns = look.width.saturating_sub(2 * padding).max(1);
        let rows_max = (rows * 3 / 10).max(EDITOR_ROWS_MIN);
        let marker = look.style(Role::Accent);
        let view = self.editor.render(columns, rows_max, look.style(Role::Text), marker);
        let label = match self.editor.searching() {
            Some(search) => searching(search, look),
            None => activity.label(now).map_or_else(Line::new, |label| working(&label, look)),
        };
        let mut lines = vec![border_with(&label, view.above, look, border)];
        lines.extend(view.lines.into_iter().map(|line| match padding {
            0 => line,
            padding => {
                let mut row = Line::of(&" ".repeat(padding), Style::PLAIN);
                row.append(&line);
                row
            }
        }));
        let mode = self.editor.mode().map_or_else(Line::new, |mode| mode_label(mode, look));
        lines.push(border_with(&mode, view.below, look, border));
        if let Some(popup) = &mut self.popup {
            let rows = popup.render(look.width, &look.looks());
            self.popup_rows = rows.len();
            lines.extend(rows);
        }
        lines
    }
}

/// The mode of vim's keys, and what was typed of a command.
fn mode_label((mode, pending): (Mode, &str), look: &Look<'_>) -> Line {
    let (name, role) = match mode {
        Mode::Insert => ("insert", Role::Muted),
        Mode::Normal => ("normal", Role::Accent),
        Mode::Visual { lines: false } => ("visual", Role::Accent),
        Mode::Visual { lines: true } => ("visual lines", Role::Accent),
    };
    let mut line = Line::of(name, look.style(role));
    if !pending.is_empty() {
        line.push(&format!(" {pending}"), look.style(Role::Muted));
    }
    line
}

/// The search of the history: its query, what it finds, and its keys.
fn searching(search: Searching<'_>, look: &Look<'_>) -> Line {
    let muted = look.style(Role::Muted);
    let found = match search.place {
        _ if search.query.is_empty() => "type to search".to_owned(),
        Some((number, count)) => format!("{number}/{count}"),
        None => "no match".to_owned(),
    };
    let before = "History: ";
    let keys = [(Action::HISTORY_SEARCH, "older"), (Action::SUBMIT, "takes"), (AppAction::INTERRUPT, "back")];
    let keys = keys
        .into_iter()
        .filter_map(|(action, what)| look.keymap.keys(action).first().map(|key| format!(" · {key} {what}")));
    // The end of the query is what is being typed.
    let room = label_room(look).saturating_sub(width(before) + width(&found) + 3);
    let mut query = search.query;
    while width(query) > room {
        query = query.char_indices().nth(1).and_then(|(at, _)| query.get(at..)).unwrap_or_default();
    }
    let mut line = Line::of(before, muted);
    if !query.is_empty() {
        line.push(query, look.style(Role::Accent));
        line.push(" · ", muted);
    }
    let role = if search.place.is_none() && !search.query.is_empty() { Role::Warning } else { Role::Muted };
    line.push(&found, look.style(role));
    for hint in keys {
        if line.width() + width(&hint) <= label_room(look) {
            line.push(&hint, muted);
        }
    }
    line
}

/// What is being done, how long, and the key that ends it, which is never cut.
fn working(label: &Label, look: &Look<'_>) -> Line {
    let muted = look.style(Role::Muted);
    let mut line = match &label.indicator {
        None => loader(&label.text, label.running, label.shows_time, &look.looks()),
        Some(Indicator { frames, interval }) => {
            let at = label.running.as_millis() / interval.as_millis().max(1);
            let at = usize::try_from(at).unwrap_or(0) % frames.len().max(1);
            let frame = frames.get(at).map_or("", String::as_str);
            let mut line = sgr::line(frame.lines().next().unwrap_or_default(), look.style(Role::Accent));
            if !line.is_empty() {
                line.push(" ", muted);
            }
            line.push(&label.text, muted);
            if label.shows_time && label.running >= Duration::from_secs(1) {
                line.push(&format!(" {}", elapsed(label.running)), muted);
            }
            line
        }
    };
    let key = look.keymap.keys(AppAction::INTERRUPT).first();
    let hint = key.map_or_else(String::new, |key| format!(" · {key} {}", label.escape));
    let room = label_room(look).saturating_sub(line.width() + width(&hint));
    if !label.about.is_empty() && room > ABOUT_MIN && !look.is_plain {
        line.append(&Line::of(&format!(" · {}", label.about), muted).cut(room));
    }
    line.push(&hint, muted);
    line
}

/// Cells for a label in a border.
fn label_room(look: &Look<'_>) -> usize {
    look.width.saturating_sub(8)
}

/// A rule with a label and the number of hidden rows.
fn border_with(label: &Line, hidden: usize, look: &Look<'_>, style: Style) -> Line {
    let mark = if look.is_plain { "-" } else { "─" };
    let mut line = Line::new();
    if !label.is_empty() {
        line.push(&format!("{} ", mark.repeat(2)), style);
        line.append(&label.cut(label_room(look)));
        line.push(" ", style);
    }
    if hidden > 0 {
        line.push(&format!("{} {hidden} more ", mark.repeat(2)), style.with(Attributes::DIM));
    }
    let left = look.short().saturating_sub(line.width());
    line.push(&mark.repeat(left), style);
    line.cut(look.width)
}

/// Colour of the border for a thinking level.
fn of_level(level: ThinkingLevel) -> Role {
    match level {
        ThinkingLevel::Off => Role::ThinkingOff,
        ThinkingLevel::Minimal => Role::ThinkingMinimal,
        ThinkingLevel::Low => Role::ThinkingLow,
        ThinkingLevel::Medium => Role::ThinkingMedium,
        ThinkingLevel::High => Role::ThinkingHigh,
        ThinkingLevel::Xhigh => Role::ThinkingXhigh,
        ThinkingLevel::Max => Role::ThinkingMax,
    }
}
