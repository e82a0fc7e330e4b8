//! What servers on this machine say about their models, read with suspicion: anything may listen on a
//! port, so a field counts only when it has the shape it should have.

use super::{Kind, Tools};
use serde_json::Value;

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub id: String,
    /// Tokens that one request may take, all in all.
    pub window: Option<u64>,
    /// Tokens of one answer, at most.
    pub answer_max: Option<u64>,
    pub tools: Tools,
    pub vision: bool,
    /// Thinks before it answers.
    pub thinks: bool,
    /// Thinking can be switched by an argument of its chat template.
    pub thinking_switch: bool,
    pub loaded: bool,
    /// Behind a llama.cpp router, which loads models on demand.
    pub routed: bool,
    /// False for what only embeds or ranks.
    pub answers: bool,
}

impl Listed {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            window: None,
            answer_max: None,
            tools: Tools::Unknown,
            vision: false,
            thinks: false,
            thinking_switch: false,
            loaded: true,
            routed: false,
            answers: true,
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The name of a model: nothing that could not stand in a line.
fn name<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    text(value, field).filter(|name| !name.chars().any(char::is_control))
}

/// A number of tokens; servers write 0 or -1 for "not set".
fn tokens(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64().filter(believable)
}

/// A number of tokens as LiteLLM's proxy tells it, with a model or among the facts about it.
fn gateway(entry: &Value, name: &str) -> Option<u64> {
    tokens(entry, name).or_else(|| tokens(entry.get("model_info")?, name))
}

fn believable(count: &u64) -> bool {
    (1..=1_000_000_000).contains(count)
}

fn holds(value: &Value, name: &str, word: &str) -> bool {
    let list = value.get(name).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|item| item == word))
}

/// `/v1/models`: `{"data": [{"id", …}]}`.
pub(super) fn models(list: &Value) -> Option<Vec<Listed>> {
    let data = list.get("data")?.as_array()?;
    // vLLM lists adapters without a length of their own: they share the model's.
    let shared = data.iter().find_map(|entry| tokens(entry, "max_model_len"));
    data.iter()
        .map(|entry| {
            let mut model = Listed::new(name(entry, "id")?);
            let meta = entry.get("meta").unwrap_or(&Value::Null);
            model.window = tokens(entry, "max_model_len")
                .or(shared)
                .or_else(|| tokens(meta, "n_ctx"))
                .or_else(|| tokens(entry, "context_length"))
                .or_else(|| gateway(entry, "max_input_tokens"))
                .or_else(|| tokens(meta, "n_ctx_train"));
            model.answer_max = gateway(entry, "max_output_tokens");
            if let Some(architecture) = entry.get("architecture") {
                model.vision = holds(architecture, "input_modalities", "image");
            }
            if let Some(status) = entry.get("status").and_then(|status| text(status, "value")) {
                model.routed = true;
                model.loaded = status == "loaded";
                model.answers = matches!(status, "loaded" | "sleeping");
            }
            Some(model)
        })
        .collect()
}

/// The kind of server, as its model list signs it.
pub(super) fn owner(list: &Value) -> Option<Kind> {
    let first = list.get("data")?.get(0)?;
    match text(first, "owned_by")? {
        "llamacpp" => Some(Kind::LlamaCpp),
        "vllm" => Some(Kind::Vllm),
        "sglang" => Some(Kind::Sglang),
        "organization_owner" => Some(Kind::LmStudio),
        "library" => Some(Kind::Ollama),
        _ => None,
    }
}

/// Ollama's `/api/tags`: `{"models": [{"model" | "name", …}]}`.
pub(super) fn ollama_tags(tags: &Value) -> Option<Vec<Listed>> {
    let models = tags.get("models")?.as_array()?;
    models
        .iter()
        .map(|entry| {
            let mut model = Listed::new(name(entry, "model").or_else(|| name(entry, "name"))?);
            model.loaded = false;
            Some(model)
        })
        .collect()
}

/// Ollama's `/api/ps`: what is in memory, and with which window.
pub(super) fn ollama_ps(running: &Value, listed: &mut [Listed]) {
    for model in &mut *listed {
        model.loaded = false;
    }
    let entries = running.get("models").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let name = name(entry, "model").or_else(|| name(entry, "name"));
        if let Some(model) = listed.iter_mut().find(|model| Some(model.id.as_str()) == name) {
            model.loaded = true;
            model.window = tokens(entry, "context_length");
        }
    }
}

/// Ollama's `/api/show`. The window it was loaded with counts most, then `num_ctx` of its file, then the
/// server's `setting`, then what the model was made for.
pub(super) fn ollama_show(facts: &Value, setting: Option<u64>, model: &mut Listed) {
    let trained = facts.get("model_info").and_then(Value::as_object).and_then(|info| {
        let length = info.iter().find(|(name, _)| name.ends_with(".context_length"));
        length?.1.as_u64().filter(believable)
    });
    let asked = text(facts, "parameters").and_then(num_ctx).or(setting);
    let asked = match (asked, trained) {
        (Some(asked), Some(trained)) => Some(asked.min(trained)),
        (asked, trained) => asked.or(trained),
    };
    model.window = model.window.or(asked);
    // Older servers do not tell.
    if facts.get("capabilities").is_some_and(Value::is_array) {
        let can = |what| holds(facts, "capabilities", what);
        model.answers = can("completion");
        model.vision = can("vision");
        model.thinks = can("thinking");
        model.tools = if can("tools") {
            Tools::Supported
        } else {
            let id = &model.id;
            Tools::Unsupported(format!(
                "{id} has no tools in Ollama. Choose a model that has (`ollama show` lists what a model can \
                 do), or go on without tools: --no-tools"
            ))
        };
    }
}

/// `num_ctx` in the text of parameters: a name, blanks and a value in each line.
fn num_ctx(parameters: &str) -> Option<u64> {
    let mut lines = parameters.lines().map(str::split_whitespace);
    lines.find_map(|mut words| match (words.next()?, words.next()?) {
        ("num_ctx", value) => value.parse().ok().filter(believable),
        _ => None,
    })
}

pub(super) fn is_llama_props(props: &Value) -> bool {
    props.get("default_generation_settings").is_some_and(Value::is_object)
}

/// llama.cpp's `/props`.
pub(super) fn llama_props(props: &Value, model: &mut Listed) {
    if !is_llama_props(props) {
        return;
    }
    // The window of one slot, which is what a request has.
    if let Some(window) = tokens(&props["default_generation_settings"], "n_ctx") {
        model.window = Some(window);
    }
    if let Some(modalities) = props.get("modalities") {
        model.vision = modalities.get("vision") == Some(&Value::Bool(true));
    }
    let template = text(props, "chat_template").unwrap_or_default();
    model.thinking_switch = template.contains("enable_thinking");
    if let Some(caps) = props.get("chat_template_caps").filter(|caps| caps.is_object()) {
        let can = |what| caps.get(what) == Some(&Value::Bool(true));
        model.tools = if can("supports_tools") || can("supports_tool_calls") {
            Tools::Supported
        } else {
            Tools::Unsupported(
                "The model's chat template has no tools, so llama.cpp drops them. Start llama-server with \
                 --jinja and a template that has tools (--chat-template-file), choose another model, or go \
                 on without tools: --no-tools"
                    .to_owned(),
            )
        };
    }
}

/// LM Studio's `/api/v0/models`. Models without tools of their own get them from the server's prompt,
/// so none is known to be without.
pub(super) fn lm_studio(list: &Value) -> Option<Vec<Listed>> {
    let data = list.get("data")?.as_array()?;
    let mut models = data
        .iter()
        .map(|entry| {
            let mut model = Listed::new(name(entry, "id")?);
            let kind = text(entry, "type")?;
            model.answers = kind != "embeddings";
            model.vision = kind == "vlm";
            model.loaded = text(entry, "state") == Some("loaded");
            model.window =
                tokens(entry, "loaded_context_length").or_else(|| tokens(entry, "max_context_length"));
            if holds(entry, "capabilities", "tool_use") {
                model.tools = Tools::Supported;
            }
            Some(model)
        })
        .collect::<Option<Vec<_>>>()?;
    models.sort_by_key(|model| !model.loaded);
    Some(models)
}
