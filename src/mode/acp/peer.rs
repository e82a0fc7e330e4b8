//! The editor at the other end: what it is told, answers to what it asks, and what it is asked itself.

use crate::jsonrpc::message::{self, Failure};
use crate::mode::output::Output;
use crate::runtime::CancelToken;
use crossbeam_channel::{Sender, after, bounded, never, select};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Cheap to clone. A reader that has gone ends the program by the output's token, so nothing here fails.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

struct Shared {
    output: Arc<Output>,
    /// Our requests that wait for an answer.
    calls: Mutex<HashMap<u64, Sender<Outcome>>>,
    /// The editor's requests that have no answer yet, by id, and what ends them.
    requests: Mutex<HashMap<String, CancelToken>>,
    last_id: AtomicU64,
    able: OnceLock<Able>,
}

/// What the editor offers to do for us.
#[derive(Clone, Copy, Debug, Default)]
pub struct Able {
    /// Text files, as they stand in the editor.
    pub reads: bool,
    pub writes: bool,
    /// Notices to the user beside the conversation.
    pub notices: bool,
    /// The course of a compaction.
    pub compactions: bool,
    /// This program in a terminal, to sign in.
    pub terminal_login: bool,
}

type Outcome = Result<Value, Failure>;

impl Peer {
    pub fn new(output: Arc<Output>) -> Self {
        Self(Arc::new(Shared {
            output,
            calls: Mutex::default(),
            requests: Mutex::default(),
            last_id: AtomicU64::new(0),
            able: OnceLock::new(),
        }))
    }

    /// Takes note of what the editor said that it can do. What it says first holds.
    pub fn set_able(&self, able: Able) {
        let _ = self.0.able.set(able);
    }

    pub fn able(&self) -> Able {
        self.0.able.get().copied().unwrap_or_default()
    }

    /// Tells of something that happened in a session.
    pub fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.write(&message::notification("session/update", params));
    }

    pub fn reply(&self, id: Value) -> Reply {
        let cancel = CancelToken::new();
        self.requests().insert(id.to_string(), cancel.clone());
        Reply { peer: self.clone(), id, cancel }
    }

    /// Ends the editor's request `id`, if it has no answer yet.
    pub fn cancel(&self, id: &Value) {
        let cancel = self.requests().get(&id.to_string()).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Asks, and waits for the answer. `None` when the wait was cancelled.
    pub fn ask(&self, method: &str, params: &Value, cancel: &CancelToken) -> Option<Outcome> {
        self.ask_within(method, params, cancel, None)
    }

    /// Asks, and waits for the answer for at most `limit`. `None` when the wait was cancelled or too long.
    pub fn ask_within(
        &self,
        method: &str,
        params: &Value,
        cancel: &CancelToken,
        limit: Option<Duration>,
    ) -> Option<Outcome> {
        let late = limit.map_or_else(never, after);
        let id = self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = bounded(1);
        self.calls().insert(id, sender);
        self.write(&message::request(id, method, params));
        let answer = select! {
            recv(answer) -> answer => answer.ok(),
            recv(cancel.receiver()) -> _ => None,
            recv(late) -> _ => None,
        };
        self.calls().remove(&id);
        answer
    }

    /// Hands an answer to who waits for it; one that nobody waits for is passed over.
    pub fn answered(&self, id: &Value, outcome: Outcome) {
        let asker = id.as_u64().and_then(|id| self.calls().remove(&id));
        if let Some(asker) = asker {
            // There is room for the one answer; an asker that has gone needs none.
            let _ = asker.try_send(outcome);
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Sender<Outcome>>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, CancelToken>> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, message: &impl Serialize) {
        let _ = self.0.output.line(message);
    }
}

/// Where the answer to a request goes. A request has one answer.
pub struct Reply {
    peer: Peer,
    id: Value,
    cancel: CancelToken,
}

impl Reply {
    /// `cancel` ends the request from now on.
    pub fn end_by(&mut self, cancel: CancelToken) {
        self.peer.requests().insert(self.id.to_string(), cancel.clone());
        self.cancel = cancel;
    }

    /// The editor does not want the answer any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub fn done(self, result: impl Serialize) {
        self.peer.write(&message::result(&self.id, result));
    }

    pub fn fail(self, code: i64, reason: impl Into<String>) {
        self.refuse(&Failure::new(code, reason));
    }

    pub fn refuse(self, failure: &Failure) {
        self.peer.write(&message::failure(&self.id, failure));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let mut requests = self.peer.requests();
        // Another request may have got the same id meanwhile.
        if requests.get(&self.id.to_string()).is_some_and(|cancel| cancel.is(&self.cancel)) {
            requests.remove(&self.id.to_string());
        }
    }
}
