//! Stored keys and sign-ins, for modes that list, add or remove them.

use super::control::SignIns;
use crate::auth::credential::{Credentials, Stored};
use crate::auth::provider;
use crate::base::cancel::CancelToken;
use crate::base::order::Order;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::Model;
use crate::models::{Configured, local, resolve};
use crate::resources::settings::{self, Settings};
use crate::session::id;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::oauth::SignIn;

pub use crate::auth::oauth::{Answer, Choice, Entry, Event, Interaction, LentSignIn, Prompt};

/// Time limit for asking a server that was signed in to for its models.
const FINDING_MAX: Duration = Duration::from_secs(2);

/// The UUID of this installation, if the sign-in of `provider` requires it. Created on first use and kept in the
/// user's settings as `deviceId`.
pub fn device_for(
    credentials: &Credentials,
    provider: &str,
    configured: &Configured,
    settings: &Settings,
) -> Result<Option<String>, String> {
    if !credentials.method(provider, configured).is_some_and(|method| method.needs_device()) {
        return Ok(None);
    }
    let device = match settings.text("deviceId") {
        Some(known) if !id::is_session_id(known) => {
            let path = settings.path().display();
            return Err(format!("\"deviceId\" in {path} is \"{known}\", which is no UUID; remove it"));
        }
        Some(known) => known.to_owned(),
        None => {
            let made = id::session_id();
            settings::write(settings.path(), &[("deviceId", Some(made.as_str().into()))])?;
            made
        }
    };
    Ok(Some(device))
}

/// A kind of credential: a sign-in or an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    SignIn,
    Key,
}

/// One way to authenticate with a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInMethod {
    pub provider: String,
    /// The provider's display name.
    pub name: String,
    pub way: Way,
    /// The kind of account to sign in with; empty for a key.
    pub label: String,
    pub state: State,
    /// Environment variables that may hold the key.
    pub variables: &'static [&'static str],
    /// Environment variables that must be set besides a key.
    pub required: &'static [&'static str],
}

/// The existing credential of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Nothing,
    /// Stored in `auth.json`, as a sign-in or a key.
    Stored(Way),
    /// Found outside `auth.json`: the name of a variable or file.
    Elsewhere(String),
}

/// Why a credential was not stored or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Cancelled,
    Because(String),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error.kind {
            ErrorKind::Aborted => Self::Cancelled,
            _ => Self::Because(error.message),
        }
    }
}

impl SignIns<'_> {
    /// Returns every sign-in and key that a provider supports, sorted by name.
    pub fn methods(&self) -> Vec<SignInMethod> {
        let config = self.control.config();
        let services = &config.services;
        let mut ids: Vec<String> = provider::PROVIDERS.iter().map(|row| row.id.to_owned()).collect();
        for id in services.registry.providers() {
            if !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        }
        let stored = services.credentials.stored().unwrap_or_default();
        let mut methods = Vec::new();
        for id in ids {
            let configured = services.registry.configured(&id, None);
            let row = provider::find(&id);
            let method = |way, label: &str| SignInMethod {
                provider: id.clone(),
                name: self.provider_name(&id),
                way,
                label: label.to_owned(),
                state: state(&id, &stored, &services.credentials, &configured),
                variables: row.map_or(&[], |row| row.keys),
                required: row.map_or(&[], |row| row.required),
            };
            let flow = services.credentials.method(&id, &configured);
            if let Some(flow) = &flow {
                methods.push(method(Way::SignIn, flow.label()));
            }
            // The sign-in to a llama.cpp server asks for its key, too.
            let takes_none_beside = id == local::LLAMA_CPP;
            // As in the reference, a provider that an extension signs in to takes a key if it has a place for one.
            let takes_none =
                matches!(flow, Some(SignIn::Lent(_))) && row.is_none() && configured.api_key.is_none();
            if provider::takes_key(&id) && !takes_none && !takes_none_beside {
                methods.push(method(Way::Key, ""));
            }
        }
        methods.order_by_key(|method| method.name.to_lowercase());
        methods
    }

    /// Returns the display name of a provider.
    pub fn provider_name(&self, id: &str) -> String {
        let config = self.control.config();
        let own = config.services.registry.provider_config(id);
        let own = own.and_then(|config| config.name.clone());
        own.or_else(|| Some(provider::find(id)?.name.to_owned())).unwrap_or_else(|| id.to_owned())
    }

    /// Signs in and stores the credential. Blocks until the user is done.
    pub fn sign_in(
        &self,
        provider: &str,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<(), Failure> {
        let config = self.control.config();
        let services = &config.services;
        let configured = services.registry.configured(provider, None);
        let credentials = &services.credentials;
        let device =
            device_for(credentials, provider, &configured, &config.settings).map_err(Failure::Because)?;
        credentials.sign_in(provider, &configured, device.as_deref(), interaction, cancel)?;
        if local::is_provider(provider) {
            self.control.models().find_local(FINDING_MAX);
        }
        self.use_allowed_models();
        Ok(())
    }

    /// Checks and stores a key. Blocks while another process locks the file.
    pub fn store_key(&self, provider: &str, key: &str, cancel: &CancelToken) -> Result<(), Failure> {
        let key = Credentials::check_key(key).map_err(Failure::Because)?;
        let config = self.control.config();
        let credentials = &config.services.credentials;
        credentials.store_key(provider, &key, cancel)?;
        self.use_allowed_models();
        Ok(())
    }

    /// Removes the stored credential of a provider. False if there was none.
    pub fn sign_out(&self, provider: &str, cancel: &CancelToken) -> Result<bool, Failure> {
        let config = self.control.config();
        let removed = config.services.credentials.remove(provider, cancel)?;
        self.use_allowed_models();
        Ok(removed)
    }

    /// Returns the provider and kind of each stored credential.
    pub fn stored(&self) -> Result<Vec<(String, Way)>, String> {
        let stored = self.control.config().services.credentials.stored()?;
        let entry = |stored: Stored| (stored.provider.clone(), way_of(&stored));
        Ok(stored.into_iter().map(entry).collect())
    }

    /// Returns the default model of a provider, or its first one, among the models that the account may use.
    pub fn default_model(&self, provider: &str) -> Option<Arc<Model>> {
        let registry = &self.control.config().services.registry;
        let default = resolve::default_model(registry, provider);
        default
            .filter(|model| registry.is_offered(provider, &model.id))
            .or_else(|| registry.offered_of(provider).into_iter().next())
    }

    /// Limits the models on offer to those that the stored accounts may use.
    fn use_allowed_models(&self) {
        self.control.change_config(|config| {
            let allowed = config.services.credentials.allowed_models();
            config.services.registry.set_allowed(allowed);
            config.services.registry.reload_fetched();
        });
    }
}

fn way_of(stored: &Stored) -> Way {
    match stored.kind == "oauth" {
        true => Way::SignIn,
        false => Way::Key,
    }
}

fn state(
    id: &str,
    stored: &[Stored],
    credentials: &Credentials,
    configured: &crate::models::Configured,
) -> State {
    if let Some(stored) = stored.iter().find(|stored| stored.provider == id) {
        return State::Stored(way_of(stored));
    }
    if configured.api_key.is_some() {
        return State::Elsewhere("models.json".to_owned());
    }
    let row = provider::find(id);
    let variable = row.and_then(|row| row.key_variable(credentials.env()));
    if let Some(name) = variable {
        return State::Elsewhere(format!("env: {name}"));
    }
    match row.and_then(|row| row.ambient(credentials.env())) {
        Some(what) => State::Elsewhere(what.to_owned()),
        None => State::Nothing,
    }
}
