//! Stores, renews and removes sign-ins.
//!
//! A token that expires within five minutes is renewed before a request uses it, once for all processes:
//! under the lock of auth.json, which is read again first. The renewal runs on its own thread and survives an
//! abort: the server may already have replaced the old token, and losing the new one would sign the user out.
//! A failed renewal keeps the old token, which is used until it expires.

use super::Credentials;
use super::file::entry_of;
use super::store::Store;
use crate::auth::oauth;
use crate::auth::oauth::{Clock, Entry, Hosts, Interaction, LentSignIn, Setting, SignIn};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::thread::Thread;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::now_ms;
use crate::llm::model::former_provider_id;
use crate::llm::secret::Secret;
use crate::models::{Configured, personal, remote};
use crossbeam_channel::{bounded, select};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A token that expires within this time is renewed.
pub const MARGIN: Duration = Duration::from_secs(5 * 60);

/// Longest accepted key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Servers, clock and proxy of sign-ins; tests replace them.
#[derive(Clone)]
pub(super) struct Place {
    pub hosts: Hosts,
    pub clock: Arc<dyn Clock>,
    pub http_proxy: Option<String>,
}

impl Default for Place {
    fn default() -> Self {
        Self { hosts: Hosts::default(), clock: Arc::new(oauth::RealClock::new()), http_proxy: None }
    }
}

/// An entry of auth.json, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub provider: String,
    /// `api_key`, `oauth`, or another value of `type`; `unknown` if there is none.
    pub kind: String,
    /// When the token of a sign-in expires, in Unix milliseconds.
    pub expires: Option<u64>,
}

impl Credentials {
    /// Sets the proxy of the settings, which sign-ins use if the environment names none.
    pub fn set_http_proxy(&mut self, proxy: Option<&str>) {
        self.place.http_proxy = proxy.map(str::to_owned);
    }

    /// Takes the sign-ins of other programs in place of those before. One for a provider of the table comes before
    /// the table's own.
    pub fn lend(&mut self, sign_ins: Vec<(String, Arc<dyn LentSignIn>)>) {
        self.lent = Arc::new(sign_ins);
    }

    /// How to sign in to a provider; `None` if it has no sign-in.
    pub fn method(&self, provider: &str, configured: &Configured) -> Option<SignIn> {
        let lent = self.lent.iter().find(|(name, _)| name == provider);
        let lent = lent.map(|(_, lent)| SignIn::Lent(lent.clone()));
        lent.or_else(|| oauth::method(provider, configured.gateway.as_deref()).map(SignIn::Own))
    }

    /// Signs in and stores the credential. `device` is the UUID of this installation, for methods that need one.
    pub fn sign_in(
        &self,
        provider: &str,
        configured: &Configured,
        device: Option<&str>,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let Some(method) = self.method(provider, configured) else {
            let text = format!("There is no sign-in for {provider}; it takes an API key.");
            return Err(StreamError::new(ErrorKind::Auth, text));
        };
        // An invalid auth.json is reported before the user goes to the browser.
        self.file.entries().map_err(|error| StreamError::new(ErrorKind::Auth, error))?;
        let env = self.env_for(provider);
        let setting = Setting {
            hosts: &self.place.hosts,
            clock: &*self.place.clock,
            env: &env,
            gateway: configured.gateway.as_deref(),
            device,
            http_proxy: self.place.http_proxy.as_deref(),
        };
        let entry = method.login(&setting, interaction, cancel)?;
        self.store(provider, entry, cancel)?;
        method.changed();
        Ok(())
    }

    /// Trims and checks a key that the user entered.
    pub fn check_key(text: &str) -> Result<Secret, String> {
        let key = text.trim();
        if key.is_empty() {
            return Err("There is no key: nothing was entered.".to_owned());
        }
        if key.len() > KEY_BYTES_MAX || key.contains(char::is_control) {
            return Err(
                "That is no key: it has several lines, control characters, or is too long.".to_owned()
            );
        }
        Ok(Secret::new(key))
    }

    /// Stores a key unchanged: `$NAME` and `!command` are resolved when the key is used.
    pub fn store_key(&self, provider: &str, key: &Secret, cancel: &CancelToken) -> Result<(), StreamError> {
        let mut entry = Entry::new();
        entry.insert("type".into(), "api_key".into());
        entry.insert("key".into(), key.expose().into());
        self.store(provider, entry, cancel)
    }

    /// Removes the entry of a provider. False if there was none.
    pub fn remove(&self, provider: &str, cancel: &CancelToken) -> Result<bool, StreamError> {
        let store = Store::lock(&self.file.path, cancel)?;
        let mut entries = store.read()?;
        let former = former_provider_id(provider).and_then(|former| entries.shift_remove(former));
        if entries.shift_remove(provider).or(former).is_none() {
            return Ok(false);
        }
        store.draft()?.commit(&entries)?;
        drop(store);
        self.forget_models(provider);
        if let Some(method) = self.method(provider, &Configured::default()) {
            method.changed();
        }
        Ok(true)
    }

    /// All entries of auth.json.
    pub fn stored(&self) -> Result<Vec<Stored>, String> {
        let entries = self.file.entries()?;
        let stored = entries.iter().map(|(provider, entry)| Stored {
            provider: provider.clone(),
            kind: entry.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned(),
            expires: expires(entry),
        });
        Ok(stored.collect())
    }

    /// The stored access token of a sign-in, even if it has expired.
    pub fn stored_token(&self, provider: &str) -> Option<Secret> {
        self.stored_sign_in(provider)?.get("access").and_then(Value::as_str).map(Secret::new)
    }

    /// The stored entry of a sign-in.
    pub fn stored_sign_in(&self, provider: &str) -> Option<Value> {
        let entries = self.file.entries().ok()?;
        entries.get(provider).filter(|entry| is_sign_in(entry)).cloned()
    }

    /// The ids of the models that an account may use, by provider. A provider whose sign-in lists no models
    /// is left out.
    pub fn allowed_models(&self) -> HashMap<String, HashSet<String>> {
        let entries = self.file.entries().unwrap_or_default();
        let sign_ins = entries.iter().filter(|(_, entry)| is_sign_in(entry));
        let allowed = sign_ins.filter_map(|(provider, entry)| {
            let ids = entry.get("availableModelIds")?.as_array()?.iter();
            let ids = ids.map(|id| id.as_str().map(str::to_owned));
            Some((provider.clone(), ids.collect::<Option<_>>()?))
        });
        allowed.collect()
    }

    /// Renews a sign-in whose token expires within `at_least`. An error if the new token also expires too
    /// soon.
    pub fn renew(
        &self,
        provider: &str,
        configured: &Configured,
        at_least: Duration,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let entries = self.file.entries().map_err(|error| StreamError::new(ErrorKind::Auth, error))?;
        let entry = entries.get(provider).filter(|entry| is_sign_in(entry));
        if entry.is_none_or(|entry| lasts(entry, at_least)) {
            return Ok(());
        }
        self.renewed(provider, configured, at_least, cancel)?;
        let entries = self.file.entries().unwrap_or_default();
        match entries.get(provider).is_none_or(|entry| lasts(entry, at_least)) {
            true => Ok(()),
            false => {
                let text = format!("OAuth refresh returned a token that expires too soon for {provider}");
                Err(StreamError::new(ErrorKind::Auth, text))
            }
        }
    }

    /// The entry of a sign-in with a usable token; `None` if the user has signed out meanwhile.
    pub(super) fn fresh(
        &self,
        provider: &str,
        entry: &Value,
        configured: &Configured,
        cancel: &CancelToken,
    ) -> Result<Option<Value>, StreamError> {
        if lasts(entry, MARGIN) {
            return Ok(Some(entry.clone()));
        }
        match self.renewed(provider, configured, MARGIN, cancel) {
            Ok(()) => {
                let entries =
                    self.file.entries().map_err(|error| StreamError::new(ErrorKind::Auth, error))?;
                Ok(entries.get(provider).cloned())
            }
            Err(error) if error.kind != ErrorKind::Aborted && lasts(entry, Duration::ZERO) => {
                Ok(Some(entry.clone()))
            }
            Err(error) => Err(error),
        }
    }

    /// Renews on a separate thread, and waits until it has ended or `cancel` is cancelled.
    fn renewed(
        &self,
        provider: &str,
        configured: &Configured,
        at_least: Duration,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let again = format!("Sign in again: pi auth login {provider}");
        let Some(method) = self.method(provider, configured) else {
            let text = format!("The sign-in for {provider} has expired, and pi cannot renew it. {again}");
            return Err(StreamError::new(ErrorKind::Auth, text));
        };
        let job = Renewal {
            path: self.file.path.clone(),
            provider: provider.to_owned(),
            method,
            gateway: configured.gateway.clone(),
            env: self.env_for(provider),
            place: self.place.clone(),
            at_least,
            cancel: cancel.clone(),
        };
        let (sender, done) = bounded(1);
        let thread = Thread::named("sign-in renewal").start(move || {
            let _ = sender.send(job.run());
        });
        let failed = |kind, why: &str| {
            let text = format!("OAuth refresh failed for {provider}: {}. {again}", why.trim_end_matches('.'));
            StreamError::new(kind, text)
        };
        thread.map_err(|error| failed(ErrorKind::Transport, &error.to_string()))?;
        let result = select! {
            recv(done) -> result => result,
            recv(cancel.receiver()) -> _ => return Err(StreamError::aborted()),
        };
        match result {
            Ok(Err(error)) if error.kind != ErrorKind::Aborted => {
                Err(StreamError { message: failed(error.kind, &error.message).message, ..error })
            }
            Ok(Err(_)) => Err(StreamError::aborted()),
            Ok(Ok(())) => Ok(()),
            Err(_) => Err(failed(ErrorKind::Protocol, "it broke off")),
        }
    }

    fn store(&self, provider: &str, mut entry: Entry, cancel: &CancelToken) -> Result<(), StreamError> {
        let store = Store::lock(&self.file.path, cancel)?;
        let mut entries = store.read()?;
        // The entry's settings are kept when the user signs in again, but for those that the sign-in has set.
        if let Some(Value::Object(old)) = entry_of(&entries, provider).and_then(|old| old.get("env")) {
            let mut env = old.clone();
            if let Some(Value::Object(new)) = entry.get("env") {
                env.extend(new.clone());
            }
            entry.insert("env".into(), Value::Object(env));
        }
        if let Some(former) = former_provider_id(provider) {
            entries.shift_remove(former);
        }
        entries.insert(provider.to_owned(), Value::Object(entry));
        store.draft()?.commit(&entries)?;
        self.forget_models(provider);
        Ok(())
    }

    /// Forgets the models that were listed for the key that the provider had.
    fn forget_models(&self, provider: &str) {
        if let Some(agent_dir) = self.file.path.parent().filter(|_| provider == personal::PROVIDER) {
            remote::forget_personal(agent_dir);
        }
    }

    fn env_for(&self, provider: &str) -> Env {
        let entries = self.file.entries().unwrap_or_default();
        self.env.with(&super::settings_of(entry_of(&entries, provider)))
    }
}

struct Renewal {
    path: PathBuf,
    provider: String,
    method: SignIn,
    gateway: Option<String>,
    env: Env,
    place: Place,
    at_least: Duration,
    cancel: CancelToken,
}

impl Renewal {
    fn run(self) -> Result<(), StreamError> {
        let store = Store::lock(&self.path, &self.cancel)?;
        let mut entries: Map<String, Value> = store.read()?;
        let entry = entries.get_mut(&self.provider).filter(|entry| is_sign_in(entry));
        let Some(Value::Object(entry)) = entry else {
            return Ok(()); // signed out meanwhile
        };
        if lasts_until(entry.get("expires"), self.at_least) {
            return Ok(()); // somebody else was first
        }
        if self.cancel.is_cancelled() {
            return Err(StreamError::aborted());
        }
        let draft = store.draft()?;
        let setting = Setting {
            hosts: &self.place.hosts,
            clock: &*self.place.clock,
            env: &self.env,
            gateway: self.gateway.as_deref(),
            device: None,
            http_proxy: self.place.http_proxy.as_deref(),
        };
        // An abort no longer ends the renewal; only its time limit does.
        self.method.renew(&setting, entry, &CancelToken::new())?;
        draft.commit(&entries)?;
        drop(store);
        self.method.changed();
        Ok(())
    }
}

pub(super) fn is_sign_in(entry: &Value) -> bool {
    entry.get("type").is_some_and(|kind| kind == "oauth")
}

fn expires(entry: &Value) -> Option<u64> {
    let expires = entry.get("expires")?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // a cast of a float saturates
    expires.as_u64().or_else(|| expires.as_f64().map(|expires| expires as u64))
}

fn lasts(entry: &Value, time: Duration) -> bool {
    lasts_until(entry.get("expires"), time)
}

/// True if `expires`, in Unix milliseconds, is more than `time` away.
fn lasts_until(expires: Option<&Value>, time: Duration) -> bool {
    let end = now_ms().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    #[allow(clippy::cast_precision_loss)] // milliseconds are far below 2^52
    expires.and_then(Value::as_f64).is_some_and(|expires| expires > end as f64)
}

#[cfg(test)]
mod tests;
