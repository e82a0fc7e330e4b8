//! RPC mode: commands as JSON lines on stdin, responses and events as JSON lines on stdout.
//!
//! ```text
//! stdin ──> server ──jobs──> session ──events──┐
//!             │  └──> shells (one a command) ────┼──> output ──> stdout
//!             └────────── responses ─────────────┘
//! ```
//! The server, on the main thread, immediately handles commands that do not change the course
//! of the conversation; it never waits for a run. The session's thread runs prompts, and commands that
//! replace or rewrite the conversation, one after another. A closed stdin, a closed stdout and a signal abort
//! the current run, store its partial result, and end the program.

mod approve;
mod command;
mod dialog;
mod field;
mod held;
mod host_tool;
mod query;
mod reply;
mod run;
mod schema;
mod server;
mod session;
mod setting;
mod shape;
mod ui;

use super::exit::{self, EndsChildren, EndsInPanic};
use super::output::Output;
use super::report;
use super::signal::Watch;
use super::stdin;
use crate::base::thread::Thread;
use crate::runtime::event::Event;
use crate::runtime::event_json::Line;
use crate::runtime::session::Session;
use crate::runtime::{CancelToken, Fatal};
use approve::DialogApprover;
use command::Request;
use crossbeam_channel::bounded;
use dialog::Dialog;
use held::Held;
use host_tool::HostTools;
use query::{CAPABILITIES, PROTOCOL_VERSION};
use reply::Reply;
use server::Server;
use std::io;
use std::sync::Arc;
use ui::RpcUi;

pub use schema::{compile_known as compile, schema};

/// Maximum jobs queued for the session's thread.
const JOBS_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// True for events in the cumulative form.
    pub cumulative: bool,
    /// True to send a first line that says that commands can be sent.
    pub ready: bool,
}

/// Handles commands on stdin until it ends. Returns the exit code.
pub fn run(session: Session, options: Options, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let _ends = EndsChildren { keep: session.workspace().options.bash_keep_background };
    let start = |error: io::Error| format!("Cannot start a thread: {error}");
    let output = Arc::new(Output::to_stdout(options.cumulative, cancel.clone())?);
    if options.ready {
        let commands: Vec<&str> = command::names().collect();
        let ready =
            Line::Ready { protocol: PROTOCOL_VERSION, capabilities: CAPABILITIES, commands: &commands };
        // A reader that has gone cancels the token, and is seen below.
        let _ = output.line(&ready);
    }
    let (jobs, waiting) = bounded(JOBS_MAX);
    let control = session.control().clone();
    let dialog = Arc::new(Dialog::new(output.clone()));
    control.set_approver(Arc::new(DialogApprover(dialog.clone())));
    control.set_ui(Arc::new(RpcUi(dialog.clone())));
    let worker = {
        let (output, guard) = (output.clone(), EndsInPanic(cancel.clone()));
        let work = move || {
            let _guard = guard;
            server::work(session, &waiting, &output)
        };
        Thread::named("session").start(work).map_err(start)?
    };
    let (alive, all_over) = bounded::<()>(0);
    let server = Server {
        control: control.clone(),
        output: output.clone(),
        dialog,
        host_tools: Arc::new(HostTools::new(output.clone())),
        jobs,
        alive,
    };
    let held = Held::start(&server).map_err(start)?;
    stdin::serve(parse, cancel, |request| match request {
        Ok(request) => held.take(&server, request),
        Err(reason) => refuse(&server, &reason),
    });
    held.finish();

    // A signal during a shutdown that the end of stdin began does not interrupt it, nor count.
    let signalled = watch.exit_code();
    cancel.cancel();
    control.abort_shells();
    drop(server);
    // Disconnected when the last shell has ended.
    let _ = all_over.recv();
    let closed = match worker.join() {
        Ok(mut session) => {
            session.take_notices().iter().for_each(report::warning);
            session.close().map_err(|Fatal(message)| message)
        }
        Err(_) => Err("The session failed inside".into()),
    };
    let code = exit::code(output.flush(), closed);
    Ok(signalled.unwrap_or(code))
}

fn parse(line: Option<&[u8]>) -> Result<Request, String> {
    command::parse(line.ok_or("the line is longer than 64 MB")?)
}

fn handle(server: &Server, Request { id, name, action }: Request) {
    let reply = Reply::new(server.output.clone(), id, name);
    match action {
        Ok(action) => action(server, reply),
        Err(reason) => reply.fail(reason),
    }
}

/// Responds to a line that is not a command.
fn refuse(server: &Server, reason: &str) {
    let reason = format!("Failed to parse command: {reason}");
    // Clients of the older form read errors as events.
    if server.output.is_cumulative() {
        let _ = server.output.event_of_command(&Event::Failed { reason: &reason });
    }
    Reply::new(server.output.clone(), None, Some("parse".into())).fail(reason);
}
