//! ACP mode: the Agent Client Protocol of editors, JSON-RPC by lines on stdin and stdout.
//!
//! ```text
//! stdin ──> server ─requests─> opener ──> a session's thread, one each ──┐
//!             │  └───────────prompts──────────^                         ├──> output ──> stdout
//!             └──────────────────── answers ────────────────────────────┘
//! ```
//! The server never waits, so that a cancel is handled at any time. Sessions are opened one after another,
//! and answer prompts in parallel. A closed stdin, a closed stdout and a signal abort the current runs, store
//! their partial results, and end the program.
//!
//! Not here: how a session is made from flags and settings ([`Host`] is the command line's).

mod call;
mod command;
mod files;
mod meter;
mod mode;
mod open;
mod option;
mod peer;
mod permit;
mod place;
mod prompt;
mod replay;
mod serve;
mod server;
mod terminal;
mod typed;
mod ui;
mod update;
mod work;

use super::exit::{self, EndsChildren};
use super::host::Host;
use super::output::Output;
use super::signal::Watch;
use super::stdin;
use crate::base::thread::Thread;
use crate::jsonrpc::message::{self, Bad, Failure, INVALID_REQUEST, Message};
use crate::runtime::CancelToken;
use crossbeam_channel::bounded;
use open::{Opener, Sessions};
use peer::Peer;
use serde_json::Value;
use serve::Server;
use std::io;
use std::sync::Arc;

/// Maximum requests queued for the opener.
const REQUESTS_MAX: usize = 64;

/// Handles messages on stdin until it ends. Returns the exit code.
pub fn run(host: impl Host, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let mut ends = EndsChildren { keep: false };
    let start = |error: io::Error| format!("Cannot start a thread: {error}");
    let output = Arc::new(Output::to_stdout(false, cancel.clone())?);
    let peer = Peer::new(output.clone());
    let sessions = Sessions::default();
    let opener = Opener { host, peer: peer.clone(), sessions: sessions.clone(), cancel: cancel.clone() };
    let (requests, waiting) = bounded(REQUESTS_MAX);
    let opener = Thread::named("opener").start(move || opener.work(&waiting)).map_err(start)?;
    let server = Server { peer, sessions: sessions.clone(), requests };
    stdin::serve(parse, cancel, |message| match message {
        Ok(message) => server.handle(message),
        Err(bad) => server.refuse(*bad),
    });

    cancel.cancel();
    drop(server);
    let is_well = opener.join().is_ok();
    ends.keep = sessions.keep_background();
    let is_well = sessions.close() && is_well;
    let closed = if is_well { Ok(()) } else { Err("A session failed inside".into()) };
    let code = exit::code(output.flush(), closed);
    Ok(watch.exit_code().unwrap_or(code))
}

fn parse(line: Option<&[u8]>) -> Result<Message, Box<Bad>> {
    let too_long =
        || Bad { id: Value::Null, failure: Failure::new(INVALID_REQUEST, "The line is longer than 64 MB") };
    line.map_or_else(|| Err(Box::new(too_long())), message::parse)
}
