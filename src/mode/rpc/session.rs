//! Commands that replace or rewrite the conversation, on the session's thread.

use super::reply::Reply;
use super::server::Server;
use crate::mode::output::Output;
use crate::runtime::Fatal;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::control::Ticket;
use crate::runtime::session::Session;
use crate::runtime::tree::Move;
use serde_json::{Value, json};
use std::path::Path;

pub fn new_session(server: &Server, parent: Option<String>, reply: Reply) {
    replace(server, reply, |session| session.start_new(parent).map(|done| json!({"cancelled": !done})));
}

pub fn switch_session(server: &Server, path: String, reply: Reply) {
    replace(server, reply, move |session| {
        session.open_other(Path::new(&path)).map(|done| json!({"cancelled": !done}))
    });
}

pub fn fork(server: &Server, entry: String, reply: Reply) {
    replace(server, reply, move |session| {
        session.fork_before(&entry).map(|text| match text {
            Some(text) => json!({"text": text, "cancelled": false}),
            None => json!({"text": "", "cancelled": true}),
        })
    });
}

pub fn clone(server: &Server, (): (), reply: Reply) {
    replace(server, reply, |session| session.fork_here().map(|done| json!({"cancelled": !done})));
}

/// Aborts the current run, then calls `run` to replace the conversation.
fn replace(
    server: &Server,
    reply: Reply,
    run: impl FnOnce(&mut Session) -> Result<Value, Fatal> + Send + 'static,
) {
    server.control.abort();
    server.hand_over(reply, |session, _, reply| reply.give(run(session)));
}

pub fn reload(server: &Server, (): (), reply: Reply) {
    if let Some(work) = server.control.work_under_way() {
        return reply.fail(format_args!("Wait for {work} to finish before reloading."));
    }
    server.hand_over(reply, |session, _, reply| reply.finish(session.reload()));
}

pub fn compact(server: &Server, instructions: Option<String>, reply: Reply) {
    server.control.abort();
    match server.control.begin_compaction() {
        Ok(ticket) => server.hand_over(reply, move |session, output, reply| {
            let instructions = instructions.as_deref();
            let done = session.compact(instructions, &mut output.listener(), &ticket.cancel);
            drop(ticket);
            reply.give(done);
        }),
        Err(reason) => reply.fail(reason),
    }
}

type Navigate = (String, Option<bool>, Option<String>, Option<bool>, Option<String>);

pub fn navigate_tree(server: &Server, wanted: Navigate, reply: Reply) {
    if server.control.snapshot().is_streaming {
        return reply.fail("Wait for the current response to finish before navigating the session tree.");
    }
    match server.control.begin_compaction() {
        Ok(ticket) => server.hand_over(reply, move |session, output, reply| {
            let moved = navigate(session, output, &wanted, &ticket);
            drop(ticket);
            reply.give(moved);
        }),
        Err(_) => reply.fail(
            "Wait for the current compaction or tree navigation to finish before navigating the session tree.",
        ),
    }
}

fn navigate(
    session: &mut Session,
    output: &Output,
    (target, summarize, instructions, replace_instructions, label): &Navigate,
    ticket: &Ticket,
) -> Result<Value, NotCompacted> {
    let how = Move {
        summarize: summarize.unwrap_or(false),
        instructions: instructions.as_deref(),
        replace_instructions: replace_instructions.unwrap_or(false),
        label: label.as_deref(),
    };
    let moved = session.navigate(target, how, &mut output.listener(), &ticket.cancel)?;
    let mut data = json!({"cancelled": moved.cancelled});
    if let Some(text) = moved.editor_text {
        data["editorText"] = text.into();
    }
    if moved.aborted {
        data["aborted"] = true.into();
    }
    if let Some(entry) = moved.summary_entry {
        data["summaryEntry"] = json!(entry);
    }
    Ok(data)
}
