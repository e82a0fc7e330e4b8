//! Adapters from a surface to the runtime: print, JSON, RPC, ACP, the interactive terminal.

pub mod acp;
pub mod event_json;
pub mod interactive;
pub mod output;
pub mod print;
pub mod report;
pub mod rpc;
pub mod signal;
pub mod stdout;

/// The version of the TypeScript pi whose behaviour is followed.
pub const REFERENCE_VERSION: &str = "0.87.1";
