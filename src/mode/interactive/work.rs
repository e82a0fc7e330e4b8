//! The session's thread: runs jobs that continue or replace the conversation, one after another.

use super::card::Weight;
use super::effect::Effect;
use super::feed::Feed;
use crate::runtime::control::Ticket;
use crate::runtime::event::Event;
use crate::runtime::session::Session;
use crate::runtime::{AgentMessage, Fatal};
use crossbeam_channel::{Receiver, select};
use std::sync::Arc;

/// A job that the session's thread runs.
pub type Job = Box<dyn FnOnce(&mut Session, &Arc<Feed>) + Send>;

/// Runs jobs in turn; returns the session when no more can come.
pub fn work(mut session: Session, jobs: &Receiver<Job>, feed: &Arc<Feed>) -> Session {
    session.open("startup");
    let tasks = session.control().tasks().clone();
    loop {
        select! {
            recv(jobs) -> job => match job {
                Ok(job) => job(&mut session, feed),
                Err(_) => return session,
            },
            recv(tasks) -> task => if let Ok(task) = task {
                let before = session.header().id;
                session.carry_out(task, &mut listener(feed));
                if session.header().id != before {
                    feed.effect(Effect::Begin("An extension opened this session".to_owned()));
                }
            },
        }
        for notice in session.take_notices() {
            feed.say(Weight::Warning, notice.to_string());
        }
    }
}

/// Sends a prompt to the model. A prompt that could not be sent goes back into the editor.
pub fn ask(ticket: Ticket, message: AgentMessage, typed: String) -> Job {
    Box::new(move |session, feed| {
        if ticket.cancel.is_cancelled() {
            return feed.effect(Effect::GiveBack(typed));
        }
        let mut is_accepted = false;
        let asked = session.ask(ticket, message, &mut || is_accepted = true, &mut listener(feed));
        // Events say what fails later.
        if let Err(Fatal(reason)) = asked
            && !is_accepted
        {
            feed.effect(Effect::Refuse { reason, typed });
        }
    })
}

/// Continues a run that was cut off.
pub fn go_on(ticket: Ticket) -> Job {
    Box::new(move |session, feed| {
        let mut is_accepted = false;
        let asked = session.go_on(ticket, &mut || is_accepted = true, &mut listener(feed));
        if let Err(Fatal(reason)) = asked
            && !is_accepted
        {
            feed.effect(Effect::Refuse { reason, typed: String::new() });
        }
    })
}

/// Returns a listener that puts events into the feed.
pub fn listener(feed: &Arc<Feed>) -> impl FnMut(&Event<'_>) -> Result<(), Fatal> + use<> {
    let feed = feed.clone();
    move |event| {
        feed.event(event);
        Ok(())
    }
}
