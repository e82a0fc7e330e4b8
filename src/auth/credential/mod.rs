//! Chooses the key of a request.
//!
//! Sources in order: `--api-key`, the provider's entry in auth.json, `apiKey` in models.json, the
//! environment. The first source that exists decides: an unusable entry (an expired sign-in, a variable that
//! is not set) is an error, and the search does not go on to a key in the environment, which may belong to
//! another account.
//!
//! auth.json is `{provider: {"type": "api_key", "key", "env"?}}` or `{provider: {"type": "oauth", "access",
//! "refresh", "expires", "env"?}}`, `expires` in Unix milliseconds. The file is read when first needed and
//! again after a change; renewed sign-ins are written to it.
//!
//! No error, [`Source`] or `Debug` text contains a key.

mod file;
mod resolved;
mod sign_in;
pub(in crate::auth) mod store;

pub use resolved::{Resolved, Source};
pub use sign_in::{KEY_BYTES_MAX, Stored};

use super::aws;
use super::aws::Aws;
use super::federation::{self, Federation};
use super::gcp::{self, Gcp};
use crate::auth::oauth::{LentSignIn, SignIn};
use crate::auth::provider;
use crate::auth::provider::{Ambient, BEARER_VARIABLE, Placement, Provider};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::Model;
use crate::llm::secret::{Secret, Vault, is_secret_name};
use crate::models::catalogue;
use crate::models::config_value;
use crate::models::config_value::Keep;
use crate::models::local;
use crate::models::{Configured, Registry, header_place};
use crate::wire::{self, google};
use file::{AuthFile, entry_of, settings_of};
use resolved::Found;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// All credentials of the user. Clones share what was read and fetched.
#[derive(Clone)]
pub struct Credentials {
    file: Arc<AuthFile>,
    env: Env,
    /// The value of `--api-key`, and the provider it is for.
    given: Option<(String, Secret)>,
    /// Collects every key and token that was read or fetched.
    vault: Vault,
    aws: Arc<Aws>,
    gcp: Arc<Gcp>,
    federation: Arc<Federation>,
    place: sign_in::Place,
    /// Sign-ins of other programs, by provider.
    lent: Arc<Vec<(String, Arc<dyn LentSignIn>)>>,
}

impl Credentials {
    /// Opens the credentials in `agent_dir`. auth.json is not read yet.
    pub fn load(agent_dir: &Path, env: Env) -> Self {
        let vault = Vault::default();
        provider::learn_keys(&env, &vault);
        Self {
            file: Arc::new(AuthFile::new(agent_dir.join("auth.json"), env.clone(), vault.clone())),
            env,
            given: None,
            vault,
            aws: Arc::default(),
            gcp: Arc::default(),
            federation: Arc::default(),
            place: sign_in::Place::default(),
            lent: Arc::default(),
        }
    }

    /// Sets the key from `--api-key`, which is used only for requests to `provider`.
    pub fn give(&mut self, provider: &str, key: Secret) {
        self.vault.learn("api-key", key.expose());
        self.given = Some((provider.to_owned(), key));
    }

    /// Takes over the `--api-key` of `other`, and the secrets in its vault.
    pub fn give_as(&mut self, other: &Self) {
        self.given.clone_from(&other.given);
        self.vault.learn_from(&other.vault);
    }

    /// All secrets known so far: keys in the environment, secrets in auth.json once the file was read, and
    /// keys of past requests.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Adds the secrets in auth.json and models.json to the vault.
    pub fn learn_files(&self, registry: &Registry) {
        let _ = self.file.entries(); // learns by itself; what is wrong with it is said elsewhere
        registry.learn_secrets(&self.env, &self.vault);
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The environment in which local servers are looked for: the entry `llama.cpp` of auth.json comes before its
    /// variables. A key that is the output of a command is left out.
    pub fn local_env(&self) -> Env {
        let entries = self.file.entries().unwrap_or_default();
        let entry = entry_of(&entries, local::LLAMA_CPP);
        let mut settings = settings_of(entry);
        let key = entry.and_then(|entry| entry.get("key")).and_then(Value::as_str);
        let resolve = |key| {
            let env = self.env.with(&settings);
            config_value::resolve(key, "key", Keep::No, &env, &CancelToken::new()).ok()
        };
        if let Some(key) = key.filter(|key| !key.starts_with('!')).and_then(resolve) {
            settings.push((local::LLAMA_KEY.to_owned(), key.expose().to_owned()));
        }
        self.env.with(&settings)
    }

    /// A warning about auth.json, to be shown at the start.
    pub fn warning(&self) -> Option<String> {
        self.file.warning()
    }

    /// True if a key for the provider is configured; no command is run to find out. Also true for an expired
    /// sign-in, so that its error is shown.
    pub fn has(&self, provider: &str, configured: &Configured) -> bool {
        if self.given_for(provider).is_some() {
            return true;
        }
        let entries = self.file.entries().unwrap_or_default();
        let entry = entry_of(&entries, provider);
        let env = self.env.with(&settings_of(entry));
        if let Some(key) = entry.and_then(|entry| entry.get("key")).and_then(Value::as_str)
            && !key.is_empty()
        {
            return config_value::is_resolvable(key, &env);
        }
        if entry.is_some_and(|entry| entry.get("type").is_none_or(|kind| kind != "api_key")) {
            return true;
        }
        if let Some(key) = &configured.api_key {
            return config_value::is_resolvable(key, &env);
        }
        provider::find(provider).is_some_and(|provider| {
            provider.key_variable(&env).is_some()
                || provider.ambient(&env).is_some()
                || (provider.ambient == Ambient::Aws && entry.is_some())
        })
    }

    /// The credentials and headers for a request to `model`. Runs the commands of values that are commands.
    pub fn resolve(
        &self,
        model: &Model,
        configured: &Configured,
        cancel: &CancelToken,
    ) -> Result<Resolved, StreamError> {
        if let Some(text) = wire::left_out(model) {
            return Err(StreamError::new(ErrorKind::Request, text));
        }
        let row = provider::find(&model.provider);
        let open = row.is_some_and(|row| row.ambient == Ambient::Open);
        let entries = match self.file.entries() {
            Ok(entries) => entries,
            // A request that needs no key from the file is not blocked by an invalid file.
            Err(_) if open || self.given_for(&model.provider).is_some() => Arc::default(),
            Err(error) => return Err(StreamError::new(ErrorKind::Auth, error)),
        };
        let entry = entry_of(&entries, &model.provider);
        let mut settings = settings_of(entry);
        let env = self.env.with(&settings);
        let failed = |kind, message| match cancel.is_cancelled() {
            true => StreamError::aborted(),
            false => StreamError::new(kind, message),
        };
        let renewed = match entry.filter(|entry| sign_in::is_sign_in(entry)) {
            Some(entry) if self.given_for(&model.provider).is_none() => {
                check_sign_in(entry, &self.place_of(&model.provider))
                    .map_err(|error| failed(ErrorKind::Auth, error))?;
                self.fresh(&model.provider, entry, configured, cancel)?
            }
            _ => entry.cloned(),
        };
        let entry = renewed.as_ref();
        let found = self
            .find(model, row, entry, configured, &env, cancel)
            .map_err(|error| failed(ErrorKind::Auth, error))?;
        if let Some(key) = &found.key {
            self.vault.learn(&found.source.place(&model.provider), key.expose());
        }
        let mut headers = headers(model, row, configured, &found, &env, &self.vault, cancel)
            .map_err(|error| failed(ErrorKind::Request, error))?;
        let mut base_url = match &found.base_url {
            // A base URL that the user configured is kept.
            Some(url) if is_catalogued(model) => Some(url.clone()),
            _ => base_url(model, row, &env).map_err(|error| failed(ErrorKind::Request, error))?,
        };
        let mut aws = None;
        if model.api == aws::API {
            let asked = aws::Asked {
                model,
                env: &env,
                own_profile: settings.iter().any(|(name, _)| name == "AWS_PROFILE"),
                has_key: found.key.is_some(),
            };
            let access = self.aws.access(&asked, cancel)?;
            base_url = base_url.or_else(|| Some(access.endpoint.clone()));
            if let Some(keys) = &access.keys {
                self.vault.learn("aws.secret", keys.secret.expose());
                let token = keys.session_token.as_ref().map_or("", Secret::expose);
                self.vault.learn("aws.token", token);
            }
            aws = Some(Arc::new(access));
        }
        if model.api == gcp::API && needs_token(&found, &headers) {
            let token = self.gcp.token(&env, cancel)?;
            self.vault.learn("google.token", token.access.expose());
            let bearer = format!("Bearer {}", token.access.expose());
            headers.push(("authorization".to_owned(), Some(bearer)));
            let project = token.quota_project.map(Some);
            headers.extend(project.map(|project| ("x-goog-user-project".to_owned(), project)));
        }
        if row.is_some_and(|row| row.ambient == Ambient::Federation)
            && matches!(found.source, Source::Ambient(_))
            && !headers.iter().any(|(name, _)| name == "authorization")
        {
            let exchanged = self.federation.headers(&model.base_url, &env, cancel)?;
            let token = exchanged.iter().find_map(|(_, value)| value.as_deref()?.strip_prefix("Bearer "));
            self.vault.learn("anthropic.token", token.unwrap_or_default());
            headers.extend(exchanged);
            settings.extend(env.get(federation::RULE).map(|rule| (federation::RULE.to_owned(), rule)));
        }
        let header_carries_key = found.bearer || row.is_some_and(|row| row.placement != Placement::Protocol);
        Ok(Resolved {
            base_url,
            key: found.key.filter(|_| !header_carries_key),
            source: found.source,
            env: settings,
            headers,
            aws,
        })
    }

    fn given_for(&self, provider: &str) -> Option<&Secret> {
        let (for_provider, key) = self.given.as_ref()?;
        (for_provider == provider).then_some(key)
    }

    fn find(
        &self,
        model: &Model,
        row: Option<&'static Provider>,
        entry: Option<&Value>,
        configured: &Configured,
        env: &Env,
        cancel: &CancelToken,
    ) -> Result<Found, String> {
        let id = &model.provider;
        if let Some(key) = self.given_for(id) {
            return Ok(Found::key(usable(key, id, &Source::Flag)?, Source::Flag));
        }
        if let Some(entry) = entry
            && let Some(found) = self.stored_key(id, entry, configured, env, cancel)?
        {
            return Ok(found);
        }
        if let Some(value) = &configured.api_key {
            let setting = format!("\"apiKey\" of provider \"{id}\" in models.json");
            let key = config_value::resolve(value, &setting, Keep::No, env, cancel)?;
            let source = Source::ModelsFile;
            return Ok(Found::key(usable(&key, id, &source)?, source));
        }
        if let Some(name) = row.and_then(|row| key_variable(row, model, env))
            && let Some(value) = env.get(name)
        {
            let source = Source::Variable(name);
            let key = usable(&Secret::new(value), id, &source)?;
            let bearer = name == BEARER_VARIABLE;
            return Ok(Found { key: Some(key), source, bearer, base_url: None });
        }
        if let Some(what) = ambient(row, model, entry.is_some(), env) {
            let source = Source::Ambient(what);
            return Ok(Found { key: None, source, bearer: false, base_url: None });
        }
        Err(self.no_key(id, row))
    }

    /// The key of an entry in auth.json; `None` for an entry that only has settings.
    fn stored_key(
        &self,
        id: &str,
        entry: &Value,
        configured: &Configured,
        env: &Env,
        cancel: &CancelToken,
    ) -> Result<Option<Found>, String> {
        let place = self.place_of(id);
        let text = |name: &str| {
            let text = entry.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        match text("type") {
            Some("api_key") => {
                let Some(value) = text("key") else {
                    return match entry.get("key") {
                        None | Some(Value::Null | Value::String(_)) => Ok(None),
                        Some(_) => Err(format!("\"key\" of {place} is not a text")),
                    };
                };
                let setting = format!("\"key\" of {place}");
                let key = config_value::resolve(value, &setting, Keep::Process, env, cancel)?;
                let source = Source::AuthFile;
                Ok(Some(Found::key(usable(&key, id, &source)?, source)))
            }
            Some("oauth") => {
                let method = self.method(id, configured);
                let fields = entry.as_object();
                let key = match (&method, fields) {
                    (Some(SignIn::Lent(lent)), Some(fields)) => {
                        lent.key(fields, cancel).map_err(|error| error.message)?
                    }
                    _ => Secret::new(text("access").unwrap_or_default()),
                };
                let key = usable(&key, id, &Source::SignIn)?;
                let method = method.and_then(|method| match method {
                    SignIn::Own(method) => Some(method),
                    SignIn::Lent(_) => None,
                });
                Ok(Some(Found {
                    key: Some(key),
                    source: Source::SignIn,
                    bearer: method.is_some_and(|method| method.bearer),
                    base_url: method.zip(fields).and_then(|(method, entry)| method.base_url(entry)),
                }))
            }
            _ => Err(format!("{place} has no \"type\" that is known: \"api_key\" or \"oauth\"")),
        }
    }

    fn place_of(&self, id: &str) -> String {
        format!("the entry \"{id}\" in {}", self.file.path.display())
    }

    fn no_key(&self, id: &str, row: Option<&Provider>) -> String {
        let file = self.file.path.display();
        let entry = format!("{{\"{id}\": {{\"type\": \"api_key\", \"key\": \"…\"}}}}");
        if self.lent.iter().any(|(name, _)| name == id) {
            return format!("Not signed in to {id}. Sign in with: pi auth login {id}, or /login {id}");
        }
        let Some(row) = row else {
            return format!(
                "No API key for provider \"{id}\". Give it an \"apiKey\" in models.json, pass --api-key, or \
                 put {entry} into {file}."
            );
        };
        let Some(variable) = row.keys.last() else {
            return format!(
                "Not signed in to {}. It takes no API key; sign in with: pi auth login {id}",
                row.name
            );
        };
        let others = match row.keys.split_last() {
            Some((_, others)) if !others.is_empty() => format!(" (or {})", others.join(", ")),
            _ => String::new(),
        };
        let ambient = match row.ambient {
            Ambient::Aws => " AWS credentials from the environment work too.",
            Ambient::Google => {
                " Application default credentials work too, with GOOGLE_CLOUD_PROJECT and \
                 GOOGLE_CLOUD_LOCATION."
            }
            Ambient::None | Ambient::Open | Ambient::Federation => "",
        };
        let sign_in = match row.has_sign_in() {
            true => format!(" Or sign in: pi auth login {id}."),
            false => String::new(),
        };
        format!(
            "No API key for {name}. Set {variable}{others}:\n  export {variable}=…\nor pass --api-key, or \
             put {entry} into {file}.{ambient}{sign_in} See: pi docs providers",
            name = row.name
        )
    }
}

/// The environment variable whose key may be sent to the model's server; `None` if none is set.
fn key_variable(row: &Provider, model: &Model, env: &Env) -> Option<&'static str> {
    if row.id == local::PROVIDER { local::key_variable(&model.base_url, env) } else { row.key_variable(env) }
}

/// Describes what replaces a key in requests to `model`. Checks more than [`Provider::ambient`], since the
/// model is known. `stored`: true if auth.json has an entry without a key.
fn ambient(row: Option<&Provider>, model: &Model, stored: bool, env: &Env) -> Option<&'static str> {
    if let Some(what) = row.and_then(|row| row.ambient(env)) {
        return Some(what);
    }
    let skips = || env.get("AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1");
    match model.api.as_str() {
        aws::API if stored || aws::has_files(env) => Some(provider::aws(env).unwrap_or("AWS credentials")),
        aws::API if skips() => Some("no signature that counts"),
        aws::API => provider::aws(env),
        gcp::API if provider::has_place(env) && gcp::has_metadata(env) => Some("Google's metadata server"),
        _ => None,
    }
}

/// True if a model on Vertex AI needs an access token: there is no API key and no `authorization` header.
fn needs_token(found: &Found, headers: &[(String, Option<String>)]) -> bool {
    let key = found.key.as_ref().map(Secret::expose);
    key.is_none_or(google::is_placeholder) && !headers.iter().any(|(name, _)| name == "authorization")
}

/// True if the model's base URL is the one that the catalogue has for its provider.
fn is_catalogued(model: &Model) -> bool {
    catalogue::first(&model.provider).is_some_and(|known| known.base_url == model.base_url)
}

/// Checks that a sign-in has a token and an expiry.
fn check_sign_in(entry: &Value, place: &str) -> Result<(), String> {
    if entry.get("access").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(format!("{place} has no \"access\" token"));
    }
    match entry.get("expires").is_some_and(Value::is_number) {
        true => Ok(()),
        false => Err(format!("{place} does not say when it \"expires\"")),
    }
}

/// The key without surrounding blanks; an error if it is empty or invalid in a header.
fn usable(key: &Secret, provider: &str, source: &Source) -> Result<Secret, String> {
    let text = key.expose().trim();
    if text.is_empty() {
        return Err(format!("The key for {provider} from {source} is empty."));
    }
    if !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!(
            "The key for {provider} from {source} holds a blank, a control character or a character \
             outside ASCII: it may have been copied with something else."
        ));
    }
    Ok(Secret::new(text))
}

fn headers(
    model: &Model,
    row: Option<&Provider>,
    configured: &Configured,
    found: &Found,
    env: &Env,
    vault: &Vault,
    cancel: &CancelToken,
) -> Result<Vec<(String, Option<String>)>, String> {
    let mut headers: Vec<(String, Option<String>)> = Vec::new();
    let mut set = |name: &str, value: Option<String>| {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value));
    };
    let bearer = found.key.as_ref().map(|key| format!("Bearer {}", key.expose()));
    if let Some(Placement::Header(name)) = row.map(|row| row.placement) {
        set("authorization", None);
        set("x-api-key", None);
        set(name, bearer.clone());
    }
    if found.bearer {
        set("authorization", bearer.clone());
    }
    if configured.auth_header {
        let id = &model.provider;
        let bearer = bearer.ok_or_else(|| {
            format!("\"authHeader\" of provider \"{id}\" in models.json needs a key, and there is none.")
        })?;
        set("authorization", Some(bearer));
    }
    for (name, value) in &configured.headers {
        let setting = format!("header \"{name}\" of provider \"{}\" in models.json", model.provider);
        let is_command = value.starts_with('!');
        let value = config_value::resolve(value, &setting, Keep::No, env, cancel)?;
        if is_command {
            let place = header_place(&model.provider, name);
            match is_secret_name(name) {
                true => vault.learn(&place, value.expose()),
                false => vault.learn_if_random(&place, value.expose()),
            }
        }
        if value.expose().chars().any(char::is_control) {
            return Err(format!("{setting} holds a line break or another control character"));
        }
        set(name, Some(value.expose().to_owned()));
    }
    Ok(headers)
}

/// The model's base URL with variables such as `{NAME}` replaced; `None` if there is nothing to replace.
fn base_url(model: &Model, row: Option<&Provider>, env: &Env) -> Result<Option<String>, String> {
    let Some(row) = row else { return Ok(None) };
    if row.id == "llama.cpp" {
        return Ok(env.get("LLAMA_BASE_URL").map(|url| local::api_url(&url)));
    }
    if !model.base_url.contains('{') {
        return Ok(None);
    }
    let mut url = model.base_url.clone();
    for name in row.required {
        let hole = format!("{{{name}}}");
        if url.contains(&hole) {
            let value = env.get(name).ok_or_else(|| {
                let id = row.id;
                format!(
                    "{} needs {name}: set the environment variable, or \"env\": {{\"{name}\": \"…\"}} in the \
                     entry \"{id}\" of auth.json. See: pi docs providers",
                    row.name
                )
            })?;
            url = url.replace(&hole, &value);
        }
    }
    Ok(Some(url))
}

#[cfg(test)]
mod tests;
