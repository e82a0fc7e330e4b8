//! Questions to the client's user: forms where the client shows them, else they are dismissed.

use super::peer::Peer;
use crate::base::json::json;
use crate::mode::{form, report};
use crate::runtime::CancelToken;
use crate::runtime::approval::{Approver, Decision, Question, excerpt, squeezed};
use crate::runtime::ui::{Change, Dialog, Problem, Ui};
use serde_json::Value;
use std::time::Duration;

const ALLOW: &str = "Allow";
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
        let always =
            question.always.iter().map(|always| format!("Always allow {} (this session)", always.label));
        let always: Vec<String> = always.collect();
        let options = [vec![ALLOW.to_owned()], always.clone(), vec![DENY.to_owned()]].concat();
        let chosen = self.ask(&Dialog::Select { title: &title, options: &options }, None, cancel);
        let index = always.iter().position(|label| Some(label) == chosen.as_ref());
        match (chosen.as_deref(), index.and_then(|index| question.always.get(index))) {
            (Some(ALLOW), _) => Decision::Allow,
            (_, Some(always)) => Decision::AllowAlways(always.rules.clone()),
            // What is not understood is no permission.
            _ => Decision::Deny(None),
        }
    }
}
