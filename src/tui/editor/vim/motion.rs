//! Targets of motions, and extents of text objects.

use super::command::{Find, Motion, Object, ObjectKind};
use crate::tui::editor::buffer::Position;
use crate::tui::editor::{Editor, unit};
use std::ops::Range;

/// What an operator takes on the way to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Exclusive,
    /// With the character at the target.
    Inclusive,
    Lines,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Word,
    Other,
    /// An empty line, which counts as a word.
    Empty,
}

impl Editor {
    fn class(&self, at: Position, big: bool) -> Class {
        let line = self.buffer.line(at.line);
        match line.get(at.byte..).and_then(|rest| rest.chars().next()) {
            None if line.is_empty() => Class::Empty,
            None => Class::Space,
            Some(letter) if letter.is_whitespace() => Class::Space,
            Some(letter) if big || letter.is_alphanumeric() || letter == '_' => Class::Word,
            Some(_) => Class::Other,
        }
    }

    /// The next position; the end of a line is one.
    fn forward(&self, at: Position) -> Option<Position> {
        let line = self.buffer.line(at.line);
        if at.byte < line.len() {
            return Some(Position { byte: unit::behind(line, at.byte, &self.pastes), ..at });
        }
        (at.line + 1 < self.buffer.lines()).then_some(Position { line: at.line + 1, byte: 0 })
    }

    fn backward(&self, at: Position) -> Option<Position> {
        let line = self.buffer.line(at.line);
        match (at.byte, at.line.checked_sub(1)) {
            (0, None) => None,
            (0, Some(line)) => Some(Position { line, byte: self.buffer.line(line).len() }),
            (byte, _) => Some(Position { byte: unit::before(line, byte, &self.pastes), ..at }),
        }
    }

    /// Goes on while the class is one of these.
    fn skip(
        &self,
        mut at: Position,
        big: bool,
        classes: &[Class],
        step: fn(&Self, Position) -> Option<Position>,
    ) -> Position {
        while classes.contains(&self.class(at, big))
            && let Some(next) = step(self, at)
        {
            at = next;
        }
        at
    }

    /// The last position before the class changes.
    fn run_end(
        &self,
        mut at: Position,
        big: bool,
        step: fn(&Self, Position) -> Option<Position>,
    ) -> Position {
        let class = self.class(at, big);
        while let Some(next) = step(self, at)
            && next.line == at.line
            && self.class(next, big) == class
        {
            at = next;
        }
        at
    }

    fn next_word(&self, at: Position, big: bool) -> Position {
        let behind = match self.class(at, big) {
            Class::Space => at,
            _ => self.forward(self.run_end(at, big, Self::forward)).unwrap_or(self.buffer.end()),
        };
        self.skip(behind, big, &[Class::Space], Self::forward)
    }

    fn word_end(&self, at: Position, big: bool) -> Position {
        let next = self.forward(at).unwrap_or(at);
        let start = self.skip(next, big, &[Class::Space, Class::Empty], Self::forward);
        self.run_end(start, big, Self::forward)
    }

    fn word_back(&self, at: Position, big: bool) -> Position {
        let before = self.backward(at).unwrap_or(at);
        let end = self.skip(before, big, &[Class::Space], Self::backward);
        self.run_end(end, big, Self::backward)
    }

    pub(super) fn first_letter(&self, line: usize) -> Position {
        let text = self.buffer.line(line);
        let byte = text.find(|letter: char| !letter.is_whitespace()).unwrap_or(text.len());
        Position { line, byte }
    }

    /// The target of a motion; `None` if there is none. `operates`: for an operator, which may take the last
    /// character of a line.
    pub(super) fn target(
        &self,
        motion: Motion,
        count: Option<usize>,
        operates: bool,
    ) -> Option<(Position, Extent)> {
        let here = self.cursor;
        let line = self.buffer.line(here.line);
        let times = count.unwrap_or(1);
        let again = |step: &dyn Fn(Position) -> Position| {
            let mut at = here;
            for _ in 0..times {
                let next = step(at);
                if next == at {
                    break;
                }
                at = next;
            }
            at
        };
        let in_line = |step: fn(&Self, Position) -> Option<Position>| {
            again(&|at| step(self, at).filter(|next| next.line == at.line).unwrap_or(at))
        };
        let last = self.buffer.lines() - 1;
        Some(match motion {
            Motion::Left => (in_line(Self::backward), Extent::Exclusive),
            Motion::Right => (in_line(Self::forward), Extent::Exclusive),
            Motion::Up => {
                let line = here.line.checked_sub(times)?;
                (Position { line, ..here }, Extent::Lines)
            }
            Motion::Down => {
                let line = Some(here.line + times).filter(|line| *line <= last)?;
                (Position { line, ..here }, Extent::Lines)
            }
            Motion::Word { big } => {
                let mut target = again(&|at| self.next_word(at, big));
                // The last word ends with its line.
                if operates && target.line > here.line && target <= self.first_letter(target.line) {
                    let line = target.line - 1;
                    target = Position { line, byte: self.buffer.line(line).len() }.max(here);
                }
                (target, Extent::Exclusive)
            }
            Motion::WordBack { big } => (again(&|at| self.word_back(at, big)), Extent::Exclusive),
            Motion::WordEnd { big } => (again(&|at| self.word_end(at, big)), Extent::Inclusive),
            Motion::LineStart => (Position { byte: 0, ..here }, Extent::Exclusive),
            Motion::FirstLetter => (self.first_letter(here.line), Extent::Exclusive),
            Motion::LineEnd => {
                let line = (here.line + times - 1).min(last);
                (Position { line, byte: self.buffer.line(line).len() }, Extent::Exclusive)
            }
            Motion::Top | Motion::Bottom => {
                let given = count.map(|number| (number - 1).min(last));
                let line = given.unwrap_or(if motion == Motion::Top { 0 } else { last });
                (self.first_letter(line), Extent::Lines)
            }
            Motion::Find(find) => {
                let extent = if find.is_forward { Extent::Inclusive } else { Extent::Exclusive };
                (self.found(line, find, times, false)?, extent)
            }
            Motion::FindAgain { reversed } => {
                let mut find = self.vim.as_ref()?.find?;
                find.is_forward ^= reversed;
                let extent = if find.is_forward { Extent::Inclusive } else { Extent::Exclusive };
                (self.found(line, find, times, find.is_short)?, extent)
            }
        })
    }

    /// The end of what `cw` changes: unlike `w` it leaves the space behind the word.
    pub(super) fn changed_word(&self, big: bool, times: usize) -> Position {
        let mut at = self.run_end(self.cursor, big, Self::forward);
        for _ in 1..times {
            at = self.word_end(at, big);
        }
        at
    }

    /// A letter in the cursor's line. `skips`: not the one that the cursor stands next to.
    fn found(&self, line: &str, find: Find, times: usize, skips: bool) -> Option<Position> {
        let here = self.cursor.byte;
        let next = unit::behind(line, here, &self.pastes);
        let is_cut = |byte: &usize| unit::snap(line, *byte, &self.pastes) == *byte;
        let matches = line.match_indices(find.letter).map(|(byte, _)| byte).filter(is_cut);
        let byte = if find.is_forward {
            matches.filter(|byte| *byte >= next && !(skips && *byte == next)).nth(times - 1)?
        } else {
            let ends_here = |byte: usize| byte + find.letter.len_utf8() == here;
            let before: Vec<usize> =
                matches.filter(|byte| *byte < here && !(skips && ends_here(*byte))).collect();
            *before.iter().rev().nth(times - 1)?
        };
        let byte = match (find.is_short, find.is_forward) {
            (false, _) => byte,
            (true, true) => unit::before(line, byte, &self.pastes),
            (true, false) => unit::behind(line, byte, &self.pastes),
        };
        Some(Position { byte, ..self.cursor })
    }

    /// The extent of a text object at the cursor.
    pub(super) fn object(&self, object: Object) -> Option<Range<Position>> {
        let here = self.cursor;
        match object.kind {
            ObjectKind::Word { big } => {
                let start = self.run_end(here, big, Self::backward);
                let end = self.behind_in_line(self.run_end(here, big, Self::forward));
                let space = |at: Position| self.class(at, big) == Class::Space;
                if !object.around || space(here) {
                    return Some(start..end);
                }
                let line = self.buffer.line(here.line);
                if end.byte < line.len() && space(end) {
                    return Some(start..self.behind_in_line(self.run_end(end, big, Self::forward)));
                }
                let before = self.backward(start).filter(|at| at.line == here.line && space(*at));
                Some(before.map_or(start, |at| self.run_end(at, big, Self::backward))..end)
            }
            ObjectKind::Quoted(mark) => {
                let line = self.buffer.line(here.line);
                let marks: Vec<usize> = line.match_indices(mark).map(|(byte, _)| byte).collect();
                let pair = marks.chunks_exact(2).find(|pair| pair.iter().any(|byte| *byte >= here.byte))?;
                let &[open, close] = pair else { return None };
                let at = |byte| Position { byte, ..here };
                Some(if object.around { at(open)..at(close + 1) } else { at(open + 1)..at(close) })
            }
            ObjectKind::Bracketed(open, close) => {
                let start = self.bracket(open, close, Self::backward)?;
                let end = self.bracket(close, open, Self::forward)?;
                Some(match object.around {
                    true => start..Position { byte: end.byte + 1, ..end },
                    false => Position { byte: start.byte + 1, ..start }..end,
                })
            }
        }
    }

    pub(super) fn behind_in_line(&self, at: Position) -> Position {
        Position { byte: unit::behind(self.buffer.line(at.line), at.byte, &self.pastes), ..at }
    }

    /// The bracket around the cursor, in one direction.
    fn bracket(
        &self,
        wanted: char,
        other: char,
        step: fn(&Self, Position) -> Option<Position>,
    ) -> Option<Position> {
        let letter = |at: Position| self.buffer.line(at.line).get(at.byte..)?.chars().next();
        let mut at = self.cursor;
        let mut depth = 0_usize;
        loop {
            match letter(at) {
                Some(found) if found == wanted && depth == 0 => return Some(at),
                Some(found) if found == wanted => depth -= 1,
                Some(found) if found == other && at != self.cursor => depth += 1,
                _ => {}
            }
            at = step(self, at)?;
        }
    }
}
