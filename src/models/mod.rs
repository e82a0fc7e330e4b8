//! The registry of models: the catalogue, changes by `models.json`, and models found at run time.
//!
//! Loading reads the files of the agent folder only. The catalogue is parsed on request, one provider at a
//! time; callers keep an `Arc` of a model to avoid parsing it again.
//!
//! Not here: matching of model names (`models::resolve`) and credentials (`auth::credential`).

pub mod catalogue;
pub mod config;
pub mod config_value;
pub mod jsonc;
pub mod list;
pub mod local;
pub mod others;
mod overlay;
pub mod personal;
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

/// The key and headers that models.json sets for a provider, not resolved yet.
#[derive(Clone, Default)]
pub struct Configured {
    pub api_key: Option<String>,
    /// Headers of the provider, then of the model; later ones override earlier ones.
    pub headers: Vec<(String, String)>,
    /// True to send the key as `Authorization: Bearer` with every protocol.
    pub auth_header: bool,
    /// Address of the Radius gateway, if models.json declares the provider as one.
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

/// All known models. Cloning copies only the models found at run time.
#[derive(Clone, Default)]
pub struct Registry {
    path: PathBuf,
    file: Arc<ModelsFile>,
    /// Fetched models that are newer than the catalogue.
    newer: Arc<remote::Store>,
    /// Providers of other programs, which come before those of the file.
    lent: Arc<Vec<(String, ProviderConfig)>>,
    /// Virtual models of other programs. They hide models with their ids.
    virtual_models: Arc<Vec<Model>>,
    /// Models found at run time by provider, in order of arrival.
    added: Vec<(String, Vec<Model>)>,
    /// Models of local servers that do nothing but classify.
    classifiers: Vec<Model>,
    /// The ids that an account may use, for providers whose sign-in lists them.
    allowed: HashMap<String, HashSet<String>>,
}

/// The names of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    pub provider: String,
    pub id: String,
    /// Display name.
    pub name: String,
}

impl ModelName {
    /// `provider/id`.
    pub fn full(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

impl Registry {
    /// Reads `models.json` and the fetched models in `agent_dir`, and returns warnings.
    pub fn load(agent_dir: &Path) -> (Self, Vec<String>) {
        let (newer, warning) = remote::Store::load(agent_dir);
        let mut registry =
            Self { path: agent_dir.join(FILE_NAME), newer: Arc::new(newer), ..Self::default() };
        let mut warnings = registry.reload();
        warnings.extend(warning);
        (registry, warnings)
    }

    /// Reads the fetched models again. What was wrong with them was said at the start.
    pub fn reload_fetched(&mut self) {
        self.newer = Arc::new(remote::Store::load(self.path.parent().unwrap_or(&self.path)).0);
    }

    /// Reads `models.json` again and returns warnings. Models found at run time are kept.
    pub fn reload(&mut self) -> Vec<String> {
        let (file, warnings) = ModelsFile::load(&self.path);
        self.file = Arc::new(file);
        warnings
    }

    /// Replaces the providers that other programs have registered.
    pub fn lend(&mut self, providers: Vec<(String, ProviderConfig)>) {
        self.lent = Arc::new(providers);
    }

    /// Replaces the virtual models that other programs have registered.
    pub fn lend_virtual(&mut self, models: Vec<Model>) {
        self.virtual_models = Arc::new(models);
    }

    /// Replaces the models found at run time by those of `other`.
    pub fn add_found_by(&mut self, other: &Self) {
        self.added.clone_from(&other.added);
        self.classifiers.clone_from(&other.classifiers);
    }

    /// Replaces the models of local servers that do nothing but classify.
    pub fn set_classifiers(&mut self, models: Vec<Model>) {
        self.classifiers = models;
    }

    /// True if models of this provider were found at run time.
    pub fn has_found(&self, provider: &str) -> bool {
        !self.added_of(provider).is_empty() || self.classifiers.iter().any(|model| model.provider == provider)
    }

    /// Adds models found at run time. A model replaces an earlier one with its provider and id.
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

    /// Removes the models of a provider that were found at run time.
    pub fn remove(&mut self, provider: &str) {
        self.added.retain(|(name, _)| name != provider);
    }

    /// The providers that have models: built-in ones, those of `models.json`, and those found at run time.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = catalogue::providers().collect();
        let own = self.lent.iter().chain(&self.file.providers);
        let own = own.filter(|(_, config)| !config.models.is_empty());
        let own = own.map(|(name, _)| name.as_str());
        let added = self.added.iter().map(|(name, _)| name.as_str());
        let added = added.chain(self.virtual_models.iter().map(|model| model.provider.as_str()));
        for name in own.chain(added) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The entry of a provider in `models.json`.
    pub fn provider_config(&self, provider: &str) -> Option<&ProviderConfig> {
        let lent = self.lent.iter().find(|(name, _)| name == provider).map(|(_, config)| config);
        lent.or_else(|| self.file.provider(provider))
    }

    /// The key and headers that `models.json` sets for a provider and for its model `id`.
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

    /// Adds the keys and secret headers of `models.json` to `vault`. Commands are not run.
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
                    // After a scheme such as `Bearer` comes the secret.
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
        let model = if let Some(model) = self.virtual_of(provider).find(|model| model.id == id) {
            Some(model.clone())
        } else if self.provider_config(provider).is_some() {
            self.compose(provider).into_iter().find(|model| model.id == id)
        } else {
            let added = self.added_of(provider).iter().find(|model| model.id == id);
            let newer = || self.newer.of(provider).iter().find(|model| model.id == id);
            let found = added.or_else(newer).cloned();
            found.or_else(|| catalogue::find(provider, id).filter(|_| !self.newer.replaces(provider)))
        };
        model.map(Arc::new)
    }

    /// A provider's models in catalogue order; added models come last.
    pub fn models_of(&self, provider: &str) -> Vec<Arc<Model>> {
        self.compose(provider).into_iter().map(Arc::new).collect()
    }

    /// Sets the models that the user's accounts may use (see [`offered_of`](Self::offered_of)).
    pub fn set_allowed(&mut self, allowed: HashMap<String, HashSet<String>>) {
        self.allowed = allowed;
    }

    /// False if the user's account is known not to include a model. The user can still request the model by
    /// name: the provider then decides.
    pub fn is_offered(&self, provider: &str, id: &str) -> bool {
        let allowed = self.allowed.get(provider);
        allowed.is_none_or(|ids| ids.contains(id)) || self.virtual_of(provider).any(|model| model.id == id)
    }

    /// The models of a provider that the user's account includes, as far as known.
    pub fn offered_of(&self, provider: &str) -> Vec<Arc<Model>> {
        let mut models = self.models_of(provider);
        models.retain(|model| self.is_offered(provider, &model.id));
        models
    }

    pub fn all(&self) -> Vec<Arc<Model>> {
        let providers = self.providers();
        providers.into_iter().flat_map(|name| self.models_of(name)).collect()
    }

    /// The names of a provider's models. Much faster than creating the models.
    pub fn names_of(&self, provider: &str) -> Vec<ModelName> {
        let name = |id: &str, name: &str| ModelName {
            provider: provider.to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
        };
        let as_built = self.provider_config(provider).is_none()
            && self.added_of(provider).is_empty()
            && self.newer.of(provider).is_empty()
            && !self.has_virtual(provider);
        if !as_built {
            let models = self.compose(provider);
            return models.iter().map(|model| name(&model.id, &model.name)).collect();
        }
        let rows = Section::of(provider).into_iter().flat_map(Section::rows);
        rows.map(|row| name(row.id, row.name)).collect()
    }

    /// The names of all models.
    pub fn names(&self) -> Vec<ModelName> {
        let providers = self.providers();
        providers.into_iter().flat_map(|name| self.names_of(name)).collect()
    }

    fn added_of(&self, provider: &str) -> &[Model] {
        let found = self.added.iter().find(|(name, _)| name == provider);
        found.map_or(&[], |(_, models)| models)
    }

    /// True if other programs have registered virtual models of a provider.
    pub fn has_virtual(&self, provider: &str) -> bool {
        self.virtual_of(provider).next().is_some()
    }

    fn virtual_of(&self, provider: &str) -> impl Iterator<Item = &Model> {
        self.virtual_models.iter().filter(move |model| model.provider == provider)
    }

    fn compose(&self, provider: &str) -> Vec<Model> {
        let mut models = self.compose_physical(provider);
        models.retain(|model| !self.virtual_of(provider).any(|known| known.id == model.id));
        models.extend(self.virtual_of(provider).cloned());
        models
    }

    /// True if another program has registered a provider, without models.
    fn lends_no_models(&self, provider: &str) -> bool {
        self.lent.iter().any(|(name, config)| name == provider && config.models.is_empty())
    }

    fn compose_physical(&self, provider: &str) -> Vec<Model> {
        let section = Section::of(provider).filter(|_| !self.newer.replaces(provider));
        let mut models = section.map_or_else(Vec::new, |section| section.models());
        for model in self.newer.of(provider).iter().chain(self.added_of(provider)) {
            replace_or_push(&mut models, model.clone());
        }
        // Another program that names no models changes those of the file.
        if let Some(config) = self.file.provider(provider).filter(|_| self.lends_no_models(provider)) {
            models = overlay::compose(provider, models.clone(), config).unwrap_or(models);
        }
        match self.provider_config(provider) {
            // An invalid provider was already reported when the file was read, so the error is ignored.
            Some(config) => {
                let mut models = overlay::compose(provider, models.clone(), config).unwrap_or(models);
                // Another program that names models of a provider names all of them.
                if self.lent.iter().any(|(name, _)| name == provider) && !config.models.is_empty() {
                    models.retain(|model| config.models.iter().any(|named| named["id"] == model.id));
                }
                models
            }
            None => models,
        }
    }
}

/// The name under which the vault knows a secret in a header of `models.json`.
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
    use crate::llm::model::VIRTUAL_API;

    /// A registry with this `models.json`, which must be valid.
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

    /// Checks that all functions return equal models.
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
    fn a_virtual_model_hides_one_with_its_id_and_needs_no_other() {
        let mut registry = registry(r#"{"providers": {}}"#);
        let count = registry.models_of("anthropic").len();
        let virtual_model =
            |provider: &str, id: &str| Model { api: VIRTUAL_API.into(), ..model(provider, id) };
        registry.lend_virtual(vec![
            virtual_model("router", "auto"),
            virtual_model("anthropic", "auto"),
            virtual_model("anthropic", "claude-opus-4-8"),
        ]);
        assert_consistent(&registry);
        assert!(registry.find("anthropic", "claude-opus-4-8").unwrap().is_virtual());
        assert_eq!(registry.models_of("anthropic").len(), count + 1);
        assert_eq!(registry.models_of("router").len(), 1);
        // The models of an account are no matter of a virtual one.
        registry.set_allowed([("anthropic".to_owned(), HashSet::new())].into());
        let offered: Vec<String> =
            registry.offered_of("anthropic").iter().map(|one| one.id.clone()).collect();
        assert_eq!(offered, ["auto", "claude-opus-4-8"]);
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
