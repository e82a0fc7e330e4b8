//! A client of the Model Context Protocol: tools, resources and prompts of other programs.
//!
//! | file | does |
//! |---|---|
//! | `config` | `mcp.json` |
//! | `peer`, `client` | JSON-RPC with a server, and the protocol's methods on it |
//! | `stdio`, `http` | what carries the messages |
//! | `server` | one configured server: connecting, reconnecting, what it offers |
//! | `session` | the servers of a session, and what they add to it |
//! | `tool`, `resource` | tools of the agent |
//! | `access`, `ask` | credentials of servers, and the user |
//! | `command` | `/mcp` |
//! | `name`, `result`, `section`, `cache`, `log` | names, results, the prompt, and files of pi's own |

pub mod access;
mod ask;
mod cache;
mod client;
mod command;
pub mod config;
pub mod fault;
pub mod http;
pub mod log;
mod name;
mod peer;
mod resource;
mod result;
mod section;
pub mod server;
pub mod session;
mod stdio;
mod tool;
