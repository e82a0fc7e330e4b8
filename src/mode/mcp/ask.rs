//! Questions to the client's user: forms where the client shows them, else they are dismissed.

use super::peer::Peer;
use crate::base::json::json;
use crate::mode::{form, report};
use crate::runtime::CancelToken;
use crate::runtime::approval::{Approver, Decision, Question, excerpt, squeezed};
use crate::runtime::ui::{Change, Dialog, Problem, Severity, Ui};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Severities of messages in the protocol, least first.
pub const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const ALLOW: &str = "Allow";
const DENY: &str = "Deny";

/// Maximum characters of a call that is asked about.
const CALL_MAX: usize = 2000;

pub struct ClientUi {
    pub peer: Peer,
    /// True for the session whose tools and prompts the client is offered.
    pub is_offered: bool,
    /// The place in [`LEVELS`] from which the client wants messages; past the end it wants none.
    pub level: Arc<AtomicUsize>,
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
        let list = match change {
            Change::Notify { message, severity } => return self.log(severity, &message),
            Change::Tools => "tools",
            Change::Resources => "prompts",
            _ => return,
        };
        // A client that has not been greeted has read no list.
        if self.is_offered && self.peer.capabilities().is_greeted {
            self.peer.notify(&format!("notifications/{list}/list_changed"), &json!({}));
        }
    }

    fn problem(&self, Problem { source, event, error }: &Problem) {
        self.log(Severity::Error, &format!("Extension error ({source}): {event}: {error}"));
    }
}

impl ClientUi {
    /// Reports a message, also to a client that wants messages of this severity.
    fn log(&self, severity: Severity, message: &str) {
        report::note(message);
        let level = severity.name();
        let wanted = LEVELS.get(self.level.load(Ordering::Relaxed)..).unwrap_or_default();
        if wanted.contains(&level) {
            let params = json!({"level": level, "logger": "pi", "data": message});
            self.peer.notify("notifications/message", &params);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::mcp::http::stream::{Next, Streams};
    use crate::mode::mcp::peer::{Client, Way};

    #[test]
    fn a_client_is_told_that_its_lists_have_changed() {
        let streams = Arc::new(Streams::default());
        let peer = Peer::new(Way::Streams(streams.clone()));
        let mut news = streams.news().unwrap();
        let level = Arc::new(AtomicUsize::new(LEVELS.len()));
        let mut told = |is_offered: bool, change: Change| {
            ClientUi { peer: peer.clone(), is_offered, level: level.clone() }.show(change);
            match news.next(Duration::ZERO) {
                Next::Message { text, .. } => text.to_string(),
                _ => String::new(),
            }
        };
        assert_eq!(told(true, Change::Tools), "");
        peer.set_capabilities(Client { is_greeted: true, ..Client::default() });
        assert!(told(true, Change::Tools).contains("notifications/tools/list_changed"));
        assert!(told(true, Change::Resources).contains("notifications/prompts/list_changed"));
        // The client knows nothing of the session of an agent.
        assert_eq!(told(false, Change::Tools), "");

        // Messages go to a client that has asked for their severity.
        let notify = |severity| Change::Notify { message: "careful".into(), severity };
        assert_eq!(told(true, notify(Severity::Error)), "");
        level.store(3, Ordering::Relaxed);
        assert_eq!(told(true, notify(Severity::Info)), "");
        let message = r#""params":{"level":"warning","logger":"pi","data":"careful"}"#;
        let text = told(false, notify(Severity::Warning));
        assert!(text.contains("notifications/message") && text.contains(message), "{text}");
    }
}
