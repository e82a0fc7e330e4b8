//! A question with yes and no.

use super::list::mark;
use crate::tui::key::{Code, Key};
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::looks::Looks;
use crate::tui::wrap::wrap;

#[derive(Debug)]
pub struct Confirm {
    question: String,
    is_yes: bool,
}

impl Confirm {
    /// `is_yes`: what Enter alone answers.
    pub fn new(question: &str, is_yes: bool) -> Self {
        Self { question: question.to_owned(), is_yes }
    }

    /// The answer, once there is one. To leave is no.
    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Option<bool> {
        if keymap.is(key, Action::SelectCancel) {
            return Some(false);
        }
        if keymap.is(key, Action::SelectConfirm) {
            return Some(self.is_yes);
        }
        match (key.typed(), key.code) {
            (Some('y' | 'Y'), _) => Some(true),
            (Some('n' | 'N'), _) => Some(false),
            _ => {
                let is_move = keymap.is(key, Action::SelectUp)
                    || keymap.is(key, Action::SelectDown)
                    || matches!(key.code, Code::Left | Code::Right | Code::Tab)
                        && key.action != crate::tui::key::Action::Release;
                self.is_yes ^= is_move;
                None
            }
        }
    }

    pub fn render(&self, width: usize, looks: &Looks) -> Vec<Line> {
        let question = self.question.lines().map(|line| Line::of(line, looks.accent));
        let mut lines: Vec<Line> = question.flat_map(|line| wrap(&line, width)).collect();
        for (answer, label) in [(true, "Yes"), (false, "No")] {
            let is_selected = answer == self.is_yes;
            let style = if is_selected { looks.selected } else { looks.text };
            let mut line = Line::of(mark(is_selected, looks), style);
            line.push(label, style);
            lines.push(line);
        }
        lines.iter().map(|line| line.cut(width)).collect()
    }
}
