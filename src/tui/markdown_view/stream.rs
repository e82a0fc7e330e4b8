//! Growing Markdown in two parts: final lines, and lines that may still change.
//!
//! Final lines can be printed; together they equal the lines of the whole text. Only the last block can
//! change, and of a code block only its last line, however long it is: so the cost is that of the new text
//! and of the open block. Code that may become a diagram is short, and stays open until its end.

use super::{Diagrams, Look, blocks};
use crate::markdown::{Block, Growing};
use crate::tui::highlight::Highlighter;
use crate::tui::line::Line;

#[derive(Clone, Debug, Default)]
pub struct Stream {
    growing: Growing,
    /// True if blocks were returned: a blank line is due before the next.
    has_blocks: bool,
    code: Option<Code>,
}

/// A code block of which some lines are final.
#[derive(Clone, Debug)]
struct Code {
    /// Bytes of the text that were returned.
    given: usize,
    highlighter: Highlighter,
}

impl Stream {
    /// Appends text; returns the lines that became final.
    pub fn push(&mut self, text: &str, look: &Look<'_>) -> Vec<Line> {
        let mut out = Vec::new();
        self.growing.push(text);
        for block in self.growing.take_closed() {
            self.close(&block, look, &mut out);
        }
        let code = self.growing.open_code();
        if let Some((language, text)) = code.filter(|(language, text)| !look.is_diagram(language, text)) {
            let code = self.code.get_or_insert_with(|| {
                separate(&mut self.has_blocks, &mut out);
                Code { given: 0, highlighter: Highlighter::new(language) }
            });
            let new = text.get(code.given..).unwrap_or_default();
            // A first line that is empty waits for another: alone it is as good as none.
            let whole = new.rsplit_once('\n').map(|(lines, _)| lines);
            if let Some(lines) = whole.filter(|lines| code.given > 0 || !lines.is_empty()) {
                look.code_lines(lines, &mut code.highlighter, &mut out);
                code.given += lines.len() + 1;
            }
        }
        out
    }

    /// The lines that may still change.
    pub fn open(&self, look: &Look<'_>) -> Vec<Line> {
        let mut out = Vec::new();
        if let (Some(code), Some(text)) = (&self.code, self.growing.open_code_without_end()) {
            code.clone().rest(text, look, &mut out);
        } else if !self.growing.open().is_empty() {
            separate(&mut self.has_blocks.clone(), &mut out);
            out.extend(self.open_blocks(look));
        }
        out
    }

    fn open_blocks(&self, look: &Look<'_>) -> Vec<Line> {
        let is_drawn = look.diagrams == Diagrams::Streaming;
        let look = if is_drawn { *look } else { Look { diagrams: Diagrams::Off, ..*look } };
        let (Some((language, _)), Some(text)) =
            (self.growing.open_code(), self.growing.open_code_without_end())
        else {
            return blocks(self.growing.open(), &look, true);
        };
        let lines = self.growing.open_code_lines().unwrap_or_default();
        look.diagram(language, lines).unwrap_or_else(|| {
            let mut out = Vec::new();
            look.code(text, &mut Highlighter::new(language), &mut out);
            out
        })
    }

    /// Ends the text; returns the lines that were not final.
    pub fn finish(mut self, look: &Look<'_>) -> Vec<Line> {
        let mut out = Vec::new();
        for block in self.growing.open().to_vec() {
            self.close(&block, look, &mut out);
        }
        out
    }

    fn close(&mut self, block: &Block, look: &Look<'_>, out: &mut Vec<Line>) {
        match (self.code.take(), block) {
            (Some(mut code), Block::Code { text, .. }) => {
                code.rest(text, look, out);
            }
            _ => {
                separate(&mut self.has_blocks, out);
                look.block(block, out);
            }
        }
    }
}

impl Code {
    /// Lays out the lines after those already returned.
    fn rest(&mut self, text: &str, look: &Look<'_>, out: &mut Vec<Line>) {
        match self.given {
            0 => look.code(text, &mut self.highlighter, out),
            given => {
                if let Some(rest) = text.get(given..) {
                    look.code_lines(rest, &mut self.highlighter, out);
                }
            }
        }
    }
}

fn separate(has_blocks: &mut bool, out: &mut Vec<Line>) {
    if std::mem::replace(has_blocks, true) {
        out.push(Line::new());
    }
}
