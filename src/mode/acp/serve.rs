//! Handles requests: immediately, or through the opener or a session's thread.

use super::command::Command;
use super::mode::Modes;
use super::open::{Request, Sessions, Setup};
use super::option;
use super::peer::{ClientCapabilities, NOT_FOUND, Peer, Reply};
use super::prompt;
use super::server;
use super::work::Job;
use crate::base::json::json;
use crate::jsonrpc::message::{
    Bad, Failure, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message,
};
use crate::mode::report;
use crate::runtime::control::{Begin, Control, user_message};
use crossbeam_channel::{Sender, TrySendError};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

pub struct Server {
    pub peer: Peer,
    pub sessions: Sessions,
    pub requests: Sender<(Request, Reply)>,
}

impl Server {
    pub fn handle(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                let reply = self.peer.reply(id);
                self.request(&method, &params, reply);
            }
            Message::Notification { method, params } if method == "session/cancel" => {
                if let Some(id) = params.get("sessionId").and_then(Value::as_str)
                    && let Some(open) = self.sessions.lock().get(id)
                {
                    open.control.abort();
                }
            }
            Message::Notification { method, params } if method == "$/cancel_request" => {
                if let Some(id) = params.get("requestId") {
                    self.peer.cancel(id);
                }
            }
            // Other notifications ask for nothing.
            Message::Notification { .. } => {}
            Message::Response { id, outcome } => self.peer.answered(&id, outcome),
        }
    }

    /// Responds to a line that is not a message.
    pub fn refuse(&self, bad: Bad) {
        self.peer.reply(bad.id).refuse(&bad.failure);
    }

    fn request(&self, method: &str, params: &Value, reply: Reply) {
        match method {
            "initialize" => {
                self.peer.set_capabilities(client_capabilities(params));
                self.open(Ok(Request::Initialize), reply);
            }
            "authenticate" => self.open(Ok(Request::Authenticate), reply),
            "session/new" => self.open(setup(params).map(Request::New), reply),
            "session/load" => self.open(stored(params, true), reply),
            "session/resume" => self.open(stored(params, false), reply),
            "session/list" => self.open(list(params), reply),
            "session/prompt" => self.prompt(params, reply),
            "session/set_mode" => self.set_mode(params, reply),
            "session/set_config_option" => self.set_option(params, reply),
            "session/delete" => {
                let id = session_id(params).map(str::to_owned);
                self.open(id.map(Request::Delete).map_err(|failure| failure.message), reply);
            }
            "logout" => self.open(Ok(Request::Logout), reply),
            "session/close" => self.close(params, reply),
            _ => reply.fail(METHOD_NOT_FOUND, format!("Method not found: {method}")),
        }
    }

    fn open(&self, request: Result<Request, String>, reply: Reply) {
        let request = match request {
            Ok(request) => request,
            Err(reason) => return reply.fail(INVALID_PARAMS, reason),
        };
        if let Err(TrySendError::Full((_, reply)) | TrySendError::Disconnected((_, reply))) =
            self.requests.try_send((request, reply))
        {
            reply.fail(INTERNAL_ERROR, "Too many sessions wait to be opened");
        }
    }

    fn prompt(&self, params: &Value, mut reply: Reply) {
        let mut prompt = match prompt::read(params.get("prompt").unwrap_or(&Value::Null)) {
            Ok(prompt) => prompt,
            Err(reason) => return reply.fail(INVALID_PARAMS, reason),
        };
        let mut sessions = self.sessions.lock();
        let open = match session_id(params).and_then(|id| sessions.get_mut(id).ok_or_else(|| no_session(id)))
        {
            Ok(open) => open,
            Err(failure) => return reply.refuse(&failure),
        };
        let is_command = Command::of(&prompt.text).is_some();
        if !is_command {
            let (text, diagnostic) = open.control.expand(std::mem::take(&mut prompt.text));
            diagnostic.iter().for_each(report::warning);
            prompt.text = text;
        }
        let nothing = || user_message(String::new(), Vec::new());
        let is_free = open.turn.strong_count() == 0;
        match is_free.then(|| open.control.begin(None, nothing, &mut |_| {})) {
            Some(Ok(Begin::Run(ticket))) => {
                reply.end_by(ticket.cancel.clone());
                let job = match is_command {
                    true => Job::Command { ticket, text: prompt.text, reply },
                    false => {
                        let turn = Arc::default();
                        open.turn = Arc::downgrade(&turn);
                        Job::Prompt { ticket, prompt, turn, reply }
                    }
                };
                if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
                    open.jobs.try_send(job)
                {
                    job.reply().fail(INTERNAL_ERROR, "The session has failed; open it again");
                }
            }
            _ => reply.fail(
                INVALID_REQUEST,
                "This session is answering another prompt. Wait for its end, or cancel it",
            ),
        }
    }

    fn set_mode(&self, params: &Value, reply: Reply) {
        let mode = params.get("modeId").and_then(Value::as_str).unwrap_or("");
        self.change(params, reply, |control, modes| {
            let modes = modes.ok_or_else(|| format!("There is no mode \"{mode}\""))?;
            modes.set(mode, control)?;
            Ok(json!({}))
        });
    }

    fn set_option(&self, params: &Value, reply: Reply) {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or("");
        self.change(params, reply, |control, modes| {
            option::set(control, modes, text("configId"), text("value"))?;
            Ok(json!({"configOptions": option::list(control, modes)}))
        });
    }

    /// Changes a session, and tells its mode if that is another one now.
    fn change(
        &self,
        params: &Value,
        reply: Reply,
        change: impl FnOnce(&Control, Option<&Modes>) -> Result<Value, String>,
    ) {
        let open = session_id(params).and_then(|id| {
            let sessions = self.sessions.lock();
            let open = sessions.get(id).ok_or_else(|| no_session(id))?;
            Ok((id, open.control.clone(), open.modes.clone()))
        });
        match open {
            Ok((id, control, modes)) => {
                match change(&control, modes.as_ref()) {
                    Ok(result) => reply.done(result),
                    Err(reason) => reply.fail(INVALID_PARAMS, reason),
                }
                self.sessions.tell_mode(id, &self.peer);
            }
            Err(failure) => reply.refuse(&failure),
        }
    }

    fn close(&self, params: &Value, reply: Reply) {
        let open = session_id(params).and_then(|id| {
            let open = self.sessions.lock().remove(id);
            open.ok_or_else(|| no_session(id))
        });
        match open {
            Ok(open) => {
                open.control.abort();
                self.sessions.leave(open.worker);
                if let Err(error) = open.jobs.try_send(Job::Close(reply)) {
                    error.into_inner().reply().fail(INTERNAL_ERROR, "The session has failed");
                }
            }
            Err(failure) => reply.refuse(&failure),
        }
    }
}

/// The editor's capabilities in the parameters of `initialize`.
fn client_capabilities(params: &Value) -> ClientCapabilities {
    let client = &params["clientCapabilities"];
    let offers = |name: &str| client["fs"][name] == true;
    ClientCapabilities {
        reads: offers("readTextFile"),
        writes: offers("writeTextFile"),
        terminals: client["terminal"] == true,
        notices: client["session"]["notices"].is_object(),
        compactions: client["session"]["compaction"].is_object(),
        forms: client["elicitation"]["form"].is_object(),
        terminal_login: client["auth"]["terminal"] == true,
    }
}

fn stored(params: &Value, replay: bool) -> Result<Request, String> {
    let id = session_id(params).map_err(|f| f.message)?;
    Ok(Request::Stored { setup: setup(params)?, id: id.to_owned(), replay })
}

fn setup(params: &Value) -> Result<Setup, String> {
    let folders = match params.get("additionalDirectories") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(folders)) => folders
            .iter()
            .map(|path| absolute(path).ok_or("\"additionalDirectories\" must be absolute paths"))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("\"additionalDirectories\" must be a list".into()),
    };
    let servers = server::read(params.get("mcpServers").unwrap_or(&Value::Null))?;
    Ok(Setup { cwd: folder(params)?, folders, servers })
}

fn list(params: &Value) -> Result<Request, String> {
    let is_given = params.get("cwd").is_some_and(|cwd| !cwd.is_null());
    let cwd = is_given.then(|| folder(params)).transpose()?;
    let after = params.get("cursor").and_then(Value::as_str);
    let after = after.map(str::to_owned);
    Ok(Request::List { cwd, after })
}

fn folder(params: &Value) -> Result<PathBuf, String> {
    params.get("cwd").and_then(absolute).ok_or_else(|| "\"cwd\" must be an absolute path".into())
}

fn absolute(path: &Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.starts_with('/')).map(PathBuf::from)
}

fn session_id(params: &Value) -> Result<&str, Failure> {
    let id = params.get("sessionId").and_then(Value::as_str);
    id.ok_or_else(|| Failure::new(INVALID_PARAMS, "\"sessionId\" must be a string"))
}

fn no_session(id: &str) -> Failure {
    Failure::new(NOT_FOUND, format!("No open session \"{id}\""))
}
