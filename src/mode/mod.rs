//! Adapters from a surface to the runtime: print and JSON.

pub mod event_json;
pub mod output;
pub mod print;
pub mod report;
pub mod signal;
