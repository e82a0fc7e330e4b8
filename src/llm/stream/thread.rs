//! Conversations that a server keeps between requests, so that a request says only what is new.
//!
//! A protocol that can do so ends its body with [`CREATE`]: the whole conversation, to be kept. When the next
//! request of the session begins with what the server has, only the rest is sent, without system prompt and
//! tools, which the server keeps too. A server that no longer has the conversation gets all of it again.
//! What a server keeps is known to this process alone: another process begins with a whole request.

use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::{Info, StreamError};
use crate::llm::http::body_error;
use crate::llm::message::{AssistantMessage, Extra, Message, now_ms};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::Protocol;
use ring::digest;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The end of a body whose conversation the server may keep.
const CREATE: &[u8] = br#""thread":{"type":"create"}}"#;

const FIELD: &str = "thread";

/// Fields that may differ from one request of a thread to the next.
const MOVING: [&str; 4] = ["messages", "max_tokens", "stream", FIELD];

/// What a server keeps of the system prompt and the tools.
const KEPT: [&str; 2] = ["system", "tools"];

/// A mark for the prompt cache, which moves on with every request.
const MARK: &str = r#","cache_control":{"#;

/// Sessions that are remembered.
const SESSIONS_MAX: usize = 64;

/// Codes of refusals that a whole request answers: the server has forgotten, or something else has changed.
const GONE: [&str; 4] = [
    "thread_not_found",
    "thread_already_continued",
    "thread_continue_in_flight",
    "thread_fingerprint_mismatch",
];

/// The code of a refusal that says that a request cannot be part of a thread at all.
const UNSUPPORTED: &str = "thread_unsupported_request";

#[derive(Clone)]
enum State {
    /// The server has these messages, and this id of its last answer.
    Kept { count: usize, digest: digest::Digest, reply: String },
    /// The server takes no threads.
    Off,
}

static SESSIONS: Mutex<Vec<(String, State)>> = Mutex::new(Vec::new());

fn sessions() -> MutexGuard<'static, Vec<(String, State)>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers the state of a session in place of an earlier one; the oldest session is forgotten.
fn remember(session: &str, state: State) {
    let mut sessions = sessions();
    sessions.retain(|(known, _)| known != session);
    if sessions.len() >= SESSIONS_MAX {
        sessions.remove(0);
    }
    sessions.push((session.to_owned(), state));
}

/// An answer can be continued once: its state is taken away.
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
    /// Only what is new, if the server has the rest.
    Short,
    /// All of it, to be kept.
    Whole,
    /// All of it, not to be kept.
    Plain,
}

/// The thread of one request.
pub(super) struct Thread<'a> {
    session: Option<&'a str>,
    form: Form,
    sent: Option<Sent>,
    /// The refusal that a second request answers.
    refused: Option<Value>,
}

/// A request whose answer can be continued.
pub(super) struct Sent {
    session: String,
    /// Of the settings and of all messages.
    digest: digest::Context,
    count: usize,
}

impl<'a> Thread<'a> {
    pub(super) fn new(options: &'a StreamOptions) -> Self {
        Self { session: options.session_id.as_deref(), form: Form::Short, sent: None, refused: None }
    }

    /// The body to send in place of `body`, where that is another one.
    pub(super) fn shape(&mut self, url: &str, headers: &[(String, String)], body: &[u8]) -> Option<Vec<u8>> {
        self.sent = None;
        let session = self.session.filter(|_| body.ends_with(CREATE))?;
        let mut fields: Body = serde_json::from_slice(body).ok()?;
        let state = take(session).filter(|_| self.form == Form::Short);
        if self.form == Form::Plain || matches!(state, Some(State::Off)) {
            fields.remove(FIELD);
            return Some(fields.into_bytes());
        }
        let messages = fields.remove("messages")?;
        let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).ok()?;
        let mut digest = digest::Context::new(&digest::SHA256);
        let betas = headers.iter().filter(|(name, _)| name == "anthropic-beta");
        for part in [url].into_iter().chain(betas.map(|(_, value)| value.as_str())) {
            add(&mut digest, part);
        }
        for (name, value) in fields.fields().filter(|(name, _)| !MOVING.contains(name)) {
            add(&mut digest, name);
            add(&mut digest, value.get());
        }
        let mut kept = None;
        for (at, message) in messages.iter().enumerate() {
            if let Some(State::Kept { count, digest: known, reply }) = &state
                && *count == at
                && digest.clone().finish().as_ref() == known.as_ref()
            {
                kept = Some((at, reply.as_str()));
            }
            add_message(&mut digest, message.get());
        }
        self.sent = Some(Sent { session: session.to_owned(), digest, count: messages.len() });
        let (at, reply) = kept?;
        KEPT.iter().for_each(|name| drop(fields.remove(name)));
        fields.set("messages", &messages[at..]);
        fields.set(FIELD, &json!({"type": "continue", "previous_message_id": reply}));
        Some(fields.into_bytes())
    }

    /// True if the refusal is about the thread: the conversation is then sent whole, once.
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

    /// The request went through. Gives what the message keeps of a refusal before it, and what a later
    /// request can continue.
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
    /// The server answered with `reply`: the next request can continue from there. The answer counts as the
    /// next request will say it, so that a change of it is noticed.
    pub(super) fn answered(
        mut self,
        reply: &AssistantMessage,
        protocol: &dyn Protocol,
        model: &Model,
        options: &StreamOptions,
    ) {
        // A model that answers in another one's place: its answers are not kept.
        let (Some(id), None) = (&reply.response_id, &reply.response_model) else { return };
        let context = Context { messages: vec![Message::Assistant(Arc::new(reply.clone()))] };
        let Ok(request) = protocol.request(model, &context, options) else { return };
        let Ok(fields) = serde_json::from_slice::<Body>(&request.body) else { return };
        let messages = fields.get("messages").map(RawValue::get).unwrap_or("[]");
        let messages: Vec<&RawValue> = serde_json::from_str(messages).unwrap_or_default();
        // What follows are results in place of those that are still to come.
        let said = messages.iter().filter(|message| message.get().starts_with(r#"{"role":"assistant""#));
        for message in said {
            add_message(&mut self.digest, message.get());
            self.count += 1;
        }
        let state = State::Kept { count: self.count, digest: self.digest.finish(), reply: id.clone() };
        remember(&self.session, state);
    }
}

fn add(digest: &mut digest::Context, text: &str) {
    digest.update(&text.len().to_le_bytes());
    digest.update(text.as_bytes());
}

/// Adds a message without marks for the cache.
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
