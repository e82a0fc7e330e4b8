//! Adapters from a surface to the runtime: print, JSON, RPC, ACP, MCP, the interactive terminal.

#[cfg(feature = "acp")]
pub mod acp;
pub mod exit;
#[cfg(any(feature = "acp", feature = "mcp"))]
mod form;
#[cfg(any(feature = "acp", feature = "mcp"))]
pub mod host;
#[cfg_attr(not(feature = "interactive"), path = "absent/interactive.rs")]
pub mod interactive;
pub mod jobs;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod output;
#[cfg(any(feature = "acp", feature = "mcp"))]
mod peer;
mod pending;
pub mod print;
mod quiet;
pub mod report;
pub mod rpc;
pub mod signal;
mod stdin;
pub mod stdout;

/// The version of the TypeScript pi that this program follows.
pub const REFERENCE_VERSION: &str = "1.5.2";
