//! `mcp-auth.json`: tokens, client and metadata of each resource, field for field as the reference keeps them.
//!
//! A resource is kept under its name and address, so that one address may have several accounts. Old files have the
//! address alone.

use crate::auth::credential::store::{self, Store};
use crate::base::cancel::CancelToken;
use crate::base::file::FolderLock;
use crate::base::hex::hex;
use crate::llm::event::StreamError;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What is known of a resource: `tokens`, `tokensExpireAt`, `clientInformation`, `discovery`, `serverUrl`.
pub type State = Map<String, Value>;

pub struct States {
    path: PathBuf,
    key: String,
    url: String,
}

impl States {
    /// The state of the resource `name` at `url`, in the file at `path`.
    pub fn new(path: PathBuf, name: &str, url: String) -> Self {
        Self { path, key: format!("{name}|{url}"), url }
    }

    /// What is known; empty if nothing is, or if it is of another address.
    pub fn load(&self) -> Result<State, StreamError> {
        store::read(&self.path).map(|all| self.own(&all))
    }

    fn own(&self, all: &Map<String, Value>) -> State {
        let state = all.get(&self.key).or_else(|| all.get(&self.url)).and_then(Value::as_object);
        let state = state.filter(|state| state.get("serverUrl").is_none_or(|url| *url == self.url.as_str()));
        let mut state = state.cloned().unwrap_or_default();
        state.insert("serverUrl".into(), self.url.as_str().into());
        state
    }

    /// Changes what is known, and gives it.
    pub fn change(
        &self,
        change: impl FnOnce(&mut State),
        cancel: &CancelToken,
    ) -> Result<State, StreamError> {
        let store = Store::lock(&self.path, cancel)?;
        let mut all = store.read()?;
        let mut state = self.own(&all);
        change(&mut state);
        all.shift_remove(&self.url);
        all.insert(self.key.clone(), state.clone().into());
        store.draft()?.commit(&all)?;
        Ok(state)
    }

    /// Forgets the resource. False if nothing was known.
    pub fn remove(&self, cancel: &CancelToken) -> Result<bool, StreamError> {
        let store = Store::lock(&self.path, cancel)?;
        let mut all = store.read()?;
        if all.shift_remove(&self.key).or_else(|| all.shift_remove(&self.url)).is_none() {
            return Ok(false);
        }
        store.draft()?.commit(&all)?;
        Ok(true)
    }

    /// Waits for the lock of this resource's renewals, which the reference takes, too.
    pub fn lock_renewal(&self, cancel: &CancelToken) -> Result<FolderLock, StreamError> {
        let hash = hex(digest(&SHA256, self.key.as_bytes()).as_ref());
        let name = format!("mcp-auth-refresh-{}", hash.get(..16).unwrap_or_default());
        store::lock_beside(&self.path.with_file_name(name), cancel)
    }
}
