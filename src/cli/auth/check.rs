//! `pi auth check`: reports whether a request would have a working key, as far as this machine can tell.

use super::{Access, Options, Stop, or_code, say_line};
use crate::base::cancel::CancelToken;
use crate::mode::report;
use serde_json::{Map, Value};

/// The outcome of a check.
#[derive(Clone, Copy)]
enum Status {
    Ready,
    NotReady(&'static str),
    Invalid,
}

pub(super) fn run(access: &Access, options: &Options, cancel: &CancelToken) -> Result<u8, Stop> {
    let (provider, mut status) = status(access, options, cancel);
    let mut secret = None;
    if options.credentials && matches!(status, Status::Ready) {
        let stored = access.credentials.stored_token(&provider);
        secret = match stored {
            Some(token) if options.no_refresh => Some(token),
            _ => {
                let model = access.any_model(&provider);
                let configured = access.configured(&provider, Some(&model));
                let resolved = access.credentials.resolve(&model, &configured, cancel);
                resolved.ok().and_then(|resolved| resolved.secret())
            }
        };
        if secret.is_none() {
            status = Status::NotReady("credential_not_available");
        }
    }
    let (word, reason, code) = match status {
        Status::Ready => ("ready", None, 0),
        Status::NotReady(reason) => ("not_ready", Some(reason), 1),
        Status::Invalid => ("invalid", Some("invalid_state"), 2),
    };
    if !options.json {
        let line = secret.as_ref().map_or(word, |secret| secret.expose());
        return Ok(or_code(say_line(line), code));
    }
    let mut object = Map::new();
    let mut put = |name: &str, value: &str| object.insert(name.to_owned(), value.into());
    put("status", word);
    put("provider", &provider);
    if let Some(reason) = reason {
        put("reason", reason);
    } else {
        let kind = access.stored_kind(&provider).filter(|kind| kind == "oauth");
        put("authType", kind.as_deref().unwrap_or("api_key"));
    }
    if let Some(secret) = &secret {
        put("credentials", secret.expose());
    }
    Ok(or_code(say_line(&Value::Object(object).to_string()), code))
}

/// Returns the provider that the options name, and whether it is usable.
fn status(access: &Access, options: &Options, cancel: &CancelToken) -> (String, Status) {
    let explain = |text: &str| {
        if !options.json {
            report::note(text);
        }
    };
    let mut model = None;
    let provider = match (&options.model, &options.provider) {
        (Some(name), provider) => match access.find(provider.as_deref(), name) {
            Ok(choice) => {
                let provider = choice.model.provider.clone();
                model = Some(choice.model);
                provider
            }
            Err(error) => {
                explain(&error);
                let named = provider.as_ref().unwrap_or(name);
                return (named.clone(), Status::Invalid);
            }
        },
        (None, provider) => provider.clone().unwrap_or_default(),
    };
    if let Some(problem) = access.problems.first() {
        explain(problem);
        return (provider, Status::Invalid);
    }
    if access.provider(&provider).is_none() {
        explain(&format!("There is no provider \"{provider}\"."));
        return (provider, Status::NotReady("provider_not_found"));
    }
    if let Err(error) = access.credentials.stored() {
        explain(&error);
        return (provider, Status::Invalid);
    }
    let model = model.unwrap_or_else(|| access.any_model(&provider));
    let configured = access.configured(&provider, Some(&model));
    let missing = Status::NotReady("credentials_not_configured");
    let is_sign_in = access.stored_kind(&provider).as_deref() == Some("oauth");
    if options.no_refresh && is_sign_in {
        let status = match access.credentials.stored_token(&provider) {
            Some(_) => Status::Ready,
            None => Status::Invalid,
        };
        return (provider, status);
    }
    let is_known = |kind: String| kind == "oauth" || kind == "api_key";
    if options.no_refresh && !access.stored_kind(&provider).is_none_or(is_known) {
        return (provider, Status::Invalid);
    }
    if options.no_refresh && access.credentials.has(&provider, &configured) {
        return (provider, Status::Ready);
    }
    let status = match access.credentials.resolve(&model, &configured, cancel) {
        Ok(resolved) => {
            if options.verbose {
                report::note(format_args!("{provider}: {}", resolved.source));
            }
            Status::Ready
        }
        Err(error) => {
            explain(&error.message);
            if is_sign_in { Status::Invalid } else { missing }
        }
    };
    (provider, status)
}
