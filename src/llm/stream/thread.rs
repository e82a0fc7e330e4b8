//! Message threads: conversations stored by the server, so that a request carries only the new messages.
//!
//! A protocol that supports threads sets the field [`FIELD`], which asks the server to store the
//! conversation. If the next request of the session begins with the stored messages, only the remaining messages
//! are sent, without system prompt and tools, which the server stores as well. If the server rejects the
//! continuation, the full request is sent. The state of threads is kept in memory: a new process begins with a
//! full request.

use crate::base::json::json;
use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::{Info, StreamError};
use crate::llm::http::body_error;
use crate::llm::message::{AssistantMessage, Extra, Message, now_ms};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::Protocol;
use ring::digest;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The field of a body whose conversation the server may store, and its value.
const FIELD: &str = "thread";
const CREATE: &str = r#"{"type":"create"}"#;

const MESSAGES: &str = "messages";

/// Fields that may differ between the requests of a thread.
const MOVING: [&str; 4] = [MESSAGES, "max_tokens", "stream", FIELD];

/// Fields that the server stores with a thread, left out of a continuation.
const KEPT: [&str; 2] = ["system", "tools"];

/// Start of a prompt cache mark. Marks move with every request and are not compared.
const MARK: &str = r#","cache_control":{"#;

/// Maximum number of sessions with a stored state.
const SESSIONS_MAX: usize = 64;

/// Error codes of a rejected continuation, after which a new thread is created.
const GONE: [&str; 4] = [
    "thread_not_found",
    "thread_already_continued",
    "thread_continue_in_flight",
    "thread_fingerprint_mismatch",
];

/// Error code of a request that cannot use threads.
const UNSUPPORTED: &str = "thread_unsupported_request";

#[derive(Clone)]
enum State {
    /// Messages stored by the server: their number and digest, and the id of the last answer.
    Kept { count: usize, digest: digest::Digest, reply: String },
    /// The server does not support threads.
    Off,
}

static SESSIONS: Mutex<Vec<(String, State)>> = Mutex::new(Vec::new());

fn sessions() -> MutexGuard<'static, Vec<(String, State)>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores the state of a session, and drops the oldest one if there are too many.
fn remember(session: &str, state: State) {
    let mut sessions = sessions();
    sessions.retain(|(known, _)| known != session);
    if sessions.len() >= SESSIONS_MAX {
        sessions.remove(0);
    }
    sessions.push((session.to_owned(), state));
}

/// Takes the state of a session. A stored answer can be continued only once and is therefore removed.
fn take(session: &str) -> Option<State> {
    let mut sessions = sessions();
    let at = sessions.iter().position(|(known, _)| known == session)?;
    match sessions[at].1 {
        State::Off => Some(State::Off),
        State::Kept { .. } => Some(sessions.remove(at).1),
    }
}

/// How the conversation is sent.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The new messages only, if the server has stored the others.
    Short,
    /// The full conversation, to be stored.
    Whole,
    /// The full conversation, without a thread.
    Plain,
}

/// The thread of one request.
pub(super) struct Thread<'a> {
    session: Option<&'a str>,
    form: Form,
    sent: Option<Sent>,
    /// Diagnostic entry of a rejected continuation.
    refused: Option<Value>,
}

/// A request whose answer can be continued.
pub(super) struct Sent {
    session: String,
    /// Digest of the settings and of all messages.
    digest: digest::Context,
    count: usize,
}

impl<'a> Thread<'a> {
    pub(super) fn new(options: &'a StreamOptions) -> Self {
        Self { session: options.session_id.as_deref(), form: Form::Short, sent: None, refused: None }
    }

    /// The body to send instead of `body`. `None` if `body` is sent unchanged.
    pub(super) fn shape<'b>(
        &mut self,
        url: &str,
        headers: &[(String, String)],
        body: &Body<'b>,
    ) -> Result<Option<Body<'b>>, StreamError> {
        self.sent = None;
        let is_asked = body.get(FIELD).is_some_and(|thread| thread.get() == CREATE);
        let Some(session) = self.session.filter(|_| is_asked) else { return Ok(None) };
        let mut shaped = body.clone();
        let state = take(session).filter(|_| self.form == Form::Short);
        if self.form == Form::Plain || matches!(state, Some(State::Off)) {
            shaped.remove(FIELD);
            return Ok(Some(shaped));
        }
        let mut digest = digest::Context::new(&digest::SHA256);
        let betas = headers.iter().filter(|(name, _)| name == "anthropic-beta");
        for part in [url].into_iter().chain(betas.map(|(_, value)| value.as_str())) {
            add(&mut digest, part);
        }
        for (name, value) in body.values().filter(|(name, _)| !MOVING.contains(name)) {
            add(&mut digest, name);
            add(&mut digest, value.get());
        }
        let (mut kept, mut at) = (None, 0);
        body.each_item(MESSAGES, |message| {
            if let Some(State::Kept { count, digest: known, reply }) = &state
                && *count == at
                && digest.clone().finish().as_ref() == known.as_ref()
            {
                kept = Some((at, reply.as_str()));
            }
            add_message(&mut digest, message);
            at += 1;
        })?;
        self.sent = Some(Sent { session: session.to_owned(), digest, count: at });
        let Some((at, reply)) = kept else { return Ok(None) };
        for name in KEPT {
            shaped.remove(name);
        }
        shaped.skip_items(MESSAGES, at);
        shaped.set(FIELD, &json!({"type": "continue", "previous_message_id": reply}));
        Ok(Some(shaped))
    }

    /// True if the server rejected the thread. The next call of `shape` then gives the full request. At most one
    /// rejection per request is handled.
    pub(super) fn is_refused(&mut self, error: &StreamError, said: &str) -> bool {
        if self.sent.is_none() || self.refused.is_some() {
            return false;
        }
        let said = body_error(said).unwrap_or_default();
        let code = said["details"]["error_code"].as_str();
        self.form = match code {
            Some(code) if GONE.contains(&code) => Form::Whole,
            Some(UNSUPPORTED) => Form::Plain,
            None if error.status == Some(400)
                && said["message"].as_str().is_some_and(|text| text.contains(FIELD)) =>
            {
                Form::Plain
            }
            _ => return false,
        };
        let reason = code.map_or_else(|| error.status.unwrap_or_default().to_string(), str::to_owned);
        self.refused = Some(json!({
            "type": "anthropic_thread_fallback", "timestamp": now_ms(),
            "error": {"message": error.message}, "details": {"reason": reason},
        }));
        true
    }

    /// Called after a success status. Gives the diagnostics for the message, and the request to be recorded with
    /// its answer.
    pub(super) fn settle(self) -> (Option<Info>, Option<Sent>) {
        if let (Form::Plain, Some(session)) = (self.form, self.session) {
            remember(session, State::Off);
        }
        let info = self.refused.map(|refused| Info {
            extra: Extra::from_iter([("diagnostics".to_owned(), json!([refused]))]),
            ..Info::default()
        });
        (info, self.sent)
    }
}

impl Sent {
    /// Records that the next request can continue after `reply`. The digest covers the answer in the form that
    /// the next request will have, so that a later change of the answer is detected.
    pub(super) fn answered(
        mut self,
        reply: &AssistantMessage,
        protocol: &dyn Protocol,
        model: &Model,
        options: &StreamOptions,
    ) {
        // The server does not store answers of a fallback model.
        let (Some(id), None) = (&reply.response_id, &reply.response_model) else { return };
        let context = Context { messages: vec![Message::Assistant(Arc::new(reply.clone()))] };
        let Ok(request) = protocol.request(model, &context, options) else { return };
        let said = request.body.each_item(MESSAGES, |message| {
            // Placeholder results for the calls of the answer follow it; they are not part of it.
            if message.starts_with(r#"{"role":"assistant""#) {
                add_message(&mut self.digest, message);
                self.count += 1;
            }
        });
        if said.is_err() {
            return;
        }
        let state = State::Kept { count: self.count, digest: self.digest.finish(), reply: id.clone() };
        remember(&self.session, state);
    }
}

fn add(digest: &mut digest::Context, text: &str) {
    digest.update(&text.len().to_le_bytes());
    digest.update(text.as_bytes());
}

/// Adds a message without its prompt cache marks.
fn add_message(digest: &mut digest::Context, message: &str) {
    let mut rest = message;
    while let Some(at) = rest.find(MARK) {
        digest.update(&rest.as_bytes()[..at]);
        let mark = &rest[at + MARK.len()..];
        rest = mark.split_once('}').map_or("", |(_, after)| after);
    }
    digest.update(rest.as_bytes());
    digest.update(b"\n");
}
