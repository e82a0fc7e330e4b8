//! The credential that a server over HTTP gets.

use super::config::Entry;
use super::http::Authority;
use crate::base::cancel::CancelToken;
use crate::llm::model::Model;
use crate::llm::secret::Secret;
use crate::runtime::service::Services;
use std::sync::Arc;

/// Gives each server what its entry asks for: the credential of a provider.
pub fn authorities(services: Services) -> impl Fn(&Entry) -> Option<Arc<dyn Authority>> + Send + Sync {
    let services = Arc::new(services);
    move |entry| {
        let provider = entry.provider()?.to_owned();
        Some(Arc::new(OfProvider { provider, services: services.clone() }))
    }
}

/// Sends the key or token of a provider, as it is at each request.
struct OfProvider {
    provider: String,
    services: Arc<Services>,
}

impl Authority for OfProvider {
    fn token(&self, cancel: &CancelToken) -> Option<Secret> {
        let services = &self.services;
        let known = services.registry.models_of(&self.provider).into_iter().next();
        let model =
            known.unwrap_or_else(|| Arc::new(Model { provider: self.provider.clone(), ..Model::default() }));
        let configured = services.registry.configured(&self.provider, None);
        // Without one the server says that it wants one.
        services.credentials.resolve(&model, &configured, cancel).ok()?.key
    }

    fn refused(&self, _: Option<&Secret>, _: Option<&str>, _: &CancelToken) -> bool {
        false
    }
}
