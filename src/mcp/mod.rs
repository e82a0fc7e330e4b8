//! A client of the Model Context Protocol: tools, resources and prompts of other programs.
//!
//! | file | does |
//! |---|---|
//! | `config` | `mcp.json` |
//! | `peer`, `client` | JSON-RPC with a server, and the protocol's methods on it |
//! | `stdio`, `http` | what carries the messages |
//! | `server` | one configured server: connecting, reconnecting, what it offers |

pub mod access;
mod client;
pub mod config;
pub mod fault;
pub mod http;
pub mod log;
mod peer;
pub mod server;
mod stdio;
