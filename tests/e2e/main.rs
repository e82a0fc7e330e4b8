//! The built binary, run as a user runs it, against a provider that plays a script.

mod agent;
mod screen;
mod secret;
mod server;

mod acp;
mod auth;
mod choose;
mod cli;
mod cloud;
mod compaction;
mod config;
mod crash;
mod crash_store;
mod event;
mod export;
mod failure;
mod interactive;
mod limit;
mod local;
mod models;
mod output;
mod print;
mod protocol;
mod question;
mod restore;
mod retry;
mod rpc;
mod sandbox;
mod sdk;
mod session;
mod session_screen;
mod sessions;
mod signal;
mod tool;
mod trust;
mod undo;
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
