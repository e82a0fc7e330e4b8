//! Chooses a model for a command line, a list of patterns, a session, or by default.
//!
//! A name is tried exactly, then as part of an id or display name, and only then without a `:level` at its
//! end, so that ids may contain colons. Credentials do not affect the result, except that of several matches
//! a usable one is preferred.
//!
//! Callers pass a [`Usable`] function, since credentials are not known here. Only the catalogue entries
//! needed for the result are parsed.

mod candidate;
mod nearest;
pub mod order;

use super::local::PROVIDER as LOCAL;
use crate::base::glob::is_glob;
use crate::base::order::Order;
use crate::llm::model::{Model, ThinkingLevel, provider_id};
use crate::models::{ModelName, Registry};
use crate::wire::faux::PROVIDER as FAUX;
use candidate::{Candidates, find_with_level, split_level};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns true if there are credentials for a provider.
pub type Usable<'a> = &'a dyn Fn(&str) -> bool;

/// The thinking level of a new session by default.
pub const DEFAULT_THINKING: ThinkingLevel = ThinkingLevel::Medium;

/// Each provider's default model, in the order in which providers are tried.
static DEFAULTS: [(&str, &str); 42] = [
    ("amazon-bedrock", "us.anthropic.claude-opus-5-5"),
    ("ant-ling", "Ring-2.6-1T"),
    ("anthropic", "claude-opus-5-5"),
    ("openai", "gpt-6.1-sol"),
    ("azure", "gpt-6.1-sol"),
    ("openai-codex", "gpt-6.1-sol"),
    ("radius", "balanced"),
    ("nvidia", "nvidia/nemotron-3.5-super-vl-120b-a12b"),
    ("deepseek", "deepseek-v4-pro"),
    ("google", "gemini-4-argon"),
    ("google-vertex", "gemini-4-argon"),
    ("github-copilot", "gpt-6.1-sol"),
    ("openrouter", "moonshotai/kimi-k2.7-code"),
    ("vercel-ai-gateway", "zai/glm-5.3"),
    ("xai", "grok-4.7"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
    ("zai", "glm-5.3"),
    ("zai-coding-cn", "glm-5.3"),
    ("mistral", "devstral-medium-latest"),
    ("minimax", "MiniMax-M3"),
    ("minimax-cn", "MiniMax-M3"),
    ("moonshotai", "kimi-k2.7-code"),
    ("moonshotai-cn", "kimi-k2.7-code"),
    ("huggingface", "moonshotai/Kimi-K2.7-Code"),
    ("fireworks", "accounts/fireworks/models/kimi-k3"),
    ("together", "moonshotai/Kimi-K3"),
    ("baseten", "zai-org/GLM-5.3"),
    ("opencode", "kimi-k2.7-code"),
    ("opencode-go", "kimi-k3.1-pro"),
    ("kimi-coding", "kimi-for-coding"),
    ("meta", "muse-spark-1.3"),
    ("cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.7-code"),
    ("cloudflare-ai-gateway", "workers-ai/@cf/moonshotai/kimi-k2.7-code"),
    ("qwen-token-plan", "qwen3.8-max"),
    ("qwen-token-plan-cn", "qwen3.8-max"),
    ("qwen-token-plan-individual", "qwen3.8-max"),
    ("qwen-token-plan-individual-cn", "qwen3.8-max"),
    ("xiaomi", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-cn", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-ams", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-sgp", "mimo-v2.6-pro"),
];

/// The model options of a command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub provider: Option<&'a str>,
    pub model: Option<&'a str>,
    /// `--thinking`. Not part of the [`Choice`]: if set, a `:level` in an unknown id counts as part of the
    /// id.
    pub thinking: Option<ThinkingLevel>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub model: Arc<Model>,
    /// The level in the model's name, not clamped.
    pub thinking: Option<ThinkingLevel>,
    /// A warning for the user.
    pub warning: Option<String>,
}

/// An entry of `--models`: a model, and the thinking level in its pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoped {
    pub model: Arc<Model>,
    pub thinking: Option<ThinkingLevel>,
}

/// The input for choosing a session's first model.
#[derive(Clone, Copy, Default)]
pub struct Start<'a> {
    pub wanted: Wanted<'a>,
    /// The models of `--models`, otherwise of the setting.
    pub scope: &'a [Scoped],
    /// Provider and id of the last model in the continued session.
    pub session: Option<(&'a str, &'a str)>,
    /// Provider and id of the default model in the settings.
    pub saved: Option<(&'a str, &'a str)>,
}

/// The model of a new or continued session; `Ok(None)` if no provider is usable.
pub fn initial(registry: &Registry, usable: Usable<'_>, start: &Start<'_>) -> Result<Option<Choice>, String> {
    let says = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    if says(start.wanted.model) || says(start.wanted.provider) {
        return resolve(registry, usable, start.wanted).map(Some);
    }
    let choice = |model, thinking, warning| Ok(Some(Choice { model, thinking, warning }));
    let is = |model: &Model, (provider, id): (&str, &str)| {
        model.provider == provider_id(provider) && model.id == id
    };
    if let (Some(first), None) = (start.scope.first(), start.session) {
        let saved = start.saved.and_then(|saved| {
            let mut scope = start.scope.iter();
            scope.find(|scoped| is(&scoped.model, saved))
        });
        let scoped = saved.unwrap_or(first);
        return choice(Arc::clone(&scoped.model), scoped.thinking, None);
    }
    // A session that used the faux provider may continue with it.
    let named = |provider: &str| provider == FAUX || usable(provider);
    let mut lost = None;
    for (whose, model) in [("session's", start.session), ("default", start.saved)] {
        let Some((provider, id)) = model else { continue };
        let provider = provider_id(provider);
        let why = match registry.find(provider, id) {
            Some(model) if named(provider) => {
                return choice(model.clone(), None, lost.map(|lost| replaced(lost, &model)));
            }
            Some(_) => format!("there is no key for {provider}"),
            None => "there is no such model now".to_owned(),
        };
        lost.get_or_insert_with(|| format!("The {whose} model cannot be used, {provider}/{id}: {why}."));
    }
    let Some(model) = first_usable(registry, usable) else { return Ok(None) };
    let warning = lost.map(|lost| replaced(lost, &model));
    choice(model, None, warning)
}

fn replaced(lost: String, by: &Model) -> String {
    format!("{lost} Using {}/{}.", by.provider, by.id)
}

fn first_usable(registry: &Registry, usable: Usable<'_>) -> Option<Arc<Model>> {
    let mut defaults = DEFAULTS.iter().filter(|(provider, _)| usable(provider));
    let offered = |(provider, id): &(&str, &str)| {
        let is_offered = registry.is_offered(provider, id);
        is_offered.then(|| registry.find(provider, id)).flatten()
    };
    if let Some(model) = defaults.find_map(offered) {
        return Some(model);
    }
    let providers = registry.providers();
    let mut others = providers.into_iter().filter(|name| *name != FAUX && usable(name));
    others.find_map(|name| registry.offered_of(name).into_iter().next())
}

/// The default model of a provider, or its first one.
pub fn default_model(registry: &Registry, provider: &str) -> Option<Arc<Model>> {
    let default = DEFAULTS.iter().find(|(name, _)| *name == provider);
    default
        .and_then(|(_, id)| registry.find(provider, id))
        .or_else(|| registry.models_of(provider).into_iter().next())
}

/// The thinking level of a session: `asked`, otherwise the setting for the model, otherwise the general
/// setting; clamped to what the model supports.
pub fn thinking_level(
    model: &Model,
    asked: Option<ThinkingLevel>,
    of_model: Option<ThinkingLevel>,
    of_settings: Option<ThinkingLevel>,
) -> ThinkingLevel {
    let level = asked.or(of_model).or(of_settings);
    model.clamp_thinking(level.unwrap_or(DEFAULT_THINKING))
}

/// The model that a command line names. An error suggests similar names.
pub fn resolve(registry: &Registry, usable: Usable<'_>, wanted: Wanted<'_>) -> Result<Choice, String> {
    // The faux provider is used only by name, although it needs no credentials. Answers are cached, since a
    // check may read a file.
    let answers = RefCell::new(HashMap::new());
    let usable: Usable<'_> = &|provider| {
        let mut answers = answers.borrow_mut();
        let ask = || provider != FAUX && usable(provider);
        *answers.entry(provider.to_owned()).or_insert_with(ask)
    };
    let providers = registry.providers();
    let known = |name: &str| {
        let mut providers = providers.iter().copied();
        let name = provider_id(name);
        providers.find(|provider| provider.eq_ignore_ascii_case(name))
    };
    let text = wanted.model.unwrap_or_default().trim();
    let (provider, pattern, inferred) = match wanted.provider {
        Some(name) => {
            let Some(provider) = known(name) else {
                return Err(nearest::unknown_provider(name, &providers));
            };
            (Some(provider), without_provider(without_provider(text, name), provider), false)
        }
        None if text == LOCAL || text == FAUX => (known(text), "", false),
        None => match text.split_once('/').map(|(name, id)| (known(name), id)) {
            Some((Some(provider), id)) => (Some(provider), id, true),
            _ => (None, text, false),
        },
    };

    let Some(provider) = provider else {
        let names = registry.names();
        return match find_with_level(text, &Candidates::new(&names, usable), false) {
            Some(found) => found.choose(registry, text, usable),
            None => Err(nearest::unknown_model(text, &names, usable)),
        };
    };
    if pattern.is_empty() {
        return default_model(registry, provider)
            .map(Choice::from)
            .ok_or_else(|| nearest::unknown_provider(provider, &providers));
    }
    let names = registry.names_of(provider);
    if let Some(found) = find_with_level(pattern, &Candidates::new(&names, usable), false) {
        // The whole text may be an id of another provider, such as a router whose ids contain a slash.
        let elsewhere = inferred && !usable(provider) && provider != FAUX;
        if elsewhere && let Some(model) = only_usable_id(registry, usable, text) {
            return Ok(model.into());
        }
        return found.choose(registry, pattern, usable);
    }
    if inferred {
        let all = registry.names();
        if let Some(found) = find_with_level(text, &Candidates::new(&all, usable), false) {
            return found.choose(registry, text, usable);
        }
    }
    match custom(registry, provider, pattern, wanted.thinking, &names) {
        Some(choice) => Ok(choice),
        None => Err(nearest::unknown_model(text, &names, usable)),
    }
}

impl From<Arc<Model>> for Choice {
    fn from(model: Arc<Model>) -> Self {
        Self { model, thinking: None, warning: None }
    }
}

/// `text` without a leading `provider/`.
fn without_provider<'a>(text: &'a str, provider: &str) -> &'a str {
    match text.split_at_checked(provider.len()) {
        Some((name, rest)) if name.eq_ignore_ascii_case(provider) => rest.strip_prefix('/').unwrap_or(text),
        _ => text,
    }
}

/// Replaces a provider's former id at the start of a pattern by its present id.
fn with_provider_id(pattern: &str) -> Cow<'_, str> {
    match pattern.split_once('/') {
        Some((name, rest)) if provider_id(name) != name => format!("{}/{rest}", provider_id(name)).into(),
        _ => Cow::Borrowed(pattern),
    }
}

/// The usable model with exactly this id, if there is only one.
fn only_usable_id(registry: &Registry, usable: Usable<'_>, id: &str) -> Option<Arc<Model>> {
    let lower = id.to_lowercase();
    let providers = registry.providers();
    let mut found = providers.into_iter().filter(|name| usable(name)).flat_map(|name| {
        let names = registry.names_of(name).into_iter();
        names.filter(|name| name.id.to_lowercase() == lower)
    });
    match (found.next(), found.next()) {
        (Some(name), None) => registry.find(&name.provider, &name.id),
        _ => None,
    }
}

/// A model that is not in the catalogue, with the properties of the provider's default model. `None` for the
/// faux provider.
fn custom(
    registry: &Registry,
    provider: &str,
    pattern: &str,
    asked: Option<ThinkingLevel>,
    names: &[ModelName],
) -> Option<Choice> {
    let like = default_model(registry, provider).filter(|_| provider != FAUX)?;
    let (id, level) = match split_level(pattern) {
        Some((id, level)) if asked.is_none() => (id, Some(level)),
        _ => (pattern, None),
    };
    let mut model = Arc::unwrap_or_clone(like);
    model.id = id.to_owned();
    model.name = id.to_owned();
    let thinks = asked.or(level).is_some_and(|level| level > ThinkingLevel::Off);
    model.reasoning |= thinks;
    let near = nearest::among(id, names, &|_| true);
    let near = if near.is_empty() { String::new() } else { format!(" (it has {near})") };
    let warning =
        format!("Model \"{id}\" not found for provider \"{provider}\"{near}. Using custom model id.");
    Some(Choice { model: Arc::new(model), thinking: level, warning: Some(warning) })
}

/// The warning that a pattern matches models of several providers.
fn several_providers(pattern: &str, names: &[&ModelName]) -> Option<String> {
    let mut providers: Vec<&str> = names.iter().map(|name| &*name.provider).collect();
    providers.order();
    providers.dedup();
    (providers.len() > 1).then(|| {
        let providers = providers.join(", ");
        format!(
            "Pattern \"{pattern}\" matches several providers: {providers}. Use provider/id to choose one."
        )
    })
}

/// The models that match `patterns`, in their order, each once, and warnings. Only usable models match; the
/// faux provider must be named.
pub fn scope<S: AsRef<str>>(
    registry: &Registry,
    usable: Usable<'_>,
    patterns: &[S],
) -> (Vec<Scoped>, Vec<String>) {
    let is_faux = |pattern: &S| {
        let provider = pattern.as_ref().split('/').next();
        provider.is_some_and(|name| name.eq_ignore_ascii_case(FAUX))
    };
    let faux = patterns.iter().any(is_faux);
    let offered = |name: &str| if name == FAUX { faux } else { usable(name) };
    let providers = registry.providers().into_iter().filter(|name| offered(name));
    let mut names: Vec<ModelName> = providers.flat_map(|name| registry.names_of(name)).collect();
    names.retain(|name| registry.is_offered(&name.provider, &name.id));
    let candidates = Candidates::new(&names, &|_| true);

    let mut chosen: Vec<(&ModelName, Option<ThinkingLevel>)> = Vec::new();
    let mut warnings = Vec::new();
    for pattern in patterns {
        let pattern = &*with_provider_id(pattern.as_ref());
        let before = chosen.len();
        if is_glob(pattern) {
            let (text, level) = match split_level(pattern) {
                Some((text, level)) => (text, Some(level)),
                None => (pattern, None),
            };
            let exact = candidates.exact(text);
            warnings.extend(several_providers(pattern, &exact));
            match exact.is_empty() {
                false => chosen.extend(exact.into_iter().map(|name| (name, level))),
                true => chosen.extend(candidates.matching(text).map(|name| (name, level))),
            }
        } else if let Some(found) = find_with_level(pattern, &candidates, true) {
            warnings.extend(found.warning);
            warnings.extend(several_providers(pattern, &found.names));
            chosen.extend(found.names.into_iter().map(|name| (name, found.level)));
        }
        if chosen.len() == before {
            warnings.push(format!("No models match pattern \"{pattern}\""));
        }
    }
    let mut seen = HashSet::new();
    chosen.retain(|(name, _)| seen.insert((&name.provider, &name.id)));

    // Models are parsed one provider at a time: a pattern may match hundreds of models.
    let mut shelves: HashMap<&str, HashMap<String, Arc<Model>>> = HashMap::new();
    let scoped = chosen.into_iter().filter_map(|(name, thinking)| {
        let shelf = shelves.entry(&name.provider).or_insert_with(|| {
            let models = registry.models_of(&name.provider).into_iter();
            models.map(|model| (model.id.clone(), model)).collect()
        });
        let model = Arc::clone(shelf.get(&name.id)?);
        Some(Scoped { model, thinking })
    });
    (scoped.collect(), warnings)
}

#[cfg(test)]
mod tests;
