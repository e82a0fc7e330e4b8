//! What other programs bring to a session: models of their providers, virtual models, and MCP servers.

use crate::auth::oauth::LentSignIn;
use crate::base::cancel::CancelToken;
use crate::llm::message::number;
use crate::llm::model::{Model, ThinkingLevel, VIRTUAL_API};
use crate::llm::options::Outside;
use crate::models::config::{self, ProviderConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Models of another program: those of its providers, and virtual ones.
#[derive(Clone, Default, PartialEq)]
pub struct LentModels {
    pub providers: Vec<Provider>,
    pub virtual_models: Vec<VirtualModel>,
}

impl LentModels {
    /// Adds the models of another owner. A virtual model takes the place of one with its name.
    pub fn add(&mut self, other: Self) {
        self.providers.extend(other.providers);
        for one in other.virtual_models {
            let is_its = |known: &VirtualModel| {
                (&known.model.provider, &known.model.id) == (&one.model.provider, &one.model.id)
            };
            self.virtual_models.retain(|known| !is_its(known));
            self.virtual_models.push(one);
        }
    }
}

/// A provider with its models.
#[derive(Clone)]
pub struct Provider {
    pub name: String,
    /// As in `models.json`.
    pub config: ProviderConfig,
    /// The registration that `config` was read from, to see whether something has changed.
    pub entry: Value,
    /// Answers the requests to its models; otherwise they go to its URL.
    pub outside: Option<Arc<dyn Outside>>,
    pub sign_in: Option<Arc<dyn LentSignIn>>,
}

impl Provider {
    /// Reads a registration: an entry of `models.json`, with a `name`.
    pub fn read(entry: Value) -> Result<Self, String> {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let config = config::lent(&name, &entry).map_err(|why| format!("Provider \"{name}\": {why}"))?;
        Ok(Self { name, config, entry, outside: None, sign_in: None })
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

/// Chooses the model of a request.
pub trait Router: Send + Sync {
    /// The id of the program.
    fn owner(&self) -> &str;

    /// `request` and the result have the form of the request `model.route` of extensions.
    fn route(&self, request: Value, cancel: &CancelToken) -> Result<Value, String>;
}

#[derive(Clone)]
pub struct VirtualModel {
    pub model: Model,
    pub router: Arc<dyn Router>,
}

impl PartialEq for VirtualModel {
    fn eq(&self, other: &Self) -> bool {
        self.model == other.model && self.router.owner() == other.router.owner()
    }
}

/// A registration of a virtual model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    provider: String,
    id: String,
    name: Option<String>,
    /// Those that are not known are ignored.
    thinking_levels: Option<Vec<String>>,
    input: Option<Vec<String>>,
    #[serde(default, with = "number::count")]
    context_window: u64,
    #[serde(default, with = "number::count")]
    max_tokens: u64,
}

/// Reads the registration of a virtual model.
pub fn virtual_model(entry: &Value) -> Result<Model, String> {
    let form = Form::deserialize(entry).map_err(|error| error.to_string())?;
    if form.provider.trim().is_empty() || form.id.trim().is_empty() {
        return Err("\"provider\" and \"id\" must not be empty".to_owned());
    }
    let known = |names: Vec<String>| names.iter().filter_map(|name| ThinkingLevel::parse(name)).collect();
    let levels: Vec<ThinkingLevel> = form.thinking_levels.map_or_else(|| vec![ThinkingLevel::Off], known);
    let word = |level: ThinkingLevel| match levels.contains(&level) {
        true => level.name().into(),
        false => Value::Null,
    };
    let map = ThinkingLevel::ALL.map(|level| (level.name().to_owned(), word(level)));
    Ok(Model {
        name: form.name.unwrap_or_else(|| form.id.clone()),
        id: form.id,
        provider: form.provider,
        api: VIRTUAL_API.to_owned(),
        reasoning: levels.iter().any(|level| *level != ThinkingLevel::Off),
        thinking_level_map: Some(Map::from_iter(map)),
        input: form.input.unwrap_or_else(|| vec!["text".to_owned(), "image".to_owned()]),
        context_window: form.context_window,
        max_tokens: form.max_tokens,
        ..Model::default()
    })
}

/// Name and entry of an MCP server that a client lends to a session, in the form of `mcp.json`.
pub type LentServer = (String, Map<String, Value>);

/// The event that tells of MCP servers that extensions register or take back.
pub const SERVERS_CHANGED: &str = "mcp_servers_change";

/// An MCP server that an extension brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredServer {
    pub name: String,
    /// The entry, in the form of `mcp.json`.
    pub config: Map<String, Value>,
    pub extension_path: String,
}

/// Replaces the MCP servers that a client lends to a session.
pub type Lend = Arc<dyn Fn(Vec<LentServer>) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn a_registration_says_what_is_shown() {
        let model = virtual_model(&json!({"provider": "p", "id": "m"})).unwrap();
        assert_eq!((&*model.name, model.reasoning, model.takes_images()), ("m", false, true));
        assert_eq!(model.thinking_levels(), [ThinkingLevel::Off]);
        let entry = json!({"provider": "p", "id": "m", "name": "M", "thinkingLevels": ["low", "max"],
            "input": ["text"], "contextWindow": 1e5, "maxTokens": 7, "other": true});
        let model = virtual_model(&entry).unwrap();
        assert_eq!((&*model.name, model.reasoning, model.takes_images()), ("M", true, false));
        assert_eq!((model.context_window, model.max_tokens), (100_000, 7));
        assert_eq!(model.thinking_levels(), [ThinkingLevel::Low, ThinkingLevel::Max]);
        for (wrong, part) in [
            (json!({"provider": "p"}), "id"),
            (json!({"provider": "", "id": "m"}), "empty"),
            (json!({"provider": "p", "id": "m", "thinkingLevels": "low"}), "sequence"),
        ] {
            let why = virtual_model(&wrong).unwrap_err();
            assert!(why.contains(part), "{wrong}: {why}");
        }
    }
}
