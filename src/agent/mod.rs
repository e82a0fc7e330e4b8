//! The agent: the loop of turns, its events and queues, and what a tool is.

pub mod message;
pub mod schema;
pub mod tool;

pub use crate::llm::cancel::CancelToken;
