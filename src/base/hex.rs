//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Two digits a byte, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
