//! The context of command handlers: the session's control, its thread, and stdout.

use super::dialog::Dialog;
use super::field::Prompt;
use super::host_tool::HostTools;
use super::reply::Reply;
use crate::base::thread::Thread;
use crate::mode::output::Output;
use crate::mode::report;
use crate::runtime::control::Control;
use crate::runtime::event::Event;
use crate::runtime::session::Session;
use crossbeam_channel::{Receiver, Sender, TrySendError, select};
use std::sync::Arc;

#[derive(Clone)]
pub struct Server {
    pub control: Control,
    pub output: Arc<Output>,
    pub dialog: Arc<Dialog>,
    pub host_tools: Arc<HostTools>,
    pub jobs: Sender<Job>,
    /// Cloned for every thread of [`Server::beside`]; its receiver disconnects when the last one has ended.
    pub alive: Sender<()>,
}

/// A command to run on the session's thread.
pub struct Job {
    reply: Reply,
    run: Run,
}

type Run = Box<dyn FnOnce(&mut Session, &Output, Reply) + Send>;

/// Runs jobs in turn; returns the session when the channel closes.
pub fn work(mut session: Session, jobs: &Receiver<Job>, output: &Output) -> Session {
    session.open("startup");
    let tasks = session.control().tasks().clone();
    loop {
        select! {
            recv(jobs) -> job => match job {
                Ok(Job { reply, run }) => run(&mut session, output, reply),
                Err(_) => return session,
            },
            recv(tasks) -> task => if let Ok(task) = task {
                session.carry_out(task, &mut output.listener());
            },
        }
        session.take_notices().iter().for_each(report::warning);
    }
}

impl Server {
    /// A listener that writes the events caused by a command.
    pub fn listener(&self) -> impl FnMut(&Event<'_>) {
        // A reader that has gone ends the program by the output's token.
        |event| drop(self.output.event_of_command(event))
    }

    /// Expands skills and templates in a prompt.
    pub fn expand(&self, prompt: Prompt) -> Prompt {
        let (text, diagnostic) = self.control.expand(prompt.text);
        diagnostic.iter().for_each(report::warning);
        Prompt { text, ..prompt }
    }

    /// Passes a command to the session's thread, which may be busy with others before.
    pub fn hand_over(&self, reply: Reply, run: impl FnOnce(&mut Session, &Output, Reply) + Send + 'static) {
        let job = Job { reply, run: Box::new(run) };
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = self.jobs.try_send(job) {
            drop(job.run);
            job.reply.fail("Too many commands wait for the session");
        }
    }

    /// Handles a command on a separate thread.
    pub fn beside(&self, name: &str, reply: Reply, run: impl FnOnce(Reply) + Send + 'static) {
        let (alive, spare) = (self.alive.clone(), reply.again());
        let run = move || {
            run(reply);
            drop(alive);
        };
        if let Err(error) = Thread::named(name).start(run) {
            spare.fail(format_args!("Cannot start a thread: {error}"));
        }
    }
}
