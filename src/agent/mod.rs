//! The agent: its loop, events and queues, and the [`tool::Tool`] trait.

mod batch;
pub mod call;
pub mod event;
pub mod message;
pub mod queue;
pub mod run;
pub mod schema;
pub mod tool;

pub use crate::base::cancel::CancelToken;
