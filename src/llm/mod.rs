//! Talking to models: messages, models and their catalogue, credentials, wire protocols.
//!
//! Everything above this room sees one shape: [`stream::stream`] takes a model, a context and options and
//! gives events. It knows no agent, no files of the project and no terminal.

pub mod api;
pub mod aws;
pub mod cancel;
pub mod catalogue;
pub mod classify;
pub mod config_value;
pub mod context;
pub mod credential;
pub mod env;
pub mod estimate;
pub mod event;
pub mod event_stream;
pub mod executable;
pub mod expiring;
pub mod faux;
pub mod gcp;
pub mod hex;
pub mod http;
pub mod json_stream;
pub mod list_models;
pub mod local;
pub mod message;
pub mod model;
pub mod models;
pub mod null;
pub mod oauth;
pub mod provider;
pub mod regular_file;
pub mod resolve;
pub mod secret;
pub mod sse;
pub mod stream;
#[cfg(test)]
pub mod testing;
pub mod time;
