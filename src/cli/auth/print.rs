//! `pi auth print-api-key` and `print-bearer-token`: print a secret and a line feed, for scripts.

use super::{Access, Kind, Options, Stop, say_line, unknown_provider};
use crate::base::cancel::CancelToken;
use crate::llm::event::StreamError;
use crate::llm::model::Model;
use crate::llm::secret::Secret;
use std::sync::Arc;
use std::time::Duration;

/// Minimum time that a printed token remains valid, so that a script can use it.
const MIN_EXPIRY: Duration = Duration::from_secs(30 * 60);

struct Candidate {
    provider: String,
    /// The requested model; `None` if only a provider was named.
    model: Option<Arc<Model>>,
}

pub(super) fn run(access: &Access, kind: Kind, options: &Options, cancel: &CancelToken) -> Result<u8, Stop> {
    let stored = access.credentials.stored();
    stored.map_err(|error| format!("Failed to resolve credential\n{error}"))?;
    let candidates = match &options.provider {
        Some(name) => vec![named(access, name, options.model.as_deref())?],
        None => having(access, options.model.as_deref().unwrap_or_default())?,
    };
    let mut found: Vec<(&str, Secret)> = Vec::new();
    let mut problem = None;
    for candidate in &candidates {
        let provider = candidate.provider.as_str();
        let is_sign_in = access.stored_kind(provider).as_deref() == Some("oauth");
        if is_sign_in != (kind == Kind::BearerToken) {
            continue;
        }
        match secret(access, kind, options, candidate, cancel) {
            Ok(Some(secret)) => found.push((provider, secret)),
            Ok(None) => {}
            Err(error) if is_sign_in => return Err(error.message.into()),
            Err(error) => problem = Some(error.message),
        }
    }
    match found.as_slice() {
        [(_, secret)] => Ok(say_line(secret.expose())),
        [] => Err(nothing(access, kind, options, &candidates, problem)),
        several => {
            let names: Vec<&str> = several.iter().map(|(provider, _)| *provider).collect();
            let names = names.join(", ");
            Err(format!("Multiple configured providers matched ({names}). Specify --provider.").into())
        }
    }
}

fn named(access: &Access, name: &str, model: Option<&str>) -> Result<Candidate, Stop> {
    let provider = access.provider(name).ok_or_else(|| unknown_provider(name))?;
    let model = model.map(|model| access.find(Some(&provider), model)).transpose()?;
    Ok(Candidate { provider, model: model.map(|choice| choice.model) })
}

/// Returns providers that have the model and a stored credential.
fn having(access: &Access, model: &str) -> Result<Vec<Candidate>, Stop> {
    let stored = access.credentials.stored()?;
    let candidates = stored.into_iter().filter_map(|stored| {
        let provider = access.provider(&stored.provider)?;
        let choice = access.find(Some(&provider), model).ok()?;
        // A model that the registry lacks is only a guess.
        let is_known = access.registry.find(&provider, &choice.model.id).is_some();
        is_known.then_some(Candidate { provider, model: Some(choice.model) })
    });
    let candidates: Vec<Candidate> = candidates.collect();
    match candidates.is_empty() {
        true => {
            Err(format!("Model \"{model}\" not found. Use --list-models to see available models.").into())
        }
        false => Ok(candidates),
    }
}

fn secret(
    access: &Access,
    kind: Kind,
    options: &Options,
    candidate: &Candidate,
    cancel: &CancelToken,
) -> Result<Option<Secret>, StreamError> {
    let provider = &candidate.provider;
    let configured = access.configured(provider, candidate.model.as_deref());
    if kind == Kind::BearerToken {
        let at_least = options.min_expiry.unwrap_or(MIN_EXPIRY);
        access.credentials.renew(provider, &configured, at_least, cancel)?;
    }
    let model = candidate.model.clone();
    let model = model.unwrap_or_else(|| access.any_model(provider));
    let resolved = access.credentials.resolve(&model, &configured, cancel)?;
    Ok(resolved.secret())
}

fn nothing(
    access: &Access,
    kind: Kind,
    options: &Options,
    candidates: &[Candidate],
    problem: Option<String>,
) -> Stop {
    let asked = candidates.first().filter(|_| options.provider.is_some());
    let provider = asked.map_or("", |asked| asked.provider.as_str());
    let is_sign_in = access.stored_kind(provider).as_deref() == Some("oauth");
    let text = match (kind, asked, is_sign_in) {
        (Kind::ApiKey, Some(_), true) => {
            format!("Provider \"{provider}\" is configured with OAuth, not an API key")
        }
        (Kind::BearerToken, Some(_), false) => {
            format!("Provider \"{provider}\" is not configured with an OAuth bearer token")
        }
        (Kind::BearerToken, ..) => "No usable OAuth bearer token is configured".into(),
        _ => "No usable API key is configured".into(),
    };
    match problem {
        Some(problem) => format!("{text}\n{problem}").into(),
        None => text.into(),
    }
}
