//! Questions to the client: `extension_ui_request` out, `extension_ui_response` in.
//!
//! A question waits on the thread that asks, until its answer comes or its token is cancelled, which a
//! closed stdin does too. Answers find their question by its id; one that nobody waits for is passed over.

use crate::mode::output::Output;
use crate::runtime::CancelToken;
use crossbeam_channel::{Sender, bounded, select};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Dialog {
    output: Arc<Output>,
    open: Mutex<HashMap<String, Sender<Answer>>>,
    last_id: AtomicU64,
}

/// The fields of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer(pub Map<String, Value>);

impl Answer {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

impl Dialog {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output, open: Mutex::default(), last_id: AtomicU64::new(0) }
    }

    /// Asks, and waits. `None` when the wait was cancelled, or the client dismissed the question.
    pub fn ask(&self, method: &str, fields: Map<String, Value>, cancel: &CancelToken) -> Option<Answer> {
        let number = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("ui-{number}");
        let (sender, answer) = bounded(1);
        self.open().insert(id.clone(), sender);
        let mut request = Map::new();
        request.insert("type".into(), "extension_ui_request".into());
        request.insert("id".into(), id.clone().into());
        request.insert("method".into(), method.into());
        request.extend(fields);
        // A reader that has gone cancels the token.
        let _ = self.output.line(&request);
        let answer = select! {
            recv(answer) -> answer => answer.ok(),
            recv(cancel.receiver()) -> _ => None,
        };
        self.open().remove(&id);
        answer.filter(|answer| answer.0.get("cancelled") != Some(&Value::Bool(true)))
    }

    /// Hands an answer to who waits for it.
    pub fn answer(&self, id: &Value, answer: Answer) {
        let asker = id.as_str().and_then(|id| self.open().remove(id));
        if let Some(asker) = asker {
            // There is room for the one answer; an asker that has gone needs none.
            let _ = asker.try_send(answer);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Sender<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
