//! Parses text that grows at its end, such as a streaming answer.
//!
//! Further text can only change the last block, and the apparent start of a block in its last line: `- - -`
//! is a rule until more of the line makes it an item. Earlier blocks are closed: parsed, and never read
//! again. A fenced code block may be long, so it is not parsed again either: its lines are read one by one
//! until the closing fence. The same holds for a list and a table: only the last item and the last rows are
//! parsed again.

use super::Block;
use super::block::{self, Blocks};
use super::line::{Fence, strip_indent};

#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// Text from the first open block on; of open code only its last, unfinished line, of a list and a table
    /// nothing of what is whole.
    text: String,
    closed: Vec<Block>,
    open: Vec<Block>,
    code: Option<Code>,
    /// Items or rows of the first open block that further text cannot change.
    whole: usize,
}

/// State of open code; its content is in the open block.
#[derive(Clone, Debug)]
struct Code {
    fence: Fence<'static>,
    /// Bytes of the block's text that are complete lines, and whether there are any.
    whole: usize,
    has_lines: bool,
}

impl Growing {
    /// Appends text. The cost is that of the open blocks, or of the last line of open code.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        loop {
            let goes_on = match self.code {
                Some(_) => self.take_code_lines(),
                None => {
                    self.parse();
                    self.begin_code()
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    fn parse(&mut self) {
        let Blocks { mut blocks, items } = block::parse(&self.text);
        if self.whole > 0 && !self.open.is_empty() {
            let mut first = self.open.swap_remove(0);
            if let Some((_, rest)) = blocks.first_mut() {
                self.complete(&mut first, rest);
                *rest = first;
            }
        }
        let looked_at = self.settled_lines();
        let settled = blocks.iter().rposition(|(start, _)| *start < looked_at);
        let open = blocks.split_off(settled.unwrap_or(0));
        let start = open.first().map_or(0, |(start, _)| *start);
        if start > 0 {
            self.whole = 0;
        }
        let block = |(_, block)| block;
        self.closed.extend(blocks.into_iter().map(block));
        self.open = open.into_iter().map(block).collect();
        self.text.drain(..start);
        let items: Vec<usize> = items.into_iter().map(|at| at.saturating_sub(start)).collect();
        self.settle(&items, looked_at.saturating_sub(start));
    }

    /// Adds to the whole part of a block what was parsed of the rest.
    fn complete(&self, block: &mut Block, rest: &mut Block) {
        match (block, rest) {
            (Block::List(list), Block::List(rest)) => {
                list.items.truncate(self.whole);
                list.items.append(&mut rest.items);
            }
            (Block::Table(table), Block::Table(rest)) => {
                table.rows.truncate(self.whole);
                table.rows.append(&mut rest.rows);
            }
            // The text begins with the mark of an item, or the head of the table.
            _ => {}
        }
    }

    /// Takes the whole items or rows of the open block from the text.
    fn settle(&mut self, items: &[usize], looked_at: usize) {
        match self.open.as_slice() {
            [Block::List(_)] => {
                let last = items.iter().rposition(|at| *at < looked_at).unwrap_or(0);
                if let Some(at) = items.get(last).filter(|_| last > 0) {
                    self.whole += last;
                    self.text.drain(..*at);
                }
            }
            [Block::Table(table)] => {
                let mut ends = self.text.match_indices('\n').map(|(at, _)| at + 1);
                if let Some(head) = ends.nth(1) {
                    let rows = ends
                        .take_while(|end| *end <= looked_at)
                        .take(table.rows.len().saturating_sub(self.whole));
                    let (count, end) = rows.fold((0, head), |(count, _), end| (count + 1, end));
                    self.whole += count;
                    self.text.drain(head..end);
                }
            }
            _ => {}
        }
    }

    /// Bytes of the lines whose meaning is final. An unfinished last line is not final, nor is the line
    /// before it, which may become the head of a table.
    fn settled_lines(&self) -> usize {
        let (lines, last) = self.text.rsplit_once('\n').unwrap_or_default();
        match last.is_empty() && !lines.is_empty() {
            true => self.text.len(),
            false => lines.rfind('\n').map_or(0, |at| at + 1),
        }
    }

    /// True if the first open block is code with a complete opening fence.
    fn begin_code(&mut self) -> bool {
        let Some((first, rest)) = self.text.split_once('\n') else {
            return false;
        };
        let Some(Block::Code { language, .. }) = self.open.first() else {
            return false;
        };
        let Some(fence) = Fence::parse(first.strip_suffix('\r').unwrap_or(first)) else {
            return false;
        };
        self.code = Some(Code { fence: fence.without_info(), whole: 0, has_lines: false });
        self.open = vec![Block::Code { language: language.clone(), text: String::new() }];
        self.text = rest.to_owned();
        true
    }

    /// Adds received lines to the open code. True if the closing fence was among them.
    fn take_code_lines(&mut self) -> bool {
        let (Some(code), Some(Block::Code { text, .. })) = (&mut self.code, self.open.first_mut()) else {
            return false;
        };
        let mut taken = 0;
        // What the last line seemed to be is forgotten.
        text.truncate(code.whole);
        for line in self.text.split_inclusive('\n') {
            let is_whole = line.ends_with('\n');
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = content.strip_suffix('\r').unwrap_or(content);
            let is_end = code.fence.is_closed_by(content);
            if !is_end {
                if code.has_lines {
                    text.push('\n');
                }
                text.push_str(strip_indent(content, code.fence.indent));
            }
            if !is_whole {
                break;
            }
            taken += line.len();
            if is_end {
                self.text.drain(..taken);
                self.closed.append(&mut self.open);
                self.code = None;
                return true;
            }
            (code.whole, code.has_lines) = (text.len(), true);
        }
        self.text.drain(..taken);
        false
    }

    /// Takes the blocks that are final.
    pub fn take_closed(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.closed)
    }

    /// The last blocks, which further text may change: one, or briefly a few.
    pub fn open(&self) -> &[Block] {
        &self.open
    }

    /// Items or rows of the first open block, a list or a table, that are final. A table may yet become wider.
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// The text of open code without a last line that may become the closing fence.
    pub fn open_code_without_end(&self) -> Option<&str> {
        let (code, (_, text)) = (self.code.as_ref()?, self.open_code()?);
        let last = text.get(code.whole..)?;
        let end =
            if code.fence.is_half_closed_by(last.trim_start_matches('\n')) { code.whole } else { text.len() };
        text.get(..end)
    }

    /// The lines of open code that are complete.
    pub fn open_code_lines(&self) -> Option<&str> {
        self.open_code()?.1.get(..self.code.as_ref()?.whole)
    }

    /// Language and text of open code. Only its last line can still change.
    pub fn open_code(&self) -> Option<(&str, &str)> {
        match (&self.code, self.open.first()) {
            (Some(_), Some(Block::Code { language, text })) => Some((language, text)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_open_code_only_the_last_line_is_kept_to_be_read_again() {
        let mut growing = Growing::default();
        growing.push("a\n\n  ~~~rust x\n");
        for number in 0..1000 {
            growing.push("   let ");
            growing.push(&format!("x = {number};\n  "));
            assert_eq!(growing.text, "  ");
            assert_eq!(growing.open().len(), 1);
        }
        let (language, text) = growing.open_code().unwrap();
        assert_eq!(language, "rust");
        assert_eq!(text.lines().count(), 1000);
        // An end that is none after all.
        growing.push("~~~");
        assert!(growing.open_code().unwrap().1.ends_with("999;"));
        growing.push("x\n  ~~~\nb");
        assert!(growing.open_code().is_none());
        assert_eq!(growing.take_closed().len(), 2);
        assert_eq!(growing.text, "b");
    }

    #[test]
    fn of_open_lists_and_tables_only_the_end_is_read_again() {
        for (head, part) in
            [("", "- a b\n  c\n"), ("", "1. a\n\n   b\n\n"), ("| A | B |\n|-|-|\n", "| a | b |\n")]
        {
            let (mut growing, mut whole) = (Growing::default(), head.to_owned());
            growing.push(head);
            for _ in 0..100 {
                for half in [part.split_at(3).0, part.split_at(3).1] {
                    growing.push(half);
                    whole.push_str(half);
                    assert!(growing.text.len() <= head.len() + 3 * part.len(), "{:?}", growing.text);
                    assert_eq!(growing.open(), super::super::parse(&whole));
                }
            }
            assert!(growing.whole() > 95);
            growing.push("\nend\n");
            assert_eq!(growing.take_closed(), super::super::parse(&whole));
        }
    }
}
