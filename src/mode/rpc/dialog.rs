//! Questions to the client: `extension_ui_request` out, `extension_ui_response` in.
//!
//! A question waits on the thread that asks, until its answer comes or its token is cancelled, which a
//! closed stdin does too. An answer finds its question by the id; an answer that nobody waits for is dropped.

use super::field::Fields;
use crate::mode::event_json::{Line, Question};
use crate::mode::output::Output;
use crate::mode::pending::Pending;
use crate::runtime::CancelToken;
use serde_json::Value;
use std::sync::Arc;

const ID_HEAD: &str = "ui-";

pub struct Dialog {
    output: Arc<Output>,
    pending: Pending<Fields>,
}

impl Dialog {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output, pending: Pending::new() }
    }

    /// Asks, and waits. `None` when the wait was cancelled, or the client dismissed the question.
    pub fn ask(&self, question: &Question<'_>, cancel: &CancelToken) -> Option<Fields> {
        let answer = self.pending.ask(cancel, None, |number| {
            let id = format!("{ID_HEAD}{number}");
            // A reader that has gone cancels the token.
            let _ = self.output.line(&Line::UiRequest { id: &id, question });
        });
        answer.filter(|answer| answer.0.get("cancelled") != Some(&Value::Bool(true)))
    }

    /// Hands an answer to the question with this id.
    pub fn answer(&self, id: &Value, answer: Fields) {
        let number = id.as_str().and_then(|id| id.strip_prefix(ID_HEAD)?.parse().ok());
        if let Some(number) = number {
            self.pending.answer(number, answer);
        }
    }
}
