//! Handles requests: immediately, or on a thread of their own.

use super::ask::{ClientUi, LEVELS};
use super::peer::{Client, Peer, Reply, reason};
use super::subscription::Subscriptions;
use super::{agent, call, complete, resource};
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::base::watch;
use crate::jsonrpc::message::{Bad, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Message};
use crate::mode::host::Host;
use crate::runtime::CancelToken;
use crate::runtime::control::Control;
use crossbeam_channel::bounded;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Revisions of the protocol, newest first. Their differences do not touch what is used here.
pub const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Calls that may run at once.
const CALLS_MAX: usize = 32;

/// Error code of a resource that does not exist.
const NO_RESOURCE: i64 = -32002;

/// What opens sessions, for all servers of this process.
pub type SharedHost = Arc<Mutex<Box<dyn Host>>>;

pub struct Server(Arc<Shared>);

/// What the threads of calls share.
pub struct Shared {
    pub peer: Peer,
    pub host: SharedHost,
    /// The session whose tools are offered.
    pub control: Control,
    /// True if a session can run a prompt.
    can_run: bool,
    /// Cancelled when the process is to end.
    pub cancel: CancelToken,
    /// See [`ClientUi::level`].
    pub level: Arc<AtomicUsize>,
    calls: AtomicUsize,
    subscriptions: Subscriptions,
    /// The number of threads, and a signal for each end of one.
    threads: (Mutex<usize>, Condvar),
}

impl Server {
    pub fn new(peer: Peer, host: SharedHost, control: Control, can_run: bool, cancel: CancelToken) -> Self {
        let level = Arc::new(AtomicUsize::new(LEVELS.len()));
        let ui = Arc::new(ClientUi { peer: peer.clone(), is_offered: true, level: level.clone() });
        control.set_approver(ui.clone());
        control.set_ui(ui);
        Self(Arc::new(Shared {
            peer,
            host,
            control,
            can_run,
            cancel,
            level,
            calls: AtomicUsize::new(0),
            subscriptions: Subscriptions::default(),
            threads: (Mutex::new(0), Condvar::new()),
        }))
    }

    pub fn handle(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => self.request(&method, params, self.0.peer.reply(id)),
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    self.0.peer.cancel(id);
                }
            }
            // Other notifications ask for nothing.
            Message::Notification { .. } => {}
            Message::Response { id, outcome } => self.0.peer.answered(&id, outcome),
        }
    }

    /// Responds to a line that is not a message.
    pub fn refuse(&self, bad: Bad) {
        self.0.peer.reply(bad.id).refuse(&bad.failure);
    }

    /// Waits for the end of all calls and subscriptions, whose token must be cancelled.
    pub fn finish(&self) {
        let (count, ended) = &self.0.threads;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = ended.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        self.0.subscriptions.finish();
    }

    fn request(&self, method: &str, params: Value, reply: Reply) {
        match method {
            "initialize" => {
                reply.done(self.initialize(&params));
                // From now on the client may be told of changes.
                self.0.peer.set_capabilities(Client {
                    forms: params["capabilities"]["elicitation"].is_object(),
                    is_greeted: true,
                });
            }
            "ping" => reply.done(json!({})),
            "logging/setLevel" => match LEVELS.iter().position(|level| params["level"] == *level) {
                None => reply.fail(INVALID_PARAMS, format!("\"level\" must be one of {}", LEVELS.join(", "))),
                Some(level) => {
                    self.0.level.store(level, Ordering::Relaxed);
                    reply.done(json!({}));
                }
            },
            "tools/list" => self.settled(reply, |shared, reply| reply.done(json!({"tools": shared.tools()}))),
            "tools/call" => self.call(params, reply),
            "prompts/list" => self.settled(reply, |shared, reply| {
                reply.done(json!({"prompts": resource::prompts(&shared.control)}));
            }),
            "prompts/get" => {
                self.settled(reply, move |shared, reply| match resource::prompt(&shared.control, &params) {
                    Ok(prompt) => reply.done(prompt),
                    Err(reason) => reply.fail(INVALID_PARAMS, reason),
                })
            }
            "resources/list" => self.beside(reply, move |shared, reply| {
                match resource::list(&mut **shared.host(), params["cursor"].as_str()) {
                    Ok(page) => reply.done(page),
                    Err(reason) => reply.fail(INVALID_PARAMS, reason),
                }
            }),
            "resources/templates/list" => reply.done(json!({"resourceTemplates": [resource::template()]})),
            "resources/read" => self.beside(reply, move |shared, reply| {
                let uri = params["uri"].as_str().unwrap_or_default();
                match resource::read(&mut **shared.host(), uri) {
                    Ok(contents) => reply.done(contents),
                    Err(refusal) => reply.fail(NO_RESOURCE, reason(refusal)),
                }
            }),
            "resources/subscribe" if watch::IS_THERE => self.subscribe(&params, reply),
            "resources/unsubscribe" if watch::IS_THERE => {
                self.0.subscriptions.remove(params["uri"].as_str().unwrap_or_default());
                reply.done(json!({}));
            }
            "completion/complete" => {
                self.beside(reply, move |shared, reply| match complete::complete(shared, &params) {
                    Ok(values) => reply.done(values),
                    Err(reason) => reply.fail(INVALID_PARAMS, reason),
                });
            }
            _ => reply.fail(METHOD_NOT_FOUND, format!("Method not found: {method}")),
        }
    }

    fn subscribe(&self, params: &Value, reply: Reply) {
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        if let Err(reason) = self.0.subscriptions.want(&uri) {
            return reply.fail(INTERNAL_ERROR, reason);
        }
        self.beside(reply, move |shared, reply| {
            let subscriptions = &shared.subscriptions;
            let place = resource::place(&mut **shared.host(), &uri);
            let failed = match place {
                Err(refusal) => (NO_RESOURCE, reason(refusal)),
                Ok(path) => match subscriptions.add(&uri, &path, &shared.peer, &shared.cancel) {
                    Ok(()) => return reply.done(json!({})),
                    Err(reason) => (INTERNAL_ERROR, reason),
                },
            };
            subscriptions.remove(&uri);
            reply.fail(failed.0, failed.1);
        });
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS.iter().find(|version| **version == asked).unwrap_or(&VERSIONS[0]);
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": watch::IS_THERE},
                "prompts": {"listChanged": true}, "completions": {}, "logging": {}},
            "serverInfo": {"name": "pi", "title": "pi", "version": env!("CARGO_PKG_VERSION")},
            "instructions": format!("Tools work in {}.", self.0.control.config().workspace.cwd.display()),
        })
    }

    fn call(&self, mut params: Value, reply: Reply) {
        let Some(name) = params["name"].as_str().map(str::to_owned) else {
            return reply.fail(INVALID_PARAMS, "\"name\" must be a string");
        };
        let arguments = match params["arguments"].take() {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return reply.fail(INVALID_PARAMS, "\"arguments\" must be an object"),
        };
        let token = params["_meta"]["progressToken"].take();
        let number = self.0.calls.fetch_add(1, Ordering::Relaxed);
        self.beside(reply, move |shared, reply| {
            if !shared.settle().has_tool(&name) {
                return reply.fail(INVALID_PARAMS, format!("Unknown tool: {name}"));
            }
            let progress = call::Progress::new(shared.peer.clone(), token);
            // The end of the process ends the call as its cancellation does.
            let cancel = reply.cancel_token().clone();
            let ends = cancel.clone();
            let _guard = shared.cancel.on_cancel(move || ends.cancel());
            let result = match &*name {
                agent::NAME => agent::run(shared, &arguments, &progress, &cancel),
                name => call::run(&shared.control, number, name, arguments, &progress, &cancel),
            };
            // Nothing is sent for a call that was cancelled.
            if !cancel.is_cancelled() {
                reply.done(result);
            }
        });
    }

    /// Answers a request once the extensions have registered what they add, or are late.
    fn settled(&self, reply: Reply, answer: impl FnOnce(&Shared, Reply) + Send + 'static) {
        if self.0.control.settling().is_empty() {
            return answer(&self.0, reply);
        }
        self.beside(reply, |shared, reply| answer(shared.settle(), reply));
    }

    /// Answers a request on a thread of its own.
    fn beside(&self, reply: Reply, answer: impl FnOnce(&Shared, Reply) + Send + 'static) {
        let (count, _) = &self.0.threads;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        if *count >= CALLS_MAX {
            return reply.fail(INTERNAL_ERROR, format!("More than {CALLS_MAX} calls at once"));
        }
        let shared = self.0.clone();
        let (give, given) = bounded(1);
        let work = move || {
            if let Ok(reply) = given.recv() {
                let ends = Ends(shared);
                answer(&ends.0, reply);
            }
        };
        // The reply stays here until there is a thread.
        match Thread::named("call").start(work) {
            Ok(_) => {
                *count += 1;
                let _ = give.send(reply);
            }
            Err(error) => reply.fail(INTERNAL_ERROR, format!("Cannot start a thread: {error}")),
        }
    }
}

impl Shared {
    /// Waits for extensions as the first prompt of a session does. Those that come later are told as changes.
    fn settle(&self) -> &Self {
        self.control.settle_hooks(&self.control.begin_settling());
        self
    }

    fn tools(&self) -> Vec<Value> {
        let all = self.control.tools().all();
        let mut tools: Vec<Value> =
            all.iter().filter(|(_, active)| *active).map(|(tool, _)| call::declare(tool.info())).collect();
        if self.can_run {
            tools.push(agent::declare());
        }
        tools
    }

    fn has_tool(&self, name: &str) -> bool {
        let all = self.control.tools().all();
        all.iter().any(|(tool, active)| *active && tool.info().spec.name == name)
            || (self.can_run && name == agent::NAME)
    }

    pub fn host(&self) -> MutexGuard<'_, Box<dyn Host>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a thread that ends, however it does.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        let (count, ended) = &self.0.threads;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ended.notify_all();
    }
}
