//! Questions to the client's user: forms where the client shows them, else they are dismissed.

use super::Peer;
use crate::mode::{form, report};
use crate::runtime::CancelToken;
use crate::runtime::approval::{Approver, Decision, Question, excerpt, squeezed};
use crate::runtime::ui::{Change, Dialog, Problem, Ui};
use serde_json::{Value, json};
use std::time::Duration;

const ALLOW: &str = "Allow";
const ALWAYS: &str = "Always allow";
const DENY: &str = "Deny";

/// Maximum characters of a call that is asked about.
const CALL_MAX: usize = 2000;

pub struct ClientUi {
    pub peer: Peer,
}

impl Ui for ClientUi {
    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String> {
        if !self.is_attended() {
            return None;
        }
        let (message, schema) = form::of(dialog);
        let params = json!({"message": message, "requestedSchema": schema});
        form::answer(&self.peer.ask("elicitation/create", &params, cancel, timeout)?.ok()?)
    }

    fn is_attended(&self) -> bool {
        self.peer.capabilities().forms
    }

    fn show(&self, change: Change) {
        if let Change::Notify { message, .. } = change {
            report::note(message);
        }
    }

    fn problem(&self, Problem { source, event, error }: &Problem) {
        report::note(format_args!("Extension error ({source}): {event}: {error}"));
    }
}

impl Approver for ClientUi {
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
        if !self.is_attended() {
            return Decision::Deny(Some("This call needs approval, but the client shows no forms".into()));
        }
        let arguments = Value::Object(question.arguments.clone()).to_string();
        let title = format!("{} {}", question.who(), excerpt(&squeezed(&arguments), CALL_MAX));
        let options = [ALLOW, ALWAYS, DENY].map(str::to_owned);
        match self.ask(&Dialog::Select { title: &title, options: &options }, None, cancel).as_deref() {
            Some(ALLOW) => Decision::Allow,
            Some(ALWAYS) => Decision::AllowAlways,
            // What is not understood is no permission.
            _ => Decision::Deny(None),
        }
    }
}
