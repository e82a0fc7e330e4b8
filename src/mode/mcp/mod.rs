//! MCP mode: pi as a server of the Model Context Protocol, JSON-RPC by lines on stdin and stdout.
//!
//! ```text
//! stdin ──> server ──calls──> a thread each ──> output ──> stdout
//! ```
//! The server itself never waits, so that a cancellation is handled at any time. It offers the tools of a session, a
//! tool that runs a whole agent, stored sessions as resources, and prompt templates as prompts. The protocol's
//! revisions from 2024-11-05 to 2025-11-25 are spoken: <https://modelcontextprotocol.io/specification>.
//!
//! Not here: how a session is made from flags and settings ([`Host`] is the command line's).

mod agent;
mod ask;
mod call;
mod peer;
mod resource;
mod serve;

use super::exit::{self, EndsChildren};
use super::host::Host;
use super::output::Output;
use super::signal::Watch;
use super::stdin;
use crate::jsonrpc::message::{self, Bad, Failure, INVALID_REQUEST, Message};
use crate::mode::report;
use crate::runtime::CancelToken;
use peer::{Peer, reason};
use serde_json::Value;
use serve::Server;
use std::sync::Arc;

/// Handles messages on stdin until it ends. Returns the exit code.
pub fn run(mut host: impl Host, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let session = host.open_tools(cancel).map_err(reason)?;
    let can_run = host.check_key(cancel);
    if let Err(reason) = &can_run {
        report::warning(format_args!("The tool \"agent\" is not offered: {reason}"));
    }
    let output = Arc::new(Output::to_stdout(false, cancel.clone())?);
    let peer = Peer::new(output.clone());
    let ends = EndsChildren { keep: session.workspace().options.bash_keep_background };
    let server = Server::new(peer, host, session.control().clone(), can_run.is_ok(), cancel.clone());
    stdin::serve(parse, cancel, |message| match message {
        Ok(message) => server.handle(message),
        Err(bad) => server.refuse(*bad),
    });
    cancel.cancel();
    server.finish();
    let closed = session.close().map_err(|error| error.0);
    let code = exit::code(output.flush(), closed);
    drop(ends);
    Ok(watch.exit_code().unwrap_or(code))
}

fn parse(line: Option<&[u8]>) -> Result<Message, Box<Bad>> {
    let too_long =
        || Bad { id: Value::Null, failure: Failure::new(INVALID_REQUEST, "The line is longer than 64 MB") };
    line.map_or_else(|| Err(Box::new(too_long())), message::parse)
}
