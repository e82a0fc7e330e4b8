//! Discovers model servers on this machine.
//!
//! | server | port | asked |
//! |---|---|---|
//! | the one that `PI_LOCAL_URL` names | – | `/v1/models`, then what its answers point to |
//! | Ollama | 11434, `OLLAMA_HOST` | `/api/tags`, `/api/ps`, `/api/show` |
//! | llama.cpp | 9931, 8080, `LLAMA_BASE_URL` | `/v1/models`, `/props` |
//! | LM Studio | 1234 | `/v1/models`, `/api/v0/models` |
//! | vLLM | 8000 | `/v1/models` |
//! | SGLang | 30000 | `/v1/models` |
//!
//! All addresses are probed in parallel, and the result contains the servers that answered within the time
//! limit; a server that accepts a connection and never answers costs no more than the limit, which also ends
//! its thread. Only this machine is probed, except for hosts in `PI_LOCAL_URL` and `LLAMA_BASE_URL`; a remote
//! `OLLAMA_HOST` is ignored, since it configures another program.
//!
//! A program on a well-known port is treated as a model, whose tool calls are run. A server of another user
//! of this machine is therefore left out until the user agrees: see [`owner`].
//!
//! The models have the provider `local` and the ids that their server uses; those of a server that `LLAMA_BASE_URL`
//! or the entry `llama.cpp` of auth.json names have the provider `llama.cpp`, as in the reference.

mod address;
mod answer;
mod owner;
mod probe;
pub mod router;

use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::json::json;
use crate::base::order::Order;
use crate::base::thread::Thread;
use crate::llm::model::{Model, ModelType, shown_url};
use crate::llm::secret::Secret;
use crate::wire::ask::SYSTEM_ONE_API;
pub use address::{LLAMA_DEFAULT, LLAMA_KEY, LLAMA_URL, api_url, is_configured, is_loopback, key_variable};
use address::{Target, targets};
use answer::Listed;
use owner::Listeners;
pub use owner::Owner;
use probe::Probe;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const PROVIDER: &str = "local";
/// The provider of the models of a llama.cpp server that the user configured.
pub const LLAMA_CPP: &str = "llama.cpp";

/// Assumed context window of a model if the server sends none, in tokens.
const WINDOW_UNKNOWN: u64 = 32_768;
/// Maximum number of output tokens requested.
const ANSWER_MAX: u64 = 32_768;

/// True if the models of this provider come from servers on this machine, or from one that the user configured.
pub fn is_provider(name: &str) -> bool {
    matches!(name, PROVIDER | LLAMA_CPP)
}

/// The program behind a server; `Other` if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ollama,
    LlamaCpp,
    LmStudio,
    Vllm,
    Sglang,
    Other,
}

/// A server that answered with a list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub kind: Kind,
    /// URL without a path: `http://127.0.0.1:8080`.
    pub root: String,
}

/// A model offered by a local server.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub server: Server,
    pub model: Arc<Model>,
    pub tools: Tools,
    /// True if the model is in memory, so that the first answer does not wait for loading.
    pub loaded: bool,
    /// True if the server sent the context window; otherwise it is a guess.
    pub window_known: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tools {
    Unknown,
    Supported,
    /// Why the model has no tools, and what to do.
    Unsupported(String),
}

/// The result of a discovery, best models first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub offers: Vec<Offer>,
    /// Models of llama.cpp that do nothing but classify.
    pub classifiers: Vec<Model>,
    /// Error messages of servers that the user configured.
    pub refusals: Vec<String>,
    /// Servers of other users that were left out, because the user has not agreed to them.
    pub strangers: Vec<Stranger>,
}

/// A model server of another user of this machine, which the user did not configure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    pub server: Server,
    pub owner: Owner,
}

/// The servers of other users that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All servers: the user asked for a local model.
    All,
    /// The servers with these [`Stranger::key`]s.
    Only(Vec<String>),
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "LM Studio",
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Other => "model server",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind.name(), shown_url(&self.root))
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, run by {}", self.server, self.owner)
    }
}

impl Stranger {
    /// Identifies the user's agreement: the address and the owner of the server, regardless of its kind.
    pub fn key(&self) -> String {
        match self.owner {
            Owner::User(uid) => format!("{} uid {uid}", self.server.root),
            _ => format!("{} uid unknown", self.server.root),
        }
    }
}

impl Default for Allowed {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl Allowed {
    /// Also allows `stranger`.
    pub fn add(&mut self, stranger: &Stranger) {
        if let Self::Only(keys) = self {
            keys.push(stranger.key());
        }
    }

    fn covers(&self, stranger: &Stranger) -> bool {
        *self == Self::All || self.names(stranger)
    }

    /// True if the user agreed to this server in particular.
    fn names(&self, stranger: &Stranger) -> bool {
        matches!(self, Self::Only(keys) if keys.contains(&stranger.key()))
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.window_known { "" } else { "about " };
        let window = self.model.context_window;
        write!(f, "{} ({}, window {about}{window})", self.model.name, self.server)
    }
}

impl Found {
    /// The model of the plain name `local`: models with tools are preferred, then models in memory.
    pub fn preferred(&self) -> Option<&Offer> {
        let rank = |offer: &&Offer| {
            let without_tools = matches!(offer.tools, Tools::Unsupported(_));
            (without_tools, !offer.loaded)
        };
        self.offers.iter().min_by_key(rank)
    }

    /// The model of the name `local`, `local/<id>` or `<id>`. A file served by llama.cpp also matches by its
    /// name without folder and extension.
    pub fn find(&self, name: &str) -> Option<&Offer> {
        if is_provider(name) {
            return self.preferred();
        }
        let of_llama_cpp = name.strip_prefix("llama.cpp/");
        let id = of_llama_cpp.or(name.strip_prefix("local/")).unwrap_or(name);
        let by_id = self.offers.iter().find(|offer| offer.model.id == id);
        by_id.or_else(|| {
            let known_as = |offer: &&Offer| offer.model.name.eq_ignore_ascii_case(id);
            self.offers.iter().find(known_as)
        })
    }
}

/// Asks the llama.cpp server of `model` how many requests it answers at once. `None` if another server, or nobody,
/// answers within `limit`.
pub fn slots(model: &Model, key: Option<Secret>, limit: Duration, cancel: &CancelToken) -> Option<usize> {
    let probe = Probe::new(&address::root(&model.base_url), key, Instant::now() + limit, cancel);
    // Only a router reads the name.
    answer::llama_slots(&probe.get(&format!("/props?model={}", probe::encode(&model.id)))?)
}

/// Probes all addresses for at most `limit`. Servers of other users must be in `allowed`.
pub fn discover(env: &Env, limit: Duration, allowed: &Allowed) -> Found {
    let mut targets = targets(env);
    let listeners = Listeners::now();
    let owners: Vec<Owner> = targets.iter().map(|target| owner_of(target, &listeners)).collect();
    for (target, owner) in targets.iter_mut().zip(&owners) {
        let server = Server { kind: target.kind, root: target.root.clone() };
        if *owner != Owner::Machine && !allowed.names(&Stranger { server, owner: *owner }) {
            target.key = None;
        }
    }
    let owner_at: Vec<(String, Owner)> =
        targets.iter().map(|target| target.root.clone()).zip(owners).collect();
    let mut found = ask_all(targets, env, limit);
    let mut strangers: Vec<Stranger> = Vec::new();
    found.offers.retain(|offer| {
        let owner = owner_at.iter().find(|(root, _)| *root == offer.server.root);
        let owner = owner.map_or(Owner::Hidden, |(_, owner)| *owner);
        let stranger = Stranger { server: offer.server.clone(), owner };
        let counts = owner == Owner::Machine || allowed.covers(&stranger);
        if !counts && !strangers.contains(&stranger) {
            strangers.push(stranger);
        }
        counts
    });
    found.strangers = strangers;
    found.offers.retain(|offer| {
        let chats = ModelType::of(&offer.model) == ModelType::Chat;
        if !chats {
            found.classifiers.push(Model::clone(&offer.model));
        }
        chats
    });
    found
}

/// The owner of a server; [`Owner::Machine`] for one that the user configured.
fn owner_of(target: &Target, listeners: &Listeners) -> Owner {
    let (host, port) = address::place(&target.root);
    if target.named.is_some() { Owner::Machine } else { listeners.owner(host, port) }
}

fn ask_all(targets: Vec<Target>, env: &Env, limit: Duration) -> Found {
    let deadline = Instant::now() + limit;
    let (sender, answers) = crossbeam_channel::bounded(targets.len().max(1));
    for (rank, target) in targets.into_iter().enumerate() {
        let (sender, env) = (sender.clone(), env.clone());
        let work = move || {
            let probe = Probe::new(&target.root, target.key.clone(), deadline, &CancelToken::new());
            // The channel has room for all answers, so that a late thread does not block.
            let offers = survey(&target, &probe, &env);
            let refusal = offers.is_empty().then(|| refusal(&target, &probe)).flatten();
            let _ = sender.send((rank, offers, refusal));
        };
        // A server without a probe thread counts as absent.
        let _ = Thread::named("local-probe").start(work);
    }
    drop(sender);
    let mut found = Vec::new();
    while let Ok(answer) = answers.recv_deadline(deadline) {
        found.push(answer);
    }
    found.order_by_key(|(rank, ..)| *rank);
    let refusals = found.iter().filter_map(|(.., refusal)| refusal.clone()).collect();
    let offers = found.into_iter().flat_map(|(_, offers, _)| offers).collect();
    Found { offers, refusals, ..Found::default() }
}

/// The error message of a server that the user configured and that sent no model list.
fn refusal(target: &Target, probe: &Probe) -> Option<String> {
    let (url_name, key_name) = target.named?;
    let (status, text) = probe.refusal()?;
    let text = if text.is_empty() { String::new() } else { format!(" ({text})") };
    let advice = match (status, &target.key) {
        (401 | 403, Some(_)) => format!("the key is wrong ({key_name})"),
        (401 | 403, None) => format!("it wants a key: set {key_name}"),
        (400, _) => format!("is the key right ({key_name})?"),
        _ => format!("is the address right ({url_name})?"),
    };
    Some(format!("The server at {} answered {status}{text}: {advice}", target.root))
}

/// The models of one server; empty if it is not a model server.
fn survey(target: &Target, probe: &Probe, env: &Env) -> Vec<Offer> {
    if target.kind == Kind::Ollama
        && let Some(tags) = probe.get("/api/tags")
        && let Some(listed) = answer::ollama_tags(&tags)
    {
        return ollama(target, probe, env, listed);
    }
    let Some(list) = probe.get("/v1/models") else {
        return Vec::new();
    };
    let Some(listed) = answer::models(&list) else {
        return Vec::new();
    };
    let kind = match answer::owner(&list) {
        Some(kind) => kind,
        None if target.kind == Kind::Other => guess(probe),
        None => target.kind,
    };
    match kind {
        Kind::Ollama => ollama(target, probe, env, listed),
        Kind::LlamaCpp => llama_cpp(target, probe, listed),
        Kind::LmStudio => lm_studio(target, probe, listed),
        Kind::Vllm | Kind::Sglang | Kind::Other => offers(target, kind, listed),
    }
}

/// Identifies a server whose model list does not name its kind.
fn guess(probe: &Probe) -> Kind {
    if probe.get("/api/tags").is_some_and(|tags| answer::ollama_tags(&tags).is_some()) {
        Kind::Ollama
    } else if probe.get("/api/v0/models").is_some_and(|list| answer::lm_studio(&list).is_some()) {
        Kind::LmStudio
    } else if probe.get("/props").is_some_and(|props| answer::is_llama_props(&props)) {
        Kind::LlamaCpp
    } else {
        Kind::Other
    }
}

fn ollama(target: &Target, probe: &Probe, env: &Env, mut listed: Vec<Listed>) -> Vec<Offer> {
    if let Some(running) = probe.get("/api/ps") {
        answer::ollama_ps(&running, &mut listed);
    }
    // Models in memory are the likely choice, so they are queried first in case the time runs out.
    listed.order_by_key(|model| !model.loaded);
    let asks = listed.iter().map(|model| json!({"model": model.id}).to_string());
    let shown = probe.post_all("/api/show", &asks.collect::<Vec<_>>());
    for (model, facts) in listed.iter_mut().zip(shown) {
        if let Some(facts) = facts {
            let setting = env.get("OLLAMA_CONTEXT_LENGTH").and_then(|text| text.parse().ok());
            answer::ollama_show(&facts, setting, model);
        }
    }
    offers(target, Kind::Ollama, listed)
}

fn llama_cpp(target: &Target, probe: &Probe, mut listed: Vec<Listed>) -> Vec<Offer> {
    // A llama.cpp server has one model, or is a router with several. Only models in memory are queried, since
    // a query would load or wake the others.
    for model in &mut listed {
        let path = match model.routed {
            false => "/props".to_owned(),
            true if model.loaded => format!("/props?model={}", probe::encode(&model.id)),
            true => continue,
        };
        if let Some(props) = probe.get(&path) {
            answer::llama_props(&props, model);
        }
    }
    offers(target, Kind::LlamaCpp, listed)
}

fn lm_studio(target: &Target, probe: &Probe, listed: Vec<Listed>) -> Vec<Offer> {
    let told = probe.get("/api/v0/models").and_then(|list| answer::lm_studio(&list));
    offers(target, Kind::LmStudio, told.unwrap_or(listed))
}

fn offers(target: &Target, kind: Kind, listed: Vec<Listed>) -> Vec<Offer> {
    let server = Server { kind, root: target.root.clone() };
    let provider = match target.named {
        Some((address::LLAMA_URL, _)) => LLAMA_CPP,
        _ => PROVIDER,
    };
    let usable = listed.into_iter().filter(|model| model.answers);
    usable
        .map(|listed| Offer {
            model: Arc::new(model(provider, &server, &listed)),
            server: server.clone(),
            loaded: listed.loaded,
            window_known: listed.window.is_some(),
            tools: listed.tools,
        })
        .collect()
}

fn model(provider: &str, server: &Server, listed: &Listed) -> Model {
    let window = listed.window.unwrap_or(WINDOW_UNKNOWN);
    let mut compat = object(json!({
        "supportsStore": false,
        "supportsDeveloperRole": false,
        "supportsReasoningEffort": false,
        "supportsUsageInStreaming": true,
        "supportsStrictMode": false,
        "supportsLongCacheRetention": false,
        "sendSessionAffinityHeaders": false,
        "maxTokensField": "max_tokens",
    }));
    if server.kind == Kind::LlamaCpp {
        compat.insert("promptProgress".to_owned(), true.into());
    }
    let mut levels = None;
    if listed.thinking_switch {
        compat.insert("thinkingFormat".to_owned(), "qwen-chat-template".into());
        levels = Some(json!({"off": "off", "minimal": null, "low": null, "medium": "medium", "high": null}));
    } else if listed.thinks {
        // The model always thinks.
        levels = Some(json!({"off": null, "minimal": null, "low": null, "medium": "medium", "high": null}));
    }
    if listed.decides {
        return Model {
            id: listed.id.clone(),
            name: short_name(&listed.id).to_owned(),
            api: SYSTEM_ONE_API.to_owned(),
            provider: provider.to_owned(),
            base_url: format!("{}/v1", server.root),
            input: vec!["text".to_owned()],
            context_window: window,
            extra: [("type".to_owned(), ModelType::Classifier.name().into())].into_iter().collect(),
            ..Model::default()
        };
    }
    let input = ["text", "image"].into_iter().take(if listed.vision { 2 } else { 1 });
    Model {
        id: listed.id.clone(),
        name: short_name(&listed.id).to_owned(),
        api: "openai-completions".to_owned(),
        provider: provider.to_owned(),
        base_url: format!("{}/v1", server.root),
        reasoning: levels.is_some(),
        thinking_level_map: levels.map(object),
        input: input.map(str::to_owned).collect(),
        context_window: window,
        max_tokens: match listed.answer_max {
            Some(most) => most.min(window),
            None => (window / 4).clamp(window.min(1024), ANSWER_MAX),
        },
        compat: Some(compat),
        ..Model::default()
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A model name without the folder and extension of a llama.cpp model file.
fn short_name(id: &str) -> &str {
    match id.strip_suffix(".gguf") {
        Some(file) => file.rsplit(['/', '\\']).next().unwrap_or(file),
        None => id,
    }
}

/// Advice if a server refused a request because of its tools; `None` for other errors.
pub fn explain_refused_tools(error: &str) -> Option<&'static str> {
    let error = error.to_ascii_lowercase();
    if error.contains("requires --jinja") || error.contains("tool_choice") && error.contains("jinja") {
        Some(
            "llama.cpp takes tools only with its template engine on: start llama-server with --jinja. \
             Or go on without tools: --no-tools",
        )
    } else if error.contains("generate parser for this template") {
        Some(
            "llama.cpp cannot use tools with this model's chat template. Start llama-server with --jinja \
             and a template that has tools (--chat-template-file), choose another model, or go on \
             without tools: --no-tools",
        )
    } else if error.contains("does not support tools") {
        Some(
            "This model has no tools in Ollama (`ollama show MODEL` lists what it can do). Choose one that \
             has, or go on without tools: --no-tools",
        )
    } else if error.contains("enable-auto-tool-choice") {
        Some(
            "vLLM takes tools only when started with --enable-auto-tool-choice and --tool-call-parser. Or \
             go on without tools: --no-tools",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
