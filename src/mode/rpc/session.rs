//! Commands that replace or rewrite the conversation, on the session's thread.

use super::reply::Reply;
use super::server::Server;
use crate::base::json::json;
use crate::mode::output::Output;
use crate::runtime::Fatal;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::control::Ticket;
use crate::runtime::session::Session;
use crate::runtime::tree::Move;
use crate::runtime::undo::{self, Journal, Wanted};
use serde_json::Value;
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

/// Begins a new session, and gives the message to begin it with.
pub fn handoff(server: &Server, goal: String, reply: Reply) {
    if let Some(work) = server.control.work_under_way() {
        return reply.fail(format_args!("Wait for {work} to finish before a handoff."));
    }
    let with = server.clone();
    server.beside("handoff", reply, move |reply| {
        let control = &with.control;
        let text = match control.write_handoff(&goal, control.root()) {
            Ok(text) => text,
            Err(reason) => return reply.fail(reason),
        };
        let parent = control.snapshot().session_file.map(|path| path.to_string_lossy().into_owned());
        replace(&with, reply, move |session| {
            session.start_new(parent).map(|done| json!({"text": text, "cancelled": !done}))
        });
    });
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
    if let Err(reason) = server.control.may_reload() {
        return reply.fail(reason);
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

type Undo = (Option<String>, Option<usize>, Option<bool>, Option<bool>);

pub fn undo(server: &Server, (to, count, force, dry_run): Undo, reply: Reply) {
    let wanted = match (to, count) {
        (Some(id), _) => Wanted::Since(id),
        (None, Some(count)) => Wanted::Steps(count),
        (None, None) => Wanted::LastPrompt,
    };
    if let Some(work) = server.control.work_under_way() {
        return reply.fail(format_args!("Wait for {work} to finish before files are taken back."));
    }
    server.hand_over(reply, move |session, _, reply| {
        let force = force.unwrap_or(false);
        reply.give(take_back(session, &wanted, force, dry_run.unwrap_or(false)));
    });
}

fn take_back(session: &mut Session, wanted: &Wanted, force: bool, dry_run: bool) -> Result<Value, String> {
    let file = session.control().snapshot().session_file;
    let journal =
        Journal::new(&file.ok_or("The session is not stored, and so are no earlier contents of files")?);
    let mut chosen = undo::choose(&journal, Some(&session.control().log()), wanted)?;
    let files: Vec<Value> = if dry_run {
        let planned = chosen.plans.iter().map(|plan| {
            let mut value = plan.json(false, plan.problem());
            if let Some(diff) = undo::preview(&journal, plan) {
                value["diff"] = diff.into();
            }
            value
        });
        planned.collect()
    } else {
        let backend = session.workspace().backend.clone();
        let done = undo::carry_out(&journal, chosen.plans, force, backend.sandbox());
        if let Err(Fatal(reason)) = session.note_undone(&done) {
            chosen.unseen.push(format!("The model is not told: {reason}"));
        }
        done.iter().map(|done| done.plan.json(true, done.error.as_deref())).collect()
    };
    Ok(json!({"files": files, "notes": chosen.unseen}))
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
