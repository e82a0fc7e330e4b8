//! The session's thread: what takes the conversation on, or puts another in its place.

use super::command::{Navigate, Said};
use super::reply::Reply;
use crate::mode::output::Output;
use crate::mode::report;
use crate::runtime::control::{Begin, Ticket, user_message};
use crate::runtime::event::Event;
use crate::runtime::session::Session;
use crate::runtime::tree::Move;
use crate::runtime::{AgentMessage, Fatal};
use crossbeam_channel::Receiver;
use serde_json::json;
use std::path::Path;

pub enum Job {
    Prompt {
        ticket: Ticket,
        said: Said,
        reply: Reply,
    },
    /// A prompt that follows the aborted run.
    AfterAbort {
        said: Said,
        reply: Reply,
    },
    NewSession {
        parent: Option<String>,
        reply: Reply,
    },
    SwitchSession {
        path: String,
        reply: Reply,
    },
    Fork {
        entry: String,
        reply: Reply,
    },
    Clone {
        reply: Reply,
    },
    Reload {
        reply: Reply,
    },
    Navigate {
        ticket: Ticket,
        wanted: Navigate,
        reply: Reply,
    },
    Compact {
        ticket: Ticket,
        instructions: Option<String>,
        reply: Reply,
    },
}

/// Does the jobs in turn; gives the session back when no more can come.
pub fn work(mut session: Session, jobs: &Receiver<Job>, output: &Output) -> Session {
    for job in jobs {
        let mut worker = Worker { session: &mut session, output };
        worker.job(job);
        session.take_notices().iter().for_each(report::warning);
    }
    session
}

struct Worker<'a> {
    session: &'a mut Session,
    output: &'a Output,
}

impl Worker<'_> {
    fn job(&mut self, job: Job) {
        match job {
            Job::Prompt { ticket, said, reply } => self.prompt(ticket, said, reply),
            Job::AfterAbort { said, reply } => {
                let nothing = || user_message(String::new(), Vec::new());
                let taken = self.session.control().begin(None, nothing, &mut |_| {});
                match taken {
                    Ok(Begin::Run(ticket)) => self.prompt(ticket, said, reply),
                    Ok(Begin::Queued) => reply.done(),
                    Err(reason) => reply.fail(reason),
                }
            }
            Job::NewSession { parent, reply } => {
                let changed = self.session.start_new(parent);
                replaced(changed, reply);
            }
            Job::SwitchSession { path, reply } => {
                let changed = self.session.open_other(Path::new(&path));
                replaced(changed, reply);
            }
            Job::Fork { entry, reply } => match self.session.fork_before(&entry) {
                Ok(text) => reply.data(json!({"text": text, "cancelled": false})),
                Err(reason) => reply.fail(reason),
            },
            Job::Clone { reply } => {
                let changed = self.session.fork_here();
                replaced(changed, reply);
            }
            Job::Reload { reply } => match self.session.reload() {
                Ok(()) => reply.done(),
                Err(reason) => reply.fail(reason),
            },
            Job::Navigate { ticket, wanted, reply } => self.navigate(ticket, &wanted, reply),
            Job::Compact { ticket, instructions, reply } => {
                let output = self.output;
                let mut listener = |event: &Event<'_>| {
                    tell(output, event);
                    Ok(())
                };
                let instructions = instructions.as_deref();
                let done = self.session.compact(instructions, &mut listener, &ticket.cancel);
                drop(ticket);
                match done {
                    Ok(result) => reply.data(result),
                    Err(reason) => reply.fail(reason),
                }
            }
        }
    }

    fn prompt(&mut self, ticket: Ticket, said: Said, reply: Reply) {
        let message = self.message(said, &ticket);
        let mut reply = Some(reply);
        let output = self.output;
        let mut accepted = || {
            if let Some(reply) = reply.take() {
                reply.done();
            }
        };
        let asked = self.session.ask(ticket, message, &mut accepted, &mut |event| {
            tell(output, event);
            Ok(())
        });
        match (asked, reply) {
            (Ok(()), _) => {}
            (Err(reason), Some(reply)) => reply.fail(reason),
            // The client was told by an event.
            (Err(reason), None) => report::error(reason),
        }
    }

    fn navigate(&mut self, ticket: Ticket, wanted: &Navigate, reply: Reply) {
        let output = self.output;
        let mut listener = |event: &Event<'_>| {
            tell(output, event);
            Ok(())
        };
        let how = Move {
            summarize: wanted.summarize,
            instructions: wanted.instructions.as_deref(),
            replace_instructions: wanted.replace_instructions,
            label: wanted.label.as_deref(),
        };
        let moved = self.session.navigate(&wanted.target, how, &mut listener, &ticket.cancel);
        drop(ticket);
        match moved {
            Ok(moved) => {
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
                reply.data(data);
            }
            Err(reason) => reply.fail(reason),
        }
    }

    fn message(&self, said: Said, ticket: &Ticket) -> AgentMessage {
        let (images, hints) = self.session.prepare_images(said.images, &ticket.cancel);
        let mut text = said.text;
        if !hints.is_empty() {
            text.push_str("\n\n");
            text.push_str(&hints.join("\n"));
        }
        user_message(text, images)
    }
}

fn replaced(changed: Result<(), Fatal>, reply: Reply) {
    match changed {
        Ok(()) => reply.data(json!({"cancelled": false})),
        Err(reason) => reply.fail(reason),
    }
}

/// Hands an event to the reader of stdout. One that has gone ends the program by the output's token.
pub fn tell(output: &Output, event: &Event<'_>) {
    let _ = output.event(event);
}
