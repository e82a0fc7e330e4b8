//! JSON-RPC 2.0, one message a line: framing, parsing, message types, and what waits to be written. Not here: methods,
//! and their callers.

pub mod line;
pub mod message;
pub mod outbox;
