//! JSON-RPC 2.0, one message a line: framing, reading, and the shapes of messages. No I/O of its own but the
//! reader it is given; who calls whom, and what the methods are, is the user's business.

pub mod line;
pub mod message;
