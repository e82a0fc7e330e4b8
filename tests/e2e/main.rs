//! The built binary, run as a user runs it, against a provider that plays a script.

mod agent;
#[cfg_attr(not(feature = "interactive"), allow(dead_code))]
mod screen;
mod secret;
mod server;

#[cfg(feature = "acp")]
mod acp;
mod auth;
mod cache_warming;
#[cfg(feature = "interactive")]
mod checkpoint;
mod choose;
mod cli;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(feature = "clouds")]
mod cloud;
#[cfg(feature = "mcp")]
mod codemode;
mod command_hook;
mod compaction;
mod config;
mod crash;
mod crash_store;
mod doctor;
mod event;
mod example_extension;
mod export;
#[cfg(feature = "extensions")]
mod extension;
mod failure;
#[cfg(feature = "interactive")]
mod frame;
mod helper;
mod helper_background;
#[cfg(feature = "interactive")]
mod interactive;
mod isolate;
mod isolate_edge;
mod job;
#[cfg(not(all(
    feature = "acp",
    feature = "clouds",
    feature = "interactive",
    feature = "mcp",
    feature = "sandbox"
)))]
mod left_out;
mod limit;
mod local;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_ask;
#[cfg(feature = "mcp")]
mod mcp_hostile;
#[cfg(feature = "mcp")]
mod mcp_http;
#[cfg(feature = "mcp")]
mod mcp_resource;
#[cfg(feature = "mcp")]
mod mcp_server;
#[cfg(feature = "mcp")]
mod mcp_sign_in;
mod models;
mod mutant;
#[cfg(feature = "mcp")]
mod other_models;
mod output;
mod overdue;
mod package;
#[cfg(feature = "interactive")]
mod permission;
mod plan;
mod print;
mod protocol;
mod question;
mod record;
#[cfg(feature = "interactive")]
mod restore;
mod retry;
mod rpc;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "extensions")]
mod script_api;
#[cfg(feature = "extensions")]
mod script_event;
#[cfg(feature = "extensions")]
mod script_extension;
#[cfg(feature = "extensions")]
mod script_session;
mod sdk;
mod session;
#[cfg(feature = "interactive")]
mod session_screen;
mod sessions;
mod shell;
mod signal;
#[cfg(feature = "interactive")]
mod small;
#[cfg(feature = "interactive")]
mod still;
mod todo;
mod tool;
mod trust;
#[cfg(feature = "extensions")]
mod trust_change;
#[cfg(target_os = "linux")]
mod two_users;
#[cfg(feature = "interactive")]
mod typed;
mod undo;
#[cfg(target_os = "linux")]
mod unlocked;
#[cfg(feature = "interactive")]
mod viewer;

use agent::World;
use server::{Reply, Server};

/// A world whose provider `mock` plays `replies`.
fn world(replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let world = World::new();
    let server = Server::start(replies);
    world.use_server(&server);
    (world, server)
}
