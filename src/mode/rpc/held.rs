//! Commands that are held back while extensions are being started.
//!
//! A client is answered from its first command on. What asks for tools, models and commands, and what is sent to the
//! model, would miss what extensions register: such commands wait, in their order. An abort ends the wait.

use super::command::Request;
use super::reply::Reply;
use super::server::Server;
use super::{JOBS_MAX, handle};
use crate::base::thread::Thread;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Answers of the client, and commands that depend on no other.
const AT_ONCE: &[&str] =
    &["abort_bash", "abort_retry", "extension_ui_response", "ping", "tool_call_response", "tool_call_update"];
/// Queries in which no extension has a part. They overtake other queries, and prompts; what is changed before them,
/// they see.
const QUERIES: &[&str] = &[
    "btw",
    "export_html",
    "get_branch_messages",
    "get_entries",
    "get_fork_messages",
    "get_last_assistant_text",
    "get_messages",
    "get_session_stats",
    "get_state",
    "get_tree",
    "helper",
    "job",
];
const PROMPTS: &[&str] = &["follow_up", "prompt", "steer"];
/// Commands that end the wait; they are handled behind those that came before.
const ABORTS: &[&str] = &["abort", "abort_and_prompt", "interrupt"];

pub struct Held {
    /// None when commands are not held back any more.
    waiting: Arc<Mutex<Option<Vec<Request>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Held {
    /// Holds commands back if there is something to wait for.
    pub fn start(server: &Server) -> io::Result<Self> {
        if server.control.settling().is_empty() {
            return Ok(Self { waiting: Arc::default(), thread: None });
        }
        let waiting = Arc::new(Mutex::new(Some(Vec::new())));
        let (list, server) = (waiting.clone(), server.clone());
        let wait = server.control.begin_settling();
        let release = move || {
            server.control.settle_hooks(&wait);
            // Commands that come meanwhile stay behind those that came before.
            let mut waiting = lock(&list);
            waiting.take().into_iter().flatten().for_each(|request| handle(&server, request));
        };
        let thread = Thread::named("held").start(release)?;
        Ok(Self { waiting, thread: Some(thread) })
    }

    /// Handles a command now or, if it has to wait, later.
    pub fn take(&self, server: &Server, request: Request) {
        let name = request.name.as_deref().unwrap_or_default();
        let mut waiting = lock(&self.waiting);
        let changes_nothing = |held: &Request| {
            held.name.as_deref().is_some_and(|name| name.starts_with("get_") || PROMPTS.contains(&name))
        };
        let may_pass = |held: &[Request]| QUERIES.contains(&name) && held.iter().all(changes_nothing);
        match waiting.as_mut() {
            Some(list) if AT_ONCE.contains(&name) || may_pass(list) => {
                drop(waiting);
                handle(server, request);
            }
            Some(list) if list.len() < JOBS_MAX => {
                if ABORTS.contains(&name) {
                    server.control.abort();
                }
                list.push(request);
            }
            Some(_) => Reply::new(server.output.clone(), request.id, request.name)
                .fail("Too many commands wait for extensions"),
            None => {
                drop(waiting);
                handle(server, request);
            }
        }
    }

    /// Waits until no command is held back.
    pub fn finish(self) {
        self.thread.map(JoinHandle::join);
    }
}

fn lock(waiting: &Mutex<Option<Vec<Request>>>) -> MutexGuard<'_, Option<Vec<Request>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
