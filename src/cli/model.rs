//! Which model the command line means.

use super::flags::Args;
use super::start::World;
use super::stranger;
use crate::base::env::Env;
use crate::llm::model::{Model, ThinkingLevel};
use crate::mode::report::{self, warning as warn};
use crate::models::local;
use crate::models::resolve;
use crate::models::resolve::{Scoped, Start, Wanted};
use crate::session::context::SessionContext;
use std::sync::Arc;

pub struct Choice {
    pub model: Arc<Model>,
    /// The level that the name itself asked for.
    pub thinking: Option<ThinkingLevel>,
    /// What `--models` or the setting lists; empty: every model.
    pub scope: Vec<Scoped>,
}

/// The model of the command line, else of the session, else of the settings, else what can be used.
pub fn choose(args: &Args, world: &mut World, context: &SessionContext) -> Result<Choice, String> {
    let saved = world.settings.default_provider().zip(world.settings.default_model());
    let saved = saved.map(|(provider, id)| (provider.to_owned(), id.to_owned()));
    let stored = context.model.as_ref().filter(|_| !context.messages.is_empty());
    let names_local =
        |name: Option<&str>| name.is_some_and(|name| name == local::PROVIDER || name.starts_with("local/"));
    let wanted = args.model.as_deref().or(args.provider.as_deref());
    let is_named = names_local(wanted)
        || args.provider.as_deref() == Some(local::PROVIDER)
        || args.models.iter().flatten().any(|pattern| names_local(Some(pattern)))
        || (wanted.is_none() && saved.as_ref().is_some_and(|(provider, _)| provider == local::PROVIDER));
    let asks_local =
        is_named || (wanted.is_none() && stored.is_some_and(|model| model.provider == local::PROVIDER));
    let mut found = asks_local.then(|| world.find_local(is_named));
    let is_local = names_local(wanted) || args.provider.as_deref() == Some(local::PROVIDER);
    let scope = listed(args, world);
    let mut choice = match &found {
        Some(found) if is_local => {
            let name = args.model.as_deref().unwrap_or(local::PROVIDER);
            Some(named_local(args, found, name)?)
        }
        _ => pick(
            args,
            world,
            &scope,
            saved.as_ref(),
            stored.map(|model| (model.provider.as_str(), model.id.as_str())),
        )?,
    };
    if choice.is_none() && found.is_none() {
        let others = world.find_local(false);
        choice = others.preferred().map(|offer| told(args, offer));
        found = Some(others);
    }
    let strangers = found.map(|found| found.strangers).unwrap_or_default();
    if choice.is_none() && stranger::ask(world, &strangers) {
        choice = world.find_local(false).preferred().map(|offer| told(args, offer));
    }
    let choice = match choice {
        Some(choice) => choice,
        None if world.is_interactive => {
            Choice { model: Arc::new(Model::none()), thinking: None, scope: Vec::new() }
        }
        None => return Err(no_models() + &stranger::told(&strangers)),
    };
    Ok(Choice { scope, ..choice })
}

/// The models that `--models` or the setting lists.
pub fn listed(args: &Args, world: &World) -> Vec<Scoped> {
    let patterns = args.models.clone();
    let patterns = patterns.or_else(|| world.settings.enabled_models());
    let patterns = patterns.unwrap_or_default();
    if patterns.is_empty() {
        return Vec::new();
    }
    let services = &world.services;
    let usable = |provider: &str| services.usable(provider);
    let (scope, warnings) = resolve::scope(&services.registry, &usable, &patterns);
    warnings.iter().for_each(warn);
    scope
}

fn pick(
    args: &Args,
    world: &World,
    scope: &[Scoped],
    saved: Option<&(String, String)>,
    session: Option<(&str, &str)>,
) -> Result<Option<Choice>, String> {
    let services = &world.services;
    let usable = |provider: &str| services.usable(provider);
    let start = Start {
        wanted: Wanted {
            provider: args.provider.as_deref(),
            model: args.model.as_deref(),
            thinking: args.thinking,
        },
        scope,
        session,
        saved: saved.map(|(provider, id)| (provider.as_str(), id.as_str())),
    };
    let choice = resolve::initial(&services.registry, &usable, &start)?;
    Ok(choice.map(|choice| {
        if let Some(text) = &choice.warning {
            warn(text);
        }
        Choice { model: choice.model, thinking: choice.thinking, scope: Vec::new() }
    }))
}

/// A model of this machine that was asked for by name.
fn named_local(args: &Args, found: &local::Found, name: &str) -> Result<Choice, String> {
    if let Some(offer) = found.find(name) {
        return Ok(told(args, offer));
    }
    if let Some((name, level)) = name.rsplit_once(':')
        && let (Some(offer), Some(level)) = (found.find(name), ThinkingLevel::parse(level))
    {
        return Ok(Choice { thinking: Some(level), ..told(args, offer) });
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

/// Says which model was taken, since nobody configured it.
fn told(args: &Args, offer: &local::Offer) -> Choice {
    report::note(format_args!("Using {offer}"));
    let wants_tools = args.tools.is_some() || !(args.no_tools || args.no_builtin_tools);
    if let local::Tools::Unsupported(reason) = &offer.tools
        && wants_tools
    {
        warn(reason);
    }
    Choice { model: offer.model.clone(), thinking: None, scope: Vec::new() }
}

/// Addresses that other programs read from the environment, and the usual ones of the providers.
const BASE_URLS: [(&str, &str, &str); 2] = [
    ("openai", "OPENAI_BASE_URL", "https://api.openai.com"),
    ("anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
];

/// What to say where the environment names another address than requests to `model` will go to.
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

/// Whether `reason` says that there is no model at all.
pub fn is_missing(reason: &str) -> bool {
    reason.starts_with(&no_models())
}

fn no_models() -> String {
    "No models available. There is no key in the environment or auth.json, and no server on this machine answered.\n\n  \
     Set a key:      export ANTHROPIC_API_KEY=...   (all variables: pi docs providers)\n  \
     Or run a model: ollama serve                   (servers that are found: pi docs local)\n  \
     Or look first:  pi --model faux/demo -p \"What is in this folder?\""
        .into()
}

/// The level to begin with, as the model has it.
pub fn thinking(args: &Args, world: &World, context: &SessionContext, choice: &Choice) -> ThinkingLevel {
    let stored = context.thinking_level.as_deref().and_then(ThinkingLevel::parse);
    let stored = stored.filter(|_| !context.messages.is_empty());
    let asked = args.thinking.or(choice.thinking).or(stored);
    let of_model = world.settings.model_thinking_level(&choice.model.provider, &choice.model.id);
    resolve::thinking_level(&choice.model, asked, of_model, world.settings.default_thinking_level())
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
