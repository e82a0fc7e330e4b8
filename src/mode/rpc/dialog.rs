//! Questions to the client: `extension_ui_request` out, `extension_ui_response` in.
//!
//! The asking thread waits until the response arrives or its token is cancelled, which a closed stdin also
//! does. Responses are matched by id; a response without a question is dropped.

use super::field::Fields;
use crate::mode::output::Output;
use crate::mode::pending::Pending;
use crate::runtime::CancelToken;
use crate::runtime::event_json::{Line, Question};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ID_HEAD: &str = "ui-";

pub struct Dialog {
    output: Arc<Output>,
    pending: Pending<Fields>,
    shown: AtomicU64,
}

impl Dialog {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output, pending: Pending::new(), shown: AtomicU64::new(0) }
    }

    /// Sends a question and waits. `None` if cancelled, or if the client dismissed the question.
    pub fn ask(&self, question: &Question<'_>, cancel: &CancelToken) -> Option<Fields> {
        let limit = question.timeout.map(Duration::from_millis);
        let answer = self.pending.ask(cancel, limit, |number| {
            let id = format!("{ID_HEAD}{number}");
            // A reader that has gone cancels the token.
            let _ = self.output.line(&Line::UiRequest { id: &id, question });
        });
        answer.filter(|answer| answer.0.get("cancelled") != Some(&Value::Bool(true)))
    }

    /// Sends a request that has no response.
    pub fn show(&self, notice: &Question<'_>) {
        let id = format!("{ID_HEAD}show-{}", self.shown.fetch_add(1, Ordering::Relaxed) + 1);
        let _ = self.output.line(&Line::UiRequest { id: &id, question: notice });
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Passes a response to the question with this id.
    pub fn answer(&self, id: &Value, answer: Fields) {
        let number = id.as_str().and_then(|id| id.strip_prefix(ID_HEAD)?.parse().ok());
        if let Some(number) = number {
            self.pending.answer(number, answer);
        }
    }
}
