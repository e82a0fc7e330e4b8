//! The editor's user, as extensions reach him: choices through requests for permission, notices as updates.

use super::peer::Peer;
use super::update::{WARNING, notice};
use crate::mode::report;
use crate::runtime::CancelToken;
use crate::runtime::ui::{Change, Dialog, Problem, Severity, Ui, YES};
use serde_json::{Value, json};
use std::time::Duration;

pub struct EditorUi {
    pub peer: Peer,
    pub session: String,
}

impl Ui for EditorUi {
    /// Texts cannot be asked for: such a question is dismissed.
    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String> {
        let (text, names): (&str, Vec<&str>) = match *dialog {
            Dialog::Select { options, .. } => ("", options.iter().map(String::as_str).collect()),
            Dialog::Confirm { message, .. } => (message, vec!["Yes", "No"]),
            Dialog::Input { .. } | Dialog::Editor { .. } => return None,
        };
        let option = |(at, name): (usize, &&str)| {
            let is_no = matches!(dialog, Dialog::Confirm { .. }) && at == 1;
            let kind = if is_no { "reject_once" } else { "allow_once" };
            json!({"optionId": at.to_string(), "name": name, "kind": kind})
        };
        let content = match text.is_empty() {
            true => json!([]),
            false => json!([{"type": "content", "content": {"type": "text", "text": text}}]),
        };
        let params = json!({
            "sessionId": self.session,
            "toolCall": {"toolCallId": crate::runtime::unique_id(), "title": dialog.title(), "kind": "other",
                "status": "pending", "content": content},
            "options": names.iter().enumerate().map(option).collect::<Vec<Value>>(),
        });
        let answer = self.peer.ask("session/request_permission", &params, cancel, timeout)?.ok()?;
        let chosen: usize = answer.pointer("/outcome/optionId")?.as_str()?.parse().ok()?;
        match dialog {
            Dialog::Confirm { .. } => (chosen == 0).then(|| YES.to_owned()),
            _ => names.get(chosen).map(|name| (*name).to_owned()),
        }
    }

    fn show(&self, change: Change) {
        if let Change::Notify { message, severity } = change {
            let severity = match severity {
                Severity::Info => "info",
                Severity::Warning => WARNING,
                Severity::Error => "error",
            };
            self.peer.update(&self.session, &notice(self.peer.capabilities(), severity, &message, None));
        }
    }

    fn problem(&self, Problem { source, event, error }: &Problem) {
        report::note(format_args!("Extension error ({source}): {event}: {error}"));
    }

    fn is_attended(&self) -> bool {
        // The tool that asks the user needs texts, too.
        false
    }
}
