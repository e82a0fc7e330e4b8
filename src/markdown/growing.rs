//! Text that grows at its end, as an answer does while it streams.
//!
//! More text can only change the last block, and what its own last line seems to begin: `- - -` is a rule
//! until more of the line makes it an item. The blocks before are closed: parsed, and never looked at
//! again.

use super::{Block, block};

#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// From the start of the first open block on.
    text: String,
    closed: Vec<Block>,
    open: Vec<Block>,
}

impl Growing {
    /// Adds text. The cost is that of the open blocks.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let whole_lines = self.text.rfind('\n').map_or(0, |at| at + 1);
        let mut blocks = block::parse(&self.text);
        let settled = blocks.iter().rposition(|(start, _)| *start < whole_lines);
        let open = blocks.split_off(settled.unwrap_or(0));
        let start = open.first().map_or(0, |(start, _)| *start);
        let block = |(_, block)| block;
        self.closed.extend(blocks.into_iter().map(block));
        self.open = open.into_iter().map(block).collect();
        self.text.drain(..start);
    }

    /// The blocks that will not change any more.
    pub fn closed(&self) -> &[Block] {
        &self.closed
    }

    /// The blocks at the end, which more text may change: one, or two for a moment.
    pub fn open(&self) -> &[Block] {
        &self.open
    }
}
