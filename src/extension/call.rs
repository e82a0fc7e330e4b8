//! The calls that extensions make.

use super::connection::{Answer, CALL_FAILED, CANCELLED, Connection};
use super::{Extensions, Instance, component};
use crate::agent::message::AgentMessage;
use crate::agent::tool::ToolOutput;
use crate::base::cancel::CancelToken;
use crate::jsonrpc::message::{Failure, INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::llm::message::{Content, ToolSpec};
use crate::llm::model::{Model, ThinkingLevel};
use crate::runtime::control::{Control, Streaming, user_message};
use crate::runtime::event::Event;
use crate::runtime::hook::{InputSource, custom_message};
use crate::runtime::nested::{Delivery, Nested};
use crate::runtime::task::{Ask, Task};
use crate::runtime::ui::{Change, Dialog, Severity, Ui, YES};
use crate::tools::process::peer::{self, Program};
use crossbeam_channel::{bounded, select};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of output of `exec` that are kept when nothing else is said.
const EXEC_OUTPUT: usize = 256 << 20;

/// Calls that may wait for somebody.
const WAITING: &[&str] = &[
    "exec",
    "models.complete",
    "session.compact",
    "session.fork",
    "session.navigate",
    "session.new",
    "session.reload",
    "session.switch",
    "session.waitForIdle",
    "tools.execute",
    "ui.confirm",
    "ui.custom",
    "ui.editor",
    "ui.input",
    "ui.select",
];

/// True if a call may wait for somebody. Others are answered in their order.
pub fn waits(method: &str, params: &Value) -> bool {
    WAITING.contains(&method)
        || (method == "session.sendUserMessage" && params["expandPromptTemplates"] == true)
}

/// Answers a call of an instance.
pub fn answer(
    extensions: &Arc<Extensions>,
    instance: &Arc<Instance>,
    method: &str,
    params: Value,
    cancel: &CancelToken,
) -> Answer {
    let params = match params {
        Value::Object(fields) => Params(fields),
        Value::Null => Params(Map::new()),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(Failure::new(INVALID_PARAMS, "\"params\" must be an object"));
        }
    };
    match method {
        "register" | "unregister" => return register(extensions, instance, method, &params),
        "log" => return log(extensions, instance, &params),
        "bus.emit" | "bus.on" | "bus.off" => return bus(extensions, instance, method, params),
        "flags.get" => return flag(extensions, &params),
        "exec" => return exec(extensions, &params, cancel),
        "tool.update" => {
            let id = params.text("toolCallId")?.to_owned();
            instance.update(&id, params.0);
            return Ok(Value::Null);
        }
        _ => {}
    }
    let control = extensions.control.get().ok_or_else(|| failed("There is no session yet"))?;
    let call = Call { control, instance, params: &params, cancel };
    match method.split_once('.') {
        Some(("session", name)) => call.session(name),
        Some(("models", name)) => call.models(name),
        Some(("tools", name)) => call.tools(name),
        Some(("ui", name)) => call.ui(name),
        _ if method == "commands.list" => Ok(json!({"commands": control.commands()})),
        _ if method == "settings.get" => {
            let config = control.config();
            let mut values = Value::Object(config.settings.values().clone());
            config.services.vault().hide_value(&mut values);
            Ok(values)
        }
        _ => unknown(method),
    }
}

fn unknown(method: &str) -> Answer {
    Err(Failure::new(METHOD_NOT_FOUND, format!("Unknown method: {method}")))
}

pub fn failed(why: impl std::fmt::Display) -> Failure {
    Failure::new(CALL_FAILED, why.to_string())
}

fn register(extensions: &Arc<Extensions>, instance: &Arc<Instance>, method: &str, params: &Params) -> Answer {
    let fields = Value::Object(params.0.clone());
    if method == "register" {
        instance.register(&fields).map_err(|fault| Failure::new(INVALID_PARAMS, fault))?;
    } else {
        instance.unregister(&fields);
    }
    extensions.apply(instance);
    Ok(Value::Null)
}

fn log(extensions: &Extensions, instance: &Instance, params: &Params) -> Answer {
    let message = params.text("message")?.to_owned();
    let severity = severity(params.optional_text("level")?)?;
    match extensions.control.get().and_then(Control::ui) {
        Some(ui) => {
            let message = format!("{}: {message}", instance.found.name);
            ui.show(Change::Notify { message, severity });
        }
        None => extensions.report(instance, "log", &message),
    }
    Ok(Value::Null)
}

fn bus(extensions: &Extensions, instance: &Instance, method: &str, mut params: Params) -> Answer {
    let channel = params.text("channel")?.to_owned();
    if method != "bus.emit" {
        instance.listen(&channel, method == "bus.on");
        return Ok(Value::Null);
    }
    let data = params.0.remove("data").unwrap_or_default();
    for listener in extensions.instances().iter().filter(|listener| listener.listens(&channel)) {
        if let Some(connection) = listener.connection() {
            let event = json!({"extension": listener.id, "channel": channel, "data": data});
            Connection::notify(&connection, "bus.event", event, &CancelToken::new());
        }
    }
    Ok(Value::Null)
}

fn flag(extensions: &Extensions, params: &Params) -> Answer {
    let name = params.text("name")?;
    let given = extensions.state().about.flags.get(name).cloned();
    let registered = || {
        let instances = extensions.instances();
        instances.iter().find_map(|instance| {
            let registration = instance.registration();
            let flag = registration.flags.iter().find(|flag| flag.name == name)?;
            flag.default.clone()
        })
    };
    Ok(json!({"value": given.or_else(registered)}))
}

fn exec(extensions: &Extensions, params: &Params, cancel: &CancelToken) -> Answer {
    let about = extensions.state().about.clone();
    let command = params.text("command")?;
    let args: Vec<String> = params.optional("args")?.unwrap_or_default();
    let cwd = params.optional_text("cwd")?.map_or(about.cwd.clone(), |cwd| about.cwd.join(cwd));
    let path = peer::find(command, &cwd, &about.env)
        .map_err(|error| failed(format_args!("Cannot start {command}: {error}")))?;
    let program = Program { path, args: args.into_iter().map(Into::into).collect(), cwd, env: about.env };
    let limit = params.optional::<u64>("timeout")?.filter(|&ms| ms > 0).map(Duration::from_millis);
    let output_max = params.optional("maxBuffer")?.unwrap_or(EXEC_OUTPUT);
    let ran = peer::run(&program, limit, output_max, cancel)
        .map_err(|error| failed(format_args!("Cannot start {command}: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = ran.code.unwrap_or(if ran.killed { 1 } else { 0 });
    let code = if ran.truncated && code == 0 { 1 } else { code };
    Ok(json!({"stdout": text(&ran.stdout), "stderr": text(&ran.stderr), "code": code, "killed": ran.killed,
        "truncated": ran.truncated}))
}

fn severity(name: Option<&str>) -> Result<Severity, Failure> {
    let name = name.unwrap_or("info");
    Severity::parse(name).ok_or_else(|| Failure::new(INVALID_PARAMS, format!("Unknown type: {name}")))
}

/// The fields of a call.
struct Params(Map<String, Value>);

impl Params {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<&str, Failure> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| Failure::new(INVALID_PARAMS, format!("\"{name}\" is missing")))
    }

    fn optional_text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let text = |value: &'_ Value| value.as_str().is_some();
        match self.get(name) {
            None => Ok(None),
            Some(value) if text(value) => Ok(value.as_str()),
            Some(_) => Err(Failure::new(INVALID_PARAMS, format!("\"{name}\" must be a string"))),
        }
    }

    fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let read = self.get(name).map(|value| serde_json::from_value(value.clone())).transpose();
        read.map_err(|error| Failure::new(INVALID_PARAMS, format!("\"{name}\": {error}")))
    }

    fn flag(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.optional(name)?.unwrap_or(false))
    }

    fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        let value = self.optional(name)?;
        value.ok_or_else(|| Failure::new(INVALID_PARAMS, format!("\"{name}\" is missing")))
    }
}

/// A call that needs the session.
struct Call<'a> {
    control: &'a Control,
    instance: &'a Arc<Instance>,
    params: &'a Params,
    cancel: &'a CancelToken,
}

fn json_of(value: impl Serialize) -> Answer {
    serde_json::to_value(value).map_err(failed)
}

impl Call<'_> {
    fn session(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        match name {
            "state" => Ok(self.state()),
            "header" => json_of(control.log().header()),
            "entries" => {
                let since = params.optional_text("since")?;
                let found = control.tree().entries(since);
                let (entries, leaf) = found
                    .ok_or_else(|| failed(format_args!("Entry not found: {}", since.unwrap_or_default())))?;
                Ok(json!({"entries": entries, "leafId": leaf}))
            }
            "branch" => {
                let from = params.optional_text("from")?;
                let log = control.log();
                let index = log.index();
                let leaf = from.or(log.leaf()).and_then(|id| index.find(id));
                if let (Some(from), None) = (from, leaf) {
                    return Err(failed(format_args!("Entry not found: {from}")));
                }
                let entries: Vec<_> =
                    index.path(leaf).into_iter().filter_map(|position| log.entry_at(position)).collect();
                Ok(json!({"entries": entries}))
            }
            "messages" => Ok(json!({"messages": *control.messages()})),
            "tree" => {
                let (tree, leaf) = control.tree().json();
                let tree: Value = serde_json::from_str(&tree).map_err(failed)?;
                Ok(json!({"tree": tree, "leafId": leaf}))
            }
            "systemPrompt" => {
                let (text, sections) = control.system_prompt();
                Ok(json!({"text": text, "sections": sections}))
            }
            "sendMessage" => {
                let message = custom_message(params.required("message")?).ok_or_else(|| {
                    Failure::new(INVALID_PARAMS, "\"message\" must have a \"customType\" and a \"content\"")
                })?;
                let delivery = match params.optional_text("deliverAs")? {
                    Some("nextTurn") => Delivery::NextTurn,
                    Some("followUp") => Delivery::Now(Streaming::FollowUp),
                    _ => Delivery::Now(Streaming::Steer),
                };
                control.send(message, delivery, params.flag("triggerTurn")?).map_err(failed)?;
                Ok(Value::Null)
            }
            "sendUserMessage" => self.send_user_message(),
            "appendEntry" => {
                let data = params.get("data").cloned();
                let id =
                    control.append_custom(params.text("customType")?.to_owned(), data).map_err(failed)?;
                Ok(json!({"id": id}))
            }
            "setName" => {
                let name = params.text("name")?;
                control.set_name(name, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(Value::Null)
            }
            "setLabel" => {
                let label = params.optional_text("label")?;
                let entry = control.tree().set_label(params.text("entryId")?, label).map_err(failed)?;
                self.emit(&Event::EntryAppended { entry: &entry });
                Ok(Value::Null)
            }
            "abort" => {
                control.abort();
                Ok(Value::Null)
            }
            "shutdown" => {
                let root = control.root().clone();
                control.when_idle(move || root.cancel());
                Ok(Value::Null)
            }
            "waitForIdle" => {
                let (tell, idle) = bounded(1);
                control.when_idle(move || {
                    let _ = tell.try_send(());
                });
                select! {
                    recv(idle) -> _ => Ok(Value::Null),
                    recv(self.cancel.receiver()) -> _ => Err(cancelled()),
                }
            }
            "new" => {
                let parent = params.optional_text("parentSession")?.map(str::to_owned);
                self.replace(Ask::New { parent })
            }
            "switch" => self.replace(Ask::Switch(params.text("sessionPath")?.into())),
            "fork" => {
                let entry = params.text("entryId")?.to_owned();
                self.replace(match params.optional_text("position")? {
                    Some("at") => Ask::ForkAt(entry),
                    _ => Ask::ForkBefore(entry),
                })
            }
            "reload" => self.on_session(Ask::Reload),
            "compact" => {
                let instructions = params.optional_text("customInstructions")?.map(str::to_owned);
                self.on_session(Ask::Compact { instructions })
            }
            "navigate" => self.navigate(),
            _ => unknown(&format!("session.{name}")),
        }
    }

    fn state(&self) -> Value {
        let control = self.control;
        let now = control.snapshot();
        let leaf = control.log().leaf().map(str::to_owned);
        let usage = control.context_usage().map(|usage| {
            json!({"tokens": usage.tokens, "contextWindow": usage.window, "percent": usage.percent()})
        });
        let mut state = json!({
            "sessionId": now.session_id,
            "cwd": now.cwd.to_string_lossy(),
            "leafId": leaf,
            "isIdle": control.is_idle(),
            "hasPendingMessages": now.pending_message_count > 0,
            "model": now.model.shown(),
            "thinkingLevel": now.thinking,
            "activeTools": now.active_tools,
            "contextUsage": usage,
        });
        if let Some(path) = now.session_file {
            state["sessionFile"] = path.to_string_lossy().into();
        }
        if let Some(name) = now.session_name {
            state["sessionName"] = name.into();
        }
        state
    }

    fn send_user_message(&self) -> Answer {
        let params = self.params;
        let content: Content = params.required("content")?;
        let (text, images) = match content {
            Content::Text(text) => (text, Vec::new()),
            Content::Blocks(blocks) => {
                let (texts, others): (Vec<_>, Vec<_>) =
                    blocks.into_iter().partition(|block| block.as_text().is_some());
                let texts: Vec<&str> = texts.iter().filter_map(|block| block.as_text()).collect();
                (texts.join("\n"), others)
            }
        };
        let streaming = match params.optional_text("deliverAs")? {
            Some("steer") => Some(Streaming::Steer),
            Some("followUp") => Some(Streaming::FollowUp),
            _ => None,
        };
        if streaming.is_none() && self.control.snapshot().is_streaming {
            return Err(failed(
                "Agent is already processing. Specify deliverAs ('steer' or 'followUp') to queue the message.",
            ));
        }
        let expands = params.flag("expandPromptTemplates")?;
        let looked = match expands {
            true => self.control.take_input(text, images, InputSource::Extension, streaming, self.cancel),
            false => Some((text, images)),
        };
        let Some((mut text, images)) = looked else { return Ok(Value::Null) };
        if expands {
            text = self.control.expand(text).0;
        }
        let delivery = Delivery::Now(streaming.unwrap_or(Streaming::Steer));
        self.control.send(user_message(text, images), delivery, true).map_err(failed)?;
        Ok(Value::Null)
    }

    fn navigate(&self) -> Answer {
        let params = self.params;
        let owned = |name: &str| params.optional_text(name).map(|text| text.map(str::to_owned));
        self.on_session(Ask::Navigate {
            target: params.text("targetId")?.to_owned(),
            summarize: params.flag("summarize")?,
            instructions: owned("customInstructions")?,
            replace_instructions: params.flag("replaceInstructions")?,
            label: owned("label")?,
        })
    }

    /// Ends the run and has the session go on with another conversation.
    fn replace(&self, ask: Ask) -> Answer {
        self.control.abort();
        self.on_session(ask)
    }

    /// Has the session's thread do something, and waits for that.
    fn on_session(&self, ask: Ask) -> Answer {
        let (tell, told) = bounded(1);
        self.control.hand_over(Task::Ask(ask, tell)).map_err(failed)?;
        select! {
            recv(told) -> answer => match answer {
                Ok(answer) => answer.map_err(failed),
                Err(_) => Err(failed("The session has ended")),
            },
            recv(self.cancel.receiver()) -> _ => Err(cancelled()),
        }
    }

    /// Events that no run causes go to the surface.
    fn emit(&self, event: &Event<'_>) {
        if let Some(ui) = self.control.ui() {
            ui.event(event);
        }
    }

    fn model(&self) -> Result<Arc<Model>, Failure> {
        let params = self.params;
        let (Some(provider), Some(id)) =
            (params.optional_text("provider")?, params.optional_text("modelId")?)
        else {
            return Ok(self.control.models().current());
        };
        let found = self.control.config().services.registry.find(provider, id);
        found.ok_or_else(|| failed(format_args!("Model not found: {provider}/{id}")))
    }

    fn models(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        let models = control.models();
        let shown = |models: Vec<Arc<Model>>| -> Vec<Value> {
            models.iter().map(|model| json!(model.shown())).collect()
        };
        match name {
            "list" => Ok(json!({"models": shown(models.available())})),
            "current" => json_of(models.current().shown()),
            "scoped" => {
                let scoped = models.scope();
                let one = |scoped: &crate::runtime::Scoped| json!({"model": scoped.model.shown(), "thinkingLevel": scoped.thinking});
                Ok(json!({"models": scoped.iter().map(one).collect::<Vec<_>>()}))
            }
            "set" => {
                let (provider, id) = (params.text("provider")?, params.text("modelId")?);
                let set = models.set(provider, id, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(json!({"ok": set.is_some()}))
            }
            "thinkingLevels" => {
                Ok(json!({"levels": models.thinking_levels(), "current": control.snapshot().thinking}))
            }
            "setThinkingLevel" => {
                let name = params.text("level")?;
                let level = ThinkingLevel::parse(name)
                    .ok_or_else(|| Failure::new(INVALID_PARAMS, format!("Unknown level \"{name}\"")))?;
                let level = models.set_thinking(level, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(json!({"level": level}))
            }
            "complete" => {
                let level = params.optional_text("thinkingLevel")?;
                let nested = Nested {
                    model: self.model()?,
                    thinking: level.and_then(ThinkingLevel::parse).unwrap_or(ThinkingLevel::Off),
                    max_tokens: params.optional("maxTokens")?,
                    system_prompt: params.optional_text("systemPrompt")?.map(str::to_owned),
                    tools: params.optional::<Vec<ToolSpec>>("tools")?.unwrap_or_default(),
                    messages: params.required::<Vec<AgentMessage>>("messages")?,
                };
                let message = control.complete(nested, self.cancel);
                json_of(AgentMessage::Assistant(Arc::new(message)))
            }
            _ => unknown(&format!("models.{name}")),
        }
    }

    fn tools(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        match name {
            "list" => {
                let all = control.tools().all();
                let one = |(tool, active): &(Arc<dyn crate::agent::tool::Tool>, bool)| {
                    let info = tool.info();
                    json!({
                        "name": info.spec.name,
                        "label": info.label,
                        "description": info.spec.description,
                        "parameters": info.spec.parameters,
                        "promptGuidelines": info.rules,
                        "exposure": info.exposure.name(),
                        "annotations": {"readOnlyHint": info.reads_only},
                        "active": active,
                        "sourceInfo": control.tool_source(&info.spec.name).unwrap_or_else(|| json!({
                            "path": format!("builtin:{}", info.spec.name), "source": "builtin",
                            "scope": "temporary", "origin": "top-level",
                        })),
                    })
                };
                Ok(json!({"tools": all.iter().map(one).collect::<Vec<_>>()}))
            }
            "active" => Ok(json!({"names": control.snapshot().active_tools})),
            "setActive" => {
                let names: Vec<String> = params.required("names")?;
                Ok(json!({"names": control.tools().set_active(&names)}))
            }
            "execute" => {
                let parent = params.optional_text("toolCallId")?.unwrap_or("call");
                let id = format!("{parent}/{}", crate::runtime::unique_id());
                let arguments = params.optional("arguments")?.unwrap_or_default();
                let nobody = |_: ToolOutput| {};
                let (output, is_error) =
                    control.execute(&id, params.text("name")?, arguments, &nobody, self.cancel);
                let mut result = json!({"content": output.content, "isError": is_error});
                let fields = [("details", output.details), ("structuredContent", output.structured)];
                for (name, value) in fields {
                    if let Some(value) = value {
                        result[name] = value;
                    }
                }
                Ok(result)
            }
            _ => unknown(&format!("tools.{name}")),
        }
    }

    fn ui(&self, name: &str) -> Answer {
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
            "setStatus" => Change::Status { key: params.text("key")?.to_owned(), text: owned("text")? },
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
            "setWorkingMessage" => Change::WorkingMessage(owned("message")?),
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
        self.instance.occupy(place, name);
        match name {
            Some(name) => component::place(self.instance, ui, name, move |lines| change(Some(lines))),
            None => {
                ui.show(change(self.params.optional("lines")?));
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

pub fn cancelled() -> Failure {
    Failure::new(CANCELLED, "Cancelled")
}
