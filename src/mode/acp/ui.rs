//! Questions of extensions and tools, put to the editor's user.
//!
//! An editor with forms (`elicitation.form`) shows them. Another one asks as it asks for permission, if there are
//! choices; what has to be typed is dismissed.

use super::open::{Sessions, tell_commands};
use super::peer::Peer;
use super::update::notice;
use crate::base::json::json;
use crate::mode::form::{self, NO};
use crate::runtime::control::WeakControl;
use crate::runtime::plan;
use crate::runtime::ui::{Change, Dialog, Problem, Ui, YES};
use crate::runtime::{CancelToken, unique_id};
use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The user of one session.
pub struct EditorUi {
    peer: Peer,
    session: String,
    sessions: Sessions,
    control: WeakControl,
    /// What waits until the editor knows the session; `None` from then on.
    held: Mutex<Option<Held>>,
    /// Disconnected when the editor knows the session.
    known: Receiver<()>,
}

struct Held {
    updates: Vec<Value>,
    _until_known: Sender<()>,
}

impl EditorUi {
    pub fn new(peer: &Peer, session: &str, sessions: &Sessions, control: WeakControl) -> Self {
        let (until_known, known) = bounded(0);
        let held = Held { updates: Vec::new(), _until_known: until_known };
        Self {
            peer: peer.clone(),
            session: session.to_owned(),
            sessions: sessions.clone(),
            control,
            held: Mutex::new(Some(held)),
            known,
        }
    }

    /// Sends what was held back: the editor knows the session.
    pub fn release(&self) {
        let Some(Held { updates, _until_known }) = self.held().take() else { return };
        updates.iter().for_each(|update| self.peer.update(&self.session, update));
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, update: Value) {
        match &mut *self.held() {
            Some(held) => held.updates.push(update),
            None => self.peer.update(&self.session, &update),
        }
    }
}

impl Ui for EditorUi {
    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String> {
        let late = timeout.map_or_else(never, after);
        select! {
            recv(self.known) -> _ => {}
            recv(cancel.receiver()) -> _ => return None,
            recv(late) -> _ => return None,
        }
        let (method, params) = match self.peer.capabilities().forms {
            true => ("elicitation/create", self.form(dialog)),
            false => ("session/request_permission", self.choice(dialog)?),
        };
        let result = self.peer.ask(method, &params, cancel, timeout)?.ok()?;
        if self.peer.capabilities().forms {
            return form::answer(&result);
        }
        let chosen = result.pointer("/outcome/optionId")?.as_str()?;
        match dialog {
            Dialog::Select { options, .. } => options.get(chosen.parse::<usize>().ok()?).cloned(),
            _ => Some(chosen.to_owned()),
        }
    }

    fn show(&self, change: Change) {
        match change {
            Change::Notify { message, severity } => {
                let update = notice(self.peer.capabilities(), severity.name(), &message, None);
                self.update(update);
            }
            // The editor is told the commands when it gets to know the session.
            Change::Resources if self.held().is_some() => {}
            Change::Resources => {
                if let Some(control) = self.control.upgrade() {
                    tell_commands(&self.session, &control, &self.peer);
                }
            }
            // The mode of the session has changed.
            Change::Status { key, .. } if key == plan::NAME => {
                self.sessions.tell_mode(&self.session, &self.peer)
            }
            _ => {}
        }
    }

    fn problem(&self, problem: &Problem) {
        let title = format!("{} failed in {}", problem.source, problem.event);
        let update = notice(self.peer.capabilities(), "error", &title, Some(&problem.error));
        self.update(update);
    }
}

impl EditorUi {
    fn form(&self, dialog: &Dialog<'_>) -> Value {
        let (message, schema) = form::of(dialog);
        json!({"sessionId": self.session, "mode": "form", "message": message, "requestedSchema": schema})
    }

    /// The dialog as a request for permission; `None` if an answer has to be typed.
    fn choice(&self, dialog: &Dialog<'_>) -> Option<Value> {
        let option = |id: String, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let (content, options): (_, Vec<Value>) = match *dialog {
            Dialog::Select { options, .. } => {
                let options = options.iter().enumerate();
                (None, options.map(|(at, name)| option(at.to_string(), name, "allow_once")).collect())
            }
            Dialog::Confirm { message, .. } => (
                Some(message),
                vec![option(YES.into(), "Yes", "allow_once"), option(NO.into(), "No", "reject_once")],
            ),
            Dialog::Input { .. } | Dialog::Editor { .. } => return None,
        };
        let content =
            content.map(|text| json!([{"type": "content", "content": {"type": "text", "text": text}}]));
        Some(json!({"sessionId": self.session, "options": options, "toolCall": {
            "toolCallId": unique_id(), "title": dialog.title(), "kind": "other", "status": "pending",
            "content": content.unwrap_or_else(|| json!([]))}}))
    }
}
