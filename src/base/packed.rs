//! Texts that are part of the program, compressed by `scripts/compress.rs`.

use flate2::read::DeflateDecoder;
use std::io::Read;

pub struct Packed(pub &'static [u8]);

/// The text of a file, by its path from the root of the repository.
macro_rules! packed {
    ($path:literal) => {
        $crate::base::packed::Packed(include_bytes!(concat!(env!("OUT_DIR"), "/", $path)))
    };
}
pub(crate) use packed;

impl Packed {
    pub fn text(&self) -> String {
        let mut text = String::new();
        // What the build wrote is whole.
        let _ = DeflateDecoder::new(self.0).read_to_string(&mut text);
        text
    }
}
