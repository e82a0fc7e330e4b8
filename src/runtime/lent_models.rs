//! Models that other programs bring: those of their providers, and virtual ones.

use super::virtual_model::VirtualModel;
use crate::auth::oauth::LentSignIn;
use crate::llm::options::Outside;
use crate::models::config::{self, ProviderConfig};
use serde_json::Value;
use std::sync::Arc;

/// Models of another program: those of its providers, and virtual ones.
#[derive(Clone, Default, PartialEq)]
pub struct LentModels {
    pub providers: Vec<Provider>,
    pub virtual_models: Vec<VirtualModel>,
}

impl LentModels {
    /// Adds the models of another owner. A virtual model takes the place of one with its name.
    pub fn add(&mut self, other: Self) {
        self.providers.extend(other.providers);
        for one in other.virtual_models {
            let is_its = |known: &VirtualModel| {
                (&known.model.provider, &known.model.id) == (&one.model.provider, &one.model.id)
            };
            self.virtual_models.retain(|known| !is_its(known));
            self.virtual_models.push(one);
        }
    }
}

/// A provider with its models.
#[derive(Clone)]
pub struct Provider {
    pub name: String,
    /// As in `models.json`.
    pub config: ProviderConfig,
    /// The registration that `config` was read from, to see whether something has changed.
    pub entry: Value,
    /// Answers the requests to its models; otherwise they go to its URL.
    pub outside: Option<Arc<dyn Outside>>,
    pub sign_in: Option<Arc<dyn LentSignIn>>,
}

impl Provider {
    /// Reads a registration: an entry of `models.json`, with a `name`.
    pub fn read(entry: Value) -> Result<Self, String> {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let config = config::lent(&name, &entry).map_err(|why| format!("Provider \"{name}\": {why}"))?;
        Ok(Self { name, config, entry, outside: None, sign_in: None })
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}
