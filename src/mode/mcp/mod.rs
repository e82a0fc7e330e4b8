//! MCP mode: pi as a server of the Model Context Protocol, JSON-RPC by lines on stdin and stdout.
//!
//! ```text
//! stdin ──> server ──calls──> a thread each ──> output ──> stdout
//! ```
//! The server itself never waits, so that a cancellation is handled at any time. It offers the tools of a session, a
//! tool that runs a whole agent, stored sessions as resources, and prompt templates as prompts. The protocol's
//! revisions from 2024-11-05 to 2025-11-25 are spoken: <https://modelcontextprotocol.io/specification>.
//!
//! With `--listen` it serves many clients over HTTP (`http`), each with a session of its own.
//!
//! Not here: how a session is made from flags and settings ([`Host`] is the command line's).

mod agent;
mod ask;
mod call;
mod complete;
mod http;
mod peer;
mod resource;
mod serve;
mod subscription;

use super::exit::{self, EndsChildren};
use super::host::Host;
use super::output::Output;
use super::signal::Watch;
use super::stdin;
use crate::jsonrpc::message::{self, Bad, Failure, INVALID_REQUEST, Message};
use crate::mode::report;
use crate::runtime::CancelToken;
use peer::{Peer, Way, reason};
use serde_json::Value;
use serve::{Server, SharedHost};
use std::sync::{Arc, Mutex};

/// Handles messages on stdin until it ends. Returns the exit code.
pub fn run(mut host: impl Host, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let session = host.open_tools(cancel).map_err(reason)?;
    let can_run = can_run(&mut host, cancel);
    let output = Arc::new(Output::to_stdout(false, cancel.clone())?);
    let peer = Peer::new(Way::Output(output.clone()));
    let host: SharedHost = Arc::new(Mutex::new(Box::new(host)));
    let ends = EndsChildren { keep: session.workspace().options.bash_keep_background };
    let server = Server::new(peer, host, session.control().clone(), can_run, cancel.clone());
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

/// Serves clients over HTTP until `cancel` is cancelled. Returns the exit code.
pub fn listen(mut host: impl Host, address: &str, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let can_run = can_run(&mut host, cancel);
    let options = host.open_tools(cancel).map_err(reason)?;
    let ends = EndsChildren { keep: options.workspace().options.bash_keep_background };
    options.close().map_err(|error| error.0)?;
    http::serve(Arc::new(Mutex::new(Box::new(host))), can_run, address, cancel)?;
    drop(ends);
    Ok(watch.exit_code().unwrap_or(exit::DONE))
}

/// True if a session can run a prompt. Otherwise the reason is reported.
fn can_run(host: &mut impl Host, cancel: &CancelToken) -> bool {
    let checked = host.check_key(cancel);
    if let Err(reason) = &checked {
        report::warning(format_args!("The tool \"agent\" is not offered: {reason}"));
    }
    checked.is_ok()
}

fn parse(line: Option<&[u8]>) -> Result<Message, Box<Bad>> {
    let too_long =
        || Bad { id: Value::Null, failure: Failure::new(INVALID_REQUEST, "The line is longer than 64 MB") };
    line.map_or_else(|| Err(Box::new(too_long())), message::parse)
}
