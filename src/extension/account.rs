//! What extensions have said of the models of stored accounts.

use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// Entries of providers with the models that their extension names for a stored account.
#[derive(Default)]
pub struct OfAccounts(Mutex<Vec<OfAccount>>);

pub struct OfAccount {
    /// The entry as it was registered.
    pub entry: Value,
    pub credentials: Value,
    pub models: Value,
}

impl OfAccounts {
    pub fn find(&self, entry: &Value, credentials: &Value) -> Option<Value> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| known.entry == *entry && known.credentials == *credentials);
        found.map(|known| known.models.clone())
    }

    /// Keeps the newest of each provider.
    pub fn put(&self, new: OfAccount) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.entry["name"] != new.entry["name"]);
        known.push(new);
    }
}
