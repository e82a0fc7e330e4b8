//! A session's thread: prompts one after another, then the end.

use super::command::{Command, Work};
use super::files::Files;
use super::meter::Meter;
use super::open::{Sessions, tell_commands};
use super::peer::{AUTH_REQUIRED, Peer, Reply};
use super::prompt::Prompt;
use super::typed::title;
use super::update::Updates;
use crate::base::json::json;
use crate::jsonrpc::message::INTERNAL_ERROR;
use crate::mode::report;
use crate::runtime::control::{Taken, Ticket, user_message};
use crate::runtime::event::Event;
use crate::runtime::hook::InputSource;
use crate::runtime::session::Session;
use crate::runtime::{AgentEvent, CancelToken, Fatal, StopReason, now_iso};
use crossbeam_channel::{Receiver, select};
use std::sync::Arc;

pub enum Job {
    Prompt {
        ticket: Ticket,
        prompt: Prompt,
        /// The session takes no other prompt while it lives: a command gives the ticket back before it ends.
        turn: Arc<()>,
        reply: Reply,
    },
    /// A command of pi itself.
    Command {
        ticket: Ticket,
        text: String,
        reply: Reply,
    },
    Close(Reply),
}

impl Job {
    /// The reply of a job that is not done.
    pub fn reply(self) -> Reply {
        let (Self::Prompt { reply, .. } | Self::Command { reply, .. } | Self::Close(reply)) = self;
        reply
    }
}

/// Runs jobs in turn until the channel closes, then closes the session.
pub fn work(mut session: Session, jobs: &Receiver<Job>, sessions: &Sessions, peer: &Peer, files: &Files) {
    let mut closing = None;
    let control = session.control().clone();
    let commands = || control.added_commands().into_iter().map(|command| command.name).collect::<Vec<_>>();
    let before = commands();
    session.open("startup");
    if commands() != before {
        tell_commands(&session.header().id, &control, peer);
    }
    let mut meter = Meter::start(&session, peer);
    let tasks = session.control().tasks().clone();
    loop {
        let job = select! {
            recv(jobs) -> job => match job {
                Ok(job) => job,
                Err(_) => break,
            },
            recv(tasks) -> task => {
                let mut updates = updates(&session, peer, files);
                if let Ok(task) = task {
                    session.carry_out(task, &mut |event| {
                        updates.event(event);
                        Ok(())
                    });
                }
                continue;
            }
        };
        match job {
            // In a panic the turn ends before the reply goes out, since it is bound after that.
            Job::Prompt { ticket, prompt, reply, turn } => {
                let answered = answer(&mut session, &mut meter, ticket, prompt, peer, files);
                drop(turn);
                match answered {
                    Ok(reason) => reply.done(json!({"stopReason": reason})),
                    Err((code, reason)) => reply.fail(code, reason),
                }
            }
            Job::Command { ticket, text, reply } => {
                if let Some(command) = Command::of(&text) {
                    run(&command, &mut session, ticket, peer, files);
                    sessions.tell_options(&session.header().id, peer);
                }
                reply.done(json!({"stopReason": "end_turn"}));
            }
            Job::Close(reply) => {
                closing = Some(reply);
                break;
            }
        }
        session.take_notices().iter().for_each(report::warning);
    }
    session.take_notices().iter().for_each(report::warning);
    match (session.close(), closing) {
        (Ok(()), None) => {}
        (Ok(()), Some(reply)) => reply.done(json!({})),
        (Err(Fatal(reason)), None) => report::error(reason),
        (Err(Fatal(reason)), Some(reply)) => reply.fail(INTERNAL_ERROR, reason),
    }
}

/// Runs a command, and shows its result as an answer. The model sees nothing of it.
fn run(command: &Command<'_>, session: &mut Session, ticket: Ticket, peer: &Peer, files: &Files) {
    let mut updates = updates(session, peer, files);
    let work = Work { session, updates: &mut updates, cancel: &ticket.cancel };
    let text = command.run(work);
    updates.begin_answer();
    updates.say(&text);
}

fn updates(session: &Session, peer: &Peer, files: &Files) -> Updates {
    let (workspace, describer) = (session.workspace().clone(), session.control().tools().describer());
    Updates::new(peer.clone(), session.header().id, workspace, describer, files.drawn.clone())
}

/// Answers a prompt. Returns the stop reason, or code and text of an error.
fn answer(
    session: &mut Session,
    meter: &mut Meter,
    ticket: Ticket,
    prompt: Prompt,
    peer: &Peer,
    files: &Files,
) -> Result<&'static str, (i64, String)> {
    let cancel = ticket.cancel.clone();
    let control = session.control().clone();
    let (text, images) = prompt.whole();
    let mut updates = updates(session, peer, files);
    // A command may run prompts of its own.
    let is_command = control.added_command(&text).is_some();
    let ticket = (!is_command).then_some(ticket);
    if !is_command {
        session.check_key(&cancel).map_err(|Fatal(reason)| (AUTH_REQUIRED, reason))?;
    }
    let running = control.clone();
    let _ended = is_command.then(|| cancel.on_cancel(move || running.abort()));
    let mut has_answer = false;
    let taken = session.take_input(text, images, InputSource::Rpc, &mut |event| {
        has_answer |= matches!(event, Event::Agent(AgentEvent::TurnEnd { .. }));
        updates.event(event);
        meter.event(event, &control, peer);
        Ok(())
    });
    let taken = taken.map_err(|Fatal(reason)| (INTERNAL_ERROR, reason))?;
    let (mut text, images, ticket) = match (taken, ticket) {
        (Taken::Goes(text, images), Some(ticket)) => (text, images, ticket),
        (Taken::Aborted, _) => return Ok("cancelled"),
        _ if has_answer => return stop_reason(session, &cancel),
        _ => return Ok("end_turn"),
    };
    let (images, hints) = session.prepare_images(images, &cancel);
    for hint in hints {
        text.push_str("\n\n");
        text.push_str(&hint);
    }
    let id = session.header().id;
    let before = session.control().snapshot();
    let title = title(&text);
    let mut accepted = || {
        if before.message_count == 0 && before.session_name.is_none() {
            peer.update(
                &id,
                &json!({"sessionUpdate": "session_info_update", "title": title, "updatedAt": now_iso()}),
            );
        }
    };
    let message = user_message(text, images);
    let asked = session.ask(ticket, message, &mut accepted, &mut |event| {
        updates.event(event);
        meter.event(event, &control, peer);
        Ok(())
    });
    updates.end_open_calls();
    asked.map_err(|Fatal(reason)| (INTERNAL_ERROR, reason))?;
    stop_reason(session, &cancel)
}

/// Why the last run stopped, or code and text of its error.
fn stop_reason(session: &Session, cancel: &CancelToken) -> Result<&'static str, (i64, String)> {
    if session.ended_by().is_some() {
        return Ok("max_turn_requests");
    }
    if cancel.is_cancelled() {
        return Ok("cancelled");
    }
    let Some(answer) = session.last_answer() else {
        return Ok("end_turn");
    };
    match answer.stop_reason {
        StopReason::Length => Ok("max_tokens"),
        StopReason::Aborted => Ok("cancelled"),
        StopReason::Error if answer.raw_stop_reason.as_deref() == Some("refusal") => Ok("refusal"),
        StopReason::Error => {
            let reason = answer.error_message.as_deref();
            let reason = reason.unwrap_or("The model's answer failed");
            Err((INTERNAL_ERROR, reason.to_owned()))
        }
        _ => Ok("end_turn"),
    }
}
