//! `ui.*`: questions to the user, and what is shown.

use super::{Answer, Call, Failure, severity, unknown};
use crate::base::json::json;
use crate::extension::component;
use crate::runtime::ui::{Arrange, Change, Component, Dialog, Indicator, Place, Query, Ui, YES};
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Time of a frame of the working indicator, when nothing is said and at least.
const INTERVAL_MS: u64 = 80;
const INTERVAL_MIN_MS: u64 = 16;

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
                return Ok(json!({"text": self.read(Query::EditorText).as_str().unwrap_or_default()}));
            }
            "editorRender" => return Ok(self.read(Query::Editor(params.required("width")?))),
            "theme" => return Ok(self.read(Query::Theme(owned("name")?))),
            "themes" => return Ok(json!({"themes": self.read(Query::Themes)})),
            "setTheme" => return Ok(self.read(Query::SetTheme(params.text("name")?.to_owned()))),
            "keybindings" => return Ok(self.read(Query::Keybindings)),
            "toolsExpanded" => return Ok(json!({"expanded": self.read(Query::ToolsExpanded) == true})),
            "statuses" => return Ok(json!({"statuses": self.read(Query::Statuses)})),
            "editorInput" => {
                let data = params.text("data")?.to_owned();
                if let Some(ui) = ui {
                    ui.editor_input(data);
                }
                return Ok(Value::Null);
            }
            "addCompleter" => {
                self.instance.add_completer(params.text("completer")?);
                self.extensions.apply_known(self.instance);
                return Ok(Value::Null);
            }
            "setEditor" => {
                let name = params.optional_text("component")?;
                self.instance.occupy("editor", name);
                return match (ui, name) {
                    (Some(ui), Some(name)) => component::editor(self.instance, ui, name),
                    _ => Ok(Value::Null),
                };
            }
            "setHidden" | "focus" => {
                if let (Some(ui), Some(component)) = (ui, self.instance.component(params.text("component")?))
                {
                    ui.arrange(
                        component.number,
                        match name {
                            "focus" => Arrange::Focused(params.flag("focused")?),
                            _ => Arrange::Hidden(params.flag("hidden")?),
                        },
                    );
                }
                return Ok(Value::Null);
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
                let place = match params.flag("overlay")? {
                    true => Place::Overlay(params.optional("overlayOptions")?.unwrap_or_default()),
                    false => Place::Dialog,
                };
                return match &ui {
                    Some(ui) => {
                        let awaited = params.optional("blocked")?;
                        self.while_asking("custom", "", || {
                            component::custom(self.instance, ui, name, place, awaited, self.cancel)
                        })
                    }
                    None => Ok(json!({})),
                };
            }
            "redraw" if params.get("toolCallId").is_some() => {
                Change::Redraw(params.text("toolCallId")?.to_owned())
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
            "setWorkingVisible" => {
                let is_visible = params.flag("visible")?;
                self.instance
                    .showed("visible".to_owned(), (!is_visible).then_some(Change::WorkingVisible(true)));
                Change::WorkingVisible(is_visible)
            }
            "setWorkingIndicator" => {
                let frames: Option<Vec<String>> = params.optional("frames")?;
                let ms = params
                    .optional::<u64>("intervalMs")?
                    .unwrap_or(INTERVAL_MS)
                    .clamp(INTERVAL_MIN_MS, 60_000);
                let interval = Duration::from_millis(ms);
                let undo = frames.as_ref().map(|_| Change::WorkingIndicator(None));
                self.instance.showed("indicator".to_owned(), undo);
                Change::WorkingIndicator(frames.map(|frames| Indicator { frames, interval }))
            }
            "setHiddenThinkingLabel" => {
                let label = owned("label")?;
                let undo = label.as_ref().map(|_| Change::ThinkingLabel(None));
                self.instance.showed("thinking".to_owned(), undo);
                Change::ThinkingLabel(label)
            }
            "setToolsExpanded" => Change::ToolsExpanded(params.flag("expanded")?),
            "desktopNotify" => Change::DesktopNotify {
                title: title()?.to_owned(),
                body: params.optional_text("body")?.unwrap_or_default().to_owned(),
            },
            "setEditorText" => Change::EditorText(params.text("text")?.to_owned()),
            "pasteToEditor" => Change::Paste(params.text("text")?.to_owned()),
            _ => return unknown(&format!("ui.{name}")),
        };
        if let Some(ui) = ui {
            ui.show(change);
        }
        Ok(Value::Null)
    }

    /// Asks the surface something. An empty object if there is none, or it does not know.
    fn read(&self, query: Query) -> Value {
        let answer = self.control.ui().map(|ui| ui.read(query)).unwrap_or_default();
        if answer.is_null() { json!({}) } else { answer }
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
        Ok(self.while_asking(dialog.kind(), dialog.title(), || ui.ask(dialog, timeout, self.cancel)))
    }

    /// Tells that the user is waited for while `ask` runs. Waits that overlap are told as one.
    fn while_asking<T>(&self, kind: &str, title: &str, ask: impl FnOnce() -> T) -> T {
        let tell = |event: &str, prompt: &Value| {
            self.control.hooked().tell(event, || prompt.clone(), self.control.root());
        };
        let asking = || self.extensions.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let mut prompt = json!({"reason": "ui_prompt", "kind": kind});
        if !title.is_empty() {
            prompt["title"] = title.into();
        }
        let is_first = {
            let mut asking = asking();
            asking.0 += 1;
            if asking.0 == 1 {
                asking.1.clone_from(&prompt);
            }
            asking.0 == 1
        };
        if is_first {
            tell("ui_prompt_start", &prompt);
        }
        let answer = ask();
        let ended = {
            let mut asking = asking();
            asking.0 -= 1;
            (asking.0 == 0).then(|| asking.1.take())
        };
        if let Some(prompt) = ended {
            tell("ui_prompt_end", &prompt);
        }
        answer
    }
}
