//! Reads model lists and properties from local servers. Any program may listen on a port, so that a field is
//! ignored unless it has the expected type.

use super::{Kind, Tools};
use crate::base::order::Order;
use serde_json::Value;

/// A model as described by its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub id: String,
    /// Context window in tokens, for input and output together.
    pub window: Option<u64>,
    /// Maximum number of output tokens.
    pub answer_max: Option<u64>,
    pub tools: Tools,
    pub vision: bool,
    /// True if the model does nothing but classify.
    pub decides: bool,
    /// True if the model thinks before it answers.
    pub thinks: bool,
    /// True if an argument of the chat template switches thinking on and off.
    pub thinking_switch: bool,
    pub loaded: bool,
    /// True if a llama.cpp router loads the model on demand.
    pub routed: bool,
    /// False for models that only compute embeddings or rankings, and for models that cannot answer now.
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
            decides: false,
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

/// A model name without control characters.
fn name<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    text(value, field).filter(|name| !name.chars().any(char::is_control))
}

/// A number of tokens; servers write 0 or -1 for "not set".
fn tokens(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64().filter(believable)
}

/// A number of tokens in the format of LiteLLM's proxy: in the entry or in its `model_info`.
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
    // vLLM lists adapters without their own length: the model's length applies.
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
                model.decides = holds(architecture, "output_modalities", "decisions");
            }
            if let Some(status) = entry.get("status").and_then(|status| text(status, "value")) {
                model.routed = true;
                model.loaded = status == "loaded";
                model.answers = matches!(status, "loaded" | "sleeping");
                // It is said without loading the model, which the first request does.
                model.answers |= model.decides;
            }
            Some(model)
        })
        .collect()
}

/// The kind of server, from `owned_by` in its model list.
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

/// Reads Ollama's `/api/ps`: which models are in memory, and their context windows.
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

/// Reads Ollama's `/api/show`. The context window is the one of the loaded model, otherwise `num_ctx` of the
/// model file, otherwise the server's `setting`, otherwise the trained length.
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
    // Older servers send no capabilities.
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

/// `num_ctx` in Ollama's parameter text: a name, blanks and a value in each line.
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

/// Number of requests that a llama.cpp server answers at once, in its `/props`.
pub(super) fn llama_slots(props: &Value) -> Option<usize> {
    let slots = props.get("total_slots").filter(|_| is_llama_props(props))?.as_u64()?;
    usize::try_from(slots).ok().filter(|slots| *slots > 0)
}

/// Reads llama.cpp's `/props`.
pub(super) fn llama_props(props: &Value, model: &mut Listed) {
    if !is_llama_props(props) {
        return;
    }
    // The context window of one slot, which is the limit of a request.
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

/// LM Studio's `/api/v0/models`. The server adds tools to the prompt of models without native tool support,
/// so that no model is marked as lacking tools.
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
    models.order_by_key(|model| !model.loaded);
    Some(models)
}
