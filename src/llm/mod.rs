//! Talking to a model: messages and events, what a model is, and one streamed request.
//!
//! [`stream::start`] runs a protocol ([`protocol`]) on a thread and gives events. Not here: the protocols
//! themselves (`wire`), which models there are (`models`), and whose key is sent (`auth`).

pub mod body;
pub mod classify;
pub mod context;
pub mod estimate;
pub mod event;
pub mod event_stream;
pub mod http;
pub mod json_stream;
pub mod limits;
pub mod message;
pub mod model;
pub mod options;
pub mod protocol;
pub mod secret;
pub mod size;
pub mod sse;
pub mod stream;
#[cfg(test)]
pub mod testing;
