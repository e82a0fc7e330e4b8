//! Starts and ends prompts and shell commands.

use super::field::{Fields, Prompt};
use super::reply::Reply;
use super::server::Server;
use crate::base::json::json;
use crate::mode::output::Output;
use crate::mode::report;
use crate::runtime::AgentMessage;
use crate::runtime::control::{Begin, Streaming, Taken, Ticket, user_message};
use crate::runtime::event::Event;
use crate::runtime::event_json::Line;
use crate::runtime::hook::InputSource;
use crate::runtime::job;
use crate::runtime::session::Session;
use serde::Serialize;

/// What became of a prompt.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "disposition", rename_all = "lowercase")]
enum Begun {
    Started,
    Queued,
    /// An added command, or a handler, took it.
    Handled,
}

/// Lets commands and handlers that were added look at a prompt, then goes on with it by `then`.
fn looked_at(
    server: &Server,
    prompt: Prompt,
    streaming: Option<Streaming>,
    reply: Reply,
    then: impl FnOnce(&Server, Prompt, Reply) + Send + 'static,
) {
    if !server.control.is_looked_at(&prompt.text) {
        return then(server, prompt, reply);
    }
    let with = server.clone();
    server.beside("input", reply, move |reply| {
        let Prompt { text, images } = prompt;
        let root = with.control.root().clone();
        match with.control.take_input(text, images, InputSource::Rpc, streaming, &root) {
            Taken::Goes(text, images) => then(&with, Prompt { text, images }, reply),
            Taken::Handled => reply.data(Begun::Handled),
            Taken::Aborted => reply.fail("The prompt was aborted before it was sent"),
        }
    });
}

pub fn prompt(server: &Server, (prompt, streaming): (Prompt, Option<Streaming>), reply: Reply) {
    looked_at(server, prompt, streaming, reply, move |server, prompt, reply| {
        begin(server, prompt, streaming, reply);
    });
}

fn begin(server: &Server, prompt: Prompt, streaming: Option<Streaming>, reply: Reply) {
    let prompt = server.expand(prompt);
    let message = || queued(prompt.clone());
    match server.control.begin(streaming, message, &mut server.listener()) {
        Ok(Begin::Run(ticket)) => server.hand_over(reply, |session, output, reply| {
            answer(session, output, ticket, prompt, reply);
        }),
        Ok(Begin::Queued) => reply.data(Begun::Queued),
        Err(reason) => reply.fail(reason),
    }
}

/// Sends a prompt as in the first protocol: it is never refused during a run.
pub fn message(server: &Server, message: Prompt, reply: Reply) {
    prompt(server, (message, Some(Streaming::FollowUp)), reply);
}

pub fn steer(server: &Server, prompt: Prompt, reply: Reply) {
    looked_at(server, prompt, Some(Streaming::Steer), reply, |server, prompt, reply| {
        server.control.queue().steer(queued(server.expand(prompt)), &mut server.listener());
        reply.data(Begun::Queued);
    });
}

pub fn follow_up(server: &Server, prompt: Prompt, reply: Reply) {
    looked_at(server, prompt, Some(Streaming::FollowUp), reply, |server, prompt, reply| {
        server.control.queue().follow_up(queued(server.expand(prompt)), &mut server.listener());
        reply.data(Begun::Queued);
    });
}

pub fn clear_queue(server: &Server, (): (), reply: Reply) {
    let (steering, follow_up) = server.control.queue().clear(&mut server.listener());
    reply.data(json!({"steering": steering, "followUp": follow_up}));
}

pub fn abort(server: &Server, (): (), reply: Reply) {
    server.control.abort();
    server.control.when_idle(|| reply.done());
}

/// Aborts as in the first protocol, which has a separate response.
pub fn interrupt(server: &Server, (): (), reply: Reply) {
    server.control.abort();
    server.control.when_idle(|| reply.interrupted());
}

pub fn abort_and_prompt(server: &Server, prompt: Prompt, reply: Reply) {
    let prompt = server.expand(prompt);
    server.control.abort();
    server.hand_over(reply, |session, output, reply| {
        let nothing = || user_message(String::new(), Vec::new());
        let begun = session.control().begin(None, nothing, &mut |_| {});
        match begun {
            Ok(Begin::Run(ticket)) => answer(session, output, ticket, prompt, reply),
            Ok(Begin::Queued) => reply.data(Begun::Queued),
            Err(reason) => reply.fail(reason),
        }
    });
}

/// Sends a prompt to the model, on the session's thread.
fn answer(session: &mut Session, output: &Output, ticket: Ticket, prompt: Prompt, reply: Reply) {
    let (images, hints) = session.prepare_images(prompt.images, &ticket.cancel);
    let mut text = prompt.text;
    if !hints.is_empty() {
        text.push_str("\n\n");
        text.push_str(&hints.join("\n"));
    }
    let mut reply = Some(reply);
    let mut accepted = || {
        if let Some(reply) = reply.take() {
            reply.data(Begun::Started);
        }
    };
    let asked = session.ask(ticket, user_message(text, images), &mut accepted, &mut output.listener());
    match (asked, reply) {
        (Ok(()), _) => {}
        (Err(reason), Some(reply)) => reply.fail(reason),
        // The client was told by an event.
        (Err(reason), None) => report::error(reason),
    }
}

fn queued(prompt: Prompt) -> AgentMessage {
    user_message(prompt.text, prompt.images)
}

pub fn abort_retry(server: &Server, (): (), reply: Reply) {
    server.control.abort_retry();
    reply.done();
}

pub fn bash(server: &Server, (command, exclude): (String, Option<bool>), reply: Reply) {
    let shell = match server.control.begin_shell() {
        Ok(shell) => shell,
        Err(reason) => return reply.fail(reason),
    };
    let output = server.output.clone();
    server.beside("shell", reply, move |reply| {
        let ran = shell.run(&command, exclude, &mut |delta| {
            let _ = output.event(&Event::BashUpdate { id: reply.id(), delta });
        });
        reply.give(ran.map(|(result, message)| {
            if output.is_cumulative() {
                let _ = output.line(&Line::BashEnd { message: &message });
            }
            result
        }));
    });
}

pub fn job(server: &Server, Fields(fields): Fields, reply: Reply) {
    let control = server.control.clone();
    server.beside("job", reply, move |reply| {
        let done = job::act(&control, &fields, control.root());
        reply.give(done.map(|text| json!({"text": text, "jobs": job::to_json(&control)})));
    });
}

pub fn helper(server: &Server, Fields(fields): Fields, reply: Reply) {
    let done = server.control.helpers().act(&fields);
    reply.give(done.map(|helpers| json!({"helpers": helpers})));
}

pub fn abort_bash(server: &Server, (): (), reply: Reply) {
    server.control.abort_shells();
    reply.done();
}

/// Handles the response to a question of the program.
pub fn answered(server: &Server, answer: Fields, reply: Reply) {
    if let Some(id) = reply.id() {
        server.dialog.answer(id, answer);
    }
}

/// Handles a partial result of a call that the client runs.
pub fn tool_updated(server: &Server, update: Fields, reply: Reply) {
    if let Some(id) = reply.id() {
        server.host_tools.update(id, update);
    }
}

/// Handles the result of a call that the client runs.
pub fn tool_ended(server: &Server, result: Fields, reply: Reply) {
    if let Some(id) = reply.id() {
        server.host_tools.respond(id, result);
    }
}
