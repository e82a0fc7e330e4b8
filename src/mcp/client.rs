//! The protocol's methods, on a greeted [`Peer`].

use super::fault::Fault;
use super::peer::{Options, Peer};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::jsonrpc::message::METHOD_NOT_FOUND;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The versions of the protocol that are spoken, newest first.
pub const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Pages of one list.
const PAGES_MAX: usize = 1000;
/// Entries of one list.
const ENTRIES_MAX: usize = 20_000;

/// Resources of a server whose changes are told.
const FOLLOWED_MAX: usize = 100;

/// A server that has been greeted.
#[derive(Clone)]
pub struct Client {
    pub peer: Peer,
    pub capabilities: Value,
    /// What the server says of its tools as a whole.
    pub instructions: Option<String>,
    pub timeout: Duration,
    /// Addresses of resources whose changes the server tells; true once the model was told of one since it read the
    /// resource.
    followed: Arc<Mutex<BTreeMap<String, bool>>>,
}

/// What the server offers one kind of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The field of the answer that holds the list.
    pub fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn is_entry(self, entry: &Value) -> bool {
        let is_text = |name: &str| entry.get(name).is_some_and(Value::is_string);
        match self {
            Self::Tools => is_text("name") && entry.get("inputSchema").is_some_and(Value::is_object),
            Self::Resources => is_text("uri"),
            Self::Templates => is_text("uriTemplate"),
            Self::Prompts => is_text("name"),
        }
    }
}

/// A part of a list, and where the next one begins.
pub struct Page {
    pub entries: Vec<Value>,
    pub next: Option<String>,
}

impl Client {
    /// Greets the server: both sides agree on a version. `offered` is what pi offers to it.
    pub fn greet(
        peer: Peer,
        timeout: Duration,
        offered: &Value,
        cancel: &CancelToken,
    ) -> Result<Self, Fault> {
        let params = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": offered,
            "clientInfo": {"name": "pi", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = peer.request("initialize", params, &Options { timeout, cancel, progress: None })?;
        let version = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if !VERSIONS.contains(&version) {
            let known = VERSIONS.join(", ");
            return Err(Fault::Failed(format!(
                "the server speaks version \"{version}\" of the protocol; known are {known}"
            )));
        }
        peer.greeted(version, cancel)?;
        let instructions = answer.get("instructions").and_then(Value::as_str);
        Ok(Self {
            peer,
            capabilities: answer.get("capabilities").cloned().unwrap_or_default(),
            instructions: instructions.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
            timeout,
            followed: Arc::default(),
        })
    }

    /// True if the server says that it offers `what`: `tools`, `resources`, `prompts`.
    pub fn offers(&self, what: &str) -> bool {
        self.capabilities.get(what).is_some_and(Value::is_object)
    }

    pub fn request(&self, method: &str, params: Value, cancel: &CancelToken) -> Result<Value, Fault> {
        self.peer.request(method, params, &Options { timeout: self.timeout, cancel, progress: None })
    }

    /// One part of a list, from the cursor of the part before. Entries without a name or address are left out.
    pub fn page(&self, kind: Kind, cursor: Option<&str>, cancel: &CancelToken) -> Result<Page, Fault> {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let mut answer = match self.request(kind.method(), params, cancel) {
            // Templates are an extra of resources.
            Err(Fault::Refused(failure)) if kind == Kind::Templates && failure.code == METHOD_NOT_FOUND => {
                return Ok(Page { entries: Vec::new(), next: None });
            }
            answer => answer?,
        };
        let Some(Value::Array(mut entries)) = answer.get_mut(kind.field()).map(Value::take) else {
            return Err(Fault::Failed(format!(
                "the answer to {} has no \"{}\"",
                kind.method(),
                kind.field()
            )));
        };
        entries.retain(|entry| kind.is_entry(entry));
        let next = answer.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
        Ok(Page { entries, next: next.map(str::to_owned) })
    }

    /// A whole list.
    pub fn list(&self, kind: Kind, cancel: &CancelToken) -> Result<Vec<Value>, Fault> {
        let (mut all, mut seen, mut cursor) = (Vec::new(), BTreeSet::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.page(kind, cursor.as_deref(), cancel)?;
            all.extend(page.entries);
            if all.len() > ENTRIES_MAX {
                return Err(Fault::Failed(format!(
                    "{} gives more than {ENTRIES_MAX} entries",
                    kind.method()
                )));
            }
            let Some(next) = page.next else { return Ok(all) };
            if !seen.insert(next.clone()) {
                return Err(Fault::Failed(format!("{} gives one page again and again", kind.method())));
            }
            cursor = Some(next);
        }
        Err(Fault::Failed(format!("{} gives more than {PAGES_MAX} pages", kind.method())))
    }

    /// True if the server runs calls as tasks.
    fn has_tasks(&self) -> bool {
        self.capabilities.pointer("/tasks/requests/tools/call").is_some()
    }

    /// Calls a tool, as a task if it `wants_task`. The result has a list `content`.
    pub fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        wants_task: bool,
        progress: &dyn Fn(&Value),
        cancel: &CancelToken,
    ) -> Result<Value, Fault> {
        let mut params = json!({"name": tool, "arguments": arguments});
        if wants_task && self.has_tasks() {
            params["task"] = json!({});
        }
        let options = Options { timeout: self.timeout, cancel, progress: Some(progress) };
        let mut result = self.peer.request("tools/call", params, &options)?;
        if let Some(task) = result.pointer("/task/taskId").and_then(Value::as_str) {
            result = self.result_of_task(task, progress, cancel).map_err(|fault| match fault {
                // The call itself was taken, and must not be sent again.
                Fault::SessionGone | Fault::Scope(_) => {
                    Fault::Failed("the server has begun the task, and does not give its result".into())
                }
                fault => fault,
            })?;
        }
        let is_wrong = result.get("content").is_some_and(|content| !content.is_array());
        let Some(fields) = result.as_object_mut().filter(|_| !is_wrong) else {
            return Err(Fault::Failed("the answer to tools/call has no valid \"content\"".into()));
        };
        fields.entry("content").or_insert_with(|| json!([]));
        Ok(result)
    }

    /// Waits for the result of a task. The server holds the answer back until there is one; whether it still works is
    /// asked when that takes longer than a request may take.
    fn result_of_task(
        &self,
        task: &str,
        progress: &dyn Fn(&Value),
        cancel: &CancelToken,
    ) -> Result<Value, Fault> {
        let params = json!({"taskId": task});
        loop {
            let options = Options { timeout: self.timeout, cancel, progress: Some(progress) };
            match self.peer.request("tasks/result", params.clone(), &options) {
                Err(Fault::Timeout(_)) => {
                    let state = self.request("tasks/get", params.clone(), cancel)?;
                    let text = |name: &str| state.get(name).and_then(Value::as_str);
                    let word = text("status").unwrap_or_default();
                    if !matches!(word, "working" | "input_required") {
                        let about = text("statusMessage").unwrap_or("its result cannot be had");
                        return Err(Fault::Failed(format!("the task has the state \"{word}\": {about}")));
                    }
                    progress(&json!({"message": text("statusMessage").unwrap_or(word)}));
                }
                Err(Fault::Aborted) => {
                    let client = self.clone();
                    // Nobody waits for the server's word on that.
                    let work = move || drop(client.request("tasks/cancel", params, client.peer.over()));
                    let _ = Thread::named("mcp-task").stack(256 << 10).start(work);
                    return Err(Fault::Aborted);
                }
                outcome => return outcome,
            }
        }
    }

    /// Reads a resource: its contents. The server is asked to tell its changes from then on.
    pub fn read(&self, uri: &str, cancel: &CancelToken) -> Result<Vec<Value>, Fault> {
        let mut answer = self.request("resources/read", json!({"uri": uri}), cancel)?;
        let is_content = |content: &Value| {
            let is_text = |name: &str| content.get(name).is_some_and(Value::is_string);
            is_text("uri") && (is_text("text") || is_text("blob"))
        };
        match answer.get_mut("contents").map(Value::take) {
            Some(Value::Array(contents)) if contents.iter().all(is_content) => {
                self.follow(uri);
                Ok(contents)
            }
            _ => Err(Fault::Failed("the answer to resources/read has no valid \"contents\"".into())),
        }
    }

    fn follow(&self, uri: &str) {
        if self.capabilities.pointer("/resources/subscribe") != Some(&Value::Bool(true)) {
            return;
        }
        {
            let mut followed = self.followed();
            let is_known = followed.contains_key(uri);
            if !is_known && followed.len() == FOLLOWED_MAX {
                return;
            }
            followed.insert(uri.to_owned(), false);
            if is_known {
                return;
            }
        }
        let (client, uri) = (self.clone(), uri.to_owned());
        let work = move || {
            let params = json!({"uri": uri});
            if client.request("resources/subscribe", params, client.peer.over()).is_err() {
                client.followed().remove(&uri);
            }
        };
        let _ = Thread::named("mcp-subscribe").stack(256 << 10).start(work);
    }

    /// True if the model has read this resource, and was not told of a change since.
    pub fn is_news(&self, uri: &str) -> bool {
        self.followed().get_mut(uri).is_some_and(|told| !std::mem::replace(told, true))
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
