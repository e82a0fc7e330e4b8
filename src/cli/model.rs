//! Chooses the model of a session.

use super::start::{Launch, NotStarted, warn as say};
use super::stranger;
use crate::base::env::Env;
use crate::base::patience::patience;
use crate::llm::model::{Model, ThinkingLevel};
use crate::mode::report::{self, warning as warn};
use crate::models::local;
use crate::models::resolve;
use crate::models::resolve::{Scoped, Start, Wanted};
use crate::resources::settings::Settings;
use crate::runtime::config::Inputs;
use crate::runtime::overrides::ModelOverrides;
use crate::runtime::service::Services;
use crate::session::context::SessionContext;
use std::sync::Arc;
use std::time::Duration;

/// The model of sessions that only run tools and have no key.
pub const NO_MODEL: &str = "faux/echo";

/// Time limit for asking all local servers together.
const LOCAL_LIMIT: Duration = Duration::from_millis(200);

pub struct Choice {
    pub model: Arc<Model>,
    /// The thinking level in the model's pattern, such as `name:high`.
    pub thinking: Option<ThinkingLevel>,
    /// Models of `--models` or the `enabledModels` setting; empty for every model.
    pub scope: Vec<Scoped>,
}

/// Chooses the model of the command line, or of the session, or of the settings, or any usable one, in this
/// order.
pub fn choose(launch: &Launch, inputs: &mut Inputs, context: &SessionContext) -> Result<Choice, NotStarted> {
    let over = &launch.over.model;
    let wants_tools = launch.over.tools.any();
    let saved = inputs.settings.default_provider().zip(inputs.settings.default_model());
    let saved = saved.map(|(provider, id)| (provider.to_owned(), id.to_owned()));
    let stored = context.models.used(|stored| inputs.services.is_virtual(stored)).cloned();
    let stored = stored.filter(|_| !context.messages.is_empty());
    // Models that models.json gives to `llama.cpp` are not looked for.
    let has_own = !inputs.services.registry.models_of(local::LLAMA_CPP).is_empty();
    let is_local =
        |provider: &str| local::is_provider(provider) && !(has_own && provider == local::LLAMA_CPP);
    let names_local = |name: Option<&str>| {
        name.is_some_and(|name| is_local(name.split_once('/').map_or(name, |(provider, _)| provider)))
    };
    let wanted = over.model.as_deref().or(over.provider.as_deref());
    let is_named = names_local(wanted)
        || names_local(over.provider.as_deref())
        || over.models.iter().flatten().any(|pattern| names_local(Some(pattern)))
        || (wanted.is_none() && saved.as_ref().is_some_and(|(provider, _)| is_local(provider)));
    let asks_local =
        is_named || (wanted.is_none() && stored.as_ref().is_some_and(|model| is_local(&model.provider)));
    let mut found = asks_local.then(|| find_local(&mut inputs.services, is_named));
    let is_wanted = names_local(wanted) || names_local(over.provider.as_deref());
    // A client asks for the models that there are, and for a change to one of them.
    if !asks_local && launch.mode == "rpc" && local::is_configured(&inputs.services.credentials.local_env()) {
        find_local(&mut inputs.services, false);
    }
    let scope = inputs.scope(over, &mut say);
    let start = Start {
        wanted: Wanted {
            provider: over.provider.as_deref(),
            model: over.model.as_deref(),
            thinking: over.thinking,
        },
        scope: &scope,
        session: stored.as_ref().map(|model| (model.provider.as_str(), model.id.as_str())),
        saved: saved.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str())),
    };
    let mut choice = match &found {
        Some(found) if is_wanted => {
            let name = over.model.as_deref().unwrap_or(local::PROVIDER);
            Some(named_local(wants_tools, found, name)?)
        }
        _ => pick(&inputs.services, &start)?,
    };
    if choice.is_none() && found.is_none() {
        let others = find_local(&mut inputs.services, false);
        choice = others.preferred().map(|offer| take(wants_tools, offer));
        found = Some(others);
    }
    let strangers = found.map(|found| found.strangers).unwrap_or_default();
    if choice.is_none() && stranger::ask(launch, inputs, &strangers) {
        let found = find_local(&mut inputs.services, false);
        choice = found.preferred().map(|offer| take(wants_tools, offer));
    }
    let choice = match choice {
        Some(choice) => choice,
        None if launch.is_interactive => {
            Choice { model: Arc::new(Model::none()), thinking: None, scope: Vec::new() }
        }
        None => {
            return Err(NotStarted::NoModel(NO_MODELS.to_owned() + &stranger::describe_unused(&strangers)));
        }
    };
    Ok(Choice { scope, ..choice })
}

/// True if the command line, the session or the settings name a model that is not known.
pub fn names_unknown(over: &ModelOverrides, inputs: &Inputs, context: &SessionContext) -> bool {
    let (services, settings) = (&inputs.services, &inputs.settings);
    let registry = &services.registry;
    let named = over.model.as_deref().and_then(|name| name.split_once('/'));
    let providers =
        [over.provider.as_deref(), named.map(|(provider, _)| provider), settings.default_provider()];
    let known = registry.providers();
    if providers.iter().flatten().any(|name| !known.contains(name)) {
        return true;
    }
    let stored = [&context.models.last, &context.models.chosen].into_iter().flatten();
    let stored = stored.map(|model| (model.provider.as_str(), model.id.as_str()));
    let exact = stored.chain(settings.default_provider().zip(settings.default_model()));
    // Local servers are asked for their models later.
    if exact
        .filter(|(provider, _)| !local::is_provider(provider))
        .any(|(provider, id)| registry.find(provider, id).is_none())
    {
        return true;
    }
    let usable = |provider: &str| services.usable(provider);
    let mut patterns = over.models.clone().or_else(|| settings.enabled_models()).unwrap_or_default();
    patterns.retain(|pattern| !local::is_provider(pattern.split('/').next().unwrap_or_default()));
    if !resolve::scope(registry, &usable, &patterns).1.is_empty() {
        return true;
    }
    let wanted = Wanted { provider: over.provider.as_deref(), model: over.model.as_deref(), thinking: None };
    // A name that only the provider may know is found with a warning.
    let is_found = || {
        let found = resolve::resolve(registry, &usable, wanted);
        found.is_ok_and(|choice| choice.warning.is_none() && usable(&choice.model.provider))
    };
    over.model.is_some() && !is_found()
}

/// Asks local servers for their models, and adds these to the registry. With `is_asked_for`, servers of other
/// users are asked, too: the user named a local model.
pub fn find_local(services: &mut Services, is_asked_for: bool) -> local::Found {
    if is_asked_for {
        services.local_servers.allow_all();
    }
    let allowed = services.local_servers.allowed();
    let found = local::discover(&services.credentials.local_env(), patience(LOCAL_LIMIT), &allowed);
    found.refusals.iter().for_each(warn);
    services.registry.add(found.offers.iter().map(|offer| Model::clone(&offer.model)));
    services.registry.set_classifiers(found.classifiers.clone());
    found
}

fn pick(services: &Services, start: &Start<'_>) -> Result<Option<Choice>, String> {
    let usable = |provider: &str| services.usable(provider);
    let choice = resolve::initial(&services.registry, &usable, start)?;
    Ok(choice.map(|choice| {
        if let Some(text) = &choice.warning {
            warn(text);
        }
        Choice { model: choice.model, thinking: choice.thinking, scope: Vec::new() }
    }))
}

/// Finds the local model that the user named.
fn named_local(wants_tools: bool, found: &local::Found, name: &str) -> Result<Choice, String> {
    if let Some(offer) = found.find(name) {
        return Ok(take(wants_tools, offer));
    }
    if let Some((name, level)) = name.rsplit_once(':')
        && let (Some(offer), Some(level)) = (found.find(name), ThinkingLevel::parse(level))
    {
        return Ok(Choice { thinking: Some(level), ..take(wants_tools, offer) });
    }
    if !found.refusals.is_empty() {
        return Err(format!(
            "No server on this machine could be used, so there is no model \"{name}\". See: pi docs local"
        ));
    }
    if found.offers.is_empty() {
        return Err(format!(
            "No server on this machine answered, so there is no model \"{name}\". See: pi docs local"
        ));
    }
    let names: Vec<&str> = found.offers.iter().map(|offer| offer.model.id.as_str()).collect();
    Err(format!("No server on this machine has the model \"{name}\". There are: {}", names.join(", ")))
}

/// Chooses a discovered model, and tells the user.
fn take(wants_tools: bool, offer: &local::Offer) -> Choice {
    report::note(format_args!("Using {offer}"));
    if let local::Tools::Unsupported(reason) = &offer.tools
        && wants_tools
    {
        warn(reason);
    }
    Choice { model: offer.model.clone(), thinking: None, scope: Vec::new() }
}

/// Providers, variables with which other programs set their URL, and the providers' default URLs.
const BASE_URLS: [(&str, &str, &str); 2] = [
    ("openai", "OPENAI_BASE_URL", "https://api.openai.com"),
    ("anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
];

/// Returns a note if the environment has a URL for the provider of `model` that pi does not use.
pub fn ignored_base_url(model: &Model, env: &Env) -> Option<String> {
    let (provider, name, usual) = BASE_URLS.iter().find(|(provider, ..)| *provider == model.provider)?;
    let wanted = env.get(name)?;
    let is_usual =
        |url: &str| url.strip_prefix(usual).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (is_usual(&model.base_url) && !is_usual(wanted.trim())).then(|| {
        format!(
            "{name} is set, but not used here: requests go to {usual}. For another address, give \"{provider}\" a \"baseUrl\" in models.json (pi docs models), or use --base-url"
        )
    })
}

const NO_MODELS: &str = "\
No models available. There is no key in the environment or auth.json, and no server on this machine answered.

  Set a key:      export ANTHROPIC_API_KEY=...   (all variables: pi docs providers)
  Or run a model: ollama serve                   (servers that are found: pi docs local)
  Or look first:  pi --model faux/demo -p \"What is in this folder?\"";

/// Returns the thinking level that a session starts with, clamped to what the model supports.
pub fn thinking(
    asked: Option<ThinkingLevel>,
    settings: &Settings,
    context: &SessionContext,
    choice: &Choice,
) -> ThinkingLevel {
    let stored = context.thinking_level.as_deref().and_then(ThinkingLevel::parse);
    let stored = stored.filter(|_| !context.messages.is_empty());
    let asked = asked.or(choice.thinking).or(stored);
    let of_model = settings.model_thinking_level(&choice.model.provider, &choice.model.id);
    resolve::thinking_level(&choice.model, asked, of_model, settings.default_thinking_level())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_the_environment_that_is_not_used_is_told() {
        let told = |provider: &str, base_url: &str, set: [(&'static str, &'static str); 1]| {
            let model = Model { provider: provider.into(), base_url: base_url.into(), ..Model::default() };
            ignored_base_url(&model, &Env::of(set)).is_some()
        };
        let usual = "https://api.openai.com/v1";
        let gateway = [("OPENAI_BASE_URL", "http://10.0.0.1:4000/v1")];
        assert!(told("openai", usual, gateway));
        assert!(told("anthropic", "https://api.anthropic.com", [("ANTHROPIC_BASE_URL", "http://x")]));
        assert!(!told("openai", "http://10.0.0.1:4000/v1", gateway));
        assert!(!told("anthropic", "https://api.anthropic.com", gateway));
        assert!(!told("openai", usual, [("OPENAI_BASE_URL", "")]));
        assert!(!told("openai", usual, [("OPENAI_BASE_URL", "https://api.openai.com/v1/")]));
    }
}
