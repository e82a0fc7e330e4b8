//! The connection to the editor: notifications, requests and responses in both directions.

use crate::jsonrpc::message::{self, Failure};
use crate::mode::output::Output;
use crate::mode::pending::Pending;
use crate::runtime::CancelToken;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// No key, or no model at all.
pub const AUTH_REQUIRED: i64 = -32000;
/// The session does not exist.
pub const NOT_FOUND: i64 = -32002;
/// The editor cancelled its request.
pub const CANCELLED: i64 = -32800;

/// The connection to the editor. Cheap to clone. Writing cannot fail: if the editor has gone, the output's
/// token ends the program.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

struct Shared {
    output: Arc<Output>,
    /// Requests of this program that wait for a response.
    calls: Pending<Outcome>,
    /// The editor's unanswered requests by id, with their cancel tokens.
    requests: Mutex<HashMap<String, CancelToken>>,
    capabilities: OnceLock<ClientCapabilities>,
}

/// Capabilities of the editor.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCapabilities {
    /// Reads text files, including unsaved text.
    pub reads: bool,
    /// Writes text files.
    pub writes: bool,
    /// Shows notices beside the conversation.
    pub notices: bool,
    /// Shows the progress of a compaction.
    pub compactions: bool,
    /// Shows forms.
    pub forms: bool,
    /// Runs this program in a terminal, to sign in.
    pub terminal_login: bool,
}

type Outcome = Result<Value, Failure>;

impl Peer {
    pub fn new(output: Arc<Output>) -> Self {
        Self(Arc::new(Shared {
            output,
            calls: Pending::new(),
            requests: Mutex::default(),
            capabilities: OnceLock::new(),
        }))
    }

    /// Sets the editor's capabilities. Only the first call has an effect.
    pub fn set_capabilities(&self, capabilities: ClientCapabilities) {
        let _ = self.0.capabilities.set(capabilities);
    }

    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.capabilities.get().copied().unwrap_or_default()
    }

    /// Sends a `session/update`.
    pub fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.write(&message::notification("session/update", params));
    }

    pub fn reply(&self, id: Value) -> Reply {
        let cancel = CancelToken::new();
        self.requests().insert(id.to_string(), cancel.clone());
        Reply { peer: self.clone(), id, cancel }
    }

    /// Cancels the editor's request `id`, if it is unanswered.
    pub fn cancel(&self, id: &Value) {
        let cancel = self.requests().get(&id.to_string()).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Sends a request and waits at most `limit` for the response. `None` if cancelled or timed out.
    pub fn ask(
        &self,
        method: &str,
        params: &Value,
        cancel: &CancelToken,
        limit: Option<Duration>,
    ) -> Option<Outcome> {
        self.0.calls.ask(cancel, limit, |id| self.write(&message::request(id, method, params)))
    }

    /// Passes a response to the request that waits for it.
    pub fn answered(&self, id: &Value, outcome: Outcome) {
        if let Some(id) = id.as_u64() {
            self.0.calls.answer(id, outcome);
        }
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, CancelToken>> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, message: &impl Serialize) {
        let _ = self.0.output.line(message);
    }
}

/// Sends the response to a request, exactly once.
pub struct Reply {
    peer: Peer,
    id: Value,
    cancel: CancelToken,
}

impl Reply {
    /// Sets the token that is cancelled with the request.
    pub fn end_by(&mut self, cancel: CancelToken) {
        self.peer.requests().insert(self.id.to_string(), cancel.clone());
        self.cancel = cancel;
    }

    /// True if the editor has cancelled its request.
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
