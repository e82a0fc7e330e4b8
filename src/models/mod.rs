//! Which models there are: the catalogue, `models.json` laid over it, and models found at run time.
//!
//! Loading reads `models.json` and nothing else. Models are unpacked when they are asked for, a
//! provider at a time; who keeps one keeps its `Arc`.
//!
//! Not here: which model is meant by what a user typed (`models::resolve`), and whether a provider can be
//! used (`auth::credential`).

pub mod catalogue;
pub mod config;
pub mod config_value;
pub mod jsonc;
pub mod list;
pub mod local;
mod overlay;
pub mod remote;
pub mod resolve;
mod schema;

use crate::base::env::Env;
use crate::llm::model::{Model, provider_id};
use crate::llm::secret::{Secret, Vault, is_secret_name};
use crate::models::catalogue::Section;
use config::ModelsFile;
pub use config::ProviderConfig;
pub use schema::json_schema;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file's name in the agent folder.
const FILE_NAME: &str = "models.json";

/// What models.json says about a provider's key and headers, not resolved yet.
#[derive(Clone, Default)]
pub struct Configured {
    pub api_key: Option<String>,
    /// The provider's, then the model's: a later one wins.
    pub headers: Vec<(String, String)>,
    /// Send the key as `Authorization: Bearer`, whatever the protocol does.
    pub auth_header: bool,
    /// The address of a Radius gateway, where the provider is one of the user's own.
    pub gateway: Option<String>,
}

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Configured")
            .field("api_key", &self.api_key.as_ref().map(Secret::new))
            .field("headers", &names)
            .field("auth_header", &self.auth_header)
            .field("gateway", &self.gateway)
            .finish()
    }
}

/// Cheap to clone but for what was found at run time.
#[derive(Clone, Default)]
pub struct Registry {
    path: PathBuf,
    file: Arc<ModelsFile>,
    /// Newer models than those that are built in, which the user fetched.
    newer: Arc<remote::Store>,
    /// Models found at run time, by provider in the order in which these came.
    added: Vec<(String, Vec<Model>)>,
    /// The ids that an account may use, of providers that say so.
    allowed: HashMap<String, HashSet<String>>,
}

/// What a user may call a model by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    pub provider: String,
    pub id: String,
    /// For people.
    pub name: String,
}

impl ModelName {
    /// `provider/id`.
    pub fn full(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

impl Registry {
    /// Reads `models.json` in `agent_dir`, and says what is wrong with it.
    pub fn load(agent_dir: &Path) -> (Self, Vec<String>) {
        let (newer, warning) = remote::Store::load(agent_dir);
        let mut registry =
            Self { path: agent_dir.join(FILE_NAME), newer: Arc::new(newer), ..Self::default() };
        let mut warnings = registry.reload();
        warnings.extend(warning);
        (registry, warnings)
    }

    /// Reads `models.json` again. Models found at run time stay.
    pub fn reload(&mut self) -> Vec<String> {
        let (file, warnings) = ModelsFile::load(&self.path);
        self.file = Arc::new(file);
        warnings
    }

    /// Takes over what `other` found at run time.
    pub fn add_found_by(&mut self, other: &Self) {
        self.added.clone_from(&other.added);
    }

    /// Adds models found at run time; one of a known provider and id takes the other's place.
    pub fn add(&mut self, models: impl IntoIterator<Item = Model>) {
        for model in models {
            let at = self.added.iter().position(|(name, _)| *name == model.provider);
            let at = at.unwrap_or_else(|| {
                self.added.push((model.provider.clone(), Vec::new()));
                self.added.len() - 1
            });
            let (_, list) = &mut self.added[at];
            replace_or_push(list, model);
        }
    }

    /// Takes away what was added of a provider.
    pub fn remove(&mut self, provider: &str) {
        self.added.retain(|(name, _)| name != provider);
    }

    /// The providers that have models: built-in ones, those of `models.json`, those found at run time.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = catalogue::providers().collect();
        let own = self.file.providers.iter();
        let own = own.filter(|(_, config)| !config.models.is_empty());
        let own = own.map(|(name, _)| name.as_str());
        for name in own.chain(self.added.iter().map(|(name, _)| name.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What `models.json` says about a provider.
    pub fn provider_config(&self, provider: &str) -> Option<&ProviderConfig> {
        self.file.provider(provider)
    }

    /// The key and headers that `models.json` has for a provider, and for one of its models: what
    /// credentials are resolved from.
    pub fn configured(&self, provider: &str, id: Option<&str>) -> Configured {
        let Some(config) = self.provider_config(provider) else {
            return Configured::default();
        };
        let headers = |map: &Map<String, Value>| -> Vec<(String, String)> {
            let text = map.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
            text.map(|(name, value)| (name.clone(), value.to_owned())).collect()
        };
        let of_model = |entry: &Value| entry.get("headers").and_then(Value::as_object).map(headers);
        let changed = id.and_then(|id| of_model(config.model_overrides.get(id)?));
        let is_it =
            |entry: &&Map<String, Value>| id.is_some() && entry.get("id").and_then(Value::as_str) == id;
        let defined = config.models.iter().rfind(is_it);
        let defined = defined.and_then(|entry| entry.get("headers")?.as_object().map(headers));
        let mut all = headers(&config.headers);
        all.extend(changed.into_iter().chain(defined).flatten());
        Configured {
            api_key: config.api_key.clone(),
            headers: all,
            auth_header: config.auth_header.unwrap_or(false),
            gateway: config.gateway(),
        }
    }

    /// Takes the keys and secret headers of `models.json` into `vault`, as far as they can be known without
    /// running a command.
    pub fn learn_secrets(&self, env: &Env, vault: &Vault) {
        for (provider, config) in &self.file.providers {
            let place = format!("models.{provider}");
            if let Some(key) = &config.api_key {
                config_value::learn(key, &format!("{place}.apiKey"), env, vault);
            }
            let of_models = config.models.iter().filter_map(|model| model.get("headers"));
            let changed = config.model_overrides.values().filter_map(|change| change.get("headers"));
            let of_models = of_models.chain(changed).filter_map(Value::as_object);
            for (name, value) in std::iter::once(&config.headers).chain(of_models).flatten() {
                let Some(value) = value.as_str() else { continue };
                if is_secret_name(name) {
                    // What stands after a scheme such as `Bearer` is the secret.
                    let value = value
                        .split_once(' ')
                        .filter(|_| !value.starts_with('!'))
                        .map_or(value, |(_, rest)| rest);
                    config_value::learn(value, &header_place(provider, name), env, vault);
                } else {
                    config_value::learn_variables(value, env, vault);
                }
            }
        }
    }

    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let provider = provider_id(provider);
        let model = if self.provider_config(provider).is_some() {
            self.compose(provider).into_iter().find(|model| model.id == id)
        } else {
            let added = self.added_of(provider).iter().find(|model| model.id == id);
            let newer = || self.newer.of(provider).iter().find(|model| model.id == id);
            let found = added.or_else(newer).cloned();
            found.or_else(|| catalogue::find(provider, id))
        };
        model.map(Arc::new)
    }

    /// A provider's models in the catalogue's order, added ones last.
    pub fn models_of(&self, provider: &str) -> Vec<Arc<Model>> {
        self.compose(provider).into_iter().map(Arc::new).collect()
    }

    /// Sets what the user's accounts may use (see [`offered_of`](Self::offered_of)).
    pub fn set_allowed(&mut self, allowed: HashMap<String, HashSet<String>>) {
        self.allowed = allowed;
    }

    /// True if the user's account may use a model, as far as that is known. One that is asked for by
    /// its name is asked nevertheless: the provider decides.
    pub fn is_offered(&self, provider: &str, id: &str) -> bool {
        let allowed = self.allowed.get(provider);
        allowed.is_none_or(|ids| ids.contains(id))
    }

    /// The models of a provider that are offered to the user.
    pub fn offered_of(&self, provider: &str) -> Vec<Arc<Model>> {
        let mut models = self.models_of(provider);
        models.retain(|model| self.is_offered(provider, &model.id));
        models
    }

    pub fn all(&self) -> Vec<Arc<Model>> {
        let providers = self.providers();
        providers.into_iter().flat_map(|name| self.models_of(name)).collect()
    }

    /// What the models of a provider are called. Far cheaper than the models.
    pub fn names_of(&self, provider: &str) -> Vec<ModelName> {
        let name = |id: &str, name: &str| ModelName {
            provider: provider.to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
        };
        let as_built = self.provider_config(provider).is_none()
            && self.added_of(provider).is_empty()
            && self.newer.of(provider).is_empty();
        if !as_built {
            let models = self.compose(provider);
            return models.iter().map(|model| name(&model.id, &model.name)).collect();
        }
        let rows = Section::of(provider).into_iter().flat_map(Section::rows);
        rows.map(|row| name(row.id, row.name)).collect()
    }

    /// What all models are called.
    pub fn names(&self) -> Vec<ModelName> {
        let providers = self.providers();
        providers.into_iter().flat_map(|name| self.names_of(name)).collect()
    }

    fn added_of(&self, provider: &str) -> &[Model] {
        let found = self.added.iter().find(|(name, _)| name == provider);
        found.map_or(&[], |(_, models)| models)
    }

    fn compose(&self, provider: &str) -> Vec<Model> {
        let mut models = Section::of(provider).map_or_else(Vec::new, |section| section.models());
        for model in self.newer.of(provider).iter().chain(self.added_of(provider)) {
            replace_or_push(&mut models, model.clone());
        }
        match self.provider_config(provider) {
            // A provider that does not compose was left out when the file was read; models found since
            // cannot make it worse than itself.
            Some(config) => overlay::compose(provider, models.clone(), config).unwrap_or(models),
            None => models,
        }
    }
}

/// What a secret in a header of `models.json` is called.
pub fn header_place(provider: &str, name: &str) -> String {
    format!("models.{provider}.{}", name.to_ascii_lowercase())
}

fn replace_or_push(models: &mut Vec<Model>, model: Model) {
    match models.iter_mut().find(|known| known.id == model.id) {
        Some(known) => *known = model,
        None => models.push(model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    /// A registry with this `models.json`; nothing may be wrong with it.
    fn registry(models_json: &str) -> Registry {
        let dir = TempDir::create();
        dir.write(FILE_NAME, models_json);
        let (registry, warnings) = Registry::load(dir.path());
        assert_eq!(warnings, Vec::<String>::new());
        registry
    }

    fn model(provider: &str, id: &str) -> Model {
        Model {
            id: id.into(),
            name: id.to_uppercase(),
            provider: provider.into(),
            api: "faux".into(),
            ..Model::default()
        }
    }

    /// Every way to ask gives the same models.
    #[track_caller]
    fn assert_consistent(registry: &Registry) {
        let all = registry.all();
        let mut of_providers = Vec::new();
        for provider in registry.providers() {
            let models = registry.models_of(provider);
            assert!(!models.is_empty(), "{provider} has no models");
            of_providers.extend(models);
        }
        assert_eq!(all, of_providers);
        let names: Vec<String> = registry.names().iter().map(ModelName::full).collect();
        let full: Vec<String> = all.iter().map(|m| format!("{}/{}", m.provider, m.id)).collect();
        assert_eq!(names, full);
        for model in all.iter().step_by(41) {
            assert_eq!(registry.find(&model.provider, &model.id).as_ref(), Some(model));
        }
    }

    #[test]
    fn without_a_file_there_is_the_catalogue() {
        let registry = registry(r#"{"providers": {}}"#);
        assert_consistent(&registry);
        assert_eq!(registry.all().len(), 1643);
        assert!(registry.find("anthropic", "claude-opus-4-8").is_some());
        assert!(registry.find("anthropic", "nope").is_none());
        assert!(registry.find("nope", "nope").is_none());
        assert!(registry.models_of("nope").is_empty());
        assert!(registry.provider_config("anthropic").is_none());
    }

    #[test]
    fn the_file_is_laid_over_the_catalogue() {
        let registry = registry(
            r#"{"providers": {
                "anthropic": {"baseUrl": "http://proxy", "modelOverrides": {"claude-opus-4-8": {"name": "Mine"}}},
                "mine": {"api": "openai-completions", "baseUrl": "http://m", "models": [{"id": "a"}, {"id": "b"}]},
                "headers-only": {"headers": {"a": "b"}}}}"#,
        );
        assert_consistent(&registry);
        assert_eq!(registry.all().len(), 1645);
        let opus = registry.find("anthropic", "claude-opus-4-8").unwrap();
        assert_eq!((opus.base_url.as_str(), opus.name.as_str()), ("http://proxy", "Mine"));
        assert!(registry.find("mine", "b").is_some());
        assert_eq!(registry.providers().last(), Some(&"mine"));
        assert_eq!(registry.provider_config("headers-only").unwrap().headers["a"], "b");
    }

    #[test]
    fn keys_and_headers_are_handed_on_as_they_are_written() {
        let registry = registry(
            r#"{"providers": {"p": {"api": "a", "baseUrl": "b", "apiKey": "$KEY", "authHeader": true,
                "headers": {"A": "provider", "B": "!b"},
                "models": [{"id": "m", "headers": {"A": "definition"}}, {"id": "n"}],
                "modelOverrides": {"m": {"headers": {"A": "override"}}, "n": {"headers": {"C": "c"}}}}}}"#,
        );
        for (id, expected) in [
            (None, "A=provider B=!b"),
            (Some("m"), "A=provider B=!b A=override A=definition"),
            (Some("n"), "A=provider B=!b C=c"),
            (Some("other"), "A=provider B=!b"),
        ] {
            let configured = registry.configured("p", id);
            let headers = configured.headers.iter();
            let headers: Vec<String> = headers.map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(headers.join(" "), expected, "{id:?}");
            assert_eq!(configured.api_key.as_deref(), Some("$KEY"));
            assert!(configured.auth_header);
        }
        assert!(registry.find("p", "m").unwrap().headers.is_none());
        let nothing = registry.configured("anthropic", None);
        assert!(nothing.api_key.is_none() && nothing.headers.is_empty() && !nothing.auth_header);
    }

    #[test]
    fn models_found_at_run_time_come_last_and_go_together() {
        let mut registry = registry(r#"{"providers": {"local": {"compat": {"supportsStore": false}}}}"#);
        registry.add([model("faux", "demo"), model("local", "a"), model("faux", "echo")]);
        registry.add([model("faux", "demo"), model("zai", "glm-4.7"), model("zai", "x")]);
        assert_consistent(&registry);
        assert_eq!(registry.providers()[42..], ["faux", "local"]);
        assert_eq!(registry.names_of("faux").len(), 2);
        assert_eq!(registry.find("zai", "glm-4.7").unwrap().api, "faux");
        assert_eq!(registry.find("zai", "x").unwrap().name, "X");
        assert_eq!(registry.find("local", "a").unwrap().compat.as_ref().unwrap()["supportsStore"], false);
        registry.remove("faux");
        registry.remove("zai");
        assert_consistent(&registry);
        assert!(registry.find("faux", "demo").is_none());
        assert_eq!(registry.find("zai", "glm-4.7").unwrap().api, "openai-completions");
    }

    #[test]
    fn reading_again_keeps_what_was_found() {
        let dir = TempDir::create();
        let (mut registry, warnings) = Registry::load(dir.path());
        assert!(warnings.is_empty());
        registry.add([model("faux", "demo")]);
        dir.write(FILE_NAME, "{");
        let warnings = registry.reload();
        assert!(warnings[0].starts_with("Failed to parse models.json: EOF"), "{warnings:?}");
        let valid = r#"{"providers": {"p": {"api": "a", "baseUrl": "b", "models": [{"id": "m"}]}}}"#;
        dir.write(FILE_NAME, valid);
        assert!(registry.reload().is_empty());
        assert!(registry.find("p", "m").is_some() && registry.find("faux", "demo").is_some());
    }
}
