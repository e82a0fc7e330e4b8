//! The calls that extensions make.

mod auth;
mod model;
mod session;
mod tool;
mod ui;

use super::connection::{CALL_FAILED, CANCELLED, Connection};
use super::registration::{Registration, ServerEntry, changes_models};
use super::request::Answer;
use super::{Extensions, Instance, provider};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::jsonrpc::message::{Failure, INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::runtime::control::Control;
use crate::runtime::event::Event;
use crate::runtime::lent::RegisteredServer;
use crate::runtime::ui::{Asker, Change, Dialog, Severity, YES};
use crate::tools::process::peer::{self, Program};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of output of `exec` that are kept when nothing else is said.
const EXEC_OUTPUT: usize = 256 << 20;

/// Calls that may wait for somebody.
const WAITING: &[&str] = &[
    "auth.prompt",
    "exec",
    "loaded",
    "models.classify",
    "models.complete",
    "models.generateImages",
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
    "ui.editorRender",
    "ui.getEditorText",
    "ui.input",
    "ui.keybindings",
    "ui.select",
    "ui.setTheme",
    "ui.statuses",
    "ui.theme",
    "ui.themes",
    "ui.toolsExpanded",
];

/// True if a call may wait for somebody. Others are answered in their order.
pub fn waits(method: &str, params: &Value) -> bool {
    // The extension is asked for the models of its account meanwhile.
    let asks_back = || {
        let providers = params["providers"].as_array().into_iter().flatten();
        method == "register" && providers.into_iter().any(changes_models)
    };
    WAITING.contains(&method)
        || asks_back()
        || (method == "session.sendUserMessage" && params["expandPromptTemplates"] == true)
        || (matches!(method, "session.sendUserMessage" | "session.sendMessage") && params["wait"] == true)
}

/// Answers a call of an instance.
pub fn answer(
    extensions: &Arc<Extensions>,
    instance: &Arc<Instance>,
    id: Option<&Value>,
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
        "loaded" => {
            extensions.loaded(instance, &Value::Object(params.0));
            return Ok(Value::Null);
        }
        "log" => return log(extensions, instance, &params),
        "bus.emit" | "bus.on" | "bus.off" => return bus(extensions, instance, method, params),
        "flags.get" => return flag(extensions, &params),
        "exec" => return exec(extensions, &params, cancel),
        "auth.open" | "auth.progress" | "auth.prompt" => {
            return params.talk(instance, method, cancel);
        }
        "provider.event" => {
            let event = params.get("event").cloned().unwrap_or_default();
            instance.streamed(params.text("stream")?, event);
            return Ok(Value::Null);
        }
        "tool.update" => {
            let id = params.text("toolCallId")?.to_owned();
            instance.update(&id, params.0);
            return Ok(Value::Null);
        }
        _ => {}
    }
    if matches!(method, "tools.execute" | "session.waitForIdle") {
        // It may wait for a tool call, which would wait for this instance.
        instance.set_ready();
    }
    let Some(control) = extensions.control.get() else {
        let about = extensions.state().about.clone();
        return early(about.asker.as_ref(), method, &params)
            .unwrap_or_else(|| Err(failed("There is no session yet")));
    };
    let call = Call { extensions, control, instance, id, params: &params, cancel };
    match method.split_once('.') {
        Some(("session", name)) => call.session(name),
        Some(("models", name)) => call.models(name),
        Some(("tools", name)) => call.tools(name),
        Some(("ui", name)) => call.ui(name),
        _ if method == "commands.list" => Ok(json!({"commands": control.commands()})),
        _ if method == "mcp.servers" => Ok(json!({"servers": control.registered_servers()})),
        _ if method == "settings.get" => {
            let config = control.config();
            let mut values = Value::Object(config.settings.values().clone());
            config.services.vault().hide_value(&mut values);
            Ok(values)
        }
        _ => unknown(method),
    }
}

/// Answers a question that comes before there is a session. None for other calls.
fn early(asker: Option<&Asker>, method: &str, params: &Params) -> Option<Answer> {
    let ask = |dialog: &Dialog<'_>| asker.and_then(|asker| asker(dialog));
    let answer = || {
        let title = || params.text("title");
        Ok(match method {
            "ui.select" => {
                let options: Vec<String> = params.required("options")?;
                json!({"value": ask(&Dialog::Select { title: title()?, options: &options })})
            }
            "ui.confirm" => {
                let message = params.optional_text("message")?.unwrap_or_default();
                let value = ask(&Dialog::Confirm { title: title()?, message });
                json!({"confirmed": value.as_deref() == Some(YES)})
            }
            "ui.input" => {
                let placeholder = params.optional_text("placeholder")?;
                json!({"value": ask(&Dialog::Input { title: title()?, placeholder })})
            }
            _ => Value::Null,
        })
    };
    matches!(method, "ui.select" | "ui.confirm" | "ui.input").then(answer)
}

fn unknown(method: &str) -> Answer {
    Err(Failure::new(METHOD_NOT_FOUND, format!("Unknown method: {method}")))
}

pub fn failed(why: impl std::fmt::Display) -> Failure {
    Failure::new(CALL_FAILED, why.to_string())
}

fn register(extensions: &Arc<Extensions>, instance: &Arc<Instance>, method: &str, params: &Params) -> Answer {
    let fields = Value::Object(params.0.clone());
    let mut faults = Vec::new();
    if method == "register" {
        check_servers(extensions, instance, &fields)
            .and_then(|()| check_virtual_models(extensions, &fields))
            .map_err(|fault| Failure::new(INVALID_PARAMS, fault))?;
        faults = instance.register(&fields);
        extensions.report_faults(instance, &faults);
    } else {
        instance.unregister(&fields);
    }
    match waits(method, &fields) {
        true => extensions.apply(instance),
        false => extensions.apply_known(instance),
    }
    match faults.is_empty() {
        true => Ok(Value::Null),
        false => Err(Failure::new(INVALID_PARAMS, faults.join("; "))),
    }
}

/// Refuses virtual models that cannot be used, or have the name of another model.
fn check_virtual_models(extensions: &Extensions, fields: &Value) -> Result<(), String> {
    let Some(entries) = fields["virtualModels"].as_array() else { return Ok(()) };
    let services = extensions.state().about.services.clone();
    entries.iter().try_for_each(|entry| provider::virtual_model(entry, &services).map(drop))
}

/// Refuses MCP servers that cannot be used, or whose names another extension has.
fn check_servers(extensions: &Extensions, instance: &Instance, fields: &Value) -> Result<(), String> {
    let Some(control) = extensions.control.get().filter(|_| !fields["mcpServers"].is_null()) else {
        return Ok(());
    };
    let path = instance.found.path.to_string_lossy();
    let known = control.registered_servers();
    for ServerEntry { name, config } in Registration::read(fields).0.servers {
        let holder = known.iter().find(|known| known.name == name && known.extension_path != path);
        if let Some(holder) = holder {
            return Err(format!("The MCP server \"{name}\" is registered by {}", holder.extension_path));
        }
        let server = RegisteredServer { name, config, extension_path: path.to_string() };
        let fault = control.hooked().0.iter().find_map(|hooks| hooks.server_fault(&server));
        if let Some(fault) = fault {
            return Err(format!("The MCP server \"{}\": {fault}", server.name));
        }
    }
    Ok(())
}

fn log(extensions: &Extensions, instance: &Instance, params: &Params) -> Answer {
    let message = params.text("message")?.to_owned();
    let severity = severity(params.optional_text("level")?)?;
    if let Some(event) = params.optional_text("event")? {
        extensions.report(instance, event, &message);
        return Ok(Value::Null);
    }
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
    let env = about.env();
    let path = peer::find(command, &cwd, &env)
        .map_err(|error| failed(format_args!("Cannot start {command}: {error}")))?;
    let program = Program { path, args: args.into_iter().map(Into::into).collect(), cwd, env };
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
    extensions: &'a Arc<Extensions>,
    control: &'a Control,
    instance: &'a Arc<Instance>,
    /// Id of the request.
    id: Option<&'a Value>,
    params: &'a Params,
    cancel: &'a CancelToken,
}

fn json_of(value: impl Serialize) -> Answer {
    serde_json::to_value(value).map_err(failed)
}

impl Call<'_> {
    /// Events that no run causes go to the surface.
    fn emit(&self, event: &Event<'_>) {
        if let Some(ui) = self.control.ui() {
            ui.event(event);
        }
    }
}

pub fn cancelled() -> Failure {
    Failure::new(CANCELLED, "Cancelled")
}
