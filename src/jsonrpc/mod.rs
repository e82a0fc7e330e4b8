//! JSON-RPC 2.0, one message a line: framing, reading, and the shapes of messages. Not here: methods, and who
//! calls whom.

pub mod line;
pub mod message;
