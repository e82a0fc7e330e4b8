//! The keys of vim: a normal, an insert and a visual mode.
//!
//! The letters of a command are read by [`command::parse`], which knows no text; what it means for the text is
//! here and in `motion`. In insert mode, and for all keys but letters, the editor's usual keys count. What is
//! deleted or copied goes to the kill ring; an entry that ends with a line end is put back as lines.

mod command;
mod motion;

use super::buffer::Position;
use super::{Editor, Outcome};
use crate::tui::key::{Code, Key, Modifiers};
use crate::tui::keymap::Keymap;
use command::{Command, Find, Motion, Operator, Parsed, Place, Target};
use motion::Extent;
use std::ops::Range;

/// Most bytes that a repeated put inserts.
const PUT_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Insert,
    Normal,
    /// Text is selected: characters or lines.
    Visual {
        lines: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Vim {
    mode: Mode,
    /// Letters of a command that is not complete.
    pending: String,
    /// The last letter that was looked for.
    find: Option<Find>,
    /// The other end of a selection.
    anchor: Position,
    /// The last change, for `.`.
    last: Option<Change>,
    /// The change that insert mode was entered with.
    inserting: Option<Change>,
}

/// A command, and what was typed in insert mode then.
#[derive(Clone, Debug)]
struct Change {
    command: Command,
    count: Option<usize>,
    typed: Vec<Key>,
}

impl Editor {
    /// Switches the keys of vim on or off.
    pub fn set_vim(&mut self, is_on: bool) {
        if is_on != self.vim.is_some() {
            self.vim = is_on.then(Vim::default);
            self.undo.group(is_on);
        }
    }

    /// The mode, and the letters of a command that is not complete. `None` without the keys of vim.
    pub fn mode(&self) -> Option<(Mode, &str)> {
        self.vim.as_ref().map(|vim| (vim.mode, vim.pending.as_str()))
    }

    /// Handles a key by the mode. `None`: the key keeps its usual meaning.
    pub(super) fn vim_key(&mut self, key: &Key, keymap: &Keymap) -> Option<Outcome> {
        let vim = self.vim.as_mut()?;
        let is_escape = key.code == Code::Escape && key.modifiers == Modifiers::NONE;
        if vim.mode == Mode::Insert {
            if is_escape {
                self.end_insert(keymap);
                return Some(Outcome::Handled);
            }
            if let Some(change) = &mut vim.inserting {
                change.typed.push(*key);
            }
            return None;
        }
        if is_escape {
            let is_idle = vim.pending.is_empty() && vim.mode == Mode::Normal;
            vim.pending.clear();
            vim.mode = Mode::Normal;
            return (!is_idle).then_some(Outcome::Handled);
        }
        let letter = match (key.code, key.typed()) {
            (_, Some(letter)) => letter,
            (Code::Char('r'), _) if key.modifiers == Modifiers::CTRL => command::REDO,
            (Code::Backspace, _) if key.modifiers == Modifiers::NONE => 'h',
            (Code::Delete, _) if key.modifiers == Modifiers::NONE => 'x',
            _ => {
                vim.pending.clear();
                return None;
            }
        };
        vim.pending.push(letter);
        match command::parse(&vim.pending, vim.mode != Mode::Normal) {
            Parsed::Partial => {}
            Parsed::Invalid => vim.pending.clear(),
            Parsed::Done(command, count) => {
                vim.pending.clear();
                self.run(command, count, keymap);
            }
        }
        Some(Outcome::Handled)
    }

    /// In normal mode the cursor stands on a character.
    pub(super) fn keep_on_character(&mut self) {
        let is_normal = self.vim.as_ref().is_some_and(|vim| vim.mode == Mode::Normal);
        let line = self.buffer.line(self.cursor.line);
        if is_normal && self.cursor.byte > 0 && self.cursor.byte == line.len() {
            self.cursor.byte = super::unit::before(line, self.cursor.byte, &self.pastes);
        }
    }

    /// A new text begins in insert mode.
    pub(super) fn begin_in_insert_mode(&mut self) {
        if let Some(vim) = &mut self.vim {
            (vim.mode, vim.inserting) = (Mode::Insert, None);
            vim.pending.clear();
        }
    }

    /// What is selected.
    pub(super) fn selection(&self) -> Option<Range<Position>> {
        let vim = self.vim.as_ref()?;
        let Mode::Visual { lines } = vim.mode else {
            return None;
        };
        // The text may have become another one.
        let line = vim.anchor.line.min(self.buffer.lines() - 1);
        let byte = super::unit::snap(
            self.buffer.line(line),
            vim.anchor.byte.min(self.buffer.line(line).len()),
            &self.pastes,
        );
        let anchor = Position { line, byte };
        let (first, last) = (anchor.min(self.cursor), anchor.max(self.cursor));
        Some(match lines {
            true => {
                let byte = self.buffer.line(last.line).len();
                Position { byte: 0, ..first }..Position { byte, ..last }
            }
            false => first..self.behind_in_line(last),
        })
    }

    fn set_mode(&mut self, mode: Mode) {
        if let Some(vim) = &mut self.vim {
            vim.mode = mode;
        }
    }

    fn run(&mut self, command: Command, count: Option<usize>, keymap: &Keymap) {
        let times = count.unwrap_or(1);
        if let Command::Go(motion) = command {
            return self.go_by(motion, count);
        }
        self.settle();
        let visual = self.vim.as_ref().map(|vim| vim.mode).filter(|mode| *mode != Mode::Normal);
        match command {
            Command::Undo => (0..times).for_each(|_| self.take_back()),
            Command::Redo => (0..times).for_each(|_| self.do_again()),
            Command::Repeat => return self.repeat(count, keymap),
            Command::Select { lines } => {
                let mode = Mode::Visual { lines };
                let cursor = self.cursor;
                if let Some(vim) = &mut self.vim {
                    if vim.mode == Mode::Normal {
                        vim.anchor = cursor;
                    }
                    vim.mode = if vim.mode == mode { Mode::Normal } else { mode };
                }
                return;
            }
            Command::SwapEnds => {
                let cursor = self.cursor;
                let anchor = self.vim.as_mut().map(|vim| std::mem::replace(&mut vim.anchor, cursor));
                return self.move_to(anchor.unwrap_or(cursor));
            }
            Command::Operate(Operator::Yank, _) => {}
            _ => {
                self.recall.stop();
                self.undo.group(true);
            }
        }
        let (repeated, repeated_count) = self.repeatable(command, count);
        let change = Change { command: repeated, count: repeated_count, typed: Vec::new() };
        let is_change =
            !matches!(command, Command::Undo | Command::Redo | Command::Operate(Operator::Yank, _));
        let inserts = match command {
            Command::Operate(operator, target) => match self.extent(operator, target, count) {
                Some((range, lines)) => self.operate(operator, range, lines),
                None => return,
            },
            Command::Insert(place) => {
                self.move_to(match place {
                    Place::Here => self.cursor,
                    Place::Behind => self.behind_in_line(self.cursor),
                    Place::FirstLetter => self.first_letter(self.cursor.line),
                    Place::LineEnd => self.line_end(),
                });
                true
            }
            Command::Open { above } => {
                let at = if above { self.line_start() } else { self.line_end() };
                self.replace(at..at, "\n");
                self.move_to(if above { at } else { self.cursor });
                true
            }
            Command::Put { before } => {
                self.put(before, times);
                false
            }
            Command::Replace(letter) => {
                let with =
                    |text: &str| text.chars().map(|old| if old == '\n' { old } else { letter }).collect();
                self.rewrite(times, true, with);
                false
            }
            Command::SwapCase => {
                self.rewrite(times, false, |text| text.chars().flat_map(swapped).collect());
                false
            }
            Command::Join => {
                let rows = self.selection().map(|range| range.end.line - range.start.line);
                if let Some(range) = self.selection() {
                    self.move_to(range.start);
                }
                (0..rows.unwrap_or(times - usize::from(times > 1)).max(1)).for_each(|_| self.join());
                false
            }
            _ => false,
        };
        match (inserts, visual) {
            (true, _) => self.set_mode(Mode::Insert),
            (false, _) => self.set_mode(Mode::Normal),
        }
        if let Some(vim) = self.vim.as_mut().filter(|_| is_change) {
            match inserts {
                true => vim.inserting = Some(change),
                false => vim.last = Some(change),
            }
        }
    }

    fn go_by(&mut self, motion: Motion, count: Option<usize>) {
        match motion {
            // At the edges they go to other prompts.
            Motion::Up if count.is_none() => return self.up(),
            Motion::Down if count.is_none() => return self.down(),
            Motion::Find(find) => {
                if let Some(vim) = &mut self.vim {
                    vim.find = Some(find);
                }
            }
            _ => {}
        }
        self.settle();
        if let Some((target, _)) = self.target(motion, count, false) {
            self.move_to(target);
        }
    }

    /// What an operator takes, and whether it is lines.
    fn extent(
        &mut self,
        operator: Operator,
        target: Target,
        count: Option<usize>,
    ) -> Option<(Range<Position>, bool)> {
        let here = self.cursor;
        let times = count.unwrap_or(1);
        let lines = |first: usize, last: usize| {
            let byte = self.buffer.line(last).len();
            (Position { line: first, byte: 0 }..Position { line: last, byte }, true)
        };
        match target {
            Target::Lines => Some(lines(here.line, (here.line + times - 1).min(self.buffer.lines() - 1))),
            Target::Selection => {
                let is_lines = self.mode().is_some_and(|(mode, _)| mode == Mode::Visual { lines: true });
                Some((self.selection()?, is_lines))
            }
            Target::Object(object) => Some((self.object(object)?, false)),
            Target::Motion(Motion::Word { big })
                if operator == Operator::Change
                    && !self.around_cursor().1.starts_with(char::is_whitespace)
                    && !self.around_cursor().1.is_empty() =>
            {
                let end = self.behind_in_line(self.changed_word(big, times));
                Some((here..end, false))
            }
            Target::Motion(motion) => {
                if let (Motion::Find(find), Some(vim)) = (motion, &mut self.vim) {
                    vim.find = Some(find);
                }
                let (target, extent) = self.target(motion, count, true)?;
                let (first, last) = (here.min(target), here.max(target));
                let range = match extent {
                    Extent::Lines => {
                        let byte = self.buffer.line(last.line).len();
                        (Position { byte: 0, ..first }..Position { byte, ..last }, true)
                    }
                    Extent::Inclusive => (first..self.behind_in_line(last), false),
                    Extent::Exclusive => (first..last, false),
                };
                Some(range)
            }
        }
    }

    /// True if insert mode follows.
    fn operate(&mut self, operator: Operator, range: Range<Position>, lines: bool) -> bool {
        let text = self.buffer.slice(range.clone());
        if !text.is_empty() || lines {
            let text = if lines { format!("{text}\n") } else { text };
            self.kills.push(&text, false, false);
        }
        let line = range.start.line;
        match operator {
            Operator::Yank if lines => self.move_to(Position { line, ..self.cursor }),
            Operator::Yank => self.move_to(range.start),
            Operator::Change => {
                self.replace(range.clone(), "");
                self.move_to(range.start);
            }
            Operator::Delete if lines => {
                let whole = if range.end.line + 1 < self.buffer.lines() {
                    range.start..Position { line: range.end.line + 1, byte: 0 }
                } else if let Some(before) = line.checked_sub(1) {
                    Position { line: before, byte: self.buffer.line(before).len() }..range.end
                } else {
                    range
                };
                self.replace(whole, "");
                self.move_to(self.first_letter(line.min(self.buffer.lines() - 1)));
            }
            Operator::Delete => self.replace(range, ""),
        }
        operator == Operator::Change
    }

    /// Puts back what was deleted or copied last, in place of a selection.
    fn put(&mut self, before: bool, times: usize) {
        let Some(text) = self.kills.last().map(|text| self.fitting(text)) else {
            return;
        };
        let times = times.min((PUT_MAX / text.len().max(1)).max(1));
        let selected = self.selection();
        let is_replacing = selected.is_some();
        if let Some(range) = selected {
            self.replace(range.clone(), "");
            self.move_to(range.start);
        }
        match text.strip_suffix('\n') {
            Some(lines) if !is_replacing => {
                let lines = vec![lines; times].join("\n");
                let line = self.cursor.line + usize::from(!before);
                let at = if before { self.line_start() } else { self.line_end() };
                let text = if before { format!("{lines}\n") } else { format!("\n{lines}") };
                self.replace(at..at, &text);
                self.move_to(self.first_letter(line));
            }
            lines => {
                let text = lines.unwrap_or(&text).repeat(times);
                let at = match before || is_replacing {
                    true => self.cursor,
                    false => self.behind_in_line(self.cursor),
                };
                self.replace(at..at, &text);
                let line = self.buffer.line(self.cursor.line);
                self.cursor.byte = super::unit::before(line, self.cursor.byte, &self.pastes);
            }
        }
    }

    /// Rewrites what is selected, or some characters from the cursor on. `stays`: the cursor stays on the last
    /// one, and nothing is done where there are fewer.
    fn rewrite(&mut self, times: usize, stays: bool, with: impl Fn(&str) -> String) {
        let selected = self.selection();
        let is_selected = selected.is_some();
        let range = selected.unwrap_or_else(|| {
            let here = self.cursor;
            here..self.target(Motion::Right, Some(times), true).map_or(here, |(end, _)| end)
        });
        let old = self.buffer.slice(range.clone());
        let count = super::unit::units(&old, &self.pastes).count();
        if stays && !is_selected && count < times {
            return;
        }
        let new = with(&old);
        let start = range.start;
        self.replace(range, &new);
        if is_selected {
            self.move_to(start);
        } else if stays {
            let line = self.buffer.line(self.cursor.line);
            self.cursor.byte = super::unit::before(line, self.cursor.byte, &self.pastes);
        }
    }

    /// Joins the next line to the cursor's.
    fn join(&mut self) {
        let end = self.line_end();
        if end.line + 1 >= self.buffer.lines() {
            return;
        }
        let next = self.first_letter(end.line + 1);
        let is_spaced = end.byte == 0
            || self.buffer.line(end.line).ends_with(char::is_whitespace)
            || self.buffer.line(next.line).len() == next.byte
            || self.buffer.line(next.line).get(next.byte..).is_some_and(|rest| rest.starts_with(')'));
        self.replace(end..next, if is_spaced { "" } else { " " });
        self.move_to(end);
    }

    fn end_insert(&mut self, keymap: &Keymap) {
        let change = self.vim.as_mut().and_then(|vim| vim.inserting.take());
        if let Some(change) = change {
            if let (Command::Insert(_), Some(times @ 2..)) = (change.command, change.count) {
                let room = PUT_MAX / change.typed.len().max(1);
                (1..times.min(room.max(1))).for_each(|_| self.type_again(&change.typed, keymap));
            }
            if let Some(vim) = &mut self.vim {
                vim.last = Some(change);
            }
        }
        self.settle();
        self.recall.stop();
        self.set_mode(Mode::Normal);
        self.undo.group(true);
        let line = self.buffer.line(self.cursor.line);
        self.cursor.byte = super::unit::before(line, self.cursor.byte, &self.pastes);
    }

    fn type_again(&mut self, typed: &[Key], keymap: &Keymap) {
        for key in typed {
            self.handle(key, keymap);
        }
    }

    /// Makes the last change again.
    fn repeat(&mut self, count: Option<usize>, keymap: &Keymap) {
        let Some(Change { command, count: before, typed }) =
            self.vim.as_ref().and_then(|vim| vim.last.clone())
        else {
            return;
        };
        self.run(command, count.or(before), keymap);
        if self.mode().is_some_and(|(mode, _)| mode == Mode::Insert) {
            // What is typed is added to the change again.
            self.type_again(&typed, keymap);
            self.end_insert(keymap);
        }
    }

    /// A command and its count as `.` repeats them: without a selection, for as many lines or characters.
    fn repeatable(&self, command: Command, count: Option<usize>) -> (Command, Option<usize>) {
        let (Command::Operate(operator, Target::Selection), Some(range)) = (command, self.selection()) else {
            return (command, count);
        };
        let is_lines = self.mode().is_some_and(|(mode, _)| mode == Mode::Visual { lines: true });
        let (target, times) = match is_lines {
            true => (Target::Lines, range.end.line - range.start.line + 1),
            false => {
                let text = self.buffer.slice(range);
                (Target::Motion(Motion::Right), super::unit::units(&text, &self.pastes).count())
            }
        };
        (Command::Operate(operator, target), Some(times))
    }
}

fn swapped(letter: char) -> impl Iterator<Item = char> {
    let (upper, lower) = (letter.to_uppercase(), letter.to_lowercase());
    let is_lower = letter.is_lowercase();
    upper.filter(move |_| is_lower).chain(lower.filter(move |_| !is_lower))
}

#[cfg(test)]
mod tests;
