//! `ui.*`: questions to the user, and what is shown.

use super::{Answer, Call, Failure, severity, unknown};
use crate::extension::component;
use crate::runtime::ui::{Change, Dialog, Ui, YES};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

impl Call<'_> {
    pub(super) fn ui(&self, name: &str) -> Answer {
        let params = self.params;
        let ui = self.control.ui();
        let owned = |name: &str| params.optional_text(name).map(|text| text.map(str::to_owned));
        let title = || params.text("title");
        let change = match name {
            "select" => {
                let options: Vec<String> = params.required("options")?;
                let value = self.ask(ui, &Dialog::Select { title: title()?, options: &options })?;
                return Ok(json!({"value": value.filter(|value| options.contains(value))}));
            }
            "confirm" => {
                let message = params.optional_text("message")?.unwrap_or_default();
                let value = self.ask(ui, &Dialog::Confirm { title: title()?, message })?;
                return Ok(json!({"confirmed": value.as_deref() == Some(YES)}));
            }
            "input" => {
                let placeholder = params.optional_text("placeholder")?;
                return Ok(json!({"value": self.ask(ui, &Dialog::Input { title: title()?, placeholder })?}));
            }
            "editor" => {
                let prefill = params.optional_text("prefill")?;
                return Ok(json!({"value": self.ask(ui, &Dialog::Editor { title: title()?, prefill })?}));
            }
            "getEditorText" => {
                return Ok(json!({"text": ui.map(|ui| ui.editor_text()).unwrap_or_default()}));
            }
            "notify" => Change::Notify {
                message: params.text("message")?.to_owned(),
                severity: severity(params.optional_text("type")?)?,
            },
            "setStatus" => {
                let (key, text) = (params.text("key")?.to_owned(), owned("text")?);
                let undo = text.as_ref().map(|_| Change::Status { key: key.clone(), text: None });
                self.instance.showed(format!("status:{key}"), undo);
                Change::Status { key, text }
            }
            "setWidget" => {
                let key = params.text("key")?.to_owned();
                let is_below = params.optional_text("placement")? == Some("belowEditor");
                let place = format!("widget:{key}");
                return self.place(ui, &place, move |lines| Change::Widget {
                    key: key.clone(),
                    lines,
                    is_below,
                });
            }
            "setHeader" => return self.place(ui, "header", Change::Header),
            "setFooter" => return self.place(ui, "footer", Change::Footer),
            "custom" => {
                let name = params.text("component")?;
                return match &ui {
                    Some(ui) => component::custom(self.instance, ui, name, self.cancel),
                    None => Ok(json!({})),
                };
            }
            "redraw" => {
                if let Some(component) = self.instance.component(params.text("component")?) {
                    component.redraw();
                }
                return Ok(Value::Null);
            }
            "close" => {
                if let Some(component) = self.instance.component(params.text("component")?) {
                    component.close(params.get("result").cloned());
                }
                return Ok(Value::Null);
            }
            "setTitle" => Change::Title(title()?.to_owned()),
            "setWorkingMessage" => {
                let message = owned("message")?;
                let undo = message.as_ref().map(|_| Change::WorkingMessage(None));
                self.instance.showed("working".to_owned(), undo);
                Change::WorkingMessage(message)
            }
            "setEditorText" => Change::EditorText(params.text("text")?.to_owned()),
            "pasteToEditor" => Change::Paste(params.text("text")?.to_owned()),
            _ => return unknown(&format!("ui.{name}")),
        };
        if let Some(ui) = ui {
            ui.show(change);
        }
        Ok(Value::Null)
    }

    /// Puts lines, a component or nothing at a place on the screen.
    fn place(
        &self,
        ui: Option<Arc<dyn Ui>>,
        place: &str,
        change: impl Fn(Option<Vec<String>>) -> Change + Send + 'static,
    ) -> Answer {
        let Some(ui) = ui else { return Ok(Value::Null) };
        let name = self.params.optional_text("component")?;
        let lines: Option<Vec<String>> = self.params.optional("lines")?;
        self.instance.occupy(place, name);
        let is_shown = name.is_some() || lines.is_some();
        self.instance.showed(place.to_owned(), is_shown.then(|| change(None)));
        match name {
            Some(name) => component::place(self.instance, ui, name, move |lines| change(Some(lines))),
            None => {
                ui.show(change(lines));
                Ok(Value::Null)
            }
        }
    }

    fn ask(&self, ui: Option<Arc<dyn Ui>>, dialog: &Dialog<'_>) -> Result<Option<String>, Failure> {
        let timeout = self.params.optional::<u64>("timeout")?.map(Duration::from_millis);
        let Some(ui) = ui else { return Ok(None) };
        let prompt = || json!({"reason": "ui_prompt", "kind": dialog.kind(), "title": dialog.title()});
        let hooked = self.control.hooked();
        hooked.tell("ui_prompt_start", prompt, self.cancel);
        let answer = ui.ask(dialog, timeout, self.cancel);
        hooked.tell("ui_prompt_end", prompt, self.cancel);
        Ok(answer)
    }
}
