//! The credential that a server over HTTP gets: that of a provider, or of a sign-in of its own (OAuth).

use super::config::{Entry, Transport, namespace};
use super::http::Authority;
use crate::auth::oauth::resource::{Place, Resource};
use crate::base::cancel::CancelToken;
use crate::llm::model::Model;
use crate::llm::secret::Secret;
use crate::runtime::service::Services;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of sign-ins, in the agent folder.
const FILE: &str = "mcp-auth.json";

/// Gives each server what its entry asks for.
pub fn authorities(
    services: Services,
    agent: &Path,
) -> impl Fn(&Entry) -> Option<Arc<dyn Authority>> + Send + Sync + use<> {
    let (services, agent) = (Arc::new(services), PathBuf::from(agent));
    move |entry| match entry.provider() {
        Some(provider) => {
            Some(Arc::new(OfProvider { provider: provider.to_owned(), services: services.clone() }))
        }
        None => Some(Arc::new(sign_in(entry, &services, &agent)?)),
    }
}

/// What a server is signed in to with; none for a program, and where the entry has a credential.
pub fn sign_in(entry: &Entry, services: &Services, agent: &Path) -> Option<Resource> {
    let Transport::Http { url, .. } = entry.transport() else { return None };
    if entry.provider().is_some() || entry.has_authorization() {
        return None;
    }
    let place = Place {
        file: agent.join(FILE),
        name: namespace(&entry.name),
        env: services.credentials.env().clone(),
        vault: services.vault().clone(),
        http_proxy: services.http_proxy.clone(),
    };
    Resource::new(url, entry.oauth(), place)
}

impl Authority for Resource {
    fn token(&self, cancel: &CancelToken) -> Option<Secret> {
        Resource::token(self, cancel)
    }

    fn refused(
        &self,
        token: Option<&Secret>,
        challenge: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<bool, String> {
        Resource::refused(self, token, challenge, cancel)
            .map_err(|error| format!("its token could not be renewed: {}", error.message))
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

    fn refused(&self, _: Option<&Secret>, _: Option<&str>, _: &CancelToken) -> Result<bool, String> {
        Ok(false)
    }
}
