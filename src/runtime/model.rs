//! Changes of model and thinking level. A run uses them from its next request on.

use super::control::Models;
use super::event::{Emit, Event};
use crate::agent::run::Fatal;
use crate::base::json::json;
use crate::llm::model::{Model, ThinkingLevel};
use crate::models::local;
use crate::models::resolve::{Choice, DEFAULT_THINKING, Scoped, Wanted, resolve};
use std::sync::Arc;
use std::time::Duration;

/// The result of cycling to another model.
pub struct Cycled {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// True if the user limited the models to cycle through.
    pub is_scoped: bool,
}

impl Models<'_> {
    pub fn current(&self) -> Arc<Model> {
        self.control.state().model.clone()
    }

    /// Returns models that a request can be sent to. The faux provider is included only while one of its
    /// models is in use.
    pub fn available(&self) -> Vec<Arc<Model>> {
        let registry = &self.control.config().services.registry;
        let providers = self.usable_providers();
        let models = providers.iter().flat_map(|name| registry.offered_of(name));
        models.collect()
    }

    /// Returns the first model of `patterns` that a request can be sent to, with a thinking level if its pattern
    /// names one.
    pub fn first_of(&self, patterns: &[String]) -> Option<Scoped> {
        let config = self.control.config();
        let services = &config.services;
        let usable = |provider: &str| services.usable(provider);
        patterns.iter().find_map(|pattern| {
            let wanted = Wanted { provider: None, model: Some(pattern), thinking: None };
            let Choice { model, thinking, .. } = resolve(&services.registry, &usable, wanted).ok()?;
            let is_usable = services.is_faux(&model.provider) || services.usable(&model.provider);
            is_usable.then_some(Scoped { model, thinking })
        })
    }

    /// Returns providers that a request can be sent to.
    pub fn usable_providers(&self) -> Vec<String> {
        let (config, current) = {
            let state = self.control.state();
            (state.config.clone(), state.model.provider.clone())
        };
        let services = &config.services;
        let offered = |name: &str| match services.is_faux(name) {
            true => current == name,
            false => services.usable(name),
        };
        let providers = services.registry.providers().into_iter();
        providers.filter(|name| offered(name)).map(str::to_owned).collect()
    }

    /// Returns the models that the user can cycle through, each with an optional thinking level; all if
    /// empty.
    pub fn scope(&self) -> Vec<Scoped> {
        self.control.config().scope.clone()
    }

    /// Sets the models that the user can cycle through, while the conversation lasts.
    pub fn set_scope(&self, scope: Vec<Scoped>) {
        self.control.change_config(|config| config.scope = scope);
    }

    /// Asks local servers for their models, and adds these to the registry. Waits for answers for up to
    /// `limit`.
    pub fn find_local(&self, limit: Duration) -> local::Found {
        let config = self.control.config();
        let services = &config.services;
        let found =
            local::discover(&services.credentials.local_env(), limit, &services.local_servers.allowed());
        self.control.change_config(|config| {
            let registry = &mut config.services.registry;
            registry.remove(local::PROVIDER);
            registry.remove(local::LLAMA_CPP);
            registry.add(found.offers.iter().map(|offer| Model::clone(&offer.model)));
            registry.set_classifiers(found.classifiers.clone());
        });
        found
    }

    /// Changes to another model. `None` if it does not exist or has no key.
    pub fn set(&self, provider: &str, id: &str, emit: Emit<'_>) -> Result<Option<Arc<Model>>, Fatal> {
        let config = self.control.state().config.clone();
        let services = &config.services;
        let Some(model) = services.registry.find(provider, id).filter(|_| services.usable(provider)) else {
            return Ok(None);
        };
        self.use_model(model.clone(), None, "set", emit)?;
        Ok(Some(model))
    }

    /// Changes to the next or the previous model. `None` if there is no other model.
    pub fn cycle(&self, is_forward: bool, emit: Emit<'_>) -> Result<Option<Cycled>, Fatal> {
        let (config, current) = {
            let state = self.control.state();
            (state.config.clone(), state.model.clone())
        };
        let is_scoped = !config.scope.is_empty();
        let models: Vec<Scoped> = if is_scoped {
            let usable = |scoped: &&Scoped| config.services.usable(&scoped.model.provider);
            config.scope.iter().filter(usable).cloned().collect()
        } else {
            let all = self.available().into_iter();
            all.map(|model| Scoped { model, thinking: None }).collect()
        };
        if models.len() <= 1 {
            return Ok(None);
        }
        let is_current =
            |scoped: &Scoped| scoped.model.provider == current.provider && scoped.model.id == current.id;
        let at = models.iter().position(is_current).unwrap_or(0);
        let step = if is_forward { 1 } else { models.len() - 1 };
        let Some(next) = models.get((at + step) % models.len()).cloned() else {
            return Ok(None);
        };
        let thinking = self.use_model(next.model.clone(), next.thinking, "cycle", emit)?;
        Ok(Some(Cycled { model: next.model, thinking, is_scoped }))
    }

    fn use_model(
        &self,
        model: Arc<Model>,
        asked: Option<ThinkingLevel>,
        source: &str,
        emit: Emit<'_>,
    ) -> Result<ThinkingLevel, Fatal> {
        let previous = self.current();
        let selected = model.clone();
        let level = {
            let mut log = self.control.log();
            log.append_model_change(&model.provider, &model.id)?;
            let mut state = self.control.state();
            let settings = &state.config.settings;
            let level = asked
                .or_else(|| settings.model_thinking_level(&model.provider, &model.id))
                .or_else(|| settings.default_thinking_level())
                .unwrap_or(state.thinking);
            state.model = model;
            level
        };
        let level = self.set_thinking(level, emit)?;
        let fields =
            || json!({"model": selected.shown(), "previousModel": previous.shown(), "source": source});
        if (&selected.provider, &selected.id) != (&previous.provider, &previous.id) {
            self.control.hooked().tell("model_select", fields, self.control.root());
        }
        Ok(level)
    }

    /// True if the model's provider is used through a sign-in, not with a key that is paid for by the token.
    pub fn is_subscribed(&self, model: &Model) -> bool {
        let config = self.control.config();
        let stored = config.services.credentials.stored().unwrap_or_default();
        stored.iter().any(|entry| entry.provider == model.provider && entry.kind == "oauth")
    }

    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        self.control.state().model.thinking_levels()
    }

    /// Sets the thinking level, clamped to what the model supports. Returns the level that is set.
    pub fn set_thinking(&self, wanted: ThinkingLevel, emit: Emit<'_>) -> Result<ThinkingLevel, Fatal> {
        let (level, before) = {
            let mut log = self.control.log();
            let (level, before) = {
                let state = self.control.state();
                (state.model.clamp_thinking(wanted), state.thinking)
            };
            if level == before {
                return Ok(level);
            }
            log.append_thinking_level(level.name())?;
            self.control.state().thinking = level;
            (level, before)
        };
        emit(&Event::ThinkingLevelChanged { level });
        let fields = || json!({"level": level, "previousLevel": before});
        self.control.hooked().tell("thinking_level_select", fields, self.control.root());
        Ok(level)
    }

    /// Changes to the model's next thinking level. `None` if the model does not think.
    pub fn cycle_thinking(&self, emit: Emit<'_>) -> Result<Option<ThinkingLevel>, Fatal> {
        let (model, current) = {
            let state = self.control.state();
            (state.model.clone(), state.thinking)
        };
        if !model.reasoning {
            return Ok(None);
        }
        let levels = model.thinking_levels();
        let at = levels.iter().position(|level| *level == current);
        let next = at.map_or(0, |at| (at + 1) % levels.len().max(1));
        let next = levels.get(next).copied().unwrap_or(DEFAULT_THINKING);
        self.set_thinking(next, emit).map(Some)
    }
}
