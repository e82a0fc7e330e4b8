//! The connection to a client: notifications, requests and responses in both directions.

use crate::jsonrpc::message::{self, Failure, INTERNAL_ERROR};
use crate::mode::output::Output;
use crate::mode::pending::Pending;
use crate::runtime::CancelToken;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Carries messages to a client.
pub trait Lines {
    /// Sends a message. False if the client has gone.
    fn line(&self, message: &impl Serialize) -> bool;
}

impl Lines for Arc<Output> {
    fn line(&self, message: &impl Serialize) -> bool {
        Output::line(self, message).is_ok()
    }
}

/// The connection to a client with the capabilities `C`. Cheap to clone. If the client has gone, whoever carries the
/// messages notices it.
pub struct Peer<C, O: Lines = Arc<Output>>(Arc<Shared<C, O>>);

impl<C, O: Lines> Clone for Peer<C, O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Shared<C, O> {
    output: O,
    /// Requests of this program that wait for a response.
    calls: Pending<Outcome>,
    /// The client's unanswered requests by id, with their cancel tokens.
    requests: Mutex<HashMap<String, CancelToken>>,
    capabilities: OnceLock<C>,
}

type Outcome = Result<Value, Failure>;

impl<C: Copy + Default, O: Lines> Peer<C, O> {
    pub fn new(output: O) -> Self {
        Self(Arc::new(Shared {
            output,
            calls: Pending::new(),
            requests: Mutex::default(),
            capabilities: OnceLock::new(),
        }))
    }

    /// Sets the client's capabilities. Only the first call has an effect.
    pub fn set_capabilities(&self, capabilities: C) {
        let _ = self.0.capabilities.set(capabilities);
    }

    pub fn capabilities(&self) -> C {
        self.0.capabilities.get().copied().unwrap_or_default()
    }

    pub fn notify(&self, method: &str, params: &Value) {
        self.write(&message::notification(method, params));
    }

    pub fn reply(&self, id: Value) -> Reply<C, O> {
        let cancel = CancelToken::new();
        self.requests().insert(id.to_string(), cancel.clone());
        Reply { peer: self.clone(), id, cancel }
    }

    /// Cancels the client's request `id`, if it is unanswered.
    pub fn cancel(&self, id: &Value) {
        let cancel = self.requests().get(&id.to_string()).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Sends a request and waits at most `limit` for the response. `None` if cancelled or timed out, or if the client
    /// cannot be reached.
    pub fn ask(
        &self,
        method: &str,
        params: &Value,
        cancel: &CancelToken,
        limit: Option<Duration>,
    ) -> Option<Outcome> {
        let cancel = cancel.child();
        self.0.calls.ask(&cancel, limit, |id| {
            if !self.write(&message::request(id, method, params)) {
                cancel.cancel();
            }
        })
    }

    /// Sends a request, and does not wait for the response.
    pub fn tell(&self, method: &str, params: &Value) {
        self.write(&message::request(self.0.calls.number(), method, params));
    }

    /// Passes a response to the request that waits for it.
    pub fn answered(&self, id: &Value, outcome: Outcome) {
        if let Some(id) = id.as_u64() {
            self.0.calls.answer(id, outcome);
        }
    }
}

impl<C, O: Lines> Peer<C, O> {
    fn requests(&self) -> MutexGuard<'_, HashMap<String, CancelToken>> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, message: &impl Serialize) -> bool {
        self.0.output.line(message)
    }
}

/// Sends the response to a request, exactly once.
pub struct Reply<C, O: Lines = Arc<Output>> {
    peer: Peer<C, O>,
    id: Value,
    cancel: CancelToken,
}

impl<C, O: Lines> Reply<C, O> {
    /// Sets the token that is cancelled with the request.
    pub fn end_by(&mut self, cancel: CancelToken) {
        self.peer.requests().insert(self.id.to_string(), cancel.clone());
        self.cancel = cancel;
    }

    /// The token that is cancelled with the request.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// True if the client has cancelled its request.
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

impl<C, O: Lines> Drop for Reply<C, O> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.peer.write(&message::failure(&self.id, &Failure::new(INTERNAL_ERROR, "Failed inside")));
        }
        let mut requests = self.peer.requests();
        // Another request may have got the same id meanwhile.
        if requests.get(&self.id.to_string()).is_some_and(|cancel| cancel.is(&self.cancel)) {
            requests.remove(&self.id.to_string());
        }
    }
}
