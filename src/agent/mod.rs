//! The agent: the loop of turns, its events and queues, and what a tool is.

mod batch;
pub mod call;
pub mod event;
pub mod message;
pub mod queue;
pub mod run;
pub mod schema;
pub mod tool;

pub use crate::base::cancel::CancelToken;
