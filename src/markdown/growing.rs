//! Text that grows at its end, as an answer does while it streams.
//!
//! More text can only change the last block. The ones before it are closed: parsed once, and never looked
//! at again.

use super::{Block, block};

#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// From the start of the last block on.
    text: String,
    closed: Vec<Block>,
    open: Option<Block>,
}

impl Growing {
    /// Adds text. The cost is that of the last block.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let mut blocks = block::parse(&self.text);
        let Some((start, last)) = blocks.pop() else {
            return;
        };
        self.closed
            .extend(blocks.into_iter().map(|(_, block)| block));
        self.text.drain(..start);
        self.open = Some(last);
    }

    /// The blocks that will not change any more.
    pub fn closed(&self) -> &[Block] {
        &self.closed
    }

    /// The last block, which more text may change.
    pub fn open(&self) -> Option<&Block> {
        self.open.as_ref()
    }
}
