//! The prompt editor: lines of text, a cursor, and the effects of keys.
//!
//! The editor knows keys and cells, no terminal: [`Editor::handle`] takes a key and returns an [`Outcome`],
//! [`Editor::render`] returns the rows to show. Its keys are the actions of [`keymap::EDITOR`]; all others
//! are [`Outcome::Ignored`], so that the application can use them.
//!
//! The cursor is always between two grapheme clusters, never inside one or inside the marker of a paste.
//! Every change replaces one range, and undo stores these replacements.

mod buffer;
mod history;
mod kill;
mod motion;
mod paste;
mod recall;
mod undo;
mod unit;
mod view;
mod vim;

use super::key::{Action as Event, Code, Key, Modifiers};
use super::keymap::{self, Action, Keymap};
use buffer::{Buffer, Position};
use history::{Direction, Earlier, History};
use kill::KillRing;
use paste::Pastes;
use recall::Recall;
use std::ops::Range;
use undo::{Edit, Undo};

pub use recall::Searching;
pub use vim::Mode;

/// Result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The key has no meaning in the editor.
    Ignored,
    /// The key was handled; the text is unchanged.
    Handled,
    /// The text has changed.
    Edited,
    /// The text to send, trimmed and with pastes expanded. The editor is empty again.
    Submit(String),
    /// A completion is requested for the text before the cursor.
    Complete,
}

#[derive(Debug, Default)]
pub struct Editor {
    buffer: Buffer,
    cursor: Position,
    pastes: Pastes,
    undo: Undo,
    kills: KillRing,
    history: History,
    recall: Recall,
    last: Last,
    /// Set while the next typed character is the target of a jump.
    jump: Option<Jump>,
    /// The column that vertical moves return to.
    goal: Option<usize>,
    /// True if the editor has only one line.
    is_single: bool,
    view: view::Window,
    /// Number of changes of the text.
    changes: u64,
    /// The keys of vim, if they are used.
    vim: Option<vim::Vim>,
}

/// The kind of the previous action, if it affects the next.
#[derive(Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Typing,
    Kill,
    /// Yanked text at this range.
    Yank(Range<Position>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jump {
    Forward,
    Backward,
}

impl Editor {
    pub fn new() -> Self {
        Self::default()
    }

    /// An editor with one line; keys that would add a line are ignored.
    pub fn single_line() -> Self {
        Self { is_single: true, ..Self::default() }
    }

    /// The displayed text, with markers of pastes.
    pub fn text(&self) -> String {
        self.buffer.text()
    }

    /// The text with pastes expanded.
    pub fn expanded(&self) -> String {
        self.pastes.expand(&self.buffer.text())
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Replaces the whole text, as one undoable change.
    pub fn set_text(&mut self, text: &str) {
        self.recall.stop();
        self.settle();
        let text = self.fitting(text);
        self.replace(Position::default()..self.buffer.end(), &text);
    }

    /// The parts of the cursor's line before and after the cursor.
    pub fn around_cursor(&self) -> (&str, &str) {
        let line = self.buffer.line(self.cursor.line);
        line.split_at_checked(self.cursor.byte).unwrap_or((line, ""))
    }

    /// The number of the cursor's line.
    pub fn cursor_line(&self) -> usize {
        self.cursor.line
    }

    /// True if the cursor is in the first line, where commands are.
    pub fn is_in_first_line(&self) -> bool {
        self.cursor.line == 0
    }

    /// Replaces bytes `range` of the cursor's line with a completion; the cursor moves to byte `cursor` of
    /// the inserted text.
    pub fn complete(&mut self, range: Range<usize>, text: &str, cursor: usize) {
        self.settle();
        let line = self.cursor.line;
        let own = self.buffer.line(line);
        if own.get(range.clone()).is_none() {
            return;
        }
        let at = |byte| Position { line, byte };
        let text = self.fitting(text).replace('\n', " ");
        let start = range.start;
        self.replace(at(range.start)..at(range.end), &text);
        self.move_to(at(start + cursor.min(text.len())));
    }

    /// Adds a prompt to the history.
    pub fn remember(&mut self, prompt: &str) {
        self.history.add(prompt);
    }

    /// Adds prompts that come before all others, such as those of earlier sessions. They are read when needed.
    pub fn add_earlier(&mut self, earlier: Earlier) {
        self.history.add_earlier(earlier);
    }

    /// Number of changes of the text so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Inserts pasted text. A large paste is folded into a marker.
    pub fn paste(&mut self, text: &str) -> Outcome {
        self.recall.stop();
        self.settle();
        let mut text = self.fitting(text);
        if text.is_empty() {
            return Outcome::Handled;
        }
        let before = self.around_cursor().0.chars().next_back();
        if paste::is_path_like(&text)
            && before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        {
            text.insert(0, ' ');
        }
        if !self.is_single
            && let Some(marker) = self.pastes.fold(&text)
        {
            text = marker;
        }
        self.replace(self.cursor..self.cursor, &text);
        Outcome::Edited
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Outcome {
        if key.action == Event::Release {
            return Outcome::Ignored;
        }
        let changes = self.changes;
        let outcome = self.dispatch(key, keymap);
        self.keep_on_character();
        match outcome {
            Outcome::Handled if self.changes != changes => Outcome::Edited,
            outcome => outcome,
        }
    }

    fn dispatch(&mut self, key: &Key, keymap: &Keymap) -> Outcome {
        let action = match self.is_single {
            true => keymap.action(key, keymap::EDITOR),
            false => keymap.prompt_action(key),
        };
        if self.recall.is_searching()
            && let Some(outcome) = self.search_key(key, action, keymap)
        {
            return outcome;
        }
        if let Some(jump) = self.jump.take() {
            let own = match jump {
                Jump::Forward => Action::JUMP_FORWARD,
                Jump::Backward => Action::JUMP_BACKWARD,
            };
            if action == Some(own) {
                return Outcome::Handled;
            }
            if let Some(letter) = key.typed() {
                self.settle();
                self.jump_to(letter, jump);
                return Outcome::Handled;
            }
        }
        if let Some(outcome) = self.vim_key(key, keymap) {
            return outcome;
        }
        match action {
            // Where Enter makes lines and Shift+Enter sends, a backslash sends too.
            Some(Action::NEW_LINE)
                if key.code == Code::Enter
                    && keymap.is(&SHIFT_ENTER, Action::SUBMIT)
                    && self.is_behind_backslash() =>
            {
                self.act(Action::DELETE_CHAR_BACKWARD);
                self.submit()
            }
            Some(action) => self.act(action),
            None => self.unbound(key, keymap),
        }
    }

    fn unbound(&mut self, key: &Key, keymap: &Keymap) -> Outcome {
        if let Some(letter) = key.typed() {
            return self.type_char(letter);
        }
        // Shift is easily still held down.
        if matches!(key.code, Code::Backspace | Code::Delete)
            && key.modifiers.has(Modifiers::SHIFT)
            && let Some(action) =
                keymap.action(&Key::new(key.code, key.modifiers.without(Modifiers::SHIFT)), keymap::EDITOR)
        {
            return self.act(action);
        }
        Outcome::Ignored
    }

    /// Runs an action of [`keymap::EDITOR`].
    pub fn act(&mut self, action: Action) -> Outcome {
        if self.is_single && !is_for_one_line(action) {
            return Outcome::Ignored;
        }
        match action {
            Action::TAB => return Outcome::Complete,
            Action::SUBMIT if self.is_behind_backslash() && !self.is_single => {
                self.act(Action::DELETE_CHAR_BACKWARD);
                self.new_line();
            }
            Action::SUBMIT => return self.submit(),
            Action::NEW_LINE => self.new_line(),
            Action::UNDO => self.take_back(),
            Action::REDO => self.do_again(),
            Action::YANK => self.yank(),
            Action::YANK_POP => self.yank_pop(),
            Action::DELETE_CHAR_BACKWARD => self.delete(Self::left),
            Action::DELETE_CHAR_FORWARD => self.delete(Self::right),
            Action::DELETE_WORD_BACKWARD => self.kill(Self::word_left),
            Action::DELETE_WORD_FORWARD => self.kill(Self::word_right),
            Action::DELETE_TO_LINE_START => self.kill(Self::to_line_start),
            Action::DELETE_TO_LINE_END => self.kill(Self::to_line_end),
            Action::CURSOR_LEFT => self.go(Self::left),
            Action::CURSOR_RIGHT => self.go(Self::right),
            Action::CURSOR_WORD_LEFT => self.go(Self::word_left),
            Action::CURSOR_WORD_RIGHT => self.go(Self::word_right),
            Action::CURSOR_LINE_START => self.go(Self::line_start),
            Action::CURSOR_LINE_END => self.go(Self::line_end),
            Action::CURSOR_UP => self.up(),
            Action::CURSOR_DOWN => self.down(),
            Action::PAGE_UP => self.page(Direction::Older),
            Action::PAGE_DOWN => self.page(Direction::Newer),
            Action::JUMP_FORWARD => self.jump = Some(Jump::Forward),
            Action::JUMP_BACKWARD => self.jump = Some(Jump::Backward),
            Action::HISTORY_PREVIOUS => self.browse(Direction::Older, false),
            Action::HISTORY_NEXT => self.browse(Direction::Newer, false),
            Action::HISTORY_PREFIX_PREVIOUS => self.browse(Direction::Older, true),
            Action::HISTORY_PREFIX_NEXT => self.browse(Direction::Newer, true),
            Action::HISTORY_SEARCH => self.begin_search(),
            _ => return Outcome::Ignored,
        }
        Outcome::Handled
    }

    /// Resets the state of the previous action, and returns it.
    fn settle(&mut self) -> Last {
        self.goal = None;
        std::mem::take(&mut self.last)
    }

    fn fitting(&self, text: &str) -> String {
        let text = paste::clean(text);
        match self.is_single {
            true => text.replace('\n', " "),
            false => text,
        }
    }

    fn is_behind_backslash(&self) -> bool {
        self.around_cursor().0.ends_with('\\')
    }

    /// Replaces a range and moves the cursor after the new text; returns the old text.
    fn apply(&mut self, range: Range<Position>, text: &str) -> String {
        let end = range.start.after(text);
        let removed = self.buffer.replace(range, text);
        self.changes += 1;
        self.move_to(end);
        removed
    }

    /// Moves the cursor to a position, or after the cluster that contains it.
    fn move_to(&mut self, place: Position) {
        let line = place.line.min(self.buffer.lines().saturating_sub(1));
        let text = self.buffer.line(line);
        let byte = unit::snap(text, place.byte, &self.pastes);
        self.cursor = Position { line, byte };
    }

    /// Replaces a range as an undoable change.
    fn replace(&mut self, range: Range<Position>, text: &str) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        let (at, before) = (range.start, self.cursor);
        let removed = self.apply(range, text);
        self.undo.push(Edit { at, removed, inserted: text.to_owned(), before, after: self.cursor });
    }

    fn type_char(&mut self, letter: char) -> Outcome {
        if letter.is_control() {
            return Outcome::Ignored;
        }
        self.recall.stop();
        let is_typing = self.settle() == Last::Typing;
        let mut bytes = [0; 4];
        let text: &str = letter.encode_utf8(&mut bytes);
        let at = self.cursor;
        // A space begins what is undone together.
        if is_typing && !letter.is_whitespace() {
            self.apply(at..at, text);
            if !self.undo.join(at, text, self.cursor) {
                self.undo.push(Edit {
                    at,
                    removed: String::new(),
                    inserted: text.to_owned(),
                    before: at,
                    after: self.cursor,
                });
            }
        } else {
            self.replace(at..at, text);
        }
        self.last = Last::Typing;
        Outcome::Handled
    }

    fn new_line(&mut self) {
        self.recall.stop();
        self.settle();
        self.replace(self.cursor..self.cursor, "\n");
    }

    /// Deletes the text between the cursor and a position.
    fn delete(&mut self, place: fn(&Self) -> Position) {
        self.recall.stop();
        self.settle();
        let place = place(self);
        self.replace(self.cursor.min(place)..self.cursor.max(place), "");
    }

    /// Deletes the text between the cursor and a position, and adds it to the kill ring.
    fn kill(&mut self, place: fn(&Self) -> Position) {
        self.recall.stop();
        let joins = self.settle() == Last::Kill;
        let place = place(self);
        let range = self.cursor.min(place)..self.cursor.max(place);
        if range.is_empty() {
            return;
        }
        let text = self.buffer.slice(range.clone());
        self.kills.push(&text, place < self.cursor, joins);
        self.replace(range, "");
        self.last = Last::Kill;
    }

    fn yank(&mut self) {
        self.recall.stop();
        self.settle();
        if let Some(text) = self.kills.last() {
            let text = self.fitting(text);
            let start = self.cursor;
            self.replace(start..start, &text);
            self.last = Last::Yank(start..start.after(&text));
        }
    }

    fn yank_pop(&mut self) {
        let Last::Yank(range) = self.settle() else {
            return;
        };
        if !self.kills.rotate() {
            self.last = Last::Yank(range);
            return;
        }
        let text = self.fitting(self.kills.last().unwrap_or_default());
        let start = range.start;
        self.replace(range, &text);
        self.last = Last::Yank(start..start.after(&text));
    }

    fn take_back(&mut self) {
        self.recall.stop();
        self.settle();
        for edit in self.undo.undo() {
            self.revert(&edit);
        }
    }

    fn revert(&mut self, edit: &Edit) {
        let range = edit.at..edit.at.after(&edit.inserted);
        self.apply(range, &edit.removed);
        self.move_to(edit.before);
    }

    fn do_again(&mut self) {
        self.recall.stop();
        self.settle();
        for edit in self.undo.redo() {
            let range = edit.at..edit.at.after(&edit.removed);
            self.apply(range, &edit.inserted);
            self.move_to(edit.after);
        }
    }

    fn submit(&mut self) -> Outcome {
        let text = self.expanded().trim().to_owned();
        // Markers mean nothing in the next prompt.
        let pastes = std::mem::take(&mut self.pastes);
        self.kills.for_each(|kill| *kill = pastes.expand(kill));
        self.settle();
        self.recall.stop();
        self.apply(Position::default()..self.buffer.end(), "");
        self.undo.clear();
        self.begin_in_insert_mode();
        match text.is_empty() {
            true => Outcome::Handled,
            false => Outcome::Submit(text),
        }
    }
}

const SHIFT_ENTER: Key = Key::new(Code::Enter, Modifiers::SHIFT);

fn is_for_one_line(action: Action) -> bool {
    !matches!(
        action,
        Action::NEW_LINE
            | Action::TAB
            | Action::CURSOR_UP
            | Action::CURSOR_DOWN
            | Action::PAGE_UP
            | Action::PAGE_DOWN
            | Action::HISTORY_PREVIOUS
            | Action::HISTORY_NEXT
            | Action::HISTORY_PREFIX_PREVIOUS
            | Action::HISTORY_PREFIX_NEXT
            | Action::HISTORY_SEARCH
    )
}

#[cfg(test)]
mod tests;
