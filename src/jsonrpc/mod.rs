//! JSON-RPC 2.0, one message a line: framing, parsing, and message types. Not here: methods, and their
//! callers.

pub mod line;
pub mod message;
