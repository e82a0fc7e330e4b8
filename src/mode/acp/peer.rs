//! The editor at the other end: what it is told, and answers to what it asks.

use crate::jsonrpc::message::{self, Failure};
use crate::mode::output::Output;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Cheap to clone. A reader that has gone ends the program by the output's token, so nothing here fails.
#[derive(Clone)]
pub struct Peer {
    output: Arc<Output>,
}

impl Peer {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output }
    }

    /// Tells of something that happened in a session.
    pub fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        let _ = self
            .output
            .line(&message::notification("session/update", params));
    }

    pub fn reply(&self, id: Value) -> Reply {
        Reply {
            peer: self.clone(),
            id,
        }
    }
}

/// Where the answer to a request goes. A request has one answer.
pub struct Reply {
    peer: Peer,
    id: Value,
}

impl Reply {
    pub fn done(self, result: impl Serialize) {
        let _ = self.peer.output.line(&message::result(&self.id, result));
    }

    pub fn fail(self, code: i64, reason: impl Into<String>) {
        self.refuse(&Failure::new(code, reason));
    }

    pub fn refuse(self, failure: &Failure) {
        let _ = self.peer.output.line(&message::failure(&self.id, failure));
    }
}
