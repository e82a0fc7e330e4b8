//! ACP mode: the Agent Client Protocol of editors, JSON-RPC by lines on stdin and stdout.
//!
//! ```text
//! stdin ──> reader ──> server ──wishes──> opener ──> a session's thread, one each ──┐
//!                        │  └───────────prompts──────────^                         ├──> output ──> stdout
//!                        └──────────────────── answers ────────────────────────────┘
//! ```
//! The server never waits: a cancel is felt whatever else goes on. Sessions are opened one after another,
//! and answer their prompts side by side. A closed stdin, a closed stdout and a signal end the runs under
//! way, store what there is of them, and end the program.
//!
//! Not here: how a session is made from flags and settings ([`Host`] is the command line's).

mod call;
mod files;
mod mode;
mod open;
mod peer;
mod permit;
mod place;
mod prompt;
mod replay;
mod serve;
mod typed;
mod update;
mod work;

use super::output::Output;
use super::print::{DONE, EndsChildren, FAILED, PIPE_CLOSED};
use super::report;
use super::signal::Watch;
use super::stdout;
use crate::jsonrpc::line::{self, Frame, Frames};
use crate::jsonrpc::message::{self, Bad, Failure, INVALID_REQUEST, Message};
use crate::runtime::CancelToken;
use crate::runtime::backend::Over;
use crate::runtime::session::Session;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use open::{Opener, Sessions};
use peer::Peer;
use serde::Serialize;
use serde_json::Value;
use serve::Server;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread;

pub use typed::title;

/// The version of the protocol.
const VERSION: u32 = 1;

/// There is no key, or no model at all.
const AUTH_REQUIRED: i64 = -32000;
/// There is no such session.
const NOT_FOUND: i64 = -32002;
/// The editor took its request back.
const CANCELLED: i64 = -32800;

/// Sessions that wait to be opened.
const WISHES_MAX: usize = 64;

/// Makes sessions.
pub trait Host: Send + 'static {
    /// Says why a new session's model cannot be asked, where no key or no model is the reason.
    fn check_key(&mut self, cancel: &CancelToken) -> Result<(), String>;

    /// Opens a session in `cwd`: the stored one with this id, or a new one. Its tools find files through
    /// `files`.
    fn open(
        &mut self,
        cwd: &Path,
        stored: Option<&str>,
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal>;

    /// The stored sessions of `cwd`, or all there are.
    fn list(&mut self, cwd: Option<&Path>) -> Result<Vec<Listed>, Refusal>;
}

/// Why there is no session.
#[derive(Debug)]
pub enum Refusal {
    NoFolder(String),
    NotFound(String),
    NoModel(String),
    Failed(String),
}

/// A stored session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub session_id: String,
    pub cwd: String,
    pub title: String,
    /// ISO 8601.
    pub updated_at: String,
}

/// Serves stdin until it ends. Gives the exit code.
pub fn run(host: impl Host, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let mut ends = EndsChildren { keep: false };
    let start = |error: io::Error| format!("Cannot start a thread: {error}");
    let stdout = stdout::open().map_err(|error| format!("Cannot write to stdout: {error}"))?;
    let output = Output::start(stdout, false, cancel.clone()).map_err(start)?;
    let output = Arc::new(output);
    let peer = Peer::new(output.clone());
    let sessions = Sessions::default();
    let opener = Opener { host, peer: peer.clone(), sessions: sessions.clone(), cancel: cancel.clone() };
    let (wishes, waiting) = bounded(WISHES_MAX);
    let opener =
        thread::Builder::new().name("opener".into()).spawn(move || opener.work(&waiting)).map_err(start)?;
    let (lines, incoming) = bounded(1);
    thread::Builder::new().name("stdin".into()).spawn(move || read(io::stdin(), &lines)).map_err(start)?;
    let server = Server { peer, sessions: sessions.clone(), wishes };
    serve(&server, &incoming, cancel);

    cancel.cancel();
    drop(server);
    let is_well = opener.join().is_ok();
    ends.keep = sessions.keep_background();
    let is_well = sessions.close() && is_well;
    let code = match output.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => PIPE_CLOSED,
        Err(error) => {
            report::error(format_args!("Cannot write to stdout: {error}"));
            FAILED
        }
        Ok(()) if is_well => DONE,
        Ok(()) => {
            report::error("A session failed inside");
            FAILED
        }
    };
    Ok(watch.exit_code().unwrap_or(code))
}

/// Hands messages to the server until there are no more, or it is time to end.
fn serve(server: &Server, incoming: &Receiver<Result<Message, Box<Bad>>>, cancel: &CancelToken) {
    while !cancel.is_cancelled() {
        select! {
            recv(incoming) -> message => match message {
                Ok(Ok(message)) => server.handle(message),
                Ok(Err(bad)) => server.refuse(*bad),
                Err(_) => return,
            },
            recv(cancel.receiver()) -> _ => return,
        }
    }
}

fn read(stdin: impl Read, messages: &Sender<Result<Message, Box<Bad>>>) {
    let mut frames = Frames::new(BufReader::with_capacity(64 << 10, stdin), line::LINE_MAX);
    loop {
        let message = match frames.next_frame() {
            Ok(Some(Frame::Line(line))) => message::parse(line),
            Ok(Some(Frame::TooLong)) => Err(Box::new(Bad {
                id: Value::Null,
                failure: Failure::new(INVALID_REQUEST, "The line is longer than 64 MB"),
            })),
            Ok(None) => return,
            Err(error) => {
                report::error(format_args!("Cannot read stdin: {error}"));
                return;
            }
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}
