//! What an extension registers, as it is written in messages and manifests.

use crate::agent::tool::{Exposure, Namespace, Serves, ToolInfo};
use crate::base::json::json;
use crate::llm::message::{Extra, ToolSpec};
use crate::runtime::lent::{self, Provider};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// What one instance has registered so far.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    pub tools: Vec<ToolEntry>,
    pub commands: Vec<CommandEntry>,
    pub flags: Vec<FlagEntry>,
    pub shortcuts: Vec<ShortcutEntry>,
    pub events: Vec<Subscription>,
    /// Sections of the system prompt.
    pub prompt: Vec<(String, String)>,
    pub renderers: Renderers,
    /// Providers with their models, as in `models.json`.
    pub providers: Vec<Value>,
    /// Models of its providers are still being found out.
    pub models_pending: bool,
    /// MCP servers, as in `mcp.json`.
    pub servers: Vec<ServerEntry>,
    /// Virtual models, as they are written.
    pub virtual_models: Vec<Value>,
    /// Calls of any tool are drawn by it.
    pub tool_renderers: bool,
    /// The surfaces whose Markdown it changes before it is shown.
    pub transforms: Vec<String>,
}

/// Surfaces of a transformer that names none.
const TRANSFORMED: &[&str] = &["user", "assistant", "assistant-thinking"];

/// Custom types of messages and entries that are drawn by the extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Renderers {
    #[serde(default)]
    pub messages: Vec<String>,
    #[serde(default)]
    pub entries: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ToolEntry {
    pub info: ToolInfo,
    /// What the extension draws of its calls: `call`, `result`.
    pub renders: Vec<String>,
    pub prepares: bool,
    pub timeout: Option<Duration>,
}

/// An MCP server that an extension brings.
#[derive(Clone, Debug, Deserialize)]
pub struct ServerEntry {
    pub name: String,
    pub config: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CommandEntry {
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub completes: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FlagEntry {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(rename = "type")]
    pub kind: FlagKind,
    #[serde(default)]
    pub default: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    Boolean,
    String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ShortcutEntry {
    pub key: String,
    #[serde(default)]
    pub description: Option<String>,
}

/// An event that an instance handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub event: String,
    pub timeout: Option<Duration>,
    /// False if nobody waits for the handler.
    pub waits: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EventForm {
    Name(String),
    #[serde(rename_all = "camelCase")]
    Entry {
        event: String,
        timeout_ms: Option<u64>,
        wait: Option<bool>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolForm {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Value,
    label: Option<String>,
    prompt_snippet: Option<String>,
    #[serde(default)]
    prompt_guidelines: Vec<String>,
    execution_mode: Option<String>,
    exposure: Option<String>,
    output_schema: Option<Value>,
    default_active: Option<bool>,
    namespace: Option<NamespaceForms>,
    #[serde(default)]
    annotations: Map<String, Value>,
    #[serde(default)]
    prepares: bool,
    #[serde(default)]
    renders: Vec<String>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NamespaceForms {
    Name(String),
    Entry(NamespaceForm),
}

#[derive(Deserialize)]
struct NamespaceForm {
    name: String,
    aliases: Option<Vec<String>>,
    description: Option<String>,
    instructions: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransformerForm {
    message_types: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct SectionForm {
    name: String,
    text: Option<String>,
}

/// True if the models of a provider depend on the account that is signed in.
pub fn changes_models(provider: &Value) -> bool {
    provider["oauth"]["modifiesModels"] == true
}

/// What the fields of a registration hold.
#[derive(Default)]
struct Parts {
    registration: Registration,
    /// Sections that are taken away.
    gone: Vec<String>,
    /// What is wrong with entries that are left out.
    faults: Vec<String>,
}

impl Registration {
    /// Reads the fields of a registration. Gives what is wrong with entries that are left out, too.
    pub fn read(fields: &Value) -> (Self, Vec<String>) {
        let Parts { registration, faults, .. } = parts(fields);
        (registration, faults)
    }

    /// Adds what `fields` register; entries of a known name are replaced. Gives what is wrong with entries that are
    /// left out.
    pub fn add(&mut self, fields: &Value) -> Vec<String> {
        let Parts { registration: new, gone, faults } = parts(fields);
        put(&mut self.tools, new.tools, |entry| &entry.info.spec.name);
        put(&mut self.commands, new.commands, |entry| &entry.name);
        put(&mut self.flags, new.flags, |entry| &entry.name);
        put(&mut self.shortcuts, new.shortcuts, |entry| &entry.key);
        put(&mut self.events, new.events, |entry| &entry.event);
        put(&mut self.servers, new.servers, |entry| &entry.name);
        put(&mut self.prompt, new.prompt, |(name, _)| name);
        self.prompt.retain(|(name, _)| !gone.contains(name));
        if fields.get("renderers").is_some() {
            self.renderers = new.renderers;
        }
        self.tool_renderers |= new.tool_renderers;
        if fields.get("markdownTransformers").is_some() {
            self.transforms = new.transforms;
        }
        if let Some(pending) = fields["modelsPending"].as_bool() {
            self.models_pending = pending;
        }
        for provider in new.providers {
            self.providers.retain(|known| known["name"] != provider["name"]);
            self.providers.push(provider);
        }
        for model in new.virtual_models {
            self.virtual_models.retain(|known| !is_same_model(known, &model));
            self.virtual_models.push(model);
        }
        faults
    }

    /// Takes away what lists of names in `fields` name.
    pub fn remove(&mut self, fields: &Value) {
        let named = |kind: &str, name: &str| {
            let names = fields[kind].as_array();
            names.is_some_and(|names| names.iter().any(|known| known == name))
        };
        self.tools.retain(|entry| !named("tools", &entry.info.spec.name));
        self.commands.retain(|entry| !named("commands", &entry.name));
        self.flags.retain(|entry| !named("flags", &entry.name));
        self.shortcuts.retain(|entry| !named("shortcuts", &entry.key));
        self.events.retain(|entry| !named("events", &entry.event));
        self.prompt.retain(|(name, _)| !named("prompt", name));
        self.servers.retain(|entry| !named("mcpServers", &entry.name));
        self.providers.retain(|entry| !named("providers", entry["name"].as_str().unwrap_or_default()));
        let models = fields["virtualModels"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.virtual_models.retain(|known| !models.iter().any(|model| is_same_model(known, model)));
    }
}

fn is_same_model(a: &Value, b: &Value) -> bool {
    a["provider"] == b["provider"] && a["id"] == b["id"]
}

fn put<T>(known: &mut Vec<T>, new: Vec<T>, name: impl Fn(&T) -> &String) {
    for entry in new {
        match known.iter_mut().find(|known| name(known) == name(&entry)) {
            Some(place) => *place = entry,
            None => known.push(entry),
        }
    }
}

fn parts(fields: &Value) -> Parts {
    let mut parts = Parts::default();
    let Parts { registration, gone, faults } = &mut parts;
    registration.tools = list(fields, "tools", faults, tool);
    registration.commands = list(fields, "commands", faults, |command: CommandEntry| {
        check_name("command", &command.name).map(|()| command)
    });
    registration.flags = list(fields, "flags", faults, Ok);
    registration.shortcuts = list(fields, "shortcuts", faults, Ok);
    registration.events = list(fields, "events", faults, |form| Ok(subscription(form)));
    if let Some(renderers) = fields.get("renderers") {
        match Renderers::deserialize(renderers) {
            Ok(renderers) => registration.renderers = renderers,
            Err(error) => faults.push(format!("\"renderers\": {error}")),
        }
    }
    registration.providers = list(fields, "providers", faults, |provider: Value| {
        check_name("provider", provider["name"].as_str().unwrap_or_default())?;
        Provider::read(provider.clone()).map(|_| provider)
    });
    registration.servers = list(fields, "mcpServers", faults, Ok);
    registration.virtual_models =
        list(fields, "virtualModels", faults, |model| lent::virtual_model(&model).map(|_| model));
    let usual = || TRANSFORMED.iter().map(|name| (*name).to_owned()).collect();
    let transformers = list(fields, "markdownTransformers", faults, |form: TransformerForm| {
        Ok(form.message_types.unwrap_or_else(usual))
    });
    registration.transforms = transformers.concat();
    registration.tool_renderers = fields["toolRenderers"] == true;
    for SectionForm { name, text } in list(fields, "prompt", faults, Ok) {
        match text {
            Some(text) => registration.prompt.push((name, text)),
            None => gone.push(name),
        }
    }
    parts
}

/// The entries of a list. What is wrong with those that are left out goes to `faults`.
fn list<F: for<'a> Deserialize<'a>, T>(
    fields: &Value,
    name: &str,
    faults: &mut Vec<String>,
    read: impl Fn(F) -> Result<T, String>,
) -> Vec<T> {
    let entries = match &fields[name] {
        Value::Null => &[],
        Value::Array(entries) => entries.as_slice(),
        // One section may stand without a list.
        one => std::slice::from_ref(one),
    };
    let read = |entry: &Value| {
        let mut entry = entry.clone();
        if let Value::Object(entry) = &mut entry {
            entry.retain(|_, value| !value.is_null());
        }
        F::deserialize(entry).map_err(|error| error.to_string()).and_then(&read)
    };
    let read = entries.iter().map(read);
    read.filter_map(|entry| entry.map_err(|fault| faults.push(format!("\"{name}\": {fault}"))).ok()).collect()
}

fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    match name.is_empty() || name.len() > 128 || name.contains(is_bad) {
        true => Err(format!("the name of a {kind} must have 1 to 128 bytes and no blanks: {name:?}")),
        false => Ok(()),
    }
}

fn subscription(form: EventForm) -> Subscription {
    match form {
        EventForm::Name(event) => Subscription { event, timeout: None, waits: true },
        EventForm::Entry { event, timeout_ms, wait } => {
            /// Limit of a limit: an hour.
            const MAX_MS: u64 = 3_600_000;
            let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.min(MAX_MS)));
            Subscription { event, timeout, waits: wait.unwrap_or(true) }
        }
    }
}

fn tool(form: ToolForm) -> Result<ToolEntry, String> {
    check_name("tool", &form.name)?;
    let is_schema = form.parameters.get("type").is_none_or(|kind| kind == "object");
    if !form.parameters.is_object() || !is_schema {
        return Err(format!(
            "\"parameters\" of the tool {} must be a JSON schema of the type object",
            form.name
        ));
    }
    let mut parameters = form.parameters;
    parameters["type"] = json!("object");
    let exposure = match form.exposure.as_deref() {
        None => Exposure::Direct,
        Some(name) => Exposure::parse(name)
            .ok_or_else(|| format!("\"exposure\" of the tool {} is not known: {name:?}", form.name))?,
    };
    let info = ToolInfo {
        label: form.label.unwrap_or_else(|| form.name.clone()),
        spec: ToolSpec {
            name: form.name,
            description: form.description,
            parameters,
            extra: Extra::new(),
            ..ToolSpec::default()
        },
        snippet: form.prompt_snippet,
        rules: form.prompt_guidelines,
        serves: Serves::default(),
        sequential: form.execution_mode.as_deref() == Some("sequential"),
        reads_only: form.annotations.get("readOnlyHint") == Some(&Value::Bool(true)),
        exposure,
        starts_inactive: form.default_active == Some(false),
        namespace: form.namespace.map(|form| {
            Arc::new(match form {
                NamespaceForms::Name(name) => {
                    Namespace { name, aliases: Vec::new(), description: None, instructions: None }
                }
                NamespaceForms::Entry(NamespaceForm { name, aliases, description, instructions }) => {
                    Namespace { name, aliases: aliases.unwrap_or_default(), description, instructions }
                }
            })
        }),
        result: form.output_schema.filter(Value::is_object),
    };
    Ok(ToolEntry {
        info,
        renders: form.renders,
        prepares: form.prepares,
        timeout: form.timeout_ms.map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_registered_again_is_replaced_and_names_take_away() {
        let mut all = Registration::default();
        let tool = |name: &str, about: &str| json!({"name": name, "description": about, "parameters": {}});
        all.add(&json!({"tools": [tool("a", "1"), tool("b", "1")], "commands": [{"name": "c"}],
            "events": ["input", {"event": "tool_call", "timeoutMs": 5, "wait": false}],
            "prompt": {"name": "p", "text": "x"}, "unknown": 1}));
        all.add(&json!({"tools": [tool("a", "2")], "prompt": [{"name": "q", "text": "y"}]}));
        let tools: Vec<(&str, &str)> =
            all.tools.iter().map(|tool| (&*tool.info.spec.name, &*tool.info.spec.description)).collect();
        assert_eq!(tools, [("a", "2"), ("b", "1")]);
        let limited =
            Subscription { event: "tool_call".into(), timeout: Some(Duration::from_millis(5)), waits: false };
        assert_eq!(all.events[1], limited);
        all.remove(&json!({"tools": ["b", "z"], "events": ["input"], "commands": ["c"]}));
        assert_eq!((all.tools.len(), all.events.len(), all.commands.len()), (1, 1, 0));
        all.add(&json!({"prompt": {"name": "p", "text": null}}));
        assert_eq!(all.prompt, [("q".to_owned(), "y".to_owned())]);
    }

    #[test]
    fn a_bad_entry_is_named_and_left_out() {
        let good = json!({"name": "good", "parameters": {}});
        let rows = [
            (json!({"tools": 1}), "\"tools\": invalid type"),
            (json!({"tools": [{"name": "a"}, good]}), "\"tools\": missing field `parameters`"),
            (json!({"tools": [good, {"name": "a b", "parameters": {}}]}), "no blanks"),
            (json!({"tools": [{"name": "a", "parameters": []}, good]}), "JSON schema"),
            (json!({"tools": [{"name": "a", "parameters": {"type": "string"}}, good]}), "JSON schema"),
            (json!({"tools": [{"name": "a", "parameters": {}, "exposure": "secret"}, good]}), "exposure"),
            (json!({"commands": [{}], "tools": [good]}), "\"commands\""),
            (json!({"events": [7], "tools": [good]}), "\"events\""),
            (json!({"flags": [{"name": "f", "type": "number"}], "tools": [good]}), "\"flags\""),
            (json!({"virtualModels": [{"provider": "p", "id": " "}], "tools": [good]}), "must not be empty"),
            (json!({"providers": [{"name": "pp"}], "tools": [good]}), "Provider \"pp\": says nothing"),
        ];
        for (fields, part) in rows {
            let (registration, faults) = Registration::read(&fields);
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(part)), "{fields}: {faults:?}");
            let names: Vec<_> = registration.tools.iter().map(|tool| &*tool.info.spec.name).collect();
            assert_eq!(names.is_empty(), fields["tools"] == 1, "{fields}");
            assert!(names.iter().all(|name| *name == "good"), "{fields}");
        }
    }

    #[test]
    fn null_stands_for_no_field() {
        let namespaces = [
            (json!(null), None),
            (json!("n"), Some("n")),
            (json!({"name": "n", "aliases": null, "description": null}), Some("n")),
        ];
        for (namespace, expected) in namespaces {
            let tool = json!({"name": "a", "parameters": {}, "label": null, "promptGuidelines": null,
                "annotations": null, "renders": null, "namespace": namespace});
            let models = json!([{"provider": "p", "id": "a b", "name": null, "input": null,
                "contextWindow": null, "thinkingLevels": ["off", "ultra"]}]);
            let (registration, faults) =
                Registration::read(&json!({"tools": [tool], "virtualModels": models}));
            assert_eq!(faults, [""; 0]);
            let namespace = &registration.tools[0].info.namespace;
            assert_eq!(namespace.as_ref().map(|namespace| &*namespace.name), expected);
            assert_eq!(registration.virtual_models.len(), 1);
        }
    }
}
