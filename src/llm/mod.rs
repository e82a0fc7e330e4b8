//! Requests to models: messages, events, models, and streaming.
//!
//! [`stream::start`] runs a [`protocol`] on a thread and yields events. Not here: the protocols themselves
//! (`wire`), the list of models (`models`), and credentials (`auth`).

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
