//! The user of the client, as extensions reach him: `extension_ui_request` and `extension_error`.

use super::dialog::Dialog as Client;
use crate::runtime::CancelToken;
use crate::runtime::event::Event;
use crate::runtime::event_json::{Line, Question};
use crate::runtime::ui::{Change, Dialog, Problem, Ui, YES};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub struct RpcUi(pub Arc<Client>);

impl Ui for RpcUi {
    fn tells_costs(&self) -> bool {
        true
    }

    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String> {
        let question = Question {
            method: dialog.kind(),
            title: dialog.title().to_owned(),
            timeout: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            ..Question::default()
        };
        let texts: Vec<&str>;
        let question = match *dialog {
            Dialog::Select { options, .. } => {
                texts = options.iter().map(String::as_str).collect();
                Question { options: Some(&texts), ..question }
            }
            Dialog::Confirm { message, .. } => Question { message: Some(message), ..question },
            Dialog::Input { placeholder, .. } => Question { placeholder, ..question },
            Dialog::Editor { prefill, .. } => Question { prefill, ..question },
        };
        let answer = self.0.ask(&question, cancel)?;
        match dialog {
            Dialog::Confirm { .. } => {
                (answer.0.get("confirmed") == Some(&Value::Bool(true))).then(|| YES.to_owned())
            }
            _ => answer.text("value").map(str::to_owned),
        }
    }

    fn show(&self, change: Change) {
        let notice = Question::default();
        match &change {
            Change::Notify { message, severity } => self.0.show(&Question {
                method: "notify",
                message: Some(message),
                notify_type: Some(severity.name()),
                ..notice
            }),
            Change::Status { key, text } => self.0.show(&Question {
                method: "setStatus",
                status_key: Some(key),
                status_text: text.as_deref(),
                ..notice
            }),
            Change::Widget { key, lines, is_below } => self.0.show(&Question {
                method: "setWidget",
                widget_key: Some(key),
                widget_lines: lines.as_deref(),
                widget_placement: Some(if *is_below { "belowEditor" } else { "aboveEditor" }),
                ..notice
            }),
            Change::Title(title) => {
                self.0.show(&Question { method: "setTitle", title: title.clone(), ..notice });
            }
            Change::EditorText(text) | Change::Paste(text) => {
                self.0.show(&Question { method: "set_editor_text", text: Some(text), ..notice });
            }
            // A client has no place for these.
            Change::Header(_)
            | Change::Footer(_)
            | Change::WorkingMessage(_)
            | Change::WorkingVisible(_)
            | Change::WorkingIndicator(_)
            | Change::ThinkingLabel(_)
            | Change::ToolsExpanded(_)
            | Change::DesktopNotify { .. }
            | Change::Resources
            | Change::Tools
            | Change::Redraw(_) => {}
        }
    }

    fn problem(&self, Problem { source, event, error }: &Problem) {
        let _ = self.0.output().line(&Line::ExtensionError { path: source, event, error });
    }

    fn event(&self, event: &Event<'_>) {
        let _ = self.0.output().event_of_command(event);
    }
}
