//! Growing Markdown in two parts: final lines, and lines that may still change.
//!
//! Final lines can be printed; together they equal the lines of the whole text. Only the last block can
//! change, of a code block only its last line and of a list only its last item, however long it is: so the
//! cost is that of the new text and of the open block. Code that may become a diagram is short, and stays open
//! until its end. Of an open table the final rows are laid out once, but are not final lines: a longer cell may
//! widen them yet.

use super::table::Rows;
use super::{Diagrams, Layout, Look};
use crate::markdown::{Block, Growing};
use crate::tui::highlight::Highlighter;
use crate::tui::line::Line;

#[derive(Clone, Debug, Default)]
pub struct Stream {
    growing: Growing,
    /// True if blocks were returned: a blank line is due before the next.
    has_blocks: bool,
    code: Option<Code>,
    /// Items of the open list that were returned.
    items: usize,
    /// What is laid out of the open block.
    laid: Option<Box<(Layout, Laid)>>,
}

/// The rows of a table, or the lines of a diagram.
#[derive(Clone, Debug)]
enum Laid {
    Rows(Box<Rows>),
    /// A diagram, if its first `bytes` bytes can be drawn.
    Diagram {
        bytes: usize,
        lines: Option<Vec<Line>>,
    },
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
        if let (Some(Block::List(list)), whole @ 1..) = (self.growing.open().first(), self.growing.whole()) {
            if self.items == 0 {
                separate(&mut self.has_blocks, &mut out);
            }
            look.items(list, self.items..whole, &mut out);
            self.items = whole;
        }
        self.lay_out(look);
        out
    }

    /// Lays out what became final of the open block.
    fn lay_out(&mut self, look: &Look<'_>) {
        let look = while_open(look);
        let known = self.laid.take().filter(|laid| laid.0.is_of(&look));
        let (layout, known) = known.map(|laid| *laid).unzip();
        let laid = match (self.open_diagram(), self.growing.open().first()) {
            (Some((language, lines)), _) if self.code.is_none() => Laid::drawn(known, language, lines, &look),
            (_, Some(first)) => Laid::grown(known, first, self.growing.whole(), &look),
            _ => None,
        };
        self.laid = laid.map(|laid| Box::new((layout.unwrap_or_else(|| Layout::of(&look)), laid)));
    }

    /// Language and complete lines of open code.
    fn open_diagram(&self) -> Option<(&str, &str)> {
        Some((self.growing.open_code()?.0, self.growing.open_code_lines()?))
    }

    /// The lines that may still change: the last `limit`, or slightly more.
    pub fn open(&self, look: &Look<'_>, limit: usize) -> Vec<Line> {
        let (mut out, look) = (Vec::new(), while_open(look));
        if let (Some(code), Some(text)) = (&self.code, self.growing.open_code_without_end()) {
            code.clone().rest(text, &look, &mut out);
        } else if let [first, others @ ..] = self.growing.open() {
            if self.items == 0 {
                separate(&mut self.has_blocks.clone(), &mut out);
            }
            let start = out.len();
            let laid = self.laid.as_deref().filter(|(layout, _)| layout.is_of(&look));
            match laid.map(|(_, laid)| laid) {
                Some(Laid::Diagram { lines: Some(lines), .. }) => out.extend_from_slice(lines),
                Some(Laid::Diagram { lines: None, .. }) => {
                    self.open_block(first, &Look { diagrams: Diagrams::Off, ..look }, &mut out);
                }
                Some(laid) => laid.lines(first, limit, &look, &mut out),
                None => self.open_block(first, &look, &mut out),
            }
            for block in others {
                if out.len() > start || self.items > 0 {
                    out.push(Line::new());
                }
                look.block(block, &mut out);
            }
        }
        out.drain(..out.len().saturating_sub(limit));
        out
    }

    /// Lays out an open block, of a list the items that were not returned yet.
    fn rest_of(&self, block: &Block, look: &Look<'_>, out: &mut Vec<Line>) {
        match block {
            Block::List(list) => look.items(list, self.items..list.items.len(), out),
            _ => look.block(block, out),
        }
    }

    fn open_block(&self, block: &Block, look: &Look<'_>, out: &mut Vec<Line>) {
        let (Some((language, lines)), Some(text)) =
            (self.open_diagram(), self.growing.open_code_without_end())
        else {
            return self.rest_of(block, look, out);
        };
        match look.diagram(language, lines) {
            Some(diagram) => out.extend(diagram),
            None => look.code(text, &mut Highlighter::new(language), out),
        }
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
        self.laid = None;
        match (self.code.take(), block) {
            (Some(mut code), Block::Code { text, .. }) => {
                code.rest(text, look, out);
            }
            _ => {
                if self.items == 0 {
                    separate(&mut self.has_blocks, out);
                }
                self.rest_of(block, look, out);
                self.items = 0;
            }
        }
    }
}

impl Laid {
    /// The first `whole` rows of a table, of which `known` are laid out.
    fn grown(known: Option<Self>, block: &Block, whole: usize, look: &Look<'_>) -> Option<Self> {
        match (known, block) {
            _ if whole == 0 => None,
            (known, Block::Table(table)) => {
                let mut rows = match known {
                    Some(Self::Rows(rows)) => rows,
                    _ => Box::new(Rows::new(table, look)),
                };
                let known = rows.len();
                table.rows.iter().take(whole).skip(known).for_each(|row| rows.push(row, look));
                Some(Self::Rows(rows))
            }
            _ => None,
        }
    }

    /// The diagram of the complete lines of a code block, if there is one.
    fn drawn(known: Option<Self>, language: &str, source: &str, look: &Look<'_>) -> Option<Self> {
        match known {
            // Only at their end do they grow.
            Some(Self::Diagram { bytes, lines }) if bytes == source.len() => {
                Some(Self::Diagram { bytes, lines })
            }
            _ if look.is_diagram(language, source) => {
                Some(Self::Diagram { bytes: source.len(), lines: look.diagram(language, source) })
            }
            _ => None,
        }
    }

    /// The last `limit` lines of `block`, or slightly more.
    fn lines(&self, block: &Block, limit: usize, look: &Look<'_>, out: &mut Vec<Line>) {
        match (self, block) {
            (Self::Rows(rows), Block::Table(table)) => {
                let more = table.rows.get(rows.len()..).unwrap_or_default();
                rows.lines(&table.align, more, limit, look, out);
            }
            _ => look.block(block, out),
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

/// The look of what may still change.
fn while_open<'a>(look: &Look<'a>) -> Look<'a> {
    let is_drawn = look.diagrams == Diagrams::Streaming;
    Look { diagrams: if is_drawn { Diagrams::Streaming } else { Diagrams::Off }, ..*look }
}

fn separate(has_blocks: &mut bool, out: &mut Vec<Line>) {
    if std::mem::replace(has_blocks, true) {
        out.push(Line::new());
    }
}
