//! `pi`, a terminal coding agent. This page is the map of the crate.
//!
//! | room | owns | never sees |
//! |---|---|---|
//! | [`base`] | cancelling, time, environment, secrets, failpoints | all else |
//! | [`llm`] | messages, events, models as data, one streamed request, http | all but `base` |
//! | [`wire`] | a wire protocol each: a request and a decoder, both pure | sockets, threads, credentials |
//! | [`models`] | catalogue, `models.json`, which model a name means, local servers | credentials |
//! | [`auth`] | credentials, sign-ins, AWS and Google | agent, files of the project, terminal |
//! | [`agent`] | the loop, events, queues, the `Tool` trait | sessions, terminal |
//! | [`tools`] | the built-in tools and what they share | sessions, terminal, llm's wire |
//! | [`session`] | entries, the log file, the tree | terminal |
//! | [`markdown`] | Markdown into blocks and inlines | all else |
//! | [`resources`] | settings, context files, system prompt | llm's wire, terminal |
//! | [`jsonrpc`] | JSON-RPC messages, their framing, and lines of JSON as others write them | all else |
//! | [`runtime`] | one conversation with its agent, log and resources | terminal |
//! | [`helper`] | helpers of a session: agents in processes of their own | terminal |
//! | [`extension`] | programs that take part in a session, and what they register | terminal |
//! | [`tui`] | what is on a terminal and what is typed on it | llm, agent, session |
//! | [`codemode`] | the tool that runs scripts which call tools | terminal |
//! | [`mcp`] | servers of the Model Context Protocol and what they offer | terminal |
//! | [`mode`] | print, json, rpc, acp: a surface each | wire protocols |
//! | [`cli`] | flags and subcommands | – |
//! | [`client`] | a client of RPC mode, for other programs | everything else |
//!
//! `tests/tidy` holds the arrows between them. Other programs see [`sdk`] and [`client`] (`pi docs sdk`); the rooms
//! are private, so that the compiler names what nothing uses.

// What only a part that is left out uses is not dead.
#![cfg_attr(
    not(all(
        feature = "acp",
        feature = "clouds",
        feature = "extensions",
        feature = "interactive",
        feature = "mcp",
        feature = "sandbox"
    )),
    allow(dead_code, unused_imports)
)]

mod agent;
mod auth;
mod base;
mod cli;
pub mod client;
#[cfg(feature = "mcp")]
mod codemode;
mod docs;
#[cfg_attr(not(feature = "extensions"), path = "extension/absent.rs")]
mod extension;
mod helper;
mod jsonrpc;
mod llm;
mod markdown;
#[cfg(feature = "mcp")]
mod mcp;
mod mode;
mod models;
mod resources;
mod runtime;
mod session;
mod tools;
#[cfg(feature = "interactive")]
mod tui;
mod wire;

pub mod sdk;

#[doc(hidden)]
pub use cli::main;
#[doc(hidden)]
pub use mode::stdout::look;
