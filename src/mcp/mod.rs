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
//! | `access`, `ask` | credentials of servers, and sign-ins |
//! | `ear`, `question` | what servers ask of pi, of the user and of the model |
//! | `prompt`, `mention` | prompts as slash commands, resources in prompts |
//! | `command` | `/mcp` |
//! | `name`, `result`, `section`, `cache`, `log` | names, results, the prompt, and files of pi's own |

pub mod access;
mod ask;
mod cache;
mod client;
mod command;
pub mod config;
mod ear;
pub mod fault;
pub mod http;
pub mod log;
mod mention;
mod name;
mod peer;
mod prompt;
mod question;
mod resource;
mod result;
mod section;
pub mod server;
pub mod session;
mod stdio;
mod tool;
