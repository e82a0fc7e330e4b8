//! Models, keys, timeouts and other settings for the requests of a session.

use super::lent::{LentModels, Provider, Router};
use super::local_servers::LocalServers;
use crate::agent::run::Request;
use crate::auth::credential::Credentials;
use crate::auth::provider;
use crate::base::cancel::CancelToken;
use crate::base::order;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, Clocks, Resend, StreamOptions};
use crate::llm::secret::Vault;
use crate::models::{Registry, local};
use crate::resources::settings::{Compaction, Retry, Settings};
use crate::session::StoredModel;
use crate::wire::faux;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for asking a server on this machine how many requests it answers at once.
const SLOTS_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct Services {
    pub registry: Registry,
    pub credentials: Credentials,
    pub clocks: Clocks,
    pub cache: CacheRetention,
    pub thinking_budgets: Vec<(ThinkingLevel, u64)>,
    pub retry: Retry,
    pub compaction: Compaction,
    /// The proxy for requests if the environment sets none.
    pub http_proxy: Option<String>,
    /// True if images are not sent to models.
    pub block_images: bool,
    /// True if requests to routers that list their clients contain pi's name.
    pub names_itself: bool,
    pub local_servers: LocalServers,
    /// Models of other programs.
    lent: LentModels,
    /// The provider and the URL of `--base-url`, which takes precedence over other URLs of that provider.
    pub base_url: Option<(String, String)>,
}

/// Returns pi's environment without the variables that hold keys of providers: for programs that serve a session.
pub fn environment() -> BTreeMap<OsString, OsString> {
    let mut env = order::map(std::env::vars_os());
    for name in provider::key_names() {
        env.remove(OsStr::new(name));
    }
    env
}

impl Services {
    /// Makes the services from settings and environment. `agent` is the agent folder.
    pub fn new(registry: Registry, credentials: Credentials, settings: &Settings, agent: &Path) -> Self {
        credentials.learn_files(&registry);
        let cache = match credentials.env().get("PI_CACHE_RETENTION").as_deref() {
            Some("long") => CacheRetention::Long,
            Some("none") => CacheRetention::None,
            _ => CacheRetention::Short,
        };
        let mut services = Self {
            registry,
            credentials,
            clocks: Clocks::default(),
            cache,
            thinking_budgets: Vec::new(),
            retry: settings.retry(),
            compaction: settings.compaction(),
            http_proxy: None,
            block_images: false,
            names_itself: false,
            local_servers: LocalServers::new(agent),
            lent: LentModels::default(),
            base_url: None,
        };
        services.follow(settings);
        services
    }

    /// Applies changed settings.
    pub fn follow(&mut self, settings: &Settings) {
        self.clocks.first = settings.request_timeout();
        self.clocks.idle = settings.http_idle_timeout();
        self.clocks.is_chosen = settings.chooses_request_timeout();
        self.thinking_budgets = settings.thinking_budgets();
        self.retry = settings.retry();
        self.compaction = settings.compaction();
        self.http_proxy = settings.http_proxy().map(str::to_owned);
        self.credentials.set_http_proxy(settings.http_proxy());
        self.block_images = settings.flag("images.blockImages");
        self.names_itself = settings.flag("enableInstallTelemetry");
        self.vault().switch(settings.flag("hideSecrets"));
    }

    /// Copies from `old` what no file stores: the key and URL of the command line, and models of local
    /// servers.
    pub fn keep(&mut self, old: &Self) {
        self.credentials.give_as(&old.credentials);
        self.registry.add_found_by(&old.registry);
        self.base_url.clone_from(&old.base_url);
        self.local_servers.clone_from(&old.local_servers);
    }

    /// Takes the models of other programs in place of those before. False if nothing changed.
    pub fn lend(&mut self, models: LentModels) -> bool {
        if self.lent == models {
            return false;
        }
        let providers = &models.providers;
        let configs = providers.iter().map(|provider| (provider.name.clone(), provider.config.clone()));
        self.registry.lend(configs.collect());
        let sign_in = |provider: &Provider| Some((provider.name.clone(), provider.sign_in.clone()?));
        self.credentials.lend(providers.iter().filter_map(sign_in).collect());
        self.registry.lend_virtual(models.virtual_models.iter().map(|one| one.model.clone()).collect());
        self.lent = models;
        true
    }

    pub fn has_lent(&self, models: &LentModels) -> bool {
        self.lent == *models
    }

    pub fn has_virtual_models(&self) -> bool {
        !self.lent.virtual_models.is_empty()
    }

    /// True for a stored model that is virtual.
    pub fn is_virtual(&self, stored: &StoredModel) -> bool {
        self.registry.find(&stored.provider, &stored.id).is_some_and(|model| model.is_virtual())
    }

    /// The program that chooses a model for requests to the virtual model `model`.
    pub(super) fn router(&self, model: &Model) -> Result<&Arc<dyn Router>, StreamError> {
        let is_its = |known: &Model| known.provider == model.provider && known.id == model.id;
        let found = self.lent.virtual_models.iter().find(|known| is_its(&known.model));
        let missing = || {
            let name = format!("{}/{}", model.provider, model.id);
            StreamError::new(ErrorKind::Provider, format!("The virtual model {name} is not registered"))
        };
        found.map(|known| &known.router).ok_or_else(missing)
    }

    /// Returns the store of secrets.
    pub fn vault(&self) -> &Vault {
        self.credentials.vault()
    }

    /// True for the faux provider, which is offered only on request.
    pub fn is_faux(&self, provider: &str) -> bool {
        provider == faux::PROVIDER
    }

    /// True if there is a key for `provider`, or all its models are virtual.
    pub fn usable(&self, provider: &str) -> bool {
        let all_virtual = || self.registry.models_of(provider).iter().all(|model| model.is_virtual());
        self.credentials.has(provider, &self.registry.configured(provider, None))
            || (self.registry.has_virtual(provider) && all_virtual())
    }

    /// True if the server of `model` is on this machine.
    pub fn is_on_this_machine(&self, model: &Model) -> bool {
        local::is_loopback(&model.base_url)
    }

    /// Asks the server of `model` how many requests it answers at once; `None` if it does not say.
    pub fn slots(&self, model: &Model, cancel: &CancelToken) -> Option<usize> {
        let configured = self.registry.configured(&model.provider, Some(&model.id));
        let resolved = self.credentials.resolve(model, &configured, cancel).ok()?;
        local::slots(model, resolved.key, SLOTS_WAIT, cancel)
    }

    /// Returns an error if a request to `model` is known to be impossible. Runs no command to find out.
    pub fn check(&self, model: &Arc<Model>, cancel: &CancelToken) -> Result<(), StreamError> {
        if model.is_none() {
            let text =
                "No model selected. Use /login to sign in or to store a key, then /model to choose a model.";
            return Err(StreamError::new(ErrorKind::Request, text));
        }
        if model.is_virtual() {
            self.router(model)?;
        }
        if self.usable(&model.provider) {
            return Ok(());
        }
        let configured = self.registry.configured(&model.provider, Some(&model.id));
        self.credentials.resolve(model, &configured, cancel).map(|_| ())
    }

    /// Makes a request to `model`. The key is resolved for each request, since it may be renewed during a
    /// run.
    pub fn request(
        &self,
        model: &Arc<Model>,
        thinking: ThinkingLevel,
        session: &str,
        cancel: &CancelToken,
    ) -> Result<Request, StreamError> {
        let configured = self.registry.configured(&model.provider, Some(&model.id));
        let resolved = self.credentials.resolve(model, &configured, cancel)?;
        let given = self.base_url.as_ref();
        let given = given.filter(|(provider, _)| *provider == model.provider);
        let given = given.map(|(_, url)| url.clone());
        let mut env = self.with_proxy(resolved.env);
        if let Some(url) = &given {
            // For Azure, the variable takes precedence over the model's URL.
            env.push(("AZURE_OPENAI_BASE_URL".to_owned(), url.clone()));
        }
        if !self.names_itself && !self.credentials.env().has("PI_TELEMETRY") {
            env.push(("PI_TELEMETRY".to_owned(), "0".to_owned()));
        }
        let model = match given.or(resolved.base_url) {
            Some(base_url) => Arc::new(Model { base_url, ..Model::clone(model) }),
            None => model.clone(),
        };
        let options = StreamOptions {
            api_key: resolved.key,
            headers: resolved.headers,
            env,
            aws: resolved.aws,
            thinking,
            thinking_budgets: self.thinking_budgets.clone(),
            cache: self.cache,
            session_id: Some(session.to_owned()),
            clocks: self.clocks,
            resend: Resend {
                count: self.retry.provider_max_retries,
                delay_ms_max: self.retry.provider_max_retry_delay_ms,
            },
            vault: self.vault().clone(),
            outside: {
                let mut lent = self.lent.providers.iter();
                lent.find(|provider| provider.name == model.provider).and_then(|known| known.outside.clone())
            },
            ..StreamOptions::default()
        };
        Ok(Request { model, options })
    }

    /// Adds the proxy of the settings to `env` unless the environment sets one.
    pub fn with_proxy(&self, mut env: Vec<(String, String)>) -> Vec<(String, String)> {
        if let Some(proxy) = &self.http_proxy {
            let known = self.credentials.env().with(&env);
            for name in ["HTTPS_PROXY", "HTTP_PROXY"] {
                if !known.has(name) && !known.has(&name.to_lowercase()) && !known.has("ALL_PROXY") {
                    env.push((name.to_owned(), proxy.clone()));
                }
            }
        }
        env
    }
}
